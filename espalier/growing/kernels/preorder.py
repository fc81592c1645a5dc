"""Nodes in the order of their making -> preorder; which subtrees do not pay; thresholds of the binary grower."""

import numpy as np

from espalier.growing.kernels.surrogates import middle_of
from espalier.kernels.jit import compiled

COLLAPSE_SLACK = 1e-3


@compiled
def are_futile(first_child, n_children, stats):
    """Say of each inner node whether its subtree makes no fewer training errors than a leaf would (Quinlan, 1993).

    first_child, n_children: int32 (n), children behind their parents. stats: float64 (n, classes). Errors of a subtree
    are those of its leaves as grown. Returns bool (n).
    """
    n_nodes = n_children.size
    futile = np.zeros(n_nodes, np.bool_)
    below = np.zeros(n_nodes, np.float64)
    for node in range(n_nodes - 1, -1, -1):
        whole, largest = 0.0, 0.0
        for k in range(stats.shape[1]):
            whole += stats[node, k]
            largest = max(largest, stats[node, k])
        own = whole - largest
        if n_children[node] == 0:
            below[node] = own
        for branch in range(n_children[node] - 1, -1, -1):
            below[node] += below[first_child[node] + branch]
        futile[node] = n_children[node] > 0 and below[node] >= own - COLLAPSE_SLACK
    return futile


@compiled
def preorder(first_child, n_children):
    """Return (nodes that are reached from the root, in preorder; how many are in the subtree of each), both int32.

    first_child, n_children: int32 (n), children behind their parents.
    """
    n_nodes = n_children.size
    sizes = np.empty(n_nodes, np.int32)
    for node in range(n_nodes - 1, -1, -1):
        sizes[node] = 1
        for branch in range(n_children[node]):
            sizes[node] += sizes[first_child[node] + branch]
    order, size = np.empty(sizes[0], np.int32), np.empty(sizes[0], np.int32)
    places = np.full(n_nodes, -1, np.int32)
    places[0] = 0
    for node in range(n_nodes):
        place = places[node]
        if place < 0:
            continue  # below a subtree that was collapsed
        order[place], size[place] = node, sizes[node]
        place += 1
        for child in range(first_child[node], first_child[node] + n_children[node]):
            places[child] = place
            place += sizes[child]
    return order, size


@compiled
def copy_slices(source, first, start, target):
    """Copy ``source[first[i]:…]`` to ``target[start[i]:start[i + 1]]`` for each i; all int32."""
    for i in range(first.size):
        offset = first[i] - start[i]
        for at in range(start[i], start[i + 1]):
            target[at] = source[at + offset]


@compiled
def write_thresholds(below, above, nodes, threshold):
    """Write the thresholds of the nodes that test one attribute, halfway between the values at their sides.

    below, above: float64, one a node. nodes: int64. threshold: float64, of the tree.
    """
    for at in range(nodes.size):
        threshold[nodes[at]] = middle_of(below[at], above[at])
