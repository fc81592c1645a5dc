"""Many rows sent down a branch together: parted at every test until they stand leaf by leaf.

Each row takes the steps of its own way and no more; of sixteen that go side by side all take those of the longest. What
waits is kept as in `spreading`: the pieces of the node that is next stand at the end::

    queue    | 7 2 9 | 4 1 | 3 8 5 |        waiting: nodes 6, 4, 2      begins: 0, 3, 5
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.branches import branch_of, other_branch, test_at
from espalier.kernels.buffers import copy, fill
from espalier.kernels.codes import NUMERIC
from espalier.kernels.jit import inner, maker
from espalier.kernels.settling import next_node

__all__ = ["Queue", "empty_queue", "part_down"]

FEW = 4
"""So many rows or fewer go down one by one: a node costs more than a step."""


class Queue(NamedTuple):
    """Scratch: pieces that are sent, and as much again twice; nodes that wait, and where theirs begin; by branch."""

    pieces: Any
    spare: Any
    side: Any
    waiting: Any
    begins: Any
    at: Any


@maker
def empty_queue(n_nodes, n_pieces, n_branches):  # type: ignore[no-untyped-def]
    """Make a queue for so many pieces."""
    return Queue(
        np.empty(n_pieces, np.int64), np.empty(n_pieces, np.int64), np.empty(n_pieces, np.int64),
        np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), np.empty(n_branches, np.int64),
    )  # fmt: skip


@inner
def part_down(nodes, substitutes, shape, table, rows, going, n_going, start, reached, first, queue):  # type: ignore[no-untyped-def]
    """Do what `settling.send_down` does."""
    copy(going, 0, queue.pieces, 0, n_going)
    queue.waiting[0], queue.begins[0] = start, 0
    n_waiting, end = 1, np.int64(n_going)
    while n_waiting > 0:
        n_waiting -= 1
        node, begin = queue.waiting[n_waiting], queue.begins[n_waiting]
        split = np.int64(shape[node])
        if split < 0 or end - begin <= FEW:
            for each in range(begin, end):
                piece = queue.pieces[each]
                own, leaf = np.int64(rows[piece]), node
                while leaf >= 0 and shape[leaf] >= 0:
                    leaf = next_node(nodes, substitutes, shape[leaf], table.values, own if own >= 0 else ~own)
                reached[piece - first] = leaf
            end = begin
            continue
        n_below = np.int64(-1)
        if nodes.test[split] == NUMERIC:
            n_below = part_by_cut(nodes, split, table, rows, queue, begin, end)
        if n_below >= 0:
            base = nodes.child_start[split]
            queue.waiting[n_waiting], queue.begins[n_waiting] = nodes.child[base], begin
            queue.waiting[n_waiting + 1], queue.begins[n_waiting + 1] = nodes.child[base + 1], begin + n_below
            n_waiting += 2
            continue
        n_waiting, end = part_by_any(
            nodes, substitutes, split, table, rows, queue, begin, end, n_waiting, reached, first
        )


@inner
def part_by_cut(nodes, split, table, rows, queue, begin, end):  # type: ignore[no-untyped-def]
    """Put the pieces below a cut before the others; give how many, -1 where a value is missing."""
    cut, feature, width = nodes.threshold[split], np.uint64(nodes.feature[split]), np.uint64(len(table.values))
    ahead, n_above, n_missing = np.uint64(begin), np.uint64(0), np.int64(0)
    for each in range(np.uint64(begin), np.uint64(end)):
        piece = queue.pieces[each]
        own = rows[np.uint64(piece)]
        value = table.flat[np.uint64(own if own >= 0 else ~own) * width + feature]
        is_below = np.uint64(value <= cut)
        n_missing += np.int64(value != value)  # noqa: PLR0124 - NaN
        queue.pieces[ahead], queue.spare[n_above] = piece, piece
        ahead += is_below
        n_above += np.uint64(1) - is_below
    copy(queue.spare, 0, queue.pieces, np.int64(ahead), np.int64(n_above))
    return np.int64(ahead) - begin if n_missing == 0 else np.int64(-1)


@inner
def part_by_any(nodes, substitutes, split, table, rows, queue, begin, end, n_waiting, reached, first):  # type: ignore[no-untyped-def]
    """Part pieces by any test; rows that go several ways have arrived. Give how many nodes wait, and the end."""
    base, at = np.int64(nodes.child_start[split]), queue.at
    n_branches, n_parted = np.int64(nodes.child_start[split + 1]) - base, np.int64(0)
    test, feature, width = test_at(nodes, split), np.int64(nodes.feature[split]), np.int64(len(table.values))
    fill(at, n_branches, 0)
    for each in range(begin, end):
        piece = queue.pieces[each]
        own = np.int64(rows[piece])
        own = own if own >= 0 else ~own
        branch = branch_of(table.flat[own * width + feature], test, nodes.code_branch)
        if branch < 0:
            branch = other_branch(nodes, substitutes, split, table.values, own)
        queue.side[each - begin], queue.spare[each - begin] = branch, piece
        if branch >= 0:
            at[branch] += 1
        else:
            reached[piece - first] = -1
    for branch in range(n_branches):
        n_own = at[branch]
        if n_own > 0:
            queue.waiting[n_waiting], queue.begins[n_waiting] = nodes.child[base + branch], begin + n_parted
            n_waiting += 1
        at[branch] = begin + n_parted
        n_parted += n_own
    for each in range(end - begin):
        branch = queue.side[each]
        if branch >= 0:
            queue.pieces[at[branch]] = queue.spare[each]
            at[branch] += 1
    return n_waiting, begin + n_parted
