"""The fast lane: complete data, two branches a test, impurity by squares (gini, squared error).

Columns with many values are sorted once; a node's stretch of each order is kept sorted by a *stable partition*, so
nothing is ever sorted again. Columns with at most 256 values are kept as bytes, row by row; a node counts statistics
by value, and the larger child's counts are the parent's less the smaller child's::

    orders[k]   ... | 4 9 1 7 3 0 ... |        row numbers, ascending by the k-th sorted column; where they fit, the
                    start             stop     class of the row stands in the upper eight bits, so that the scan of a
    orders[-1]  ... | 0 1 3 4 7 9 ... |        cut reads nothing but this stretch. The last order is the rows' own.

    partition   | left rows, in place | right rows, by way of `spare` |       side[row] = 0 or 1

A subtree owns its stretch alone, so subtrees grow in parallel; what is found does not depend on who finds it. Scores
are fractions, compared by cross-multiplication: numerator · other denominator.
"""

import math

import numpy as np

from espalier.kernels import codes as c
from espalier.kernels.jit import compiled, inner
from espalier.kernels.nodes import (
    CODE_START,
    DEPTH,
    FALLBACK,
    FEATURE,
    FIRST_CHILD,
    GAIN,
    HIGHEST,
    LOWEST,
    N_CHILDREN,
    SHARE,
    TEST,
    THRESHOLD,
    VALUE,
    WEIGHT,
    more_int_rows,
    more_long_rows,
    more_real_rows,
    start_node,
)
from espalier.kernels.surrogates import middle_of

ROW_BITS = np.uint32(24)
ROW_MASK = np.uint32((1 << 24) - 1)
MOST_ROWS = 1 << 24
MOST_CLASSES = 256
MOST_CODES = 256
SMALL = 24

# What a row adds to a statistic, and how a cut is scored.
TWO_CLASSES = 0
CLASSES = 1
NUMBERS = 2
WEIGHTED_PAIR = 3  # two classes or numbers, with row weights
WEIGHTED_CLASSES = 4


@inner
def scan_order(
    kind, order, codes, start, stop, row_class, row_value, row_weight, totals, weight, least, tie, left, right
):  # fmt: skip
    """Find the best cut of one sorted stretch.

    order: uint32; codes: int32 (n) ranks of the column; row_class: uint8 (n); row_value: float64 (n), the target less
    nothing (numbers) or 1 for the second class; row_weight: float64 (n) or one entry. totals: float64 (width) of the
    node: class weights, or (weight, sum). least: least weight of a side. tie: see `_limit`. left, right: float64
    scratch (classes). Returns (numerator, denominator, place of the last row of the left side; -1: no cut).
    """
    best_numerator = -1.0
    best_denominator = 1.0
    limit = -1.0
    best = -1
    if kind == TWO_CLASSES:
        n_rows = stop - start
        second = np.int64(totals[1])
        ahead = np.int64(0)
        margin = np.int64(least)
        for at in range(start, start + margin - 1):
            ahead += np.int64(order[at] >> ROW_BITS) * n_rows - second
        n_left = margin - 1
        for at in range(start + margin - 1, stop - margin):
            ahead += np.int64(order[at] >> ROW_BITS) * n_rows - second
            n_left += 1
            apart = float(ahead)
            numerator = apart * apart
            denominator = float(n_left) * float(n_rows - n_left)
            if (
                numerator * best_denominator > limit * denominator
                and codes[order[at] & ROW_MASK] != codes[order[at + 1] & ROW_MASK]
            ):
                best_numerator, best_denominator, best = numerator, denominator, at
                limit = numerator + tie * denominator
        return best_numerator, best_denominator, best
    if kind == NUMBERS:
        mean = totals[1] / weight
        apart = 0.0
        margin = np.int64(least)
        n_rows = stop - start
        n_left = np.int64(0)
        for at in range(start, stop - margin):
            apart += row_value[order[at] & ROW_MASK] - mean
            n_left += 1
            numerator = apart * apart
            denominator = float(n_left) * float(n_rows - n_left)
            if (
                numerator * best_denominator > limit * denominator
                and n_left >= margin
                and codes[order[at] & ROW_MASK] != codes[order[at + 1] & ROW_MASK]
            ):
                best_numerator, best_denominator, best = numerator, denominator, at
                limit = numerator + tie * denominator
        return best_numerator, best_denominator, best
    if kind == WEIGHTED_PAIR:
        mean = totals[1] / weight
        apart = 0.0
        left_weight = 0.0
        for at in range(start, stop - 1):
            row = order[at] & ROW_MASK
            heavy = row_weight[row]
            apart += heavy * (row_value[row] - mean)
            left_weight += heavy
            right_weight = weight - left_weight
            numerator = apart * apart
            denominator = left_weight * right_weight
            if numerator * best_denominator > limit * denominator and (
                codes[row] != codes[order[at + 1] & ROW_MASK]
                and left_weight >= least
                and right_weight >= least
                and denominator > 0.0
            ):
                best_numerator, best_denominator, best = numerator, denominator, at
                limit = numerator + tie * denominator
        return best_numerator, best_denominator, best
    left_squares, right_squares = 0.0, 0.0
    for k in range(totals.size):
        left[k] = 0.0
        right[k] = totals[k]
        right_squares += totals[k] * totals[k]
    left_weight = 0.0
    heavy = 1.0
    for at in range(start, stop - 1):
        value = order[at]
        if kind == CLASSES:
            k = np.int64(value >> ROW_BITS)
        else:
            heavy = row_weight[value & ROW_MASK]
            k = np.int64(row_class[value & ROW_MASK])
        left_squares += heavy * (2.0 * left[k] + heavy)
        right_squares -= heavy * (2.0 * right[k] - heavy)
        left[k] += heavy
        right[k] -= heavy
        left_weight += heavy
        right_weight = weight - left_weight
        numerator = left_squares * right_weight + right_squares * left_weight
        denominator = left_weight * right_weight
        if numerator * best_denominator > limit * denominator and (
            codes[value & ROW_MASK] != codes[order[at + 1] & ROW_MASK]
            and left_weight >= least
            and right_weight >= least
            and denominator > 0.0
        ):
            best_numerator, best_denominator, best = numerator, denominator, at
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best


@inner
def scan_counts(kind, counts, first, n_codes, width, totals, weight, least, tie, left, right):
    """Find the best cut of a column from its counts by value.

    counts: float64; ``counts[first + code·width : + width]`` are the statistics of a value. Returns (numerator,
    denominator, last code of the left side; -1: no cut, left weight).
    """
    best_numerator = -1.0
    best_denominator = 1.0
    limit = -1.0
    best = -1
    best_left = 0.0
    left_weight = 0.0
    if kind in (CLASSES, WEIGHTED_CLASSES):
        left_squares, right_squares = 0.0, 0.0
        for k in range(width):
            left[k] = 0.0
            right[k] = totals[k]
            right_squares += totals[k] * totals[k]
        for code in range(n_codes):
            here = 0.0
            base = first + code * width
            for k in range(width):
                heavy = counts[base + k]
                if heavy != 0.0:
                    here += heavy
                    left_squares += heavy * (2.0 * left[k] + heavy)
                    right_squares -= heavy * (2.0 * right[k] - heavy)
                    left[k] += heavy
                    right[k] -= heavy
            if here <= 0.0:
                continue
            left_weight += here
            right_weight = weight - left_weight
            if left_weight < least or right_weight < least or right_weight <= 0.0:
                continue
            numerator = left_squares * right_weight + right_squares * left_weight
            denominator = left_weight * right_weight
            if numerator * best_denominator > limit * denominator:
                best_numerator, best_denominator, best, best_left = numerator, denominator, code, left_weight
                limit = numerator + tie * denominator
        return best_numerator, best_denominator, best, best_left
    # Two numbers a value: two classes hold (first, second), the others (weight, sum).
    apart = 0.0
    scale = weight if kind == TWO_CLASSES else 1.0
    share = totals[1] if kind == TWO_CLASSES else totals[1] / weight
    for code in range(n_codes):
        base = first + 2 * code
        here = counts[base] + counts[base + 1] if kind == TWO_CLASSES else counts[base]
        if here <= 0.0:
            continue
        left_weight += here
        apart += counts[base + 1] * scale - share * here
        right_weight = weight - left_weight
        if left_weight < least or right_weight < least or right_weight <= 0.0:
            continue
        numerator = apart * apart
        denominator = left_weight * right_weight
        if numerator * best_denominator > limit * denominator:
            best_numerator, best_denominator, best, best_left = numerator, denominator, code, left_weight
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best, best_left


@inner
def count_rows(kind, counts, rows, start, stop, cells, first, n_codes, flat, width, low, high, row_class, row_value,
               row_weight):  # fmt: skip
    """Count the statistics of a stretch of rows by value, for the coded columns low:high that are not constant.

    cells: uint8 (n, H). first: int64 (H), where a column's counts begin. flat: uint8 (H), 1: constant, left alone.
    """
    for column in range(low, high):
        if flat[column] == 0:
            for at in range(first[column], first[column] + n_codes[column] * width):
                counts[at] = 0.0
    for at in range(start, stop):
        value = rows[at]
        row = value & ROW_MASK
        if kind <= CLASSES:
            k = np.int64(value >> ROW_BITS)
            for column in range(low, high):
                if flat[column] == 0:
                    counts[first[column] + np.int64(cells[row, column]) * width + k] += 1.0
        elif kind == WEIGHTED_CLASSES:
            k = np.int64(row_class[row])
            heavy = row_weight[row]
            for column in range(low, high):
                if flat[column] == 0:
                    counts[first[column] + np.int64(cells[row, column]) * width + k] += heavy
        else:
            heavy = row_weight[row] if kind == WEIGHTED_PAIR else 1.0
            moment = heavy * row_value[row]
            for column in range(low, high):
                if flat[column] == 0:
                    base = first[column] + np.int64(cells[row, column]) * 2
                    counts[base] += heavy
                    counts[base + 1] += moment


@inner
def is_flat(kind, counts, first, n_codes, width):
    """Whether at most one value of a column occurs."""
    n_present = 0
    # Of a pair (weight, sum) the weight says whether a value occurs.
    looked_at = 1 if kind in (NUMBERS, WEIGHTED_PAIR) else width
    for code in range(n_codes):
        for k in range(looked_at):
            if counts[first + code * width + k] != 0.0:
                n_present += 1
                break
        if n_present > 1:
            return False
    return True


@inner
def scan_small(kind, rows, start, stop, cells, column, row_class, row_value, row_weight, totals, weight, least, tie,
               left, right, keys, counts, width):  # fmt: skip
    """Find the best cut of a coded column on a few rows, sorted by insertion.

    Returns as `scan_counts`, and whether the column is constant. keys: int64 (SMALL), counts: float64 (SMALL·width).
    """
    n_keys = 0
    for at in range(start, stop):
        value = rows[at]
        row = value & ROW_MASK
        code = np.int64(cells[row, column])
        place = n_keys
        while place > 0 and keys[place - 1] > code:
            place -= 1
        if place == 0 or keys[place - 1] != code:
            for later in range(n_keys, place, -1):
                keys[later] = keys[later - 1]
                for k in range(width):
                    counts[later * width + k] = counts[(later - 1) * width + k]
            keys[place] = code
            for k in range(width):
                counts[place * width + k] = 0.0
            n_keys += 1
        else:
            place -= 1
        base = place * width
        if kind <= CLASSES:
            counts[base + np.int64(value >> ROW_BITS)] += 1.0
        elif kind == WEIGHTED_CLASSES:
            counts[base + np.int64(row_class[row])] += row_weight[row]
        else:
            heavy = row_weight[row] if kind == WEIGHTED_PAIR else 1.0
            counts[base] += heavy
            counts[base + 1] += heavy * row_value[row]
    if n_keys < 2:
        return -1.0, 1.0, -1, 0.0, True
    numerator, denominator, best, left_weight = scan_counts(
        kind, counts, 0, n_keys, width, totals, weight, least, tie, left, right
    )
    return numerator, denominator, np.int64(keys[best]) if best >= 0 else -1, left_weight, False


@inner
def deal(order, start, stop, side, spare, left_lives, right_lives, middle):
    """Partition a stretch by side, keeping the order; a side that has become a leaf is dropped."""
    if left_lives == 1 and right_lives == 1:
        n_left, n_right = start, 0
        for at in range(start, stop):
            value = order[at]
            right = np.int64(side[value & ROW_MASK])
            order[n_left] = value
            spare[n_right] = value
            n_left += 1 - right
            n_right += right
        for at in range(n_right):
            order[middle + at] = spare[at]
    elif left_lives == 1:
        n_left = start
        for at in range(start, stop):
            value = order[at]
            order[n_left] = value
            n_left += 1 - np.int64(side[value & ROW_MASK])
    elif right_lives == 1:
        to = stop - 1
        for at in range(stop - 1, start - 1, -1):
            value = order[at]
            order[to] = value
            to -= np.int64(side[value & ROW_MASK])


@inner
def node_totals(numeric, kind, rows, start, stop, row_class, target, row_weight, stats, reals, totals):
    """Sum a node: statistics as the tree keeps them, value, weight, and `totals` as the scans want them.

    numeric: 1: the target is a number. stats: float64, class weights, or (weight, mean, sum of squared deviations).
    reals: the node's row of reals, written. totals: float64, class weights, or (weight, sum of values).
    """
    weight = 0.0
    if numeric == 1:
        total, lowest, highest = 0.0, math.inf, -math.inf
        heavy = 1.0
        for at in range(start, stop):
            row = rows[at] & ROW_MASK
            if kind == WEIGHTED_PAIR:
                heavy = row_weight[row]
            weight += heavy
            total += heavy * target[row]
            lowest = min(lowest, target[row])
            highest = max(highest, target[row])
        mean = min(max(total / weight, lowest), highest)
        squares = 0.0
        for at in range(start, stop):
            row = rows[at] & ROW_MASK
            if kind == WEIGHTED_PAIR:
                heavy = row_weight[row]
            squares += heavy * (target[row] - mean) * (target[row] - mean)
        stats[0], stats[1], stats[2] = weight, mean, squares
        reals[LOWEST], reals[HIGHEST], reals[VALUE] = lowest, highest, mean
        totals[0], totals[1] = weight, total
    else:
        for k in range(stats.size):
            stats[k] = 0.0
        if kind <= CLASSES:
            for at in range(start, stop):
                stats[np.int64(rows[at] >> ROW_BITS)] += 1.0
            weight = float(stop - start)
        else:
            for at in range(start, stop):
                row = rows[at] & ROW_MASK
                stats[np.int64(row_class[row])] += row_weight[row]
                weight += row_weight[row]
        best = 0
        for k in range(stats.size):
            if stats[k] > stats[best]:
                best = k
        reals[VALUE] = best
        scan_totals(numeric, kind, stats, totals)
    reals[WEIGHT] = weight


@inner
def scan_totals(numeric, kind, stats, totals):
    """Write what the scans want of a node from what the tree keeps of it."""
    if numeric == 1:
        totals[0], totals[1] = stats[0], stats[0] * stats[1]
    elif kind == WEIGHTED_PAIR:
        totals[0], totals[1] = stats[0] + stats[1], stats[1]
    else:
        for k in range(stats.size):
            totals[k] = stats[k]


@inner
def is_leaf(rules, numeric, depth, stats, reals):
    """Whether a node is a leaf before any attribute is looked at."""
    weight = reals[WEIGHT]
    if weight < max(rules.min_weight_split, 2.0 * rules.min_weight_leaf) - 1e-6:
        return True
    if rules.max_depth >= 0 and depth >= rules.max_depth:
        return True
    if numeric == 1:
        if reals[LOWEST] == reals[HIGHEST]:
            return True
        variance = stats[2] / weight
        return variance < rules.min_variance or math.sqrt(variance) < rules.min_sd
    n_present = 0
    for k in range(stats.size):
        if stats[k] > 0.0:
            n_present += 1
    return n_present < 2


@inner
def impurity_and_form(numeric, kind, stats, weight):
    """Give (impurity, offset, scale): a cut's gain is ``offset + scale · numerator / denominator``."""
    if numeric == 1:
        return stats[2] / weight, 0.0, 1.0
    squares = 0.0
    for k in range(stats.size):
        squares += (stats[k] / weight) * (stats[k] / weight)
    if kind == TWO_CLASSES:
        return 1.0 - squares, 0.0, 2.0 / (weight * weight)
    if kind == WEIGHTED_PAIR:
        return 1.0 - squares, 0.0, 2.0
    return 1.0 - squares, -squares, 1.0 / weight


@inner
def best_attribute(rules, gains, n_attributes, impurity, weight):
    """Give the attribute of the largest gain, the first of equals; -1 where none is allowed. NaN: no offer."""
    tie = 1e-9 * impurity
    best = -1
    worth = 0.0
    for attribute in range(n_attributes):
        gain = gains[attribute]
        if math.isnan(gain):
            continue
        if math.isnan(rules.min_impurity_decrease):
            if not gain > tie:
                continue
        elif weight / rules.root_weight * gain < rules.min_impurity_decrease - tie:
            continue
        if best < 0 or gain > worth + tie:
            best, worth = attribute, gain
    return best


@inner
def next_code(rows, start, stop, cells, column, code):
    """Give the smallest value of a coded column above `code` among some rows."""
    following = MOST_CODES
    for at in range(start, stop):
        other = np.int64(cells[rows[at] & ROW_MASK, column])
        if other > code and other < following:
            following = other
    return following


@compiled
def scan_columns(
    rules, numeric, kind, orders, codes, cells, first, n_codes, sorted_attribute, coded_attribute, rows_of, stats,
    reals, totals, start, stop, low, high, coded_low, coded_high, flat, counts, gains, places, progress,
):  # fmt: skip
    """Scan some columns at one node: for the top of the tree, where columns are shared out over threads.

    Writes gains and places of their attributes; a column that is constant gets its `flat` set.
    """
    row_class, row_value, row_weight = rows_of
    weight = reals[WEIGHT]
    impurity, offset, scale = impurity_and_form(numeric, kind, stats, weight)
    tie = 1e-9 * impurity / scale
    least = least_side(rules, kind)
    left = np.empty(max(2, stats.size), np.float64)
    right = np.empty(max(2, stats.size), np.float64)
    n_sorted = codes.shape[0]
    for column in range(low, high):
        if progress[1] != 0.0:
            return
        attribute = sorted_attribute[column]
        gains[attribute] = math.nan
        order = orders[column]
        if flat[column] == 1:
            continue
        if codes[column, order[start] & ROW_MASK] == codes[column, order[stop - 1] & ROW_MASK]:
            flat[column] = 1
            continue
        numerator, denominator, place = scan_order(
            kind, order, codes[column], start, stop, row_class, row_value, row_weight, totals, weight, least, tie,
            left, right,
        )  # fmt: skip
        if place >= 0:
            gains[attribute] = offset + scale * (numerator / denominator)
            places[attribute] = place
    width = totals.size
    if coded_high > coded_low:
        count_rows(
            kind, counts, orders[n_sorted], start, stop, cells, first, n_codes, flat[n_sorted:], width, coded_low,
            coded_high, row_class, row_value, row_weight,
        )  # fmt: skip
    for column in range(coded_low, coded_high):
        attribute = coded_attribute[column]
        gains[attribute] = math.nan
        if flat[n_sorted + column] == 1:
            continue
        if is_flat(kind, counts, first[column], n_codes[column], width):
            flat[n_sorted + column] = 1
            continue
        numerator, denominator, code, _ = scan_counts(
            kind, counts, first[column], n_codes[column], width, totals, weight, least, tie, left, right
        )
        if code >= 0:
            gains[attribute] = offset + scale * (numerator / denominator)
            places[attribute] = code


@inner
def least_side(rules, kind):
    """Give the least weight of a side; for whole counts a whole number of at least 1."""
    if kind <= NUMBERS:
        return max(1.0, math.ceil(rules.min_weight_leaf - 1e-6))
    return rules.min_weight_leaf - 1e-6


@compiled
def deal_columns(orders, low, high, start, stop, side, flat, spare, left_lives, right_lives, middle):
    """Partition the orders low:high (the last one is the rows' own, which is never flat)."""
    for column in range(low, high):
        if column == orders.shape[0] - 1:
            deal(orders[column], start, stop, side, spare, 1, 1, middle)
        elif flat[column] == 0:
            deal(orders[column], start, stop, side, spare, left_lives, right_lives, middle)


@compiled
def split_node(
    rules, numeric, kind, orders, codes, cells, value_start, value, nominal, sorted_column, coded_column, rows_of,
    target, side, start, stop, attribute, place, gain, ints, reals, stats, node, first_child,
):  # fmt: skip
    """Write the sides of a node's rows, its test, and its children's statistics; returns where the right side starts.

    ints, reals, stats: the node tables; the children are first_child and the next.
    """
    middle = _mark_sides(
        orders, codes, cells, value_start, value, nominal, sorted_column, coded_column, rules.observed, side, start,
        stop, attribute, place, ints, reals, node,
    )  # fmt: skip
    ints[node, FIRST_CHILD] = first_child
    ints[node, N_CHILDREN] = 2
    reals[node, GAIN] = gain
    for branch in range(2):
        start_node(ints, reals, first_child + branch, node, np.int64(ints[node, DEPTH]) + 1, -1)
    return middle


@inner
def _mark_sides(
    orders, codes, cells, value_start, value, nominal, sorted_column, coded_column, observed, side, start, stop,
    attribute, place, ints, reals, node,
):  # fmt: skip
    """Write side[row] of every row, and the node's test; returns where the right side starts."""
    rows = orders[orders.shape[0] - 1]
    if sorted_column[attribute] >= 0:
        column = sorted_column[attribute]
        order = orders[column]
        for at in range(start, place + 1):
            side[order[at] & ROW_MASK] = 0
        for at in range(place + 1, stop):
            side[order[at] & ROW_MASK] = 1
        below = np.int64(codes[column, order[place] & ROW_MASK])
        above = np.int64(codes[column, order[place + 1] & ROW_MASK])
        middle = place + 1
    else:
        column = coded_column[attribute]
        below = np.int64(place)
        middle = start
        for at in range(start, stop):
            row = rows[at] & ROW_MASK
            right = np.int64(cells[row, column]) > below
            side[row] = 1 if right else 0
            if not right:
                middle += 1
        above = next_code(rows, start, stop, cells, column, below)
    ints[node, FEATURE] = attribute
    if nominal[attribute] == 1:
        ints[node, TEST] = c.NOMINAL
        ints[node, CODE_START] = 0
    else:
        ints[node, TEST] = c.NUMERIC
        base = value_start[attribute]
        cut = middle_of(value[base + below], value[base + above])
        if observed == 1:
            low, high = below, above
            while low + 1 < high:
                rank = (low + high) // 2
                if value[base + rank] <= cut:
                    low = rank
                else:
                    high = rank
            cut = value[base + low]
        reals[node, THRESHOLD] = cut
    return middle


@compiled
def finish_children(
    rules, numeric, kind, orders, rows_of, target, start, middle, stop, ints, reals, stats, node, first_child, totals
):  # fmt: skip
    """Sum both children (the rows' own order is partitioned already); returns (left lives, right lives)."""
    row_class, _, row_weight = rows_of
    rows = orders[orders.shape[0] - 1]
    node_totals(numeric, kind, rows, start, middle, row_class, target, row_weight, stats[first_child],
                reals[first_child], totals)  # fmt: skip
    node_totals(numeric, kind, rows, middle, stop, row_class, target, row_weight, stats[first_child + 1],
                reals[first_child + 1], totals)  # fmt: skip
    weight = reals[first_child, WEIGHT] + reals[first_child + 1, WEIGHT]
    heavier = 0
    if reals[first_child + 1, WEIGHT] > reals[first_child, WEIGHT]:
        heavier = 1
    ints[node, FALLBACK] = heavier
    for branch in range(2):
        reals[first_child + branch, SHARE] = reals[first_child + branch, WEIGHT] / weight
    depth = np.int64(ints[first_child, DEPTH])
    left_lives = 0 if is_leaf(rules, numeric, depth, stats[first_child], reals[first_child]) else 1
    right_lives = 0 if is_leaf(rules, numeric, depth, stats[first_child + 1], reals[first_child + 1]) else 1
    return left_lives, right_lives


@compiled
def sum_root(numeric, kind, orders, rows_of, target, ints, reals, stats, totals):
    """Start the root of a tree and sum it."""
    row_class, _, row_weight = rows_of
    start_node(ints, reals, 0, -1, 0, -1)
    rows = orders[orders.shape[0] - 1]
    node_totals(numeric, kind, rows, 0, rows.size, row_class, target, row_weight, stats[0], reals[0], totals)


@compiled
def root_is_leaf(rules, numeric, stats, reals):
    """Whether the root is a leaf before any attribute is looked at."""
    return is_leaf(rules, numeric, 0, stats[0], reals[0])


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
    rules, numeric, kind, orders, codes, cells, first, n_codes, value_start, value, nominal, sorted_attribute,
    coded_attribute, sorted_column, coded_column, rows_of, target, side, flat_at_root, root_ints, root_reals,
    root_stats, start_at_root, stop_at_root, most_slots, settled, progress,
):  # fmt: skip
    """Grow everything below one node on its own stretch of the orders.

    root_*: the tables of one row of that node. flat_at_root: uint8 (columns). settled: float64 (1), weight in leaves,
    written. progress: float64 (2), its stop flag is read. Returns (nodes, ints, reals, stats); node 0 is the root.
    """
    row_class, row_value, row_weight = rows_of
    n_sorted = codes.shape[0]
    n_coded = n_codes.size
    n_attributes = n_sorted + n_coded
    n_here = stop_at_root - start_at_root
    width = root_stats.shape[1] if numeric == 0 else 2
    rows = orders[n_sorted]
    spare = np.empty(n_here, np.uint32)
    left = np.empty(max(2, width), np.float64)
    right = np.empty(max(2, width), np.float64)
    totals = np.empty(width, np.float64)
    keys = np.empty(SMALL + 1, np.int64)
    small_counts = np.empty((SMALL + 1) * width, np.float64)
    gains = np.empty(n_attributes, np.float64)
    places = np.empty(n_attributes, np.int64)
    n_counts = 1
    if n_coded > 0:
        n_counts = first[n_coded - 1] + n_codes[n_coded - 1] * width
    pool = np.empty((most_slots, n_counts), np.float64)
    free = np.arange(most_slots)
    n_free = most_slots
    ints = np.empty((64, root_ints.shape[1]), np.int32)
    reals = np.empty((64, root_reals.shape[1]), np.float64)
    stats = np.empty((64, root_stats.shape[1]), np.float64)
    for k in range(ints.shape[1]):
        ints[0, k] = root_ints[0, k]
    for k in range(reals.shape[1]):
        reals[0, k] = root_reals[0, k]
    for k in range(stats.shape[1]):
        stats[0, k] = root_stats[0, k]
    n_nodes = 1
    # Waiting nodes: node, start, stop, slot of its counts (-1: none); and which columns are constant there.
    waiting = np.empty((64, 4), np.int64)
    flats = np.empty((64, n_attributes + 1), np.uint8)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, start_at_root, stop_at_root, -1
    for column in range(n_attributes):
        flats[0, column] = flat_at_root[column]
    n_waiting = 1
    least = least_side(rules, kind)
    while n_waiting > 0:
        if progress[1] != 0.0:
            break
        n_waiting -= 1
        node, start, stop = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
        slot = waiting[n_waiting, 3]
        flat = flats[n_waiting]
        weight = reals[node, WEIGHT]
        impurity, offset, scale = impurity_and_form(numeric, kind, stats[node], weight)
        tie = 1e-9 * impurity / scale
        scan_totals(numeric, kind, stats[node], totals)
        for column in range(n_sorted):
            attribute = sorted_attribute[column]
            gains[attribute] = math.nan
            if flat[column] == 1:
                continue
            order = orders[column]
            if codes[column, order[start] & ROW_MASK] == codes[column, order[stop - 1] & ROW_MASK]:
                flat[column] = 1
                continue
            numerator, denominator, place = scan_order(
                kind, order, codes[column], start, stop, row_class, row_value, row_weight, totals, weight, least, tie,
                left, right,
            )  # fmt: skip
            if place >= 0:
                gains[attribute] = offset + scale * (numerator / denominator)
                places[attribute] = place
        small = stop - start <= SMALL
        if n_coded > 0 and not small and slot < 0:
            n_free -= 1
            slot = free[n_free]
            count_rows(kind, pool[slot], rows, start, stop, cells, first, n_codes, flat[n_sorted:], width, 0, n_coded,
                       row_class, row_value, row_weight)  # fmt: skip
        for column in range(n_coded):
            attribute = coded_attribute[column]
            gains[attribute] = math.nan
            if flat[n_sorted + column] == 1:
                continue
            if small:
                numerator, denominator, code, _, constant = scan_small(
                    kind, rows, start, stop, cells, column, row_class, row_value, row_weight, totals, weight, least,
                    tie, left, right, keys, small_counts, width,
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
        if attribute < 0:
            settled[0] += weight
            if slot >= 0:
                free[n_free] = slot
                n_free += 1
            continue
        if n_nodes + 2 > ints.shape[0]:
            ints = more_int_rows(ints, n_nodes, 2 * ints.shape[0])
            reals = more_real_rows(reals, n_nodes, 2 * reals.shape[0])
            stats = more_real_rows(stats, n_nodes, 2 * stats.shape[0])
        middle = split_node(
            rules, numeric, kind, orders, codes, cells, value_start, value, nominal, sorted_column, coded_column,
            rows_of, target, side, start, stop, attribute, places[attribute], gains[attribute], ints, reals, stats,
            node, n_nodes,
        )  # fmt: skip
        deal(rows, start, stop, side, spare, 1, 1, middle)
        left_lives, right_lives = finish_children(
            rules, numeric, kind, orders, rows_of, target, start, middle, stop, ints, reals, stats, node, n_nodes,
            totals,
        )  # fmt: skip
        first_child = n_nodes
        n_nodes += 2
        if left_lives + right_lives > 0:
            for column in range(n_sorted):
                if flat[column] == 0:
                    deal(orders[column], start, stop, side, spare, left_lives, right_lives, middle)
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
                and n_larger > SMALL
                and n_free > 1
                and n_larger * n_coded > n_counts // 4
            ):
                n_free -= 1
                other = free[n_free]
                if middle - start < stop - middle:
                    count_rows(kind, pool[other], rows, start, middle, cells, first, n_codes, flat[n_sorted:], width,
                               0, n_coded, row_class, row_value, row_weight)  # fmt: skip
                else:
                    count_rows(kind, pool[other], rows, middle, stop, cells, first, n_codes, flat[n_sorted:], width,
                               0, n_coded, row_class, row_value, row_weight)  # fmt: skip
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
        if left_slot >= 0 and (left_lives == 0 or middle - start <= SMALL):
            free[n_free] = left_slot
            n_free += 1
            left_slot = -1
        if right_slot >= 0 and (right_lives == 0 or stop - middle <= SMALL):
            free[n_free] = right_slot
            n_free += 1
            right_slot = -1
        if n_waiting + 2 > waiting.shape[0]:
            waiting = more_long_rows(waiting, n_waiting + 1, 2 * waiting.shape[0])
            flats = _more_byte_rows(flats, n_waiting + 1, 2 * flats.shape[0])
        # The place of the node at hand is taken by its right child: what is flat here is flat below.
        here = n_waiting
        if right_lives == 1:
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = first_child + 1, middle, stop
            waiting[n_waiting, 3] = right_slot
            n_waiting += 1
        else:
            settled[0] += reals[first_child + 1, WEIGHT]
        if left_lives == 1:
            if n_waiting > here:
                for column in range(n_attributes):
                    flats[n_waiting, column] = flats[here, column]
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = first_child, start, middle
            waiting[n_waiting, 3] = left_slot
            n_waiting += 1
        else:
            settled[0] += reals[first_child, WEIGHT]
    return n_nodes, ints, reals, stats


@compiled
def _more_byte_rows(old, count, more):
    new = np.empty((more, old.shape[1]), np.uint8)
    for at in range(count):
        for k in range(old.shape[1]):
            new[at, k] = old[at, k]
    return new
