"""The columns of the general grower. Values become ranks or codes, and each ordered column is sorted once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.arrays import Array, Floats, Ints, Longs
from espalier.config.training_parameters import TrainingConfig
from espalier.data.schema import Feature
from espalier.growing.kernels import constants, sort
from espalier.growing.kernels.arguments import EncodedColumns
from espalier.growing.kernels.binary import constants as b
from espalier.growing.training_data import TrainingData, many_valued, ranks_by_mean
from espalier.progress import Progress
from espalier.threads import parallel_map

NO_NUMBERS: Final = np.zeros(0)
NO_CODES: Final = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnShape:
    """The properties of a column except its codes and values; see `EncodedColumns`."""

    kind: int
    n_codes: int
    recode: Array
    many_valued: int
    cost: float


def encoded_columns(data: TrainingData, config: TrainingConfig, progress: Progress) -> tuple[Any, Ints]:
    """Return the `EncodedColumns` and the presorted orders, int32 (attributes that are not of NOMINAL_KIND, rows)."""
    n_rows, features = data.n_rows, data.attributes
    kind = np.array([kind_of(feature, config) for feature in features], np.int32)
    is_ordered = kind != constants.NOMINAL_KIND
    order_place = np.cumsum(is_ordered, dtype=np.int32) - 1
    coded = np.empty((len(features), n_rows), np.int32)
    orders = np.empty((int(np.sum(is_ordered)), n_rows), np.int32)

    def encode(place: int) -> tuple[Floats, Ints]:
        progress.check()
        order = orders[order_place[place]] if is_ordered[place] else None
        return encode_column(data, int(kind[place]), place, coded[place], order)

    parts = parallel_map(encode, range(len(features)), n_cells=n_rows * len(features))
    values, recodes = [value for value, _ in parts], [recode for _, recode in parts]
    return column_table(column_shapes(data, config, recodes), coded, values), orders


def column_shapes(data: TrainingData, config: TrainingConfig, recodes: Sequence[Ints]) -> tuple[ColumnShape, ...]:
    """Return the shape of each attribute's column from the attributes' `recode` tables."""
    costs = dict(config.attribute_costs or ())
    return tuple(
        ColumnShape(kind_of(feature, config), len(feature.categories), recode, many, costs.get(feature.name, 1.0))
        for feature, recode, many in zip(data.attributes, recodes, many_valued(data, config).tolist(), strict=True)
    )


def column_table(shapes: Sequence[ColumnShape], codes: Array, values: Sequence[Array], **first: int) -> Any:
    """Return the `EncodedColumns` of some columns. `first` is empty or sets its `first_attribute`."""
    is_ordered = np.array([shape.kind != constants.NOMINAL_KIND for shape in shapes], np.bool_)
    return EncodedColumns(
        codes=codes,
        kind=np.array([shape.kind for shape in shapes], np.int32),
        n_codes=np.array([shape.n_codes for shape in shapes], np.int32),
        order_place=np.cumsum(is_ordered, dtype=np.int32) - 1,
        value_start=_starts(values),
        value=_joined(values, np.float64),
        recode_start=_starts([shape.recode for shape in shapes]),
        recode=_joined([shape.recode for shape in shapes], np.int32),
        many_valued=np.array([shape.many_valued for shape in shapes], np.int32),
        cost=np.array([shape.cost for shape in shapes]),
        **first,
    )


def _starts(parts: Sequence[Array]) -> Longs:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _joined(parts: Sequence[Array], kind: npt.DTypeLike) -> Array:
    """Return the concatenated parts; a single part is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


def kind_of(feature: Feature, config: TrainingConfig) -> int:
    """Return how an attribute's values are split: ORDERED_KIND, NOMINAL_KIND or BINARIES_KIND."""
    if not feature.unordered:
        return constants.ORDERED_KIND
    return constants.BINARIES_KIND if config.nominal == "ordered_binaries" else constants.NOMINAL_KIND


def encode_column(data: TrainingData, kind: int, place: int, coded: Ints, order: Ints | None) -> tuple[Floats, Ints]:
    """Write an attribute's codes to `coded`, and its presorted order to `order` unless None. Both are int32 (rows).

    Return the attribute's values and its recode table; see `value` and `recode` of `EncodedColumns`.
    """
    if data.attributes[place].coded:
        return _encode_categories(data, kind, place, coded, order)
    values = np.asarray(data.columns[place], np.float64)
    known = np.flatnonzero(~np.isnan(values))
    scratch, ascending = np.empty((2, len(known)), np.uint32)
    sort_column(values[known], scratch, ascending)
    known = known[ascending]
    if order is not None:
        order[:] = np.concatenate([known, np.flatnonzero(np.isnan(values))])
    ranks, distinct = rank_sorted(values[known])
    coded[:] = -1
    coded[known] = ranks
    return distinct, NO_CODES


def _encode_categories(
    data: TrainingData, kind: int, place: int, coded: Ints, order: Ints | None
) -> tuple[Floats, Ints]:
    column, n_categories = data.columns[place], len(data.attributes[place].categories)
    value, recode = NO_NUMBERS, NO_CODES
    coded[:] = column
    if kind == constants.BINARIES_KIND:
        recode = ranks_by_mean(data, column, n_categories)
        if len(recode):  # an attribute without categories has only missing values
            coded[:] = np.where(column < 0, -1, recode[np.maximum(column, 0)])
        value = np.arange(n_categories, dtype=np.float64)
    if kind == constants.ORDERED_KIND:
        value = _ranked(coded, n_categories)
    if order is not None:
        # Missing codes come last. NumPy sorts integers of one or two bytes several times faster than larger ones.
        keys = np.where(coded < 0, n_categories, coded).astype(np.min_scalar_type(n_categories))
        order[:] = np.argsort(keys, kind="stable")
    return value, recode


def sort_column(column: Array, codes: Array, order: Array) -> None:
    """Write `codes`, ordered like the values, and `order`, the rows by value: both uint32 (n). No value is missing."""
    counts = np.empty((b.N_DIGITS, 1 << b.DIGIT_BITS), np.uint32)
    near, far = np.empty((2, len(column)), np.uint64)
    far.view(np.float64)[:] = column
    n_bits = sort.write_codes(far, codes, counts)
    sort.sort_rows(n_bits, codes, counts, order, near, far)
    del near, far
    if n_bits > b.CODE_BITS:
        # The rows are nearly in order of value already, so this stable sort takes little more than one pass.
        values = column[order]
        within = np.argsort(values, kind="stable")
        order[:] = order[within]
        codes[order] = rank_sorted(values[within])[0]


def rank_sorted(ascending: Floats) -> tuple[Ints, Floats]:
    """Return the ranks of ascending values among their distinct values, int32 (n), and the distinct values."""
    is_new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
    return np.cumsum(is_new, dtype=np.int32) - np.int32(1), ascending[is_new]


def _ranked(column: Ints, n_categories: int) -> Floats:
    """Replace each code by its rank among the codes that occur. Return the codes that occur, float64."""
    occurs = np.bincount(column[column >= 0], minlength=n_categories) > 0
    rank = np.append(np.cumsum(occurs) - 1, -1).astype(np.int32)
    column[:] = rank[column]
    return np.flatnonzero(occurs).astype(np.float64)
