"""Nodes of the fast lane while the tree grows, and their way into the arrays of a tree.

Only what cannot be told from the rest is kept, so that a tree with a leaf for each row takes a third of the memory that
the general lane's tables would: 32 bytes and the statistics. Its answer, its shares, its parent follow from these::

    ints    feature | first child (the other is the next) | last row of the left side | first row of the right side
    reals   weight | gain
    stats   class weights, or (weight, mean, sum of squared deviations)
"""

import math

import numpy as np

from espalier.kernels.jit import compiled, inner
from espalier.kernels.surrogates import middle_of

FEATURE = 0
FIRST_CHILD = 1
LAST_LEFT = 2
FIRST_RIGHT = 3
N_INTS = 4

WEIGHT = 0
GAIN = 1
N_REALS = 2


@inner
def start_leaf(ints, reals, node):
    """Write a leaf into the tables."""
    for k in range(N_INTS):
        ints[node, k] = -1
    reals[node, GAIN] = math.nan


@compiled
def lay_out(n_nodes, ints, reals, stats, sizes, at, feature, size, weight, gain, statistics, beside):
    """Write nodes in preorder, from place `at` on; returns the place of each, int32 (n_nodes).

    ints, reals, stats: the tables of a part, children behind their parents. sizes: int32 (n_nodes), what a leaf of them
    stands for: 1, or the nodes of the part that grew below it; written. The others are the arrays of the whole tree:
    feature, size: int32; weight, gain: float64; statistics: float64 (n, width); beside: int32 (n, 2), the rows at the
    sides of the cut.
    """
    for node in range(n_nodes - 1, -1, -1):
        first = ints[node, FIRST_CHILD]
        if first >= 0:
            sizes[node] = 1 + sizes[first] + sizes[first + 1]
    places = np.empty(n_nodes, np.int32)
    places[0] = at
    for node in range(n_nodes):
        place = places[node]
        first = ints[node, FIRST_CHILD]
        if first >= 0:
            places[first] = place + 1
            places[first + 1] = place + 1 + sizes[first]
        feature[place] = ints[node, FEATURE]
        size[place] = sizes[node]
        weight[place] = reals[node, WEIGHT]
        gain[place] = reals[node, GAIN]
        beside[place, 0], beside[place, 1] = ints[node, LAST_LEFT], ints[node, FIRST_RIGHT]
        for k in range(stats.shape[1]):
            statistics[place, k] = stats[node, k]
    return places


@compiled
def write_thresholds(below, above, nodes, threshold):
    """Write the thresholds of the nodes that test one attribute, halfway between the values at their sides.

    below, above: float64, one a node. nodes: int64. threshold: float64, of the tree.
    """
    for at in range(nodes.size):
        threshold[nodes[at]] = middle_of(below[at], above[at])
