"""A tree level by level, for vectorised sums over the whole tree without recursion or a depth limit.

The children of a level's tests are adjacent, test by test, so ``reduceat`` sums over the children of each test::

    level      0      1
    tests      0      1    4
    children   1 4    2 3  5 6
    starts     0      0    2
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from espalier.arrays import Floats, Ints, Places
from espalier.model.node_tests import LEAF, UNKNOWN
from espalier.model.surrogates import ragged
from espalier.model.tree import Tree, cached_on_owner
from espalier.prediction.missing_strategies import whole_shares


class Level(NamedTuple):
    """The tests of one depth.

    Attributes:
        tests: intp (t); the nodes of this depth that have a test, ascending.
        children: int32 (c); their children, test by test, in branch order.
        starts: int32 (t); index in `children` of the first child of each test.
    """

    tests: Places
    children: Ints
    starts: Ints


@dataclass(frozen=True, slots=True)
class TreeLevels:
    """A tree by its levels; n nodes.

    Attributes:
        levels: The levels, the root first; none if the root is a leaf.
        previous: int32 (n); for a test of attribute A, the last node on its path, itself included, whose parent tests
            A; -1 without such a node, and at leaves.
        before: int32 (n); `previous` of each node's parent; -1 for the root.
        cover: float64 (n); the node's share of the training weight of its parent's children; 1 at the root.
        share: float64 (n); the share of a row with a missing value that the node gets from its parent; 1 at the root.
        max_attributes: The largest number of different attributes on one path.
    """

    levels: list[Level]
    previous: Ints
    before: Ints
    cover: Floats
    share: Floats
    max_attributes: int


@cached_on_owner
def tree_levels(tree: Tree) -> TreeLevels:
    """Return a tree by its levels; it is cached with the tree."""
    tests = np.flatnonzero(tree.test != LEAF)
    tests = tests[np.argsort(tree.depths[tests], kind="stable")]
    starts, places = ragged(tree.child_start, tests)
    children = tree.child[places]
    bounds = np.searchsorted(tree.depths[tests], np.arange(tree.depth + 1)).tolist()
    share = np.ones(tree.n_nodes)
    share[tree.child] = tree.branch_weight
    previous = _previous(tree)
    return TreeLevels(
        levels=[
            Level(tests[low:high], children[starts[low] : starts[high]], starts[low:high] - starts[low])
            for low, high in pairwise(bounds)
        ],
        previous=previous,
        before=np.where(tree.parent < 0, -1, previous[tree.parent]),
        cover=_cover(tree),
        share=share,
        max_attributes=_max_attributes(tree, previous),
    )


def path_products(levels: TreeLevels, factors: Floats, above: Ints) -> Floats:
    """Return each node's factor times the product at its ancestor ``above[node]`` (-1: no ancestor): float64 (n)."""
    products = factors.copy()
    for level in levels.levels:
        other = above[level.children]
        products[level.children] *= np.where(other >= 0, products[other], 1.0)
    return products


def _cover(tree: Tree) -> Floats:
    """Return `TreeLevels.cover`. If all children of a parent have the weight 0, their covers are `whole_shares`."""
    share, cover, weight = np.ones(tree.n_nodes), np.ones(tree.n_nodes), tree.weight.copy()
    share[tree.child] = whole_shares(tree)
    tests = np.flatnonzero(tree.test == UNKNOWN)
    # In an imported tree, a leaf that repeats its node's answer for a missing value has the node's whole weight.
    weight[tree.child[tree.child_start[tests] + 1]] = np.maximum(tree.weight[tests] - tree.weight[tests + 1], 0.0)
    parent = tree.parent[1:]
    total = np.bincount(parent, weights=weight[1:], minlength=tree.n_nodes)[parent]
    cover[1:] = np.where(total > 0, weight[1:] / np.where(total > 0, total, 1.0), share[1:])
    return cover


def _max_attributes(tree: Tree, previous: Ints) -> int:
    n_tested = [0] * tree.n_nodes
    first = (previous < 0) & (tree.test != LEAF)
    for node, (parent, is_first) in enumerate(zip(tree.parent.tolist(), first.tolist(), strict=True)):
        n_tested[node] = (n_tested[parent] if node else 0) + is_first
    return max(n_tested)


def _previous(tree: Tree) -> Ints:
    features, parents = tree.feature.tolist(), tree.parent.tolist()
    previous = [-1] * tree.n_nodes
    into: dict[int, int] = {}  # by attribute: the node that its last test on the path led to
    path: list[tuple[int, int]] = []  # tests on the path, each with the entry of `into` that it replaced
    for node, (feature, parent) in enumerate(zip(features, parents, strict=True)):
        while path and path[-1][0] != parent:
            test, before = path.pop()
            into[features[test]] = before
        if parent >= 0:
            into[features[parent]] = node
        if feature >= 0:
            previous[node] = into.get(feature, -1)
            path.append((node, previous[node]))
    return np.array(previous, dtype=np.int32)
