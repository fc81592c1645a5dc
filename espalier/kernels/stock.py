"""What pruning with raised branches begins with: the rows at the leaves of a tree, and figures of its nodes."""

from espalier.kernels.frames import beyond
from espalier.kernels.jit import compiled, inner
from espalier.kernels.settling import list_leaf, settle, table_of
from espalier.kernels.trials import estimated_errors

__all__ = ["begin", "take_stock"]


@compiled
def begin(tree, size, values, target, count, apart, weights):  # type: ignore[no-untyped-def]
    """Make room for the rows at the leaves of a tree as it was grown.

    values, target: as in `table_of`. The others: as in `settle`.

    Returns (what `settle` gives, for `take_stock`; whether every row that goes one way knows what is asked for there).
    """
    table, n_classes = table_of(values, target), tree.stats.shape[1]
    settled, parts = settle(
        tree.nodes, tree.substitutes, tree.shape, size, tree.shares, table, count, apart, weights, n_classes, tree.sums,
        tree.divides,
    )  # fmt: skip
    return settled, parts, has_no_other_way(tree.nodes, tree.substitutes, tree.shape)


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
