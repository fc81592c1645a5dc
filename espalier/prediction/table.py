"""Predict the rows of a table, column by column: only a row that reaches several leaves becomes a Python object."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.arrays import Floats, Ints, Mask
from espalier.data.dataset import Column, Dataset
from espalier.data.labels import Label
from espalier.data.readers import attributes_of, check_has_attributes
from espalier.data.schema import Schema
from espalier.model.model import Model
from espalier.prediction.answers import Prediction
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import encode_columns
from espalier.prediction.encode_rows import EncodedRow
from espalier.prediction.missing_strategies import with_missing_strategy
from espalier.prediction.predict import limited_answers, predictor_for


@dataclass(frozen=True, slots=True, eq=False)
class TableAnswers:
    """The predictions of a table.

    Attributes:
        classes: The classes of the model; empty for a regression.
        codes: int32 (rows), the index of each predicted class; None for a regression.
        leaves: int32 (rows): number of the leaf or rule; of several leaves, the one with the largest share of the row.
        numbers: float64 (rows), the predicted values of a regression; None for a classification.
        several: The full prediction of each row that reaches several leaves, by row index.
        missing: bool (attributes, rows): whether the row has no value of the attribute.
        unseen: bool (attributes, rows): whether the model does not know the row's category.
    """

    classes: tuple[Label, ...]
    codes: Ints | None
    leaves: Ints
    numbers: Floats | None
    several: Mapping[int, Prediction]
    missing: Mask
    unseen: Mask

    def labels(self) -> list[Label]:
        """Return the predicted class of each row; an empty list for a regression."""
        return [] if self.codes is None else [self.classes[code] for code in self.codes.tolist()]


def predict_table(
    model: Model, dataset: Any, *, missing: str | None = None, most_paths: int | None = None
) -> TableAnswers:
    r"""Predict every row of a data set. An attribute of the model that the data set lacks is missing in every row.

    Args:
        model: The model.
        dataset: A `Dataset` or a table as in `train`. Columns match by name, categories by label; other columns
            are ignored.
        missing: How a missing value is handled, one of `PREDICTION_STRATEGIES`; None: as the model does.
        most_paths: Maximum number of paths of the rows that take several branches, in total; None for no limit.

    Raises:
        TooLarge: The rows that take several branches have more than `most_paths` paths.
        DataError: The kind or type of an attribute's values is incompatible, or the table has none of the attributes.
        ConfigError: There is no such strategy, or the model cannot use it.

    >>> import espalier
    >>> data = espalier.dataset_from_csv("wind,play\nweak,yes\nstrong,no\n", target="play")
    >>> model = espalier.train(data, "id3")
    >>> predict_table(model, data).labels()
    ['yes', 'no']
    """
    reading = with_missing_strategy(model, missing)
    imputed = reading.preparation.imputed
    cells = encode_columns(model.schema, attributes_of(dataset, model.schema), imputed, may_lack=True)
    many = predict_batch(reading, cells, average=False)
    absent = np.array([column.missing() for column in cells.columns]).reshape(-1, cells.n_rows)
    unseen = np.array([column.unseen() for column in cells.columns]).reshape(-1, cells.n_rows)
    classes = reading.schema.classes
    leaves, answers, several = many.leaves, many.answers, {}
    names = np.array([feature.name for feature in reading.schema.attributes], dtype=object)
    answer_row = limited_answers(predictor_for(reading), most_paths)
    cell = np.empty(1)
    for row in np.flatnonzero(leaves < 0).tolist():
        values = []
        for attribute in range(len(names)):
            cells.write(attribute, row, row + 1, cell)
            values.append(float(cell[0]))
        flags = tuple(names[absent[:, row]].tolist()), tuple(names[unseen[:, row]].tolist())
        several[row] = answer = answer_row(EncodedRow(tuple(values), *flags))
        leaves[row], answers[row] = answer.leaf, answer.code if classes else answer.value
    codes, numbers = (answers, None) if classes else (None, answers)
    return TableAnswers(classes, codes, leaves, numbers, several, absent, unseen)


def check_table(model: Model, schema: Schema) -> None:
    """Check that `predict_table` can take a table of this schema.

    Raises:
        DataError: The kind of an attribute is incompatible with the model, or the table has no attribute of the model.
    """
    nothing: list[Column] = [np.empty(0, np.int32) if feature.coded else np.empty(0) for feature in schema.features]
    encode_columns(model.schema, Dataset(schema, tuple(nothing)), may_lack=True)
    check_has_attributes([feature.name for feature in schema.features], model.schema)
