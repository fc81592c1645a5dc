"""The columns of the binary grower. Columns of few values are stored as one-byte codes, the others are sorted once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from espalier.arrays import Array
from espalier.growing.encode import sort_column
from espalier.growing.kernels import constants as c, sort
from espalier.growing.kernels.binary import constants as b
from espalier.growing.kernels.binary.arguments import BinaryColumns
from espalier.growing.training_data import TrainingData

FIRST_ROWS: Final = 4096
MIN_LONG_ROWS: Final = 1 << 16
ENTRY_BITS: Final = 32
CRITERIA: Final = frozenset({c.GINI, c.SQUARED_ERROR})


def is_for_binary_grower(parameters: Any, data: TrainingData) -> bool:
    """Return whether the binary grower supports the parameters and data, apart from cut points and validation rows."""
    return (
        parameters.criterion in CRITERIA
        and parameters.numeric == c.BEST
        and not (parameters.window or parameters.mdl_correction or parameters.average_gain_guard)
        and not parameters.leaf_weight_of_winner
        and parameters.cost_function == c.NO_COSTS
        and parameters.max_leaf_nodes < 0
        and np.isnan(parameters.chi_square_alpha)
        and parameters.missing != c.SURROGATE
        and parameters.n_classes <= b.MAX_CLASSES
        and data.n_rows <= 1 << row_bits_of(data.n_classes)
        and all(len(feature.categories) <= 2 for feature in data.attributes if feature.unordered)
        and data.is_complete
    )


def binary_columns(data: TrainingData, pool: ThreadPoolExecutor) -> BinaryColumns:
    """Return the columns, the target and the weights. Columns that `code_column` cannot code are sorted."""
    n_attributes = len(data.columns)
    kind = kind_of_rows(data.n_classes, unit=bool(np.all(data.weight == 1.0)))
    is_numeric, is_weighted = data.n_classes == 0, kind >= b.WEIGHTED_PAIR
    row_class = np.zeros(1, np.uint8) if is_numeric else data.target.astype(np.uint8)
    packed_class = row_class if kind <= b.CLASSES else np.zeros(0, np.uint8)
    has_values = is_numeric or kind == b.WEIGHTED_PAIR
    coded = list(pool.map(code_column, data.columns, [len(each.categories) for each in data.attributes]))
    coded_attributes = [place for place, item in enumerate(coded) if item is not None]
    sorted_attributes = [place for place, item in enumerate(coded) if item is None]
    orders = np.empty((len(sorted_attributes) + 1, data.n_rows), np.uint32)
    codes = np.empty((len(sorted_attributes), data.n_rows), np.uint32)
    row_bits = row_bits_of(data.n_classes)
    orders[-1] = numbered_rows(packed_class, data.n_rows, row_bits)

    def sort_one(at: int) -> None:
        sort_column(data.columns[sorted_attributes[at]], codes[at], orders[at])
        orders[at] = orders[-1][orders[at]]

    list(pool.map(sort_one, range(len(sorted_attributes))))
    cells = [item[0] for item in coded if item is not None]
    n_codes = np.array([item[1] for item in coded if item is not None], np.int64)
    width = 2 if has_values else data.n_classes
    return BinaryColumns(
        kind=kind,
        is_numeric=is_numeric,
        row_bits=row_bits,
        orders=orders,
        codes=codes,
        cells=np.stack(cells, axis=1) if cells else np.empty((data.n_rows, 0), np.uint8),
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


def kind_of_rows(n_classes: int, *, unit: bool) -> int:
    """Return the kind of row statistics, such as TWO_CLASSES. `unit` means that every row has weight 1."""
    if n_classes == 0:
        return b.NUMBERS if unit else b.WEIGHTED_PAIR
    if n_classes == 2:
        return b.TWO_CLASSES if unit else b.WEIGHTED_PAIR
    return b.CLASSES if unit else b.WEIGHTED_CLASSES


def row_bits_of(n_classes: int) -> int:
    """Return how many bits of an order's entry hold the row number. At least one other bit is left for the class."""
    # Row numbers are int32 elsewhere, and a kernel must not shift an entry by all of its bits.
    return ENTRY_BITS - max(1, (n_classes - 1).bit_length())


def numbered_rows(row_class: Array, n_rows: int, row_bits: int) -> Array:
    """Return each row's entry in an order, uint32 (rows).

    The lower `row_bits` bits are the row number. The bits above are the row's class, or 0 if `row_class` is empty.
    """
    numbers = np.arange(n_rows, dtype=np.uint32)
    return numbers | row_class.astype(np.uint32) << np.uint32(row_bits) if len(row_class) else numbers


def code_column(column: Array, n_categories: int) -> tuple[Array, int] | None:
    """Return the code of each row, uint8 (rows), and the number of codes. The code of a number is its rank.

    Return None if there are more than `MAX_CODES` categories in the schema or distinct values in the column.
    """
    if column.dtype == np.int32:
        return None if n_categories > b.MAX_CODES else (column.astype(np.uint8), n_categories)
    # The first rows of a long column are tried alone. If they have too many values, the others are not copied.
    for n_rows in (FIRST_ROWS, len(column)) if len(column) > MIN_LONG_ROWS else (len(column),):
        cells = np.empty(n_rows, np.uint8)
        n_distinct = sort.code_column(np.array(column[:n_rows], np.float64), cells, b.MAX_CODES)
        if n_distinct < 0:
            return None
    return cells, n_distinct


def _inverse(places: Sequence[int], n_attributes: int) -> Array:
    inverse = np.full(n_attributes, -1, np.int64)
    inverse[list(places)] = np.arange(len(places))
    return inverse
