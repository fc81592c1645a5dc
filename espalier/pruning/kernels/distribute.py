"""Distribute weighted rows over the nodes of a tree.

A row whose value is missing at a test goes down several branches, each with a share of its weight. A *row part* is a
row with its weight at one node. During the visit one buffer holds the parts that have arrived at leaves and the pending
ones, the next node's first::

    row     | leaf 3 | leaf 4 |   free   | node 5 | node 8 |        the tree is visited in preorder
              0               n_arrived    first             end of the buffer

A *shape*, int32 (n_nodes), gives for each node the node whose test and children it uses, -1 for a leaf. In a tree as
grown each inner node has its own; a node replaced by its branch c has ``shape[c]``.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.jit import compiled, inner, maker
from espalier.model.node_tests import NUMERIC, UNKNOWN

KEEP_SHARES = 0
RENEW_KNOWN = 1
RENEW_ALL = 2
"""Branch shares at a test: unchanged, those of the rows that know its value, or those of all rows with one branch."""


class TreeArrays(NamedTuple):
    """The arrays of `espalier.model.tree.Tree` that route rows, and those of its surrogates.

    ``surrogate_start`` is all zeros if the tree has no surrogates.
    """

    child_start: Any
    child: Any
    feature: Any
    test: Any
    threshold: Any
    code_start: Any
    code_branch: Any
    fallback: Any
    surrogate_start: Any
    surrogate_feature: Any
    surrogate_test: Any
    surrogate_threshold: Any
    surrogate_below: Any
    surrogate_code_start: Any
    surrogate_code_branch: Any


class Distributed(NamedTuple):
    """Rows at the leaves of a subtree.

    order: int32 (n), its nodes in preorder; size: int32 (n), size of each one's subtree. lo: int64 (n + 1), where the
    row parts of each node's subtree begin; the last entry is their number. row: int32, weight: float64: the row parts,
    leaf by leaf; a part that is less than its whole row is stored as ``~row``, if `marks_parts` was set.
    """

    order: Any
    size: Any
    lo: Any
    row: Any
    weight: Any


class Buffers(NamedTuple):
    """Row parts that have arrived or are pending, and scratch for the row parts of one node with their branches."""

    row: Any
    weight: Any
    own_row: Any
    own_weight: Any
    branch: Any


@compiled
def distribute(tree, shape, shares, values, rows, weights, target, n_classes, answers, sums, marks_parts, divides):
    """Distribute rows from the root with the branch shares of the tree; see `distribute_rows`."""
    return distribute_rows(
        tree, shape, shares, values, 0, rows, weights, target, n_classes, answers, sums, KEEP_SHARES, marks_parts,
        divides, np.zeros(len(shape)),
    )  # fmt: skip


@maker
def distribute_rows(
    tree, shape, shares, values, start, rows, weights, target, n_classes, answers, sums, renew, marks_parts, divides,
    known_before,
):  # fmt: skip
    """Distribute rows over the subtree at `start`, and sum them at each of its nodes.

    values: float64 (n_attributes, n_rows): numbers, codes of categories, NaN if missing. shares: float64, by child in
    the order of ``tree.child``; those of the tests that rows reach are rewritten according to `renew`. rows: int32,
    weights: float64: what arrives at `start`. target: float64 (n_rows): class code (below 0: none of the classes) or
    number. sums: float64 (n_nodes, width), written for every node of the subtree: the weight of each class and then of
    none of them (width n_classes + 1); or, if n_classes is 0 and d = target - answers[node], the sums of w, w·d, w·d²
    and w·d⁴.

    If `marks_parts` is 1, parts of rows are returned as ``~row``, in `rows` too; a second group of columns of `sums`
    then sums these parts, the first one whole rows; and divides: bool (n_nodes) is written: whether a row goes down
    several branches at the node. known_before: float64 (n_nodes): weight of other rows at each node that counts where
    the shares of the test above it are rewritten.
    """
    n_rows, n_nodes, n_branches = len(rows), len(shape), max_branches(tree)
    room = n_rows + 16
    row, weight = np.empty(room, np.int32), np.empty(room)
    for each in range(n_rows):
        row[room - n_rows + each], weight[room - n_rows + each] = rows[each], weights[each]
    own_row, own_weight, branch = np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32)
    by_branch = (np.empty(n_branches, np.int64), np.empty(n_branches))
    pending = (np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int32))
    pending[0][0], pending[1][0], pending[2][0] = start, n_rows, -1
    visited = (np.empty(n_nodes, np.int32), np.empty(n_nodes + 1, np.int64), np.empty(n_nodes, np.int32))
    state = np.array([1, 0, 0, room - n_rows])
    while state[0] > 0:
        lacking = visit_nodes(
            tree, shape, shares, values, target, n_classes, answers, sums, renew, marks_parts, divides, known_before,
            Buffers(row, weight, own_row, own_weight, branch), by_branch, pending, visited, state,
        )  # fmt: skip
        if lacking > 0:
            more = len(row) + lacking
            row, weight = with_room(row, state[2], state[3], more), with_room(weight, state[2], state[3], more)
            own_row, own_weight, branch = np.empty(len(row), np.int32), np.empty(len(row)), np.empty(len(row), np.int32)
            state[3] += more
    n_order, n_arrived = state[1], state[2]
    lo = first_of(visited[1], n_order + 1)
    lo[n_order] = n_arrived
    size = np.empty(n_order, np.int32)
    write_sizes(visited[2], size)
    return Distributed(first_of(visited[0], n_order), size, lo, first_of(row, n_arrived), first_of(weight, n_arrived))


@inner
def visit_nodes(
    tree, shape, shares, values, target, n_classes, answers, sums, renew, marks_parts, divides, known_before, buffers,
    by_branch, pending, visited, state,
):  # fmt: skip
    """Visit nodes until all are done or the buffer is full. Return by how much its free part is too short.

    state: int64 (4), written: the numbers of pending and of visited nodes; n_arrived and first of the picture above.
    """
    count, known = by_branch
    n_pending, n_order, n_arrived, first = state[0], state[1], state[2], state[3]
    lacking = np.int64(0)
    while n_pending > 0:
        node, n_parts, split = pending[0][n_pending - 1], pending[1][n_pending - 1], shape[pending[0][n_pending - 1]]
        base, n_branches, n_unknown, n_below = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        if split >= 0:
            base = np.int64(tree.child_start[split])
            n_branches = tree.child_start[split + 1] - base
            for branch in range(n_branches):
                count[branch], known[branch] = 0, known_before[tree.child[base + branch]]
        if split >= 0 and n_parts > 0:
            n_unknown = choose_branches(tree, split, values, buffers, first, n_parts, renew, count, known)
            if renew != KEEP_SHARES:
                renew_shares(shares, base, n_branches, known)
            for branch in range(n_branches):
                count[branch] += n_unknown if shares[base + branch] > 0.0 else 0
                n_below += count[branch]
            lacking = n_below - n_parts - (first - n_arrived)
            if lacking > 0:
                break
        n_pending -= 1
        visited[0][n_order], visited[1][n_order], visited[2][n_order] = node, n_arrived, pending[2][n_pending]
        n_order += 1
        if n_classes > 0:
            add_classes(buffers, first, n_parts, target, n_classes, sums, node)
        else:
            add_powers(buffers, first, n_parts, target, answers[node], sums, node)
        if split < 0:
            copy(buffers.row, first, buffers.row, n_arrived, n_parts)
            copy(buffers.weight, first, buffers.weight, n_arrived, n_parts)
            n_arrived, first = n_arrived + n_parts, first + n_parts
            continue
        if marks_parts == 1:
            divides[node] = n_unknown > 0
        copy(buffers.row, first, buffers.own_row, 0, n_parts)
        copy(buffers.weight, first, buffers.own_weight, 0, n_parts)
        first = first + n_parts - n_below
        at = first + n_below
        for branch in range(n_branches - 1, -1, -1):
            pending[0][n_pending], pending[1][n_pending] = tree.child[base + branch], count[branch]
            pending[2][n_pending] = n_order - 1
            n_pending += 1
            at -= count[branch]
            count[branch] = at
        partition_parts(buffers, n_parts, shares, base, n_branches, count, marks_parts)
    state[0], state[1], state[2], state[3] = n_pending, n_order, n_arrived, first
    return max(lacking, np.int64(0))


@inner
def choose_branches(tree, split, values, buffers, first, n_parts, renew, count, known):
    """Write the branch of each row part of a node, -1 for all branches. Return how many take all.

    count: int64, known: float64, by branch: the parts that take it and the weight that counts for its share are added.
    """
    feature, test = np.int64(tree.feature[split]), test_of(tree, split)
    has_others = tree.fallback[split] >= 0 or tree.surrogate_start[split + 1] > tree.surrogate_start[split]
    n_unknown = 0
    for part in range(n_parts):
        row = buffers.row[first + part]
        row = row if row >= 0 else ~row
        branch = branch_of_value(values[feature, row], test, tree.code_branch)
        counts_for_share = branch >= 0 or renew == RENEW_ALL
        if branch < 0 and has_others:
            branch = other_branch(tree, split, values, row)
        buffers.branch[part] = branch
        if branch < 0:
            n_unknown += 1
            continue
        count[branch] += 1
        if counts_for_share:
            known[branch] += buffers.weight[first + part]
    return n_unknown


@inner
def renew_shares(shares, base, n_branches, known):
    """Rewrite the shares of a test's branches from the weights in each, unless these are all 0."""
    total = 0.0
    for branch in range(n_branches):
        total += known[branch]
    if total > 0.0:
        for branch in range(n_branches):
            shares[base + branch] = known[branch] / total


@inner
def partition_parts(buffers, n_parts, shares, base, n_branches, at, marks_parts):
    """Write the row parts of a node ordered by branch. at: int64, where those of each begin, written."""
    for part in range(n_parts):
        branch, row, weight = np.int64(buffers.branch[part]), buffers.own_row[part], buffers.own_weight[part]
        if branch >= 0:
            buffers.row[at[branch]], buffers.weight[at[branch]] = row, weight
            at[branch] += 1
            continue
        row = ~row if marks_parts == 1 and row >= 0 else row
        for each in range(n_branches):
            share = shares[base + each]
            if share > 0.0:
                buffers.row[at[each]], buffers.weight[at[each]] = row, weight * share
                at[each] += 1


@inner
def add_classes(buffers, first, n_parts, target, n_classes, sums, node):
    """Write the class weights of row parts into ``sums[node]``."""
    for place in range(sums.shape[1]):
        sums[node, place] = 0.0
    for part in range(first, first + n_parts):
        row = buffers.row[part]
        code = np.int64(target[row if row >= 0 else ~row])
        column = code if code >= 0 else n_classes
        sums[node, column if row >= 0 else column + n_classes + 1] += buffers.weight[part]


@inner
def add_powers(buffers, first, n_parts, target, answer, sums, node):
    """Write the sums of powers of ``target - answer`` of row parts into ``sums[node]``."""
    for place in range(sums.shape[1]):
        sums[node, place] = 0.0
    for part in range(first, first + n_parts):
        weight, miss = buffers.weight[part], target[buffers.row[part]] - answer
        square = miss * miss
        sums[node, 0] += weight
        sums[node, 1] += weight * miss
        sums[node, 2] += weight * square
        sums[node, 3] += weight * square * square


@inner
def branch_of_row(tree, split, values, row):
    """Return the branch that a row takes at a test, -1 for all branches."""
    branch = branch_of_value(values[tree.feature[split], row], test_of(tree, split), tree.code_branch)
    return branch if branch >= 0 else other_branch(tree, split, values, row)


@inner
def test_of(tree, split):
    """Return what `branch_of_value` needs of a test: kind, threshold, and where its categories begin and end."""
    return (
        np.int64(tree.test[split]), tree.threshold[split], np.int64(tree.code_start[split]),
        np.int64(tree.code_start[split + 1]),
    )  # fmt: skip


@inner
def branch_of_value(value, test, code_branch):
    """Return the branch of a value at a test, -1 if it is missing or a category that was never seen there."""
    kind, threshold, start, stop = test
    if kind == UNKNOWN:
        return np.int64(math.isnan(value))
    if math.isnan(value):
        return np.int64(-1)
    if kind == NUMERIC:
        return np.int64(0 if value <= threshold else 1)
    place = start + np.int64(value)
    return np.int64(code_branch[place]) if place < stop else np.int64(-1)


@inner
def other_branch(tree, split, values, row):
    """Return the branch of a row without a known value: by surrogates, else the fallback; -1 for all branches."""
    for other in range(tree.surrogate_start[split], tree.surrogate_start[split + 1]):
        value = values[tree.surrogate_feature[other], row]
        if math.isnan(value):
            continue
        if tree.surrogate_test[other] == NUMERIC:
            below = np.int64(tree.surrogate_below[other])
            return below if value <= tree.surrogate_threshold[other] else 1 - below
        place = tree.surrogate_code_start[other] + np.int64(value)
        if place < tree.surrogate_code_start[other + 1] and tree.surrogate_code_branch[place] >= 0:
            return np.int64(tree.surrogate_code_branch[place])
    return np.int64(tree.fallback[split])


@inner
def max_branches(tree):
    """Return how many branches a test has at most."""
    most = np.int64(1)
    for node in range(len(tree.child_start) - 1):
        most = max(most, np.int64(tree.child_start[node + 1] - tree.child_start[node]))
    return most


@compiled
def preorder(child_start, child, shape):
    """Return the nodes of a shape in preorder, the place of each one's parent, and the size of its subtree: int32."""
    order, up = np.empty(len(shape), np.int32), np.empty(len(shape), np.int32)
    pending, pending_up = np.empty(len(shape), np.int32), np.empty(len(shape), np.int32)
    n_order = list_nodes(child_start, child, shape, order, up, pending, pending_up)
    size = np.empty(n_order, np.int32)
    write_sizes(up, size)
    return first_of(order, n_order), first_of(up, n_order), size


@inner
def list_nodes(child_start, child, shape, order, up, pending, pending_up):
    """Write order and up, as `preorder` returns them; return how many nodes there are. pending, pending_up: scratch."""
    pending[0], pending_up[0] = 0, -1
    n_pending, n_order = 1, 0
    while n_pending > 0:
        n_pending -= 1
        node = pending[n_pending]
        order[n_order], up[n_order] = node, pending_up[n_pending]
        n_order += 1
        if shape[node] < 0:
            continue
        for place in range(child_start[shape[node] + 1] - 1, child_start[shape[node]] - 1, -1):
            pending[n_pending], pending_up[n_pending] = child[place], n_order - 1
            n_pending += 1
    return n_order


@inner
def write_sizes(up, size):
    """Write the sizes of subtrees in preorder; up: int32, the place of each parent, -1 for the first."""
    for place in range(len(size)):
        size[place] = 1
    for place in range(len(size) - 1, 0, -1):
        size[up[place]] += size[place]


@maker
def with_room(array, n_arrived, first, more):
    """Return a longer copy of a buffer: `more` entries are added to its free part between `n_arrived` and `first`."""
    made = np.empty(len(array) + more, array.dtype)
    copy(array, 0, made, 0, n_arrived)
    copy(array, first, made, first + more, len(array) - first)
    return made


@maker
def first_of(array, count):
    """Return a copy of the first `count` entries of an array."""
    made = np.empty(count, array.dtype)
    copy(array, 0, made, 0, count)
    return made


@inner
def copy(array, start, to, at, count):
    """Copy ``array[start : start + count]`` to ``to[at : at + count]``, the first entry first."""
    for place in range(count):
        to[at + place] = array[start + place]
