"""Rows sent to the leaves of a tree many at a time, and settled there: the pieces that pruning starts from.

Rows are numbered anew by the leaf that they reach, those that go several ways last, and their values stand row by row::

    row     0        1        2        3        4       | 5        6
    leaf    2        2        3        4        4       | several
    cells   a b c …  a b c …  a b c …  a b c …  a b c … | …                 a, b, c: attributes

So the rows of a subtree lie side by side, and who sends some of them elsewhere reads memory in its order. The pieces of
a leaf (see `spreading`) begin with the rows that reach no other.
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.codes import NOMINAL, NUMERIC
from espalier.kernels.jit import inner, maker
from espalier.kernels.spreading import AT_LEAVES, KEEP_SHARES, copy, fill, other_branch, own_branch, spread

__all__ = ["Cells", "Settled", "Steps", "send_down", "set_step", "settle", "steps_of"]

N_SLOTS = 16
CUT = 0
CODES = 1


class Steps(NamedTuple):
    """What each node of a tree in its present shape does, 32 bytes a node; see `set_step`."""

    cuts: Any
    links: Any
    ways: Any
    way_start: Any


class Cells(NamedTuple):
    """The values of rows, float64 (F, n), one row after the other in memory; on one axis; and how many a row has."""

    values: Any
    flat: Any
    row_step: Any


class Settled(NamedTuple):
    """Rows at the leaves: nodes in preorder, sizes of their subtrees, pieces as `spread` gives them; the rows' own
    cells and classes, by their new numbers.
    """

    order: Any
    size: Any
    lo: Any
    row: Any
    weight: Any
    cells: Any
    target: Any


@maker
def steps_of(nodes, shape):  # type: ignore[no-untyped-def]
    """Make the steps of a tree, and the ways of its tests of categories: the child of each, -1 where there is none.

    ::

        ways   | child of category 0 of a test | … | of the last | -1 |  of the next test …
    """
    n_nodes = len(shape)
    way_start = np.zeros(n_nodes + 1, np.int32)
    for node in range(n_nodes):
        n_codes = nodes.code_start[node + 1] - nodes.code_start[node]
        way_start[node + 1] = way_start[node] + (n_codes + 1 if nodes.test[node] == NOMINAL else 0)
    # One more, so that a step by a cut has a way to look at, too.
    ways = np.empty(way_start[n_nodes] + 1, np.int32)
    fill(ways, len(ways), -1)
    cuts = np.empty(4 * n_nodes)
    steps = Steps(cuts, cuts.view(np.int32), ways, way_start)
    for node in range(n_nodes):
        for place in range(way_start[node], way_start[node + 1] - 1):
            branch = nodes.code_branch[nodes.code_start[node] + place - way_start[node]]
            if branch >= 0:
                ways[place] = nodes.child[nodes.child_start[node] + branch]
        set_step(nodes, steps, shape, node)
    return steps


@inner
def set_step(nodes, steps, shape, node):  # type: ignore[no-untyped-def]
    """Write what a node does in its present shape.

    ::

        cuts   (float64)       |    cut    |     ·     |     ·     |     ·     |      a row goes to `below` or `above`,
        links  (the same,      |  ·  |  ·  |  f  | kind|below|above|  a  |  n  |      or by the code c < n of its
                as int32)                                                             category to ways[a + c]

    A leaf leads to itself, and so does a test of other kinds: whose row has not come to a leaf is asked step by step.
    """
    split, at = shape[node], 8 * node
    steps.cuts[4 * node] = np.inf
    steps.links[at + 2], steps.links[at + 3] = 0, CUT
    steps.links[at + 4], steps.links[at + 5] = node, node
    steps.links[at + 6], steps.links[at + 7] = len(steps.ways) - 1, 0
    if split < 0:
        return
    if nodes.test[split] == NUMERIC:
        first = nodes.child_start[split]
        steps.cuts[4 * node] = nodes.threshold[split]
        steps.links[at + 2] = nodes.feature[split]
        steps.links[at + 4], steps.links[at + 5] = nodes.child[first], nodes.child[first + 1]
    elif nodes.test[split] == NOMINAL:
        steps.links[at + 2], steps.links[at + 3] = nodes.feature[split], CODES
        steps.links[at + 6] = steps.way_start[split]
        steps.links[at + 7] = steps.way_start[split + 1] - steps.way_start[split] - 1


@inner
def together(steps, cells, first, at, n_rows):  # type: ignore[no-untyped-def]
    """Take up to N_SLOTS rows, whose cells begin at `first`, down from the nodes `at` until none can go on.

    A row stays where what it is asked for is missing or was never seen. No number below is a choice: which side a row
    takes cannot be foreseen, and a wrong guess is dear.
    """
    cuts, links, ways = steps.cuts, steps.links, steps.ways
    flat, moved = cells.flat, np.int64(1)
    while moved != 0:
        moved = np.int64(0)
        for slot in range(np.uint64(n_rows)):
            node = np.uint64(at[slot])
            link = np.uint64(8) * node
            value = flat[first[slot] + np.uint64(links[link + np.uint64(2)])]
            below, above = np.int64(links[link + np.uint64(4)]), np.int64(links[link + np.uint64(5)])
            following = above + (below - above) * np.int64(value <= cuts[np.uint64(4) * node])
            is_known = np.int64(value == value)  # noqa: PLR0124 - NaN is not
            if links[link + np.uint64(3)] == CODES:
                n_codes = np.float64(links[link + np.uint64(7)])
                # What is missing has the way after the last category.
                code = value if value < n_codes else n_codes
                way = ways[np.uint64(links[link + np.uint64(6)]) + np.uint64(code)]
                following, is_known = np.int64(way), np.int64(way >= 0)
            following = at[slot] + (following - at[slot]) * is_known
            moved |= following ^ at[slot]
            at[slot] = following


@inner
def send_down(  # type: ignore[no-untyped-def]
    nodes, steps, substitutes, shape, cells, pieces, pieces_from, pieces_to, start, reached, first, at
):  # fmt: skip
    """Send some of the pieces down from the node `start`.

    reached: int32 (pieces_to - pieces_from), written: the leaf of each, -1 where it goes several ways. first: uint64,
    at: int64 (N_SLOTS), scratch.

    Returns how many go several ways.
    """
    n_left_out = 0
    for low in range(pieces_from, pieces_to, N_SLOTS):
        n_rows = min(N_SLOTS, pieces_to - low)
        for slot in range(n_rows):
            own = pieces[low + slot]
            at[slot], first[slot] = start, (own if own >= 0 else ~own) * cells.row_step
        together(steps, cells, first, at, n_rows)
        for slot in range(n_rows):
            node = np.int64(at[slot])
            own = pieces[low + slot]
            while node >= 0 and shape[node] >= 0:
                node = next_node(nodes, substitutes, shape[node], cells.values, own if own >= 0 else ~own)
            reached[low - pieces_from + slot] = node
            n_left_out += node < 0
    return n_left_out


@inner
def next_node(nodes, substitutes, split, values, row):  # type: ignore[no-untyped-def]
    """Give the child of a test that a row goes to, -1 where it goes to several."""
    branch = own_branch(nodes, split, values, row)
    if branch < 0:
        branch = other_branch(nodes, substitutes, split, values, row)
    return np.int64(nodes.child[nodes.child_start[split] + branch]) if branch >= 0 else np.int64(-1)


@maker
def settle(  # type: ignore[no-untyped-def]
    nodes, steps, substitutes, shape, shares, values, rows, weights, target, n_classes, answers, sums, divides
):  # fmt: skip
    """Send rows to the leaves of a tree as it was grown, and number them anew as above.

    values: float64 (n, F). rows, weights, target and shares as in `spread`, which
    takes those that go several ways: sums and divides are what it writes of these with AT_LEAVES and `keep`.

    Returns a Settled.
    """
    n_rows, n_nodes = len(rows), len(shape)
    reached, first, at_once = np.empty(n_rows, np.int32), np.empty(N_SLOTS, np.uint64), np.empty(N_SLOTS, np.int64)
    n_attributes = values.shape[1]
    cells = Cells(values.T, values.reshape(-1), n_attributes)
    n_apart = send_down(nodes, steps, substitutes, shape, cells, rows, 0, n_rows, 0, reached, first, at_once)
    n_whole, counts, following = n_rows - n_apart, np.zeros(n_nodes, np.int64), np.zeros(n_nodes + 1, np.int64)
    for each in range(n_rows):
        if reached[each] >= 0:
            counts[reached[each]] += 1
    for node in range(n_nodes):
        following[node + 1] = following[node] + counts[node]
    own_cells, own_weight, own_target = np.empty(n_rows * n_attributes), np.empty(n_rows), np.empty(n_rows)
    for each in range(n_rows):
        # Beyond the leaves' rows stand those that go several ways.
        leaf = reached[each] if reached[each] >= 0 else n_nodes
        number = following[leaf]
        following[leaf] += 1
        own_weight[number], own_target[number] = weights[each], target[rows[each]]
        copy(cells.flat, rows[each] * n_attributes, own_cells, number * n_attributes, n_attributes)
    by_row, apart = own_cells.reshape(n_rows, n_attributes).T, np.empty(n_apart, np.int32)
    for each in range(n_apart):
        apart[each] = n_whole + each
    order, size, part_lo, part, part_weight = spread(
        nodes, substitutes, shape, shares, by_row, 0, apart, own_weight[n_whole:], own_target, n_classes, answers, sums,
        AT_LEAVES, KEEP_SHARES, 1, divides, np.zeros(n_nodes),
    )  # fmt: skip
    row, weight = np.empty(n_whole + len(part), np.int32), np.empty(n_whole + len(part))
    lo, at, number = np.empty(n_nodes, np.int64), 0, 0
    for node in range(n_nodes):
        lo[node] = at
        for _ in range(counts[node]):
            row[at], weight[at] = number, own_weight[number]
            at += 1
            number += 1
        if shape[node] < 0:
            n_parts = (part_lo[node + 1] if node + 1 < n_nodes else len(part)) - part_lo[node]
            copy(part, part_lo[node], row, at, n_parts)
            copy(part_weight, part_lo[node], weight, at, n_parts)
            at += n_parts
    return Settled(order, size, lo, row, weight, Cells(by_row, own_cells, n_attributes), own_target)
