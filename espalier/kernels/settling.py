"""Rows sent down a tree sixteen at a time, and settled at its leaves: the pieces that pruning starts from.

Rows are listed by the leaf that they reach. The pieces of a leaf (see `spreading`) begin with the rows that reach no
other; after them stand the parts of rows that go several ways::

    order  (preorder)   0    1    2        3    4
    piece               [row 1, row 8, ~4 | row 0, ~4 | …]              leaves 2, 3, …
    lo                  0    0    0        3    5
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.branches import other_branch, own_branch
from espalier.kernels.buffers import fill
from espalier.kernels.codes import NOMINAL, NUMERIC
from espalier.kernels.jit import compiled, inner, maker
from espalier.kernels.route import N_SLOTS

__all__ = [
    "Parts",
    "Settled",
    "Slots",
    "Steps",
    "Table",
    "empty_slots",
    "list_leaf",
    "next_node",
    "send_down",
    "set_step",
    "settle",
    "steps_of",
    "table_of",
]

CUT = 0
CODES = 1


class Steps(NamedTuple):
    """What each node of a tree in its present shape does, 32 bytes a node; see `set_step`."""

    cuts: Any
    links: Any
    ways: Any
    way_start: Any


class Table(NamedTuple):
    """Rows: their values (F, n) whose rows stand one after the other in memory; the same on one axis; and
    their classes, int32 (n), below 0 none.
    """

    values: Any
    flat: Any
    target: Any


@maker
def table_of(values, target):  # type: ignore[no-untyped-def]
    """Make a table of values, float64 or float32 (n, F): on its side, one column is of another type than several."""
    return Table(values.T, values.reshape(-1), target)


class Settled(NamedTuple):
    """Rows at the leaves: nodes in preorder, sizes of their subtrees, and pieces as `spread` gives them, each with the
    code of its class, int32: it would be far away by its row.
    """

    order: Any
    size: Any
    lo: Any
    row: Any
    weight: Any
    code: Any


class Parts(NamedTuple):
    """Parts of rows that go several ways, thread by thread and leaf by leaf.

    lo: int64 (threads, nodes + 1), where those of each node begin; row, weight: as `spread` gives them.
    """

    lo: Any
    row: Any
    weight: Any


@compiled
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


class Slots(NamedTuple):
    """Scratch for N_SLOTS rows on their way: where a row's values begin (uint64), the node it is at (int64), and the
    value that is asked for there (float64).
    """

    first: Any
    at: Any
    value: Any


@maker
def empty_slots():  # type: ignore[no-untyped-def]
    """Make slots for rows on their way."""
    return Slots(np.empty(N_SLOTS, np.uint64), np.empty(N_SLOTS, np.int64), np.empty(N_SLOTS))


@inner
def take_steps(steps, flat, slots, n_rows):  # type: ignore[no-untyped-def]
    """Take the rows in the first slots down until none can go on.

    A row stays where what it is asked for is missing or was never seen. No number below is a choice: which side a row
    takes cannot be foreseen, and a wrong guess is dear. Nor is it asked which row has arrived.
    """
    cuts, links, ways = steps.cuts, steps.links, steps.ways
    first, at, moved = slots.first, slots.at, np.int64(1)
    while moved != 0:
        moved = np.int64(0)
        # A loop of its own: so all of these values are on their way from memory at once.
        for slot in range(np.uint64(n_rows)):
            asked = links[np.uint64(8) * np.uint64(at[slot]) + np.uint64(2)]
            slots.value[slot] = flat[first[slot] + np.uint64(asked)]
        for slot in range(np.uint64(n_rows)):
            node, value = np.uint64(at[slot]), slots.value[slot]
            link = np.uint64(8) * node
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
    nodes, steps, substitutes, shape, table, rows, going, n_going, start, reached, first, slots
):  # fmt: skip
    """Send the rows of the pieces ``going[:n_going]`` down from the node `start`.

    rows: int32, by piece. reached: int32, written by piece from `first` on: the leaf of each, -1 where it goes several
    ways. slots: scratch.
    """
    n_attributes = len(table.values)
    for low in range(0, n_going, N_SLOTS):
        n_together = min(N_SLOTS, n_going - low)
        for slot in range(n_together):
            own = rows[going[low + slot]]
            slots.at[slot], slots.first[slot] = start, (own if own >= 0 else ~own) * n_attributes
        take_steps(steps, table.flat, slots, n_together)
        for slot in range(n_together):
            node = np.int64(slots.at[slot])
            own = rows[going[low + slot]]
            while node >= 0 and shape[node] >= 0:
                node = next_node(nodes, substitutes, shape[node], table.values, own if own >= 0 else ~own)
            reached[going[low + slot] - first] = node


@inner
def next_node(nodes, substitutes, split, values, row):  # type: ignore[no-untyped-def]
    """Give the child of a test that a row goes to, -1 where it goes to several."""
    branch = own_branch(nodes, split, values, row)
    if branch < 0:
        branch = other_branch(nodes, substitutes, split, values, row)
    return np.int64(nodes.child[nodes.child_start[split] + branch]) if branch >= 0 else np.int64(-1)


@maker
def settle(shape, size, count, parts):  # type: ignore[no-untyped-def]
    """Make room for the pieces at the leaves of a tree as it was grown, in preorder.

    size: int32 (nodes), of each subtree. count: int32 (threads, nodes), the rows that go one way, as
    `seating.part_rows` writes it. parts: Parts of the others.

    Returns a Settled whose pieces are not written: see `list_leaf`.
    """
    n_nodes, at = len(shape), np.int64(0)
    order, own_size, lo = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int64)
    for node in range(n_nodes):
        order[node], own_size[node], lo[node] = node, size[node], at
        if shape[node] < 0:
            for stretch in range(len(count)):
                at += count[stretch, node] + parts.lo[stretch, node + 1] - parts.lo[stretch, node]
    return Settled(order, own_size, lo, np.empty(at, np.int32), np.empty(at), np.empty(at, np.int32))


@inner
def list_leaf(settled, parts, rows, first, count, node, weights, target):  # type: ignore[no-untyped-def]
    """Write the pieces of a leaf of a tree as it was grown; several threads may, each its own leaves.

    First the rows that reach no other leaf, one thread's after the other's, then the parts, likewise: so both are in
    their order. rows, first: as `seating.part_rows` writes them. weights: float64, target: int32, by row; the others:
    as in `settle`.

    Returns the first piece that is a part.
    """
    at = settled.lo[node]
    for stretch in range(len(count)):
        for place in range(first[stretch, node], first[stretch, node] + count[stretch, node]):
            row = rows[place]
            settled.row[at], settled.weight[at], settled.code[at] = row, weights[row], target[row]
            at += 1
    n_whole = at
    for stretch in range(len(count)):
        for part in range(parts.lo[stretch, node], parts.lo[stretch, node + 1]):
            settled.row[at], settled.weight[at] = parts.row[part], parts.weight[part]
            settled.code[at] = target[~parts.row[part]]
            at += 1
    return n_whole
