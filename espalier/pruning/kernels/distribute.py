"""Distribute weighted rows over the nodes of a tree.

A row whose value is missing at a test may go down several branches, each with a share of its weight. A *row part* is a
row with its weight at one node. One buffer holds the parts that have arrived at leaves and the pending parts. The parts
of the node that is visited next come first among the pending parts::

    row     | leaf 3 | leaf 4 |   free   | node 5 | node 8 |        the tree is visited in preorder
              0               n_arrived    first             end of the buffer

A *shape* is an int32 (n_nodes) array. The entry of a leaf is -1. The entry of an inner node i is the node whose test
and children i has: i itself in an unpruned tree, and ``shape[c]`` if branch c has replaced i.
"""

import cython
import numpy as np
from cython.cimports.espalier.prediction.kernels.apply import branch_of, other_branch, own_branch
from cython.cimports.espalier.pruning.kernels.constants import KEEP_SHARES, RENEW_ALL


class RowsAtLeaves:
    """Rows at the leaves of a subtree.

    order: int32 (n), the nodes in preorder; size and lo have the same order. size: int32 (n), the size of each node's
    subtree. lo: int64 (n + 1), the index of the first row part in each node's subtree; the last entry is the number of
    parts. row: int32, and weight: float64, the row parts leaf by leaf. If parts are marked, ``~row`` stands for a part
    of a row that was divided at a test. Subtree raising calls this object a frame and uses two more fields. place: the
    index in `order` of the next node to visit. outer: the frame in which the visit continues after this one, or None.
    """

    def __init__(self, order, size, lo, row, weight):
        self.order, self.size, self.lo, self.row, self.weight = order, size, lo, row, weight
        self.place = len(order) - 1


class Distribution:
    """Rows that are distributed over a tree, their sums at each node, and the result of the last distribution.

    values: float64 (n_rows, n_attributes), numbers or codes of categories, NaN if missing or unseen. target: float64
    (n_rows), numbers or class codes (below 0 if the class is unknown). answers: float64 (n_nodes), the node values,
    which only a regression needs. renew: how the branch shares of a test change when rows reach it (see `constants`).

    sums: float64 (n_nodes, width), written. For a classification: the weight of each class, then of rows of unknown
    class; if parts are marked, these columns sum the unmarked parts, and as many further columns the marked ones. For a
    regression: the sums of w, w·d, w·d² and w·d⁴; w is a row's weight, d = target - answers[node]. divides: bool
    (n_nodes), written if parts are marked: whether a row goes down several branches at the node.
    """

    def __init__(self, tree, shape, values, target, n_classes, answers, sums, divides, renew):
        n_nodes = len(shape)
        self.tree, self.shape, self.target = tree, shape, target
        self.values, self.row_step = values.reshape(-1), values.shape[1]
        self.n_classes, self.answers, self.sums, self.divides, self.renew = n_classes, answers, sums, divides, renew
        self.order, self.up, self.size = np.empty((3, n_nodes), np.int32)
        self.lo = np.empty(n_nodes + 1, np.int64)
        self.pending, self.pending_up = np.empty((2, n_nodes), np.int32)
        self.n_pending_parts = np.empty(n_nodes, np.int64)
        n_branches = max(1, int(np.max(np.diff(tree.child_start))))
        self.count, self.known = np.empty(n_branches, np.int64), np.empty(n_branches)
        self.row, self.own_row, self.branch = np.empty((3, 0), np.int32)
        self.weight, self.own_weight = np.empty((2, 0))


def distribute(state, rows, weights, shares, marks_parts):
    """Distribute rows from the root and return the `RowsAtLeaves`; see `distribute_rows`."""
    with cython.nogil:
        distribute_rows(state, 0, rows, weights, rows.shape[0], shares, None, marks_parts)
    return rows_at_leaves(state)


def distribute_rows(state, start, rows, weights, n_rows, shares, known_before, marks_parts):
    """Distribute rows over the subtree at `start`, and sum them at each of its nodes.

    rows: int32; the first `n_rows` arrive at `start`. weights: float64, of these rows. shares: float64, branch shares
    in the order of ``tree.child``, updated according to ``renew`` at every test that rows reach. known_before: float64
    (n_nodes) or None; at each node, the weight of rows outside `rows` that also count for renewed shares.
    marks_parts: whether parts of rows are stored as ``~row``; `rows` may have such entries, too.
    """
    if state.row.shape[0] < n_rows:
        make_room(state, 0, 0, n_rows)
    first: cython.longlong = state.row.shape[0] - n_rows
    for part in range(n_rows):
        state.row[first + part], state.weight[first + part] = rows[part], weights[part]
    n_arrived: cython.longlong = 0
    n_pending: cython.int = 1
    state.n_order = 0
    state.pending[0], state.n_pending_parts[0], state.pending_up[0] = start, n_rows, -1
    while n_pending > 0:
        n_pending -= 1
        node, n_parts, place = state.pending[n_pending], state.n_pending_parts[n_pending], state.n_order
        state.order[place], state.up[place], state.lo[place] = node, state.pending_up[n_pending], n_arrived
        state.n_order += 1
        if state.n_classes > 0:
            add_classes(state, first, n_parts, node)
        else:
            add_powers(state, first, n_parts, node)
        split = state.shape[node]
        if split < 0:
            for part in range(n_parts):
                state.row[n_arrived + part], state.weight[n_arrived + part] = (
                    state.row[first + part],
                    state.weight[first + part],
                )
            n_arrived += n_parts
            first += n_parts
            continue
        base = state.tree.child_start[split]
        n_branches = state.tree.child_start[split + 1] - base
        n_unknown: cython.longlong = 0
        n_below: cython.longlong = 0
        for branch in range(n_branches):
            state.count[branch] = 0
            state.known[branch] = known_before[state.tree.child[base + branch]] if known_before is not None else 0.0
        if n_parts > 0:
            n_unknown = choose_branches(state, split, first, n_parts)
            if state.renew != KEEP_SHARES:
                renew_shares(state, shares, base, n_branches)
            for branch in range(n_branches):
                state.count[branch] += n_unknown if shares[base + branch] > 0.0 else 0
                n_below += state.count[branch]
            lacking = n_below - n_parts - (first - n_arrived)
            if lacking > 0:
                first = make_room(state, n_arrived, first, lacking)
        if marks_parts:
            state.divides[node] = n_unknown > 0
        for part in range(n_parts):
            state.own_row[part], state.own_weight[part] = state.row[first + part], state.weight[first + part]
        first += n_parts
        at = first
        for branch in range(n_branches - 1, -1, -1):
            state.pending[n_pending], state.n_pending_parts[n_pending] = (
                state.tree.child[base + branch],
                state.count[branch],
            )
            state.pending_up[n_pending] = place
            n_pending += 1
            at -= state.count[branch]
            state.count[branch] = at
        partition_parts(state, n_parts, shares, base, n_branches, marks_parts)
        first -= n_below
    state.lo[state.n_order] = n_arrived
    for place in range(state.n_order):
        state.size[place] = 1
    for place in range(state.n_order - 1, 0, -1):
        state.size[state.up[place]] += state.size[place]


def rows_at_leaves(state):
    """Return the row parts of the last distribution."""
    n_order, n_arrived = state.n_order, state.lo[state.n_order]
    return RowsAtLeaves(
        np.array(state.order[:n_order]), np.array(state.size[:n_order]),
        np.array(state.lo[: n_order + 1]), np.array(state.row[:n_arrived]),
        np.array(state.weight[:n_arrived]),
    )  # fmt: skip


def make_room(state, n_arrived, first, lacking):
    """Enlarge the buffer's free space, ``n_arrived:first``, by at least `lacking`. Return where pending parts begin."""
    old_row, old_weight = np.asarray(state.row), np.asarray(state.weight)
    n_pending = len(old_row) - first
    room = 2 * len(old_row) + lacking
    row, weight = np.empty(room, np.int32), np.empty(room)
    for new, old in ((row, old_row), (weight, old_weight)):
        new[:n_arrived] = old[:n_arrived]
        new[room - n_pending :] = old[first:]
    state.row, state.weight = row, weight
    state.own_row, state.own_weight = np.empty(room, np.int32), np.empty(room)
    branch = np.empty(room, np.int32)
    branch[: len(old_row)] = state.branch
    state.branch = branch
    return room - n_pending


def choose_branches(state, split, first, n_parts):
    """Write the branch of each row part of a node, -1 for all branches. Return how many parts go down all branches.

    For each branch, add to ``count`` the parts that take only this branch, and to ``known`` the weight for its share.
    """
    feature = state.tree.feature[split]
    n_unknown: cython.longlong = 0
    for part in range(n_parts):
        row = state.row[first + part]
        cells = (row if row >= 0 else ~row) * state.row_step
        branch = own_branch(state.tree, split, state.values[cells + feature])
        counts_for_share: cython.bint = branch >= 0 or state.renew == RENEW_ALL
        if branch < 0:
            branch = other_branch(state.tree, split, state.values, cells)
        state.branch[part] = branch
        if branch < 0:
            n_unknown += 1
            continue
        state.count[branch] += 1
        if counts_for_share:
            state.known[branch] += state.weight[first + part]
    return n_unknown


def renew_shares(state, shares, base, n_branches):
    """Set the shares of a test's branches in proportion to the weights in ``known``, unless these are all 0."""
    total: cython.double = 0.0
    for branch in range(n_branches):
        total += state.known[branch]
    if total > 0.0:
        for branch in range(n_branches):
            shares[base + branch] = state.known[branch] / total


def partition_parts(state, n_parts, shares, base, n_branches, marks_parts):
    """Write the row parts of a node ordered by branch.

    A part whose branch is -1 is divided among the branches by their shares, from ``shares[base]`` on. marks_parts:
    whether such a part is written as ``~row``. ``count[b]``: index at which branch b begins and, on return, ends.
    """
    for part in range(n_parts):
        branch, row, weight = state.branch[part], state.own_row[part], state.own_weight[part]
        if branch >= 0:
            at = state.count[branch]
            state.row[at], state.weight[at] = row, weight
            state.count[branch] += 1
            continue
        row = ~row if marks_parts and row >= 0 else row
        for each in range(n_branches):
            share = shares[base + each]
            if share > 0.0:
                at = state.count[each]
                state.row[at], state.weight[at] = row, weight * share
                state.count[each] += 1


def add_classes(state, first, n_parts, node):
    """Write the class weights of a node's row parts into ``sums``; marked parts (``~row``) go into the second half."""
    state.sums[node, :] = 0.0
    for part in range(first, first + n_parts):
        row = state.row[part]
        column = cython.cast(cython.int, state.target[row if row >= 0 else ~row])
        if column < 0:
            column = state.n_classes
        state.sums[node, column if row >= 0 else column + state.n_classes + 1] += state.weight[part]


def add_powers(state, first, n_parts, node):
    """Write the sums of powers of ``target - answer`` over a node's row parts into ``sums``."""
    state.sums[node, :] = 0.0
    for part in range(first, first + n_parts):
        weight, miss = state.weight[part], state.target[state.row[part]] - state.answers[node]
        square = miss * miss
        state.sums[node, 0] += weight
        state.sums[node, 1] += weight * miss
        state.sums[node, 2] += weight * square
        state.sums[node, 3] += weight * square * square


def leaf_of_row(state, node, row):
    """Return the leaf below `node` that a row reaches, -1 if it goes down several branches."""
    while state.shape[node] >= 0:
        split = state.shape[node]
        branch = branch_of(state.tree, split, state.values, row * state.row_step)
        if branch < 0:
            return -1
        node = state.tree.child[state.tree.child_start[split] + branch]
    return node
