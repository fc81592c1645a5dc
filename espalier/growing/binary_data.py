"""The columns of the binary grower. Columns of few values are stored as one-byte codes; the others are sorted once."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
NO_CODES: Final = np.zeros((1, 0), np.uint32)
NO_CELLS: Final = np.zeros((1, 0), np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class RowData:
    """The targets and weights of the rows; see `BinaryColumns`. An array that is not read has one entry."""

    kind: int
    is_numeric: bool
    row_bits: int
    width: int
    n_rows: int
    row_class: Array
    row_value: Array
    row_weight: Array

    def take(self, places: Array) -> "RowData":
        """Return the data of some rows."""
        arrays = (self.row_class, self.row_value, self.row_weight)
        arrays_of_rows = (each if len(each) == 1 else each[places] for each in arrays)
        return RowData(self.kind, self.is_numeric, self.row_bits, self.width, len(places), *arrays_of_rows)

    def rows_of(self, entries: Array) -> Array:
        """Return the row number of each entry of an order: its lower `row_bits` bits, uint32 (entries)."""
        rows: Array = entries & np.uint32((1 << self.row_bits) - 1)
        return rows


def is_for_binary_grower(parameters: Any, data: TrainingData) -> bool:
    """Return whether the binary grower can grow the tree. The caller must exclude cut points and validation rows."""
    most_categories = 1 if parameters.nominal == c.ORDERED_BINARIES else 2  # it does not sort them by mean target
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
        and all(len(each.categories) <= most_categories for each in data.attributes if each.unordered)
        and data.is_complete
    )


def binary_columns(data: TrainingData, pool: ThreadPoolExecutor) -> BinaryColumns:
    """Return the columns, the target and the weights. Columns that `code_column` cannot code are sorted."""
    coded = list(pool.map(code_column, data.columns, [len(each.categories) for each in data.attributes]))
    sorted_attributes = [place for place, item in enumerate(coded) if item is None]
    orders = np.empty((len(sorted_attributes) + 1, data.n_rows), np.uint32)
    codes = np.empty((len(sorted_attributes), data.n_rows), np.uint32)
    orders[-1] = numbered_rows(data)

    def sort_one(at: int) -> None:
        sort_column(data.columns[sorted_attributes[at]], codes[at], orders[at])
        orders[at] = orders[-1][orders[at]]

    list(pool.map(sort_one, range(len(sorted_attributes))))
    cells = [item[0] for item in coded if item is not None]
    return binary_table(
        row_data(data),
        orders,
        codes=codes,
        sorted_attributes=sorted_attributes,
        cells=np.stack(cells, axis=1) if cells else NO_CELLS,
        n_codes={place: item[1] for place, item in enumerate(coded) if item is not None},
    )


def row_data(data: TrainingData) -> RowData:
    """Return the targets and weights of the rows for the binary grower."""
    kind = _kind_of_rows(data)
    is_numeric = data.n_classes == 0
    has_values = is_numeric or kind == b.WEIGHTED_PAIR
    return RowData(
        kind=kind,
        is_numeric=is_numeric,
        row_bits=row_bits_of(data.n_classes),
        width=2 if has_values else data.n_classes,
        n_rows=data.n_rows,
        row_class=np.zeros(1, np.uint8) if is_numeric or kind <= b.CLASSES else data.target.astype(np.uint8),
        row_value=data.target.astype(np.float64) if has_values else np.zeros(1),
        row_weight=np.array(data.weight) if kind >= b.WEIGHTED_PAIR else np.zeros(1),
    )


def binary_table(
    rows: RowData,
    orders: Array,
    *,
    codes: Array = NO_CODES,
    sorted_attributes: Sequence[int] = (),
    cells: Array = NO_CELLS,
    n_codes: Mapping[int, int] = {},
) -> BinaryColumns:
    """Return the `BinaryColumns` of some columns. `n_codes` has the number of codes of each coded attribute."""
    counts = np.array(list(n_codes.values()), np.int64)
    n_attributes = max([0, *sorted_attributes, *n_codes]) + 1
    return BinaryColumns(
        kind=rows.kind,
        is_numeric=rows.is_numeric,
        row_bits=rows.row_bits,
        orders=orders,
        codes=codes,
        cells=cells,
        first=(np.cumsum(counts) - counts) * rows.width,
        n_codes=counts,
        sorted_attribute=np.array(sorted_attributes, np.int64),
        coded_attribute=np.array(list(n_codes), np.int64),
        sorted_column=_inverse(sorted_attributes, n_attributes),
        coded_column=_inverse(list(n_codes), n_attributes),
        row_class=rows.row_class,
        row_value=rows.row_value,
        row_weight=rows.row_weight,
        width=rows.width,
    )


def _inverse(places: Sequence[int], n_attributes: int) -> Array:
    inverse = np.full(n_attributes, -1, np.int64)
    inverse[list(places)] = np.arange(len(places))
    return inverse


def _kind_of_rows(data: TrainingData) -> int:
    is_unit = bool(np.all(data.weight == 1.0) and np.all(data.class_scale == 1.0))
    if data.n_classes == 0:
        return b.NUMBERS if is_unit else b.WEIGHTED_PAIR
    if data.n_classes == 2:
        return b.TWO_CLASSES if is_unit else b.WEIGHTED_PAIR
    return b.CLASSES if is_unit else b.WEIGHTED_CLASSES


def row_bits_of(n_classes: int) -> int:
    """Return how many bits of an order's entry hold the row number. At least one other bit is left for the class."""
    # Row numbers are int32 elsewhere, and a kernel must not shift an entry by all of its bits.
    return ENTRY_BITS - max(1, (n_classes - 1).bit_length())


def numbered_rows(data: TrainingData) -> Array:
    """Return each row's entry in an order, uint32 (rows).

    The lower bits are the row number; `row_bits_of` returns how many there are. In a classification whose rows all have
    weight 1, the bits above are the row's class. Otherwise they are 0.
    """
    numbers = np.arange(data.n_rows, dtype=np.uint32)
    if _kind_of_rows(data) > b.CLASSES:
        return numbers
    return numbers | data.target.astype(np.uint32) << np.uint32(row_bits_of(data.n_classes))


def code_column(column: Array, n_categories: int) -> tuple[Array, int] | None:
    """Return the code of each row, uint8 (rows), and the number of codes. Numeric values are coded by rank.

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
