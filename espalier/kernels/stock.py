"""What pruning with raised branches begins with: the rows at the leaves of a tree, and figures of its nodes."""

import numpy as np

from espalier.kernels.branches import most_branches
from espalier.kernels.frames import beyond
from espalier.kernels.jit import compiled, inner
from espalier.kernels.settling import list_leaf, settle, table_of
from espalier.kernels.spreading import AT_LEAVES, KEEP_SHARES, spread
from espalier.kernels.trials import estimated_errors

__all__ = ["begin", "spread_apart", "take_stock"]


@compiled
def spread_apart(tree, values, target, weights, apart, divides):  # type: ignore[no-untyped-def]
    """Spread rows that go several ways in a tree as it was grown; several threads may, each its own rows.

    tree: a Pruning. values, target: as in `table_of`; weights: float64, by row. apart: int32, those rows. divides: bool
    (n), written: whether one of them goes several ways at the node itself.

    Returns (where the parts at each node begin: int64 (n); their rows, as ~row: int32; their weights: float64).
    """
    table, (n_nodes, n_classes) = table_of(values, target), tree.stats.shape
    arriving = np.empty(len(apart))
    for each in range(len(apart)):
        arriving[each] = weights[apart[each]]
    # Nodes are numbered in preorder, so what is given in that order is by node.
    _, _, lo, row, weight = spread(
        tree.nodes, tree.substitutes, tree.shape, tree.shares, table.values, 0, apart, arriving, table.target,
        n_classes, tree.nothing, np.empty((n_nodes, 2 * n_classes + 2)), AT_LEAVES, KEEP_SHARES, 1, divides,
        tree.nothing, most_branches(tree.nodes),
    )  # fmt: skip
    return lo, row, weight


@compiled
def begin(tree, size, count, parts):  # type: ignore[no-untyped-def]
    """Make room for the rows at the leaves of a tree as it was grown; size, count, parts: as in `settle`.

    Returns (what `settle` gives, for `take_stock`; whether every row that goes one way knows what is asked for there).
    """
    return settle(tree.shape, size, count, parts), has_no_other_way(tree.nodes, tree.substitutes, tree.shape)


@compiled
def take_stock(  # type: ignore[no-untyped-def]
    tree, target, settled, parts, rows, first, count, weights, low, high, limit, exact
):  # fmt: skip
    """Write the pieces, mass, whole, least and estimate of the nodes ``low:high`` of a tree as it was grown.

    tree: a Pruning. Several threads may, each its own nodes. rows, first, count, weights: as in `list_leaf`.

    Returns whether each of the rows has a class.
    """
    all_have = True
    for node in range(low, high):
        for code in range(tree.stats.shape[1]):
            tree.mass[node] += tree.stats[node, code]
        if tree.shape[node] >= 0:
            continue
        tree.estimate[node] = estimated_errors(tree.stats, node, limit, exact)
        n_own = list_leaf(settled, parts, rows, first, count, node, weights, target)
        for piece in range(settled.lo[node], n_own):
            code = settled.code[piece]
            if code >= 0:
                tree.whole[node, code] += settled.weight[piece]
            else:
                all_have = False
        for piece in range(n_own, beyond(settled.lo, node + 1, len(tree.shape), len(settled.row))):
            all_have = all_have and settled.code[piece] >= 0
        all_are_whole = True
        for code in range(tree.stats.shape[1]):
            all_are_whole = all_are_whole and tree.whole[node, code] == tree.stats[node, code]
        # The same numbers give the same estimate.
        tree.least[node] = tree.estimate[node] if all_are_whole else estimated_errors(tree.whole, node, limit, exact)
    return all_have


@inner
def has_no_other_way(nodes, substitutes, shape):  # type: ignore[no-untyped-def]
    """Whether every row that goes one way knows what is asked for there."""
    for node in range(len(shape)):
        if shape[node] >= 0 and nodes.fallback[node] >= 0:
            return False
    return substitutes.start[len(shape)] == 0
