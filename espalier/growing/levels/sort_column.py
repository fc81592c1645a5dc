"""Sort a column that stays on disk. Its values are divided into ranges, which are sorted one after another in memory.

::

    count   upper 16 bits of all keys     →  ranges; a range with too many rows is divided by the next 16 bits
    sort    rows of each range, by value  →  order, distinct values, and the rank of each row of the range
    merge   ranks of all ranges, by row   →  codes

After four counts, a range that still has too many rows has a single value, so its rows need not be sorted.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from espalier.arrays import Array
from espalier.growing import encode
from espalier.growing.levels.work_files import ArrayStore

BYTES_A_ROW: Final = 80
"""Bytes of memory per row of a range while it is sorted: 63 measured, and a reserve."""
ROWS_AT_ONCE: Final = 1 << 18
DIGIT_BITS: Final = 16
SIGN: Final = np.uint64(1 << 63)


class Range(NamedTuple):
    """The values whose keys are in ``start:stop``; `n_rows` rows have such a value."""

    start: int
    stop: int
    n_rows: int


def sort_column(
    column: Array,
    place: int,
    store: ArrayStore,
    *,
    max_rows: int,
    pack: Callable[[Array], Array] = lambda rows: rows,
    has_values: bool = True,
) -> None:
    """Write codes, order and distinct values of a column to the store.

    The codes, int32 (n), are the ranks of the values, or -1 for missing values. The order, uint32 (n), lists the rows
    by ascending value; rows of equal values ascend, and rows of missing values come last. The distinct values ascend.

    Args:
        column: float64 or float32 (n); NaN is missing.
        place: Number of the column. The names of the files end with it.
        store: The files are written to it.
        max_rows: Maximum number of rows that are sorted at a time.
        pack: Converts rows to entries of the order, uint32.
        has_values: Whether the distinct values, float64, are written. If not, their file is empty.
    """
    ranges = list(_ranges(column, max_rows))
    names = [f"ranks-{number}-{place}" for number in range(len(ranges))] if len(ranges) > 1 else [f"codes-{place}"]
    n_distinct = 0
    with store.writer(f"order-0-{place}") as write_order, store.writer(f"value-{place}") as write_values:
        for each, name in zip(ranges, names, strict=True):
            with store.writer(name) as write_ranks:
                sort = _sort_range if each.n_rows <= max_rows else _copy_range
                for rows, ranks, distinct in sort(column, each, n_distinct):
                    write_order(pack(rows))
                    write_ranks(ranks)
                    n_distinct += len(distinct)
                    if has_values:
                        write_values(distinct)
    if len(ranges) > 1:
        _merge(column, ranges, names, store, f"codes-{place}")


def _keys(values: Array) -> Array:
    """Return keys, uint64 (n), that are ordered like the float64 values. A missing value has the largest key."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    keys = np.where(bits >= SIGN, ~bits, bits | SIGN)
    keys[np.isnan(values)] = np.iinfo(np.uint64).max
    return keys


def _blocks(column: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield (number of the first row, values as float64, keys) for each block of a column."""
    for first in range(0, len(column), ROWS_AT_ONCE):
        values = column[first : first + ROWS_AT_ONCE].astype(np.float64)
        yield first, values, _keys(values)


def _ranges(column: Array, max_rows: int, start: int = 0, n_bits: int = 64) -> Iterator[Range]:
    """Yield ascending ranges of the keys that agree with `start` in all bits above the lowest `n_bits`.

    A range has at most `max_rows` rows, or a single key.
    """
    stop = start + (1 << n_bits)
    if n_bits == 64 and len(column) <= max_rows:
        yield Range(start, stop, len(column))
        return
    shift = n_bits - DIGIT_BITS
    counts = np.zeros(1 << DIGIT_BITS, np.int64)
    for _, _, keys in _blocks(column):
        digits = keys >> np.uint64(shift)
        if n_bits < 64:
            digits = digits[keys >> np.uint64(n_bits) == start >> n_bits] & np.uint64((1 << DIGIT_BITS) - 1)
        counts += np.bincount(digits.astype(np.int64), minlength=len(counts))
    first, n_rows = start, 0
    for digit in np.flatnonzero(counts).tolist():
        here, count = start + (digit << shift), int(counts[digit])
        if n_rows and n_rows + count > max_rows:
            yield Range(first, here, n_rows)
            first, n_rows = here, 0
        if count <= max_rows:
            n_rows += count
            continue
        first = here + (1 << shift)
        yield from _ranges(column, max_rows, here, shift) if shift else [Range(here, first, count)]
    if n_rows:
        yield Range(first, stop, n_rows)


def _rows_of(column: Array, wanted: Range) -> Iterator[tuple[Array, Array]]:
    """Yield (rows of a range, uint32 and ascending; their values) for each block of a column."""
    for first, values, keys in _blocks(column):
        own = np.flatnonzero((keys >= wanted.start) & (keys <= wanted.stop - 1))
        yield (own + first).astype(np.uint32), values[own]


def _sort_range(column: Array, wanted: Range, n_before: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield (rows of a range by value, ranks of the values by row, distinct values). Ranks start at `n_before`."""
    rows, values, at = np.empty(wanted.n_rows, np.uint32), np.empty(wanted.n_rows), 0
    for some, own in _rows_of(column, wanted):
        rows[at : at + len(some)], values[at : at + len(some)] = some, own
        at += len(some)
    is_known = ~np.isnan(values)
    missing, known, values = rows[~is_known], rows[is_known], values[is_known]
    del rows
    order = np.empty(len(known), np.uint32)
    if len(known):
        codes = np.empty(len(known), np.uint32)
        encode.sort_column(values, codes, order)
        del codes
    sorted_ranks, distinct = encode.rank_sorted(values[order])
    by_row = np.empty(len(known), np.int32)
    by_row[order] = sorted_ranks + np.int32(n_before)
    ranks = np.full(wanted.n_rows, -1, np.int32)
    ranks[is_known] = by_row
    yield np.concatenate([known[order], missing]), ranks, distinct


def _copy_range(column: Array, wanted: Range, n_before: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the same as `_sort_range`, but block by block, for a range of a single value."""
    n_distinct = 0
    for rows, values in _rows_of(column, wanted):
        is_missing = len(values) > 0 and bool(np.isnan(values[0]))
        distinct = values[: 0 if is_missing or n_distinct else 1]
        n_distinct += len(distinct)
        yield rows, np.full(len(rows), -1 if is_missing else n_before, np.int32), distinct


def _merge(column: Array, ranges: list[Range], names: list[str], store: ArrayStore, name: str) -> None:
    """Write the ranks of all ranges in the order of the rows, and remove the ranges' files."""
    ranks, at = [store.read(each, np.int32) for each in names], [0] * len(ranges)
    starts = np.array([each.start for each in ranges[1:]], np.uint64)
    with store.writer(name) as write:
        for _, _, keys in _blocks(column):
            codes, range_of = np.empty(len(keys), np.int32), np.searchsorted(starts, keys, side="right")
            for number, own in enumerate(ranks):
                places = np.flatnonzero(range_of == number)
                codes[places] = own[at[number] : at[number] + len(places)]
                at[number] += len(places)
            write(codes)
    for each in names:
        store.remove(each)
