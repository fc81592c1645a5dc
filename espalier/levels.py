"""A tree a level at a time: what whole-tree sums for one row need, in numpy, with memory that grows with the nodes.

Nodes of one level stand side by side, each followed nowhere else: sums over children are `reduceat`, what comes from
above is an indexed read. No recursion, no depth limit, no compiled code::

    level     0      1         2
    tests    | 0  |  1    4  |  …         tests[level_start[d] : level_start[d + 1]]
    children   1 4   2 3  5 6   …         children[child_at[i] : child_at[i + 1]] are those of tests[i]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.strategies import whole_shares
from espalier.tree import LEAF, Tree

__all__ = ["Level", "Levels", "levels_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]


NODES_A_LEVEL: Final = 40
"""Nodes that plain Python gets through while numpy is called for one level, whatever is in it."""


class Level(NamedTuple):
    """The tests of one depth.

    Attributes:
        tests: int32 (t); nodes that test something, ascending.
        children: int32 (c); their children, test by test, in branch order.
        starts: int64 (t); where the children of each begin.
        owner: int64 (c); the place of each child's parent among `tests`.
    """

    tests: Ints
    children: Ints
    starts: Places
    owner: Places


@dataclass(frozen=True)
class Levels:
    """A tree by its levels, n nodes, m tests.

    Attributes:
        tests: int32 (m); nodes that test something, by depth, then by number.
        level_start: int64 (levels + 1).
        children: int32 (n-1); child_at: int64 (m+1).
        starts: int64 (m); owner: int64 (n-1); those of all levels, see `Level`.
        previous: int32 (n); of a test, the node that the nearest earlier test of the same attribute on its way sent the
            row to (the test itself where that is its parent); -1 where there was none, and at leaves.
        before: int32 (n); `previous` of each node's parent; -1 for the root.
        cover: float64 (n); the share of its siblings' training weight that reached each node; 1 at the root.
        share: float64 (n); the share of a row without the value that goes to each node (`Tree.branch_weight`); 1 at the
            root.
        most_asked: The most attributes, each counted once, that any way asks for.
    """

    tests: Ints
    level_start: Places
    children: Ints
    child_at: Places
    starts: Places
    owner: Places
    previous: Ints
    before: Ints
    cover: Floats
    share: Floats
    most_asked: int

    @property
    def n_levels(self) -> int:
        """How many levels have tests."""
        return len(self.level_start) - 1

    @cached_property
    def binary(self) -> bool:
        """Whether each test has two branches."""
        return len(self.children) == 2 * len(self.tests)

    @cached_property
    def bounds(self) -> list[tuple[int, int, int, int]]:
        """Where each level begins and ends, among `tests` and among `children`."""
        tests, children = self.level_start.tolist(), self.child_at[self.level_start].tolist()
        return list(zip(tests[:-1], tests[1:], children[:-1], children[1:], strict=True))

    @cached_property
    def deepest_first(self) -> Ints:
        """All children, those of the deepest level first; int32 (n-1)."""
        return np.concatenate([self.children[first:last] for _, _, first, last in reversed(self.bounds)])

    def is_thin(self, n_columns: int) -> bool:
        """Say whether a walk node by node is quicker than one by levels, for so many numbers a node.

        A chain of some thousand tests has as many levels: each costs some calls of numpy, however little is in it.
        """
        return n_columns * (len(self.children) + 1) < NODES_A_LEVEL * self.n_levels

    def level(self, depth: int) -> Level:
        """Give the tests of a depth."""
        low, high, first, last = self.bounds[depth]
        return Level(self.tests[low:high], self.children[first:last], self.starts[low:high], self.owner[first:last])

    def downwards(self) -> Iterator[Level]:
        """Give the levels, the root first."""
        return map(self.level, range(self.n_levels))

    def upwards(self) -> Iterator[Level]:
        """Give the levels, the deepest first."""
        return map(self.level, reversed(range(self.n_levels)))


def levels_of(tree: Tree) -> Levels:
    """Give a tree by its levels, made on first use and kept as long as the tree."""
    found = _LEVELS.get(tree)
    if found is None:
        found = _LEVELS[tree] = _levels(tree)
    return found


_LEVELS: WeakKeyDictionary[Tree, Levels] = WeakKeyDictionary()


def _levels(tree: Tree) -> Levels:
    tests = np.flatnonzero(tree.test != LEAF).astype(np.int32)
    tests = tests[np.argsort(tree.depths[tests], kind="stable")]
    counts = np.diff(tree.child_start)[tests].astype(np.int64)
    child_at = np.concatenate(([0], np.cumsum(counts)))
    places = np.repeat(tree.child_start[tests].astype(np.int64) - child_at[:-1], counts) + np.arange(child_at[-1])
    share = np.ones(tree.n_nodes)
    share[tree.child] = tree.branch_weight
    previous = _previous(tree)
    level_start = np.searchsorted(tree.depths[tests], np.arange(tree.depth + 1)).astype(np.int64)
    begin = level_start[tree.depths[tests]]
    return Levels(
        tests=tests,
        level_start=level_start,
        children=tree.child[places],
        child_at=child_at,
        starts=child_at[:-1] - child_at[begin],
        owner=np.repeat(np.arange(len(tests)) - begin, counts),
        previous=previous,
        before=np.where(tree.parent < 0, -1, previous[tree.parent]),
        cover=_cover(tree),
        share=share,
        most_asked=_most_asked(tree, previous),
    )


def _cover(tree: Tree) -> Floats:
    """Give each node's part of its siblings' weight; where no weight came, that of a row without the value."""
    share, cover = np.ones(tree.n_nodes), np.ones(tree.n_nodes)
    share[tree.child] = whole_shares(tree)
    parent = tree.parent[1:]
    whole = np.bincount(parent, weights=tree.weight[1:], minlength=tree.n_nodes)[parent]
    cover[1:] = np.where(whole > 0, tree.weight[1:] / np.where(whole > 0, whole, 1.0), share[1:])
    return cover


def _most_asked(tree: Tree, previous: Ints) -> int:
    asked = [0] * tree.n_nodes
    first = (previous < 0) & (tree.test != LEAF)
    for node, (parent, is_first) in enumerate(zip(tree.parent.tolist(), first.tolist(), strict=True)):
        asked[node] = (asked[parent] if node else 0) + is_first
    return max(asked)


def _previous(tree: Tree) -> Ints:
    features, parents = tree.feature.tolist(), tree.parent.tolist()
    found = [-1] * tree.n_nodes
    into: dict[int, int] = {}  # by attribute: the node that its last test on the way led to
    way: list[tuple[int, int]] = []  # tests on the way, each with what stood in `into` before it
    for node, (feature, parent) in enumerate(zip(features, parents, strict=True)):
        while way and way[-1][0] != parent:
            left, before = way.pop()
            into[features[left]] = before
        if parent >= 0:
            into[features[parent]] = node
        if feature >= 0:
            found[node] = into.get(feature, -1)
            way.append((node, found[node]))
    return np.array(found, dtype=np.int32)
