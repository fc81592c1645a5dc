"""What a trace says of the rows that judged a pruning, where they are not what a reader would take them for."""

from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.bulk_prediction import leaves_of
from espalier.cells import cells_of, target_of, unseen_rows
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.rules import RuleList
from espalier.tree import LEAF

__all__ = ["notes_on_rows"]


def notes_on_rows(model: Model, dataset: Dataset, *, in_parts: bool = True) -> dict[str, list[str]]:
    """Give the notes of a trace on the rows that judged: ``{"notes": […]}``, nothing where there are none.

    Args:
        model: The parent, or what is tested on the rows; of a list of rules only the classes are looked at.
        dataset: The rows; those without weight are not looked at.
        in_parts: Whether a row that several leaves answer counts in parts, one a leaf.

    Raises:
        DataError: The rows do not have the model's columns.
    """
    counted = dataset.weight > 0
    notes = _notes_on_classes(model, target_of(model, dataset)[counted])
    if isinstance(model.body, RuleList):
        return {"notes": notes} if notes else {}
    unseen = int(np.count_nonzero(unseen_rows(model, dataset) & counted))
    if unseen:
        notes.append(f"{_rows(unseen, 'has', 'have')} a category that the model has not seen: it counts as missing")
    blank = int(np.count_nonzero(_without_values(model, dataset) & counted))
    if blank:
        notes.append(f"{_rows(blank, 'has', 'have')} no value of any attribute that the tree asks for")
    if in_parts:
        several = int(np.count_nonzero((leaves_of(model, cells_of(model, dataset)) < 0) & counted))
        if several:
            what = f"{_rows(several, 'goes', 'go')} several ways and {'counts' if several == 1 else 'count'} in parts"
            notes.append(f"{what} here, one a way; the figures of a model count the answers to the rows")
    return {"notes": notes} if notes else {}


def _without_values(model: Model, dataset: Dataset) -> npt.NDArray[np.bool_]:
    """Say of each row whether all that the tree asks for is missing; of none where it asks nothing."""
    asked = np.unique(model.tree.feature[model.tree.test != LEAF]).tolist()
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
    unknown = int(np.count_nonzero(target < 0))
    if unknown:
        of = _rows(unknown, "is", "are")
        notes.append(f"{of} of a class that the model has not learned: every answer to them is an error")
    if unknown < len(target) and np.all(target == target[0]):
        notes.append(f"all rows are of the class {model.schema.classes[int(target[0])]!r}: none speaks for another")
    return notes


def _rows(number: int, one: str, many: str) -> str:
    return f"{number} row {one}" if number == 1 else f"{number} rows {many}"
