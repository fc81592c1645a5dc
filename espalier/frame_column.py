"""A column as a table of another library holds it, and columns of Python objects."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.frame_cells import float_or_infinite, instant_seconds, is_missing, is_number, plain_cell
from espalier.schema import FeatureKind, Label, label_key

__all__ = [
    "FrameColumn",
    "UnreadableError",
    "column_from_cells",
    "column_from_objects",
    "column_of_codes",
    "plain_labels",
]


class UnreadableError(Exception):
    """A column of a type without a meaning here; its text is the type."""


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """One column as it is held by a table.

    Attributes:
        name: Its name.
        kind: What its type says: numeric, datetime, boolean, ordinal (categories in a declared order) or nominal; None
            where its cells have no type in common, as in CSV and JSON.
        values: (n_rows,). Without `labels` numbers of any type, or seconds since 1970-01-01 UTC, NaN = missing; with
            them codes of any integer type, negative = missing.
        absent: bool (n_rows,), missing cells of a type that has no NaN; None where there are none.
        labels: What each code stands for.
        owned: Whether `values` belong to nobody else and are floats: they need no copy.
        listed: Whether `labels` are all categories that the column may have, in the order that decides ties.
        noted: Of numbers that were read from text those texts that `espalier.spelling.number_text` does not give, by
            row; None where they are not known.
    """

    name: str
    kind: FeatureKind | None
    values: npt.NDArray[Any]
    absent: npt.NDArray[np.bool_] | None = None
    labels: tuple[Label, ...] | None = None
    owned: bool = False
    listed: bool = False
    noted: Mapping[int, str] | None = None


def column_from_cells(name: str, cells: Iterable[Any]) -> FrameColumn:
    """Give Python objects as a column; None and NaN are missing, labels are in the order of their first cell.

    Raises:
        TypeError: An object is neither text, a number, a date nor missing.
    """
    codes: list[int] = []
    known: dict[tuple[str, Label], int] = {}
    for cell in cells:
        if is_missing(cell):
            codes.append(-1)
            continue
        label = plain_cell(cell)
        codes.append(known.setdefault(label_key(label), len(known)))
    return column_of_codes(name, np.array(codes, dtype=np.int64), [label for _, label in known])


def column_from_objects(name: str, cells: Sequence[Any], type_text: str) -> FrameColumn:
    """Give Python objects that a library calls `type_text` as a column.

    Raises:
        UnreadableError: An object is neither text, a number, a date nor missing.
    """
    try:
        return column_from_cells(name, cells)
    except TypeError:
        raise UnreadableError(type_text) from None


def column_of_codes(
    name: str, codes: npt.NDArray[np.int64], labels: Sequence[Any], *, nominal: bool = False
) -> FrameColumn:
    """Take distinct objects for what they all are: instants, true and false, numbers, else categories."""
    if labels and all(isinstance(label, date) for label in labels):
        seconds = np.array([*(instant_seconds(label) for label in labels), np.nan])
        return FrameColumn(name, FeatureKind.DATETIME, seconds[codes])
    plain = tuple(label.isoformat() if isinstance(label, date) else label for label in labels)
    if labels and all(isinstance(label, bool) for label in labels):
        return FrameColumn(name, FeatureKind.BOOLEAN, codes, labels=plain)
    if nominal or not labels or not all(is_number(label) for label in labels):
        return FrameColumn(name, FeatureKind.NOMINAL, codes, labels=plain)
    if all(isinstance(label, int) and abs(label) < 2**62 for label in labels):
        whole = np.array([*labels, 0], dtype=np.int64)
        return FrameColumn(name, FeatureKind.NUMERIC, whole[codes], codes < 0 if np.any(codes < 0) else None)
    return FrameColumn(name, FeatureKind.NUMERIC, np.array([*map(float_or_infinite, labels), np.nan])[codes])


def plain_labels(values: Sequence[Any], type_text: str) -> tuple[Label, ...]:
    """Give the categories of a type of a library as labels.

    Raises:
        UnreadableError: One is neither text, a number nor a date.
    """
    try:
        plain = [plain_cell(value) for value in values]
    except TypeError:
        raise UnreadableError(type_text) from None
    return tuple(value.isoformat() if isinstance(value, date) else value for value in plain)
