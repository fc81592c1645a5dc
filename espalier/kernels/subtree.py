"""Sums and prunings over a tree in preorder: rows spread over all nodes, weakest links, raised branches.

A *shape* says what each node does, int32 (n): the node whose test and children it uses, -1 where it is a leaf. In a
tree as it was grown each inner node has its own; a node in whose place its branch c was put has ``shape[c]``.

*Pieces* are parts of rows: a row with a missing value goes down several branches, each with a share of its weight. The
pieces of a subtree stand together::

    order  (preorder)   0    1    2    3    4
    piece               [~4, row 1  | row 0 | row 7, ~4 | …]            leaves 2, 3, 4 …
    lo                  0    0    0    2    3                           hi of a node: lo of the node after its subtree

A piece that is not its whole row stands there as ``~row``, below 0.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from espalier.kernels import limits
from espalier.kernels.codes import NUMERIC, UNKNOWN
from espalier.kernels.jit import compiled, inner, maker, shared
from espalier.kernels.limits import exact_errors, normal_errors

__all__ = [
    "Nodes",
    "Substitutes",
    "arrange",
    "distribute",
    "earliest_above",
    "prune_bottom_up",
    "prune_greedily",
    "prune_pessimistically",
    "weakest_links",
]

for _name in ("normal_errors", "larger_errors", "exact_errors", "exact_limit", "beta_ratio", "beta_series"):
    shared(getattr(limits, _name))

KEEP_SHARES = 0
RENEW_KNOWN = 1
RENEW_ALL = 2
"""The shares of a test's branches: as they are, of the rows that know its value, or of all rows."""
SLACK = 0.1
"""A leaf or a raised branch may be this many errors worse than the subtree (Quinlan 1993)."""
ABOVE_ROUNDING = 1.0 + 1e-9
STRETCH = 64
"""So many rows are tried in a branch before it is asked whether more of them could still let it rise; then twice as
many, to `LONGEST_STRETCH`."""
LONGEST_STRETCH = 4096


class Nodes(NamedTuple):
    """The arrays of `espalier.tree.Tree` that say where a row goes."""

    child_start: Any
    child: Any
    feature: Any
    test: Any
    threshold: Any
    code_start: Any
    code_branch: Any
    fallback: Any


class Substitutes(NamedTuple):
    """The arrays of `espalier.tree.Surrogates`; ``start`` is all zeros where there are none."""

    start: Any
    feature: Any
    test: Any
    threshold: Any
    below: Any
    code_start: Any
    code_branch: Any


@inner
def own_branch(nodes, split, values, row):  # type: ignore[no-untyped-def]
    """Give the branch that a row's own value takes at a test, -1 where it has none or one never seen there.

    values: float64 (F, n), codes of categories, NaN missing.
    """
    value = values[nodes.feature[split], row]
    test = nodes.test[split]
    if test == UNKNOWN:
        return 1 if math.isnan(value) else 0
    if math.isnan(value):
        return -1
    if test == NUMERIC:
        return 0 if value <= nodes.threshold[split] else 1
    place = nodes.code_start[split] + int(value)
    return int(nodes.code_branch[place]) if place < nodes.code_start[split + 1] else -1


@inner
def other_branch(nodes, substitutes, split, values, row):  # type: ignore[no-untyped-def]
    """Give the branch of a row without a value of its own, -1 for all of them."""
    for other in range(substitutes.start[split], substitutes.start[split + 1]):
        value = values[substitutes.feature[other], row]
        if math.isnan(value):
            continue
        if substitutes.test[other] == NUMERIC:
            below = int(substitutes.below[other])
            return below if value <= substitutes.threshold[other] else 1 - below
        place = substitutes.code_start[other] + int(value)
        if place < substitutes.code_start[other + 1] and substitutes.code_branch[place] >= 0:
            return int(substitutes.code_branch[place])
    return int(nodes.fallback[split])


@maker
def longer(array, least):  # type: ignore[no-untyped-def]
    """Give a copy of an array with room for `least` entries and more to come."""
    made = np.empty(max(2 * len(array), least), array.dtype)
    copy(array, 0, made, 0, len(array))
    return made


@maker
def first_of(array, count):  # type: ignore[no-untyped-def]
    """Give a copy of the first `count` entries of an array."""
    made = np.empty(count, array.dtype)
    copy(array, 0, made, 0, count)
    return made


@inner
def copy(array, start, to, at, count):  # type: ignore[no-untyped-def]
    """Copy ``array[start : start + count]`` to ``to[at : at + count]``."""
    for place in range(count):
        to[at + place] = array[start + place]


@inner
def fill(array, count, value):  # type: ignore[no-untyped-def]
    """Set the first `count` entries of an array."""
    for place in range(count):
        array[place] = value


@compiled
def distribute(  # type: ignore[no-untyped-def]
    nodes, substitutes, shape, shares, values, start, rows, weights, target, n_classes, answers, sums, renew
):
    """Do what `spread` does, for Python, which asks for the sums alone."""
    spread(
        nodes, substitutes, shape, shares, values, start, rows, weights, target, n_classes, answers, sums, renew, 0,
        np.zeros(0, np.bool_),
    )  # fmt: skip


@maker
def spread(  # type: ignore[no-untyped-def]
    nodes, substitutes, shape, shares, values, start, rows, weights, target, n_classes, answers, sums, renew, keep,
    divides,
):  # fmt: skip
    """Spread rows over all nodes of the subtree at `start`, and add them up at each.

    shares: float64 (children), in the order of ``nodes.child``; those of the visited tests are written anew as
    `renew` says. rows: int32, weights: float64: what arrives at `start`. target: float64 (n): class code
    (below 0: none of the classes) or number. sums: float64 (nodes, width), written for every node visited: the weight
    of each class and at last of none of them (width = n_classes + 1); or, with n_classes 0 and d = target -
    answers[node], the sums of w, w·d, w·d² and w·d⁴ (width 4).

    With `keep` the pieces are given, a part of a row as ~row: in `rows` too, and as many columns more of `sums` add up
    the parts alone, the first ones what is whole. divides: bool (n), written with `keep`: whether a row that arrives
    at the node goes several ways there.

    Returns (order, size, lo, rows, weights): the nodes visited in preorder, int32; the size of each one's subtree,
    int32; the first of its pieces, int64; and, with `keep`, the pieces, leaf by leaf.
    """
    n_rows = len(rows)
    row, weight = np.empty(n_rows + 16, np.int32), np.empty(n_rows + 16)
    copy(rows, 0, row, 0, n_rows)
    copy(weights, 0, weight, 0, n_rows)
    from_row, from_weight = np.empty(n_rows + 16, np.int32), np.empty(n_rows + 16)
    side = np.empty(n_rows + 16, np.int32)
    out_row, out_weight = np.empty(n_rows + 16 if keep else 0, np.int32), np.empty(n_rows + 16 if keep else 0)
    counts, at, known = np.empty(16, np.int64), np.empty(16, np.int64), np.empty(16)
    waiting, waiting_lo, waiting_up = np.empty(64, np.int32), np.empty(64, np.int64), np.empty(64, np.int32)
    order, lo, up = np.empty(64, np.int32), np.empty(64, np.int64), np.empty(64, np.int32)
    waiting[0], waiting_lo[0], waiting_up[0] = start, 0, -1
    n_waiting, n_order, n_out, end = 1, 0, 0, n_rows
    width = sums.shape[1]
    while n_waiting > 0:
        n_waiting -= 1
        node, first = waiting[n_waiting], waiting_lo[n_waiting]
        for place in range(width):
            sums[node, place] = 0.0
        if n_classes > 0:
            for piece in range(first, end):
                own = row[piece]
                code = int(target[own if own >= 0 else ~own])
                column = code if code >= 0 else n_classes
                sums[node, column if own >= 0 else column + n_classes + 1] += weight[piece]
        else:
            answer = answers[node]
            for piece in range(first, end):
                share, miss = weight[piece], target[row[piece]] - answer
                square = miss * miss
                sums[node, 0] += share
                sums[node, 1] += share * miss
                sums[node, 2] += share * square
                sums[node, 3] += share * square * square
        if n_order == len(order):
            order, lo, up = longer(order, 0), longer(lo, 0), longer(up, 0)
        order[n_order], lo[n_order], up[n_order] = node, n_out, waiting_up[n_waiting]
        n_order += 1
        split = shape[node]
        n_pieces = end - first
        if split < 0:
            if keep:
                if n_out + n_pieces > len(out_row):
                    out_row, out_weight = longer(out_row, n_out + n_pieces), longer(out_weight, n_out + n_pieces)
                copy(row, first, out_row, n_out, n_pieces)
                copy(weight, first, out_weight, n_out, n_pieces)
                n_out += n_pieces
            end = first
            continue
        base = nodes.child_start[split]
        n_branches = nodes.child_start[split + 1] - base
        if n_branches > len(counts):
            counts, at, known = longer(counts, n_branches), longer(at, n_branches), longer(known, n_branches)
        if n_pieces > len(side):
            side, from_row = longer(side, n_pieces), longer(from_row, n_pieces)
            from_weight = longer(from_weight, n_pieces)
        fill(counts, n_branches, 0)
        fill(known, n_branches, 0.0)
        n_unknown = 0
        for piece in range(n_pieces):
            piece_row, own_weight = row[first + piece], weight[first + piece]
            own = piece_row if piece_row >= 0 else ~piece_row
            branch = own_branch(nodes, split, values, own)
            if branch >= 0:
                known[branch] += own_weight
            else:
                branch = other_branch(nodes, substitutes, split, values, own)
                if branch >= 0 and renew == RENEW_ALL:
                    known[branch] += own_weight
            if branch >= 0:
                counts[branch] += 1
            else:
                n_unknown += 1
                if keep:
                    piece_row = ~own
            from_row[piece], from_weight[piece], side[piece] = piece_row, own_weight, branch
        if keep:
            divides[node] = n_unknown > 0
        if renew != KEEP_SHARES:
            total = 0.0
            for branch in range(n_branches):
                total += known[branch]
            if total > 0.0:
                for branch in range(n_branches):
                    shares[base + branch] = known[branch] / total
        n_needed = n_pieces - n_unknown
        if n_unknown > 0:
            for branch in range(n_branches):
                if shares[base + branch] > 0.0:
                    counts[branch] += n_unknown
                    n_needed += n_unknown
        if first + n_needed > len(row):
            row, weight = longer(row, first + n_needed), longer(weight, first + n_needed)
        if n_waiting + n_branches > len(waiting):
            waiting, waiting_lo = longer(waiting, n_waiting + n_branches), longer(waiting_lo, n_waiting + n_branches)
            waiting_up = longer(waiting_up, n_waiting + n_branches)
        end = first
        for branch in range(n_branches - 1, -1, -1):
            at[branch] = end
            waiting[n_waiting], waiting_lo[n_waiting] = nodes.child[base + branch], end
            waiting_up[n_waiting] = n_order - 1
            n_waiting += 1
            end += counts[branch]
        for piece in range(n_pieces):
            branch = side[piece]
            if branch >= 0:
                row[at[branch]], weight[at[branch]] = from_row[piece], from_weight[piece]
                at[branch] += 1
                continue
            for each in range(n_branches):
                share = shares[base + each]
                if share > 0.0:
                    row[at[each]], weight[at[each]] = from_row[piece], from_weight[piece] * share
                    at[each] += 1
    size = np.empty(n_order, np.int32)
    fill(size, n_order, 1)
    for place in range(n_order - 1, 0, -1):
        size[up[place]] += size[place]
    return (
        first_of(order, n_order), size, first_of(lo, n_order), first_of(out_row, n_out), first_of(out_weight, n_out)
    )  # fmt: skip


@compiled
def arrange(child_start, child, shape):  # type: ignore[no-untyped-def]
    """Do what `preorder` does, for Python."""
    return preorder(child_start, child, shape)


@maker
def preorder(child_start, child, shape):  # type: ignore[no-untyped-def]
    """List the nodes of a shape in preorder: (nodes, place of each one's parent, size of its subtree), int32 each."""
    order, up = np.empty(64, np.int32), np.empty(64, np.int32)
    waiting, waiting_up = np.empty(64, np.int32), np.empty(64, np.int32)
    waiting[0], waiting_up[0] = 0, -1
    n_waiting, n_order = 1, 0
    while n_waiting > 0:
        n_waiting -= 1
        if n_order == len(order):
            order, up = longer(order, 0), longer(up, 0)
        node = waiting[n_waiting]
        order[n_order], up[n_order] = node, waiting_up[n_waiting]
        n_order += 1
        if shape[node] < 0:
            continue
        base, last = child_start[shape[node]], child_start[shape[node] + 1]
        if n_waiting + last - base > len(waiting):
            waiting = longer(waiting, n_waiting + last - base)
            waiting_up = longer(waiting_up, n_waiting + last - base)
        for place in range(last - 1, base - 1, -1):
            waiting[n_waiting], waiting_up[n_waiting] = child[place], n_order - 1
            n_waiting += 1
    size = np.empty(n_order, np.int32)
    fill(size, n_order, 1)
    for place in range(n_order - 1, 0, -1):
        size[up[place]] += size[place]
    return first_of(order, n_order), first_of(up, n_order), size


@compiled
def prune_bottom_up(parent, is_leaf, loss, ties_prune, prune_root, from_initial, slack):  # type: ignore[no-untyped-def]
    """Make leaves of nodes from the last to the first: reduced-error pruning in one pass (Quinlan 1987).

    loss: float64 (n), of each node as a leaf. A node goes where the tree's loss then is not above (or, without
    `ties_prune`, is below) that of the tree as pruned so far, or with `from_initial` that of the unpruned tree.

    Returns (nodes in the order in which they went, int32; each one's loss below before, float64).
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
def better(key, weight, one, other):  # type: ignore[no-untyped-def]
    """Whether node `one` stands before `other`: larger key, then heavier, then the earlier node."""
    if key[one] != key[other]:
        return key[one] > key[other]
    if weight[one] != weight[other]:
        return weight[one] > weight[other]
    return one < other


@inner
def update(winners, n_places, key, weight, node):  # type: ignore[no-untyped-def]
    """Play the matches on the way from a node's place to the top of the tournament anew."""
    place = (n_places + node) // 2
    while place >= 1:
        one, other = winners[2 * place], winners[2 * place + 1]
        winners[place] = one if other < 0 or (one >= 0 and better(key, weight, one, other)) else other
        place //= 2


@inner
def seed(winners, n_places, n_nodes, key, weight):  # type: ignore[no-untyped-def]
    """Fill the tournament: nodes at n_places + node, -1 beyond; winners[1] is the best."""
    for place in range(n_places):
        winners[n_places + place] = place if place < n_nodes else -1
    for place in range(n_places - 1, 0, -1):
        one, other = winners[2 * place], winners[2 * place + 1]
        winners[place] = one if other < 0 or (one >= 0 and better(key, weight, one, other)) else other


@inner
def remove(winners, n_places, key, weight, node, stop):  # type: ignore[no-untyped-def]
    """Take the nodes from `node` up to `stop` out of the tournament."""
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
def prune_greedily(parent, size, is_leaf, loss, ties_prune, prune_root, from_initial, slack):  # type: ignore[no-untyped-def]
    """Make a leaf of the node that helps most, again and again; parameters and results as in `prune_bottom_up`.

    Among nodes that help alike the one that takes most leaves away, then the earlier one. O((n + Σ depth) log n).
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
def weakest_links(parent, size, is_leaf, risk, slack):  # type: ignore[no-untyped-def]
    """Prune what saves nothing, then the weakest link again and again (Breiman et al. 1984, section 3.3).

    risk: float64 (n), of each node as a leaf. slack: what a leaf may save and still save nothing. The first pass goes
    from the last node to the first, since a risk that is not a sum over rows may rise with a split and fall below it.

    Returns (nodes in the order in which they went, int32; what each leaf saved costs there, float64; risk of each one's
    subtree before, float64). O((n + Σ depth) log n).
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
def earliest_above(parent, step):  # type: ignore[no-untyped-def]
    """Give the least `step` (int64 (n)) of each node's ancestors, int64 (n); the largest number for the root."""
    earliest = np.empty(len(parent), np.int64)
    earliest[0] = np.iinfo(np.int64).max
    for node in range(1, len(parent)):
        earliest[node] = min(earliest[parent[node]], step[parent[node]])
    return earliest


@inner
def estimated_errors(stats, node, confidence, z, quantile, exact):  # type: ignore[no-untyped-def]
    """Give the upper limit of the errors of a node as a leaf, from its class weights."""
    weight, most = 0.0, 0.0
    for place in range(stats.shape[1]):
        weight += stats[node, place]
        most = max(most, stats[node, place])
    errors = weight - most
    if confidence > 0.5 or weight <= 0.0:
        return errors
    if exact is not None:
        return errors + exact_errors(weight, errors, confidence)
    return errors + normal_errors(weight, errors, confidence, z, quantile)


@inner
def send_down(  # type: ignore[no-untyped-def]
    nodes, substitutes, shape, values, target, row, weight, first, last, branch_node, extra, touched, is_touched,
    n_touched, reached, moving,
):  # fmt: skip
    """Send the pieces first:last down a branch and add up in `extra` those that reach a leaf of it.

    A piece that would go several ways is left out. reached, moving: int32 (last - first), scratch.

    Returns how many leaves `touched` lists now, and how many pieces were left out.
    """
    n_moving = last - first
    for place in range(n_moving):
        reached[place], moving[place] = branch_node, place
    n_left_out = 0
    # All go one step at a time: what one waits for in memory, the next ones ask for meanwhile.
    while n_moving > 0:
        n_inside = 0
        for each in range(n_moving):
            place = moving[each]
            own = row[first + place]
            own = own if own >= 0 else ~own
            test = shape[reached[place]]
            branch = own_branch(nodes, test, values, own)
            if branch < 0:
                branch = other_branch(nodes, substitutes, test, values, own)
                if branch < 0:
                    reached[place] = -1
                    n_left_out += 1
                    continue
            node = nodes.child[nodes.child_start[test] + branch]
            reached[place], moving[n_inside] = node, place
            n_inside += 1 if shape[node] >= 0 else 0
        n_moving = n_inside
    for place in range(last - first):
        leaf = reached[place]
        if leaf < 0:
            continue
        own = row[first + place]
        code = int(target[own if own >= 0 else ~own])
        if code >= 0:
            extra[leaf, code] += weight[first + place]
        if not is_touched[leaf]:
            is_touched[leaf] = True
            touched[n_touched] = leaf
            n_touched += 1
    return n_touched, n_left_out


@inner
def least_errors(  # type: ignore[no-untyped-def]
    stats, estimate, branch_node, extra, touched, n_touched, both, confidence, z, quantile, exact
):
    """Give the estimated errors of a branch whose leaves `touched` have `extra` rows more; both: scratch (1, classes).

    No estimate falls when rows are added, so what some rows give is the least that more of them will.
    """
    total = estimate[branch_node]
    for each in range(n_touched):
        leaf = touched[each]
        for code in range(stats.shape[1]):
            both[0, code] = extra[leaf, code] + stats[leaf, code]
        total += estimated_errors(both, 0, confidence, z, quantile, exact) - estimate[leaf]
    return total


@inner
def rows_of(row, weight, first, last, held, listed, arriving):  # type: ignore[no-untyped-def]
    """List the rows of the pieces first:last with their weights there; give how many. held: zeros (n), scratch.

    A row in several pieces is listed as ~row, as a part of one is.
    """
    n_listed = 0
    for piece in range(first, last):
        own = row[piece] if row[piece] >= 0 else ~row[piece]
        if held[own] == 0.0:
            listed[n_listed] = row[piece]
            n_listed += 1
        held[own] += weight[piece]
    for each in range(n_listed):
        own = listed[each] if listed[each] >= 0 else ~listed[each]
        arriving[each] = held[own]
        held[own] = 0.0
    return n_listed


@compiled
def prune_pessimistically(  # type: ignore[no-untyped-def]
    nodes,
    substitutes,
    shape,
    shares,
    stats,
    values,
    rows,
    weights,
    target,
    confidence,
    z,
    quantile,
    exact,
    raising,
    renew,
    stop,
):
    """Prune from the leaves by estimated errors, raising branches if asked (Quinlan 1993, chapter 4).

    A node becomes a leaf, or its heaviest branch (of equals the last) takes its place, as `prune_pessimistic` says.
    shape, shares and stats (float64 (n, classes)) are written: the pruned tree. values, rows, weights, target and renew
    as in `spread`: the training rows, not looked at without `raising`. exact: None, but for the exact limit. stop:
    float64 (2); ends early where stop[1] is not 0.

    Returns, a line a node that went: (node, the branch put in its place or -1, estimates: of the subtree, as a leaf, of
    the raised branch (NaN without raising)).
    """
    n_nodes, n_classes = stats.shape
    width = n_classes + 1
    mass, estimate = np.zeros(n_nodes), np.zeros(n_nodes)
    for node in range(n_nodes):
        for code in range(n_classes):
            mass[node] += stats[node, code]
        if shape[node] < 0:
            estimate[node] = estimated_errors(stats, node, confidence, z, quantile, exact)
    gone, put = np.empty(64, np.int32), np.empty(64, np.int32)
    was, as_leaf, as_branch = np.empty(64), np.empty(64), np.empty(64)
    n_gone = 0
    n_held = n_nodes if raising else 1
    sums, answers, trial_shares = np.zeros((n_held, 2 * width)), np.zeros(1), np.zeros(len(shares))
    # Of the rows that go one way only: what `stats` and `estimate` are of all.
    whole, least = np.zeros((n_held, n_classes)), np.zeros(n_held)
    divides = np.zeros(n_nodes, np.bool_)
    extra, both = np.zeros((n_held, n_classes)), np.zeros((1, n_classes))
    touched, is_touched = np.empty(n_nodes, np.int32), np.zeros(n_nodes, np.bool_)
    reached, moving = np.empty(LONGEST_STRETCH, np.int32), np.empty(LONGEST_STRETCH, np.int32)
    n_rows = values.shape[1]
    held, listed, arriving = np.zeros(n_rows), np.empty(n_rows, np.int32), np.empty(n_rows)
    if raising:
        order, size, lo, row, weight = spread(
            nodes, substitutes, shape, shares, values, 0, rows, weights, target, n_classes, answers, sums, KEEP_SHARES,
            1, divides,
        )  # fmt: skip
        for node in range(n_nodes):
            for code in range(n_classes):
                whole[node, code] = sums[node, code]
            if shape[node] < 0:
                least[node] = estimated_errors(whole, node, confidence, z, quantile, exact)
    else:
        order, _, size = preorder(nodes.child_start, nodes.child, shape)
        lo, row, weight = np.zeros(len(order), np.int64), np.zeros(0, np.int32), np.zeros(0)
    # A frame is a subtree whose nodes wait to be looked at, the last first; a raised branch opens one of its own.
    base, n_own = np.empty(16, np.int64), np.empty(16, np.int64)
    piece_base, at = np.empty(16, np.int64), np.empty(16, np.int64)
    base[0], n_own[0], piece_base[0], at[0] = 0, len(order), 0, len(order) - 1
    n_frames, end, piece_end = 1, len(order), len(row)
    while n_frames > 0 and stop[1] == 0.0:
        frame = n_frames - 1
        place = at[frame]
        if place < 0:
            end, piece_end = base[frame], piece_base[frame]
            n_frames -= 1
            continue
        at[frame] -= 1
        here = base[frame] + place
        node = order[here]
        split = shape[node]
        if split < 0:
            continue
        below, least_below, largest, largest_at = 0.0, 0.0, -1, here
        child_at = here + 1
        for each in range(nodes.child_start[split], nodes.child_start[split + 1]):
            child = nodes.child[each]
            below += estimate[child]
            if raising:
                least_below += least[child]
                divides[node] = divides[node] or divides[child]
            if largest < 0 or mass[child] >= mass[largest]:
                largest, largest_at = child, child_at
            child_at += size[child_at]
        leaf_estimate = estimated_errors(stats, node, confidence, z, quantile, exact)
        branch_estimate = np.inf
        last = piece_end
        if raising and shape[largest] < 0:
            branch_estimate = leaf_estimate
        elif raising:
            # This frame is the newest, so its pieces end where all pieces end.
            frame_end = base[frame] + n_own[frame]
            beyond, largest_beyond = here + size[here], largest_at + size[largest_at]
            last = lo[beyond] if beyond < frame_end else piece_end
            largest_last = lo[largest_beyond] if largest_beyond < frame_end else piece_end
            # A row that goes several ways below has no place of its own in a sum: the others give the least there is.
            counted, known = stats, estimate
            if divides[largest]:
                counted, known = whole, least
            may_stay = leaf_estimate > below + SLACK
            enough = (below + SLACK) * ABOVE_ROUNDING
            n_touched, n_left_out, sent, stretch = 0, 0, lo[here], STRETCH
            branch_estimate = known[largest]
            while sent < last:
                if sent == lo[largest_at]:
                    sent = largest_last
                until = min(sent + stretch, last if sent >= largest_last else lo[largest_at])
                n_touched, n_more = send_down(
                    nodes, substitutes, shape, values, target, row, weight, sent, until, largest, extra, touched,
                    is_touched, n_touched, reached, moving,
                )  # fmt: skip
                n_left_out += n_more
                sent = until
                stretch = min(2 * stretch, LONGEST_STRETCH)
                if sent == last or may_stay:
                    branch_estimate = least_errors(
                        counted, known, largest, extra, touched, n_touched, both, confidence, z, quantile, exact
                    )
                if may_stay and branch_estimate > enough:
                    break
            for each in range(n_touched):
                is_touched[touched[each]] = False
                for code in range(n_classes):
                    extra[touched[each], code] = 0.0
            stays = may_stay and branch_estimate > enough
            if not stays and (divides[largest] or n_left_out > 0):
                # The rows that know a test's value share out those that do not, and with the others they are more.
                for place in range(largest_at, largest_beyond):
                    test = shape[order[place]]
                    if test >= 0:
                        first_child = nodes.child_start[test]
                        n_children = nodes.child_start[test + 1] - first_child
                        copy(shares, first_child, trial_shares, first_child, n_children)
                n_listed = rows_of(row, weight, lo[here], last, held, listed, arriving)
                for each in range(n_listed):
                    listed[each] = listed[each] if listed[each] >= 0 else ~listed[each]
                tried, _, _, _, _ = spread(
                    nodes, substitutes, shape, trial_shares, values, largest, first_of(listed, n_listed),
                    first_of(arriving, n_listed), target, n_classes, answers, sums, renew, 0, divides,
                )  # fmt: skip
                branch_estimate = 0.0
                for place in range(len(tried)):
                    if shape[tried[place]] < 0:
                        for code in range(n_classes):
                            both[0, code] = sums[tried[place], code]
                        branch_estimate += estimated_errors(both, 0, confidence, z, quantile, exact)
        # Without raising the branch's estimate is infinite and does not count.
        becomes_leaf = leaf_estimate <= below + SLACK and leaf_estimate <= branch_estimate + SLACK
        raises = raising and not becomes_leaf and branch_estimate <= below + SLACK
        if not becomes_leaf and not raises:
            estimate[node] = below
            if raising:
                least[node] = least_below
            continue
        if n_gone == len(gone):
            gone, put, was = longer(gone, 0), longer(put, 0), longer(was, 0)
            as_leaf, as_branch = longer(as_leaf, 0), longer(as_branch, 0)
        gone[n_gone], put[n_gone], was[n_gone] = node, largest if raises else -1, below
        as_leaf[n_gone], as_branch[n_gone] = leaf_estimate, branch_estimate if raising else np.nan
        n_gone += 1
        if becomes_leaf:
            shape[node] = -1
            estimate[node] = leaf_estimate
            if raising:
                least[node] = estimated_errors(whole, node, confidence, z, quantile, exact)
                divides[node] = False
            continue
        shape[node] = shape[largest]
        n_listed = rows_of(row, weight, lo[here], last, held, listed, arriving)
        new_order, new_size, new_lo, new_row, new_weight = spread(
            nodes, substitutes, shape, shares, values, node, first_of(listed, n_listed), first_of(arriving, n_listed),
            target, n_classes, answers, sums, renew, 1, divides,
        )  # fmt: skip
        for each in range(1, len(new_order)):
            changed = new_order[each]
            mass[changed] = 0.0
            for code in range(n_classes):
                whole[changed, code] = sums[changed, code]
                stats[changed, code] = sums[changed, code] + sums[changed, width + code]
                mass[changed] += stats[changed, code]
            if shape[changed] < 0:
                estimate[changed] = estimated_errors(stats, changed, confidence, z, quantile, exact)
                least[changed] = estimated_errors(whole, changed, confidence, z, quantile, exact)
        if place == 0:
            # Nothing of this frame is left to look at: the new one takes its place.
            end, piece_end = base[frame], piece_base[frame]
            n_frames -= 1
        if end + len(new_order) > len(order):
            order, size = longer(order, end + len(new_order)), longer(size, end + len(new_order))
            lo = longer(lo, end + len(new_order))
        if piece_end + len(new_row) > len(row):
            row, weight = longer(row, piece_end + len(new_row)), longer(weight, piece_end + len(new_row))
        if n_frames == len(base):
            base, n_own = longer(base, 0), longer(n_own, 0)
            piece_base, at = longer(piece_base, 0), longer(at, 0)
        base[n_frames], n_own[n_frames], piece_base[n_frames] = end, len(new_order), piece_end
        at[n_frames] = len(new_order) - 1
        n_frames += 1
        copy(new_order, 0, order, end, len(new_order))
        copy(new_size, 0, size, end, len(new_order))
        for each in range(len(new_order)):
            lo[end + each] = new_lo[each] + piece_end
        copy(new_row, 0, row, piece_end, len(new_row))
        copy(new_weight, 0, weight, piece_end, len(new_row))
        end += len(new_order)
        piece_end += len(new_row)
    return (
        first_of(gone, n_gone), first_of(put, n_gone), first_of(was, n_gone), first_of(as_leaf, n_gone),
        first_of(as_branch, n_gone),
    )  # fmt: skip
