"""Columns of a record as bytes, found quickly: somebody waits for the answer that they belong to.

    codes     as `service.cell_packing` has them
    single    numbers that single precision holds all: 4 bytes a cell
    decimals  as `service.cell_packing` has them: what is written with few digits
    others    8 bytes a cell: float64

What a column comes back as is what it was, bit by bit; NaN is NaN.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from service.cell_packing import PackedColumn, pack_column, packed_size, unpack_column

__all__ = ["pack_arrays", "packed_size", "unpack_array"]

Column = npt.NDArray[Any]

SINGLE_BYTES: Final = 4
SINGLE: Final = {"width": SINGLE_BYTES, "single": True}
AS_THEY_ARE: Final = {"width": 8}
LOOKED_AT: Final = 4
MOST_DIGITS: Final = 15
"""Of a decimal that somebody wrote; more are what a computation leaves."""


def pack_arrays(columns: Sequence[Column]) -> Iterator[PackedColumn]:
    """Pack columns, int32 codes (-1 for missing) or float64 numbers (NaN for missing), all of (n_rows,)."""
    known = [column for column in columns if column.dtype != np.int32]
    numbers = np.array(known, np.float64).reshape(len(known), len(columns[0]))
    with np.errstate(over="ignore", under="ignore"):
        singles = numbers.astype("<f4")
    are_held = (singles.astype(np.float64).view(np.int64) == numbers.view(np.int64)).all(axis=-1)
    are_whole = (np.rint(singles[:, :LOOKED_AT]) == singles[:, :LOOKED_AT]).all(axis=-1)
    found = zip(singles, are_held.tolist(), are_whole.tolist(), strict=True)
    for column in columns:
        yield pack_column(column) if column.dtype == np.int32 else _packed(column, *next(found))


def _packed(numbers: Column, single: Column, is_held: bool, is_whole: bool) -> PackedColumn:  # noqa: FBT001 - of two kinds
    """Pack numbers; `is_held`: they are those in single precision; `is_whole`: they may be whole numbers."""
    if is_held and not is_whole:
        return PackedColumn(SINGLE, (np.ascontiguousarray(single),))
    if not is_held and _is_long(numbers):
        return PackedColumn(AS_THEY_ARE, (np.ascontiguousarray(numbers, "<f8"),))
    packed = pack_column(numbers)
    is_larger = packed_size(packed.form, len(numbers)) > SINGLE_BYTES * len(numbers)
    return PackedColumn(SINGLE, (np.ascontiguousarray(single),)) if is_held and is_larger else packed


def unpack_array(form: Mapping[str, Any], content: memoryview, out: Column) -> None:
    """Unpack a column into `out`: (n_rows,) int32 for codes, float64 for numbers."""
    if "single" in form:
        out[:] = np.frombuffer(content, "<f4")
    else:
        unpack_column(form, content, out)


def _is_long(numbers: Column) -> bool:
    """Whether some number has more digits than a decimal that somebody wrote: a look at a few of them."""
    looked_at = numbers[:: max(1, len(numbers) // LOOKED_AT)].tolist()
    return any(_n_digits(number) > MOST_DIGITS for number in looked_at)


def _n_digits(number: float) -> int:
    return len(repr(abs(number)).partition("e")[0].replace(".", "").strip("0"))
