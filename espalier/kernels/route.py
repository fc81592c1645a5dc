"""Many rows down one tree: the leaf of each, and what several leaves say together where a row goes several ways.

A node is 16 bytes: a step of a row reads one line of the cache. The children of a node lie side by side, in the order
of its branches; nodes are numbered by place here, ``node`` gives their numbers in the tree::

    cuts   (float64)    | cut of 0  |    ·      | cut of 1  |    ·      | …
    links  (the same    |  ·  |  ·  |  f  |  b  |  ·  |  ·  |  f  |  b  | …     f: attribute, or OTHER
            as int32)                                                           b: place of the first child

A leaf is its own first child and its cut is infinity: a row that has arrived stays. So sixteen rows take every step
together and without a choice, and while one waits for a node or a cell to come from memory, the others go on.

A tree of few levels, none of them nearly empty, stands once more as if they were full, where no link need be read: the
children of entry i are 2i and 2i + 1, those of a leaf stay at it::

    full_cuts, full_features  |  ·  | root | its children | theirs       | …   2^levels entries
    full_ends                 the places that the 2^levels ways lead to

Rows that ask for what is missing, and trees with tests that are no numeric cut, go the other way: also sixteen at a
time, but each looks where it is, and one that has arrived leaves its slot to the next.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.codes import NUMERIC, UNKNOWN
from espalier.kernels.jit import compiled, inner, maker

__all__ = ["N_SLOTS", "OTHER", "Ways", "mix", "most_open", "route"]

OTHER = -1
"""In the place of an attribute's number: a test that is no numeric cut."""
SEVERAL = -1
N_SLOTS = 16
"""Rows that take their steps together."""


class Ways(NamedTuple):
    """A tree as rows are routed by it; see `espalier.tree.Tree` and `espalier.surrogates.Surrogates`.

    ``cuts``, ``links``, ``node`` and the three of the full tree as above, those empty where it is not laid out
    so; all others are by the tree's own numbers. ``share`` is its ``branch_weight``; ``other_start`` is all zeros where
    there are no surrogates.
    """

    cuts: Any
    links: Any
    node: Any
    full_cuts: Any
    full_features: Any
    full_ends: Any
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
def code_branch(start, branches, test, value):  # type: ignore[no-untyped-def]
    """Give the branch of a category at a nominal test, -1 where it was never seen there."""
    place = start[test] + int(value)
    return int(branches[place]) if place < start[test + 1] else -1


@inner
def branch_of(ways, node, values, first):  # type: ignore[no-untyped-def]
    """Give the branch that a row takes at a node, SEVERAL for all of them; its cells are ``values[first + f]``.

    A fallback below SEVERAL ends the row's way at the node. NaN is a missing number or category.
    """
    value = values[first + ways.feature[node]]
    test = ways.test[node]
    if test == UNKNOWN:
        return 1 if math.isnan(value) else 0
    if not math.isnan(value):
        if test == NUMERIC:
            return 0 if value <= ways.threshold[node] else 1
        branch = code_branch(ways.code_start, ways.code_branch, node, value)
        if branch >= 0:
            return branch
    for other in range(ways.other_start[node], ways.other_start[node + 1]):
        value = values[first + ways.other_feature[other]]
        if math.isnan(value):
            continue
        if ways.other_test[other] == NUMERIC:
            below = int(ways.other_below[other])
            return below if value <= ways.other_threshold[other] else 1 - below
        branch = code_branch(ways.other_code_start, ways.other_code_branch, other, value)
        if branch >= 0:
            return branch
    return int(ways.fallback[node])


@inner
def together(cuts, links, values, first, row_step, at):  # type: ignore[no-untyped-def]
    """Take N_SLOTS rows down a tree of numeric cuts, to the places `at`; say whether all they asked for was there.

    The first row's cells begin at `first`. Places are unsigned: of signed ones it is asked whether they are negative.
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
            # A sum in place of a choice: which side a row takes cannot be foreseen, and a wrong guess is dear.
            below = np.uint32(links[4 * place + np.uint64(3)]) + np.uint32(value > cuts[2 * place])
            missing |= value != value  # noqa: PLR0124 - NaN
            moved |= below ^ at[slot]
            at[slot] = below
        if missing:
            return False
    return True


@inner
def one_by_one(ways, values, row_step, low, high, scratch, leaves):  # type: ignore[no-untyped-def]
    """Find the leaves of rows ``low:high``; `scratch` is int64 (3, N_SLOTS)."""
    cuts, links = ways.cuts, ways.links
    at, first, row = scratch[0], scratch[1], scratch[2]
    n_busy = min(N_SLOTS, high - low)
    for slot in range(n_busy):
        at[slot], first[slot], row[slot] = 0, (low + slot) * row_step, low + slot
    coming = low + n_busy
    while n_busy > 0:
        slot = 0
        while slot < n_busy:
            place = at[slot]
            feature, below = links[4 * place + 2], np.int64(links[4 * place + 3])
            end = ways.node[place]
            going_on = below != place
            if going_on:
                knows = feature >= 0
                if knows:
                    value = values[first[slot] + feature]
                    at[slot] = below + np.int64(value > cuts[2 * place])
                    knows = not math.isnan(value)
                if not knows:
                    branch = branch_of(ways, end, values, first[slot])
                    going_on = branch >= 0
                    at[slot] = below + branch
                    if branch == SEVERAL:
                        end = SEVERAL
            if not going_on:
                leaves[row[slot]] = end
                if coming < high:
                    at[slot], first[slot], row[slot] = 0, coming * row_step, coming
                    coming += 1
                else:
                    n_busy -= 1
                    at[slot], first[slot], row[slot] = at[n_busy], first[n_busy], row[n_busy]
                    slot -= 1
            slot += 1


@maker
def in_full(ways, values, row_step, n_rows, scratch, leaves):  # type: ignore[no-untyped-def]
    """Find the leaves of rows N_SLOTS at a time in a tree that is laid out in full; give how many rows that are."""
    cuts, features, ends, node = ways.full_cuts, ways.full_features, ways.full_ends, ways.node
    n_ends, at = np.uint64(len(ends)), np.zeros(N_SLOTS, np.uint32)
    done = 0
    while done + N_SLOTS <= n_rows:
        first, missing = done * row_step, False
        for slot in range(N_SLOTS):
            at[slot] = 1
        width = np.uint64(1)
        while width < n_ends:
            for slot in range(N_SLOTS):
                entry = np.uint64(at[slot])
                value = values[np.uint64(first + slot * row_step) + np.uint64(features[entry])]
                missing |= value != value  # noqa: PLR0124 - NaN
                at[slot] = np.uint32(entry + entry) + np.uint32(value > cuts[entry])
            width += width
        for slot in range(N_SLOTS):
            leaves[done + slot] = node[ends[np.uint64(at[slot]) - n_ends]]
        if missing:
            one_by_one(ways, values, row_step, done, done + N_SLOTS, scratch, leaves)
        done += N_SLOTS
    return done


@compiled
def route(ways, only_cuts, values, row_step, n_rows, leaves):  # type: ignore[no-untyped-def]
    """Find the leaf of each row.

    only_cuts: whether there is a test, and all are numeric cuts. values: float64 or float32, one axis; cell
    (row, attribute) is at ``row * row_step + attribute``, NaN where missing. leaves: int32 (n_rows), written; SEVERAL
    for a row that goes more than one way.
    """
    at, scratch = np.zeros(N_SLOTS, np.uint32), np.zeros((3, N_SLOTS), np.int64)
    done = 0
    if len(ways.full_ends) > 0:
        done = in_full(ways, values, row_step, n_rows, scratch, leaves)
    while only_cuts and done + N_SLOTS <= n_rows:
        if together(ways.cuts, ways.links, values, done * row_step, row_step, at):
            for slot in range(N_SLOTS):
                leaves[done + slot] = ways.node[at[slot]]
        else:
            one_by_one(ways, values, row_step, done, done + N_SLOTS, scratch, leaves)
        done += N_SLOTS
    one_by_one(ways, values, row_step, done, n_rows, scratch, leaves)


@compiled
def mix(ways, answers, values, row_step, rows, node, share, mixed):  # type: ignore[no-untyped-def]
    """Add up what the leaves answer, each by the share of the row that reaches it (Quinlan 1993, chapter 3).

    answers: float64 (nodes, classes or 1). values: as in `route`. rows: int64, those to be answered. node: int32,
    share: float64, both of as many entries as ways can be open at a time: scratch. mixed: float64 (rows, classes or 1),
    written.
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
            while ways.child_start[at] < ways.child_start[at + 1] and branch >= 0:
                branch = branch_of(ways, at, values, first)
                if branch >= 0:
                    at = np.int64(ways.child[ways.child_start[at] + branch])
            if branch == SEVERAL:
                for below in range(ways.child_start[at], ways.child_start[at + 1]):
                    if ways.share[below] > 0.0:
                        node[n_open], share[n_open] = ways.child[below], part * ways.share[below]
                        n_open += 1
                continue
            for column in range(width):
                mixed[place, column] += part * answers[at, column]


@compiled
def most_open(parent, child_start):  # type: ignore[no-untyped-def]
    """Give how many ways of one row can be open at a time, were it to go down every branch; arrays as in a tree."""
    open_ways = np.ones(len(parent), np.int64)
    most = 1
    for node in range(len(parent)):
        if node > 0:
            open_ways[node] = open_ways[parent[node]]
        open_ways[node] += max(0, child_start[node + 1] - child_start[node] - 1)
        most = max(most, open_ways[node])
    return most
