"""Pessimistic pruning: leaves and raised branches by their estimated errors; see `spreading` for the buffers.

Subtrees that do not overlap may be pruned at the same time, by several threads: each reads and writes at its own nodes
and pieces. What is above them follows, and its frame begins with the nodes and pieces as they were::

    frame 0    the nodes of the subtree, and their pieces
    frame 1    those of a branch that took a node's place, spread anew, while frame 0 waits
    frame 2    those of a branch that took the place of one of these, …
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels import limits
from espalier.kernels.jit import compiled, inner, maker, shared
from espalier.kernels.limits import exact_errors, normal_errors
from espalier.kernels.route import N_SLOTS
from espalier.kernels.settling import empty_slots, send_down, set_step, settle, table_of
from espalier.kernels.spreading import AT_LEAVES, EVERYWHERE, copy, first_of, longer, spread

__all__ = ["Limit", "Pruning", "begin", "prune_pessimistically", "prune_to_leaves"]

for _name in ("normal_errors", "larger_errors", "exact_errors", "exact_limit", "beta_ratio", "beta_series"):
    shared(getattr(limits, _name))

SLACK = 0.1
"""A leaf or a raised branch may be this many errors worse than the subtree (Quinlan 1993)."""
ABOVE_ROUNDING = 1.0 + 1e-9
LONGEST_STRETCH = 1024
"""At most so many rows are tried in a branch before it is asked whether more of them could still let it rise."""
ALL_ROWS = 0
PARTS = 1


class Limit(NamedTuple):
    """Which upper limit of the errors is taken; see `limits.added_errors`."""

    confidence: Any
    z: Any
    quantile: Any


class Pruning(NamedTuple):
    """A tree of n nodes as pruned so far, and figures of each node, all written but the first two.

    shape, shares, steps: see `spreading` and `settling`. stats: float64 (n, classes), class weights; mass: their sum;
    estimate: float64 (n), the estimated errors of what is below. whole, least: what stats and estimate are, of the rows
    that go one way only to the leaves below. divides: bool (n), whether a row that arrives goes several ways below.

    Of rows on trial, zeros between two trials: extra: float64 (n, classes), their class weights at the leaves that they
    reach; is_touched: bool (n), whether there are some. Scratch: sums: float64 (n, 2 · classes + 2); known: float64
    (n); trial_shares: as shares. nothing: zeros, float64 (n).
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
    extra: Any
    is_touched: Any
    sums: Any
    known: Any
    trial_shares: Any
    nothing: Any


class Frames(NamedTuple):
    """Subtrees whose nodes wait to be looked at, the last node first, one frame after the other.

    order, size, lo, row, weight: as in `settling`. base, n_own: where the nodes of each frame begin, and how many there
    are; piece_base: where its pieces begin; at: the place in it that is next.
    """

    order: Any
    size: Any
    lo: Any
    row: Any
    weight: Any
    base: Any
    n_own: Any
    piece_base: Any
    at: Any


class Trial(NamedTuple):
    """Scratch for the rows on trial in one branch: the leaves that they reach, rows that go several ways with their
    weights, weights by row (zeros between uses), and what `send_down` needs.
    """

    touched: Any
    listed: Any
    arriving: Any
    held: Any
    leaves: Any
    slots: Any
    both: Any


@inner
def estimated_errors(stats, node, limit, exact):  # type: ignore[no-untyped-def]
    """Give the upper limit of the errors of a node as a leaf, from its class weights.

    exact: None, but for the exact limit.
    """
    weight, most = 0.0, 0.0
    for place in range(stats.shape[1]):
        weight += stats[node, place]
        most = max(most, stats[node, place])
    errors = weight - most
    if limit.confidence > 0.5 or weight <= 0.0:
        return errors
    if exact is not None:
        return errors + exact_errors(weight, errors, limit.confidence)
    return errors + normal_errors(weight, errors, limit.confidence, limit.z, limit.quantile)


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
def begin(tree, values, target, rows, weights, leaves, limit, exact):  # type: ignore[no-untyped-def]
    """Settle rows at the leaves of a tree as it was grown, and write the first figures of its nodes.

    values, target: as in `table_of`. rows, weights: as in `spread`; leaves: int32 (n), what `arrive` has written.

    Returns (the settled rows, whether every row that goes one way knows what is asked for there and has a class).
    """
    table, n_classes = table_of(values, target), tree.stats.shape[1]
    settled = settle(
        tree.nodes, tree.substitutes, tree.shape, tree.shares, table, rows, weights, leaves, n_classes, tree.sums,
        tree.divides,
    )  # fmt: skip
    take_stock(tree, table, settled, limit, exact)
    return settled, is_plain(tree.nodes, tree.substitutes, tree.shape, table.target)


@inner
def take_stock(tree, table, settled, limit, exact):  # type: ignore[no-untyped-def]
    """Write mass, whole, least and estimate of a tree as it was grown."""
    for node in range(len(tree.shape)):
        for code in range(tree.stats.shape[1]):
            tree.mass[node] += tree.stats[node, code]
        if tree.shape[node] >= 0:
            continue
        tree.estimate[node] = estimated_errors(tree.stats, node, limit, exact)
        piece, last = settled.lo[node], beyond(settled.lo, node + 1, len(tree.shape), len(settled.row))
        while piece < last and settled.row[piece] >= 0:
            code = np.int64(table.target[settled.row[piece]])
            if code >= 0:
                tree.whole[node, code] += settled.weight[piece]
            piece += 1
        tree.least[node] = estimated_errors(tree.whole, node, limit, exact)


@inner
def is_plain(nodes, substitutes, shape, target):  # type: ignore[no-untyped-def]
    """Whether every row that goes one way knows what is asked for there, and has a class."""
    for node in range(len(shape)):
        if shape[node] >= 0 and nodes.fallback[node] >= 0:
            return False
    for each in range(len(target)):
        if target[each] < 0:
            return False
    return substitutes.start[len(shape)] == 0


@inner
def beyond(lo, place, last_place, last_piece):  # type: ignore[no-untyped-def]
    """Give the first piece of a place, or the end of all pieces where there is no such place."""
    return lo[place] if place < last_place else last_piece


@compiled
def prune_pessimistically(  # type: ignore[no-untyped-def]
    tree, values, target, settled, plain, places, done, limit, exact, renew, stop
):  # fmt: skip
    """Prune subtrees from the leaves by estimated errors, raising branches (Quinlan 1993, chapter 4).

    A node becomes a leaf, or its heaviest branch (of equals the last) takes its place, as `prune_pessimistic` says.
    tree is written: a Pruning. values, target: as in `table_of`. settled, plain: what `begin` gives. places: int64,
    those of the subtrees' roots in ``settled.order``. done: int32 (n), by the last place of each subtree that is pruned
    already the place of its root, else -1; written. renew: as in `spread`. stop: float64 (2); ends early where stop[1]
    is not 0.

    Returns (int32, three a node that went: the node, the branch put in its place or -1, the place at which that was in
    ``settled.order``; float64, three a node: estimates of the subtree, as a leaf, of the raised branch).
    """
    n_nodes, n_classes = tree.stats.shape
    table, n_rows = table_of(values, target), len(target)
    trial = Trial(
        np.empty(n_nodes, np.int32), np.empty(64, np.int32), np.empty(64), np.zeros(n_rows),
        np.empty(LONGEST_STRETCH, np.int32), empty_slots(), np.zeros((1, n_classes)),
    )  # fmt: skip
    gone, figures, n_gone = np.empty(192, np.int32), np.empty(192), 0
    for each in range(len(places)):
        gone, figures, n_gone, trial = prune_branch(
            tree, table, settled, plain, places[each], done, limit, exact, renew, stop, trial, gone, figures, n_gone
        )
    return first_of(gone, 3 * n_gone), first_of(figures, 3 * n_gone)


@maker
def prune_branch(  # type: ignore[no-untyped-def]
    tree, table, settled, plain, root, done, limit, exact, renew, stop, trial, gone, figures, n_gone
):  # fmt: skip
    """Prune one subtree; gone and figures: the lines of `prune_pessimistically`, n_gone of them so far."""
    frames = first_frame(settled, root)
    n_frames, end, piece_end = 1, len(frames.order), len(frames.row)
    n_pieces = piece_end
    while n_frames > 0 and stop[1] == 0.0:
        frame = n_frames - 1
        place = next_test(tree.shape, frames, frame, done, root)
        if place < 0:
            if frame > 0:
                mark_raised(frames, frame, piece_end, trial.held)
            end, piece_end = frames.base[frame], frames.piece_base[frame]
            n_frames -= 1
            continue
        here = frames.base[frame] + place
        node = frames.order[here]
        frame_end = frames.base[frame] + frames.n_own[frame]
        last = beyond(frames.lo, here + frames.size[here], frame_end, piece_end)
        below, least_below, largest, largest_at = look_below(tree, frames, here)
        as_leaf = estimated_errors(tree.stats, node, limit, exact)
        as_branch = as_leaf
        if tree.shape[largest] >= 0:
            own_last = beyond(frames.lo, largest_at + frames.size[largest_at], frame_end, piece_end)
            span = (frames.lo[here], frames.lo[largest_at], own_last, last)
            trial = with_room(trial, last - frames.lo[here])
            as_branch = try_branch(
                tree, table, plain, frames, largest_at, span, as_leaf, below + SLACK, limit, exact, renew, trial
            )
        becomes_leaf = as_leaf <= below + SLACK and as_leaf <= as_branch + SLACK
        if not becomes_leaf and as_branch > below + SLACK:
            tree.estimate[node], tree.least[node] = below, least_below
            continue
        if 3 * n_gone == len(gone):
            gone, figures = longer(gone, 0), longer(figures, 0)
        put = -1 if becomes_leaf else largest
        gone[3 * n_gone], gone[3 * n_gone + 1], gone[3 * n_gone + 2] = node, put, root + frames.at[0] + 1
        figures[3 * n_gone], figures[3 * n_gone + 1], figures[3 * n_gone + 2] = below, as_leaf, as_branch
        n_gone += 1
        if becomes_leaf:
            make_leaf(tree, node, as_leaf, limit, exact)
            continue
        tree.shape[node] = tree.shape[largest]
        set_step(tree.nodes, tree.steps, tree.shape, node)
        n_listed = rows_of(frames, frames.lo[here], last, ALL_ROWS, trial, 0)
        branch = spread(
            tree.nodes, tree.substitutes, tree.shape, tree.shares, table.values, node, first_of(trial.listed, n_listed),
            first_of(trial.arriving, n_listed), table.target, tree.stats.shape[1], tree.nothing, tree.sums, EVERYWHERE,
            renew, 1, tree.divides, tree.nothing,
        )  # fmt: skip
        count_anew(tree, branch[0], limit, exact)
        if place == 0 and frame > 0:
            # Nothing of this frame is left to look at: the new one takes its place.
            end, piece_end = frames.base[frame], frames.piece_base[frame]
            n_frames -= 1
        frames = with_frame(frames, n_frames, end, piece_end, branch)
        n_frames, end, piece_end = n_frames + 1, end + len(branch[0]), piece_end + len(branch[3])
    # What is above asks which pieces are parts now.
    copy(frames.row, 0, settled.row, settled.lo[root], n_pieces)
    done[root + settled.size[root] - 1] = root
    return gone, figures, n_gone, trial


@maker
def first_frame(settled, root):  # type: ignore[no-untyped-def]
    """Give the frames of a subtree that nothing was done to: one, with copies of its nodes and pieces."""
    n_own, first = np.int64(settled.size[root]), settled.lo[root]
    n_pieces = beyond(settled.lo, root + n_own, len(settled.order), len(settled.row)) - first
    order, size, lo = np.empty(n_own, np.int32), np.empty(n_own, np.int32), np.empty(n_own, np.int64)
    row, weight = np.empty(n_pieces, np.int32), np.empty(n_pieces)
    copy(settled.order, root, order, 0, n_own)
    copy(settled.size, root, size, 0, n_own)
    for each in range(n_own):
        lo[each] = settled.lo[root + each] - first
    copy(settled.row, first, row, 0, n_pieces)
    copy(settled.weight, first, weight, 0, n_pieces)
    base, owns, piece_base = np.zeros(16, np.int64), np.empty(16, np.int64), np.zeros(16, np.int64)
    at = np.empty(16, np.int64)
    owns[0], at[0] = n_own, n_own - 1
    return Frames(order, size, lo, row, weight, base, owns, piece_base, at)


@maker
def with_frame(frames, n_frames, end, piece_end, branch):  # type: ignore[no-untyped-def]
    """Add a frame with what `spread` gives of a branch; end, piece_end: where its nodes and pieces begin."""
    new_order, new_size, new_lo, new_row, new_weight = branch
    n_own, n_pieces = len(new_order), len(new_row)
    order, size, lo, row, weight, base, owns, piece_base, at = frames
    if end + n_own > len(order):
        order, size, lo = longer(order, end + n_own), longer(size, end + n_own), longer(lo, end + n_own)
    if piece_end + n_pieces > len(row):
        row, weight = longer(row, piece_end + n_pieces), longer(weight, piece_end + n_pieces)
    if n_frames == len(base):
        base, owns, piece_base, at = longer(base, 0), longer(owns, 0), longer(piece_base, 0), longer(at, 0)
    base[n_frames], owns[n_frames], piece_base[n_frames], at[n_frames] = end, n_own, piece_end, n_own - 1
    copy(new_order, 0, order, end, n_own)
    copy(new_size, 0, size, end, n_own)
    for each in range(n_own):
        lo[end + each] = new_lo[each] + piece_end
    copy(new_row, 0, row, piece_end, n_pieces)
    copy(new_weight, 0, weight, piece_end, n_pieces)
    return Frames(order, size, lo, row, weight, base, owns, piece_base, at)


@maker
def with_room(trial, n_pieces):  # type: ignore[no-untyped-def]
    """Give scratch that lists so many rows."""
    if n_pieces <= len(trial.listed):
        return trial
    touched, listed, arriving, held, leaves, slots, both = trial
    return Trial(touched, longer(listed, n_pieces), longer(arriving, n_pieces), held, leaves, slots, both)


@inner
def next_test(shape, frames, frame, done, root):  # type: ignore[no-untyped-def]
    """Give the place of the next node of a frame that tests something, -1 where there is none, and move on from it."""
    base, place = frames.base[frame], frames.at[frame]
    while place >= 0:
        if frame == 0 and done[root + place] >= 0:
            place = done[root + place] - root - 1
        elif shape[frames.order[base + place]] < 0:
            place -= 1
        else:
            break
    frames.at[frame] = place - 1
    return place


@inner
def look_below(tree, frames, here):  # type: ignore[no-untyped-def]
    """Add up the branches of a node, writing ``whole`` and ``divides``.

    Returns (their estimates together, their least ones, the heaviest of them, its place).
    """
    node, n_classes = frames.order[here], tree.stats.shape[1]
    split = tree.shape[node]
    below, least_below, largest, largest_at, child_at = 0.0, 0.0, np.int64(-1), here, here + 1
    for code in range(n_classes):
        tree.whole[node, code] = 0.0
    for each in range(tree.nodes.child_start[split], tree.nodes.child_start[split + 1]):
        child = np.int64(tree.nodes.child[each])
        below += tree.estimate[child]
        least_below += tree.least[child]
        for code in range(n_classes):
            tree.whole[node, code] += tree.whole[child, code]
        tree.divides[node] = tree.divides[node] or tree.divides[child]
        if largest < 0 or tree.mass[child] >= tree.mass[largest]:
            largest, largest_at = child, child_at
        child_at += frames.size[child_at]
    return below, least_below, largest, largest_at


@maker
def try_branch(  # type: ignore[no-untyped-def]
    tree, table, plain, frames, largest_at, span, as_leaf, enough, limit, exact, renew, trial
):  # fmt: skip
    """Give the estimated errors of a node's largest branch with all the node's rows, or a number above `enough`.

    span: where the pieces of the node begin, those of the branch begin and end, and those of the node end.
    """
    largest = np.int64(frames.order[largest_at])
    # Without that number the node is a leaf or stays what it is.
    may_stay = as_leaf > enough
    n_touched, n_left_out, estimate = send_others(
        tree, table, frames, largest, span, enough * ABOVE_ROUNDING if may_stay else np.inf, limit, exact, trial
    )
    stays = may_stay and estimate > enough * ABOVE_ROUNDING
    if not stays and (tree.divides[largest] or n_left_out > 0):
        n_own = np.int64(frames.size[largest_at])
        n_listed = prepare_shares(tree, plain, frames, largest_at, n_own, span, n_left_out, trial)
        tried = spread(
            tree.nodes, tree.substitutes, tree.shape, tree.trial_shares, table.values, largest,
            first_of(trial.listed, n_listed), first_of(trial.arriving, n_listed), table.target, tree.stats.shape[1],
            tree.nothing, tree.sums, AT_LEAVES, renew, 0, tree.divides, tree.known if plain else tree.nothing,
        )  # fmt: skip
        estimate = spread_errors(tree, tried[0], plain, limit, exact, trial.both)
    forget(tree, trial.touched, n_touched)
    return estimate


@inner
def send_others(tree, table, frames, largest, span, enough, limit, exact, trial):  # type: ignore[no-untyped-def]
    """Send the rows of a node's other branches down its largest, until its estimate is above `enough`.

    A row that goes several ways has no place of its own in a sum: the others give the least there is. No estimate falls
    when rows are added, so what some rows give is the least that more of them will.

    Returns (how many leaves are touched, how many rows are listed that go several ways, the estimate).
    """
    n_touched, n_left_out, n_sent, wrong = 0, 0, 0, 0.0
    sent, own_first, own_last, last = span
    counted, known = tree.stats, tree.estimate
    if tree.divides[largest]:
        counted, known = tree.whole, tree.least
    # It is worth looking once so much is wrong: a wrong answer more raises an estimate by one or a little more.
    due = enough - known[largest]
    while sent < last:
        if sent == own_first:
            sent = own_last
        # At most an eighth more than needed.
        stretch = min(max(N_SLOTS, n_sent // (8 * N_SLOTS) * N_SLOTS), LONGEST_STRETCH)
        until = min(sent + stretch, last if sent >= own_last else own_first)
        n_more = send_down(
            tree.nodes, tree.steps, tree.substitutes, tree.shape, table, frames.row, sent, until, largest, trial.leaves,
            trial.slots,
        )  # fmt: skip
        n_touched, more_wrong = add_up(
            frames.row, frames.weight, sent, until, table.target, counted, trial.leaves, tree.extra, tree.is_touched,
            trial.touched, n_touched, trial.listed, trial.arriving, n_left_out,
        )  # fmt: skip
        n_left_out, wrong = n_left_out + n_more, wrong + more_wrong
        n_sent, sent = n_sent + until - sent, until
        if wrong >= due and sent < last:
            total = least_errors(tree, counted, known, largest, n_touched, trial, limit, exact)
            if total > enough:
                return n_touched, n_left_out, total
            due = wrong + max(enough - total, 1.0)
    return n_touched, n_left_out, least_errors(tree, counted, known, largest, n_touched, trial, limit, exact)


@inner
def add_up(  # type: ignore[no-untyped-def]
    row, weight, first, last, target, counted, leaves, extra, is_touched, touched, n_touched, listed, arriving, n_listed
):  # fmt: skip
    """Add up in `extra` the pieces first:last by the leaves that they reach, list those that go several ways.

    Returns (how many leaves are touched now, the weight of those whose class is not that of most rows of their leaf).
    """
    wrong = 0.0
    for piece in range(first, last):
        leaf, own, own_weight = leaves[piece - first], row[piece], weight[piece]
        own = own if own >= 0 else ~own
        if leaf < 0:
            listed[n_listed], arriving[n_listed] = own, own_weight
            n_listed += 1
            continue
        code = np.int64(target[own])
        if code >= 0:
            extra[leaf, code] += own_weight
            most = 0.0
            for other in range(counted.shape[1]):
                most = max(most, counted[leaf, other])
            wrong += own_weight * np.float64(counted[leaf, code] < most)
        if not is_touched[leaf]:
            is_touched[leaf] = True
            touched[n_touched] = leaf
            n_touched += 1
    return n_touched, wrong


@inner
def least_errors(tree, counted, known, largest, n_touched, trial, limit, exact):  # type: ignore[no-untyped-def]
    """Give the estimated errors of a branch whose touched leaves have ``extra`` rows more than `counted`."""
    total = known[largest]
    for each in range(n_touched):
        leaf = trial.touched[each]
        total += errors_with(tree.extra, counted, leaf, trial.both, limit, exact) - known[leaf]
    return total


@inner
def errors_with(extra, counted, leaf, both, limit, exact):  # type: ignore[no-untyped-def]
    """Give the estimated errors of a leaf with extra rows; both: scratch (1, classes)."""
    for code in range(both.shape[1]):
        both[0, code] = extra[leaf, code] + counted[leaf, code]
    return estimated_errors(both, 0, limit, exact)


@inner
def prepare_shares(tree, plain, frames, largest_at, n_own, span, n_left_out, trial):  # type: ignore[no-untyped-def]
    """Write what the sharing out of rows in a branch begins with, and list those rows; give how many.

    The rows that know a test's value share out those that do not, and with those of the other branches they are more.
    """
    for place in range(largest_at + n_own - 1, largest_at - 1, -1):
        node = frames.order[place]
        test = tree.shape[node]
        tree.known[node] = 0.0
        if test < 0:
            for code in range(tree.whole.shape[1]):
                tree.known[node] += tree.whole[node, code] + tree.extra[node, code]
            continue
        first = tree.nodes.child_start[test]
        n_children = tree.nodes.child_start[test + 1] - first
        copy(tree.shares, first, tree.trial_shares, first, n_children)
        for each in range(first, first + n_children):
            tree.known[node] += tree.known[tree.nodes.child[each]]
    begin, own_first, own_last, last = span
    if plain:
        n_listed = rows_of(frames, own_first, own_last, PARTS, trial, n_left_out)
    else:
        n_listed = rows_of(frames, begin, last, ALL_ROWS, trial, 0)
    for each in range(n_listed):
        own = trial.listed[each]
        trial.listed[each] = own if own >= 0 else ~own
    return n_listed


@inner
def spread_errors(tree, order, plain, limit, exact, both):  # type: ignore[no-untyped-def]
    """Add up the estimated errors of the leaves among the nodes of a branch that rows on trial were spread over."""
    total = 0.0
    for place in range(len(order)):
        node = order[place]
        if tree.shape[node] >= 0:
            continue
        for code in range(both.shape[1]):
            both[0, code] = tree.sums[node, code]
            if plain:
                both[0, code] += tree.whole[node, code] + tree.extra[node, code]
        total += estimated_errors(both, 0, limit, exact)
    return total


@inner
def forget(tree, touched, n_touched):  # type: ignore[no-untyped-def]
    """Have no rows on trial."""
    for each in range(n_touched):
        tree.is_touched[touched[each]] = False
        for code in range(tree.extra.shape[1]):
            tree.extra[touched[each], code] = 0.0


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


@inner
def rows_of(frames, first, last, which, trial, n_listed):  # type: ignore[no-untyped-def]
    """List the rows of the pieces first:last with their weights there, after the n_listed first ones; give how many.

    which: ALL_ROWS, or only those in PARTS. A row in several pieces is listed as ~row, as a part of one is.
    """
    row, held, listed, begin = frames.row, trial.held, trial.listed, n_listed
    for piece in range(first, last):
        if which == PARTS and row[piece] >= 0:
            continue
        own = row[piece] if row[piece] >= 0 else ~row[piece]
        if held[own] == 0.0:
            listed[n_listed] = row[piece]
            n_listed += 1
        held[own] += frames.weight[piece]
    for each in range(begin, n_listed):
        own = listed[each] if listed[each] >= 0 else ~listed[each]
        trial.arriving[each] = held[own]
        held[own] = 0.0
    return n_listed


@inner
def mark_raised(frames, frame, piece_end, held):  # type: ignore[no-untyped-def]
    """Make parts of those pieces of the node whose branch was raised whose rows are in parts in the branch now.

    The pieces of the node are as they were before: rows that go one way there may go several now. The frame is that of
    the branch, which ends with `piece_end`; it stands in the place of the node looked at last in the frame before.
    """
    above, first = frame - 1, frames.piece_base[frame]
    raised_at = frames.base[above] + frames.at[above] + 1
    frame_end = frames.base[above] + frames.n_own[above]
    until = beyond(frames.lo, raised_at + frames.size[raised_at], frame_end, first)
    row = frames.row
    for piece in range(first, piece_end):
        if row[piece] < 0:
            held[~row[piece]] = 1.0
    for piece in range(frames.lo[raised_at], until):
        if row[piece] >= 0 and held[row[piece]] > 0.0:
            row[piece] = ~row[piece]
    for piece in range(first, piece_end):
        if row[piece] < 0:
            held[~row[piece]] = 0.0
