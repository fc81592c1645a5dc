"""Find the leaf of each of many rows in one tree, and average several leaves where a row takes several branches.

A packed node has 16 bytes, so that a row reads one cache line per step. The children of a node are adjacent, in the
order of their branches. The index of a packed node is its *place*; ``node[place]`` is its number in the tree::

    thresholds (float64)  | place 0   |    ·      | place 1   |    ·      | …
    links (the same       |  ·  |  ·  |  f  |  b  |  ·  |  ·  |  f  |  b  | …   f: attribute, or OTHER
           as int32)                                                            b: place of the first child

A leaf is its own first child, and its threshold is infinity, so a row that has arrived stays there. Sixteen rows take
every step together without a branch in the code; while one row waits for memory, the others proceed.

If one of the sixteen rows lacks a tested value, if fewer rows are left, or if not all tests are numeric, another loop
moves up to sixteen rows at a time. It has branches in the code; the next row replaces a row that has arrived.
"""

import cython
import numpy as np
from cython.cimports.espalier.model.node_tests import NUMERIC, UNKNOWN
from cython.cimports.espalier.prediction.kernels.constants import N_SLOTS, SEVERAL
from cython.cimports.libc.math import isnan


class PackedTree:
    """A tree as the kernel reads it; see `espalier.model.tree.Tree` and `espalier.model.surrogates.Surrogates`.

    The beginning of this module describes ``thresholds``, ``links`` and ``node``. ``share`` is ``branch_weight`` of
    `Tree`, and ``other_…`` are the arrays of `Surrogates`; without surrogates, ``other_start`` is all zeros. Each
    remaining array is that of `Tree` with the same name.
    """

    def __init__(self, **arrays):
        for name, array in arrays.items():
            setattr(self, name, array)


def code_branch(start, branches, test, value):
    """Return the branch of a category code at a nominal test; -1 if it was not seen there in training."""
    place = start[test] + cython.cast(cython.int, value)
    return branches[place] if place < start[test + 1] else -1


def own_branch(tree, node, value):
    """Return the branch of a value at a test; -1 for an unseen category, and for NaN unless the test is UNKNOWN."""
    test = tree.test[node]
    if test == UNKNOWN:
        return 1 if isnan(value) else 0
    if isnan(value):
        return -1
    if test == NUMERIC:
        return 0 if value <= tree.threshold[node] else 1
    return code_branch(tree.code_start, tree.code_branch, node, value)


def other_branch(tree, node, values, first):
    """Return the branch of a row without a known value: that of a surrogate, or the fallback (SEVERAL: all branches).

    The cell of attribute f is ``values[first + f]``. A fallback of -2 ends the row's path at the node.
    """
    for other in range(tree.other_start[node], tree.other_start[node + 1]):
        value: cython.double = values[first + tree.other_feature[other]]
        if isnan(value):
            continue
        if tree.other_test[other] == NUMERIC:
            below = tree.other_below[other]
            return below if value <= tree.other_threshold[other] else 1 - below
        branch = code_branch(tree.other_code_start, tree.other_code_branch, other, value)
        if branch >= 0:
            return branch
    return tree.fallback[node]


def branch_of(tree, node, values, first):
    """Return the branch that a row takes at a node. The row's cells are ``values[first + f]``. See `other_branch`."""
    branch = own_branch(tree, node, values[first + tree.feature[node]])
    return branch if branch >= 0 else other_branch(tree, node, values, first)


def apply_interleaved(thresholds, links, values, row_step, at):
    """Write to `at` the places of the leaves of N_SLOTS rows; return False if a tested value is missing.

    All tests must be numeric. values: cell (row, attribute) is at ``row * row_step + attribute``.
    """
    slot = cython.declare(cython.int)
    place = cython.declare(cython.uint)
    for slot in range(N_SLOTS):
        at[slot] = 0
    moved: cython.uint = 1
    while moved != 0:
        moved = 0
        missing: cython.bint = False
        for slot in range(N_SLOTS):
            place = at[slot]
            value = values[slot * row_step + links[4 * place + 2]]
            # An addition instead of a branch, which the processor could not predict.
            below: cython.uint = links[4 * place + 3] + (value > thresholds[2 * place])
            missing |= value != value  # noqa: PLR0124 - NaN
            moved |= below ^ place
            at[slot] = below
        if missing:
            return False
    return True


def apply_rows(tree, values, row_step, low, high, leaves):
    """Write the leaves of rows ``low:high`` to `leaves`; arguments as in `apply`."""
    place = cython.declare(cython.int[N_SLOTS])
    first = cython.declare(cython.longlong[N_SLOTS])
    row = cython.declare(cython.longlong[N_SLOTS])
    slot = cython.declare(cython.int)
    n_busy: cython.int = min(N_SLOTS, high - low)
    for slot in range(n_busy):
        place[slot], first[slot], row[slot] = 0, (low + slot) * row_step, low + slot
    next_row = low + n_busy
    while n_busy > 0:
        slot = 0
        while slot < n_busy:
            at = place[slot]
            feature, below = tree.links[4 * at + 2], tree.links[4 * at + 3]
            end = tree.node[at]
            continues: cython.bint = below != at
            if continues:
                is_known: cython.bint = feature >= 0
                if is_known:
                    value: cython.double = values[first[slot] + feature]
                    place[slot] = below + (value > tree.thresholds[2 * at])
                    is_known = not isnan(value)
                if not is_known:
                    branch = branch_of(tree, end, values, first[slot])
                    continues = branch >= 0
                    place[slot] = below + branch
                    if branch == SEVERAL:
                        end = SEVERAL
            if not continues:
                leaves[row[slot]] = end
                if next_row < high:
                    place[slot], first[slot], row[slot] = 0, next_row * row_step, next_row
                    next_row += 1
                else:
                    n_busy -= 1
                    place[slot], first[slot], row[slot] = place[n_busy], first[n_busy], row[n_busy]
                    slot -= 1
            slot += 1


def apply(tree, is_all_numeric, values, row_step, n_rows, leaves):
    """Find the leaf of each row.

    is_all_numeric: whether the tree has tests, and all of them are numeric. values: float64 or float32, one axis; cell
    (row, attribute) is at ``row * row_step + attribute``, NaN if missing or unseen. leaves: int32 (n_rows), written;
    SEVERAL for a row that takes several branches.
    """
    at = cython.declare(cython.uint[N_SLOTS])
    slot = cython.declare(cython.int)
    done: cython.longlong = 0
    with cython.nogil:
        while is_all_numeric and done + N_SLOTS <= n_rows:
            if apply_interleaved(
                cython.address(tree.thresholds[0]), cython.address(tree.links[0]),
                cython.address(values[done * row_step]), row_step, at,
            ):  # fmt: skip
                for slot in range(N_SLOTS):
                    leaves[done + slot] = tree.node[at[slot]]
            else:
                apply_rows(tree, values, row_step, done, done + N_SLOTS, leaves)
            done += N_SLOTS
        apply_rows(tree, values, row_step, done, n_rows, leaves)


def average_leaves(tree, answers, values, row_step, rows, node, share, mixed):
    """Average the answers of the leaves, weighted by the share of the row that reaches each (Quinlan 1993, chapter 3).

    Rounding errors are added up separately (Knuth's two-sum), to come close to the exact sums of `TreePredictor`.

    answers: float64 (nodes, classes or 1). values: as in `apply`. rows: int64, indexes of the rows to predict.
    node, share: scratch space, int32 and float64 (`max_open`). mixed: float64 (rows, classes or 1), written.
    """
    errors = np.empty(mixed.shape[1])
    error: cython.double[::1] = errors
    with cython.nogil:
        for place in range(rows.shape[0]):
            first = rows[place] * row_step
            for column in range(mixed.shape[1]):
                mixed[place, column] = error[column] = 0.0
            node[0], share[0] = 0, 1.0
            n_open = 1
            while n_open > 0:
                n_open -= 1
                at, part = node[n_open], share[n_open]
                branch = 0
                while tree.child_start[at] < tree.child_start[at + 1] and branch >= 0:
                    branch = branch_of(tree, at, values, first)
                    if branch >= 0:
                        at = tree.child[tree.child_start[at] + branch]
                if branch == SEVERAL:
                    for below in range(tree.child_start[at], tree.child_start[at + 1]):
                        if tree.share[below] > 0.0:
                            node[n_open], share[n_open] = tree.child[below], part * tree.share[below]
                            n_open += 1
                    continue
                for column in range(mixed.shape[1]):
                    before, added = mixed[place, column], part * answers[at, column]
                    after = before + added
                    gained = after - before
                    error[column] += (before - (after - gained)) + (added - gained)
                    mixed[place, column] = after
            for column in range(mixed.shape[1]):
                mixed[place, column] += error[column]


def max_open(parent, child_start):
    """Return an upper bound of the number of nodes pending while one row takes every branch; arrays as in `Tree`."""
    counts = np.ones(parent.shape[0], np.int64)
    n_open: cython.longlong[::1] = counts
    most: cython.longlong = 1
    for node in range(parent.shape[0]):
        if node > 0:
            n_open[node] = n_open[parent[node]]
        n_open[node] += max(0, child_start[node + 1] - child_start[node] - 1)
        most = max(most, n_open[node])
    return most
