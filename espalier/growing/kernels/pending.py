"""The nodes that are still to be split: a stack, or a heap for best-first growth."""

import cython
from cython.cimports.espalier.growing.kernels import constants as c, node_columns as column
from cython.cimports.libc.math import INFINITY, floor, frexp, ldexp

ROUNDING = 2.0**30


def add_pending(pending, branches, first_child, base):
    """Append the children that may be split, the last one first; their rows start at `base`."""
    at = base
    for branch in range(branches.n - 1, -1, -1):
        if branches.n_rows[branch] > 0:
            pending.node[pending.n], pending.start[pending.n] = first_child + branch, at
            at += branches.n_rows[branch]
            pending.stop[pending.n] = at
            pending.n += 1


def store_split(pending, entry, candidates, attribute):
    """Store the split of a pending node; a negative `attribute` means that it has no split."""
    pending.attribute[entry] = attribute
    if attribute >= 0:
        pending.ints[entry, :] = candidates.ints[attribute]
        pending.reals[entry, :] = candidates.reals[attribute]


def load_split(pending, entry, candidates):
    """Copy the stored split of a pending node to the chosen split of `candidates`."""
    candidates.chosen_ints[:] = pending.ints[entry]
    candidates.chosen_reals[:] = pending.reals[entry]


def push(pending, nodes, entry):
    """Add a pending node to the heap."""
    at = pending.n_heap
    pending.n_heap += 1
    while at > 0:
        above = (at - 1) // 2
        if not _comes_first(pending, nodes, entry, pending.heap[above]):
            break
        pending.heap[at] = pending.heap[above]
        at = above
    pending.heap[at] = entry


def pop(pending, nodes):
    """Remove and return the pending node that is to be split next."""
    answer = pending.heap[0]
    pending.n_heap -= 1
    moving = pending.heap[pending.n_heap]
    at: cython.longlong = 0
    while 2 * at + 1 < pending.n_heap:
        below = 2 * at + 1
        if below + 1 < pending.n_heap and _comes_first(pending, nodes, pending.heap[below + 1], pending.heap[below]):
            below += 1
        if not _comes_first(pending, nodes, pending.heap[below], moving):
            break
        pending.heap[at] = pending.heap[below]
        at = below
    pending.heap[at] = moving
    return answer


def _comes_first(pending, nodes, left, right):
    left_priority, right_priority = _priority(pending, nodes, left), _priority(pending, nodes, right)
    if left_priority == right_priority:
        return pending.node[left] < pending.node[right]
    return left_priority > right_priority


def _priority(pending, nodes, entry):
    """Return weight · gain, rounded to 30 bits so that rounding errors break no ties, or -inf without a split."""
    exponent: cython.int = 0
    if pending.attribute[entry] < 0:
        return -INFINITY
    product = nodes.reals[pending.node[entry], column.WEIGHT] * pending.reals[entry, c.REAL_GAIN]
    fraction = frexp(product, cython.address(exponent))
    return ldexp(floor(fraction * ROUNDING + 0.5) / ROUNDING, exponent)
