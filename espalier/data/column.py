"""One column of a table as it was read, before its kind is decided."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.data.labels import (
    EARLIEST_INSTANT,
    LATEST_INSTANT,
    MAX_INTEGER,
    Label,
    instant_text,
    is_number,
    label_key,
)
from espalier.data.schema import FeatureKind
from espalier.threads import parallel_map

MICROSECONDS: Final = 1e6
"""In a second."""
MAX_TABLE_SIZE: Final = 65_536
"""Integers within so narrow a range are looked up in a table instead of sorted."""
UNREADABLE: Final = object()
"""Label of cells that are neither text, number, true nor false."""
NUMBER_TYPES: Final = frozenset({int, float, type(None)})
LABEL_TYPES: Final = (str, int, float)
ROWS_AT_ONCE: Final = 2_048
ROWS_OF_A_THREAD: Final = 32 * ROWS_AT_ONCE
"""Rows of a matrix that are copied at a time, and by one thread."""


class UnreadableError(TypeError):
    """A cell or a column is of a type that has no meaning here.

    Attributes:
        column_type: The type of the column, if that is what is wrong.
    """

    def __init__(self, message: str, column_type: str | None = None) -> None:
        super().__init__(message)
        self.column_type = column_type


@dataclass(frozen=True, slots=True)
class RawColumn:
    """One column as it was read: numbers, or codes with the label of each code.

    Attributes:
        name: Name of the column.
        kind: Kind by the type of the column: numeric, datetime, boolean, ordinal (the labels are in order) or
            nominal; None if the cells have no common type, as in CSV and JSON.
        values: (n_rows,). Without `labels` numbers of any dtype, or seconds since 1970-01-01 UTC, NaN = missing; with
            `labels` integer codes, negative = missing.
        absent: bool (n_rows,), missing cells of a dtype without NaN; None if there are none.
        labels: The distinct labels, by code.
        copy: Whether `values` belong to somebody else and must be copied. If not, they are float64 where they are
            numbers.
        categories_complete: Whether `labels` are all categories of the column, in the order that decides ties.
    """

    name: str
    kind: FeatureKind | None
    values: npt.NDArray[Any]
    absent: npt.NDArray[np.bool_] | None = None
    labels: Sequence[Any] | None = None
    copy: bool = True
    categories_complete: bool = False

    def numbers(self) -> npt.NDArray[np.float64]:
        """Return the numbers as float64 (n_rows,), NaN = missing, in an array of the column's own."""
        if not self.copy:
            return self.values
        values = np.array(self.values, dtype=np.float64)
        if self.absent is not None:
            values[self.absent] = np.nan
        return values

    def coded(self) -> tuple[Sequence[Any], npt.NDArray[Any]]:
        """Return the distinct labels and the code of each row, negative = missing."""
        if self.labels is not None:
            return self.labels, self.values
        absent = self.absent if self.absent is not None else np.zeros(len(self.values), dtype=np.bool_)
        if self.values.dtype.kind == "f":
            absent = absent | np.isnan(self.values)
        codes = np.full(len(self.values), -1, dtype=np.int32)
        distinct, codes[~absent] = distinct_values(self.values[~absent])
        labels: list[Any] = distinct.tolist()
        if self.kind is FeatureKind.DATETIME:
            labels = [
                instant_text(value) if EARLIEST_INSTANT <= value <= LATEST_INSTANT else UNREADABLE for value in labels
            ]
        return labels, codes


def column_from_array(name: str, values: npt.NDArray[Any]) -> RawColumn:
    """Return a one-dimensional numpy array of numbers, booleans, dates or Python objects as a column."""
    if values.dtype.kind in "fiub":
        return RawColumn(name, FeatureKind.NUMERIC, values)
    if values.dtype.kind == "M":
        micros = values.astype("datetime64[us]")
        seconds = seconds_from_microseconds(micros.astype(np.int64))
        return RawColumn(name, FeatureKind.DATETIME, np.where(np.isnat(micros), np.nan, seconds))
    return column_from_cells(name, values.tolist())


def columns_from_matrix(matrix: npt.NDArray[Any]) -> list[RawColumn]:
    """Return the columns of an array of numbers (n_rows, n_columns), called x0, x1, …, copied as float32 or float64."""
    values = np.empty(matrix.shape[::-1], np.float32 if matrix.dtype == np.float32 else np.float64)

    def copy(first: int) -> None:
        # A few rows at a time, which stay in the cache until the last of their columns is written.
        for at in range(first, min(first + ROWS_OF_A_THREAD, len(matrix)), ROWS_AT_ONCE):
            values[:, at : at + ROWS_AT_ONCE] = matrix[at : at + ROWS_AT_ONCE].T

    parallel_map(copy, range(0, len(matrix), ROWS_OF_A_THREAD), n_cells=matrix.size)
    return [RawColumn(f"x{place}", FeatureKind.NUMERIC, column, copy=False) for place, column in enumerate(values)]


def column_from_json(name: str, cells: Sequence[Any], *, as_labels: bool) -> RawColumn:
    """Return JSON values as a column without a type; `as_labels`: even if all of them are numbers."""
    if not as_labels and NUMBER_TYPES.issuperset(map(type, cells)):
        try:
            values = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
        except OverflowError:
            values = np.array([np.inf])
        if np.count_nonzero(np.isfinite(values)) == len(cells) - cells.count(None):
            return RawColumn(name, None, values, copy=False)
    known: dict[Any, int] = {}
    labels: list[Any] = []
    codes = np.full(len(cells), -1, dtype=np.int32)
    for row, cell in enumerate(cells):
        if cell is None:
            continue
        label = cell if isinstance(cell, LABEL_TYPES) else UNREADABLE
        code = known.setdefault(label_key(label), len(labels))  # type: ignore[arg-type]
        if code == len(labels):
            labels.append(label)
        codes[row] = code
    return RawColumn(name, None, codes, labels=labels)


def column_from_texts(name: str, cells: Iterable[str | None], *, kind: FeatureKind | None = None) -> RawColumn:
    """Return texts as a column, labels in the order of their first cells; None is missing."""
    known: dict[str, int] = {}
    codes = [-1 if cell is None else known.setdefault(cell, len(known)) for cell in cells]
    return RawColumn(name, kind, np.array(codes, dtype=np.int32), labels=tuple(known))


def column_from_cells(name: str, cells: Iterable[Any]) -> RawColumn:
    """Return Python objects as a column; None and NaN are missing, labels are in the order of their first cells."""
    known: dict[tuple[str, Label], int] = {}
    codes = [-1 if is_missing(cell) else known.setdefault(label_key(plain_cell(cell)), len(known)) for cell in cells]
    return column_of_codes(name, np.array(codes, dtype=np.int64), [label for _, label in known])


def column_of_codes(name: str, codes: npt.NDArray[Any], labels: Sequence[Any], *, nominal: bool = False) -> RawColumn:
    """Return distinct objects as a column of what all of them are: dates, booleans, numbers, else categories."""
    if labels and all(isinstance(label, date) for label in labels):
        seconds = np.array([*(instant_seconds(label) for label in labels), np.nan])
        return RawColumn(name, FeatureKind.DATETIME, seconds[codes])
    plain = tuple(label.isoformat() if isinstance(label, date) else label for label in labels)
    if labels and all(isinstance(label, bool) for label in labels):
        return RawColumn(name, FeatureKind.BOOLEAN, codes, labels=plain)
    if nominal or not labels or not all(is_number(label) for label in labels):
        return RawColumn(name, FeatureKind.NOMINAL, codes, labels=plain)
    if all(isinstance(label, int) and abs(label) < 2**62 for label in labels):
        whole = np.array([*labels, 0], dtype=np.int64)
        return RawColumn(name, FeatureKind.NUMERIC, whole[codes], codes < 0 if np.any(codes < 0) else None)
    return RawColumn(name, FeatureKind.NUMERIC, np.array([*map(_float_or_infinity, labels), np.nan])[codes])


def plain_labels(values: Sequence[Any]) -> tuple[Label, ...]:
    """Return the categories of a library's type as labels."""
    plain = map(plain_cell, values)
    return tuple(value.isoformat() if isinstance(value, date) else value for value in plain)


def plain_cell(cell: Any) -> Any:
    """Return a cell as text, number, boolean or date; numpy's scalars and decimals become Python's.

    Raises:
        UnreadableError: It is none of these.
    """
    plain = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(plain, Decimal):
        return float(plain)
    if isinstance(plain, bytes | Mapping) or not isinstance(plain, str | int | float | date):
        raise UnreadableError(f"argument must be a string, a number or a date, not {type(cell).__name__!r}")
    return plain


def instant_seconds(value: date) -> float:
    """Return seconds since 1970-01-01 UTC; a time without an offset is taken as UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def seconds_from_microseconds(micros: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the nearest doubles, as `instant_seconds` does.

    >>> seconds_from_microseconds(np.array([9_025_300_800_000_001])).tolist() == [9_025_300_800_000_001 / 10**6]
    True
    """
    seconds = micros / MICROSECONDS
    far = np.flatnonzero(np.abs(micros) > MAX_INTEGER)  # not exact as float64: they would be rounded twice
    seconds[far] = [each / 10**6 for each in micros[far].tolist()]
    return seconds


def distinct_values(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct values in ascending order, and the index of each value among them, int64 (n_rows,).

    >>> [part.tolist() for part in distinct_values(np.array([7, 3, 7]))]
    [[3, 7], [1, 0, 1]]
    """
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < MAX_TABLE_SIZE:
            wide = values.astype(np.int64) if values.dtype.kind == "i" else values
            offset = (wide - wide.dtype.type(low)).astype(np.int64)
            present = np.zeros(high - low + 1, dtype=np.bool_)
            present[offset] = True
            table = np.cumsum(present) - 1
            return np.flatnonzero(present).astype(values.dtype) + values.dtype.type(low), table[offset]
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, places.astype(np.int64)


def is_missing(cell: Any) -> bool:
    """Return whether a cell of another library is missing: None, NA, NaT, NaN."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    return isinstance(cell, float | np.floating) and math.isnan(cell)


def _float_or_infinity(label: Any) -> float:
    try:
        return float(label)
    except OverflowError:  # refused later with every other number that is not finite
        return math.inf
