"""From the encoded cells of many rows to the leaves of a tree: by numpy where they are few, else by compiled code."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.cells import Cells, MatrixCells
from espalier.model import Model
from espalier.prediction import router
from espalier.processors import in_threads, n_threads
from espalier.schema import Feature
from espalier.strategies import STOP
from espalier.tree import LEAF, NOMINAL, NUMERIC, UNKNOWN, Tree

__all__ = ["Stretch", "in_parts", "leaves_by_levels", "routed", "stretches", "ways_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

LONGEST: Final = 4_096
LONGEST_AS_IT_IS: Final = 32_768
"""Rows of a stretch that is read where it is: what is written for it stays in the cache."""
SHORTEST: Final = 64
CELLS_OF_A_STRETCH: Final = 1_000_000
PARTS_A_THREAD: Final = 4
PACKED_AT_ONCE: Final = 65_536
"""Nodes of a tree that are packed together."""
MOST_FULL_LEVELS: Final = 10
"""Of a tree that is laid out in full: 16 KiB, a part of the nearest cache."""
MOST_ROOM: Final = 16
"""A level is laid out in full if one in so many of its entries is a test."""


def leaves_by_levels(model: Model, values: Floats) -> Ints:
    """Route rows a level of the tree at a time, without compiled code.

    Args:
        model: A tree.
        values: Encoded attributes, float64 (attributes, rows), as in `EncodedRow`.

    Returns:
        The leaf of each row, int32 (rows); -1 for a row that several leaves answer.
    """
    tree = model.tree
    coded = np.array([feature.coded for feature in model.schema.attributes], dtype=np.bool_)
    at = np.zeros(values.shape[1], dtype=np.int32)
    moving = np.flatnonzero(tree.test[at] != LEAF)
    while len(moving):
        node = at[moving]
        feature = tree.feature[node]
        value = values[feature, moving]
        absent = np.isnan(value) | (coded[feature] & (value < 0))
        branch = np.where(absent, -1, np.where(value <= tree.threshold[node], 0, 1))
        nominal = np.flatnonzero((tree.test[node] == NOMINAL) & ~absent)
        if len(nominal):
            start = tree.code_start[node[nominal]]
            code = value[nominal].astype(np.int64)
            listed = code < tree.code_start[node[nominal] + 1] - start
            branch[nominal] = np.where(listed, tree.code_branch[np.where(listed, start + code, 0)], -1)
        branch = np.where(tree.test[node] == UNKNOWN, absent, branch)
        branch = _without_value(model, branch, node, values, moving)
        stuck = branch < 0
        ending = np.where(branch == STOP, node, -1)
        at[moving] = np.where(stuck, ending, tree.child[tree.child_start[node] + np.maximum(branch, 0)])
        moving = moving[~stuck]
        moving = moving[tree.test[at[moving]] != LEAF]
    return at


def _without_value(
    model: Model, branch: npt.NDArray[Any], node: Ints, values: Floats, rows: npt.NDArray[np.intp]
) -> npt.NDArray[Any]:
    """Give the branches with those of the rows that have none by their own value."""
    if model.tree.surrogates is None:
        return np.where(branch < 0, model.tree.fallback[node], branch)
    way = router(model)
    for place in np.flatnonzero(branch < 0).tolist():
        branch[place] = way.branch(int(node[place]), values[:, rows[place]].tolist())
    return branch


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows ``low:high`` as a kernel reads them: cell (row, attribute) at ``row · row_step + attribute``.

    Attributes:
        values: float64 or float32, one axis; NaN is a missing value.
        matrix: The same as (attributes, rows).
    """

    low: int
    high: int
    values: npt.NDArray[Any]
    row_step: int
    matrix: npt.NDArray[Any]


def stretches(model: Model, cells: Cells, low: int, high: int) -> Iterator[Stretch]:
    """Give rows ``low:high`` stretch by stretch; each lives in the memory of the one before it.

    Only the attributes that the tree asks for are written. A matrix whose rows lie in one piece is read where it is.
    """
    packed, n_attributes = ways_of(model), len(model.schema.attributes)
    if isinstance(cells, MatrixCells) and cells.values.flags.f_contiguous and not packed.coded:
        for first in range(low, high, LONGEST_AS_IT_IS):
            last = min(first + LONGEST_AS_IT_IS, high)
            part = cells.values[:, first:last]
            yield Stretch(first, last, part.T.reshape(-1), n_attributes, part)
        return
    length = max(SHORTEST, min(LONGEST, CELLS_OF_A_STRETCH // max(1, n_attributes), high - low))
    # A row's cells lie side by side: on its way down it asks for one after another.
    room = np.empty((length, max(1, n_attributes)))
    asked = range(n_attributes) if model.linear is not None else packed.attributes
    for first in range(low, high, length):
        last = min(first + length, high)
        for attribute in asked:
            column = room[: last - first, attribute]
            cells.write(attribute, first, last, column)
            if attribute in packed.coded:
                column[column < 0] = np.nan
        yield Stretch(first, last, room.reshape(-1), room.shape[1], room[: last - first].T)


@dataclass(frozen=True, slots=True)
class PackedTree:
    """A tree as the kernel reads it.

    Attributes:
        route: The kernel, which is loaded by the first many rows, not before.
        ways: `espalier.kernels.route.Ways`.
        only_cuts: Whether there is a test, and all are numeric cuts.
        attributes: Those that the tree asks for, ascending.
        coded: Those of all attributes that are held as codes: a negative one is a missing value.
        most_open: How many ways of one row can be open at a time.
    """

    route: Callable[..., None]
    ways: Any
    only_cuts: bool
    attributes: tuple[int, ...]
    coded: frozenset[int]
    most_open: int


_PACKED: WeakKeyDictionary[Tree, PackedTree] = WeakKeyDictionary()


def ways_of(model: Model) -> PackedTree:
    """Give a tree as the kernel reads it, made on first use and kept as long as the tree."""
    found = _PACKED.get(model.tree)
    if found is None:
        found = _PACKED[model.tree] = _packed(model.tree, model.schema.attributes)
    return found


def routed(model: Model, stretch: Stretch, leaves: Ints) -> None:
    """Write the leaf of each row of a stretch, -1 where several leaves answer."""
    packed, n_rows = ways_of(model), stretch.high - stretch.low
    packed.route(packed.ways, packed.only_cuts, stretch.values, stretch.row_step, n_rows, leaves)


def in_parts(n_rows: int, work: Callable[[int, int], None]) -> None:
    """Do `work` on ``low:high`` for parts of the rows, on all processors."""
    most = n_rows // LONGEST
    if most <= 1:
        work(0, n_rows)
        return
    n_parts = min(PARTS_A_THREAD * n_threads(), most)
    bounds = [n_rows * part // n_parts for part in range(n_parts + 1)]
    in_threads(work, bounds[:-1], bounds[1:])


def _packed(tree: Tree, features: Sequence[Feature]) -> PackedTree:
    from espalier.kernels import route as kernel  # noqa: PLC0415 - numba is loaded by the first many rows, not before

    node = np.empty(tree.n_nodes, np.int32)
    node[0], node[1:] = 0, tree.child
    cuts = np.empty(2 * len(node))
    links = cuts.view(np.int32)
    # Piece by piece: what is written on the way would take more memory than the tree.
    for low in range(0, len(node), PACKED_AT_ONCE):
        _pack(tree, node, cuts, links, low, min(low + PACKED_AT_ONCE, len(node)))
    only_cuts = tree.n_nodes > 1 and bool(np.all((tree.test == NUMERIC) | (tree.test == LEAF)))
    none = np.zeros(0, np.int32)
    names = ("start", "feature", "test", "threshold", "below", "code_start", "code_branch")
    if tree.surrogates is None:
        tests, thresholds = np.zeros(0, np.int8), np.zeros(0)
        others = (np.zeros(tree.n_nodes + 1, np.int32), none, tests, thresholds, none, np.zeros(1, np.int32), none)
    else:
        others = tuple(getattr(tree.surrogates, name) for name in names)
    full = _in_full(cuts, links) if only_cuts else (np.zeros(0), none, none)
    ways = kernel.Ways(
        cuts, links, node, *full, tree.test, tree.feature, tree.threshold, tree.child_start, tree.child,
        tree.branch_weight, tree.code_start, tree.code_branch, tree.fallback, *others,
    )  # fmt: skip
    for array in ways:
        # As the tree's own arrays are, so that one compiled form serves all.
        array.flags.writeable = False
    asked = [tree.feature[tree.test != LEAF]] + ([] if tree.surrogates is None else [tree.surrogates.feature])
    attributes = tuple(np.unique(np.concatenate(asked)).tolist())
    coded = frozenset(place for place, feature in enumerate(features) if feature.coded)
    return PackedTree(kernel.route, ways, only_cuts, attributes, coded, kernel.most_open(tree.parent, tree.child_start))


def _pack(tree: Tree, node: Ints, cuts: Floats, links: Ints, low: int, high: int) -> None:  # noqa: PLR0917 - tables
    """Write the entries ``low:high`` of ``cuts`` and ``links`` of `espalier.kernels.route.Ways`."""
    from espalier.kernels import route as kernel  # noqa: PLC0415

    own = node[low:high]
    test = tree.test[own]
    is_leaf = test == LEAF
    cuts[2 * low : 2 * high : 2] = np.where(is_leaf, np.inf, tree.threshold[own])
    # Whoever stays at a leaf looks at the attribute that led there, which is known to be there.
    asked_above = np.maximum(tree.feature[tree.parent[own]], 0)
    asked = np.where(test == NUMERIC, tree.feature[own], kernel.OTHER)
    links[4 * low + 2 : 4 * high : 4] = np.where(is_leaf, asked_above, asked)
    links[4 * low + 3 : 4 * high : 4] = np.where(is_leaf, np.arange(low, high), 1 + tree.child_start[own])


def _in_full(cuts: Floats, links: Ints) -> tuple[Floats, Ints, Ints]:
    """Give ``full_cuts``, ``full_features`` and ``full_ends`` of `espalier.kernels.route.Ways`.

    A leaf above the last level is a test of the attribute that led there, which all pass. All three are empty where the
    tree is too deep, or takes too much room.
    """
    full_cuts, full_features = [np.zeros(1)], [np.zeros(1, np.int32)]
    ends = np.zeros(1, np.int32)
    for _ in range(MOST_FULL_LEVELS + 1):
        first = links[3::4][ends]
        n_tests = np.count_nonzero(first != ends)
        if not n_tests:
            return np.concatenate(full_cuts), np.concatenate(full_features), ends
        if MOST_ROOM * n_tests < len(ends):
            break
        full_cuts.append(cuts[0::2][ends])
        full_features.append(links[2::4][ends])
        ends = np.stack((first, first + (first != ends)), axis=1).reshape(-1)
    return np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.int32)
