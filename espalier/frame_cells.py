"""Cells of other libraries' tables, made plain."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.processors import in_threads

__all__ = [
    "float_or_infinite",
    "instant_seconds",
    "is_missing",
    "is_number",
    "plain_cell",
    "seconds_of",
    "transposed",
]

MICROSECONDS: Final = 1e6
"""In a second."""
ROWS_AT_ONCE: Final = 2_048
ROWS_OF_A_PART: Final = 32 * ROWS_AT_ONCE


def plain_cell(cell: Any) -> Any:
    """Give a cell as text, a number, true, false or a date; numpy's own and decimals become Python's."""
    plain = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(plain, Decimal):
        return float(plain)
    if isinstance(plain, bytes | Mapping) or not isinstance(plain, str | int | float | date):
        raise TypeError(f"argument must be a string, a number or a date, not {type(cell).__name__!r}")
    return plain


def is_missing(cell: Any) -> bool:
    """Say whether a cell of another library stands for a missing value: None, NA, NaT, NaN."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    return isinstance(cell, float | np.floating) and math.isnan(cell)


def is_number(label: object) -> bool:
    """Say whether a label is a number; true and false are none."""
    return isinstance(label, int | float) and not isinstance(label, bool)


def float_or_infinite(label: Any) -> float:
    """Give a number as float, infinity where it is too large for one."""
    try:
        return float(label)
    except OverflowError:  # refused later with every other number that is not finite
        return math.inf


def instant_seconds(value: date) -> float:
    """Give seconds since 1970-01-01 UTC; without an offset a time is taken as UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def seconds_of(instants: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Give seconds since 1970-01-01 of a datetime64 array, NaN for NaT."""
    micros = instants.astype("datetime64[us]")
    return np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / MICROSECONDS)


def transposed(matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64] | npt.NDArray[np.float32]:
    """Give an array of numbers (rows, columns) as (columns, rows) of its own: float32 if it is that, else float64."""
    values = np.empty(matrix.shape[::-1], np.float32 if matrix.dtype == np.float32 else np.float64)

    def write(first: int) -> None:
        # A few rows at a time, whose lines stay in the cache until the last of their columns is written.
        for at in range(first, min(first + ROWS_OF_A_PART, len(matrix)), ROWS_AT_ONCE):
            values[:, at : at + ROWS_AT_ONCE] = matrix[at : at + ROWS_AT_ONCE].T

    starts = range(0, len(matrix), ROWS_OF_A_PART)
    if len(starts) > 1:
        in_threads(write, starts)
    else:
        write(0)
    return values
