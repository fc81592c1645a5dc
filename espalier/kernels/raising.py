"""Pessimistic pruning: leaves and raised branches by their estimated errors; see `spreading` for the buffers.

Subtrees that do not overlap may be pruned at the same time, by several threads: each reads and writes at its own nodes
and pieces. What is above them follows: a node of which `foresee` found that its branch stays where it is, if nothing
below it changed, need not be tried again.
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.branches import most_branches
from espalier.kernels.buffers import copy, first_of, longer
from espalier.kernels.frames import beyond, first_frame, mark_raised, next_test, with_frame
from espalier.kernels.jit import compiled, inner
from espalier.kernels.settling import set_step, table_of
from espalier.kernels.spreading import EVERYWHERE, spread
from espalier.kernels.trials import (
    ALL_ROWS,
    Limit,
    empty_trial,
    estimated_errors,
    forget,
    rows_of,
    send_others,
    spread_others,
    with_room,
)

__all__ = ["Limit", "Pruning", "foresee", "make_trial", "prune_pessimistically", "prune_to_leaves", "sum_up"]

SLACK = 0.1
"""A leaf or a raised branch may be this many errors worse than the subtree (Quinlan 1993)."""
EQUALLY_HEAVY = 1.0 - 1e-9
"""Branches of this share of the heaviest weigh the same: sums of shares of rows are rounded."""
ENDED = 0
FULL = 1
SPREAD = 2
RAISE = 3
"""Why `walk` stops: nothing is left, there is no room for a line, a trial or a raised branch spreads rows."""
N_FRAMES = 0
END = 1
PIECE_END = 2
N_GONE = 3
CHANGED = 4
TOUCHED = 5
LISTED = 6
"""Entries of a walk's state: how many frames wait, where their nodes and pieces end, how many nodes went, the place of
the last of those in frame 0; leaves that are touched and rows that are listed by a trial that is not over."""


class Pruning(NamedTuple):
    """A tree of n nodes as pruned so far, and figures of each node, all written but the first two.

    shape, shares, steps: see `spreading` and `settling`. stats: float64 (n, classes), class weights; mass: their sum;
    estimate: float64 (n), the estimated errors of what is below. whole, least: what stats and estimate are, of the rows
    that go one way only to the leaves below. divides: bool (n), whether a row that arrives goes several ways below.

    Scratch: sums: float64 (n, 2 · classes + 2); known: float64 (n); trial_shares: as shares. nothing: zeros, float64
    (n).
    """

    nodes: Any
    substitutes: Any
    shape: Any
    shares: Any
    steps: Any
    stats: Any
    mass: Any
    estimate: Any
    whole: Any
    least: Any
    divides: Any
    sums: Any
    known: Any
    trial_shares: Any
    nothing: Any


@compiled
def prune_to_leaves(nodes, shape, stats, limit, exact, stop):  # type: ignore[no-untyped-def]
    """Make leaves of nodes, from the leaves to the root, by estimated errors; shape is written.

    Returns (nodes that went: int32; float64, their estimates: of the subtree and as a leaf, in turn).
    """
    n_nodes = len(shape)
    estimate, gone, figures = np.zeros(n_nodes), np.empty(n_nodes, np.int32), np.empty(2 * n_nodes)
    n_gone = 0
    for node in range(n_nodes - 1, -1, -1):
        as_leaf = estimated_errors(stats, node, limit, exact)
        if shape[node] < 0 or stop[1] != 0.0:
            estimate[node] = as_leaf
            continue
        below = 0.0
        for each in range(nodes.child_start[node], nodes.child_start[node + 1]):
            below += estimate[nodes.child[each]]
        estimate[node] = below
        if as_leaf <= below + SLACK:
            estimate[node], shape[node] = as_leaf, -1
            gone[n_gone], figures[2 * n_gone], figures[2 * n_gone + 1] = node, below, as_leaf
            n_gone += 1
    return first_of(gone, n_gone), first_of(figures, 2 * n_gone)


@compiled
def sum_up(tree, settled, places):  # type: ignore[no-untyped-def]
    """Write the figures of nodes above subtrees that are pruned, as they are if all of these nodes stay.

    places: int64, theirs in ``settled.order``, the last first.
    """
    for each in range(len(places)):
        node = settled.order[places[each]]
        add_below(tree, node)
        below, least_below, _, _ = look_below(tree, settled, places[each])
        tree.estimate[node], tree.least[node] = below, least_below


@compiled
def make_trial(tree, n_rows, n_pieces):  # type: ignore[no-untyped-def]
    """Make what a thread needs to try branches, with room for so many pieces."""
    n_nodes, n_classes = tree.stats.shape
    return with_room(empty_trial(n_nodes, n_classes, n_rows, most_branches(tree.nodes)), n_pieces)


@compiled
def foresee(  # type: ignore[no-untyped-def]
    tree, values, target, settled, plain, here, limit, exact, renew, trial, stop
):  # fmt: skip
    """Find whether a node above subtrees that are pruned keeps its branches as they are, after `sum_up`.

    here: its place in ``settled.order``. The others: as in `prune_pessimistically`. Several threads may, each with a
    trial and scratch (sums, known, trial_shares) of its own.

    Returns that, which is true as long as nothing below the node changes.
    """
    table, size = table_of(values, target), settled.size
    node = settled.order[here]
    below, _, largest, largest_at = look_below(tree, settled, here)
    as_leaf, enough = estimated_errors(tree.stats, node, limit, exact), below + SLACK
    if tree.shape[largest] < 0 or as_leaf <= enough or stop[1] != 0.0:
        return False
    span = span_of(settled, here, largest_at, len(size), len(settled.row))
    trial = with_room(trial, span[3] - span[0])
    may_stay = True
    given_up, n_touched, n_listed, as_branch = send_others(
        tree, table, settled, largest, span, may_stay, enough, limit, exact, trial
    )
    if not given_up and (tree.divides[largest] or n_listed > 0):
        as_branch = spread_others(tree, table, plain, settled, largest_at, span, n_listed, limit, exact, renew, trial)
    forget(trial, n_touched)
    return as_branch > enough


@inner
def span_of(pieces, here, largest_at, end, piece_end):  # type: ignore[no-untyped-def]
    """Give where the pieces of a node begin, those of its largest branch begin and end, and those of the node end."""
    own_last = beyond(pieces.lo, largest_at + pieces.size[largest_at], end, piece_end)
    last = beyond(pieces.lo, here + pieces.size[here], end, piece_end)
    return pieces.lo[here], pieces.lo[largest_at], own_last, last


@compiled
def prune_pessimistically(  # type: ignore[no-untyped-def]
    tree, values, target, settled, plain, root, done, stays, limit, exact, renew, trial, stop
):  # fmt: skip
    """Prune a subtree from the leaves by estimated errors, raising branches (Quinlan 1993, chapter 4).

    A node becomes a leaf, or its heaviest branch (of equals the last) takes its place, as `prune_pessimistic` says.
    tree is written: a Pruning. values, target: as in `table_of`. settled: what `stock` has made. plain: whether every
    row that goes one way knows what is asked for there, and all have a class. root: the place of the subtree's root in
    ``settled.order``. done: int32 (n), by the last place of each subtree that is pruned already the place of its root,
    else -1; written. stays: bool (n), by place, what `foresee` gives. renew: as in `spread`. trial: the thread's own.
    stop: float64 (2); ends early where stop[1] is not 0.

    Returns (int32, three a node that went: the node, the branch put in its place or -1, the place at which that was in
    ``settled.order``; float64, three a node: estimates of the subtree, as a leaf, of the raised branch).
    """
    table, gone, figures = table_of(values, target), np.empty(192, np.int32), np.empty(192)
    frames = first_frame(settled, root)
    n_pieces = len(frames.row)
    trial = with_room(trial, n_pieces)
    state = np.array([1, len(frames.order), n_pieces, 0, len(settled.order), 0, 0])
    tried = np.nan
    while True:
        # A loop that makes no array counts no references, which takes as long as all else.
        reason, here, span = walk(
            tree, table, frames, root, done, stays, limit, exact, stop, trial, gone, figures, state, tried
        )
        tried = np.nan
        if reason == ENDED:
            break
        if reason == FULL:
            gone, figures = longer(gone, 0), longer(figures, 0)
            continue
        if reason == SPREAD:
            _, _, _, largest_at = look_below(tree, frames, here)
            tried = spread_others(
                tree, table, plain, frames, largest_at, span, state[LISTED], limit, exact, renew, trial
            )
            forget(trial, state[TOUCHED])
            continue
        node = frames.order[here]
        n_listed = rows_of(frames, span[0], span[3], ALL_ROWS, trial, 0)
        branch = spread(
            tree.nodes, tree.substitutes, tree.shape, tree.shares, table.values, node, first_of(trial.listed, n_listed),
            first_of(trial.arriving, n_listed), table.target, tree.stats.shape[1], tree.nothing, tree.sums, EVERYWHERE,
            renew, 1, tree.divides, tree.nothing, trial.n_branches,
        )  # fmt: skip
        count_anew(tree, branch[0], limit, exact)
        if state[N_FRAMES] > 1 and here == frames.base[state[N_FRAMES] - 1]:
            # Nothing of this frame is left to look at: the new one takes its place.
            leave_frame(frames, state)
        frames = with_frame(frames, state[N_FRAMES], state[END], state[PIECE_END], branch, table.target)
        state[N_FRAMES], state[END] = state[N_FRAMES] + 1, state[END] + len(branch[0])
        state[PIECE_END] += len(branch[3])
        trial = with_room(trial, len(branch[3]))
    # What is above asks which pieces are parts now.
    copy(frames.row, 0, settled.row, settled.lo[root], n_pieces)
    done[root + settled.size[root] - 1] = root
    return first_of(gone, 3 * state[N_GONE]), first_of(figures, 3 * state[N_GONE])


@inner
def leave_frame(frames, state):  # type: ignore[no-untyped-def]
    """Take the last frame away."""
    frame = state[N_FRAMES] - 1
    state[N_FRAMES], state[END], state[PIECE_END] = frame, frames.base[frame], frames.piece_base[frame]


@inner
def walk(  # type: ignore[no-untyped-def]
    tree, table, frames, root, done, stays, limit, exact, stop, trial, gone, figures, state, tried
):  # fmt: skip
    """Look at nodes until one asks for what makes arrays.

    state: int64, written; see N_FRAMES. tried: the estimate of the branch whose trial spread rows, else NaN.

    Returns (the reason, where the node stands in ``frames.order``, its span as `send_others` has it).
    """
    while state[N_FRAMES] > 0 and stop[1] == 0.0:
        frame, n_gone = state[N_FRAMES] - 1, state[N_GONE]
        if 3 * n_gone == len(gone):
            return FULL, 0, (0, 0, 0, 0)
        place = next_test(tree.shape, frames, frame, done, root)
        if place < 0:
            if frame > 0:
                mark_raised(frames, frame, state[PIECE_END], trial.held)
            leave_frame(frames, state)
            continue
        here = frames.base[frame] + place
        node = frames.order[here]
        add_below(tree, node)
        below, least_below, largest, largest_at = look_below(tree, frames, here)
        span = span_of(frames, here, largest_at, frames.base[frame] + frames.n_own[frame], state[PIECE_END])
        as_leaf = estimated_errors(tree.stats, node, limit, exact)
        enough, as_branch = below + SLACK, as_leaf
        if tree.shape[largest] >= 0:
            if tried == tried:  # noqa: PLR0124 - NaN is not
                as_branch, tried = tried, np.nan
            elif frame == 0 and stays[root + place] and state[CHANGED] >= place + frames.size[here]:
                as_branch = np.inf
            else:
                given_up, n_touched, n_listed, as_branch = send_others(
                    tree, table, frames, largest, span, as_leaf > enough, enough, limit, exact, trial
                )
                if not given_up and (tree.divides[largest] or n_listed > 0):
                    frames.at[frame], state[TOUCHED], state[LISTED] = place, n_touched, n_listed
                    return SPREAD, here, span
                forget(trial, n_touched)
        becomes_leaf = as_leaf <= enough and as_leaf <= as_branch + SLACK
        if not becomes_leaf and as_branch > enough:
            tree.estimate[node], tree.least[node] = below, least_below
            continue
        put = -1 if becomes_leaf else largest
        changed = frames.at[0] + 1
        gone[3 * n_gone], gone[3 * n_gone + 1], gone[3 * n_gone + 2] = node, put, root + changed
        figures[3 * n_gone], figures[3 * n_gone + 1], figures[3 * n_gone + 2] = below, as_leaf, as_branch
        state[N_GONE], state[CHANGED] = n_gone + 1, changed
        if becomes_leaf:
            make_leaf(tree, node, as_leaf, limit, exact)
            continue
        tree.shape[node] = tree.shape[largest]
        set_step(tree.nodes, tree.steps, tree.shape, node)
        return RAISE, here, span
    return ENDED, 0, (0, 0, 0, 0)


@inner
def look_below(tree, pieces, here):  # type: ignore[no-untyped-def]
    """Add up the branches of a node; pieces: what has ``order`` and ``size``.

    Returns (their estimates together, their least ones, the heaviest of them, its place).
    """
    split = tree.shape[pieces.order[here]]
    below, least_below, largest, largest_at, child_at = 0.0, 0.0, np.int64(-1), here, here + 1
    for each in range(tree.nodes.child_start[split], tree.nodes.child_start[split + 1]):
        child = np.int64(tree.nodes.child[each])
        below += tree.estimate[child]
        least_below += tree.least[child]
        if largest < 0 or tree.mass[child] >= EQUALLY_HEAVY * tree.mass[largest]:
            largest, largest_at = child, child_at
        child_at += pieces.size[child_at]
    return below, least_below, largest, largest_at


@inner
def add_below(tree, node):  # type: ignore[no-untyped-def]
    """Write ``whole`` and ``divides`` of a node whose branches have theirs."""
    split = tree.shape[node]
    for code in range(tree.stats.shape[1]):
        tree.whole[node, code] = 0.0
    for each in range(tree.nodes.child_start[split], tree.nodes.child_start[split + 1]):
        child = np.int64(tree.nodes.child[each])
        for code in range(tree.stats.shape[1]):
            tree.whole[node, code] += tree.whole[child, code]
        tree.divides[node] = tree.divides[node] or tree.divides[child]


@inner
def make_leaf(tree, node, as_leaf, limit, exact):  # type: ignore[no-untyped-def]
    """Make a leaf of a node."""
    tree.shape[node] = -1
    set_step(tree.nodes, tree.steps, tree.shape, node)
    tree.estimate[node] = as_leaf
    tree.least[node] = estimated_errors(tree.whole, node, limit, exact)
    tree.divides[node] = False


@inner
def count_anew(tree, order, limit, exact):  # type: ignore[no-untyped-def]
    """Write the figures of the nodes of a raised branch, all but the node whose place it took, from ``sums``."""
    n_classes = tree.stats.shape[1]
    for each in range(1, len(order)):
        node = order[each]
        tree.mass[node] = 0.0
        for code in range(n_classes):
            tree.whole[node, code] = tree.sums[node, code]
            tree.stats[node, code] = tree.sums[node, code] + tree.sums[node, n_classes + 1 + code]
            tree.mass[node] += tree.stats[node, code]
        if tree.shape[node] < 0:
            tree.estimate[node] = estimated_errors(tree.stats, node, limit, exact)
            tree.least[node] = estimated_errors(tree.whole, node, limit, exact)
