"""Partition the rows of a node of the binary grower: mark each row's branch by a bit, then move rows in every order.

::

    partition   | left rows, in place | right rows, through `spare` |       bit `row` of `is_right`: 0 left, 1 right
"""

import numpy as np

from espalier.growing.kernels.binary_nodes import FIRST_RIGHT, LAST_LEFT
from espalier.growing.kernels.presorted_split import CLASSES, MAX_CODES, ROW_MASK
from espalier.kernels.jit import compiled, inner

WORD_BITS = np.uint32(5)
BIT_MASK = np.uint32(31)
ONE = np.uint32(1)


@inner
def partition_column(orders, column, start, stop, is_right, spare, left_is_open, right_is_open):
    """Partition a range of an order by branch, stably; rows of a branch that has become a leaf are dropped.

    orders: uint32. is_right: uint32, a bit a row. spare: uint32 scratch, as long as the range.
    """
    rows = orders[column, start:stop]
    one = np.uint64(1)
    n_left, n_right = np.uint64(0), np.uint64(0)
    if left_is_open == 1 and right_is_open == 1:
        for value in rows:
            row = value & ROW_MASK
            right = np.uint64((is_right[row >> WORD_BITS] >> (row & BIT_MASK)) & ONE)
            rows[n_left] = value
            spare[n_right] = value
            n_left += one - right
            n_right += right
        for at in range(np.int64(n_right)):
            rows[n_left] = spare[at]
            n_left += one
    elif left_is_open == 1:
        for value in rows:
            row = value & ROW_MASK
            right = np.uint64((is_right[row >> WORD_BITS] >> (row & BIT_MASK)) & ONE)
            rows[n_left] = value
            n_left += one - right
    elif right_is_open == 1:
        to = rows.size - 1
        for at in range(rows.size - 1, -1, -1):
            value = rows[at]
            row = value & ROW_MASK
            rows[to] = value
            to -= np.int64((is_right[row >> WORD_BITS] >> (row & BIT_MASK)) & ONE)


@inner
def put_left(is_right, row):
    """Clear the bit of a row."""
    is_right[row >> WORD_BITS] &= ~(ONE << (row & BIT_MASK))


@inner
def put_right(is_right, row):
    """Set the bit of a row."""
    is_right[row >> WORD_BITS] |= ONE << (row & BIT_MASK)


@compiled
def partition_columns(
    orders, low, high, divided, start, stop, is_right, is_constant, spare, left_is_open, right_is_open
):
    """Partition the orders low:high except `divided`, the one of the split. The last is the rows' own order."""
    for column in range(low, high):
        if column == orders.shape[0] - 1:
            partition_column(orders, column, start, stop, is_right, spare, 1, 1)
        elif is_constant[column] == 0 and column != divided:
            partition_column(orders, column, start, stop, is_right, spare, left_is_open, right_is_open)


@inner
def partitions_rows(kind, n_coded):
    """Return whether the rows' own order is partitioned at every node.

    Classes of unit weight are counted in the order of the split; other sums are taken in the rows' own order, so that
    they do not depend on the attribute, and coded columns are read by it.
    """
    return n_coded > 0 or kind > CLASSES


@inner
def has_other_column(is_constant, n_sorted, divided):
    """Return whether another sorted column than the one of the split must be partitioned."""
    n_others = 0
    for column in range(n_sorted):
        if column != divided and is_constant[column] == 0:
            n_others += 1
    return n_others > 0


@inner
def mark_sorted(order, is_right, start, middle, stop):
    """Mark the branches of the rows start:stop, which are split at `middle`."""
    for value in order[start:middle]:
        put_left(is_right, value & ROW_MASK)
    for value in order[middle:stop]:
        put_right(is_right, value & ROW_MASK)


@inner
def mark_coded(rows, cells, column, is_right, start, stop, code, node_ints):
    """Mark the branches of the rows start:stop by their codes. Return where the right branch will start.

    node_ints: written, a row at each side of the threshold.
    """
    middle = start
    following = np.int64(MAX_CODES)
    for value in rows[start:stop]:
        row = value & ROW_MASK
        own = np.int64(cells[row, column])
        if own > code:
            put_right(is_right, row)
            if own < following:
                following = own
                node_ints[FIRST_RIGHT] = row
        else:
            put_left(is_right, row)
            middle += 1
            if own == code:
                node_ints[LAST_LEFT] = row
    return middle
