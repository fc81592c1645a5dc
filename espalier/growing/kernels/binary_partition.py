"""The rows of a node of the binary grower marked by the side that they go to, and dealt out to it in every order.

::

    partition   | left rows, in place | right rows, by way of `spare` |     bit `row` of `sides`: 0 left, 1 right
"""

import numpy as np

from espalier.growing.kernels.fast_nodes import FIRST_RIGHT, LAST_LEFT
from espalier.growing.kernels.presorted_split import CLASSES, MOST_CODES, ROW_MASK
from espalier.kernels.jit import compiled, inner

WORD_BITS = np.uint32(5)
BIT_MASK = np.uint32(31)
ONE = np.uint32(1)


@inner
def deal(orders, column, start, stop, sides, spare, left_lives, right_lives):
    """Partition a stretch of an order by side, stably; a side that has become a leaf is dropped.

    orders: uint32. sides: uint32, a bit a row. spare: uint32 scratch, as long as the stretch.
    """
    stretch = orders[column, start:stop]
    one = np.uint64(1)
    n_left, n_right = np.uint64(0), np.uint64(0)
    if left_lives == 1 and right_lives == 1:
        for value in stretch:
            row = value & ROW_MASK
            right = np.uint64((sides[row >> WORD_BITS] >> (row & BIT_MASK)) & ONE)
            stretch[n_left] = value
            spare[n_right] = value
            n_left += one - right
            n_right += right
        for at in range(np.int64(n_right)):
            stretch[n_left] = spare[at]
            n_left += one
    elif left_lives == 1:
        for value in stretch:
            row = value & ROW_MASK
            right = np.uint64((sides[row >> WORD_BITS] >> (row & BIT_MASK)) & ONE)
            stretch[n_left] = value
            n_left += one - right
    elif right_lives == 1:
        to = stretch.size - 1
        for at in range(stretch.size - 1, -1, -1):
            value = stretch[at]
            row = value & ROW_MASK
            stretch[to] = value
            to -= np.int64((sides[row >> WORD_BITS] >> (row & BIT_MASK)) & ONE)


@inner
def put_left(sides, row):
    """Clear the bit of a row."""
    sides[row >> WORD_BITS] &= ~(ONE << (row & BIT_MASK))


@inner
def put_right(sides, row):
    """Set the bit of a row."""
    sides[row >> WORD_BITS] |= ONE << (row & BIT_MASK)


@compiled
def deal_columns(orders, low, high, divided, start, stop, sides, flat, spare, left_lives, right_lives):
    """Partition the orders low:high but `divided`, the one that was cut (the last is the rows' own, never flat)."""
    for column in range(low, high):
        if column == orders.shape[0] - 1:
            deal(orders, column, start, stop, sides, spare, 1, 1)
        elif flat[column] == 0 and column != divided:
            deal(orders, column, start, stop, sides, spare, left_lives, right_lives)


@inner
def keeps_rows(kind, n_coded):
    """Whether the rows' own order is partitioned at every node.

    Classes of unit weight are counted in whichever order was cut; else sums are taken in the rows' own order, so that
    they do not depend on the attribute, and coded columns are looked up by it.
    """
    return n_coded > 0 or kind > CLASSES


@inner
def other_lives(flat, n_sorted, divided):
    """Whether another sorted column than the one that was cut has still to be partitioned."""
    n_others = 0
    for column in range(n_sorted):
        if column != divided and flat[column] == 0:
            n_others += 1
    return n_others > 0


@inner
def mark_sorted(order, sides, start, middle, stop):
    """Write the sides of the rows of a stretch that was cut at `middle`."""
    for value in order[start:middle]:
        put_left(sides, value & ROW_MASK)
    for value in order[middle:stop]:
        put_right(sides, value & ROW_MASK)


@inner
def mark_coded(rows, cells, column, sides, start, stop, code, node_ints):
    """Write the sides of the rows start:stop by their codes; returns where the right side will start.

    node_ints: written, a row at each side of the cut.
    """
    middle = start
    following = np.int64(MOST_CODES)
    for value in rows[start:stop]:
        row = value & ROW_MASK
        own = np.int64(cells[row, column])
        if own > code:
            put_right(sides, row)
            if own < following:
                following = own
                node_ints[FIRST_RIGHT] = row
        else:
            put_left(sides, row)
            middle += 1
            if own == code:
                node_ints[LAST_LEFT] = row
    return middle
