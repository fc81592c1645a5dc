"""Prune by estimated errors, with or without subtree raising (Quinlan 1993, chapter 4).

Nodes are visited from the last in preorder to the first. A raised branch receives all rows of the node that it
replaces; its nodes are visited in the same order before the outer visit continues::

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
from espalier.stats import beta_ratio, beta_series

for _name in ("normal_errors", "larger_errors", "exact_errors", "exact_limit", "added_errors"):
    shared(getattr(error_limits, _name))
shared(beta_ratio)
shared(beta_series)

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
ALL_PARTS, PARTS_OF_ROWS = 0, 1
"""What `list_rows` lists."""


class ErrorLimit(NamedTuple):
    """The upper limit of the errors; see `error_limits.added_errors`."""

    confidence: Any
    z: Any
    quantile: Any


class PruningState(NamedTuple):
    """A tree of n nodes as pruned so far, with statistics of each node.

    tree: TreeArrays. shape: int32 (n), shares: see `distribute`. stats: float64 (n, n_classes), class weights; mass:
    float64 (n), their sum; estimate: float64 (n), estimated errors of the subtree. whole, whole_estimate: stats and
    estimate of only those rows that go down one branch at every test of the subtree. divides: bool (n), whether a row
    goes down several branches in the subtree. values, target: of the rows, as `distribute_rows` takes them.
    """

    tree: Any
    shape: Any
    shares: Any
    stats: Any
    mass: Any
    estimate: Any
    whole: Any
    whole_estimate: Any
    divides: Any
    values: Any
    target: Any


class Scratch(NamedTuple):
    """Scratch to estimate the errors of a branch with more rows.

    All zeros between two estimates: extra: float64 (n, n_classes), class weights of these rows at leaves; is_touched:
    bool (n), whether a leaf has some; weight_of_row: float64 (n_rows). touched: int32 (n), those leaves in the order in
    which rows reached them. both: float64 (1, n_classes). listed, arriving: rows to distribute, with their weights.
    sums, shares, known, nothing: as `distribute_rows` takes them; nothing is all zeros.
    """

    extra: Any
    is_touched: Any
    weight_of_row: Any
    touched: Any
    both: Any
    listed: Any
    arriving: Any
    sums: Any
    shares: Any
    known: Any
    nothing: Any


@compiled
def prune_to_leaves(tree, shape, stats, limit, stop):
    """Replace nodes by leaves; shape is written.

    stop: float64 (2); the visit ends early if stop[1] is not 0.

    Returns (replaced nodes, int32; float64, the estimates of each one's subtree and as a leaf).
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
def prune_with_raising(state, frame, knows_all, limit, renew, stop):
    """Replace nodes by leaves or by their heaviest branch, the last of equally heavy ones.

    state: a PruningState, written. frame: the rows at the leaves of the whole tree, a ``Distributed``, at each leaf
    whole rows first. knows_all: whether every row that goes down one branch at a test knows the value there, and every
    row has a class. renew: as in `distribute_rows`. stop: as in `prune_to_leaves`.

    Returns (int32, a line a replaced node: the node, the branch that replaced it or -1; float64, a line a node:
    estimates of the subtree, as a leaf, of the branch).
    """
    n_nodes = len(state.shape)
    start_state(state, frame, limit)
    # Each step takes at least one test away.
    steps, figures, n_steps = np.empty((n_nodes, 2), np.int32), np.empty((n_nodes, 3)), 0
    scratch = new_scratch(state, len(frame.row))
    frames, places = [frame], [np.int64(n_nodes - 1)]
    while len(frames) > 0 and stop[1] == 0.0:
        frame = frames[-1]
        # A function that makes no array counts no references, which would take as long as all else.
        reason, place, n_steps, n_listed = visit_nodes(
            state, frame, places[-1], limit, stop, scratch, steps, figures, n_steps
        )
        places[-1] = place - 1
        if reason == FRAME_DONE:
            frames.pop()
            places.pop()
            if len(frames) > 0:
                mark_parts(frames[-1], places[-1] + 1, frame, scratch.weight_of_row)
            continue
        if reason == DIVIDES:
            as_branch = errors_with_parts(state, frame, place, n_listed, knows_all, limit, renew, scratch)
            n_steps, is_raised = replace_node(state, frame, place, as_branch, limit, steps, figures, n_steps)
            if not is_raised:
                continue
        branch = redistribute(state, frame, place, limit, renew, scratch)
        if len(frames) > 1 and place == 0:
            # Nothing is left to visit in this frame: the new one replaces it.
            frames.pop()
            places.pop()
        frames.append(branch)
        places.append(np.int64(len(branch.order) - 1))
        if len(branch.row) > len(scratch.listed):
            scratch = new_scratch(state, len(branch.row))
    return steps[:n_steps], figures[:n_steps]


@inner
def start_state(state, frame, limit):
    """Write mass, whole, estimate and whole_estimate of a tree as grown."""
    for node in range(len(state.shape)):
        for code in range(state.stats.shape[1]):
            state.mass[node] += state.stats[node, code]
        if state.shape[node] >= 0:
            continue
        for part in range(frame.lo[node], frame.lo[node + 1]):
            if frame.row[part] >= 0 and state.target[frame.row[part]] >= 0:
                state.whole[node, np.int64(state.target[frame.row[part]])] += frame.weight[part]
        state.estimate[node] = estimated_errors(state.stats, node, limit)
        state.whole_estimate[node] = estimated_errors(state.whole, node, limit)


@maker
def new_scratch(state, n_parts):
    """Return scratch with room for a frame of `n_parts` row parts."""
    n_nodes, n_classes = state.stats.shape
    return Scratch(
        np.zeros((n_nodes, n_classes)), np.zeros(n_nodes, np.bool_), np.zeros(len(state.target)),
        np.empty(n_nodes, np.int32), np.zeros((1, n_classes)), np.empty(n_parts, np.int32), np.empty(n_parts),
        np.empty((n_nodes, 2 * n_classes + 2)), np.empty(len(state.shares)), np.zeros(n_nodes), np.zeros(n_nodes),
    )  # fmt: skip


@inner
def visit_nodes(state, frame, place, limit, stop, scratch, steps, figures, n_steps):
    """Visit nodes from `place` on until the rows of one must be distributed.

    Returns (the reason, the node's place, the number of steps, how many listed rows go down several branches).
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
            n_touched, n_listed, as_branch = add_to_branch(state, frame, place, largest_at, stays_below, limit, scratch)
            if as_branch <= stays_below and (state.divides[largest] or n_listed > 0):
                return DIVIDES, place, n_steps, n_listed
            clear_extra(scratch, n_touched)
        n_steps, is_raised = replace_node(state, frame, place, as_branch, limit, steps, figures, n_steps)
        if is_raised:
            return RAISE, place, n_steps, 0
        place -= 1
    return FRAME_DONE, place, n_steps, 0


@inner
def replace_node(state, frame, place, as_branch, limit, steps, figures, n_steps):
    """Replace a node by a leaf or its largest branch if the estimate rises by at most 0.1.

    Returns (the number of steps, whether the branch is raised).
    """
    node = np.int64(frame.order[place])
    below, whole_below, largest, _ = below_node(state, frame, place)
    as_leaf, bound = estimated_errors(state.stats, node, limit), below + SLACK
    becomes_leaf = as_leaf <= bound and as_leaf <= as_branch + SLACK
    if not becomes_leaf and as_branch > bound:
        state.estimate[node], state.whole_estimate[node] = below, whole_below
        return n_steps, False
    steps[n_steps, 0], steps[n_steps, 1] = node, -1 if becomes_leaf else largest
    figures[n_steps, 0], figures[n_steps, 1], figures[n_steps, 2] = below, as_leaf, as_branch
    if becomes_leaf:
        state.shape[node], state.divides[node], state.estimate[node] = -1, False, as_leaf
        state.whole_estimate[node] = estimated_errors(state.whole, node, limit)
    else:
        state.shape[node] = state.shape[largest]
    return n_steps + 1, not becomes_leaf


@inner
def add_below(state, node):
    """Compute ``whole`` and ``divides`` of a node from those of its branches."""
    split = state.shape[node]
    for code in range(state.stats.shape[1]):
        state.whole[node, code] = 0.0
    for each in range(state.tree.child_start[split], state.tree.child_start[split + 1]):
        child = np.int64(state.tree.child[each])
        for code in range(state.stats.shape[1]):
            state.whole[node, code] += state.whole[child, code]
        state.divides[node] = state.divides[node] or state.divides[child]


@inner
def below_node(state, frame, place):
    """Return the sums of both estimates over a node's branches, its largest branch and that one's place."""
    split = state.shape[frame.order[place]]
    below, whole_below, largest, largest_at, child_at = 0.0, 0.0, np.int64(-1), place, place + 1
    for each in range(state.tree.child_start[split], state.tree.child_start[split + 1]):
        child = np.int64(state.tree.child[each])
        below += state.estimate[child]
        whole_below += state.whole_estimate[child]
        if largest < 0 or state.mass[child] >= EQUALLY_HEAVY * state.mass[largest]:
            largest, largest_at = child, child_at
        child_at += frame.size[child_at]
    return below, whole_below, largest, largest_at


@inner
def estimated_errors(stats, node, limit):
    """Return the upper limit of the errors of a node as a leaf, from its class weights."""
    weight, largest_class = 0.0, 0.0
    for code in range(stats.shape[1]):
        weight += stats[node, code]
        largest_class = max(largest_class, stats[node, code])
    errors = weight - largest_class
    return errors + added_errors(weight, errors, limit.confidence, limit.z, limit.quantile)


@inlined
def add_to_branch(state, frame, place, largest_at, bound, limit, scratch):
    """Add the rows of a node's other branches to the leaves of its largest, until its estimate exceeds the bound.

    Rows that go down several branches are not part of the estimate: no estimate falls when rows are added.

    Returns (how many leaves are touched, how many listed rows go down several branches, the estimate).
    """
    largest, stats, known = np.int64(frame.order[largest_at]), state.stats, state.estimate
    if state.divides[largest]:
        stats, known = state.whole, state.whole_estimate
    first, last = frame.lo[place], frame.lo[place + frame.size[place]]
    own_first, own_last = frame.lo[largest_at], frame.lo[largest_at + frame.size[largest_at]]
    common_class = most_common_class(state.stats, largest)
    # Rows that are most likely wrong in the branch are tried alone, then all rows in their order.
    starts_with_likely = bound < np.inf and last - first - own_last + own_first > FIRST_CHECK
    for only_likely_wrong in range(np.int64(starts_with_likely), -1, -1):
        n_touched, n_listed, n_added, next_check, part = 0, 0, 0, FIRST_CHECK, first
        while part < last:
            if part == own_first:
                part = own_last
                continue
            row = frame.row[part] if frame.row[part] >= 0 else ~frame.row[part]
            code = np.int64(state.target[row])
            part += 1
            if only_likely_wrong == 1 and code == common_class:
                continue
            if n_added == next_check:
                next_check += n_added // CHECK_EVERY
                estimate = errors_with_extra(stats, known, largest, n_touched, limit, scratch)
                if estimate > bound:
                    return n_touched, n_listed, estimate
            n_added += 1
            leaf = leaf_of_row(state, largest, row)
            if leaf < 0:
                scratch.listed[n_listed], scratch.arriving[n_listed] = row, frame.weight[part - 1]
                n_listed += 1
                continue
            if code >= 0:
                scratch.extra[leaf, code] += frame.weight[part - 1]
            if not scratch.is_touched[leaf]:
                scratch.is_touched[leaf], scratch.touched[n_touched] = True, leaf
                n_touched += 1
        estimate = errors_with_extra(stats, known, largest, n_touched, limit, scratch)
        if estimate > bound or only_likely_wrong == 0:
            break
        clear_extra(scratch, n_touched)
    return n_touched, n_listed, estimate


@inner
def most_common_class(stats, node):
    """Return the first of the heaviest classes of a node."""
    common_class = 0
    for code in range(stats.shape[1]):
        if stats[node, code] > stats[node, common_class]:
            common_class = code
    return common_class


@inner
def leaf_of_row(state, node, row):
    """Return the leaf below `node` that a row reaches, -1 if it goes down several branches."""
    while state.shape[node] >= 0:
        split = state.shape[node]
        branch = branch_of_row(state.tree, split, state.values, row)
        if branch < 0:
            return np.int64(-1)
        node = np.int64(state.tree.child[state.tree.child_start[split] + branch])
    return node


@inner
def errors_with_extra(stats, known, largest, n_touched, limit, scratch):
    """Return the estimated errors of a branch with the extra rows at its touched leaves."""
    total = known[largest]
    for each in range(n_touched):
        leaf = scratch.touched[each]
        for code in range(stats.shape[1]):
            scratch.both[0, code] = scratch.extra[leaf, code] + stats[leaf, code]
        total += estimated_errors(scratch.both, 0, limit) - known[leaf]
    return total


@inner
def clear_extra(scratch, n_touched):
    """Reset the extra rows to 0."""
    for each in range(n_touched):
        leaf = scratch.touched[each]
        scratch.is_touched[leaf] = False
        for code in range(scratch.extra.shape[1]):
            scratch.extra[leaf, code] = 0.0


@maker
def errors_with_parts(state, frame, place, n_listed, knows_all, limit, renew, scratch):
    """Return the estimated errors of a branch in which rows go down several branches, after `add_to_branch`.

    If the other rows know all values, only those rows are distributed: the weights of the others at each node, and so
    the branch shares, are known.
    """
    _, _, _, largest_at = below_node(state, frame, place)
    n_listed = prepare_parts(state, frame, place, largest_at, n_listed, knows_all, scratch)
    distributed = distribute_rows(
        state.tree, state.shape, scratch.shares, state.values, np.int64(frame.order[largest_at]),
        first_of(scratch.listed, n_listed), first_of(scratch.arriving, n_listed), state.target, state.stats.shape[1],
        scratch.nothing, scratch.sums, renew, 0, state.divides, scratch.known if knows_all else scratch.nothing,
    )  # fmt: skip
    return add_errors(state, distributed.order, knows_all, limit, scratch)


@inner
def prepare_parts(state, frame, place, largest_at, n_listed, knows_all, scratch):
    """Write the branch shares and known weights below a branch. List the rows to distribute and return how many."""
    tree = state.tree
    for each in range(largest_at + frame.size[largest_at] - 1, largest_at - 1, -1):
        node = np.int64(frame.order[each])
        split = state.shape[node]
        scratch.known[node] = 0.0
        if split < 0:
            for code in range(state.whole.shape[1]):
                scratch.known[node] += state.whole[node, code] + scratch.extra[node, code]
            continue
        for child in range(tree.child_start[split], tree.child_start[split + 1]):
            scratch.shares[child] = state.shares[child]
            scratch.known[node] += scratch.known[tree.child[child]]
    first, last = (largest_at, largest_at + frame.size[largest_at]) if knows_all else (place, place + frame.size[place])
    which, n_before = (PARTS_OF_ROWS, n_listed) if knows_all else (ALL_PARTS, 0)
    n_listed = list_rows(frame, frame.lo[first], frame.lo[last], which, n_before, scratch)
    for each in range(n_listed):
        scratch.listed[each] = scratch.listed[each] if scratch.listed[each] >= 0 else ~scratch.listed[each]
    return n_listed


@inner
def list_rows(frame, first, last, which, n_listed, scratch):
    """List the rows of row parts with their weights. Return how many.

    which: ALL_PARTS, or PARTS_OF_ROWS to skip whole rows. n_listed: rows listed before. Parts of a row are listed as
    ``~row``.
    """
    listed, weight_of_row, n_before = scratch.listed, scratch.weight_of_row, n_listed
    for part in range(first, last):
        if which == PARTS_OF_ROWS and frame.row[part] >= 0:
            continue
        row = frame.row[part] if frame.row[part] >= 0 else ~frame.row[part]
        if weight_of_row[row] == 0.0:
            listed[n_listed] = frame.row[part]
            n_listed += 1
        weight_of_row[row] += frame.weight[part]
    for each in range(n_before, n_listed):
        row = listed[each] if listed[each] >= 0 else ~listed[each]
        scratch.arriving[each], weight_of_row[row] = weight_of_row[row], 0.0
    return n_listed


@inner
def add_errors(state, order, knows_all, limit, scratch):
    """Return the estimated errors of a branch over which rows were distributed, and reset the extra rows."""
    total = 0.0
    for place in range(len(order)):
        node = order[place]
        if state.shape[node] >= 0:
            continue
        for code in range(state.whole.shape[1]):
            scratch.both[0, code] = scratch.sums[node, code]
            if knows_all:
                scratch.both[0, code] += state.whole[node, code] + scratch.extra[node, code]
            scratch.extra[node, code] = 0.0
        scratch.is_touched[node] = False
        total += estimated_errors(scratch.both, 0, limit)
    return total


@maker
def redistribute(state, frame, place, limit, renew, scratch):
    """Distribute all rows of a node over the branch that has replaced it. Return them at its leaves."""
    n_listed = list_rows(frame, frame.lo[place], frame.lo[place + frame.size[place]], ALL_PARTS, 0, scratch)
    branch = distribute_rows(
        state.tree, state.shape, state.shares, state.values, np.int64(frame.order[place]),
        first_of(scratch.listed, n_listed), first_of(scratch.arriving, n_listed), state.target, state.stats.shape[1],
        scratch.nothing, scratch.sums, renew, 1, state.divides, scratch.nothing,
    )  # fmt: skip
    write_figures(state, branch.order, limit, scratch.sums)
    return branch


@inner
def write_figures(state, order, limit, sums):
    """Write the statistics of the nodes of a raised branch, except those of the node that it replaced."""
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
            state.whole_estimate[node] = estimated_errors(state.whole, node, limit)


@inner
def mark_parts(frame, place, branch, weight_of_row):
    """Mark row parts of a replaced node whose rows go down several branches since it was replaced.

    The row parts of the node's frame remain those before it was replaced. branch: what replaced it; weight_of_row:
    zeros.
    """
    for part in range(len(branch.row)):
        if branch.row[part] < 0:
            weight_of_row[~branch.row[part]] = 1.0
    for part in range(frame.lo[place], frame.lo[place + frame.size[place]]):
        if frame.row[part] >= 0 and weight_of_row[frame.row[part]] > 0.0:
            frame.row[part] = ~frame.row[part]
    for part in range(len(branch.row)):
        if branch.row[part] < 0:
            weight_of_row[~branch.row[part]] = 0.0
