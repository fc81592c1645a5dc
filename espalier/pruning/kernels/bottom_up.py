"""Reduced-error pruning: in one pass from the last node to the first, or greedily.

Trees are in preorder, so that a loop from the last node to the first visits every child before its parent.
"""

import cython
import numpy as np
from cython.cimports.espalier.pruning.kernels.tournament import Tournament, remove, update
from cython.cimports.libc.math import INFINITY, rint


def reduce_errors(parent, is_leaf, loss, ties_prune, prune_root, from_initial, slack):
    """Replace nodes by leaves from the last to the first: reduced-error pruning in one pass (Quinlan 1987).

    loss: float64 (n), the loss of each node as a leaf. With `ties_prune`, a node is pruned if the tree's loss rises by
    at most `slack`; without it, if the loss falls by more than `slack`. The comparison is with the tree as pruned so
    far or, with `from_initial`, with the unpruned tree. The root is pruned only with `prune_root`.

    Returns two arrays: the nodes in the order of pruning, int32; the loss of each node's subtree just before, float64.
    """
    n_nodes = parent.shape[0]
    nodes, losses = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    gone: cython.int[::1] = nodes
    before: cython.double[::1] = losses
    below: cython.double[::1] = np.where(is_leaf, loss, 0.0)
    n_gone = 0
    saved: cython.double = 0.0
    with cython.nogil:
        for node in range(n_nodes - 1, -1, -1):
            if not is_leaf[node] and (node > 0 or prune_root):
                change = loss[node] - below[node]
                excess = change - saved if from_initial else change
                if excess <= slack if ties_prune else excess < -slack:
                    gone[n_gone], before[n_gone] = node, below[node]
                    n_gone += 1
                    saved -= change
                    below[node] = loss[node]
            if node > 0:
                below[parent[node]] += below[node]
    return nodes[:n_gone], losses[:n_gone]


def prune_greedily(parent, size, is_leaf, loss, ties_prune, prune_root, from_initial, slack):
    """Repeatedly prune the node whose pruning lowers the loss most; parameters and results as in `reduce_errors`.

    Ties go to the node with most leaves below it, further ties to the earlier node. O((n + Σ depth) log n).
    """
    n_nodes = parent.shape[0]
    nodes, losses = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    gone: cython.int[::1] = nodes
    before: cython.double[::1] = losses
    below: cython.double[::1] = np.where(is_leaf, loss, 0.0)
    leaves: cython.double[::1] = np.where(is_leaf, 1.0, 0.0)
    key: cython.double[::1] = np.full(n_nodes, -np.inf)
    with cython.nogil:
        for node in range(n_nodes - 1, -1, -1):
            if not is_leaf[node] and (node > 0 or prune_root):
                # A multiple of the slack, so that rounding errors do not decide between equally good nodes.
                key[node] = rint((below[node] - loss[node]) / slack) * slack
            if node > 0:
                below[parent[node]] += below[node]
                leaves[parent[node]] += leaves[node]
    tournament = Tournament(key, leaves)
    n_gone = 0
    saved: cython.double = 0.0
    with cython.nogil:
        while True:
            node = tournament.winners[1]
            excess = -key[node] - saved if from_initial else -key[node]
            if key[node] == -INFINITY or not (excess <= slack if ties_prune else excess < -slack):
                break
            gone[n_gone], before[n_gone] = node, below[node]
            n_gone += 1
            change, fewer = loss[node] - below[node], leaves[node] - 1.0
            saved -= change
            remove(tournament, node, node + size[node])
            above = parent[node]
            while above >= 0:
                below[above] += change
                leaves[above] -= fewer
                if above > 0 or prune_root:
                    key[above] = rint((below[above] - loss[above]) / slack) * slack
                    update(tournament, above)
                above = parent[above]
    return nodes[:n_gone], losses[:n_gone]
