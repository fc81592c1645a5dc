"""Sums and products along the ways of a tree, node by node in plain Python: for trees of many levels with few nodes.

A walk by levels (`espalier.levels`) is some calls of numpy a level. A chain of thousands of tests has as many levels of
two nodes each, and there the calls are all that takes time. Where `Levels.is_thin` says so the same is done here a
node at a time: the same operations in the same order, so that what comes of it is the same to the last digit.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.levels import Levels

__all__ = ["added_up", "divided_and_multiplied", "multiplied"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]


def multiplied(levels: Levels, factors: Floats, above: Ints) -> Floats:
    """Multiply each node's factor by the product of another node, one on the way to it.

    Args:
        levels: The tree by its levels.
        factors: float64 (n); 1 at the root.
        above: Of each node the one whose product it takes, its parent or a node above that; -1: it takes none.
    """
    if levels.is_thin(1):
        listed, taken = factors.tolist(), above.tolist()
        for node, other in enumerate(taken):
            if other >= 0:
                listed[node] *= listed[other]
        return np.array(listed)
    products = factors.copy()
    for level in levels.downwards():
        other = above[level.children]
        again = other >= 0
        products[level.children[again]] *= products[other[again]]
    return products


def divided_and_multiplied(parent: Ints, divisor: Floats, factor: Floats) -> Floats:
    """Give, column by column, the parent's product by the divisor (0 where that is 0) times the factor; 1 at the root.

    Args:
        parent: int32 (n).
        divisor: float64 (n, columns), at least 0.
        factor: float64 (n, columns).
    """
    products, parents = np.ones(factor.shape), parent.tolist()
    for column in range(factor.shape[1]):
        made = [1.0]
        triples = zip(parents, divisor[:, column].tolist(), factor[:, column].tolist(), strict=True)
        next(triples)
        for above, below, times in triples:
            made.append(made[above] / below * times if below > 0 else 0.0 * times)
        products[:, column] = made
    return products


def added_up(parent: Ints, values: Floats) -> Floats:
    """Give, column by column, each node's own value and the sums of its two children: float64 (n, columns).

    Of two branches: the sum of more would depend on the order.
    """
    sums, parents = values.copy(), parent.tolist()
    for column in range(values.shape[1]):
        own = values[:, column].tolist()
        below = [0.0] * len(own)
        for node in range(len(own) - 1, 0, -1):
            own[node] += below[node]
            below[parents[node]] += own[node]
        own[0] += below[0]
        sums[:, column] = own
    return sums
