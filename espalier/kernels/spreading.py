"""Rows spread over all nodes of a tree in preorder, each with its weight there.

A *shape* says what each node does, int32 (n): the node whose test and children it uses, -1 where it is a leaf. In a
tree as it was grown each inner node has its own; a node in whose place its branch c was put has ``shape[c]``.

*Pieces* are parts of rows: a row with a missing value goes down several branches, each with a share of its weight. The
pieces of a subtree stand together::

    order  (preorder)   0    1    2    3    4
    piece               [~4, row 1  | row 0 | row 7, ~4 | …]            leaves 2, 3, 4 …
    lo                  0    0    0    2    3                           hi of a node: lo of the node after its subtree

A piece that is not its whole row stands there as ``~row``, below 0.
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.branches import find_sides, most_branches, other_branch
from espalier.kernels.buffers import copy, fill, first_of, longer
from espalier.kernels.jit import compiled, inner, maker

__all__ = [
    "AT_LEAVES",
    "EVERYWHERE",
    "KEEP_SHARES",
    "RENEW_ALL",
    "RENEW_KNOWN",
    "arrange",
    "distribute",
    "spread",
]

KEEP_SHARES = 0
RENEW_KNOWN = 1
RENEW_ALL = 2
"""The shares of a test's branches: as they are, of the rows that know its value, or of all rows."""
EVERYWHERE = 0
AT_LEAVES = 1
"""Where rows are added up."""
IS_SUMMED = -1
"""In place of where a leaf's pieces begin: they were added up as they came."""


@compiled
def distribute(  # type: ignore[no-untyped-def]
    nodes, substitutes, shape, shares, values, start, rows, weights, target, n_classes, answers, sums, renew
):
    """Do what `spread` does, for Python, which asks for the sums alone."""
    spread(
        nodes, substitutes, shape, shares, values, start, rows, weights, target, n_classes, answers, sums,
        EVERYWHERE, renew, 0, np.zeros(0, np.bool_), np.zeros(len(shape)), most_branches(nodes),
    )  # fmt: skip


@inner
def part(row, weight, first, n_pieces, side, from_row, from_weight):  # type: ignore[no-untyped-def]
    """Put the pieces of side 1 before those of side 0, each in their order; from_row, from_weight: scratch."""
    ahead, n_below = first, 0
    for piece in range(n_pieces):
        own, own_weight, above = row[first + piece], weight[first + piece], side[piece]
        row[ahead], weight[ahead] = own, own_weight
        from_row[n_below], from_weight[n_below] = own, own_weight
        ahead += above
        n_below += 1 - above
    copy(from_row, 0, row, ahead, n_below)
    copy(from_weight, 0, weight, ahead, n_below)


class Flow(NamedTuple):
    """The buffers of one spreading: pieces on their way, scratch for those of a node, and pieces that have arrived."""

    row: Any
    weight: Any
    from_row: Any
    from_weight: Any
    side: Any
    out_row: Any
    out_weight: Any


@maker
def spread(  # type: ignore[no-untyped-def]
    nodes, substitutes, shape, shares, values, start, rows, weights, target, n_classes, answers, sums, summed, renew,
    keep, divides, known_before, n_branches,
):  # fmt: skip
    """Spread rows over all nodes of the subtree at `start`, and add them up at each.

    values: float64 (F, n), by columns. shares: float64 (children), in the order of ``nodes.child``; those of the
    tests that rows come to are written anew as `renew` says. rows: int32, weights: float64: what arrives at `start`.
    target: float64 (n): class code (below 0: none of the classes) or number. sums: float64 (nodes, width), written for
    every node visited, or with `summed` AT_LEAVES for every leaf: the weight of each class and at last of none of them
    (width = n_classes + 1); or, with n_classes 0 and d = target - answers[node], the sums of w, w·d, w·d² and w·d⁴
    (width 4).

    With `keep` the pieces are given, a part of a row as ~row: in `rows` too, and as many columns more of `sums` add up
    the parts alone, the first ones what is whole. divides: bool (n), written with `keep`: whether a row that arrives
    at the node goes several ways there. known_before: float64 (n), what other rows weigh at each node: those that know
    what the test above it asks for, and count where its shares are written anew.

    Returns (order, size, lo, rows, weights): the nodes visited in preorder, int32; the size of each one's subtree,
    int32; the first of its pieces, int64; and, with `keep`, the pieces, leaf by leaf.
    """
    n_rows, n_nodes = len(rows), len(shape)
    room = n_rows + 16
    row, weight = np.empty(room, np.int32), np.empty(room)
    copy(rows, 0, row, 0, n_rows)
    copy(weights, 0, weight, 0, n_rows)
    from_row, from_weight, side = np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32)
    out_row, out_weight = np.empty(room if keep else 0, np.int32), np.empty(room if keep else 0)
    counts, at, known = np.empty(n_branches, np.int64), np.empty(n_branches, np.int64), np.empty(n_branches)
    # No way leads to more nodes than there are.
    waiting, waiting_up = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
    waiting_lo = np.empty(n_nodes, np.int64)
    order, lo, up = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int32)
    waiting[0], waiting_lo[0], waiting_up[0] = start, 0, -1
    state = np.array([1, 0, 0, n_rows])
    while True:
        needed, needed_out = go_on(
            nodes, substitutes, shape, shares, values, target, n_classes, answers, sums, summed, renew, keep, divides,
            known_before, Flow(row, weight, from_row, from_weight, side, out_row, out_weight), (counts, at, known),
            (waiting, waiting_lo, waiting_up), (order, lo, up), state,
        )  # fmt: skip
        if needed == 0 and needed_out == 0:
            break
        if needed > len(row):
            row, weight = longer(row, needed), longer(weight, needed)
            from_row, from_weight, side = longer(from_row, needed), longer(from_weight, needed), longer(side, needed)
        if needed_out > len(out_row):
            out_row, out_weight = longer(out_row, needed_out), longer(out_weight, needed_out)
    n_order, n_out = state[1], state[2]
    size = np.empty(n_order, np.int32)
    fill(size, n_order, 1)
    for place in range(n_order - 1, 0, -1):
        size[up[place]] += size[place]
    return (
        first_of(order, n_order), size, first_of(lo, n_order), first_of(out_row, n_out), first_of(out_weight, n_out)
    )  # fmt: skip


@inner
def go_on(  # type: ignore[no-untyped-def]
    nodes, substitutes, shape, shares, values, target, n_classes, answers, sums, summed, renew, keep, divides,
    known_before, flow, branches, waiting_nodes, visited, state,
):  # fmt: skip
    """Spread rows until all nodes are visited, or a buffer is full: a loop that makes no array counts no references.

    state: int64 (4), written: how many nodes wait and were visited, how many pieces are out, and where those end that
    are on their way.

    Returns how many places the buffers of pieces on their way and of those at leaves must have to go on; 0 where all
    is done.
    """
    counts, at, known = branches
    waiting, waiting_lo, waiting_up = waiting_nodes
    order, lo, up = visited
    row, weight, from_row, from_weight, side = flow.row, flow.weight, flow.from_row, flow.from_weight, flow.side
    n_waiting, n_order, n_out, end = state[0], state[1], state[2], state[3]
    needed, needed_out = 0, 0
    # Who wants sums at leaves and no pieces is spared those pieces.
    sums_alone = n_classes > 0 and summed == AT_LEAVES and keep == 0
    while n_waiting > 0:
        node, first = waiting[n_waiting - 1], waiting_lo[n_waiting - 1]
        split = shape[node]
        if first == IS_SUMMED:
            n_waiting -= 1
            order[n_order], lo[n_order], up[n_order] = node, n_out, waiting_up[n_waiting]
            n_order += 1
            continue
        n_pieces = end - first
        if split < 0 and keep and n_out + n_pieces > len(flow.out_row):
            needed_out = n_out + n_pieces
            break
        n_branches, n_unknown, base = 0, 0, 0
        if split >= 0:
            base = nodes.child_start[split]
            n_branches = nodes.child_start[split + 1] - base
            fill(counts, n_branches, 0)
        if split >= 0 and n_pieces > 0:
            for branch in range(n_branches):
                known[branch] = known_before[nodes.child[base + branch]]
            n_unknown = choose_sides(
                nodes, substitutes, split, values, row, weight, first, n_pieces, side, renew, counts, known
            )
            total = 0.0
            for branch in range(n_branches if renew != KEEP_SHARES else 0):
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
                needed = first + n_needed
                break
        n_waiting -= 1
        if n_classes > 0 and (split < 0 or summed == EVERYWHERE):
            add_classes(row, weight, first, end, target, n_classes, sums, node)
        elif n_classes == 0:
            add_powers(row, weight, first, end, target, answers[node], sums, node)
        order[n_order], lo[n_order], up[n_order] = node, n_out, waiting_up[n_waiting]
        n_order += 1
        if split < 0:
            if keep:
                copy(row, first, flow.out_row, n_out, n_pieces)
                copy(weight, first, flow.out_weight, n_out, n_pieces)
                n_out += n_pieces
            end = first
            continue
        if keep:
            divides[node] = n_unknown > 0
        end = first
        n_summed = 0
        for branch in range(n_branches - 1, -1, -1):
            child, begins = nodes.child[base + branch], end
            if sums_alone and shape[child] < 0:
                begin_sums(sums, child)
                begins, n_summed = IS_SUMMED, n_summed + 1
            else:
                end += counts[branch]
            at[branch], waiting[n_waiting], waiting_lo[n_waiting] = begins, child, begins
            waiting_up[n_waiting] = n_order - 1
            n_waiting += 1
        if n_branches == 2 and n_unknown == 0 and n_summed == 0:
            part(row, weight, first, n_pieces, side, from_row, from_weight)
            continue
        deal_out(
            flow, first, n_pieces, nodes.child, base, n_branches, shares, at, keep, n_summed, target, n_classes, sums
        )
    state[0], state[1], state[2], state[3] = n_waiting, n_order, n_out, end
    return needed, needed_out


@inner
def deal_out(  # type: ignore[no-untyped-def]
    flow, first, n_pieces, child, base, n_branches, shares, at, keep, n_summed, target, n_classes, sums
):  # fmt: skip
    """Put the pieces of a node from `first` on where those of their branches stand, or add them up.

    at: int64, by branch, where its next piece stands, IS_SUMMED for the `n_summed` whose pieces are added up; written.
    base: the place of the first branch in ``child`` and ``shares``. keep, target, n_classes, sums: as in `spread`.
    """
    row, weight, from_row, from_weight, side = flow.row, flow.weight, flow.from_row, flow.from_weight, flow.side
    copy(row, first, from_row, 0, n_pieces)
    copy(weight, first, from_weight, 0, n_pieces)
    for piece in range(n_pieces):
        branch, own, own_weight = side[piece], from_row[piece], from_weight[piece]
        code = n_classes
        if n_summed > 0 and target[own] >= 0:
            code = np.int64(target[own])
        if branch >= 0 and at[branch] == IS_SUMMED:
            sums[child[base + branch], code] += own_weight
        elif branch >= 0:
            row[at[branch]], weight[at[branch]] = own, own_weight
            at[branch] += 1
        else:
            own = ~own if keep and own >= 0 else own
            for each in range(n_branches):
                share = shares[base + each]
                if share > 0.0 and at[each] == IS_SUMMED:
                    sums[child[base + each], code] += own_weight * share
                elif share > 0.0:
                    row[at[each]], weight[at[each]] = own, own_weight * share
                    at[each] += 1


@inner
def begin_sums(sums, node):  # type: ignore[no-untyped-def]
    """Write zeros into ``sums[node]``."""
    for place in range(sums.shape[1]):
        sums[node, place] = 0.0


@inner
def choose_sides(  # type: ignore[no-untyped-def]
    nodes, substitutes, split, values, row, weight, first, n_pieces, side, renew, counts, known
):  # fmt: skip
    """Write the branch that each of the pieces from `first` on takes, -1 for all of them.

    counts: int64, known: float64, by branch; how many take it, and what those weigh that know the value (with RENEW_ALL
    all that take it), are added.

    Returns how many take all branches.
    """
    n_astray = find_sides(nodes, split, values, row, first, n_pieces, side)
    has_others = nodes.fallback[split] >= 0 or substitutes.start[split + 1] > substitutes.start[split]
    if n_astray > 0 and has_others and renew == RENEW_ALL:
        for piece in range(n_pieces):
            if side[piece] < 0:
                own = row[first + piece]
                side[piece] = other_branch(nodes, substitutes, split, values, own if own >= 0 else ~own)
    n_unknown = 0
    for piece in range(n_pieces):
        branch = side[piece]
        if branch >= 0:
            counts[branch] += 1
            known[branch] += weight[first + piece]
        else:
            n_unknown += 1
    if n_astray > 0 and has_others and renew != RENEW_ALL:
        for piece in range(n_pieces):
            if side[piece] < 0:
                own = row[first + piece]
                side[piece] = other_branch(nodes, substitutes, split, values, own if own >= 0 else ~own)
                if side[piece] >= 0:
                    counts[side[piece]] += 1
                    n_unknown -= 1
    return n_unknown


@inner
def add_classes(row, weight, first, end, target, n_classes, sums, node):  # type: ignore[no-untyped-def]
    """Write the class weights of the pieces first:end into ``sums[node]``."""
    begin_sums(sums, node)
    for piece in range(first, end):
        own = row[piece]
        code = int(target[own if own >= 0 else ~own])
        column = code if code >= 0 else n_classes
        sums[node, column if own >= 0 else column + n_classes + 1] += weight[piece]


@inner
def add_powers(row, weight, first, end, target, answer, sums, node):  # type: ignore[no-untyped-def]
    """Write the powers of what the pieces first:end miss `answer` by into ``sums[node]``."""
    begin_sums(sums, node)
    for piece in range(first, end):
        share, miss = weight[piece], target[row[piece]] - answer
        square = miss * miss
        sums[node, 0] += share
        sums[node, 1] += share * miss
        sums[node, 2] += share * square
        sums[node, 3] += share * square * square


@compiled
def arrange(child_start, child, shape):  # type: ignore[no-untyped-def]
    """List the nodes of a shape in preorder: (nodes, place of each one's parent, size of its subtree), int32 each."""
    # No shape has more nodes than there are, and no way leads to more.
    order, up = np.empty(len(shape), np.int32), np.empty(len(shape), np.int32)
    waiting, waiting_up = np.empty(len(shape), np.int32), np.empty(len(shape), np.int32)
    n_order = list_nodes(child_start, child, shape, order, up, waiting, waiting_up)
    size = np.empty(n_order, np.int32)
    fill(size, n_order, 1)
    for place in range(n_order - 1, 0, -1):
        size[up[place]] += size[place]
    return first_of(order, n_order), first_of(up, n_order), size


@inner
def list_nodes(child_start, child, shape, order, up, waiting, waiting_up):  # type: ignore[no-untyped-def]
    """Write order and up, what `arrange` gives; waiting, waiting_up: scratch. Returns how many nodes there are."""
    waiting[0], waiting_up[0] = 0, -1
    n_waiting, n_order = 1, 0
    while n_waiting > 0:
        n_waiting -= 1
        node = waiting[n_waiting]
        order[n_order], up[n_order] = node, waiting_up[n_waiting]
        n_order += 1
        if shape[node] < 0:
            continue
        base, last = child_start[shape[node]], child_start[shape[node] + 1]
        for place in range(last - 1, base - 1, -1):
            waiting[n_waiting], waiting_up[n_waiting] = child[place], n_order - 1
            n_waiting += 1
    return n_order
