"""The columns as the fast lane's kernels take them: few values coded, many values sorted, once a training."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.kernels import codes as c
from espalier.kernels import encode, grow_binary

__all__ = ["FastTable", "can_grow_fast", "fast_table", "n_threads"]

Array = npt.NDArray[Any]

CRITERIA: Final = frozenset({c.GINI, c.SQUARED_ERROR})


@dataclass(frozen=True, slots=True)
class FastTable:
    """Everything about the columns that the fast lane's kernels take.

    Attributes:
        kind: What a row adds (grow_binary.TWO_CLASSES …). numeric: 1 where the target is a number.
        orders: uint32 (sorted columns + 1, n). codes: int32 (sorted columns, n).
        cells: uint8 (n, coded columns); first, n_codes: int64 (coded columns), where their counts begin, how many.
        value_start: int64 (F), value: float64: the values of each attribute's ranks.
        nominal: int64 (F): 1 where a code stands for a category.
        sorted_attribute, coded_attribute: int64, attribute of a column; sorted_column, coded_column: int64 (F), -1.
        rows_of: (class uint8 (n), value float64 (n), weight float64 (n)), each one entry where it is not looked at.
        target: float64 (n), for numbers.
    """

    kind: int
    numeric: int
    orders: Array
    codes: Array
    cells: Array
    first: Array
    n_codes: Array
    value_start: Array
    value: Array
    nominal: Array
    sorted_attribute: Array
    coded_attribute: Array
    sorted_column: Array
    coded_column: Array
    rows_of: tuple[Array, Array, Array]
    target: Array


def can_grow_fast(rules: Any, table_columns: Sequence[Array], n_categories: Sequence[int], weight: Array) -> bool:
    """Whether the fast lane grows the same tree as the general one: every split is a cut in two on complete columns.

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
        and rules.n_classes <= grow_binary.MOST_CLASSES
        and len(weight) <= grow_binary.MOST_ROWS
        and max(n_categories, default=0) <= 2
        and all(
            not bool(np.any(column < 0)) if column.dtype == np.int32 else not bool(np.any(np.isnan(column)))
            for column in table_columns
        )
    )


def n_threads() -> int:
    """Give the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fast_table(
    rules: Any, columns: Sequence[Array], n_categories: Sequence[int], nominal: Sequence[bool], target: Array,
    weight: Array,
) -> FastTable:  # fmt: skip
    """Code each column with few values, sort the others.

    columns: float64 or int32 codes; n_categories: of the coded ones, else 0.
    """
    n_rows, n_attributes = len(weight), len(columns)
    unit = bool(np.all(weight == 1.0))
    numeric = int(rules.n_classes == 0)
    kind = _kind(rules.n_classes, unit=unit)
    row_class = np.zeros(1, np.uint8) if numeric else target.astype(np.uint8)
    with ThreadPoolExecutor(n_threads()) as pool:
        coded = list(pool.map(lambda each: _coded(*each), zip(columns, n_categories, strict=True)))
        places = [place for place, item in enumerate(coded) if item is None]
        orders = np.empty((len(places) + 1, n_rows), np.uint32)
        codes = np.empty((len(places), n_rows), np.int32)
        class_bits = int(kind <= grow_binary.CLASSES)

        def sort(at: int) -> Array:
            return _sorted_column(columns[places[at]], n_categories[places[at]], orders[at], codes[at],
                                  row_class, class_bits)  # fmt: skip

        values_of_sorted = list(pool.map(sort, range(len(places))))
    encode.pack_order(np.arange(n_rows, dtype=np.int32), row_class, class_bits, orders[-1])
    others = [place for place, item in enumerate(coded) if item is not None]
    cells = np.empty((n_rows, len(others)), np.uint8)
    kept = [item for item in coded if item is not None]
    if kept:
        encode.spread_cells(np.stack([item[0] for item in kept]), cells)
    values: list[Array] = [np.zeros(0)] * n_attributes
    for place, value in zip(places, values_of_sorted, strict=True):
        values[place] = value
    for place, item in zip(others, kept, strict=True):
        values[place] = item[1]
    sizes = np.array([len(value) for value in values], np.int64)
    n_codes = sizes[others] if others else np.zeros(0, np.int64)
    width = 2 if numeric or kind == grow_binary.WEIGHTED_PAIR else rules.n_classes
    return FastTable(
        kind=kind,
        numeric=numeric,
        orders=orders,
        codes=codes,
        cells=cells,
        first=(np.cumsum(n_codes) - n_codes) * width,
        n_codes=n_codes,
        value_start=np.cumsum(sizes) - sizes,
        value=np.concatenate([*values, np.zeros(0)]),
        nominal=np.array(nominal, np.int64),
        sorted_attribute=np.array(places, np.int64),
        coded_attribute=np.array(others, np.int64),
        sorted_column=_inverse(places, n_attributes),
        coded_column=_inverse(others, n_attributes),
        rows_of=_rows_of(kind, row_class, target, weight),
        target=target.astype(np.float64) if numeric else np.zeros(1),
    )


def _kind(n_classes: int, *, unit: bool) -> int:
    if n_classes == 0:
        return grow_binary.NUMBERS if unit else grow_binary.WEIGHTED_PAIR
    if n_classes == 2:
        return grow_binary.TWO_CLASSES if unit else grow_binary.WEIGHTED_PAIR
    return grow_binary.CLASSES if unit else grow_binary.WEIGHTED_CLASSES


def _rows_of(kind: int, row_class: Array, target: Array, weight: Array) -> tuple[Array, Array, Array]:
    nothing = np.zeros(1)
    values = target.astype(np.float64) if kind in (grow_binary.NUMBERS, grow_binary.WEIGHTED_PAIR) else nothing
    weights = np.array(weight) if kind >= grow_binary.WEIGHTED_PAIR else nothing
    return row_class, values, weights


def _coded(column: Array, n_categories: int) -> tuple[Array, Array] | None:
    """Give (ranks as bytes, distinct values) of a column with few values; None where there are more."""
    if column.dtype == np.int32:
        if n_categories > grow_binary.MOST_CODES:
            return None
        return column.astype(np.uint8), np.arange(n_categories, dtype=np.float64)
    cells, distinct = np.empty(len(column), np.uint8), np.empty(grow_binary.MOST_CODES)
    n_distinct = encode.code_column(np.array(column), cells, distinct, grow_binary.MOST_CODES)
    return None if n_distinct < 0 else (cells, distinct[:n_distinct].copy())


def _sorted_column(
    column: Array, n_categories: int, packed: Array, codes: Array, row_class: Array, class_bits: int
) -> Array:
    """Sort one column into `packed` and rank it into `codes`; gives its distinct values."""
    n_rows = len(column)
    order = np.empty(n_rows, np.int32)
    if column.dtype == np.int32:
        codes[:] = column
        encode.sort_codes(codes, n_categories, order)
        value = np.arange(n_categories, dtype=np.float64)
    else:
        cells = np.array(column)
        keys, other_keys = np.empty(n_rows, np.uint64), np.empty(n_rows, np.uint64)
        n_known = encode.sort_column(cells, order, keys, other_keys, np.empty(n_rows, np.int32))
        distinct = keys.view(np.float64)
        value = distinct[: encode.rank_column(cells, order, n_known, codes, distinct)].copy()
    encode.pack_order(order, row_class, class_bits, packed)
    return value


def _inverse(places: Sequence[int], n_attributes: int) -> Array:
    inverse = np.full(n_attributes, -1, np.int64)
    inverse[list(places)] = np.arange(len(places))
    return inverse
