"""The binary grower: complete data, two branches a test, impurity by squares (gini, squared error).

Columns with many values are sorted once; a node's range of each order is kept sorted by a *stable partition*, so
nothing is sorted again. Columns with at most 256 values are stored as bytes, row by row; a node sums statistics per
code, and the larger child's sums are the parent's minus the smaller child's::

    orders[k]   ... | 4 9 1 7 3 0 ... |        row numbers, ascending by the k-th sorted column; if they fit, the class
                    start             stop     of the row is in the upper eight bits, so that the split search reads
    orders[-1]  ... | 0 1 3 4 7 9 ... |        only this range. The last order is the rows' own.

    partition   | left rows, in place | right rows, through `spare` |       bit `row` of `is_right`: 0 left, 1 right

Each subtree owns its range, so subtrees grow in parallel, and the result does not depend on the thread. Before it
grows, a subtree is copied into separate tables in which its rows are numbered from 0: branch bits, codes and targets,
which are read by row, are then close together in memory and stay in the processor's cache.

The node tables hold only what does not follow from the rest (`binary_nodes`). A split is stored as the two rows beside
its threshold; thresholds are read from the columns when the tree is finished.
"""

import math

import numpy as np

from espalier.growing.kernels.binary_nodes import (
    FEATURE,
    FIRST_CHILD,
    FIRST_RIGHT,
    GAIN,
    LAST_LEFT,
    WEIGHT,
    best_attribute,
    best_coded_splits,
    best_sorted_splits,
    count_classes,
    impurity_and_form,
    is_leaf,
    min_branch_weight,
    node_totals,
    split_totals,
    start_leaf,
)
from espalier.growing.kernels.binary_partition import (
    has_other_column,
    mark_coded,
    mark_sorted,
    partition_column,
    partitions_rows,
)
from espalier.growing.kernels.histogram_split import (
    SMALL,
    SMALL_OF_MANY_CODES,
    WORDS,
    best_split_few_rows,
    count_rows,
)
from espalier.growing.kernels.nodes import enlarge_rows
from espalier.growing.kernels.presorted_split import (
    CLASSES,
    MAX_CODES,
    ROW_MASK,
    WEIGHTED_PAIR,
)
from espalier.kernels.jit import compiled, maker

CLASS_MASK = np.uint32(0xFF000000)


@compiled
def split_node(
    orders, cells, sorted_column, coded_column, is_right, marks, start, stop, attribute, place, gain, ints, reals, node,
    first_child,
):  # fmt: skip
    """Write a node's test and create its children. Return where the right branch starts.

    is_right: written if `marks` is 1, or if the column is coded. ints, reals: the node tables; the children are
    first_child and the next.
    """
    if sorted_column[attribute] >= 0:
        order = orders[sorted_column[attribute]]
        middle = start + place + 1
        ints[node, LAST_LEFT], ints[node, FIRST_RIGHT] = order[middle - 1] & ROW_MASK, order[middle] & ROW_MASK
        if marks == 1:
            mark_sorted(order, is_right, start, middle, stop)
    else:
        middle = mark_coded(
            orders[orders.shape[0] - 1], cells, coded_column[attribute], is_right, start, stop, place, ints[node]
        )
    ints[node, FEATURE] = attribute
    ints[node, FIRST_CHILD] = first_child
    reals[node, GAIN] = gain
    start_leaf(ints, reals, first_child)
    start_leaf(ints, reals, first_child + 1)
    return middle


@compiled
def finish_children(parameters, numeric, kind, rows, rows_of, target, middle, depth, reals, stats, node, first_child):
    """Sum both children from the rows of their parent, of which the first `middle` are the left one's.

    depth: of the children. Returns (whether the left child may be split, whether the right one may), 0 or 1.
    """
    row_class, _, row_weight = rows_of
    left, right = first_child, first_child + 1
    left_is_constant, right_is_constant = False, False
    if kind <= CLASSES:
        # Whole numbers: the larger child's counts are exactly the parent's minus the smaller child's.
        smaller = left if 2 * middle <= rows.size else right
        larger = left + right - smaller
        fewer = rows[:middle] if smaller == left else rows[middle:]
        reals[smaller, WEIGHT] = count_classes(kind, fewer, row_class, row_weight, stats[smaller])
        reals[larger, WEIGHT] = float(rows.size) - reals[smaller, WEIGHT]
        for k in range(stats.shape[1]):
            stats[larger, k] = stats[node, k] - stats[smaller, k]
    else:
        reals[left, WEIGHT], left_is_constant = node_totals(
            numeric, kind, rows[:middle], row_class, target, row_weight, stats[left]
        )
        reals[right, WEIGHT], right_is_constant = node_totals(
            numeric, kind, rows[middle:], row_class, target, row_weight, stats[right]
        )
    left_ends = is_leaf(parameters, numeric, depth, stats[left], reals[left, WEIGHT], left_is_constant)
    right_ends = is_leaf(parameters, numeric, depth, stats[right], reals[right, WEIGHT], right_is_constant)
    return 0 if left_ends else 1, 0 if right_ends else 1


@compiled
def sum_root(parameters, numeric, kind, rows, rows_of, target, ints, reals, stats):
    """Create and sum the root of a tree. Return whether it is a leaf before any attribute is tried."""
    row_class, _, row_weight = rows_of
    start_leaf(ints, reals, 0)
    reals[0, WEIGHT], constant = node_totals(numeric, kind, rows, row_class, target, row_weight, stats[0])
    return is_leaf(parameters, numeric, 0, stats[0], reals[0, WEIGHT], constant)


@compiled
def write_split_totals(numeric, kind, stats, node, totals):
    """Write the totals that the split search needs."""
    split_totals(numeric, kind, stats[node], totals)


@compiled
def choose_attribute(parameters, numeric, kind, gains, stats, reals, node):
    """Return the attribute of the best gain at a node, -1 for a leaf."""
    impurity, _, _ = impurity_and_form(numeric, kind, stats[node], reals[node, WEIGHT])
    return best_attribute(parameters, gains, gains.size, impurity, reals[node, WEIGHT])


@compiled
def grow_subtree(
    parameters, numeric, kind, all_orders, all_codes, all_cells, first, n_codes, sorted_attribute, coded_attribute,
    sorted_column, coded_column, all_rows_of, all_target, places_of, constant_at_root, depth_at_root, ints, reals,
    stats, start_at_root, stop_at_root, max_slots, finished, progress,
):  # fmt: skip
    """Grow everything below one node from its range of the orders.

    ints, reals, stats: tables of as many nodes as there can be, two a row; their first node is given, the others are
    written. constant_at_root: uint8 (columns). places_of: int32 (n), scratch that all subtrees share, each its own
    rows. finished: float64 (1), weight in leaves, written. progress: float64 (2), its stop flag is read. Returns the
    number of nodes.
    """
    n_sorted = all_codes.shape[0]
    n_coded = n_codes.size
    n_attributes = n_sorted + n_coded
    n_here = stop_at_root - start_at_root
    width = stats.shape[1] if numeric == 0 else 2
    orders = np.empty((n_sorted + 1, n_here), np.uint32)
    home = copy_subset(all_orders, start_at_root, stop_at_root, places_of, orders)
    codes = take_codes(all_codes, constant_at_root, home)
    cells = take_cells(all_cells, home)
    row_class = take(all_rows_of[0], home) if kind >= WEIGHTED_PAIR else all_rows_of[0]
    row_value = take(all_rows_of[1], home)
    row_weight = take(all_rows_of[2], home)
    target = take(all_target, home)
    rows_of = (row_class, row_value, row_weight)
    rows = orders[n_sorted]
    is_right = np.zeros(n_here // 32 + 1, np.uint32)
    spare = np.empty(n_here, np.uint32)
    left = np.empty(max(2, width), np.float64)
    right = np.empty(max(2, width), np.float64)
    totals = np.empty(width, np.float64)
    keys = np.empty(SMALL_OF_MANY_CODES, np.int64)
    bits, by_code = np.zeros(WORDS, np.uint64), np.zeros(MAX_CODES * width, np.float64)
    small_counts = np.empty(SMALL_OF_MANY_CODES * width, np.float64)
    active, base = np.empty(n_coded, np.uint64), np.empty(n_coded, np.uint64)
    gains = np.empty(n_attributes, np.float64)
    places = np.empty(n_attributes, np.int64)
    n_counts = 1
    if n_coded > 0:
        n_counts = first[n_coded - 1] + n_codes[n_coded - 1] * width
    # Sums of numbers depend on their order, so only counts may be computed in another order.
    few = SMALL_OF_MANY_CODES if kind <= CLASSES and n_counts > SMALL_OF_MANY_CODES * n_coded else SMALL
    pool = np.empty((max_slots, n_counts), np.float64)
    free = np.arange(max_slots)
    n_free = max_slots
    n_nodes = 1
    # Pending nodes: node, start, stop, slot of its counts (-1: none), depth; and which columns are constant there.
    pending = np.empty((64, 5), np.int64)
    pending_constant = np.empty((64, n_attributes + 1), np.uint8)
    pending[0, 0], pending[0, 1], pending[0, 2], pending[0, 3], pending[0, 4] = 0, 0, n_here, -1, depth_at_root
    for column in range(n_attributes):
        pending_constant[0, column] = constant_at_root[column]
    n_pending = 1
    min_weight = min_branch_weight(parameters, kind)
    by_rows = partitions_rows(kind, n_coded)
    while n_pending > 0:
        if progress[1] != 0.0:
            break
        n_pending -= 1
        node, start, stop = pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2]
        slot, depth = pending[n_pending, 3], pending[n_pending, 4]
        is_constant = pending_constant[n_pending]
        here = rows[start:stop]
        weight = reals[node, WEIGHT]
        impurity, offset, scale = impurity_and_form(numeric, kind, stats[node], weight)
        tie = 1e-9 * impurity / scale
        split_totals(numeric, kind, stats[node], totals)
        best_sorted_splits(
            kind, orders, codes, 0, n_sorted, start, stop, sorted_attribute, rows_of, totals, weight, min_weight, tie,
            offset, scale, left, right, is_constant, gains, places, progress,
        )  # fmt: skip
        small = stop - start <= few
        if n_coded > 0 and not small and slot < 0:
            n_free -= 1
            slot = free[n_free]
            count_rows(
                kind, pool[slot], here, cells, first, n_codes, is_constant[n_sorted:], width, 0, n_coded, row_class,
                row_value, row_weight, active, base,
            )  # fmt: skip
        if not small:
            best_coded_splits(
                kind, pool[slot], 0, n_coded, n_sorted, first, n_codes, width, coded_attribute, totals, weight,
                min_weight, tie, offset, scale, left, right, is_constant, gains, places,
            )  # fmt: skip
        for column in range(n_coded if small else 0):
            attribute = coded_attribute[column]
            gains[attribute] = math.nan
            if is_constant[n_sorted + column] == 1:
                continue
            numerator, denominator, code, _, constant = best_split_few_rows(
                kind, here, cells, column, row_class, row_value, row_weight, totals, weight, min_weight, tie, left,
                right, bits, by_code, keys, small_counts, width,
            )  # fmt: skip
            if constant:
                is_constant[n_sorted + column] = 1
            elif code >= 0:
                gains[attribute] = offset + scale * (numerator / denominator)
                places[attribute] = code
        attribute = best_attribute(parameters, gains, n_attributes, impurity, weight)
        # Both branches have a row, so there is always room; checked all the same.
        if attribute < 0 or n_nodes + 2 > ints.shape[0]:
            finished[0] += weight
            if slot >= 0:
                free[n_free] = slot
                n_free += 1
            continue
        first_child = n_nodes
        n_nodes += 2
        middle = split_node(
            orders, cells, sorted_column, coded_column, is_right, 1 if by_rows else 0, start, stop, attribute,
            places[attribute], gains[attribute], ints, reals, node, first_child,
        )  # fmt: skip
        for k in range(LAST_LEFT, FIRST_RIGHT + 1):
            ints[node, k] = home[ints[node, k]]
        divided = sorted_column[attribute]
        if by_rows:
            partition_column(orders, n_sorted, start, stop, is_right, spare, 1, 1)
        children = here if by_rows else orders[divided, start:stop]
        left_is_open, right_is_open = finish_children(
            parameters,
            numeric,
            kind,
            children,
            rows_of,
            target,
            middle - start,
            depth + 1,
            reals,
            stats,
            node,
            first_child,
        )
        if left_is_open + right_is_open > 0 and has_other_column(is_constant, n_sorted, divided):
            if not by_rows:
                mark_sorted(orders[divided], is_right, start, middle, stop)
            for column in range(n_sorted):
                if is_constant[column] == 0 and column != divided:
                    partition_column(orders, column, start, stop, is_right, spare, left_is_open, right_is_open)
        # Counts of the children: the smaller one's are computed, the larger one's are the rest of the parent's.
        left_slot, right_slot = -1, -1
        if slot >= 0:
            n_smaller = min(middle - start, stop - middle)
            n_larger = stop - start - n_smaller
            larger_is_open = left_is_open if middle - start >= stop - middle else right_is_open
            # Differences of weights would leave rounding errors instead of 0.
            if (
                kind < WEIGHTED_PAIR
                and larger_is_open == 1
                and n_larger > few
                and n_free > 1
                and n_larger * n_coded > n_counts // 4
            ):
                n_free -= 1
                other = free[n_free]
                smaller = rows[start:middle] if middle - start < stop - middle else rows[middle:stop]
                count_rows(
                    kind, pool[other], smaller, cells, first, n_codes, is_constant[n_sorted:], width, 0, n_coded,
                    row_class, row_value, row_weight, active, base,
                )  # fmt: skip
                for column in range(n_coded):
                    if is_constant[n_sorted + column] == 0:
                        for at in range(first[column], first[column] + n_codes[column] * width):
                            pool[slot, at] -= pool[other, at]
                if middle - start < stop - middle:
                    left_slot, right_slot = other, slot
                else:
                    left_slot, right_slot = slot, other
            else:
                free[n_free] = slot
                n_free += 1
        if left_slot >= 0 and (left_is_open == 0 or middle - start <= few):
            free[n_free] = left_slot
            n_free += 1
            left_slot = -1
        if right_slot >= 0 and (right_is_open == 0 or stop - middle <= few):
            free[n_free] = right_slot
            n_free += 1
            right_slot = -1
        if n_pending + 2 > pending.shape[0]:
            pending = enlarge_rows(pending, n_pending + 1, 2 * pending.shape[0])
            pending_constant = enlarge_rows(pending_constant, n_pending + 1, 2 * pending_constant.shape[0])
        # The right child replaces the current node: a column that is constant here is constant below.
        parent = n_pending
        if right_is_open == 1:
            pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2] = first_child + 1, middle, stop
            pending[n_pending, 3], pending[n_pending, 4] = right_slot, depth + 1
            n_pending += 1
        else:
            finished[0] += reals[first_child + 1, WEIGHT]
        if left_is_open == 1:
            if n_pending > parent:
                for column in range(n_attributes):
                    pending_constant[n_pending, column] = pending_constant[parent, column]
            pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2] = first_child, start, middle
            pending[n_pending, 3], pending[n_pending, 4] = left_slot, depth + 1
            n_pending += 1
        else:
            finished[0] += reals[first_child, WEIGHT]
    return n_nodes


@compiled
def copy_subset(orders, start, stop, places, own_orders):
    """Copy a subtree's range of the orders, its rows numbered from 0 in their own order.

    places: int32 (n), written for the rows of the subtree. own_orders: uint32 (orders, rows), written. Returns the old
    number of each new one, int32 (rows).
    """
    rows = orders[orders.shape[0] - 1, start:stop]
    home = np.empty(rows.size, np.int32)
    for at in range(rows.size):
        row = rows[at] & ROW_MASK
        home[at] = row
        places[row] = at
    for column in range(orders.shape[0]):
        own = own_orders[column]
        at = np.uint64(0)
        for value in orders[column, start:stop]:
            own[at] = (value & CLASS_MASK) | np.uint32(places[value & ROW_MASK])
            at += np.uint64(1)
    return home


@maker
def take(values, home):
    """Return values[home]; an array of one entry, which is never read, is returned unchanged."""
    if values.size <= 1:
        return values
    taken = np.empty(home.size, values.dtype)
    for at in range(home.size):
        taken[at] = values[home[at]]
    return taken


@compiled
def take_codes(codes, is_constant, home):
    """Return codes[:, home], uint32; columns that are constant, which are never read, are not written."""
    taken = np.empty((codes.shape[0], home.size), np.uint32)
    for column in range(codes.shape[0]):
        if is_constant[column] == 0:
            here, own = codes[column], taken[column]
            for at in range(home.size):
                own[at] = here[home[at]]
    return taken


@compiled
def take_cells(cells, home):
    """Return cells[home], uint8."""
    taken = np.empty((home.size, cells.shape[1]), np.uint8)
    for at in range(home.size):
        for column in range(cells.shape[1]):
            taken[at, column] = cells[home[at], column]
    return taken
