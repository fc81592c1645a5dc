"""How good a model is on rows with known answers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.dataset import Dataset
from espalier.errors import DataError, Fault
from espalier.model import Model
from espalier.prediction import leaves_of, router
from espalier.rows import EncodedRow

__all__ = ["Evaluation", "answers_of", "evaluate"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures on a set of rows, each row counted with its weight.

    Attributes:
        n_rows: How many rows.
        errors: Weight of the wrongly classified rows; None for a regression.
        accuracy: Share of the weight that is classified rightly; None for a regression.
        rmse: Root of the mean squared error; None for a classification.
        mae: Mean absolute error; None for a classification.
    """

    n_rows: int
    errors: float | None = None
    accuracy: float | None = None
    rmse: float | None = None
    mae: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the figures that apply."""
        names = ("n_rows", "errors", "accuracy", "rmse", "mae")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def evaluate(model: Model, dataset: Dataset) -> Evaluation:
    """Answer every row of `dataset` and compare.

    The columns are matched by name and categories by label, so that the data set may have been read on its own.

    Raises:
        DataError: An attribute or the target is not there, a category of the target is not one of the model's, or
            there is no weight.
    """
    target, weight = target_of(model, dataset), dataset.weight
    total = float(weight.sum())
    if total <= 0:
        raise DataError([Fault("", "no_weight", "there are no rows to evaluate on")])
    answers = answers_of(model, dataset)
    if model.task == "classification":
        errors = float(weight[answers != target].sum())
        return Evaluation(dataset.n_rows, errors=errors, accuracy=1 - errors / total)
    miss = answers - target
    rmse = math.sqrt(float((weight * miss**2).sum()) / total)
    return Evaluation(dataset.n_rows, rmse=rmse, mae=float((weight * np.abs(miss)).sum()) / total)


def answers_of(model: Model, dataset: Dataset) -> npt.NDArray[Any]:
    """Answer every row of `dataset`, whose columns are matched by name: class codes or numbers, (n_rows,).

    Raises:
        DataError: An attribute of the model is not there, or is of another kind.
    """
    way, values = router(model), encoded_columns(model, dataset)
    leaves = leaves_of(model, values)
    answers = model.tree.value[leaves]
    for row in np.flatnonzero(leaves < 0).tolist():
        answer = way.answer(EncodedRow(tuple(values[:, row].tolist()), (), ()))
        answers[row] = answer.value if answer.value is not None else answer.code
    return answers


def encoded_columns(model: Model, dataset: Dataset) -> npt.NDArray[np.float64]:
    """Give the attributes of `dataset` as the model's router reads them: float64 (attributes, n_rows).

    Raises:
        DataError: An attribute of the model is not there, or is of another kind.
    """
    faults: list[Fault] = []
    values = np.zeros((len(model.schema.attributes), dataset.n_rows))
    imputed = model.preparation.imputed
    for number, feature in enumerate(model.schema.attributes):
        place = dataset.schema.place(feature.name)
        if place is None:
            faults.append(Fault("", "missing_column", f"the model asks for the attribute {feature.name!r}"))
            continue
        given = dataset.schema.features[place]
        if given.coded != feature.coded or (not feature.coded and given.kind is not feature.kind):
            faults.append(Fault("", "kind", f"{feature.name!r} must be {feature.kind}, here it is {given.kind}"))
            continue
        column = np.asarray(dataset.columns[place])
        values[number] = _recoded(column, given.categories, feature.categories) if feature.coded else column
        if imputed is not None:
            absent = np.isnan(values[number]) | (feature.coded & (values[number] < 0))
            values[number, absent] = imputed[number]
    if faults:
        raise DataError(faults)
    return values


def target_of(model: Model, dataset: Dataset) -> npt.NDArray[Any]:
    """Give the target of `dataset` in the model's own codes; -1 for a class that the model does not know.

    Raises:
        DataError: The target is not there, or is of another kind.
    """
    target = model.schema.target
    place = dataset.schema.place(target.name) if target is not None else None
    if target is None or place is None:
        name = target.name if target is not None else ""
        raise DataError([Fault("", "missing_column", f"the target {name!r} is not there")])
    given = dataset.schema.features[place]
    if given.coded != target.coded:
        raise DataError([Fault("", "kind", f"the target must be {target.kind}, here it is {given.kind}")])
    column = np.asarray(dataset.columns[place])
    return _recoded(column, given.categories, target.categories).astype(np.int64) if target.coded else column


def _recoded(column: npt.NDArray[Any], given: tuple[Any, ...], wanted: tuple[Any, ...]) -> npt.NDArray[np.float64]:
    """Translate codes of one list of categories to codes of another; -1 missing, -2 unknown there."""
    if given == wanted and list(map(_key, given)) == list(map(_key, wanted)):
        return column.astype(np.float64)
    codes = {_key(label): code for code, label in enumerate(wanted)}
    table = np.array([*(codes.get(_key(label), -2) for label in given), -1], dtype=np.float64)
    return np.asarray(table[column])


def _key(label: object) -> tuple[str, object]:
    return type(label).__name__, label
