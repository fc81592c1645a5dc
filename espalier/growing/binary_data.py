"""Columns of the binary grower: once per training, those with few values are coded and the others are sorted."""

import queue
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from espalier.arrays import Array
from espalier.growing.encode import rank_sorted
from espalier.growing.kernels import constants as c, sort
from espalier.growing.kernels.binary import constants as b
from espalier.growing.kernels.binary.arguments import BinaryColumns
from espalier.growing.training_data import TrainingData
from espalier.threads import large_array

FIRST_ROWS: Final = 4096
ROWS_OF_A_BLOCK: Final = 1 << 16
ENTRY_BITS: Final = 32
CRITERIA: Final = frozenset({c.GINI, c.SQUARED_ERROR})


def is_for_binary_grower(parameters: Any, data: TrainingData) -> bool:
    """Return whether the binary grower grows the same tree as the general one: complete data, two branches per test."""
    return (
        parameters.criterion in CRITERIA
        and parameters.numeric == c.BEST
        and parameters.window
        == parameters.mdl_correction
        == parameters.average_gain_guard
        == parameters.leaf_weight_of_winner
        == 0
        and parameters.cost_function == c.NO_COSTS
        and parameters.max_leaf_nodes < 0
        and np.isnan(parameters.chi_square_alpha)
        and parameters.missing != c.SURROGATE
        and parameters.n_classes <= b.MAX_CLASSES
        and data.n_rows <= 1 << row_bits_of(data.n_classes)
        and all(len(feature.categories) <= 2 for feature in data.attributes if feature.unordered)
        and data.is_complete
    )


def binary_columns(data: TrainingData, pool: ThreadPoolExecutor, n_threads: int) -> BinaryColumns:
    """Code the columns with few values, and sort the others."""
    n_attributes = len(data.columns)
    kind = kind_of_rows(data.n_classes, unit=bool(np.all(data.weight == 1.0)))
    is_numeric, is_weighted = data.n_classes == 0, kind >= b.WEIGHTED_PAIR
    row_class = np.zeros(1, np.uint8) if is_numeric else data.target.astype(np.uint8)
    packed_class = row_class if kind <= b.CLASSES else np.zeros(0, np.uint8)
    has_values = is_numeric or kind == b.WEIGHTED_PAIR
    coded = _coded_columns(data, pool, n_threads)
    coded_attributes = [place for place, item in enumerate(coded) if item is not None]
    sorted_attributes = [place for place, item in enumerate(coded) if item is None]
    orders = large_array((len(sorted_attributes) + 1) * data.n_rows, np.uint32).reshape(-1, data.n_rows)
    codes = np.empty((len(sorted_attributes), data.n_rows), np.uint32)
    columns = [data.columns[place] for place in sorted_attributes]
    row_bits = row_bits_of(data.n_classes)
    sorting = _begin_sorting(columns, packed_class, row_bits, codes, orders, pool, n_threads)
    cells = _cells([item[0] for item in coded if item is not None], data.n_rows, pool)
    for each in sorting:
        each.result()
    sort.number_rows(packed_class, row_bits, orders[-1])
    n_codes = np.array([item[1] for item in coded if item is not None], np.int64)
    width = 2 if has_values else data.n_classes
    return BinaryColumns(
        kind=kind,
        is_numeric=is_numeric,
        row_bits=row_bits,
        orders=orders,
        codes=codes,
        cells=cells,
        first=(np.cumsum(n_codes) - n_codes) * width,
        n_codes=n_codes,
        sorted_attribute=np.array(sorted_attributes, np.int64),
        coded_attribute=np.array(coded_attributes, np.int64),
        sorted_column=_inverse(sorted_attributes, n_attributes),
        coded_column=_inverse(coded_attributes, n_attributes),
        row_class=row_class,
        row_value=data.target.astype(np.float64) if has_values else np.zeros(1),
        row_weight=np.array(data.weight) if is_weighted else np.zeros(1),
        width=width,
    )


def _begin_sorting(  # noqa: PLR0917 - arrays that are read and written
    columns: Sequence[Array],
    row_class: Array,
    row_bits: int,
    codes: Array,
    orders: Array,
    pool: ThreadPoolExecutor,
    n_threads: int,
) -> list[Future[None]]:
    n_rows = codes.shape[1]
    scratch: queue.SimpleQueue[tuple[Array, Array]] = queue.SimpleQueue()
    for _ in range(min(n_threads, len(columns))):
        scratch.put((large_array(n_rows, np.uint64), large_array(n_rows, np.uint64)))

    def sort_one(at: int) -> None:
        buffers = scratch.get()
        sort_column(columns[at], row_class, row_bits, codes[at], orders[at], *buffers)
        scratch.put(buffers)

    return [pool.submit(sort_one, at) for at in range(len(columns))]


def _cells(coded: Sequence[Array], n_rows: int, pool: ThreadPoolExecutor) -> Array:
    """Return the codes of coded columns row by row, uint8 (n_rows, columns)."""
    cells = np.empty((n_rows, len(coded)), np.uint8)
    if coded:
        columns = np.stack(coded)
        blocks = range(0, n_rows, ROWS_OF_A_BLOCK)
        run = pool.map if len(blocks) > 1 else map
        list(run(lambda at: sort.spread_cells(columns, cells, at, min(n_rows, at + ROWS_OF_A_BLOCK)), blocks))
    return cells


def kind_of_rows(n_classes: int, *, unit: bool) -> int:
    """Return the kind of row statistics (TWO_CLASSES …). `unit`: every row has weight 1."""
    if n_classes == 0:
        return b.NUMBERS if unit else b.WEIGHTED_PAIR
    if n_classes == 2:
        return b.TWO_CLASSES if unit else b.WEIGHTED_PAIR
    return b.CLASSES if unit else b.WEIGHTED_CLASSES


def row_bits_of(n_classes: int) -> int:
    """Return how many bits of an order's entry hold the row number; the others, at least one, hold the class."""
    # Row numbers are int32 elsewhere, and a kernel must not shift an entry by all of its bits.
    return ENTRY_BITS - max(1, (n_classes - 1).bit_length())


def _coded_columns(data: TrainingData, pool: ThreadPoolExecutor, n_threads: int) -> list[tuple[Array, int] | None]:
    """Return `code_column` of each column, short columns in groups: submitting one takes as long as coding it."""
    n_columns = len(data.columns)
    at_once = -(-n_columns // n_threads) if data.n_rows <= ROWS_OF_A_BLOCK else 1

    def code(first: int) -> list[tuple[Array, int] | None]:
        places = range(first, min(first + at_once, n_columns))
        return [code_column(data.columns[place], len(data.attributes[place].categories)) for place in places]

    return [item for part in pool.map(code, range(0, n_columns, max(1, at_once))) for item in part]


def code_column(column: Array, n_categories: int) -> tuple[Array, int] | None:
    """Return (ranks of the values, uint8 (n); number of distinct values), or None for a column with many values."""
    if column.dtype == np.int32:
        return None if n_categories > b.MAX_CODES else (column.astype(np.uint8), n_categories)
    distinct = np.empty(b.MAX_CODES)
    # The first rows of a long column usually have too many values already, before all rows are copied.
    for n_rows in (FIRST_ROWS, len(column)) if len(column) > ROWS_OF_A_BLOCK else (len(column),):
        cells = np.empty(n_rows, np.uint8)
        n_distinct = sort.code_column(np.array(column[:n_rows], np.float64), cells, distinct, b.MAX_CODES)
        if n_distinct < 0:
            return None
    return cells, n_distinct


def sort_column(  # noqa: PLR0917 - a kernel's buffers
    column: Array, row_class: Array, row_bits: int, codes: Array, order: Array, near: Array, far: Array
) -> None:
    """Write the codes of a column's rows and their order, both uint32 (n). near, far: uint64 (n), scratch."""
    counts = np.empty((b.N_DIGITS, 1 << b.DIGIT_BITS), np.uint32)
    values = far.view(np.float64)  # values are rarely read again once their codes are written
    values[:] = column
    n_bits = sort.write_codes(far, codes, counts)
    if n_bits > b.CODE_BITS:
        values = column.astype(np.float64)
    if sort.sort_packed(values, n_bits, row_class, row_bits, codes, counts, order, near, far):
        return
    ascending = np.argsort(values, kind="stable")
    codes[ascending] = rank_sorted(values[ascending])[0]
    order[:] = ascending
    if len(row_class):
        order |= row_class[ascending].astype(np.uint32) << np.uint32(row_bits)


def _inverse(places: Sequence[int], n_attributes: int) -> Array:
    inverse = np.full(n_attributes, -1, np.int64)
    inverse[list(places)] = np.arange(len(places))
    return inverse
