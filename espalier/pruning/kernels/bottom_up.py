"""Nodes that become leaves: in one pass, the most helpful first, or by the weakest link.

Trees are in preorder, so that a loop from the last node to the first visits every child before its parent.
"""

import numpy as np

from espalier.kernels.jit import compiled, inner


@compiled
def reduce_errors(parent, is_leaf, loss, ties_prune, prune_root, from_initial, slack):
    """Replace nodes by leaves from the last to the first: reduced-error pruning in one pass (Quinlan 1987).

    loss: float64 (n), of each node as a leaf. A node is pruned if the tree's loss is then not above (or, without
    `ties_prune`, is below) that of the tree as pruned so far, or with `from_initial` that of the unpruned tree.

    Returns (nodes in the order in which they were pruned, int32; the loss of each one's subtree before, float64).
    """
    n_nodes = len(parent)
    below = np.where(is_leaf, loss, 0.0)
    gone, before = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    n_gone = 0
    saved = 0.0
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
    return gone[:n_gone], before[:n_gone]


@inner
def better(key, weight, one, other):
    """Return whether node `one` comes before `other`: larger key, then heavier, then the earlier node."""
    if key[one] != key[other]:
        return key[one] > key[other]
    if weight[one] != weight[other]:
        return weight[one] > weight[other]
    return one < other


@inner
def update(winners, n_places, key, weight, node):
    """Replay the matches from a node's place to the top of the tournament."""
    place = (n_places + node) // 2
    while place >= 1:
        one, other = winners[2 * place], winners[2 * place + 1]
        winners[place] = one if other < 0 or (one >= 0 and better(key, weight, one, other)) else other
        place //= 2


@inner
def seed(winners, n_places, n_nodes, key, weight):
    """Fill the tournament: nodes at n_places + node, -1 beyond; winners[1] is the best."""
    for place in range(n_places):
        winners[n_places + place] = place if place < n_nodes else -1
    for place in range(n_places - 1, 0, -1):
        one, other = winners[2 * place], winners[2 * place + 1]
        winners[place] = one if other < 0 or (one >= 0 and better(key, weight, one, other)) else other


@inner
def remove(winners, n_places, key, weight, node, stop):
    """Remove the nodes from `node` up to `stop` from the tournament."""
    low, high = n_places + node, n_places + stop - 1
    for place in range(node, stop):
        key[place] = -np.inf
    low //= 2
    high //= 2
    while low >= 1:
        for place in range(low, high + 1):
            one, other = winners[2 * place], winners[2 * place + 1]
            winners[place] = one if other < 0 or (one >= 0 and better(key, weight, one, other)) else other
        low //= 2
        high //= 2


@compiled
def prune_greedily(parent, size, is_leaf, loss, ties_prune, prune_root, from_initial, slack):
    """Replace the node that helps most by a leaf, again and again; parameters and results as in `reduce_errors`.

    Of nodes that help equally the one that removes most leaves, then the earlier one. O((n + Σ depth) log n).
    """
    n_nodes = len(parent)
    below = np.where(is_leaf, loss, 0.0)
    leaves = np.where(is_leaf, 1.0, 0.0)
    for node in range(n_nodes - 1, 0, -1):
        below[parent[node]] += below[node]
        leaves[parent[node]] += leaves[node]
    # Whole steps of the slack, so that rounding does not decide between nodes that help alike.
    key = np.where(is_leaf, -np.inf, np.rint((below - loss) / slack) * slack)
    if not prune_root:
        key[0] = -np.inf
    n_places = 1
    while n_places < n_nodes:
        n_places *= 2
    winners = np.empty(2 * n_places, np.int32)
    seed(winners, n_places, n_nodes, key, leaves)
    gone, before = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    n_gone = 0
    saved = 0.0
    while True:
        node = winners[1]
        excess = -key[node] - saved if from_initial else -key[node]
        if key[node] == -np.inf or not (excess <= slack if ties_prune else excess < -slack):
            break
        gone[n_gone], before[n_gone] = node, below[node]
        n_gone += 1
        change, fewer = loss[node] - below[node], leaves[node] - 1.0
        saved -= change
        remove(winners, n_places, key, leaves, node, node + size[node])
        above = parent[node]
        while above >= 0:
            below[above] += change
            leaves[above] -= fewer
            if above > 0 or prune_root:
                key[above] = np.rint((below[above] - loss[above]) / slack) * slack
                update(winners, n_places, key, leaves, above)
            above = parent[above]
    return gone[:n_gone], before[:n_gone]


@compiled
def weakest_links(parent, size, is_leaf, risk, slack):
    """Prune what saves nothing, then the weakest link again and again (Breiman et al. 1984, section 3.3).

    risk: float64 (n), of each node as a leaf. slack: what a leaf may save and still count as nothing. The first pass
    goes from the last node to the first, since a risk that is not a sum over rows may rise with a split and fall below
    it.

    Returns (nodes in the order in which they were pruned, int32; the price of each saved leaf, float64; the risk of
    each one's subtree before, float64). O((n + Σ depth) log n).
    """
    n_nodes = len(parent)
    below, leaves = np.where(is_leaf, risk, 0.0), np.where(is_leaf, 1.0, 0.0)
    gone, price, before = np.empty(n_nodes, np.int32), np.empty(n_nodes), np.empty(n_nodes)
    key = np.full(n_nodes, -np.inf)
    n_gone = 0
    for node in range(n_nodes - 1, -1, -1):
        if not is_leaf[node]:
            if risk[node] - below[node] <= slack * (leaves[node] - 1.0):
                gone[n_gone], price[n_gone], before[n_gone] = node, 0.0, below[node]
                n_gone += 1
                below[node], leaves[node] = risk[node], 1.0
                key[node : node + size[node]] = -np.inf
            else:
                key[node] = (below[node] - risk[node]) / (leaves[node] - 1.0)
        if node > 0:
            below[parent[node]] += below[node]
            leaves[parent[node]] += leaves[node]
    n_places = 1
    while n_places < n_nodes:
        n_places *= 2
    winners = np.empty(2 * n_places, np.int32)
    seed(winners, n_places, n_nodes, key, leaves)
    while key[winners[1]] > -np.inf:
        node = winners[1]
        gone[n_gone], price[n_gone], before[n_gone] = node, -key[node], below[node]
        n_gone += 1
        change, fewer = risk[node] - below[node], leaves[node] - 1.0
        remove(winners, n_places, key, leaves, node, node + size[node])
        above = parent[node]
        while above >= 0:
            below[above] += change
            leaves[above] -= fewer
            key[above] = (below[above] - risk[above]) / (leaves[above] - 1.0)
            update(winners, n_places, key, leaves, above)
            above = parent[above]
    return gone[:n_gone], price[:n_gone], before[:n_gone]


@compiled
def earliest_above(parent, step):
    """Return the least `step` (int64 (n)) of each node's ancestors, int64 (n); the largest number for the root."""
    earliest = np.empty(len(parent), np.int64)
    earliest[0] = np.iinfo(np.int64).max
    for node in range(1, len(parent)):
        earliest[node] = min(earliest[parent[node]], step[parent[node]])
    return earliest
