"""Nodes that become leaves: in one pass, the most helpful first, or by the weakest link.

Trees are in preorder, so that a loop from the last node to the first visits every child before its parent.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, rint


class Tournament:
    """A tournament tree of nodes. The best has the largest key, then the largest weight, then the smallest number.

    ``winners[n_places + i]`` is node i, or -1. ``winners[k]`` is the better one of ``winners[2k]`` and
    ``winners[2k + 1]``, so ``winners[1]`` is the best.
    """

    def __init__(self, key, weight):
        self.key, self.weight, self.n_places = key, weight, 1
        while self.n_places < self.key.shape[0]:
            self.n_places *= 2
        self.winners = np.full(2 * self.n_places, -1, np.int32)
        seed(self)


def winner(tournament, place):
    """Return the better of the two nodes below a place."""
    one, other = tournament.winners[2 * place], tournament.winners[2 * place + 1]
    if other < 0:
        return one
    if tournament.key[one] != tournament.key[other]:
        return one if tournament.key[one] > tournament.key[other] else other
    return one if tournament.weight[one] >= tournament.weight[other] else other


def seed(tournament):
    """Play all matches."""
    for node in range(tournament.key.shape[0]):
        tournament.winners[tournament.n_places + node] = node
    for place in range(tournament.n_places - 1, 0, -1):
        tournament.winners[place] = winner(tournament, place)


def update(tournament, node):
    """Replay the matches of a node whose key or weight has changed."""
    place = (tournament.n_places + node) // 2
    while place >= 1:
        tournament.winners[place] = winner(tournament, place)
        place //= 2


def remove(tournament, node, stop):
    """Remove the nodes from `node` up to `stop`."""
    tournament.key[node:stop] = -INFINITY
    low, high = (tournament.n_places + node) // 2, (tournament.n_places + stop - 1) // 2
    while low >= 1:
        for place in range(low, high + 1):
            tournament.winners[place] = winner(tournament, place)
        low //= 2
        high //= 2


def reduce_errors(parent, is_leaf, loss, ties_prune, prune_root, from_initial, slack):
    """Replace nodes by leaves from the last to the first: reduced-error pruning in one pass (Quinlan 1987).

    loss: float64 (n), of each node as a leaf. A node is pruned if the tree's loss is then not above (or, without
    `ties_prune`, is below) that of the tree as pruned so far, or with `from_initial` that of the unpruned tree.

    Returns (nodes in the order in which they were pruned, int32; the loss of each one's subtree before, float64).
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
    """Repeatedly replace the node that helps most by a leaf; parameters and results as in `reduce_errors`.

    Of nodes that help equally the one that removes most leaves, then the earlier one. O((n + Σ depth) log n).
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
                # In multiples of the slack, so that rounding errors do not decide between nodes that help equally.
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


def weakest_links(parent, size, is_leaf, risk, slack):
    """Prune subtrees that save nothing, then repeatedly the weakest link (Breiman et al. 1984, section 3.3).

    risk: float64 (n), of each node as a leaf. slack: savings up to this count as nothing. The first pass
    goes from the last node to the first, since a risk that is not a sum over rows may rise with a split and fall below
    it.

    Returns (nodes in the order in which they were pruned, int32; the price of each saved leaf, float64; the risk of
    each one's subtree before, float64). O((n + Σ depth) log n).
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
    """Return the least `step` (int64 (n)) of each node's ancestors, int64 (n); the largest number for the root."""
    result = np.empty(parent.shape[0], np.int64)
    earliest: cython.longlong[::1] = result
    earliest[0] = np.iinfo(np.int64).max
    with cython.nogil:
        for node in range(1, parent.shape[0]):
            earliest[node] = min(earliest[parent[node]], step[parent[node]])
    return result
