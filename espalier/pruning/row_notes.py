"""What a trace says of the rows that judged a pruning, where they are not what a reader would take them for."""

from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.bulk_prediction import leaves_of
from espalier.cells import cells_of, target_of, tested_places, unseen_rows
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.rules import RuleList

__all__ = ["notes_on_rows"]


def notes_on_rows(model: Model, dataset: Dataset, *, in_parts: bool = True) -> dict[str, list[str]]:
    """Give the notes of a trace on the rows that judged: ``{"notes": […]}``, nothing where there are none.

    Args:
        model: The parent, or what is tested on the rows.
        dataset: The rows; those without weight are not looked at.
        in_parts: Whether a row that several leaves answer counts in parts, one a leaf.

    Raises:
        DataError: The rows do not have the model's columns.
    """
    counted = dataset.weight > 0
    notes = _notes_on_classes(model, target_of(model, dataset)[counted])
    if model.schema.weight is not None and dataset.schema.weight is None:
        notes.append(f"the rows have no weights ({model.schema.weight.name!r} is not there): each counts 1")
    unseen = unseen_rows(model, dataset) & counted
    if n_unseen := int(np.count_nonzero(unseen)):
        notes.append(f"{_rows(n_unseen, 'has', 'have')} a category that the model has not seen: it counts as missing")
    if n_blank := int(np.count_nonzero(_without_values(model, dataset) & counted & ~unseen)):
        what = "the rules ask" if isinstance(model.body, RuleList) else "the tree asks"
        notes.append(f"{_rows(n_blank, 'has', 'have')} no value of any attribute that {what} for")
    if in_parts:
        several = int(np.count_nonzero((leaves_of(model, cells_of(model, dataset)) < 0) & counted))
        if several:
            what = f"{_rows(several, 'goes', 'go')} several ways and {'counts' if several == 1 else 'count'} in parts"
            notes.append(f"{what} here, one a way; the figures of a model count the answers to the rows")
    return {"notes": notes} if notes else {}


def _without_values(model: Model, dataset: Dataset) -> npt.NDArray[np.bool_]:
    """Say of each row whether all that the model asks for is missing; of none where it asks nothing."""
    asked = tested_places(model)
    cells, column = cells_of(model, dataset), np.empty(dataset.n_rows)
    blank = np.full(dataset.n_rows, bool(asked))
    for attribute in asked:
        cells.write(attribute, 0, dataset.n_rows, column)
        blank &= column < 0 if model.schema.attributes[attribute].coded else np.isnan(column)
    return blank


def _notes_on_classes(model: Model, target: Any) -> list[str]:
    if not model.schema.classes:
        return []
    notes = []
    # The schema may list classes that no training row was of. A code below 0 looks at the last place.
    unknown = int(np.count_nonzero(~np.append(_learned_classes(model), False)[np.maximum(target, -1)]))
    if unknown:
        of = _rows(unknown, "is", "are")
        notes.append(f"{of} of a class that the model has not learned: every answer to them is an error")
    if len(target) and target[0] >= 0 and np.all(target == target[0]):
        notes.append(f"all rows are of the class {model.schema.classes[int(target[0])]!r}: none speaks for another")
    return notes


def _learned_classes(model: Model) -> npt.NDArray[np.bool_]:
    """Say of each class whether a training row was of it."""
    if isinstance(model.body, RuleList):
        # Every training row stands behind one of these.
        return np.asarray(np.any([np.asarray(answer.stats) > 0 for answer in model.body.answers], axis=0))
    return np.asarray(model.tree.stats[0] > 0, dtype=np.bool_)


def _rows(number: int, one: str, many: str) -> str:
    return f"{number} row {one}" if number == 1 else f"{number} rows {many}"
