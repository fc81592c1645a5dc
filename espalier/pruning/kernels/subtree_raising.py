"""Prune by estimated errors, with or without subtree raising (Quinlan 1993, chapter 4).

Nodes are visited from the last in preorder to the first. A raised branch receives all rows of the node that it
replaces; the branch's nodes are visited in the same order before the outer visit continues. Each visit has a *frame*,
which holds the rows at the leaves of the whole tree, or of a branch that replaced a node of the `outer` frame.
"""

import cython
import numpy as np
from cython.cimports.espalier.pruning.kernels.distribute import distribute_rows, leaf_of_row, rows_at_leaves
from cython.cimports.espalier.pruning.kernels.error_limits import added_errors
from cython.cimports.libc.math import INFINITY

SLACK = 0.1
"""A leaf or a raised branch may be this many errors worse than the subtree (Quinlan 1993)."""
EQUALLY_HEAVY = 1.0 - 1e-9
"""A branch of at least this fraction of the heaviest branch's weight is equally heavy: sums of weights are rounded."""
ABOVE_ROUNDING = 1.0 + 1e-9
"""Factor that enlarges a bound by more than rounding errors, so an estimate above the product is above the bound."""
FIRST_ESTIMATE = 16
"""Number of rows added to a branch before its first estimate; each further estimate comes after twice as many."""


class ErrorLimit:
    """Parameters of the upper limit of the errors; see `error_limits.added_errors`."""

    def __init__(self, confidence, z, quantile):
        self.confidence, self.z, self.quantile = confidence, z, quantile


class PruningState:
    """A tree of n nodes as pruned so far, with statistics of each node, and scratch arrays.

    Args:
        distribution: The tree and its shape; the shape is written.
        shares: Branch shares, float64, by child in the order of ``tree.child``; written.
        stats: Class weights, float64 (n, n_classes); written.
        limit: The upper limit of the errors.
        knows_all: Whether every row has a class, and rows with missing values always go down several branches.
    """

    # mass is the sum of a node's stats; estimate is the estimated errors of its subtree. whole and whole_estimate are
    # like stats and estimate, but without marked row parts: they count rows that go down one branch at every test.
    #
    # extra has the class weights of the rows that an estimate adds to each leaf of a branch. is_touched marks the
    # leaves that get such rows; touched lists them in the order in which rows reach them. listed and arriving are the
    # rows to distribute and their weights. extra, is_touched and weight_of_row are all zeros between two estimates.

    def __init__(self, distribution, shares, stats, limit, knows_all):
        n_nodes, n_classes = stats.shape
        self.distribution, self.limit, self.knows_all = distribution, limit, knows_all
        self.shares, self.stats = shares, stats
        self.whole, self.extra = np.zeros((2, n_nodes, n_classes))
        self.mass, self.estimate, self.whole_estimate, self.known = np.zeros((4, n_nodes))
        self.steps, self.figures = np.empty((n_nodes, 2), np.int32), np.empty((n_nodes, 3))
        self.is_touched, self.touched = np.zeros(n_nodes, np.uint8), np.empty(n_nodes, np.int32)
        self.both, self.trial_shares = np.empty(n_classes), np.empty(len(shares))
        self.weight_of_row = np.zeros(len(distribution.target))
        self.listed, self.arriving = np.empty(0, np.int32), np.empty(0)


def prune_to_leaves(tree, shape, weight, errors, limit, stop):
    """Replace each node by a leaf if that raises the estimated errors by at most `SLACK`; the last node comes first.

    shape: int32 (n), written. weight, errors: float64 (n), the weight of each node's rows, and of those that the node
    misclassifies as a leaf. stop: float64 (2); pruning ends early if stop[1] is not 0.

    Returns two arrays: the replaced nodes, int32 (steps); estimated errors as subtree and as leaf, float64 (steps, 2).
    """
    n_nodes = shape.shape[0]
    n_steps = 0
    replaced, estimates = np.empty(n_nodes, np.int32), np.empty((n_nodes, 2))
    nodes: cython.int[::1] = replaced
    figures: cython.double[:, ::1] = estimates
    estimate: cython.double[::1] = np.zeros(n_nodes)
    with cython.nogil:
        for node in range(n_nodes - 1, -1, -1):
            as_leaf = errors[node] + added_errors(weight[node], errors[node], limit.confidence, limit.z, limit.quantile)
            if shape[node] < 0 or stop[1] != 0.0:
                estimate[node] = as_leaf
                continue
            for each in range(tree.child_start[node], tree.child_start[node + 1]):
                estimate[node] += estimate[tree.child[each]]
            if as_leaf <= estimate[node] + SLACK:
                nodes[n_steps], figures[n_steps, 0], figures[n_steps, 1] = node, estimate[node], as_leaf
                n_steps += 1
                estimate[node], shape[node] = as_leaf, -1
    return replaced[:n_steps], estimates[:n_steps]


def prune_with_raising(state, frame, stop):
    """Replace each node by a leaf or by its heaviest branch if the estimated errors rise by at most `SLACK`.

    Of equally heavy branches, the last one counts.

    frame: the rows at the leaves of the whole tree, with whole rows first at each leaf. stop: as in `prune_to_leaves`.

    Returns two arrays: the replaced node, and the branch that replaced it (-1 for a leaf), int32 (steps, 2); the
    estimated errors of the node's subtree, of the node as a leaf, and of its heaviest branch with all rows of the node,
    float64 (steps, 3).
    """
    with cython.nogil:
        start(state, frame)
    while frame is not None and stop[1] == 0.0:
        if frame.row.shape[0] > state.listed.shape[0]:
            state.listed, state.arriving = np.empty(frame.row.shape[0], np.int32), np.empty(frame.row.shape[0])
        with cython.nogil:
            is_raised = visit_nodes(state, frame, stop)
        if is_raised:
            branch = redistribute(state, frame)
            # A frame in which nothing is left to visit is replaced by the new one.
            branch.outer = frame if frame.place >= 0 else frame.outer
            frame = branch
        else:
            outer = frame.outer
            if outer is not None:
                with cython.nogil:
                    mark_parts(state, outer, frame)
            frame = outer
    return np.asarray(state.steps)[: state.n_steps], np.asarray(state.figures)[: state.n_steps]


def start(state, frame):
    """Write ``mass`` of each node of an unpruned tree, and ``whole``, ``estimate``, ``whole_estimate`` of each leaf."""
    n_classes = state.stats.shape[1]
    for node in range(state.stats.shape[0]):
        for code in range(n_classes):
            state.mass[node] += state.stats[node, code]
        if state.distribution.shape[node] >= 0:
            continue
        for part in range(frame.lo[node], frame.lo[node + 1]):
            row = frame.row[part]
            if row >= 0 and state.distribution.target[row] >= 0:
                state.whole[node, cython.cast(cython.int, state.distribution.target[row])] += frame.weight[part]
        state.estimate[node] = estimated_errors(cython.address(state.stats[node, 0]), n_classes, state.limit)
        state.whole_estimate[node] = estimated_errors(cython.address(state.whole[node, 0]), n_classes, state.limit)


def visit_nodes(state, frame, stop):
    """Visit the nodes of a frame until a branch replaces a node. Return whether a branch has replaced a node."""
    n_classes = state.stats.shape[1]
    while frame.place >= 0 and stop[1] == 0.0:
        place, node = frame.place, frame.order[frame.place]
        frame.place -= 1
        if state.distribution.shape[node] < 0:
            continue
        below, whole_below, largest, largest_at = sum_branches(state, frame, place)
        as_leaf = estimated_errors(cython.address(state.stats[node, 0]), n_classes, state.limit)
        bound = below + SLACK
        as_branch = as_leaf
        if state.distribution.shape[largest] >= 0:
            # A node that may become a leaf is compared with its branch, whose estimate must then be exact.
            highest = bound * ABOVE_ROUNDING if as_leaf > bound else INFINITY
            as_branch = errors_of_branch(state, frame, place, largest_at, highest)
        if as_leaf <= bound and as_leaf <= as_branch + SLACK:
            replace_node(state, node, -1, below, as_leaf, as_branch)
        elif as_branch <= bound:
            replace_node(state, node, largest, below, as_leaf, as_branch)
            return True
        else:
            state.estimate[node], state.whole_estimate[node] = below, whole_below
    return False


def replace_node(state, node, branch, below, as_leaf, as_branch):
    """Replace a node by one of its branches, or by a leaf if `branch` is -1, and record the step.

    branch: the number of the branch's first node. below, as_leaf, as_branch: the estimated errors of the subtree, of
    the node as a leaf, and of the branch with all rows of the node.
    """
    state.steps[state.n_steps, 0], state.steps[state.n_steps, 1] = node, branch
    state.figures[state.n_steps, 0], state.figures[state.n_steps, 1] = below, as_leaf
    state.figures[state.n_steps, 2] = as_branch
    state.n_steps += 1
    if branch >= 0:
        state.distribution.shape[node] = state.distribution.shape[branch]
        return
    state.distribution.shape[node], state.distribution.divides[node], state.estimate[node] = -1, False, as_leaf
    state.whole_estimate[node] = estimated_errors(
        cython.address(state.whole[node, 0]), state.whole.shape[1], state.limit
    )


def sum_branches(state, frame, place):
    """Write ``whole`` and ``divides`` of a node from its branches.

    Returns (sum of ``estimate`` over the branches, sum of ``whole_estimate``, the heaviest branch, its index in
    ``frame.order``).
    """
    node = frame.order[place]
    split = state.distribution.shape[node]
    below: cython.double = 0.0
    whole_below: cython.double = 0.0
    largest: cython.int = -1
    largest_at: cython.int = place
    child_at = place + 1
    state.whole[node, :] = 0.0
    for each in range(state.distribution.tree.child_start[split], state.distribution.tree.child_start[split + 1]):
        child = state.distribution.tree.child[each]
        below += state.estimate[child]
        whole_below += state.whole_estimate[child]
        for code in range(state.whole.shape[1]):
            state.whole[node, code] += state.whole[child, code]
        state.distribution.divides[node] |= state.distribution.divides[child]
        if largest < 0 or state.mass[child] >= EQUALLY_HEAVY * state.mass[largest]:
            largest, largest_at = child, child_at
        child_at += frame.size[child_at]
    return below, whole_below, largest, largest_at


def estimated_errors(stats, n_classes, limit):
    """Return the upper limit of the errors of a leaf, from its class weights."""
    weight: cython.double = 0.0
    largest_class: cython.double = 0.0
    for code in range(n_classes):
        weight += stats[code]
        largest_class = max(largest_class, stats[code])
    errors = weight - largest_class
    return errors + added_errors(weight, errors, limit.confidence, limit.z, limit.quantile)


def errors_of_branch(state, frame, place, largest_at, highest):
    """Return the estimated errors of a node's heaviest branch with all rows of the node.

    If the estimate with some of the rows is above `highest`, it is returned: it would not fall with the other rows.
    """
    largest = frame.order[largest_at]
    own_first, own_last = frame.lo[largest_at], frame.lo[largest_at + frame.size[largest_at]]
    state.n_touched, state.n_listed = 0, 0
    estimate: cython.double = 0.0
    n_added, n_at_next_estimate = 0, FIRST_ESTIMATE
    for part in range(frame.lo[place], frame.lo[place + frame.size[place]]):
        if own_first <= part < own_last:
            continue
        if n_added == n_at_next_estimate:
            estimate = errors_with_extra(state, largest)
            if estimate > highest:
                break
            n_at_next_estimate *= 2
        n_added += 1
        row = frame.row[part] if frame.row[part] >= 0 else ~frame.row[part]
        leaf = leaf_of_row(state.distribution, largest, row)
        if leaf < 0:
            state.listed[state.n_listed], state.arriving[state.n_listed] = row, frame.weight[part]
            state.n_listed += 1
            continue
        code = cython.cast(cython.int, state.distribution.target[row])
        if code >= 0:
            state.extra[leaf, code] += frame.weight[part]
        if not state.is_touched[leaf]:
            state.is_touched[leaf], state.touched[state.n_touched] = True, leaf
            state.n_touched += 1
    if estimate <= highest:
        estimate = errors_with_extra(state, largest)
    if estimate <= highest and (state.distribution.divides[largest] or state.n_listed > 0):
        estimate = errors_with_parts(state, frame, place, largest_at)
    for each in range(state.n_touched):
        state.is_touched[state.touched[each]] = False
        state.extra[state.touched[each], :] = 0.0
    return estimate


def errors_with_extra(state, largest):
    """Return the estimated errors of a branch with the extra rows at its touched leaves, but without parts of rows."""
    is_whole: cython.bint = state.distribution.divides[largest]
    total: cython.double = state.whole_estimate[largest] if is_whole else state.estimate[largest]
    for each in range(state.n_touched):
        leaf = state.touched[each]
        for code in range(state.both.shape[0]):
            state.both[code] = state.extra[leaf, code] + (
                state.whole[leaf, code] if is_whole else state.stats[leaf, code]
            )
        estimate = estimated_errors(cython.address(state.both[0]), state.both.shape[0], state.limit)
        total += estimate - (state.whole_estimate[leaf] if is_whole else state.estimate[leaf])
    return total


def errors_with_parts(state, frame, place, largest_at):
    """Return the estimated errors of a branch in which rows go down several branches.

    With ``knows_all``, only these rows are distributed: the weights of the other rows at each node are known, and so
    are the contributions of these weights to the branch shares.
    """
    for at in range(largest_at + frame.size[largest_at] - 1, largest_at - 1, -1):
        node = frame.order[at]
        split = state.distribution.shape[node]
        state.known[node] = 0.0
        if split >= 0:
            for child in range(
                state.distribution.tree.child_start[split], state.distribution.tree.child_start[split + 1]
            ):
                state.trial_shares[child] = state.shares[child]
                state.known[node] += state.known[state.distribution.tree.child[child]]
        elif state.knows_all:
            for code in range(state.whole.shape[1]):
                state.known[node] += state.whole[node, code] + state.extra[node, code]
    if state.knows_all:
        list_rows(state, frame, largest_at, True)
    else:
        state.n_listed = 0
        list_rows(state, frame, place, False)
    for each in range(state.n_listed):
        if state.listed[each] < 0:
            state.listed[each] = ~state.listed[each]
    distribute_rows(
        state.distribution, frame.order[largest_at], state.listed, state.arriving, state.n_listed,
        state.trial_shares, state.known, False,
    )  # fmt: skip
    total: cython.double = 0.0
    for at in range(state.distribution.n_order):
        node = state.distribution.order[at]
        if state.distribution.shape[node] >= 0:
            continue
        for code in range(state.both.shape[0]):
            state.both[code] = state.distribution.sums[node, code]
            if state.knows_all:
                state.both[code] += state.whole[node, code] + state.extra[node, code]
        total += estimated_errors(cython.address(state.both[0]), state.both.shape[0], state.limit)
    return total


def list_rows(state, frame, place, only_parts):
    """Append the rows of a node to the list, each with the sum of the weights of its parts.

    A row whose parts are stored as ``~row`` is listed as ``~row``. only_parts: whether whole rows are skipped.
    """
    n_before = state.n_listed
    for part in range(frame.lo[place], frame.lo[place + frame.size[place]]):
        if only_parts and frame.row[part] >= 0:
            continue
        row = frame.row[part] if frame.row[part] >= 0 else ~frame.row[part]
        if state.weight_of_row[row] == 0.0:
            state.listed[state.n_listed] = frame.row[part]
            state.n_listed += 1
        state.weight_of_row[row] += frame.weight[part]
    for each in range(n_before, state.n_listed):
        row = state.listed[each] if state.listed[each] >= 0 else ~state.listed[each]
        state.arriving[each], state.weight_of_row[row] = state.weight_of_row[row], 0.0


def redistribute(state, frame):
    """Distribute all rows of the last visited node over the branch that replaced it. Return the frame of the branch."""
    place = frame.place + 1
    with cython.nogil:
        state.n_listed = 0
        list_rows(state, frame, place, False)
        distribute_rows(
            state.distribution, frame.order[place], state.listed, state.arriving, state.n_listed, state.shares,
            None, True,
        )  # fmt: skip
        write_figures(state)
    return rows_at_leaves(state.distribution)


def write_figures(state):
    """Write the statistics of the nodes of a raised branch, except those of the node that it replaced."""
    n_classes = state.stats.shape[1]
    for place in range(1, state.distribution.n_order):
        node = state.distribution.order[place]
        state.mass[node] = 0.0
        for code in range(n_classes):
            state.whole[node, code] = state.distribution.sums[node, code]
            state.stats[node, code] = (
                state.distribution.sums[node, code] + state.distribution.sums[node, n_classes + 1 + code]
            )
            state.mass[node] += state.stats[node, code]
        if state.distribution.shape[node] < 0:
            state.estimate[node] = estimated_errors(cython.address(state.stats[node, 0]), n_classes, state.limit)
            state.whole_estimate[node] = estimated_errors(cython.address(state.whole[node, 0]), n_classes, state.limit)


def mark_parts(state, frame, branch):
    """Mark the rows that go down several branches now, but did not before a node was replaced.

    frame: the frame of the node, which keeps the row parts from before. branch: that of the branch that replaced it.
    """
    for part in range(branch.row.shape[0]):
        if branch.row[part] < 0:
            state.weight_of_row[~branch.row[part]] = 1.0
    place = frame.place + 1
    for part in range(frame.lo[place], frame.lo[place + frame.size[place]]):
        if frame.row[part] >= 0 and state.weight_of_row[frame.row[part]] > 0.0:
            frame.row[part] = ~frame.row[part]
    for part in range(branch.row.shape[0]):
        if branch.row[part] < 0:
            state.weight_of_row[~branch.row[part]] = 0.0
