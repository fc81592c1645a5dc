"""Partition the rows of a node by branch, in the master sequence and in every presorted order."""

import cython


def partition_rows(rows, branches, start, stop, base, needed):
    """Move each row of the master sequence, with its weight, to the range of its branch; see `_partition`."""
    _partition(rows, branches, rows.master, True, start, stop)
    for at in range(needed):
        rows.master[base + at] = rows.spare[at]
        rows.weight[base + at] = rows.spare_weight[at]


def partition_order(rows, branches, order, start, stop, base, needed):
    """Move each row of a presorted order to the range of its branch; see `_partition`."""
    _partition(rows, branches, rows.orders[order], False, start, stop)
    for at in range(needed):
        rows.orders[order, base + at] = rows.spare[at]


def _partition(rows, branches, sequence, has_weights, start, stop):
    """Write the rows ``start:stop`` of a sequence to `spare`, branch by branch. Rows that go to leaves are left out.

    The rows of a branch stay in order. A row with branch -1 goes to every branch with known rows, times its share.
    """
    _place_branches(branches)
    for at in range(start, stop):
        row = sequence[at]
        branch = branches.of_row[row]
        if branch >= 0:
            to = branches.at[branch]
            if to >= 0:
                rows.spare[to] = row
                if has_weights:
                    rows.spare_weight[to] = rows.weight[at]
                branches.at[branch] = to + 1
            continue
        for branch in range(branches.n):
            to = branches.at[branch]
            if to >= 0 and branches.weight[branch] > 0.0:
                rows.spare[to] = row
                if has_weights:
                    rows.spare_weight[to] = rows.weight[at] * (branches.weight[branch] / branches.known_weight)
                branches.at[branch] = to + 1


def _place_branches(branches):
    """Set ``branches.at`` to the start of each branch in `spare`, -1 for a leaf. The last branch comes first."""
    at: cython.longlong = 0
    for branch in range(branches.n - 1, -1, -1):
        branches.at[branch] = -1
        if branches.n_rows[branch] > 0:
            branches.at[branch] = at
            at += branches.n_rows[branch]


def copy_rows(
    codes, target_class, target, orders, master, start, stop, number, to_codes, to_class, to_target, to_orders
):
    """Copy the rows ``master[start:stop]`` into separate tables, numbered from 0.

    number: int32 (rows of the whole table), scratch. Written: to_codes, int32 (attributes, rows); to_class, int32
    (rows); to_target, float64 (rows); to_orders, int32 (orders, rows).
    """
    count = stop - start
    with cython.nogil:
        for at in range(count):
            row = master[start + at]
            number[row] = at
            to_class[at] = target_class[row]
            to_target[at] = target[row]
        for attribute in range(codes.shape[0]):
            for at in range(count):
                to_codes[attribute, at] = codes[attribute, master[start + at]]
        for order in range(orders.shape[0]):
            for at in range(count):
                to_orders[order, at] = number[orders[order, start + at]]
