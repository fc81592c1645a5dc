"""Metrics of a model on rows with a known target."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Floats
from espalier.data.dataset import Dataset
from espalier.data.readers import as_dataset
from espalier.data.stored_dataset import StoredDataset
from espalier.errors import DataError, Fault
from espalier.evaluation.impurity import distances_from_mean
from espalier.model.model import Model
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import encode_columns, target_of
from espalier.progress import Progress

LEAST_SHARE: Final = 1e-15
MAX_CONFUSION_CLASSES: Final = 1_000
"""The largest number of classes of a confusion matrix."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures on a set of rows. Each row counts with its weight. Figures that do not apply to the task are None.

    Attributes:
        n_rows: Number of rows.
        errors: Weight of the wrongly classified rows.
        accuracy: Share of the weight that is classified correctly.
        balanced_accuracy: Mean recall of the model's classes that occur; 0 if none occurs.
        macro_f1: Mean of 2·precision·recall/(precision + recall) over the classes that occur or are predicted.
        log_loss: Mean of −ln(predicted share of the true class), in nats; a share below 1e-15 counts as 1e-15.
        confusion: Weight of the rows of each true class (first index) and predicted class (second index), in the
            schema's order. Rows of a class that the model does not know are left out. None above 1,000 classes.
        rmse: Root of the mean squared error.
        mae: Mean absolute error.
        r2: 1 − squared error / squared deviation from the mean; 0 if the target does not vary.
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
        """Return the figures that apply, as JSON."""
        names = (field.name for field in dataclasses.fields(self))
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.confusion is not None:
            given["confusion"] = [list(row) for row in self.confusion]
        return given

    def figures(self) -> dict[str, float]:
        """Return the figures that are stored in a model's training record."""
        names = ("n_rows", "errors", "accuracy", "rmse", "mae")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def evaluate(model: Model, dataset: Any, *, progress: Progress | None = None) -> Evaluation:
    """Predict every row of `dataset`, a `Dataset` or a table as in `train`, and compare the results with the target.

    Columns are matched by name and categories by label. A row of a class that the model does not know counts as an
    error, and the predicted share of this class is 0. Another thread may stop `progress`.

    Raises:
        DataError: A column of the model is missing or of another kind, or no row has a weight above 0.
        Cancelled: `progress` was stopped.
    """
    return evaluate_rows(model, as_dataset(dataset, like=model.schema), progress=progress)[0]


def evaluate_rows(model: Model, dataset: Dataset, *, progress: Progress | None = None) -> tuple[Evaluation, Floats]:
    """Return the evaluation, and the loss of each row, float64 (n_rows,): 1 for a wrong class, or the squared error."""
    target, weight = target_of(model.schema, dataset), dataset.weight
    if float(weight.sum()) <= 0:
        raise DataError([Fault("", "no_weight", "there are no rows to evaluate on")])
    parts = dataset.parts() if isinstance(dataset, StoredDataset) else (dataset,)
    columns = zip(*(_answered(model, part, progress) for part in parts), strict=True)
    answers, of_target = (np.concatenate(each) if len(each) > 1 else each[0] for each in columns)
    if model.task == "regression":
        return _regression(target, weight, answers), np.asarray((answers - target) ** 2, dtype=np.float64)
    total, n_classes, known, hit = float(weight.sum()), len(model.schema.classes), target >= 0, answers == target
    right, true = (np.bincount(target[rows], weight[rows], n_classes) for rows in (hit, known))
    answered, errors = np.bincount(answers, weight, n_classes), float(weight[~hit].sum())
    recall = right[true > 0] / true[true > 0]
    seen = (true > 0) | (answered > 0)
    losses = -np.log(np.maximum(of_target, LEAST_SHARE))
    figures = Evaluation(
        len(target),
        errors=errors,
        accuracy=1 - errors / total,
        balanced_accuracy=float(recall.mean()) if len(recall) else 0.0,
        macro_f1=float((2 * right[seen] / (true[seen] + answered[seen])).mean()),
        log_loss=float((weight * losses).sum()) / total,
        confusion=_confusion(target[known], answers[known], weight[known], n_classes),
    )
    return figures, np.asarray(~hit, dtype=np.float64)


def _answered(model: Model, dataset: Dataset, progress: Progress | None) -> tuple[Array, Floats]:
    """Return the prediction for each row and, for a classification, the predicted share of the row's true class."""
    cells = encode_columns(model.schema, dataset, model.preparation.imputed)
    if model.task == "regression":
        return predict_batch(model, cells, progress=progress).answers, np.zeros(0)
    answered = predict_batch(model, cells, classes=target_of(model.schema, dataset), progress=progress)
    return answered.answers, answered.share_of if answered.share_of is not None else np.zeros(dataset.n_rows)


def _confusion(target: Array, answers: Array, weight: Floats, n_classes: int) -> tuple[tuple[float, ...], ...] | None:
    if n_classes > MAX_CONFUSION_CLASSES:
        return None
    cells = np.bincount(target * n_classes + answers, weight, n_classes**2).reshape(n_classes, n_classes)
    return tuple(map(tuple, cells.tolist()))


def _regression(target: Floats, weight: Floats, answers: Floats) -> Evaluation:
    total, miss = float(weight.sum()), answers - target
    squares = float((weight * miss**2).sum())
    deviation = float((weight * distances_from_mean(target, weight) ** 2).sum())
    return Evaluation(
        len(target),
        rmse=math.sqrt(squares / total),
        mae=float((weight * np.abs(miss)).sum()) / total,
        r2=1 - squares / deviation if deviation > 0 else 0.0,
    )
