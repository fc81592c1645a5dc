"""A table's columns as the general lane takes them: ranks and codes, sorted once, columns shared out over threads."""

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.config import TrainingConfig
from espalier.processors import in_threads_if_many
from espalier.progress import Progress
from espalier.schema import Feature
from espalier.training_table import Table, many_valued, ranks_by_mean

__all__ = ["encoded"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

NO_NUMBERS: Final = np.zeros(0)
NO_CODES: Final = np.zeros(0, np.int32)
NO_STEPS: Final = np.zeros(0, np.uint8)


def encoded(table: Table, config: TrainingConfig, watch: Progress) -> tuple[Any, Ints]:
    """Give the kernels' Columns and the presorted orders, int32 (ordered attributes, n).

    Raises:
        Cancelled: `watch` was stopped.
    """
    from espalier.kernels import codes  # noqa: PLC0415 - numba is loaded when a tree is grown, not before

    n_rows, features = table.n_rows, table.attributes
    kind = np.array([_kind(feature, config) for feature in features], np.int32)
    order_place = np.cumsum(kind != codes.NOMINAL_KIND, dtype=np.int32) - 1
    coded = np.empty((len(features), n_rows), np.int32)
    orders = np.empty((int(np.sum(kind != codes.NOMINAL_KIND)), n_rows), np.int32)
    encode = partial(_encode, table, config, watch, _Hands(n_rows))
    of_each = [
        None if each == codes.NOMINAL_KIND else orders[place] for each, place in zip(kind, order_place, strict=True)
    ]
    parts = in_threads_if_many(n_rows * len(features), encode, features, table.columns, kind.tolist(), coded, of_each)
    costs = dict(config.attribute_costs or ())
    columns = codes.Columns(
        codes=coded,
        kind=kind,
        n_codes=np.array([len(feature.categories) for feature in features], np.int32),
        order_place=order_place,
        value_start=_starts([part.value for part in parts]),
        value=np.concatenate([NO_NUMBERS, *(part.value for part in parts)]),
        step=np.concatenate([NO_STEPS, *(part.step for part in parts)]),
        recode_start=_starts([part.recode for part in parts]),
        recode=np.concatenate([NO_CODES, *(part.recode for part in parts)]),
        many_valued=many_valued(table, config),
        cost=np.array([costs.get(feature.name, 1.0) for feature in features]),
    )
    return columns, orders


def _kind(feature: Feature, config: TrainingConfig) -> int:
    from espalier.kernels import codes  # noqa: PLC0415

    if not feature.unordered:
        return codes.ORDERED_KIND
    return codes.BINARIES_KIND if config.nominal == "ordered_binaries" else codes.NOMINAL_KIND


@dataclass(frozen=True, slots=True)
class _Part:
    """What `Columns` holds of one attribute beside its codes."""

    value: Floats
    step: Bytes
    recode: Ints


def _encode(  # noqa: PLR0917 - a column and where it goes
    table: Table,
    config: TrainingConfig,
    watch: Progress,
    hands: "_Hands",
    feature: Feature,
    column: npt.NDArray[Any],
    kind: int,
    coded: Ints,
    order: Ints | None,
) -> _Part:
    """Write the codes of one attribute, and its rows ascending by them."""
    watch.check()
    window = config.window is not None
    if feature.coded:
        return _encode_categories(table, feature, column, kind, coded, order, window=window)
    return _encode_numbers(column, coded, order, hands.hand(), window=window)


def _encode_categories(  # noqa: PLR0917 - as above
    table: Table, feature: Feature, column: Ints, kind: int, coded: Ints, order: Ints | None, *, window: bool
) -> _Part:
    from espalier.kernels import codes, encode  # noqa: PLC0415

    n_categories, value, recode = len(feature.categories), NO_NUMBERS, NO_CODES
    coded[:] = column
    if kind == codes.BINARIES_KIND:
        recode = ranks_by_mean(table, column, n_categories)
        if len(recode):  # else no value of it is known
            coded[:] = np.where(column < 0, -1, recode[np.maximum(column, 0)])
        value = np.arange(n_categories, dtype=np.float64)
    if kind == codes.ORDERED_KIND:
        value = _ranked(coded, n_categories)
    if order is not None:
        encode.sort_codes(coded, n_categories, order)
    # Codes are whole numbers: the next one is another value.
    return _Part(value, np.ones(len(value) if window else 0, np.uint8), recode)


def _ranked(column: Ints, n_categories: int) -> Floats:
    """Put the rank among the codes that occur in place of each code; gives those codes: a cut's possible thresholds."""
    occurs = np.zeros(n_categories, dtype=bool)
    occurs[column[column >= 0]] = True
    rank = np.append(np.cumsum(occurs) - 1, -1).astype(np.int32)
    column[:] = rank[column]
    return np.flatnonzero(occurs).astype(np.float64)


def _encode_numbers(column: npt.NDArray[Any], coded: Ints, order: Any, hand: "_Hand", *, window: bool) -> _Part:
    from espalier.kernels import encode  # noqa: PLC0415

    hand.cells[:] = column
    steps = hand.steps if window else NO_STEPS
    n_known = encode.sort_column(hand.cells, order, hand.keys, hand.other_keys, hand.other_order)
    n_distinct = encode.rank_column(hand.cells, order, n_known, coded, hand.distinct, steps)
    return _Part(hand.distinct[:n_distinct].copy(), steps[:n_distinct].copy(), NO_CODES)


class _Hand:
    """What one thread writes while it sorts a column of n rows."""

    def __init__(self, n_rows: int) -> None:
        self.cells, self.distinct = np.empty(n_rows), np.empty(n_rows)
        self.keys, self.other_keys = np.empty(n_rows, np.uint64), np.empty(n_rows, np.uint64)
        self.other_order, self.steps = np.empty(n_rows, np.int32), np.empty(n_rows, np.uint8)


@dataclass(frozen=True, slots=True)
class _Hands:
    """A hand for each thread, made when it first sorts."""

    n_rows: int
    own: threading.local = field(default_factory=threading.local)

    def hand(self) -> _Hand:
        if not hasattr(self.own, "hand"):
            self.own.hand = _Hand(self.n_rows)
        found: _Hand = self.own.hand
        return found


def _starts(parts: list[Any]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
