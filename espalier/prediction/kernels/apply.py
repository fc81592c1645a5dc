"""Find the leaf of each of many rows in one tree, and average several leaves where a row takes several branches.

A node is 16 bytes: a step of a row reads one cache line. The children of a node are adjacent, in the order of its
branches. The number of an entry is its place; ``node`` holds its number in the tree::

    thresholds (float64)  | entry 0   |    ·      | entry 1   |    ·      | …
    links (the same       |  ·  |  ·  |  f  |  b  |  ·  |  ·  |  f  |  b  | …   f: attribute, or OTHER
           as int32)                                                            b: place of the first child

A leaf is its own first child and its threshold is infinity: a row that has arrived stays. So sixteen rows take every
step together without a branch in the code, and while one row waits for memory the others proceed.

Rows with a missing value, and trees with other tests than numeric ones, are also processed sixteen at a time, but each
row by its own test; a row that has arrived is replaced by the next one.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.jit import compiled, inner
from espalier.model.node_tests import NUMERIC, UNKNOWN

OTHER = -1
"""Instead of an attribute: the test is not numeric."""
SEVERAL = -1
N_SLOTS = 16
"""Rows that are processed together."""


class PackedTree(NamedTuple):
    """A tree as the kernel reads it; see `espalier.model.tree.Tree` and `espalier.model.surrogates.Surrogates`.

    ``thresholds``, ``links`` and ``node`` as above; all others are indexed by the tree's node numbers. ``share`` is its
    ``branch_weight``; ``other_start`` is all zeros without surrogates.
    """

    thresholds: Any
    links: Any
    node: Any
    test: Any
    feature: Any
    threshold: Any
    child_start: Any
    child: Any
    share: Any
    code_start: Any
    code_branch: Any
    fallback: Any
    other_start: Any
    other_feature: Any
    other_test: Any
    other_threshold: Any
    other_below: Any
    other_code_start: Any
    other_code_branch: Any


@inner
def code_branch(start, branches, test, value):
    """Return the branch of a category at a nominal test, -1 if it was not seen there in training."""
    place = start[test] + int(value)
    return int(branches[place]) if place < start[test + 1] else -1


@inner
def branch_of(tree, node, values, first):
    """Return the branch that a row takes at a node, SEVERAL for all of them; its cells are ``values[first + f]``.

    A fallback below SEVERAL ends the row's path at the node. NaN is a missing number or category.
    """
    value = values[first + tree.feature[node]]
    test = tree.test[node]
    if test == UNKNOWN:
        return 1 if math.isnan(value) else 0
    if not math.isnan(value):
        if test == NUMERIC:
            return 0 if value <= tree.threshold[node] else 1
        branch = code_branch(tree.code_start, tree.code_branch, node, value)
        if branch >= 0:
            return branch
    for other in range(tree.other_start[node], tree.other_start[node + 1]):
        value = values[first + tree.other_feature[other]]
        if math.isnan(value):
            continue
        if tree.other_test[other] == NUMERIC:
            below = int(tree.other_below[other])
            return below if value <= tree.other_threshold[other] else 1 - below
        branch = code_branch(tree.other_code_start, tree.other_code_branch, other, value)
        if branch >= 0:
            return branch
    return int(tree.fallback[node])


@inner
def apply_interleaved(thresholds, links, values, first, row_step, at):
    """Write to `at` the places of the leaves of N_SLOTS rows; return False if a tested value is missing.

    All tests are numeric. The first row's cells begin at `first`. Places are unsigned: signed ones would be checked for
    negative values.
    """
    for slot in range(N_SLOTS):
        at[slot] = 0
    moved = np.uint32(1)
    while moved != 0:
        moved = np.uint32(0)
        missing = False
        for slot in range(N_SLOTS):
            place = np.uint64(at[slot])
            value = values[np.uint64(first + slot * row_step) + np.uint64(links[4 * place + np.uint64(2)])]
            # A sum instead of a branch: the processor could not predict it.
            below = np.uint32(links[4 * place + np.uint64(3)]) + np.uint32(value > thresholds[2 * place])
            missing |= value != value  # noqa: PLR0124 - NaN
            moved |= below ^ at[slot]
            at[slot] = below
        if missing:
            return False
    return True


@inner
def apply_rows(tree, values, row_step, low, high, scratch, leaves):
    """Find the leaves of rows ``low:high``; `scratch` is int64 (3, N_SLOTS)."""
    thresholds, links = tree.thresholds, tree.links
    at, first, row = scratch[0], scratch[1], scratch[2]
    n_busy = min(N_SLOTS, high - low)
    for slot in range(n_busy):
        at[slot], first[slot], row[slot] = 0, (low + slot) * row_step, low + slot
    next_row = low + n_busy
    while n_busy > 0:
        slot = 0
        while slot < n_busy:
            place = at[slot]
            feature, below = links[4 * place + 2], np.int64(links[4 * place + 3])
            end = tree.node[place]
            continues = below != place
            if continues:
                is_known = feature >= 0
                if is_known:
                    value = values[first[slot] + feature]
                    at[slot] = below + np.int64(value > thresholds[2 * place])
                    is_known = not math.isnan(value)
                if not is_known:
                    branch = branch_of(tree, end, values, first[slot])
                    continues = branch >= 0
                    at[slot] = below + branch
                    if branch == SEVERAL:
                        end = SEVERAL
            if not continues:
                leaves[row[slot]] = end
                if next_row < high:
                    at[slot], first[slot], row[slot] = 0, next_row * row_step, next_row
                    next_row += 1
                else:
                    n_busy -= 1
                    at[slot], first[slot], row[slot] = at[n_busy], first[n_busy], row[n_busy]
                    slot -= 1
            slot += 1


@compiled
def apply(tree, is_all_numeric, values, row_step, n_rows, leaves):
    """Find the leaf of each row.

    is_all_numeric: whether there is a test, and all are numeric. values: float64 or float32, one axis; cell (row,
    attribute) is at ``row * row_step + attribute``, NaN if missing. leaves: int32 (n_rows), written; SEVERAL for a row
    that takes several branches.
    """
    at, scratch = np.zeros(N_SLOTS, np.uint32), np.zeros((3, N_SLOTS), np.int64)
    done = 0
    while is_all_numeric and done + N_SLOTS <= n_rows:
        if apply_interleaved(tree.thresholds, tree.links, values, done * row_step, row_step, at):
            for slot in range(N_SLOTS):
                leaves[done + slot] = tree.node[at[slot]]
        else:
            apply_rows(tree, values, row_step, done, done + N_SLOTS, scratch, leaves)
        done += N_SLOTS
    apply_rows(tree, values, row_step, done, n_rows, scratch, leaves)


@compiled
def average_leaves(tree, answers, values, row_step, rows, node, share, mixed):
    """Average the answers of the leaves, weighted by the share of the row that reaches each (Quinlan 1993, chapter 3).

    answers: float64 (nodes, classes or 1). values: as in `apply`. rows: int64, those to be predicted. node: int32,
    share: float64, both of `max_open` entries: scratch. mixed: float64 (rows, classes or 1), written.
    """
    width = mixed.shape[1]
    for place in range(len(rows)):
        first = rows[place] * row_step
        mixed[place] = 0.0
        node[0], share[0] = 0, 1.0
        n_open = 1
        while n_open > 0:
            n_open -= 1
            at, part = np.int64(node[n_open]), share[n_open]
            branch = 0
            while tree.child_start[at] < tree.child_start[at + 1] and branch >= 0:
                branch = branch_of(tree, at, values, first)
                if branch >= 0:
                    at = np.int64(tree.child[tree.child_start[at] + branch])
            if branch == SEVERAL:
                for below in range(tree.child_start[at], tree.child_start[at + 1]):
                    if tree.share[below] > 0.0:
                        node[n_open], share[n_open] = tree.child[below], part * tree.share[below]
                        n_open += 1
                continue
            for column in range(width):
                mixed[place, column] += part * answers[at, column]


@compiled
def max_open(parent, child_start):
    """Return the largest number of pending nodes of one row that takes every branch; arrays as in a tree."""
    n_open = np.ones(len(parent), np.int64)
    most = 1
    for node in range(len(parent)):
        if node > 0:
            n_open[node] = n_open[parent[node]]
        n_open[node] += max(0, child_start[node + 1] - child_start[node] - 1)
        most = max(most, n_open[node])
    return most
