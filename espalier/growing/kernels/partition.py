"""Rows of a node moved to the ranges of its children, in the master sequence and in every presorted order."""

from espalier.kernels.jit import compiled, inner


@inner
def copy_branch(master, master_weight, start, stop, branch_of_row, branch, share, spare, spare_weight):
    """Copy the rows of one branch, rows with unknown values by its share. Return their number."""
    count = 0
    for at in range(start, stop):
        taken = branch_of_row[master[at]]
        if taken == branch or (taken < 0 and share > 0.0):
            spare[count] = master[at]
            spare_weight[count] = master_weight[at] * (share if taken < 0 else 1.0)
            count += 1
    return count


@inner
def partition_rows(
    master, master_weight, start, stop, base, branch_of_row, n_branches, branch_weight, known_weight, branch_at, spare,
    spare_weight, needed,
):  # fmt: skip
    """Copy each row to the range of its branch (unknown ones to all, by share), keeping their order."""
    for at in range(start, stop):
        row = master[at]
        branch = branch_of_row[row]
        if branch >= 0:
            to = branch_at[branch]
            if to >= 0:
                spare[to] = row
                spare_weight[to] = master_weight[at]
                branch_at[branch] = to + 1
            continue
        for other in range(n_branches):
            to = branch_at[other]
            if to >= 0 and branch_weight[other] > 0.0:
                spare[to] = row
                spare_weight[to] = master_weight[at] * (branch_weight[other] / known_weight)
                branch_at[other] = to + 1
    for at in range(needed):
        master[base + at] = spare[at]
        master_weight[base + at] = spare_weight[at]


@inner
def partition_order(sequence, start, stop, base, branch_of_row, n_branches, branch_weight, branch_at, spare, needed):
    """Partition a presorted order as `partition_rows` partitions the master sequence."""
    if n_branches == 2 and branch_weight[0] > 0.0 and branch_weight[1] > 0.0:
        _partition_in_two(sequence[start:stop], branch_of_row, branch_at[0], branch_at[1], spare, needed)
        for at in range(needed):
            sequence[base + at] = spare[at]
        return
    for at in range(start, stop):
        row = sequence[at]
        branch = branch_of_row[row]
        if branch >= 0:
            to = branch_at[branch]
            if to >= 0:
                spare[to] = row
                branch_at[branch] = to + 1
            continue
        for other in range(n_branches):
            to = branch_at[other]
            if to >= 0 and branch_weight[other] > 0.0:
                spare[to] = row
                branch_at[other] = to + 1
    for at in range(needed):
        sequence[base + at] = spare[at]


@inner
def _partition_in_two(rows, branch_of_row, first, second, spare, needed):
    """Partition rows into two branches without a branch instruction that the processor would have to predict.

    first, second: where each branch begins in `spare`, -1 for a leaf. A row that a branch does not receive is written
    to the entry after all others, ``spare[needed]``.
    """
    first_is_open, second_is_open = first >= 0, second >= 0
    for row in rows:
        branch = branch_of_row[row]
        to_first = first_is_open and branch != 1
        to_second = second_is_open and branch != 0
        spare[first if to_first else needed] = row
        spare[second if to_second else needed] = row
        first += 1 if to_first else 0
        second += 1 if to_second else 0


@inner
def place_branches(n_branches, branch_count, branch_at):
    """Write where the rows of each branch begin, the last branch first; -1 for a leaf."""
    at = 0
    for branch in range(n_branches - 1, -1, -1):
        branch_at[branch] = -1
        if branch_count[branch] > 0:
            branch_at[branch] = at
            at += branch_count[branch]


@compiled
def copy_rows(
    codes, target_class, target, orders, master, start, stop, number, to_codes, to_class, to_target, to_orders
):
    """Copy the rows ``master[start:stop]`` into separate tables, numbered from 0.

    number: int32 (rows of the whole), scratch. to_codes: int32 (attributes, rows); to_orders: int32 (orders, rows).
    """
    count = stop - start
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
