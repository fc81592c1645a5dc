"""Prune by estimated errors, with or without subtree raising (Quinlan 1993, chapter 4).

Nodes are visited from the last in preorder to the first. A raised branch gets all rows of the node that it replaces,
distributed over it again; its nodes are then visited in the same way before the visit above goes on::

    frames[0]    the whole tree with its rows at the leaves
    frames[1]    a branch that replaced a node of frames[0], with that node's rows at its leaves
    frames[2]    a branch that replaced a node of frames[1], …
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.jit import compiled, inlined, inner, maker, shared
from espalier.pruning.kernels import error_limits
from espalier.pruning.kernels.distribute import branch_of_row, distribute_rows, first_of
from espalier.pruning.kernels.error_limits import added_errors

for _name in ("normal_errors", "larger_errors", "exact_errors", "exact_limit", "beta_ratio", "beta_series"):
    shared(getattr(error_limits, _name))
shared(added_errors)

SLACK = 0.1
"""A leaf or a raised branch may be this many errors worse than the subtree (Quinlan 1993)."""
EQUALLY_HEAVY = 1.0 - 1e-9
"""Branches of this share of the heaviest weigh the same: sums of shares of rows are rounded."""
ABOVE_ROUNDING = 1.0 + 1e-9
FIRST_CHECK = 16
CHECK_EVERY = 4
"""After 16 rows in a branch, and whenever there are a quarter more, its estimate is compared with the bound."""
FRAME_DONE, DIVIDES, RAISE = 0, 1, 2
"""Why `visit_nodes` returns: the frame is done, rows go down several branches, or a branch is raised."""
EVERY_PART, DIVIDED_ROWS = 0, 1
"""What `list_rows` lists."""


class ErrorLimit(NamedTuple):
    """Which upper limit of the errors is estimated; see `error_limits.added_errors`."""

    confidence: Any
    z: Any
    quantile: Any


class PruningState(NamedTuple):
    """A tree of n nodes as pruned so far, with figures of each node.

    tree: TreeArrays. shape: int32 (n), shares: see `distribute`. stats: float64 (n, n_classes), class weights; mass:
    float64 (n), their sum; estimate: float64 (n), estimated errors of the subtree. whole, least: stats and estimate of
    those rows alone that go down one branch at every test of the subtree. divides: bool (n), whether a row goes down
    several branches in the subtree. values, target: of the rows, as `distribute_rows` takes them.
    """

    tree: Any
    shape: Any
    shares: Any
    stats: Any
    mass: Any
    estimate: Any
    whole: Any
    least: Any
    divides: Any
    values: Any
    target: Any


class Trial(NamedTuple):
    """Scratch for the rows that are tried in a branch.

    All zeros between two trials: extra: float64 (n, n_classes), class weights of these rows at leaves; is_touched: bool
    (n), whether a leaf has some; held: float64 (n_rows). touched: int32 (n), those leaves in the order in which rows
    came. both: float64 (1, n_classes). listed, arriving: rows that are to be distributed, with their weights. sums,
    shares, known, nothing: as `distribute_rows` takes them; nothing is all zeros.
    """

    extra: Any
    is_touched: Any
    held: Any
    touched: Any
    both: Any
    listed: Any
    arriving: Any
    sums: Any
    shares: Any
    known: Any
    nothing: Any


@compiled
def prune_to_leaves(tree, shape, stats, limit, stop):  # type: ignore[no-untyped-def]
    """Replace nodes by leaves; shape is written.

    stop: float64 (2); the visit ends early if stop[1] is not 0.

    Returns (nodes that were replaced, int32; float64, the estimates of each one's subtree and as a leaf).
    """
    n_nodes, n_steps = len(shape), 0
    estimate, nodes, figures = np.zeros(n_nodes), np.empty(n_nodes, np.int32), np.empty((n_nodes, 2))
    for node in range(n_nodes - 1, -1, -1):
        as_leaf = estimated_errors(stats, node, limit)
        if shape[node] < 0 or stop[1] != 0.0:
            estimate[node] = as_leaf
            continue
        below = 0.0
        for each in range(tree.child_start[node], tree.child_start[node + 1]):
            below += estimate[tree.child[each]]
        estimate[node] = below
        if as_leaf <= below + SLACK:
            estimate[node], shape[node] = as_leaf, -1
            nodes[n_steps], figures[n_steps, 0], figures[n_steps, 1] = node, below, as_leaf
            n_steps += 1
    return nodes[:n_steps], figures[:n_steps]


@compiled
def prune_with_raising(state, frame, knows_all, limit, renew, stop):  # type: ignore[no-untyped-def]
    """Replace nodes by leaves or by their heaviest branch, of equally heavy ones the last.

    state: a PruningState, written. frame: the rows at the leaves of the whole tree, a ``Distributed``; those of each
    leaf that go nowhere else first. knows_all: whether every row that goes down one branch at a test knows the value
    there, and every row has a class. renew: as in `distribute_rows`. stop: as in `prune_to_leaves`.

    Returns (int32, a line a replaced node: the node, the branch that replaced it or -1; float64, a line a node:
    estimates of the subtree, as a leaf, of the branch).
    """
    n_nodes = len(state.shape)
    begin(state, frame, limit)
    # Each step takes at least one test away.
    steps, figures, n_steps = np.empty((n_nodes, 2), np.int32), np.empty((n_nodes, 3)), 0
    trial = new_trial(state, len(frame.row))
    frames, places = [frame], [np.int64(n_nodes - 1)]
    while len(frames) > 0 and stop[1] == 0.0:
        frame = frames[-1]
        # A function that makes no array counts no references, which would take as long as all else.
        reason, place, n_steps, n_listed = visit_nodes(
            state, frame, places[-1], limit, stop, trial, steps, figures, n_steps
        )
        places[-1] = place - 1
        if reason == FRAME_DONE:
            frames.pop()
            places.pop()
            if len(frames) > 0:
                mark_parts(frames[-1], places[-1] + 1, frame, trial.held)
            continue
        if reason == DIVIDES:
            as_branch = errors_with_parts(state, frame, place, n_listed, knows_all, limit, renew, trial)
            n_steps, is_raised = replace_node(state, frame, place, as_branch, limit, steps, figures, n_steps)
            if not is_raised:
                continue
        branch = redistribute(state, frame, place, limit, renew, trial)
        if len(frames) > 1 and place == 0:
            # Nothing is left to visit in this frame: the new one replaces it.
            frames.pop()
            places.pop()
        frames.append(branch)
        places.append(np.int64(len(branch.order) - 1))
        if len(branch.row) > len(trial.listed):
            trial = new_trial(state, len(branch.row))
    return steps[:n_steps], figures[:n_steps]


@inner
def begin(state, frame, limit):  # type: ignore[no-untyped-def]
    """Write mass, whole, least and estimate of a tree as grown."""
    for node in range(len(state.shape)):
        for code in range(state.stats.shape[1]):
            state.mass[node] += state.stats[node, code]
        if state.shape[node] >= 0:
            continue
        for part in range(frame.lo[node], frame.lo[node + 1]):
            if frame.row[part] >= 0 and state.target[frame.row[part]] >= 0:
                state.whole[node, np.int64(state.target[frame.row[part]])] += frame.weight[part]
        state.estimate[node] = estimated_errors(state.stats, node, limit)
        state.least[node] = estimated_errors(state.whole, node, limit)


@maker
def new_trial(state, n_parts):  # type: ignore[no-untyped-def]
    """Return scratch with room for a frame of `n_parts` row parts."""
    n_nodes, n_classes = state.stats.shape
    return Trial(
        np.zeros((n_nodes, n_classes)), np.zeros(n_nodes, np.bool_), np.zeros(len(state.target)),
        np.empty(n_nodes, np.int32), np.zeros((1, n_classes)), np.empty(n_parts, np.int32), np.empty(n_parts),
        np.empty((n_nodes, 2 * n_classes + 2)), np.empty(len(state.shares)), np.zeros(n_nodes), np.zeros(n_nodes),
    )  # fmt: skip


@inner
def visit_nodes(state, frame, place, limit, stop, trial, steps, figures, n_steps):  # type: ignore[no-untyped-def]
    """Visit nodes from `place` on until one needs its rows distributed.

    Returns (the reason, the node's place, the number of steps, how many of the rows that were tried are listed).
    """
    while place >= 0 and stop[1] == 0.0:
        node = np.int64(frame.order[place])
        if state.shape[node] < 0:
            place -= 1
            continue
        add_below(state, node)
        below, _, largest, largest_at = below_node(state, frame, place)
        as_leaf = estimated_errors(state.stats, node, limit)
        as_branch, bound = as_leaf, below + SLACK
        if state.shape[largest] >= 0:
            # As a leaf the node is compared with its branch, whose estimate must then be exact.
            stays_below = bound * ABOVE_ROUNDING if as_leaf > bound else np.inf
            n_touched, n_listed, as_branch = add_to_branch(state, frame, place, largest_at, stays_below, limit, trial)
            if as_branch <= stays_below and (state.divides[largest] or n_listed > 0):
                return DIVIDES, place, n_steps, n_listed
            clear(trial, n_touched)
        n_steps, is_raised = replace_node(state, frame, place, as_branch, limit, steps, figures, n_steps)
        if is_raised:
            return RAISE, place, n_steps, 0
        place -= 1
    return FRAME_DONE, place, n_steps, 0


@inner
def replace_node(state, frame, place, as_branch, limit, steps, figures, n_steps):  # type: ignore[no-untyped-def]
    """Replace a node by a leaf or its largest branch if that is hardly worse.

    Returns (the number of steps, whether the branch is raised).
    """
    node = np.int64(frame.order[place])
    below, least_below, largest, _ = below_node(state, frame, place)
    as_leaf, bound = estimated_errors(state.stats, node, limit), below + SLACK
    becomes_leaf = as_leaf <= bound and as_leaf <= as_branch + SLACK
    if not becomes_leaf and as_branch > bound:
        state.estimate[node], state.least[node] = below, least_below
        return n_steps, False
    steps[n_steps, 0], steps[n_steps, 1] = node, -1 if becomes_leaf else largest
    figures[n_steps, 0], figures[n_steps, 1], figures[n_steps, 2] = below, as_leaf, as_branch
    if becomes_leaf:
        state.shape[node], state.divides[node], state.estimate[node] = -1, False, as_leaf
        state.least[node] = estimated_errors(state.whole, node, limit)
    else:
        state.shape[node] = state.shape[largest]
    return n_steps + 1, not becomes_leaf


@inner
def add_below(state, node):  # type: ignore[no-untyped-def]
    """Write ``whole`` and ``divides`` of a node from those of its branches."""
    split = state.shape[node]
    for code in range(state.stats.shape[1]):
        state.whole[node, code] = 0.0
    for each in range(state.tree.child_start[split], state.tree.child_start[split + 1]):
        child = np.int64(state.tree.child[each])
        for code in range(state.stats.shape[1]):
            state.whole[node, code] += state.whole[child, code]
        state.divides[node] = state.divides[node] or state.divides[child]


@inner
def below_node(state, frame, place):  # type: ignore[no-untyped-def]
    """Return the sums of ``estimate`` and ``least`` over a node's branches, its largest branch and that one's place."""
    split = state.shape[frame.order[place]]
    below, least_below, largest, largest_at, child_at = 0.0, 0.0, np.int64(-1), place, place + 1
    for each in range(state.tree.child_start[split], state.tree.child_start[split + 1]):
        child = np.int64(state.tree.child[each])
        below += state.estimate[child]
        least_below += state.least[child]
        if largest < 0 or state.mass[child] >= EQUALLY_HEAVY * state.mass[largest]:
            largest, largest_at = child, child_at
        child_at += frame.size[child_at]
    return below, least_below, largest, largest_at


@inner
def estimated_errors(stats, node, limit):  # type: ignore[no-untyped-def]
    """Return the upper limit of the errors of a node as a leaf, from its class weights."""
    weight, most = 0.0, 0.0
    for code in range(stats.shape[1]):
        weight += stats[node, code]
        most = max(most, stats[node, code])
    errors = weight - most
    return errors + added_errors(weight, errors, limit.confidence, limit.z, limit.quantile)


@inlined
def add_to_branch(state, frame, place, largest_at, bound, limit, trial):  # type: ignore[no-untyped-def]
    """Add the rows of a node's other branches to the leaves of its largest, until its estimate exceeds the bound.

    If rows go down several branches, the estimate is that of the others: no estimate falls when rows are added.

    Returns (how many leaves are touched, how many rows are listed that go down several branches, the estimate).
    """
    largest, stats, known = np.int64(frame.order[largest_at]), state.stats, state.estimate
    if state.divides[largest]:
        stats, known = state.whole, state.least
    first, last = frame.lo[place], frame.lo[place + frame.size[place]]
    own_first, own_last = frame.lo[largest_at], frame.lo[largest_at + frame.size[largest_at]]
    common = most_common(state.stats, largest)
    # Rows that are most likely wrong in the branch are tried alone, then all rows in their order.
    is_worth_it = bound < np.inf and last - first - own_last + own_first > FIRST_CHECK
    for only_likely_wrong in range(np.int64(is_worth_it), -1, -1):
        n_touched, n_listed, n_added, next_check, part = 0, 0, 0, FIRST_CHECK, first
        while part < last:
            if part == own_first:
                part = own_last
                continue
            row = frame.row[part] if frame.row[part] >= 0 else ~frame.row[part]
            code = np.int64(state.target[row])
            part += 1
            if only_likely_wrong == 1 and code == common:
                continue
            if n_added == next_check:
                next_check += n_added // CHECK_EVERY
                estimate = errors_with_extra(stats, known, largest, n_touched, limit, trial)
                if estimate > bound:
                    return n_touched, n_listed, estimate
            n_added += 1
            leaf = leaf_of_row(state, largest, row)
            if leaf < 0:
                trial.listed[n_listed], trial.arriving[n_listed] = row, frame.weight[part - 1]
                n_listed += 1
                continue
            if code >= 0:
                trial.extra[leaf, code] += frame.weight[part - 1]
            if not trial.is_touched[leaf]:
                trial.is_touched[leaf], trial.touched[n_touched] = True, leaf
                n_touched += 1
        estimate = errors_with_extra(stats, known, largest, n_touched, limit, trial)
        if estimate > bound or only_likely_wrong == 0:
            break
        clear(trial, n_touched)
    return n_touched, n_listed, estimate


@inner
def most_common(stats, node):  # type: ignore[no-untyped-def]
    """Return the first of the heaviest classes of a node."""
    common = 0
    for code in range(stats.shape[1]):
        if stats[node, code] > stats[node, common]:
            common = code
    return common


@inner
def leaf_of_row(state, node, row):  # type: ignore[no-untyped-def]
    """Return the leaf below `node` that a row reaches, -1 if it goes down several branches."""
    while state.shape[node] >= 0:
        split = state.shape[node]
        branch = branch_of_row(state.tree, split, state.values, row)
        if branch < 0:
            return np.int64(-1)
        node = np.int64(state.tree.child[state.tree.child_start[split] + branch])
    return node


@inner
def errors_with_extra(stats, known, largest, n_touched, limit, trial):  # type: ignore[no-untyped-def]
    """Return the estimated errors of a branch with the extra rows at its touched leaves."""
    total = known[largest]
    for each in range(n_touched):
        leaf = trial.touched[each]
        for code in range(stats.shape[1]):
            trial.both[0, code] = trial.extra[leaf, code] + stats[leaf, code]
        total += estimated_errors(trial.both, 0, limit) - known[leaf]
    return total


@inner
def clear(trial, n_touched):  # type: ignore[no-untyped-def]
    """Forget the extra rows."""
    for each in range(n_touched):
        leaf = trial.touched[each]
        trial.is_touched[leaf] = False
        for code in range(trial.extra.shape[1]):
            trial.extra[leaf, code] = 0.0


@maker
def errors_with_parts(state, frame, place, n_listed, knows_all, limit, renew, trial):  # type: ignore[no-untyped-def]
    """Return the estimated errors of a branch in which rows go down several branches, after `add_to_branch`.

    Only those rows are distributed if the others know all values: what these weigh at each node is known then, and with
    it the branch shares.
    """
    _, _, _, largest_at = below_node(state, frame, place)
    n_listed = prepare_parts(state, frame, place, largest_at, n_listed, knows_all, trial)
    distributed = distribute_rows(
        state.tree, state.shape, trial.shares, state.values, np.int64(frame.order[largest_at]),
        first_of(trial.listed, n_listed), first_of(trial.arriving, n_listed), state.target, state.stats.shape[1],
        trial.nothing, trial.sums, renew, 0, state.divides, trial.known if knows_all else trial.nothing,
    )  # fmt: skip
    return add_errors(state, distributed.order, knows_all, limit, trial)


@inner
def prepare_parts(state, frame, place, largest_at, n_listed, knows_all, trial):  # type: ignore[no-untyped-def]
    """Write the branch shares and known weights below a branch; list the rows to distribute, return how many."""
    tree = state.tree
    for each in range(largest_at + frame.size[largest_at] - 1, largest_at - 1, -1):
        node = np.int64(frame.order[each])
        split = state.shape[node]
        trial.known[node] = 0.0
        if split < 0:
            for code in range(state.whole.shape[1]):
                trial.known[node] += state.whole[node, code] + trial.extra[node, code]
            continue
        for child in range(tree.child_start[split], tree.child_start[split + 1]):
            trial.shares[child] = state.shares[child]
            trial.known[node] += trial.known[tree.child[child]]
    first, last = (largest_at, largest_at + frame.size[largest_at]) if knows_all else (place, place + frame.size[place])
    which, n_before = (DIVIDED_ROWS, n_listed) if knows_all else (EVERY_PART, 0)
    n_listed = list_rows(frame, frame.lo[first], frame.lo[last], which, n_before, trial)
    for each in range(n_listed):
        trial.listed[each] = trial.listed[each] if trial.listed[each] >= 0 else ~trial.listed[each]
    return n_listed


@inner
def list_rows(frame, first, last, which, n_listed, trial):  # type: ignore[no-untyped-def]
    """List the rows of row parts with their weights; return how many.

    which: EVERY_PART, or DIVIDED_ROWS for those parts alone that are not whole rows. n_listed: rows listed before. A
    row of which these are parts is listed as ``~row``.
    """
    listed, held, begin = trial.listed, trial.held, n_listed
    for part in range(first, last):
        if which == DIVIDED_ROWS and frame.row[part] >= 0:
            continue
        row = frame.row[part] if frame.row[part] >= 0 else ~frame.row[part]
        if held[row] == 0.0:
            listed[n_listed] = frame.row[part]
            n_listed += 1
        held[row] += frame.weight[part]
    for each in range(begin, n_listed):
        row = listed[each] if listed[each] >= 0 else ~listed[each]
        trial.arriving[each], held[row] = held[row], 0.0
    return n_listed


@inner
def add_errors(state, order, knows_all, limit, trial):  # type: ignore[no-untyped-def]
    """Return the estimated errors of a branch over which rows were distributed; the extra rows are forgotten."""
    total = 0.0
    for place in range(len(order)):
        node = order[place]
        if state.shape[node] >= 0:
            continue
        for code in range(state.whole.shape[1]):
            trial.both[0, code] = trial.sums[node, code]
            if knows_all:
                trial.both[0, code] += state.whole[node, code] + trial.extra[node, code]
            trial.extra[node, code] = 0.0
        trial.is_touched[node] = False
        total += estimated_errors(trial.both, 0, limit)
    return total


@maker
def redistribute(state, frame, place, limit, renew, trial):  # type: ignore[no-untyped-def]
    """Distribute all rows of a node over the branch that has replaced it; return them at its leaves."""
    n_listed = list_rows(frame, frame.lo[place], frame.lo[place + frame.size[place]], EVERY_PART, 0, trial)
    branch = distribute_rows(
        state.tree, state.shape, state.shares, state.values, np.int64(frame.order[place]),
        first_of(trial.listed, n_listed), first_of(trial.arriving, n_listed), state.target, state.stats.shape[1],
        trial.nothing, trial.sums, renew, 1, state.divides, trial.nothing,
    )  # fmt: skip
    write_figures(state, branch.order, limit, trial.sums)
    return branch


@inner
def write_figures(state, order, limit, sums):  # type: ignore[no-untyped-def]
    """Write the figures of the nodes of a raised branch, all but those of the node that it replaced."""
    n_classes = state.stats.shape[1]
    for place in range(1, len(order)):
        node = order[place]
        state.mass[node] = 0.0
        for code in range(n_classes):
            state.whole[node, code] = sums[node, code]
            state.stats[node, code] = sums[node, code] + sums[node, n_classes + 1 + code]
            state.mass[node] += state.stats[node, code]
        if state.shape[node] < 0:
            state.estimate[node] = estimated_errors(state.stats, node, limit)
            state.least[node] = estimated_errors(state.whole, node, limit)


@inner
def mark_parts(frame, place, branch, held):  # type: ignore[no-untyped-def]
    """Mark row parts of a replaced node as parts whose rows go down several branches since it was replaced.

    The row parts of the node's frame stay those before it was replaced. branch: what replaced it; held: zeros.
    """
    for part in range(len(branch.row)):
        if branch.row[part] < 0:
            held[~branch.row[part]] = 1.0
    for part in range(frame.lo[place], frame.lo[place + frame.size[place]]):
        if frame.row[part] >= 0 and held[frame.row[part]] > 0.0:
            frame.row[part] = ~frame.row[part]
    for part in range(len(branch.row)):
        if branch.row[part] < 0:
            held[~branch.row[part]] = 0.0
