"""Predict rows with a tree or a rule list."""

from collections.abc import Callable
from typing import Any

from espalier.errors import RowError, TooLarge
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.prediction.answers import Prediction, prediction_of_leaf
from espalier.prediction.encode_rows import EncodedRow, encode_each, encode_rows, rows_to_predict
from espalier.prediction.missing_strategies import with_missing_strategy
from espalier.prediction.rule_predictor import RulePredictor, rule_predictor
from espalier.prediction.tree_predictor import TreePredictor, tree_predictor
from espalier.progress import Progress


def predict(
    model: Model, rows: Any, *, missing: str | None = None, progress: Progress | None = None
) -> list[Prediction]:
    """Predict each row.

    Args:
        model: The model.
        rows: A list of objects that map attribute names to JSON values; or a `Dataset` or table as in `train`. In a
            table, only the columns with the names of attributes are read.
        missing: How a missing value is handled, one of `PREDICTION_STRATEGIES`; None: as the model does.
        progress: Its share is updated with each row; another thread may stop it.

    Raises:
        RowError: Rows have faults, with paths such as ``/0/age``; or `rows` is neither a list of rows nor a table.
        DataError: A table has none of the attributes, or cannot be read as the model's attributes.
        ConfigError: There is no such strategy, or the model cannot use it.
        Cancelled: `progress` was stopped.
    """
    predictor = predictor_for(with_missing_strategy(model, missing))
    if progress is not None:
        progress.begin("predicting")
    encoded = encode_rows(predictor.encode, rows_to_predict(model.schema, rows))
    return [predictor.answer(row) for row in (encoded if progress is None else progress.each(encoded))]


def predict_each(
    model: Model, rows: Any, *, missing: str | None = None, most_paths: int | None = None
) -> list[Prediction | RowError]:
    """Predict each valid row, as `predict` does; for every other row, return a `RowError` with paths such as ``/age``.

    Raises:
        RowError, DataError: `rows` is neither a list of rows nor a table that can be read.
        ConfigError: There is no such strategy, or the model cannot use it.
        TooLarge: The rows that take several branches have more than `most_paths` paths together.
    """
    predictor = predictor_for(with_missing_strategy(model, missing))
    answer = limited_answers(predictor, most_paths)
    encoded = encode_each(predictor.encode, rows_to_predict(model.schema, rows))
    return [row if isinstance(row, RowError) else answer(row) for row in encoded]


def limited_answers(
    predictor: TreePredictor | RulePredictor, most: int | None, *, steps: bool = False
) -> Callable[[EncodedRow], Prediction]:
    """Return `predictor.answer` with a limit (None: no limit) for the rows that take several branches.

    Once they have more than `most` paths together, or steps on these paths, the function raises `TooLarge`. A path that
    a prediction does not list counts as many steps as the listed ones have on average.
    """
    n_counted = 0

    def answer(row: EncodedRow) -> Prediction:
        nonlocal n_counted
        prediction = predictor.answer(row)
        if (n_paths := prediction.n_visits) > 1:
            listed = [len(visit.nodes) - 1 for visit in prediction.visits] if steps else [1]
            n_counted += sum(listed) * n_paths // len(listed)
            if most is not None and n_counted > most:
                raise TooLarge(f"{'steps on the ' if steps else ''}paths of rows that take several branches", most)
        return prediction

    return answer


def leaf_prediction(model: Model, leaf: int) -> Prediction:
    """Return the prediction for a row that reaches only leaf number `leaf`, or that rule number `leaf` answers.

    No row is given, so the field `row` of the prediction is empty. A linear leaf predicts another value for each row;
    here, `value` is the constant of the leaf, smoothed if configured.
    """
    predictor = predictor_for(model)
    nodes = (leaf,) if isinstance(predictor, RulePredictor) else predictor.nodes_to(leaf)
    answer = predictor.answers[leaf]
    return prediction_of_leaf(answer, answer.value, predictor.weight[leaf], nodes, EncodedRow((), (), ()))


def predictor_for(model: Model) -> TreePredictor | RulePredictor:
    """Return the predictor of a tree or a rule list, for single rows; it is cached with the model."""
    return rule_predictor(model) if isinstance(model.body, RuleList) else tree_predictor(model)
