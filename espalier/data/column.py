"""One column of a table as it was read, before its kind is decided."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Floats, Ints, Longs, Mask
from espalier.data.instants import EARLIEST_INSTANT, END_OF_YEAR_9999, LATEST_INSTANT, instant_seconds, instant_text
from espalier.data.labels import MAX_INTEGER, label_key
from espalier.data.notices import TICKS_PER_MICROSECOND, Notice, finer_instants, truncation_notice
from espalier.data.number_parsing import is_number, plain_number
from espalier.data.schema import FeatureKind
from espalier.errors import DataError, Fault, pointer
from espalier.threads import parallel_map

MAX_TABLE_SIZE: Final = 65_536
"""If the range of integers is below this size, `distinct_values` looks them up in a table instead of sorting them."""
UNREADABLE: Final = object()
"""Label of a cell that cannot be read: an object of an unsupported type, or an instant outside the years 1 to 9999."""
JSON_TYPES: Final = frozenset({str, int, float, bool, type(None)})
EXACT_TYPES: Final[Mapping[type, Callable[[Any], Any]]] = {
    bool: bool, str: str.__str__, int: int.__int__, float: float.__float__
}  # fmt: skip
"""For each type of cells, the function that converts a value of a subclass, such as an enumeration, to this type."""
MICROSECONDS: Final = 10**6
"""Microseconds per second. Finer instants are truncated to microseconds."""
TICKS_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": MICROSECONDS, "ns": 10**9}
ROWS_AT_ONCE: Final = 2_048
ROWS_OF_A_THREAD: Final = 32 * ROWS_AT_ONCE
"""Number of rows that a thread copies from a matrix in one task, `ROWS_AT_ONCE` at a time."""


class UnreadableError(TypeError):
    """A cell cannot be read. If `column_type` is given, no cell of a column of this type can be read."""

    def __init__(self, message: str, column_type: str | None = None) -> None:
        super().__init__(message)
        self.column_type = column_type


@dataclass(frozen=True, slots=True)
class RawColumn:
    """One column as it was read: numbers, or codes with the label of each code.

    Attributes:
        kind: The kind that the type of the column implies: numeric, datetime, boolean, ordinal (`labels` are in order)
            or nominal. None if the column has no type, as in CSV.
        values: (n_rows,). If there are `labels`, the values are integer codes (-1 = missing). Otherwise, the values are
            integers or floats (NaN = missing); instants are floats, in seconds since 1970-01-01 UTC.
        absent: bool (n_rows,): marks the missing integers of a column without `labels`; None if none is missing.
        categories_complete: Whether `labels` are all categories of the column, in the order of the schema.
        is_index: Whether the column is an index of pandas. Such a column is left out unless it is declared.
        notices: Notices of changes made when the column was read.
    """

    name: str
    kind: FeatureKind | None
    values: Array
    absent: Mask | None = None
    labels: Sequence[Any] | None = None
    categories_complete: bool = False
    is_index: bool = False
    notices: tuple[Notice, ...] = ()

    @property
    def is_null(self) -> bool:
        """Whether the column has neither a type nor a value, like a column of Arrow's type null."""
        return self.kind is None and self.labels == ()

    def numbers(self) -> Array:
        """Return the numbers as floats (n_rows,), NaN = missing."""
        values = self.values if self.values.dtype.kind == "f" else self.values.astype(np.float64)
        if self.absent is not None:
            values[self.absent] = np.nan
        return values

    def coded(self) -> tuple[Sequence[Any], Array]:
        """Return the distinct labels and the code of each row, -1 = missing."""
        if self.labels is not None:
            return self.labels, self.values
        known = np.ones(len(self.values), dtype=np.bool_) if self.absent is None else ~self.absent
        if self.values.dtype.kind == "f":
            known &= ~np.isnan(self.values)
        codes = np.full(len(self.values), -1, dtype=np.int32)
        distinct, codes[known] = distinct_values(self.values[known])
        labels: list[Any] = distinct.tolist()
        if self.kind is FeatureKind.DATETIME:
            labels = [
                instant_text(value) if EARLIEST_INSTANT <= value <= LATEST_INSTANT else UNREADABLE for value in labels
            ]
        return labels, codes


class LabelCodes:
    """Assigns the codes 0, 1, … to labels, in the order of their first occurrence."""

    def __init__(self) -> None:
        self.labels: list[Any] = []
        self._codes: dict[Any, int] = {}

    def encode(self, cells: Iterable[Any]) -> Ints:
        """Return the code of each cell, -1 for None. Each new label gets the next code."""
        codes = []
        for cell in cells:
            if cell is None:
                codes.append(-1)
                continue
            # Datetimes that differ only in `fold`, the two hours of a time change, are equal in Python.
            key = cell if type(cell) is str else (label_key(cell), getattr(cell, "fold", 0))
            code = self._codes.setdefault(key, len(self.labels))
            if code == len(self.labels):
                self.labels.append(cell)
            codes.append(code)
        return np.array(codes, dtype=np.int32)

    def encode_ordered(self, labels: Sequence[Any]) -> Ints:
        """Return the codes of `labels`, the ordered categories of one block. New labels get the next codes.

        Raises:
            DataError: `labels` are in another order than earlier labels, or have a new label and lack an earlier one.
        """
        n_known = len(self.labels)
        codes = self.encode(labels)
        in_order = codes[codes >= 0]
        is_longer = len(self.labels) > n_known
        if np.any(np.diff(in_order) <= 0) or (is_longer and len(in_order) < len(self.labels)):
            message = "its dictionaries list the ordered categories differently: give texts, and declare their order"
            raise DataError([Fault("", "order", message)])
        return codes


def column_from_array(name: str, values: Array) -> RawColumn:
    """Return a numpy array (n_rows,) as a column. Unless they are masked, integers are not copied."""
    values = np.ma.filled(values, np.datetime64("NaT")) if values.dtype.kind == "M" else values
    if isinstance(values, np.ma.MaskedArray) or values.dtype.kind == "m":
        return column_from_objects(name, values.astype("m8[us]" if values.dtype.kind == "m" else values.dtype).tolist())
    if values.dtype.kind == "b":
        return RawColumn(name, FeatureKind.BOOLEAN, values.astype(np.int8), labels=(False, True))
    if values.dtype.kind in "fiu":
        return RawColumn(name, FeatureKind.NUMERIC, values.astype(np.float64) if values.dtype.kind == "f" else values)
    unit = np.datetime_data(values.dtype)[0] if values.dtype.kind == "M" else ""
    if unit in TICKS_PER_SECOND:
        ticks = values.astype(f"M8[{unit}]").astype(np.int64)  # the unit may be a multiple, such as 25 s
        return column_from_ticks(name, ticks, TICKS_PER_SECOND[unit], absent=np.isnat(values))
    return column_from_objects(name, list(values) if unit else values.tolist())


def column_from_ticks(name: str, ticks: Longs, per_second: int, *, absent: Mask) -> RawColumn:
    """Return a column of instants, given in ticks since 1970-01-01 UTC; a second has `per_second` ticks."""
    seconds = np.where(absent, np.nan, seconds_from_ticks(ticks, per_second))
    is_finer = per_second > MICROSECONDS and np.any(ticks[~absent] % (per_second // MICROSECONDS))
    return RawColumn(name, FeatureKind.DATETIME, seconds, notices=(truncation_notice(name),) if is_finer else ())


def columns_from_matrix(matrix: Array) -> list[RawColumn]:
    """Copy an array of numbers (n_rows, n_columns) into columns x0, x1, …: float32, int64, uint64, else float64."""
    native = matrix.dtype.newbyteorder("=")
    values = np.empty(matrix.shape[::-1], native if native in (np.float32, np.int64, np.uint64) else np.float64)

    def copy(first: int) -> None:
        # Copy few rows at a time, so that they stay in the cache until all of their columns are written.
        for at in range(first, min(first + ROWS_OF_A_THREAD, len(matrix)), ROWS_AT_ONCE):
            values[:, at : at + ROWS_AT_ONCE] = matrix[at : at + ROWS_AT_ONCE].T

    parallel_map(copy, range(0, len(matrix), ROWS_OF_A_THREAD), n_cells=matrix.size)
    return [RawColumn(f"x{place}", FeatureKind.NUMERIC, column) for place, column in enumerate(values)]


def column_from_json(name: str, cells: Sequence[Any], *, as_labels: bool) -> RawColumn:
    """Return JSON values as a column; None and NaN are missing.

    Cells of other libraries' types are first converted to Python's types. If all cells that are not missing are finite
    numbers, they stay numbers, unless `as_labels` is true. If all are date objects, they become instants; else labels.
    """
    types = set(map(type, cells))
    notices: tuple[Notice, ...] = ()
    if not types <= JSON_TYPES:
        notices = finer_instants(name, cells)
        cells = list(map(_json_cell, cells))
        if all(isinstance(cell, date) for cell in cells if cell is not None):
            return replace(column_from_objects(name, cells), notices=notices)
        cells = [cell.isoformat() if isinstance(cell, date) else cell for cell in cells]
        types = set(map(type, cells))
    if not as_labels and types <= {int, float, type(None)}:
        try:
            values = np.array(cells, dtype=np.float64)  # NaN for None
        except OverflowError:
            values = np.array([np.inf])
        if not np.any(np.isinf(values)):
            return RawColumn(name, None, values)
    labels = cells if float not in types else [None if is_missing(cell) else cell for cell in cells]
    return replace(column_from_labels(name, labels), notices=notices)


def column_from_labels(name: str, cells: Iterable[Any], *, kind: FeatureKind | None = None) -> RawColumn:
    """Return cells as a column of labels; a cell of None is missing. `kind` is as in `RawColumn`."""
    codes = LabelCodes()
    return RawColumn(name, kind, codes.encode(cells), labels=codes.labels)


def column_from_objects(name: str, cells: Iterable[Any]) -> RawColumn:
    """Return Python objects as a column of their type; None and NaN are missing."""
    cells = list(cells)
    codes = LabelCodes()
    try:
        encoded = codes.encode(map(plain_cell, cells))
    except UnreadableError as error:
        raise UnreadableError(f"{pointer(name)}: {error}", error.column_type) from None
    column = replace(column_of_codes(name, encoded, codes.labels), notices=finer_instants(name, cells))
    are_decimals = {type(cell) for cell in cells if not is_missing(cell)} == {Decimal}
    return replace(column, kind=FeatureKind.NUMERIC) if are_decimals else column


def column_of_codes(name: str, codes: Array, labels: Sequence[Any]) -> RawColumn:
    """Return a column whose cells are given by codes (-1 = missing) and labels, which are results of `plain_cell`.

    If all labels are numbers, all are dates or all are booleans, the column has that kind. Otherwise it is nominal.
    """
    if not labels or not all(map(is_number, labels)):
        return column_of_categories(name, codes, labels, ordered=False)
    if any(isinstance(label, int) and abs(label) >= MAX_INTEGER for label in labels):  # doubles may round them
        return RawColumn(name, FeatureKind.NUMERIC, codes, labels=labels)
    numbers = [plain_number(label) for label in labels]  # None if not finite; refused later
    values = [math.inf if number is None else number for number in numbers]
    return RawColumn(name, FeatureKind.NUMERIC, np.array([*values, np.nan])[codes])


def column_of_categories(name: str, codes: Array, labels: Sequence[Any], *, ordered: bool) -> RawColumn:
    """Return a column of a categorical type. If all labels are dates and `ordered` is false, they become instants."""
    kind = FeatureKind.ORDINAL if ordered else FeatureKind.NOMINAL
    if labels and not ordered:
        if all(isinstance(label, date) for label in labels):
            seconds = np.array([*map(instant_seconds, labels), np.nan])
            return RawColumn(name, FeatureKind.DATETIME, seconds[codes])
        if all(isinstance(label, bool) for label in labels):
            kind = FeatureKind.BOOLEAN
    plain = tuple(label.isoformat() if isinstance(label, date) else label for label in labels)
    return RawColumn(name, kind, codes, labels=plain)


def plain_cell(cell: Any) -> Any:
    """Return a cell as Python's str, int, float, bool, date or datetime; None if it is missing.

    A finite decimal becomes text with all of its digits.

    Raises:
        UnreadableError: The cell is none of these, or a date of numpy outside the years 1 to 9999.
    """
    if is_missing(cell):
        return None
    plain = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, np.datetime64):
        plain = cell.astype("datetime64[us]").item()  # may overflow silently; beyond the year 9999 it is an integer
        is_finer = np.datetime_data(cell.dtype)[0] in TICKS_PER_MICROSECOND  # a finer unit cannot overflow
        if not isinstance(plain, datetime) or (
            not is_finer and np.datetime64(plain, "D") != cell.astype("datetime64[D]")
        ):
            raise UnreadableError("a date must be within the years 1 to 9999")
    if isinstance(plain, Decimal):
        return str(plain) if plain.is_finite() else float(plain)
    for kind, exact in EXACT_TYPES.items():
        if isinstance(plain, kind) and not isinstance(cell, np.timedelta64):
            return exact(plain)
    if isinstance(plain, datetime):
        return plain if type(plain) is datetime else datetime.combine(plain.date(), plain.timetz())
    if isinstance(plain, date):
        return plain
    # A check of scikit-learn expects the words "argument must be", "string" and "number".
    raise UnreadableError(f"argument must be a string, a number or a date, not {type(cell).__name__!r}")


def seconds_from_ticks(ticks: Longs, per_second: int) -> Floats:
    """Convert ticks to seconds, rounded down to microseconds; `instant_seconds` returns the same doubles.

    >>> seconds_from_ticks(np.array([9_025_300_800_000_001]), 10**6).tolist() == [9_025_300_800_000_001 / 10**6]
    True
    """
    if per_second > MICROSECONDS:
        ticks, per_second = ticks // (per_second // MICROSECONDS), MICROSECONDS
    seconds = ticks / per_second
    far = np.flatnonzero(np.abs(seconds) > MAX_INTEGER / per_second)
    seconds[far] = [each / per_second for each in ticks[far].tolist()]  # as float64, these ticks would be rounded first
    is_rounded_up = (seconds == END_OF_YEAR_9999) & (ticks < int(END_OF_YEAR_9999) * per_second)
    return np.where(is_rounded_up, LATEST_INSTANT, seconds)


def distinct_values(values: Array) -> tuple[Array, Longs]:
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
    """Return whether a cell, perhaps of numpy or pandas, is missing: None, NA, NaT or NaN."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    if isinstance(cell, Decimal):
        return cell.is_nan()  # also for a signaling NaN, which float() refuses
    return isinstance(cell, float | np.floating) and math.isnan(cell)


def _json_cell(cell: Any) -> Any:
    try:
        return plain_cell(cell)
    except UnreadableError:
        return UNREADABLE
