"""How good a model is on rows with known answers."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.bulk_prediction import class_answers, numbers
from espalier.dataset import Dataset
from espalier.errors import DataError, Fault
from espalier.model import Model

__all__ = ["Evaluation", "answers_and_shares", "evaluate", "evaluate_rows"]

LEAST_SHARE: Final = 1e-15


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures on a set of rows, each row counted with its weight; those of the other task are None.

    Attributes:
        n_rows: How many rows.
        errors: Weight of the wrongly classified rows.
        accuracy: Share of the weight that is classified rightly.
        balanced_accuracy: Mean over the classes that occur of the share of each that is found.
        macro_f1: Mean over the classes that occur or are answered of 2·precision·recall/(precision + recall).
        log_loss: Mean of −ln(share of the true class), in nats; a share below 1e-15 counts as 1e-15.
        confusion: Weight of each true class (rows of the matrix, in the schema's order) by answered class.
        rmse: Root of the mean squared error.
        mae: Mean absolute error.
        r2: 1 − squared error / squared deviation from the mean; 0 where the target does not vary.
    """

    n_rows: int
    errors: float | None = None
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    macro_f1: float | None = None
    log_loss: float | None = None
    confusion: tuple[tuple[float, ...], ...] | None = None
    rmse: float | None = None
    mae: float | None = None
    r2: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the figures that apply, as JSON."""
        names = (field.name for field in dataclasses.fields(self))
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.confusion is not None:
            given["confusion"] = [list(row) for row in self.confusion]
        return given

    def figures(self) -> dict[str, float]:
        """Give the few figures that a model keeps of itself."""
        names = ("n_rows", "errors", "accuracy", "rmse", "mae")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def evaluate(model: Model, dataset: Dataset) -> Evaluation:
    """Answer every row of `dataset` and compare.

    The columns are matched by name and categories by label, so that the data set may have been read on its own. A class
    that the model does not know is an error, with a share of 0.

    Raises:
        DataError: An attribute or the target is not there or of another kind, or there is no weight.
    """
    return evaluate_rows(model, dataset)[0]


def evaluate_rows(model: Model, dataset: Dataset) -> tuple[Evaluation, npt.NDArray[np.float64]]:
    """Do what `evaluate` does, and give besides what each row loses, (n_rows): 0 or 1, or the squared error.

    Raises:
        DataError: As `evaluate`.
    """
    target, weight = target_of(model, dataset), dataset.weight
    if float(weight.sum()) <= 0:
        raise DataError([Fault("", "no_weight", "there are no rows to evaluate on")])
    answers, shares = answers_and_shares(model, dataset)
    if model.task == "classification":
        return _classification(target, weight, answers, shares), np.asarray(answers != target, dtype=np.float64)
    return _regression(target, weight, answers), np.asarray((answers - target) ** 2, dtype=np.float64)


def _classification(
    target: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    answers: npt.NDArray[np.int32],
    shares: npt.NDArray[np.float64],
) -> Evaluation:
    n_classes, total = shares.shape[1], float(weight.sum())
    known = target >= 0
    cells = np.bincount(
        target[known] * n_classes + answers[known], weights=weight[known], minlength=n_classes * n_classes
    )
    confusion = cells.reshape(n_classes, n_classes)
    right, true, answered = np.diag(confusion), confusion.sum(axis=1), np.bincount(answers, weight, n_classes)
    errors = float(weight[answers != target].sum())
    recall = right[true > 0] / true[true > 0]
    seen = (true > 0) | (answered > 0)
    of_target = np.where(known, shares[np.arange(len(target)), np.maximum(target, 0)], 0.0)
    losses = -np.log(np.maximum(of_target, LEAST_SHARE))
    return Evaluation(
        len(target),
        errors=errors,
        accuracy=1 - errors / total,
        balanced_accuracy=float(recall.mean()) if len(recall) else 0.0,
        macro_f1=float((2 * right[seen] / (true[seen] + answered[seen])).mean()),
        log_loss=float((weight * losses).sum()) / total,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def _regression(
    target: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], answers: npt.NDArray[np.float64]
) -> Evaluation:
    total = float(weight.sum())
    miss = answers - target
    squares = float((weight * miss**2).sum())
    deviation = float((weight * (target - float((weight * target).sum()) / total) ** 2).sum())
    return Evaluation(
        len(target),
        rmse=math.sqrt(squares / total),
        mae=float((weight * np.abs(miss)).sum()) / total,
        r2=1 - squares / deviation if deviation > 0 else 0.0,
    )


def answers_and_shares(model: Model, dataset: Dataset) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Answer every row of `dataset`, whose columns are matched by name.

    Returns:
        Class codes int32 or numbers float64, (n_rows); shares of the classes, float64 (n_rows, classes), with no
        columns for a regression.

    Raises:
        DataError: An attribute of the model is not there, or is of another kind.
    """
    values = encoded_columns(model, dataset)
    if model.task == "classification":
        return class_answers(model, values)
    return numbers(model, values), np.empty((dataset.n_rows, 0))


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
