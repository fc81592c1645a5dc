"""What the binary grower knows of a node: its statistics, whether it is a leaf, and what its best cut is."""

import math

import numpy as np

from espalier.growing.kernels.fast_nodes import WEIGHT
from espalier.growing.kernels.histogram_split import count_rows, is_flat, scan_counts
from espalier.growing.kernels.presorted_split import (
    CLASSES,
    CONSTANT,
    NUMBERS,
    ROW_BITS,
    ROW_MASK,
    TWO_CLASSES,
    WEIGHTED_PAIR,
    scan_order,
)
from espalier.kernels.jit import compiled, inner


@inner
def node_totals(numeric, kind, rows, row_class, target, row_weight, stats):
    """Sum a node; returns (weight, whether the target is a number that does not vary).

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
    """Write the class weights of some rows; returns their sum."""
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
def scan_totals(numeric, kind, stats, totals):
    """Write what the scans want of a node from what the tree keeps of it.

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
def is_leaf(rules, numeric, depth, stats, weight, constant):
    """Whether a node is a leaf before any attribute is looked at; weight, constant: from `node_totals`."""
    if weight < max(rules.min_weight_split, 2.0 * rules.min_weight_leaf) - 1e-6:
        return True
    if rules.max_depth >= 0 and depth >= rules.max_depth:
        return True
    if numeric == 1:
        if constant:
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
def least_side(rules, kind):
    """Give the least weight of a side; for whole counts a whole number of at least 1."""
    if kind <= NUMBERS:
        return max(1.0, math.ceil(rules.min_weight_leaf - 1e-6))
    return rules.min_weight_leaf - 1e-6


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
    highest = -1.0
    for column in range(low, high):
        if progress[1] != 0.0:
            return
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
    width = totals.size
    if coded_high > coded_low:
        active, base = np.empty(n_codes.size, np.uint64), np.empty(n_codes.size, np.uint64)
        count_rows(
            kind, counts, orders[n_sorted, start:stop], cells, first, n_codes, flat[n_sorted:], width, coded_low,
            coded_high, row_class, row_value, row_weight, active, base,
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
