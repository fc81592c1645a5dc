"""Nodes of the binary grower: their tables, their statistics, when they are leaves, and the best split of each column.

The tables hold only what does not follow from the rest: 32 bytes a node and the statistics, a third of the general
grower's tables. Labels, shares and parents are derived when the tree is finished::

    ints    feature | first child (the other is the next) | last row of the left branch | first row of the right branch
    reals   weight | gain
    stats   class weights, or (weight, mean, sum of squared deviations)
"""

import math

import numpy as np

from espalier.growing.kernels.histogram_split import best_split_histogram, count_rows, has_one_value
from espalier.growing.kernels.presorted_split import (
    CLASSES,
    CONSTANT,
    NUMBERS,
    ROW_BITS,
    ROW_MASK,
    TWO_CLASSES,
    WEIGHTED_PAIR,
    best_split_presorted,
)
from espalier.kernels.jit import compiled, inlined, inner

FEATURE = 0
FIRST_CHILD = 1
LAST_LEFT = 2
FIRST_RIGHT = 3
N_INTS = 4

WEIGHT = 0
GAIN = 1
N_REALS = 2


@inner
def start_leaf(ints, reals, node):
    """Write a leaf into the tables."""
    for k in range(N_INTS):
        ints[node, k] = -1
    reals[node, GAIN] = math.nan


@inner
def node_totals(numeric, kind, rows, row_class, target, row_weight, stats):
    """Sum the statistics of a node. Return (weight, whether the target is a constant number).

    numeric: 1: the target is a number. stats: float64, class weights, or (weight, mean, sum of squared deviations),
    written.
    """
    weight, constant = 0.0, False
    if numeric == 1:
        total, lowest, highest = 0.0, math.inf, -math.inf
        heavy = 1.0
        for value in rows:
            row = value & ROW_MASK
            if kind == WEIGHTED_PAIR:
                heavy = row_weight[row]
            weight += heavy
            total += heavy * target[row]
            lowest = min(lowest, target[row])
            highest = max(highest, target[row])
        mean = min(max(total / weight, lowest), highest)
        squares = 0.0
        for value in rows:
            row = value & ROW_MASK
            if kind == WEIGHTED_PAIR:
                heavy = row_weight[row]
            squares += heavy * (target[row] - mean) * (target[row] - mean)
        stats[0], stats[1], stats[2] = weight, mean, squares
        constant = lowest == highest
    else:
        weight = count_classes(kind, rows, row_class, row_weight, stats)
    return weight, constant


@inner
def count_classes(kind, rows, row_class, row_weight, stats):
    """Write the class weights of some rows. Return their sum."""
    weight = 0.0
    for k in range(stats.size):
        stats[k] = 0.0
    if kind == TWO_CLASSES:
        n_second = np.uint32(0)
        for value in rows:
            n_second += value >> ROW_BITS
        weight = float(rows.size)
        stats[0], stats[1] = weight - float(n_second), float(n_second)
    elif kind == CLASSES:
        for value in rows:
            stats[value >> ROW_BITS] += 1.0
        weight = float(rows.size)
    else:
        for value in rows:
            row = value & ROW_MASK
            stats[np.int64(row_class[row])] += row_weight[row]
            weight += row_weight[row]
    return weight


@inner
def split_totals(numeric, kind, stats, totals):
    """Write the totals that the split search needs, from the statistics of a node.

    totals: float64, class weights, or (weight, sum of values), written.
    """
    if numeric == 1:
        totals[0], totals[1] = stats[0], stats[0] * stats[1]
    elif kind == WEIGHTED_PAIR:
        totals[0], totals[1] = stats[0] + stats[1], stats[1]
    else:
        for k in range(stats.size):
            totals[k] = stats[k]


@inner
def is_leaf(parameters, numeric, depth, stats, weight, constant):
    """Return whether a node is a leaf before any attribute is tried. weight, constant: from `node_totals`."""
    if weight < max(parameters.min_weight_split, 2.0 * parameters.min_weight_leaf) - 1e-6:
        return True
    if parameters.max_depth >= 0 and depth >= parameters.max_depth:
        return True
    if numeric == 1:
        if constant:
            return True
        variance = stats[2] / weight
        return variance < parameters.min_variance or math.sqrt(variance) < parameters.min_sd
    n_present = 0
    for k in range(stats.size):
        if stats[k] > 0.0:
            n_present += 1
    return n_present < 2


@inner
def impurity_and_form(numeric, kind, stats, weight):
    """Return (impurity, offset, scale): a split's gain is ``offset + scale · numerator / denominator``."""
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
def best_attribute(parameters, gains, n_attributes, impurity, weight):
    """Return the attribute of the largest gain, the first of equal ones; -1 if none is allowed. NaN: no candidate."""
    tie = 1e-9 * impurity
    best = -1
    best_score = 0.0
    for attribute in range(n_attributes):
        gain = gains[attribute]
        if math.isnan(gain):
            continue
        if math.isnan(parameters.min_impurity_decrease):
            if not gain > tie:
                continue
        elif weight / parameters.root_weight * gain < parameters.min_impurity_decrease - tie:
            continue
        if best < 0 or gain > best_score + tie:
            best, best_score = attribute, gain
    return best


@inner
def min_branch_weight(parameters, kind):
    """Return the least weight of a branch; for whole counts a whole number of at least 1."""
    if kind <= NUMBERS:
        return max(1.0, math.ceil(parameters.min_weight_leaf - 1e-6))
    return parameters.min_weight_leaf - 1e-6


@compiled
def best_splits(
    parameters, numeric, kind, orders, codes, cells, first, n_codes, sorted_attribute, coded_attribute, rows_of, stats,
    reals, totals, start, stop, low, high, coded_low, coded_high, is_constant, counts, gains, places, progress,
):  # fmt: skip
    """Find the best split of some columns at one node: for the top of the tree, where threads share the columns.

    Writes gains and places of their attributes; sets `is_constant` of columns that are constant.
    """
    row_class, row_value, row_weight = rows_of
    weight = reals[WEIGHT]
    impurity, offset, scale = impurity_and_form(numeric, kind, stats, weight)
    tie = 1e-9 * impurity / scale
    min_weight = min_branch_weight(parameters, kind)
    left = np.empty(max(2, stats.size), np.float64)
    right = np.empty(max(2, stats.size), np.float64)
    best_sorted_splits(
        kind, orders, codes, low, high, start, stop, sorted_attribute, rows_of, totals, weight, min_weight, tie, offset,
        scale, left, right, is_constant, gains, places, progress,
    )  # fmt: skip
    if coded_high > coded_low:
        n_sorted, width = codes.shape[0], totals.size
        active, base = np.empty(n_codes.size, np.uint64), np.empty(n_codes.size, np.uint64)
        count_rows(
            kind, counts, orders[n_sorted, start:stop], cells, first, n_codes, is_constant[n_sorted:], width, coded_low,
            coded_high, row_class, row_value, row_weight, active, base,
        )  # fmt: skip
        best_coded_splits(
            kind, counts, coded_low, coded_high, n_sorted, first, n_codes, width, coded_attribute, totals, weight,
            min_weight, tie, offset, scale, left, right, is_constant, gains, places,
        )  # fmt: skip


@inlined
def best_sorted_splits(
    kind, orders, codes, low, high, start, stop, sorted_attribute, rows_of, totals, weight, min_weight, tie, offset,
    scale, left, right, is_constant, gains, places, progress,
):  # fmt: skip
    """Write the gain and the place of the best split of the sorted columns low:high."""
    row_class, row_value, row_weight = rows_of
    highest = -1.0
    for column in range(low, high):
        if progress[1] != 0.0:
            return
        attribute = sorted_attribute[column]
        gains[attribute] = math.nan
        if is_constant[column] == 1:
            continue
        numerator, denominator, place = best_split_presorted(
            kind, orders, codes, column, start, stop, row_class, row_value, row_weight, totals, weight, min_weight, tie,
            highest - 10.0 * tie, left, right,
        )  # fmt: skip
        if place == CONSTANT:
            is_constant[column] = 1
        elif place >= 0:
            highest = max(highest, numerator / denominator)
            gains[attribute] = offset + scale * (numerator / denominator)
            places[attribute] = place


@inlined
def best_coded_splits(
    kind, counts, low, high, n_sorted, first, n_codes, width, coded_attribute, totals, weight, min_weight, tie, offset,
    scale, left, right, is_constant, gains, places,
):  # fmt: skip
    """Write the gain and the place of the best split of the coded columns low:high, from their counts."""
    for column in range(low, high):
        attribute = coded_attribute[column]
        gains[attribute] = math.nan
        if is_constant[n_sorted + column] == 1:
            continue
        numerator, denominator, code, _ = best_split_histogram(
            kind, counts, first[column], n_codes[column], width, totals, weight, min_weight, tie, left, right
        )
        if code >= 0:
            gains[attribute] = offset + scale * (numerator / denominator)
            places[attribute] = code
        elif has_one_value(kind, counts, first[column], n_codes[column], width):
            is_constant[n_sorted + column] = 1
