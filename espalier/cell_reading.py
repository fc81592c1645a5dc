"""The cells of one column, read by what is declared of it, or by what they all are."""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cell_faults import fault_of_rows, faults_of_target, faults_of_weights
from espalier.dataset import Column
from espalier.errors import Fault
from espalier.marks import number_from_text
from espalier.schema import (
    LARGEST_WHOLE,
    ColumnDeclaration,
    Feature,
    FeatureKind,
    Label,
    Role,
    label_key,
    label_text,
    parse_instant,
    sorted_labels,
)

__all__ = ["are_classes", "plain_instant", "plain_number", "read_column"]

MAX_CLASSES_INFERRED: Final = 20
"""A numeric target with at most so many distinct whole numbers is a class."""

NOT_FINITE: Final = frozenset({"nan", "inf", "infinity"})
"""How programs write what is no finite number."""

TEXT_OF_NUMBERS: Final = (None, FeatureKind.NUMERIC)
"""Declared kinds of a column of classes whose texts may be read as numbers."""

Cell = Any
"""A cell as it came: text from CSV; a JSON value from rows and columns; None where missing."""


def read_column(
    declared: ColumnDeclaration, cells: Sequence[Cell], *, task: str | None
) -> tuple[Feature, Column, list[Fault]]:
    """Read a column: what it is, its array, and what is wrong with its cells.

    Args:
        declared: What is declared of it; what is not is inferred from all cells.
        cells: Texts, numbers, true, false; None where missing.
        task: ``classification`` or ``regression`` where it is declared.
    """
    role = declared.role or Role.ATTRIBUTE
    kind = declared.kind or (FeatureKind.NOMINAL if role is Role.IGNORE else _inferred_kind(cells))
    if role is Role.TARGET:
        kind = _target_kind(kind, cells, task=task, declared=declared.kind is not None)
    if role is Role.WEIGHT and declared.kind is None:
        kind = FeatureKind.NUMERIC
    categories: tuple[Label, ...] = ()
    faults: list[Fault]
    array: Column
    if kind is FeatureKind.NUMERIC:
        array, faults = _read_numbers(cells, plain_number, "a finite number")
    elif kind is FeatureKind.DATETIME:
        array, faults = _read_numbers(cells, plain_instant, "an ISO 8601 date or time")
    else:
        categories, array, faults = _read_codes(
            declared, cells, numeric_text=role is not Role.IGNORE and declared.kind in TEXT_OF_NUMBERS
        )
    if role is Role.TARGET and not faults:
        faults = faults_of_target(array)
    if role is Role.WEIGHT and not faults:
        faults = faults_of_weights(np.asarray(array, dtype=np.float64))
    return Feature(declared.name, kind, role, categories), array, faults


def _inferred_kind(cells: Sequence[Cell]) -> FeatureKind:
    known = [cell for cell in cells if cell is not None]
    if known and all(isinstance(cell, bool) for cell in known):
        return FeatureKind.BOOLEAN
    if known and all(plain_number(cell) is not None for cell in known):
        return FeatureKind.NUMERIC
    return FeatureKind.NOMINAL


def are_classes(values: Collection[float | None]) -> bool:
    """Say whether the distinct values of a numeric target are classes: few, and whole numbers."""
    few = len(values) <= MAX_CLASSES_INFERRED
    return few and all(value is not None and value.is_integer() for value in values)


def _target_kind(kind: FeatureKind, cells: Sequence[Cell], *, task: str | None, declared: bool) -> FeatureKind:
    if kind is FeatureKind.NUMERIC and task == "classification":
        return FeatureKind.NOMINAL
    if kind is not FeatureKind.NUMERIC and task == "regression":
        # Read as numbers: cells that are none are reported one by one.
        return FeatureKind.NUMERIC
    if kind is FeatureKind.NOMINAL and task is None and not declared and _are_numbers_but_for_some(cells):
        # Not a class a number: the cells that are no finite numbers are reported.
        return FeatureKind.NUMERIC
    if kind is FeatureKind.NUMERIC and task is None and not declared:
        return FeatureKind.NOMINAL if are_classes({plain_number(cell) for cell in cells if cell is not None}) else kind
    return kind


def _are_numbers_but_for_some(cells: Sequence[Cell]) -> bool:
    """Whether all known cells are numbers but for some that say NaN or infinity."""
    others = [cell for cell in cells if cell is not None and plain_number(cell) is None]
    n_known = sum(cell is not None for cell in cells)
    return 0 < len(others) < n_known and all(_is_not_finite(cell) for cell in others)


def _is_not_finite(cell: Cell) -> bool:
    if isinstance(cell, str):
        return cell.strip().lstrip("+-").lower() in NOT_FINITE
    return isinstance(cell, float) and not math.isfinite(cell)


def plain_number(cell: Cell) -> float | None:
    """Read a number or the text of one; None where it is neither, or not finite."""
    if isinstance(cell, str):
        return number_from_text(cell)
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    try:
        value = float(cell)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def plain_instant(cell: Cell) -> float | None:
    """Read the text of a date or time as seconds since 1970-01-01 UTC; None where it is none."""
    if not isinstance(cell, str):
        return None
    try:
        return parse_instant(cell)
    except (ValueError, OverflowError):
        return None


def _read_numbers(
    cells: Sequence[Cell], read: Callable[[Cell], float | None], legal: str
) -> tuple[npt.NDArray[np.float64], list[Fault]]:
    values = [math.nan if cell is None else read(cell) for cell in cells]
    bad = [row for row, value in enumerate(values) if value is None]
    if bad:
        return np.zeros(len(cells)), [fault_of_rows(bad, "wrong_type", f"must be {legal} or missing")]
    return np.array(values, dtype=np.float64), []


def _read_codes(
    declared: ColumnDeclaration, cells: Sequence[Cell], *, numeric_text: bool
) -> tuple[tuple[Label, ...], npt.NDArray[np.int32], list[Fault]]:
    codes = np.full(len(cells), -1, dtype=np.int32)
    bad = [row for row, cell in enumerate(cells) if cell is not None and not isinstance(cell, str | int | float)]
    bad += [row for row, cell in enumerate(cells) if isinstance(cell, float) and not math.isfinite(cell)]
    if bad:
        return (), codes, [fault_of_rows(bad, "wrong_type", "must be text, a number, true, false or missing")]
    labels = list(cells)
    if numeric_text and declared.categories is None:
        labels = _numbers_from_text(labels)
    # A model's schema lists no categories of ignored columns: there, none stands for any.
    if declared.categories or (declared.categories is not None and declared.role is not Role.IGNORE):
        categories = declared.categories
    else:
        distinct = {label_key(label): label for label in labels if label is not None}
        categories = sorted_labels(distinct.values())
    # Text formats know only text: a cell stands for the category that is written so.
    by_text = {label_text(label): code for code, label in reversed(list(enumerate(categories)))}
    by_key = {label_key(label): code for code, label in enumerate(categories)}
    unknown = []
    for row, label in enumerate(labels):
        if label is None:
            continue
        code = by_key.get(label_key(label))
        if code is None and isinstance(label, str):
            code = by_text.get(label)
        if code is None:
            unknown.append(row)
        else:
            codes[row] = code
    if unknown and declared.more_categories:
        more = sorted_labels({label_key(labels[row]): labels[row] for row in unknown}.values())
        by_key = {label_key(label): len(categories) + place for place, label in enumerate(more)}
        codes[unknown] = [by_key[label_key(labels[row])] for row in unknown]
        return (*categories, *more), codes, []
    faults = [fault_of_rows(unknown, "unknown_category", "must be one of the declared categories")] if unknown else []
    return categories, codes, faults


def _numbers_from_text(labels: Sequence[Cell]) -> list[Cell]:
    """Read the classes 0, 1, 2 of a text format as whole numbers; codes such as 007 and anything else stay text."""
    if not all(label is None or isinstance(label, str) for label in labels):
        return list(labels)
    values = {label: plain_number(label) for label in set(labels) if label is not None}
    if not values or not all(_is_plain_whole(text, value) for text, value in values.items()):
        return list(labels)
    return [None if label is None else int(values[label] or 0) for label in labels]


def _is_plain_whole(text: str, value: float | None) -> bool:
    padded = len(text) > 1 and text[0] == "0" and text[1].isdigit()
    return value is not None and value.is_integer() and abs(value) < LARGEST_WHOLE and not padded
