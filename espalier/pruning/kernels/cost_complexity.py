"""Weakest-link pruning: which nodes become leaves, and at which price of a leaf (alpha) each node becomes one.

Trees are in preorder, so that a loop from the last node to the first visits every child before its parent.
"""

import cython
import numpy as np
from cython.cimports.espalier.pruning.kernels.tournament import Tournament, remove, update
from cython.cimports.libc.math import INFINITY


def weakest_links(parent, size, is_leaf, risk, slack):
    """Prune subtrees that save nothing, then repeatedly the weakest link (Breiman et al. 1984, section 3.3).

    risk: float64 (n), the risk of each node as a leaf. slack: the largest saving per removed leaf that counts as no
    saving. The first pass compares each node with its subtree as pruned so far, children before parents. If the risk
    is not a sum over rows, a split may raise the risk, and the splits below it may lower the risk again.

    Returns three arrays, one entry per pruned node in the order of pruning: the node, int32; the price of a leaf at
    which it was pruned, float64; the risk of its subtree just before, float64. Time: O((n + Σ depth) log n).
    """
    n_nodes = parent.shape[0]
    nodes, prices, risks = np.empty(n_nodes, np.int32), np.empty(n_nodes), np.empty(n_nodes)
    gone: cython.int[::1] = nodes
    price: cython.double[::1] = prices
    before: cython.double[::1] = risks
    below: cython.double[::1] = np.where(is_leaf, risk, 0.0)
    leaves: cython.double[::1] = np.where(is_leaf, 1.0, 0.0)
    key: cython.double[::1] = np.full(n_nodes, -np.inf)
    n_gone = 0
    with cython.nogil:
        for node in range(n_nodes - 1, -1, -1):
            if not is_leaf[node]:
                if risk[node] - below[node] <= slack * (leaves[node] - 1.0):
                    gone[n_gone], price[n_gone], before[n_gone] = node, 0.0, below[node]
                    n_gone += 1
                    below[node], leaves[node] = risk[node], 1.0
                    key[node : node + size[node]] = -INFINITY
                else:
                    key[node] = (below[node] - risk[node]) / (leaves[node] - 1.0)
            if node > 0:
                below[parent[node]] += below[node]
                leaves[parent[node]] += leaves[node]
    tournament = Tournament(key, leaves)
    with cython.nogil:
        while key[tournament.winners[1]] > -INFINITY:
            node = tournament.winners[1]
            gone[n_gone], price[n_gone], before[n_gone] = node, -key[node], below[node]
            n_gone += 1
            change, fewer = risk[node] - below[node], leaves[node] - 1.0
            remove(tournament, node, node + size[node])
            above = parent[node]
            while above >= 0:
                below[above] += change
                leaves[above] -= fewer
                key[above] = (below[above] - risk[above]) / (leaves[above] - 1.0)
                update(tournament, above)
                above = parent[above]
    return nodes[:n_gone], prices[:n_gone], risks[:n_gone]


def earliest_above(parent, step):
    """Return the least `step` of each node's ancestors, and for the root the largest int64: int64 (n), like `step`."""
    result = np.empty(parent.shape[0], np.int64)
    earliest: cython.longlong[::1] = result
    earliest[0] = np.iinfo(np.int64).max
    with cython.nogil:
        for node in range(1, parent.shape[0]):
            earliest[node] = min(earliest[parent[node]], step[parent[node]])
    return result
