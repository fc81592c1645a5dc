"""A node's largest branch tried in the node's place: the rows of the other branches are sent down it.

No estimate falls when rows are added, so what some rows give is the least that all will: a branch is given up as soon
as that is too much. Those most likely to go wrong are sent first: rows of other classes than most of the branch::

    pieces of a node   | o x x o o x | the branch's own | x o x o |      o: of the class that most there are of
    sent                 . 1 2 . . 3                      4 . 5 .        first all x,
                         6 . . 7 8 .                      . 9 . 10       then all o
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels import limits
from espalier.kernels.buffers import copy, first_of, longer
from espalier.kernels.jit import inlined, inner, maker, shared
from espalier.kernels.limits import exact_errors, normal_errors
from espalier.kernels.parting import empty_queue, part_down
from espalier.kernels.route import N_SLOTS
from espalier.kernels.settling import empty_slots, send_down
from espalier.kernels.spreading import AT_LEAVES, spread

__all__ = [
    "ABOVE_ROUNDING",
    "ALL_ROWS",
    "Limit",
    "Trial",
    "empty_trial",
    "estimated_errors",
    "forget",
    "rows_of",
    "send_others",
    "spread_others",
    "with_room",
]

for _name in ("normal_errors", "larger_errors", "exact_errors", "exact_limit", "beta_ratio", "beta_series"):
    shared(getattr(limits, _name))

ABOVE_ROUNDING = 1.0 + 1e-9
LONGEST_STRETCH = 1024
"""At most so many rows are tried in a branch before it is asked whether more of them could still let it rise."""
MANY = 128
"""From so many rows on they are parted at each test; fewer take their steps sixteen together."""
ALL_ROWS = 0
PARTS = 1


class Limit(NamedTuple):
    """Which upper limit of the errors is taken; see `limits.added_errors`."""

    confidence: Any
    z: Any
    quantile: Any


class Trial(NamedTuple):
    """What one thread has of the rows on trial in a branch.

    Zeros between two trials: extra: float64 (n, classes), their class weights at the leaves that they reach;
    is_touched: bool (n), whether there are some; held: float64 (rows), weights by row. Scratch: touched: int32 (n),
    those leaves; going: int64, the pieces that are sent together; leaves: int32, the leaf of each piece from the node's
    first on; listed, arriving: rows that go several ways, with their weights; slots, queue, both: what
    `send_down`, `part_down` and `least_errors` need. n_branches: the most that a test has.
    """

    extra: Any
    is_touched: Any
    held: Any
    touched: Any
    going: Any
    leaves: Any
    listed: Any
    arriving: Any
    slots: Any
    queue: Any
    both: Any
    n_branches: Any


@maker
def empty_trial(n_nodes, n_classes, n_rows, n_branches):  # type: ignore[no-untyped-def]
    """Make what a thread needs to try branches."""
    return Trial(
        np.zeros((n_nodes, n_classes)), np.zeros(n_nodes, np.bool_), np.zeros(n_rows), np.empty(n_nodes, np.int32),
        np.empty(LONGEST_STRETCH + 1, np.int64), np.empty(64, np.int32), np.empty(64, np.int32), np.empty(64),
        empty_slots(), empty_queue(n_nodes, LONGEST_STRETCH + 1, n_branches), np.zeros((1, n_classes)), n_branches,
    )  # fmt: skip


@maker
def with_room(trial, n_pieces):  # type: ignore[no-untyped-def]
    """Give scratch for a node of so many pieces."""
    if n_pieces <= len(trial.listed):
        return trial
    extra, is_touched, held, touched, going, leaves, listed, arriving, slots, queue, both, n_branches = trial
    return Trial(
        extra, is_touched, held, touched, going, longer(leaves, n_pieces), longer(listed, n_pieces),
        longer(arriving, n_pieces), slots, queue, both, n_branches,
    )  # fmt: skip


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


@inlined
def send_others(tree, table, pieces, largest, span, may_stay, enough, limit, exact, trial):  # type: ignore[no-untyped-def]
    """Send the rows of a node's other branches down its largest; with `may_stay` until its estimate is above `enough`.

    pieces: what has ``row``, ``weight`` and ``code``. span: where the pieces of the node begin, those of the branch
    begin and end, and those of the node end. A row that goes several ways has no place of its own in a sum: the others
    give the least there is.

    Returns (whether the branch is given up, how many leaves are touched, how many rows are listed that go several ways,
    the estimate).
    """
    begin, own_first, own_last, last = span
    n_others = own_first - begin + last - own_last
    counted, known = tree.stats, tree.estimate
    if tree.divides[largest]:
        counted, known = tree.whole, tree.least
    # It is worth looking once so much is wrong: a wrong answer more raises an estimate by one or a little more.
    enough = enough * ABOVE_ROUNDING if may_stay else np.inf
    due = enough - known[largest]
    in_order = n_others <= N_SLOTS or not may_stay
    common, turn, piece = most_common(tree.stats, largest), np.int64(in_order), begin
    n_touched, n_listed, n_sent, wrong = 0, 0, 0, 0.0
    while n_sent < n_others:
        # At most an eighth more than needed.
        stretch = min(max(N_SLOTS, n_sent // (8 * N_SLOTS) * N_SLOTS), LONGEST_STRETCH)
        n_going = 0
        while n_going < stretch and turn < 2:
            if piece == own_first:
                piece = own_last
            if piece >= last:
                piece, turn = begin, turn + 1
                continue
            until = min(own_first if piece < own_first else last, piece + stretch - n_going)
            for each in range(np.uint64(piece), np.uint64(until)):
                trial.going[n_going] = each
                n_going += np.int64(in_order or (pieces.code[each] == common) == (turn == 1))
            piece = until
        if n_going >= MANY:
            part_down(
                tree.nodes, tree.substitutes, tree.shape, table, pieces.row, trial.going, n_going, largest,
                trial.leaves, begin, trial.queue,
            )  # fmt: skip
        else:
            send_down(
                tree.nodes, tree.steps, tree.substitutes, tree.shape, table, pieces.row, trial.going, n_going, largest,
                trial.leaves, begin, trial.slots,
            )  # fmt: skip
        n_touched, n_listed, more_wrong = add_up(pieces, counted, begin, trial, n_going, n_touched, n_listed)
        wrong, n_sent = wrong + more_wrong, n_sent + n_going
        if wrong >= due:
            total = least_errors(tree.stats, counted, known, largest, n_touched, trial, limit, exact)
            if total > enough:
                return True, n_touched, n_listed, total
            due = wrong + max(enough - total, 1.0)
    if not in_order:
        total = least_errors(tree.stats, counted, known, largest, n_touched, trial, limit, exact)
        if total > enough:
            return True, n_touched, n_listed, total
        # Sums are taken in the order of the rows, whichever were sent first.
        forget(trial, n_touched)
        n_touched, n_listed = add_in_order(pieces, counted, span, trial)
    total = least_errors(tree.stats, counted, known, largest, n_touched, trial, limit, exact)
    return may_stay and total > enough, n_touched, n_listed, total


@inner
def most_common(stats, node):  # type: ignore[no-untyped-def]
    """Give the first of a node's heaviest classes."""
    common = 0
    for code in range(stats.shape[1]):
        if stats[node, code] > stats[node, common]:
            common = code
    return common


@inner
def add_up(pieces, counted, begin, trial, n_going, n_touched, n_listed):  # type: ignore[no-untyped-def]
    """Add up in ``extra`` the pieces that are going by the leaves that they reach, list those that go several ways.

    Returns (how many leaves are touched now, how many rows are listed, what those weigh whose class is not that of most
    rows of their leaf).
    """
    wrong = 0.0
    for each in range(n_going):
        piece = trial.going[each]
        leaf, own_weight = trial.leaves[piece - begin], pieces.weight[piece]
        if leaf < 0:
            own = pieces.row[piece]
            trial.listed[n_listed], trial.arriving[n_listed] = own if own >= 0 else ~own, own_weight
            n_listed += 1
            continue
        code = np.int64(pieces.code[piece])
        if code >= 0:
            trial.extra[leaf, code] += own_weight
            most = 0.0
            for other in range(counted.shape[1]):
                most = max(most, counted[leaf, other])
            wrong += own_weight * np.float64(counted[leaf, code] < most)
        if not trial.is_touched[leaf]:
            trial.is_touched[leaf] = True
            trial.touched[n_touched] = leaf
            n_touched += 1
    return n_touched, n_listed, wrong


@inner
def add_in_order(pieces, counted, span, trial):  # type: ignore[no-untyped-def]
    """Add up all pieces of the other branches, each of which has been sent; give what `add_up` gives but the last."""
    begin, own_first, own_last, last = span
    n_touched, n_listed, piece = 0, 0, begin
    while piece < last:
        if piece == own_first:
            piece = own_last
        n_going = min((own_first if piece < own_first else last) - piece, LONGEST_STRETCH)
        for each in range(n_going):
            trial.going[each] = piece + each
        n_touched, n_listed, _ = add_up(pieces, counted, begin, trial, n_going, n_touched, n_listed)
        piece += n_going
    return n_touched, n_listed


@inner
def least_errors(stats, counted, known, largest, n_touched, trial, limit, exact):  # type: ignore[no-untyped-def]
    """Give the estimated errors of a branch whose touched leaves have ``extra`` rows more than `counted`."""
    total = known[largest]
    for each in range(n_touched):
        leaf = trial.touched[each]
        for code in range(stats.shape[1]):
            trial.both[0, code] = trial.extra[leaf, code] + counted[leaf, code]
        total += estimated_errors(trial.both, 0, limit, exact) - known[leaf]
    return total


@inner
def forget(trial, n_touched):  # type: ignore[no-untyped-def]
    """Have no rows on trial."""
    for each in range(n_touched):
        leaf = trial.touched[each]
        trial.is_touched[leaf] = False
        for code in range(trial.extra.shape[1]):
            trial.extra[leaf, code] = 0.0


@maker
def spread_others(  # type: ignore[no-untyped-def]
    tree, table, plain, frames, largest_at, span, n_listed, limit, exact, renew, trial
):  # fmt: skip
    """Give the estimated errors of a branch in which rows go several ways, after `send_others` has sent the others.

    span: as there; n_listed: how many rows are listed.
    """
    largest, n_own = np.int64(frames.order[largest_at]), np.int64(frames.size[largest_at])
    n_listed = prepare_shares(tree, plain, frames, largest_at, n_own, span, n_listed, trial)
    tried = spread(
        tree.nodes, tree.substitutes, tree.shape, tree.trial_shares, table.values, largest,
        first_of(trial.listed, n_listed), first_of(trial.arriving, n_listed), table.target, tree.stats.shape[1],
        tree.nothing, tree.sums, AT_LEAVES, renew, 0, tree.divides, tree.known if plain else tree.nothing,
        trial.n_branches,
    )  # fmt: skip
    return spread_errors(tree, tried[0], plain, limit, exact, trial)


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
                tree.known[node] += tree.whole[node, code] + trial.extra[node, code]
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
def spread_errors(tree, order, plain, limit, exact, trial):  # type: ignore[no-untyped-def]
    """Add up the estimated errors of the leaves among the nodes of a branch that rows on trial were spread over."""
    total = 0.0
    for place in range(len(order)):
        node = order[place]
        if tree.shape[node] >= 0:
            continue
        for code in range(tree.whole.shape[1]):
            trial.both[0, code] = tree.sums[node, code]
            if plain:
                trial.both[0, code] += tree.whole[node, code] + trial.extra[node, code]
        total += estimated_errors(trial.both, 0, limit, exact)
    return total


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
