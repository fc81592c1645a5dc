"""The binary grower: complete data, two branches a test, impurity by squares (gini, squared error).

Columns with many values are sorted once; a node's stretch of each order is kept sorted by a *stable partition*, so
nothing is ever sorted again. Columns with at most 256 values are kept as bytes, row by row; a node counts statistics
by value, and the larger child's counts are the parent's less the smaller child's::

    orders[k]   ... | 4 9 1 7 3 0 ... |        row numbers, ascending by the k-th sorted column; where they fit, the
                    start             stop     class of the row stands in the upper eight bits, so that the scan of a
    orders[-1]  ... | 0 1 3 4 7 9 ... |        cut reads nothing but this stretch. The last order is the rows' own.

    partition   | left rows, in place | right rows, by way of `spare` |     bit `row` of `sides`: 0 left, 1 right

A subtree owns its stretch alone, so subtrees grow in parallel; what is found does not depend on who finds it. Before it
grows it moves into tables of its own, in which its rows are numbered from 0: the sides, codes and targets that a
partition or a scan looks up by row then lie together and stay in the processor's cache.

Of a node only that is kept which cannot be told from the rest (`fast_nodes`). A cut is noted as the two rows at its
sides; thresholds are taken from the columns when the tree is done.
"""

import math

import numpy as np

from espalier.growing.kernels.binary_nodes import (
    best_attribute,
    count_classes,
    impurity_and_form,
    is_leaf,
    least_side,
    node_totals,
    scan_totals,
)
from espalier.growing.kernels.binary_partition import deal, keeps_rows, mark_coded, mark_sorted, other_lives
from espalier.growing.kernels.fast_nodes import FEATURE, FIRST_CHILD, FIRST_RIGHT, GAIN, LAST_LEFT, WEIGHT, start_leaf
from espalier.growing.kernels.histogram_split import (
    SMALL,
    SMALL_OF_MANY_CODES,
    WORDS,
    count_rows,
    is_flat,
    scan_counts,
    scan_small,
)
from espalier.growing.kernels.nodes import more_long_rows
from espalier.growing.kernels.presorted_split import CLASSES, CONSTANT, MOST_CODES, ROW_MASK, WEIGHTED_PAIR, scan_order
from espalier.kernels.jit import compiled

CLASS_MASK = np.uint32(0xFF000000)


@compiled
def split_node(
    orders, cells, sorted_column, coded_column, sides, marks, start, stop, attribute, place, gain, ints, reals, node,
    first_child,
):  # fmt: skip
    """Write a node's test, and start its children; returns where the right side starts.

    sides: written where `marks` is 1, or the column is coded. ints, reals: the node tables; the children are
    first_child and the next.
    """
    if sorted_column[attribute] >= 0:
        order = orders[sorted_column[attribute]]
        middle = start + place + 1
        ints[node, LAST_LEFT], ints[node, FIRST_RIGHT] = order[middle - 1] & ROW_MASK, order[middle] & ROW_MASK
        if marks == 1:
            mark_sorted(order, sides, start, middle, stop)
    else:
        middle = mark_coded(
            orders[orders.shape[0] - 1], cells, coded_column[attribute], sides, start, stop, place, ints[node]
        )
    ints[node, FEATURE] = attribute
    ints[node, FIRST_CHILD] = first_child
    reals[node, GAIN] = gain
    start_leaf(ints, reals, first_child)
    start_leaf(ints, reals, first_child + 1)
    return middle


@compiled
def finish_children(
    rules, numeric, kind, rows, rows_of, target, middle, depth, reals, stats, node, first_child
):  # fmt: skip
    """Sum both children from the rows of their parent, in any order with the left one's `middle` rows first.

    depth: of the children. Returns (left lives, right lives).
    """
    row_class, _, row_weight = rows_of
    left, right = first_child, first_child + 1
    left_is_constant, right_is_constant = False, False
    if kind <= CLASSES:
        # Whole numbers: what the smaller child does not have is the larger one's, exactly.
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
    left_ends = is_leaf(rules, numeric, depth, stats[left], reals[left, WEIGHT], left_is_constant)
    right_ends = is_leaf(rules, numeric, depth, stats[right], reals[right, WEIGHT], right_is_constant)
    return 0 if left_ends else 1, 0 if right_ends else 1


@compiled
def sum_root(rules, numeric, kind, rows, rows_of, target, ints, reals, stats):
    """Start the root of a tree and sum it; returns whether it is a leaf before any attribute is looked at."""
    row_class, _, row_weight = rows_of
    start_leaf(ints, reals, 0)
    reals[0, WEIGHT], constant = node_totals(numeric, kind, rows, row_class, target, row_weight, stats[0])
    return is_leaf(rules, numeric, 0, stats[0], reals[0, WEIGHT], constant)


@compiled
def totals_of(numeric, kind, stats, node, totals):
    """Write what the scans want of a node."""
    scan_totals(numeric, kind, stats[node], totals)


@compiled
def choose(rules, numeric, kind, gains, stats, reals, node):
    """Give the attribute of the best gain at a node, -1 for a leaf."""
    impurity, _, _ = impurity_and_form(numeric, kind, stats[node], reals[node, WEIGHT])
    return best_attribute(rules, gains, gains.size, impurity, reals[node, WEIGHT])


@compiled
def grow_subtree(  # one loop, told from top to bottom
    rules, numeric, kind, all_orders, all_codes, all_cells, first, n_codes, sorted_attribute, coded_attribute,
    sorted_column, coded_column, all_rows_of, all_target, places_of, flat_at_root, depth_at_root, ints, reals, stats,
    start_at_root, stop_at_root, most_slots, settled, progress,
):  # fmt: skip
    """Grow everything below one node on its own stretch of the orders.

    ints, reals, stats: tables of as many nodes as there can be, two a row; that node stands in them as their first, the
    others are written. flat_at_root: uint8 (columns). places_of: int32 (n), scratch that all subtrees share, each its
    own rows. settled: float64 (1), weight in leaves, written. progress: float64 (2), its stop flag is read. Returns how
    many nodes there are.
    """
    n_sorted = all_codes.shape[0]
    n_coded = n_codes.size
    n_attributes = n_sorted + n_coded
    n_here = stop_at_root - start_at_root
    width = stats.shape[1] if numeric == 0 else 2
    orders = np.empty((n_sorted + 1, n_here), np.uint32)
    home = move_rows(all_orders, start_at_root, stop_at_root, places_of, orders)
    codes = picked_codes(all_codes, flat_at_root, home)
    cells = picked_cells(all_cells, home)
    row_class = picked_bytes(all_rows_of[0], home) if kind >= WEIGHTED_PAIR else all_rows_of[0]
    row_value = picked_numbers(all_rows_of[1], home)
    row_weight = picked_numbers(all_rows_of[2], home)
    target = picked_numbers(all_target, home)
    rows_of = (row_class, row_value, row_weight)
    rows = orders[n_sorted]
    sides = np.zeros(n_here // 32 + 1, np.uint32)
    spare = np.empty(n_here, np.uint32)
    left = np.empty(max(2, width), np.float64)
    right = np.empty(max(2, width), np.float64)
    totals = np.empty(width, np.float64)
    keys = np.empty(SMALL_OF_MANY_CODES, np.int64)
    bits, by_code = np.zeros(WORDS, np.uint64), np.zeros(MOST_CODES * width, np.float64)
    small_counts = np.empty(SMALL_OF_MANY_CODES * width, np.float64)
    active, base = np.empty(n_coded, np.uint64), np.empty(n_coded, np.uint64)
    gains = np.empty(n_attributes, np.float64)
    places = np.empty(n_attributes, np.int64)
    n_counts = 1
    if n_coded > 0:
        n_counts = first[n_coded - 1] + n_codes[n_coded - 1] * width
    # Sums of numbers keep their order: counts alone are the same however they are found.
    few = SMALL_OF_MANY_CODES if kind <= CLASSES and n_counts > SMALL_OF_MANY_CODES * n_coded else SMALL
    pool = np.empty((most_slots, n_counts), np.float64)
    free = np.arange(most_slots)
    n_free = most_slots
    n_nodes = 1
    # Waiting nodes: node, start, stop, slot of its counts (-1: none), depth; and which columns are constant there.
    waiting = np.empty((64, 5), np.int64)
    flats = np.empty((64, n_attributes + 1), np.uint8)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3], waiting[0, 4] = 0, 0, n_here, -1, depth_at_root
    for column in range(n_attributes):
        flats[0, column] = flat_at_root[column]
    n_waiting = 1
    least = least_side(rules, kind)
    by_rows = keeps_rows(kind, n_coded)
    while n_waiting > 0:
        if progress[1] != 0.0:
            break
        n_waiting -= 1
        node, start, stop = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
        slot, depth = waiting[n_waiting, 3], waiting[n_waiting, 4]
        flat = flats[n_waiting]
        here = rows[start:stop]
        weight = reals[node, WEIGHT]
        impurity, offset, scale = impurity_and_form(numeric, kind, stats[node], weight)
        tie = 1e-9 * impurity / scale
        scan_totals(numeric, kind, stats[node], totals)
        highest = -1.0
        for column in range(n_sorted):
            attribute = sorted_attribute[column]
            gains[attribute] = math.nan
            if flat[column] == 1:
                continue
            numerator, denominator, place = scan_order(
                kind, orders, codes, column, start, stop, row_class, row_value, row_weight, totals, weight, least, tie,
                highest - 10.0 * tie, left, right,
            )  # fmt: skip
            if place == CONSTANT:
                flat[column] = 1
            elif place >= 0:
                highest = max(highest, numerator / denominator)
                gains[attribute] = offset + scale * (numerator / denominator)
                places[attribute] = place
        small = stop - start <= few
        if n_coded > 0 and not small and slot < 0:
            n_free -= 1
            slot = free[n_free]
            count_rows(kind, pool[slot], here, cells, first, n_codes, flat[n_sorted:], width, 0, n_coded, row_class,
                       row_value, row_weight, active, base)  # fmt: skip
        for column in range(n_coded):
            attribute = coded_attribute[column]
            gains[attribute] = math.nan
            if flat[n_sorted + column] == 1:
                continue
            if small:
                numerator, denominator, code, _, constant = scan_small(
                    kind, here, cells, column, row_class, row_value, row_weight, totals, weight, least, tie, left,
                    right, bits, by_code, keys, small_counts, width,
                )  # fmt: skip
            else:
                numerator, denominator, code, _ = scan_counts(
                    kind, pool[slot], first[column], n_codes[column], width, totals, weight, least, tie, left, right
                )
                constant = code < 0 and is_flat(kind, pool[slot], first[column], n_codes[column], width)
            if constant:
                flat[n_sorted + column] = 1
            elif code >= 0:
                gains[attribute] = offset + scale * (numerator / denominator)
                places[attribute] = code
        attribute = best_attribute(rules, gains, n_attributes, impurity, weight)
        # Both sides of a cut have a row, so there is room; nothing is ever written beyond it all the same.
        if attribute < 0 or n_nodes + 2 > ints.shape[0]:
            settled[0] += weight
            if slot >= 0:
                free[n_free] = slot
                n_free += 1
            continue
        first_child = n_nodes
        n_nodes += 2
        middle = split_node(
            orders, cells, sorted_column, coded_column, sides, 1 if by_rows else 0, start, stop, attribute,
            places[attribute], gains[attribute], ints, reals, node, first_child,
        )  # fmt: skip
        for side in range(LAST_LEFT, FIRST_RIGHT + 1):
            ints[node, side] = home[ints[node, side]]
        divided = sorted_column[attribute]
        if by_rows:
            deal(orders, n_sorted, start, stop, sides, spare, 1, 1)
        children = here if by_rows else orders[divided, start:stop]
        left_lives, right_lives = finish_children(
            rules, numeric, kind, children, rows_of, target, middle - start, depth + 1, reals, stats, node, first_child
        )
        if left_lives + right_lives > 0 and other_lives(flat, n_sorted, divided):
            if not by_rows:
                mark_sorted(orders[divided], sides, start, middle, stop)
            for column in range(n_sorted):
                if flat[column] == 0 and column != divided:
                    deal(orders, column, start, stop, sides, spare, left_lives, right_lives)
        # Counts of the children: the smaller is counted, the larger is what remains of the parent's.
        left_slot, right_slot = -1, -1
        if slot >= 0:
            n_smaller = min(middle - start, stop - middle)
            n_larger = stop - start - n_smaller
            larger_lives = left_lives if middle - start >= stop - middle else right_lives
            # Differences of weights would leave traces of rounding where nothing is left.
            if (
                kind < WEIGHTED_PAIR
                and larger_lives == 1
                and n_larger > few
                and n_free > 1
                and n_larger * n_coded > n_counts // 4
            ):
                n_free -= 1
                other = free[n_free]
                smaller = rows[start:middle] if middle - start < stop - middle else rows[middle:stop]
                count_rows(kind, pool[other], smaller, cells, first, n_codes, flat[n_sorted:], width, 0, n_coded,
                           row_class, row_value, row_weight, active, base)  # fmt: skip
                for column in range(n_coded):
                    if flat[n_sorted + column] == 0:
                        for at in range(first[column], first[column] + n_codes[column] * width):
                            pool[slot, at] -= pool[other, at]
                if middle - start < stop - middle:
                    left_slot, right_slot = other, slot
                else:
                    left_slot, right_slot = slot, other
            else:
                free[n_free] = slot
                n_free += 1
        if left_slot >= 0 and (left_lives == 0 or middle - start <= few):
            free[n_free] = left_slot
            n_free += 1
            left_slot = -1
        if right_slot >= 0 and (right_lives == 0 or stop - middle <= few):
            free[n_free] = right_slot
            n_free += 1
            right_slot = -1
        if n_waiting + 2 > waiting.shape[0]:
            waiting = more_long_rows(waiting, n_waiting + 1, 2 * waiting.shape[0])
            flats = _more_byte_rows(flats, n_waiting + 1, 2 * flats.shape[0])
        # The place of the node at hand is taken by its right child: what is flat here is flat below.
        parent = n_waiting
        if right_lives == 1:
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = first_child + 1, middle, stop
            waiting[n_waiting, 3], waiting[n_waiting, 4] = right_slot, depth + 1
            n_waiting += 1
        else:
            settled[0] += reals[first_child + 1, WEIGHT]
        if left_lives == 1:
            if n_waiting > parent:
                for column in range(n_attributes):
                    flats[n_waiting, column] = flats[parent, column]
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = first_child, start, middle
            waiting[n_waiting, 3], waiting[n_waiting, 4] = left_slot, depth + 1
            n_waiting += 1
        else:
            settled[0] += reals[first_child, WEIGHT]
    return n_nodes


@compiled
def _more_byte_rows(old, count, more):
    new = np.empty((more, old.shape[1]), np.uint8)
    for at in range(count):
        for k in range(old.shape[1]):
            new[at, k] = old[at, k]
    return new


@compiled
def move_rows(orders, start, stop, places, own_orders):
    """Copy a subtree's stretch of the orders, its rows numbered anew from 0 in their own order.

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


@compiled
def picked_numbers(values, home):
    """Give values[home]; an array of one entry, which is not looked at, as it is."""
    if values.size <= 1:
        return values
    picked = np.empty(home.size, np.float64)
    for at in range(home.size):
        picked[at] = values[home[at]]
    return picked


@compiled
def picked_bytes(values, home):
    """Give values[home], as `picked_numbers` does, of uint8."""
    if values.size <= 1:
        return values
    picked = np.empty(home.size, np.uint8)
    for at in range(home.size):
        picked[at] = values[home[at]]
    return picked


@compiled
def picked_codes(codes, flat, home):
    """Give codes[:, home], uint32; columns that are `flat`, which nobody looks at, are not written."""
    picked = np.empty((codes.shape[0], home.size), np.uint32)
    for column in range(codes.shape[0]):
        if flat[column] == 0:
            here, own = codes[column], picked[column]
            for at in range(home.size):
                own[at] = here[home[at]]
    return picked


@compiled
def picked_cells(cells, home):
    """Give cells[home], uint8."""
    picked = np.empty((home.size, cells.shape[1]), np.uint8)
    for at in range(home.size):
        for column in range(cells.shape[1]):
            picked[at, column] = cells[home[at], column]
    return picked
