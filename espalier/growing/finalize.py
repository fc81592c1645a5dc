"""Convert the node tables of a grown tree to the preorder arrays of `Tree`.

Both growers describe their nodes as `Nodes`, numbered in order of creation: children have larger numbers than their
parent, and the children of a node are numbered consecutively.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from espalier.arrays import Array, Floats, Ints
from espalier.growing.kernels.node_columns import S_AGREEMENT, S_ATTRIBUTE, S_BELOW, S_CODE_START, S_TEST, S_THRESHOLD
from espalier.growing.kernels.nodes import preorder
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC
from espalier.model.surrogates import Surrogates
from espalier.model.tree import Tree

COLLAPSE_SLACK: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that were grown together. The first node is the root of the tree, or replaces a leaf of an earlier part.

    Attributes:
        root: Number of the part's first node in the whole tree.
        first: Number of the part's second node in the whole tree. The numbers of its later nodes follow.
        ints, reals, stats: The part's rows of the grower's node tables: `ints` is int32, the others are float64.
        first_code: Start of the part's entries in the code table of the whole tree.
    """

    root: int
    first: int
    ints: Array
    reals: Array
    stats: Array
    first_code: int = 0

    def numbers(self, own: Array) -> Ints:
        """Convert node numbers of this part to numbers of the whole tree; -1 stays -1."""
        whole = np.where(own == 0, self.root, own + (self.first - 1))
        return np.where(own < 0, -1, whole).astype(np.int32)


@dataclass(frozen=True, slots=True)
class SurrogateTable:
    """The surrogates of all nodes, as `espalier.growing.kernels.splits.surrogates` writes them.

    Attributes:
        first, count: int32 (nodes); the index of a node's first surrogate, and the number of its surrogates.
        ints: int32 (surrogates, 4); reals: float64 (surrogates, 2); codes: int32, the branch of each category.
    """

    first: Ints
    count: Ints
    ints: Ints
    reals: Floats
    codes: Ints


@dataclass(slots=True)
class Nodes:
    """The nodes of a tree in order of creation. `Tree` describes the arrays that are not listed here.

    Attributes:
        first_child, n_children: int32 (n); the children of a node are numbered consecutively.
        share: float64 (n); `branch_weight` of `Tree`, with an entry for every node.
        first_code: int32 (n); at a NOMINAL test, the index of the first category's branch in `code_table`.
    """

    first_child: Ints
    n_children: Ints
    feature: Ints
    test: npt.NDArray[np.int8]
    threshold: Floats
    fallback: Ints
    share: Floats
    weight: Floats
    gain: Floats
    value: Floats | Ints
    stats: Floats
    first_code: Ints
    code_table: Ints
    surrogates: SurrogateTable | None = None


def joined(parts: Sequence[Part], column: Callable[[Part], Array], *, keeps_root: bool = False) -> Array:
    """Return one column of the node tables of all parts, ordered by the node numbers of the whole tree.

    Args:
        parts: Each part comes after the part in which its root is a leaf.
        column: Returns the entries of a part's nodes.
        keeps_root: Whether the root of a part takes the entry of the leaf that it replaces instead of its own entry.
    """
    values = column(parts[0])
    whole = np.empty((sum(len(part.ints) - 1 for part in parts) + 1, *values.shape[1:]), values.dtype)
    for part in parts:
        values = column(part)
        if part.root == 0 or not keeps_root:
            whole[part.root] = values[0]
        whole[part.first : part.first + len(values) - 1] = values[1:]
    return whole


def finalize(nodes: Nodes, n_categories: Sequence[int], *, n_classes: int, collapse: bool) -> tuple[Tree, Ints]:
    """Return the tree and, for each of its nodes, the number that it had in `nodes`, int32 (nodes of the tree).

    Args:
        nodes: The grown nodes. The arrays are overwritten, so `nodes` cannot be used again.
        n_categories: Number of categories of each attribute.
        n_classes: Number of classes; 0 for a regression.
        collapse: Whether to replace a subtree by a leaf if the leaf makes no more training errors than the subtree.
    """
    if collapse:
        _collapse(nodes)
    order, size = preorder(nodes.first_child, nodes.n_children)
    place = np.empty(len(nodes.feature), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    child_start, children = _slices(nodes.first_child[order], nodes.n_children[order])
    child = place[children]
    parent = np.full(len(order), -1, np.int32)
    parent[child] = np.repeat(np.arange(len(order), dtype=np.int32), np.diff(child_start))
    nodes.share = nodes.share[children]
    # Columns are brought into preorder one by one, so that only one of them is in memory twice.
    kept = ("feature", "test", "threshold", "fallback", "weight", "gain", "stats")
    for name in (*kept, "value", "first_code"):
        setattr(nodes, name, getattr(nodes, name)[order])
    nodes.threshold[nodes.test != NUMERIC] = np.nan
    nodes.gain[nodes.test == LEAF] = np.nan
    lengths = _code_lengths(nodes.feature, nodes.test, n_categories)
    code_start, code_branch = _codes(nodes.code_table, nodes.first_code, lengths)
    tree = Tree(
        parent=parent,
        size=size,
        child_start=child_start,
        child=child,
        code_start=code_start,
        code_branch=code_branch,
        branch_weight=nodes.share,
        **{name: getattr(nodes, name) for name in kept},
        value=nodes.value.astype(np.int32) if n_classes else nodes.value,
        surrogates=_surrogates(nodes.surrogates, order, n_categories),
    )
    return tree, order


def _collapse(nodes: Nodes) -> None:
    # A subtree is futile if a single leaf would make no more training errors (Quinlan, 1993). The errors of a subtree
    # are those of its leaves before any collapse.
    own = sum(nodes.stats.T) - nodes.stats.max(axis=1)
    errors = np.where(nodes.n_children == 0, own, 0.0).tolist()
    first, count = nodes.first_child.tolist(), nodes.n_children.tolist()
    for node in range(len(errors) - 1, -1, -1):
        for child in range(first[node] + count[node] - 1, first[node] - 1, -1):
            errors[node] += errors[child]
    futile = (nodes.n_children > 0) & (np.array(errors) >= own - COLLAPSE_SLACK)
    nodes.n_children[futile] = 0
    nodes.test[futile] = LEAF
    nodes.feature[futile] = -1
    nodes.fallback[futile] = -1
    if nodes.surrogates is not None:
        nodes.surrogates.count[futile] = 0


def _surrogates(table: SurrogateTable | None, order: Ints, n_categories: Sequence[int]) -> Surrogates | None:
    if table is None:
        return None
    start, entries = _slices(table.first[order], table.count[order])
    ints, reals = table.ints[entries], table.reals[entries]
    is_nominal = ints[:, S_TEST] == NOMINAL
    lengths = _code_lengths(ints[:, S_ATTRIBUTE], ints[:, S_TEST], n_categories)
    code_start, code_branch = _codes(table.codes, ints[:, S_CODE_START].copy(), lengths)
    return Surrogates(
        start=start,
        feature=ints[:, S_ATTRIBUTE].copy(),
        test=ints[:, S_TEST].astype(np.int8),
        threshold=np.where(is_nominal, np.nan, reals[:, S_THRESHOLD]),
        below=np.where(is_nominal, 0, ints[:, S_BELOW]).astype(np.int32),
        code_start=code_start,
        code_branch=code_branch,
        agreement=reals[:, S_AGREEMENT].copy(),
    )


def _code_lengths(feature: Ints, test: Array, n_categories: Sequence[int]) -> Ints:
    lengths = np.array([*n_categories, 0], np.int32)[feature]  # the feature of a leaf, -1, selects the 0
    lengths[test != NOMINAL] = 0
    return lengths


def _codes(table: Ints, first: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return where the category branches of each test begin, int32 (tests + 1), and the branches, int32."""
    start, entries = _slices(first, lengths)
    return start, table[entries]


def _slices(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Concatenate the ranges ``first : first + count``. Return the start of each, int32 (n + 1), and the indexes."""
    start = np.zeros(len(count) + 1, np.int32)
    np.cumsum(count, out=start[1:])
    return start, np.arange(start[-1], dtype=np.int32) + np.repeat(first - start[:-1], count)
