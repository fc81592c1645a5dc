"""The columns as the fast lane's kernels take them: few values coded, many values sorted, once a training."""

import queue
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.kernels import codes as c
from espalier.kernels import encode, packed_sort, scans
from espalier.memory import Lines, large_array, lines
from espalier.processors import n_threads

__all__ = ["FastTable", "can_grow_fast", "fast_table"]

Array = npt.NDArray[Any]

FIRST_ROWS: Final = 4096
ROWS_OF_A_BLOCK: Final = 1 << 16
CRITERIA: Final = frozenset({c.GINI, c.SQUARED_ERROR})


@dataclass(frozen=True, slots=True)
class FastTable:
    """Everything about the columns that the fast lane's kernels take.

    Attributes:
        kind: What a row adds (scans.TWO_CLASSES …). numeric: 1 where the target is a number.
        lines: The orders, uint32 (sorted columns + 1, n). codes: uint32 (sorted columns, n), ordered as the values are.
        cells: uint8 (n, coded columns); first, n_codes: int64 (coded columns), where their counts begin, how many.
        sorted_attribute, coded_attribute: int64, attribute of a column; sorted_column, coded_column: int64 (F), -1.
        rows_of: (class uint8 (n), value float64 (n), weight float64 (n)), each one entry where it is not looked at.
        target: float64 (n), for numbers.
    """

    kind: int
    numeric: int
    lines: Lines
    codes: Array
    cells: Array
    first: Array
    n_codes: Array
    sorted_attribute: Array
    coded_attribute: Array
    sorted_column: Array
    coded_column: Array
    rows_of: tuple[Array, Array, Array]
    target: Array

    @property
    def orders(self) -> Array:
        """The orders; what was given back of them is not to be looked at."""
        return self.lines.array


def can_grow_fast(rules: Any, n_categories: Sequence[int], n_rows: int) -> bool:
    """Whether the fast lane grows the same tree of complete columns as the general one: every split is a cut in two.

    n_categories: of the unordered attributes, 0 for the others.
    """
    return (
        rules.criterion in CRITERIA
        and rules.numeric == c.BEST
        and rules.window == rules.mdl_correction == rules.average_gain_guard == rules.leaf_weight_of_winner == 0
        and rules.cost_function == c.NO_COSTS
        and rules.max_leaf_nodes < 0
        and np.isnan(rules.chi_square_alpha)
        and rules.missing != c.SURROGATE
        and rules.n_classes <= scans.MOST_CLASSES
        and n_rows <= scans.MOST_ROWS
        and max(n_categories, default=0) <= 2
    )


def fast_table(
    rules: Any, columns: Sequence[Array], n_categories: Sequence[int], target: Array, weight: Array,
    pool: ThreadPoolExecutor,
) -> FastTable:  # fmt: skip
    """Code each column with few values, sort the others.

    columns: float64, float32 or int32 codes; n_categories: of the coded ones, else 0.
    """
    n_rows, n_attributes = len(weight), len(columns)
    unit = bool(np.all(weight == 1.0))
    numeric = int(rules.n_classes == 0)
    kind = _kind(rules.n_classes, unit=unit)
    row_class = np.zeros(1, np.uint8) if numeric else target.astype(np.uint8)
    class_bits = int(kind <= scans.CLASSES)
    numbers = target.astype(np.float64) if numeric or kind == scans.WEIGHTED_PAIR else target
    coded = _all_coded(columns, n_categories, pool)
    others = [place for place, item in enumerate(coded) if item is not None]
    places = [place for place, item in enumerate(coded) if item is None]
    orders = lines(len(places) + 1, n_rows, np.uint32)
    codes = np.empty((len(places), n_rows), np.uint32)
    sorting = _sorting(columns, places, row_class, class_bits, codes, orders.array, pool)
    cells = _cells([item[0] for item in coded if item is not None], n_rows, pool)
    for each in sorting:
        each.result()
    encode.number_rows(row_class, class_bits, orders.array[-1])
    n_codes = np.array([item[1] for item in coded if item is not None], np.int64)
    width = 2 if numeric or kind == scans.WEIGHTED_PAIR else rules.n_classes
    return FastTable(
        kind=kind,
        numeric=numeric,
        lines=orders,
        codes=codes,
        cells=cells,
        first=(np.cumsum(n_codes) - n_codes) * width,
        n_codes=n_codes,
        sorted_attribute=np.array(places, np.int64),
        coded_attribute=np.array(others, np.int64),
        sorted_column=_inverse(places, n_attributes),
        coded_column=_inverse(others, n_attributes),
        rows_of=_rows_of(kind, row_class, numbers, weight),
        target=numbers if numeric else np.zeros(1),
    )


def _sorting(
    columns: Sequence[Array], places: Sequence[int], row_class: Array, class_bits: int, codes: Array, orders: Array,
    pool: ThreadPoolExecutor,
) -> list[Future[None]]:  # fmt: skip
    """Begin to sort the columns at `places`; written are their codes, and their orders."""
    n_rows = codes.shape[1]
    scratch: queue.SimpleQueue[tuple[Array, Array]] = queue.SimpleQueue()
    for _ in range(min(n_threads(), len(places))):
        scratch.put((large_array(n_rows, np.uint64), large_array(n_rows, np.uint64)))

    def sort(at: int) -> None:
        buffers = scratch.get()
        _sort(columns[places[at]], row_class, class_bits, codes[at], orders[at], *buffers)
        scratch.put(buffers)

    return [pool.submit(sort, at) for at in range(len(places))]


def _cells(coded: Sequence[Array], n_rows: int, pool: ThreadPoolExecutor) -> Array:
    """Lay the codes of coded columns row by row, uint8 (n_rows, columns)."""
    cells = np.empty((n_rows, len(coded)), np.uint8)
    if coded:
        kept = np.stack(coded)
        blocks = range(0, n_rows, ROWS_OF_A_BLOCK)
        shared_out = pool.map if len(blocks) > 1 else map
        list(shared_out(lambda at: encode.spread_cells(kept, cells, at, min(n_rows, at + ROWS_OF_A_BLOCK)), blocks))
    return cells


def _kind(n_classes: int, *, unit: bool) -> int:
    if n_classes == 0:
        return scans.NUMBERS if unit else scans.WEIGHTED_PAIR
    if n_classes == 2:
        return scans.TWO_CLASSES if unit else scans.WEIGHTED_PAIR
    return scans.CLASSES if unit else scans.WEIGHTED_CLASSES


def _rows_of(kind: int, row_class: Array, numbers: Array, weight: Array) -> tuple[Array, Array, Array]:
    nothing = np.zeros(1)
    weights = np.array(weight) if kind >= scans.WEIGHTED_PAIR else nothing
    return row_class, numbers if kind in (scans.NUMBERS, scans.WEIGHTED_PAIR) else nothing, weights


def _all_coded(
    columns: Sequence[Array], n_categories: Sequence[int], pool: ThreadPoolExecutor
) -> list[tuple[Array, int] | None]:
    """Do `_coded` of each column; short ones a few at a time, since to hand one over would take as long."""
    n_columns = len(columns)
    at_once = -(-n_columns // n_threads()) if n_columns and len(columns[0]) <= ROWS_OF_A_BLOCK else 1

    def code(first: int) -> list[tuple[Array, int] | None]:
        places = range(first, min(first + at_once, n_columns))
        return [_coded(columns[place], n_categories[place]) for place in places]

    return [item for part in pool.map(code, range(0, n_columns, at_once)) for item in part]


def _coded(column: Array, n_categories: int) -> tuple[Array, int] | None:
    """Give (ranks as bytes, how many) of a column with few values; None where there are more."""
    if column.dtype == np.int32:
        return None if n_categories > scans.MOST_CODES else (column.astype(np.uint8), n_categories)
    distinct = np.empty(scans.MOST_CODES)
    # Of a long column the first rows say it mostly, before all are copied.
    for n_rows in (FIRST_ROWS, len(column)) if len(column) > ROWS_OF_A_BLOCK else (len(column),):
        cells = np.empty(n_rows, np.uint8)
        n_distinct = encode.code_column(np.array(column[:n_rows], np.float64), cells, distinct, scans.MOST_CODES)
        if n_distinct < 0:
            return None
    return cells, n_distinct


def _sort(
    column: Array, row_class: Array, class_bits: int, codes: Array, order: Array, near: Array, far: Array
) -> None:
    """Sort one column into `order` and `codes`. near, far: uint64 (n), scratch."""
    counts = np.empty((packed_sort.N_DIGITS, 1 << packed_sort.DIGIT_BITS), np.uint32)
    values = far.view(np.float64)  # few columns' values are looked at once their codes are written
    values[:] = column
    n_bits = packed_sort.write_codes(values, codes, counts)
    if n_bits > packed_sort.CODE_BITS:
        values = column.astype(np.float64)
    if packed_sort.sort_packed(values, n_bits, row_class, class_bits, codes, counts, order, near, far):
        return
    n_rows = len(values)
    ascending, ranks = np.empty(n_rows, np.int32), np.empty(n_rows, np.int32)
    n_known = encode.sort_column(values, ascending, near, far, np.empty(n_rows, np.int32))
    encode.rank_column(values, ascending, n_known, ranks, near.view(np.float64), np.empty(0, np.uint8))
    codes[:] = ranks
    order[:] = ascending
    if class_bits:
        order |= row_class[ascending].astype(np.uint32) << np.uint32(24)


def _inverse(places: Sequence[int], n_attributes: int) -> Array:
    inverse = np.full(n_attributes, -1, np.int64)
    inverse[list(places)] = np.arange(len(places))
    return inverse
