"""Many rows down one tree: the leaf of each, and what several leaves say together where a row goes several ways.

A node is 16 bytes: a step of a row reads one line of the cache. The first child of a node is the node after it::

    cuts   (float64)    | cut of 0  |    ·      | cut of 1  |    ·      | …
    links  (the same    |  ·  |  ·  |  f  |  r  |  ·  |  ·  |  f  |  r  | …     f: attribute, LEAF or OTHER
            as int32)                                                           r: the second child

Sixteen rows are on their way at a time: while one waits for a node or a cell to come from memory, the others go on.
A row that has arrived leaves its slot to the next.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.codes import NUMERIC, UNKNOWN
from espalier.kernels.jit import compiled, inner

__all__ = ["LEAF", "OTHER", "Answers", "Ways", "mix", "most_open", "route"]

LEAF = -1
OTHER = -2
"""In the place of an attribute's number: nothing is tested; a test that is no numeric cut."""
SEVERAL = -1
N_SLOTS = 16


class Ways(NamedTuple):
    """A tree as rows are routed by it; see `espalier.tree.Tree` and `espalier.surrogates.Surrogates`.

    ``share`` is the tree's ``branch_weight``; ``other_start`` is all zeros where there are no surrogates.
    """

    cuts: Any
    links: Any
    test: Any
    feature: Any
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


class Answers(NamedTuple):
    """What each node answers: ``(part[base[i], c] + extra) / whole[base[i]]`` for class c, or for the one number."""

    part: Any
    base: Any
    whole: Any
    extra: float


@inner
def code_branch(start, branches, test, value):  # type: ignore[no-untyped-def]
    """Give the branch of a category at a nominal test, -1 where it was never seen there."""
    place = start[test] + int(value)
    return int(branches[place]) if place < start[test + 1] else -1


@inner
def branch_of(ways, node, values, first, step):  # type: ignore[no-untyped-def]
    """Give the branch that a row takes at a node, SEVERAL for all of them; its cells are ``values[first + step * f]``.

    A fallback below SEVERAL ends the row's way at the node. NaN is a missing number or category.
    """
    value = values[first + step * ways.feature[node]]
    test = ways.test[node]
    if test == UNKNOWN:
        return 1 if math.isnan(value) else 0
    if not math.isnan(value):
        if test == NUMERIC:
            return 0 if value <= ways.cuts[2 * node] else 1
        branch = code_branch(ways.code_start, ways.code_branch, node, value)
        if branch >= 0:
            return branch
    for other in range(ways.other_start[node], ways.other_start[node + 1]):
        value = values[first + step * ways.other_feature[other]]
        if math.isnan(value):
            continue
        if ways.other_test[other] == NUMERIC:
            below = int(ways.other_below[other])
            return below if value <= ways.other_threshold[other] else 1 - below
        branch = code_branch(ways.other_code_start, ways.other_code_branch, other, value)
        if branch >= 0:
            return branch
    return int(ways.fallback[node])


@compiled
def route(ways, values, row_step, column_step, n_rows, leaves):  # type: ignore[no-untyped-def]
    """Find the leaf of each row.

    values: float64 or float32, one axis; cell (row, column) is at ``row * row_step + column * column_step``, NaN where
    missing. leaves: int32 (n_rows), written; SEVERAL for a row that goes more than one way.
    """
    cuts, links = ways.cuts, ways.links
    at, first, row = np.zeros(N_SLOTS, np.int64), np.zeros(N_SLOTS, np.int64), np.zeros(N_SLOTS, np.int64)
    n_busy = min(N_SLOTS, n_rows)
    for slot in range(n_busy):
        row[slot], first[slot] = slot, slot * row_step
    coming = n_busy
    while n_busy > 0:
        slot = 0
        while slot < n_busy:
            node = at[slot]
            feature = links[4 * node + 2]
            going_on = feature >= 0
            if going_on:
                value = values[first[slot] + feature * column_step]
                right = np.int64(links[4 * node + 3])
                # A sum in place of a choice: which side a row takes cannot be foreseen, and a wrong guess is dear.
                at[slot] = right + (node + 1 - right) * np.int64(value <= cuts[2 * node])
            if feature == OTHER or (going_on and math.isnan(value)):
                branch = branch_of(ways, node, values, first[slot], column_step)
                going_on = branch >= 0
                if going_on:
                    at[slot] = ways.child[ways.child_start[node] + branch]
                elif branch == SEVERAL:
                    node = SEVERAL
            if not going_on:
                leaves[row[slot]] = node
                if coming < n_rows:
                    at[slot], row[slot], first[slot] = 0, coming, coming * row_step
                    coming += 1
                else:
                    n_busy -= 1
                    at[slot], row[slot], first[slot] = at[n_busy], row[n_busy], first[n_busy]
                    slot -= 1
            slot += 1


@compiled
def mix(ways, answers, values, row_step, column_step, rows, node, share, mixed):  # type: ignore[no-untyped-def]
    """Add up what the leaves answer, each by the share of the row that reaches it (Quinlan 1993, chapter 3).

    values: as in `route`. rows: int64, those to be answered. node: int32, share: float64, both of as many entries as
    ways can be open at a time: scratch. mixed: float64 (rows, classes or 1), written.
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
            while ways.links[4 * at + 2] != LEAF and branch != SEVERAL:
                branch = branch_of(ways, at, values, first, column_step)
                if branch != SEVERAL:
                    at = np.int64(ways.child[ways.child_start[at] + branch])
            if branch == SEVERAL:
                for below in range(ways.child_start[at], ways.child_start[at + 1]):
                    if ways.share[below] > 0.0:
                        node[n_open], share[n_open] = ways.child[below], part * ways.share[below]
                        n_open += 1
                continue
            base = answers.base[at]
            for column in range(width):
                mixed[place, column] += part * ((answers.part[base, column] + answers.extra) / answers.whole[base])


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
