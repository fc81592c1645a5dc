"""Nodes that wait to be split: the list of them, and for those split best first a heap of places in it."""

import math

from espalier.kernels.jit import inner
from espalier.kernels.nodes import WEIGHT
from espalier.kernels.offers import N_INTS, N_REALS, REAL_GAIN

KEPT = 2.0**30


@inner
def add_waiting(waiting, n_waiting, first_child, n_branches, branch_count, base):
    """List the children that have rows, the last one first, as its rows stand from `base` on; gives how many wait."""
    at = base
    for branch in range(n_branches - 1, -1, -1):
        if branch_count[branch] > 0:
            waiting[n_waiting, 0], waiting[n_waiting, 1] = first_child + branch, at
            at += branch_count[branch]
            waiting[n_waiting, 2] = at
            n_waiting += 1
    return n_waiting


@inner
def remember(waiting_ints, waiting_reals, entry, chosen, offer_ints, offer_reals):
    """Keep the split that a waiting node has chosen."""
    waiting_ints[entry, N_INTS] = chosen
    if chosen >= 0:
        for k in range(N_INTS):
            waiting_ints[entry, k] = offer_ints[chosen, k]
        for k in range(N_REALS):
            waiting_reals[entry, k] = offer_reals[chosen, k]


@inner
def _worth(entry, waiting, waiting_ints, waiting_reals, node_reals):
    """Give weight · gain of a waiting node to 30 bits, so that rounding does not decide between equal ones."""
    if waiting_ints[entry, N_INTS] < 0:
        return -math.inf
    fraction, exponent = math.frexp(node_reals[waiting[entry, 0], WEIGHT] * waiting_reals[entry, REAL_GAIN])
    return math.ldexp(math.floor(fraction * KEPT + 0.5) / KEPT, exponent)


@inner
def _comes_first(left, right, waiting, waiting_ints, waiting_reals, node_reals):
    """Whether a waiting node is split before another: the larger weight · gain, then the earlier made."""
    left_worth = _worth(left, waiting, waiting_ints, waiting_reals, node_reals)
    right_worth = _worth(right, waiting, waiting_ints, waiting_reals, node_reals)
    return left_worth > right_worth or (left_worth == right_worth and waiting[left, 0] < waiting[right, 0])


@inner
def push(heap, n_heap, entry, waiting, waiting_ints, waiting_reals, node_reals):
    """Put a waiting node into the heap."""
    at = n_heap
    while at > 0:
        above = (at - 1) // 2
        if not _comes_first(entry, heap[above], waiting, waiting_ints, waiting_reals, node_reals):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = entry


@inner
def pop(heap, n_heap, waiting, waiting_ints, waiting_reals, node_reals):
    """Take the waiting node that is split first out of the heap."""
    answer = heap[0]
    moving = heap[n_heap - 1]
    at = 0
    while 2 * at + 1 < n_heap - 1:
        below = 2 * at + 1
        if below + 1 < n_heap - 1 and _comes_first(
            heap[below + 1], heap[below], waiting, waiting_ints, waiting_reals, node_reals
        ):
            below += 1
        if not _comes_first(heap[below], moving, waiting, waiting_ints, waiting_reals, node_reals):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moving
    return answer
