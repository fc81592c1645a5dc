"""Partition the rows of a node of the binary grower: mark each row's branch by a bit, then move rows in the orders.

Bit `row` of `is_right` is 1 for a right row. If both children may be split, right rows move through `spare`.
"""

import cython
from cython.cimports.espalier.growing.kernels.binary import constants as b


def _put_left(scratch, row):
    scratch.is_right[row // 32] &= ~(cython.cast(cython.uint, 1) << (row % 32))


def _put_right(scratch, row):
    scratch.is_right[row // 32] |= cython.cast(cython.uint, 1) << (row % 32)


def _is_right(scratch, row):
    return (scratch.is_right[row // 32] >> (row % 32)) & 1


def mark_sorted(data, scratch, column, start, middle, stop):
    """Mark the branches of the rows start:stop of an order; the right branch begins at `middle`."""
    for at in range(start, middle):
        _put_left(scratch, data.orders[column, at] & data.row_mask)
    for at in range(middle, stop):
        _put_right(scratch, data.orders[column, at] & data.row_mask)


def mark_coded(data, nodes, scratch, node, column, start, stop, code):
    """Mark the branches of the rows start:stop by their codes. Return where the right branch will start.

    Writes the numbers of two rows into the node's table: one with `code`, one with the next larger code that occurs.
    """
    middle = start
    following: cython.longlong = b.MAX_CODES
    for at in range(start, stop):
        row = data.orders[data.n_sorted, at] & data.row_mask
        own = cython.cast(cython.longlong, data.cells[row, column])
        if own > code:
            _put_right(scratch, row)
            if own < following:
                following = own
                nodes.ints[node, b.FIRST_RIGHT] = row
        else:
            _put_left(scratch, row)
            middle += 1
            if own == code:
                nodes.ints[node, b.LAST_LEFT] = row
    return middle


def partition_columns(data, search, scratch, low, high, divided, start, stop, left_is_open, right_is_open):
    """Partition the orders low:high, without the GIL; see `partition_orders`."""
    with cython.nogil:
        partition_orders(data, search, scratch, low, high, divided, start, stop, left_is_open, right_is_open)


def partition_orders(data, search, scratch, low, high, divided, start, stop, left_is_open, right_is_open):
    """Partition the orders low:high, except those of constant columns and of `divided`, the tested column (-1: none).

    left_is_open, right_is_open: whether each child may be split, so that its rows are needed.
    """
    for column in range(low, high):
        if not search.is_constant[column] and column != divided:
            partition_order(data, scratch, column, start, stop, left_is_open, right_is_open)


def partition_order(data, scratch, column, start, stop, left_is_open, right_is_open):
    """Partition a range of an order by branch, stably; rows of a branch that has become a leaf are dropped."""
    row_mask = data.row_mask  # a field would be read again after each entry that is written
    n_right: cython.longlong = 0
    to = start
    if left_is_open and right_is_open:
        for at in range(start, stop):
            entry = data.orders[column, at]
            right = _is_right(scratch, entry & row_mask)
            data.orders[column, to] = entry
            scratch.spare[n_right] = entry
            to += 1 - right
            n_right += right
        for at in range(n_right):
            data.orders[column, to + at] = scratch.spare[at]
    elif left_is_open:
        for at in range(start, stop):
            entry = data.orders[column, at]
            data.orders[column, to] = entry
            to += 1 - _is_right(scratch, entry & row_mask)
    elif right_is_open:
        to = stop - 1
        for at in range(stop - 1, start - 1, -1):
            entry = data.orders[column, at]
            data.orders[column, to] = entry
            to -= _is_right(scratch, entry & row_mask)
