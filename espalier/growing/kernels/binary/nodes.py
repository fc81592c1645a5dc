"""Nodes of the binary grower: their tables, their statistics, and the best split of each column at a node.

Without the statistics, the tables have 32 bytes per node, a third of the general grower's. Predicted values, shares of
weight and parents are derived when the tree is finished::

    ints    feature | first child (then the second) | last row of the left branch | first row of the right branch
    reals   weight | gain
    stats   class weights, or (weight, mean, sum of squared deviations, rounding error of the mean)
"""

import math

import cython
from cython.cimports.espalier.growing.kernels.binary import constants as b
from cython.cimports.espalier.growing.kernels.binary.histogram_split import (
    best_split_few_rows,
    best_split_histogram,
    count_rows,
)
from cython.cimports.espalier.growing.kernels.binary.presorted_split import best_split_presorted
from cython.cimports.espalier.growing.kernels.splits.criterion import WEIGHT_TOLERANCE, is_leaf, size_of
from cython.cimports.libc.math import ceil, frexp, isnan, ldexp, rint, sqrt

NAN = math.nan
INFINITY = math.inf
LOST = 1e-24
"""A mean is corrected if its squared rounding error exceeds this share of the variance."""


def sum_root(parameters, data, nodes):
    """Create the root of a tree and sum its statistics. Return whether a stopping rule makes it a leaf."""
    with cython.nogil:
        is_open: cython.bint = sum_node(parameters, data, nodes, 0, 0, data.orders.shape[1], 0)
    return not is_open


def sum_node(parameters, data, nodes, node, start, stop, depth):
    """Write a node as a leaf, from the entries start:stop of the rows' own order. Return whether it may be split."""
    for k in range(b.N_INTS):
        nodes.ints[node, k] = -1
    nodes.reals[node, b.GAIN] = NAN
    is_constant: cython.bint = False
    if data.is_numeric:
        is_constant = _sum_numbers(data, nodes, node, start, stop)
    else:
        _count_classes(data, nodes, node, start, stop)
    return not is_leaf(parameters, cython.address(nodes.stats[node, 0]), depth, is_constant)


def _sum_numbers(data, nodes, node, start, stop):
    has_weights: cython.bint = data.kind == b.WEIGHTED_PAIR
    whole: cython.double = 0.0
    total: cython.double = 0.0
    lowest: cython.double = INFINITY
    highest: cython.double = -INFINITY
    weight: cython.double = 1.0
    for at in range(start, stop):
        row = data.orders[data.n_sorted, at] & data.row_mask
        value = data.row_value[row]
        if has_weights:
            weight = data.row_weight[row]
        whole += weight
        total += weight * value
        lowest = min(lowest, value)
        highest = max(highest, value)
    mean = min(max(total / whole, lowest), highest)
    squares: cython.double = 0.0
    apart: cython.double = 0.0
    for at in range(start, stop):
        row = data.orders[data.n_sorted, at] & data.row_mask
        value = data.row_value[row]
        if has_weights:
            weight = data.row_weight[row]
        squares += weight * (value - mean) * (value - mean)
        apart += weight * (value - mean)
    # The mean of these deviations is nearly equal to the rounding error of `mean`.
    rest = apart / whole
    corrected = mean
    if rest * rest * whole > LOST * squares:
        corrected = min(max(mean + rest, lowest), highest)
    nodes.stats[node, 0], nodes.stats[node, 1] = whole, corrected
    nodes.stats[node, 2] = max(0.0, squares - apart * apart / whole)
    nodes.stats[node, 3] = (mean - corrected) + rest
    nodes.reals[node, b.WEIGHT] = whole
    return lowest == highest


def _count_classes(data, nodes, node, start, stop):
    for k in range(nodes.stats.shape[1]):
        nodes.stats[node, k] = 0.0
    weight: cython.double = stop - start
    if data.kind == b.TWO_CLASSES:
        n_second: cython.uint = 0
        for at in range(start, stop):
            n_second += data.orders[data.n_sorted, at] >> data.row_bits
        nodes.stats[node, 0], nodes.stats[node, 1] = weight - n_second, n_second
    elif data.kind == b.CLASSES:
        for at in range(start, stop):
            nodes.stats[node, data.orders[data.n_sorted, at] >> data.row_bits] += 1.0
    else:
        weight = 0.0
        for at in range(start, stop):
            row = data.orders[data.n_sorted, at] & data.row_mask
            nodes.stats[node, data.row_class[row]] += data.row_weight[row]
            weight += data.row_weight[row]
    nodes.reals[node, b.WEIGHT] = weight


def begin_search(parameters, data, nodes, node, search):
    """Write the figures of a node that the search for its split needs."""
    weight = nodes.reals[node, b.WEIGHT]
    exponent: cython.int = 0
    frexp(weight, cython.address(exponent))
    search.weight, search.offset, search.scale, search.unit = weight, 0.0, 1.0, ldexp(1.0, -exponent)
    search.size = size_of(parameters, cython.address(nodes.stats[node, 0]))
    search.has_class_weights, search.class_scale = parameters.has_class_weights, parameters.class_scale
    if data.is_numeric:
        search.centre = _rounded(nodes.stats[node, 1], sqrt(nodes.stats[node, 2] / weight))
        search.rest = (nodes.stats[node, 1] - search.centre) + nodes.stats[node, 3]
        search.impurity = nodes.stats[node, 2] / weight
    else:
        squares: cython.double = 0.0
        for k in range(nodes.stats.shape[1]):
            share = nodes.stats[node, k] / weight
            squares += share * share
            search.totals[k] = nodes.stats[node, k]
        search.impurity = 1.0 - squares
        if data.kind == b.TWO_CLASSES:
            search.scale = 2.0 / (weight * weight)
        elif data.kind == b.WEIGHTED_PAIR:
            search.scale = 2.0
            search.totals[0] += search.totals[1]
            search.centre, search.rest = search.totals[1] / weight, 0.0
        else:
            search.offset, search.scale = -squares, 1.0 / weight
    search.tie = 1e-9 * search.impurity / search.scale
    search.min_weight = parameters.min_weight_leaf * (1.0 - WEIGHT_TOLERANCE)
    if data.kind <= b.NUMBERS:  # whole counts
        search.min_weight = max(1.0, ceil(search.min_weight))


def _rounded(mean, spread):
    """Return the mean rounded to about a thousandth of the spread. Sums of distances from it are often exact."""
    if spread == 0.0:
        return mean
    exponent: cython.int = 0
    frexp(spread, cython.address(exponent))
    unit = ldexp(1.0, exponent - 10)
    return rint(mean / unit) * unit


def best_splits(data, search, start, stop, low, high, coded_low, coded_high):
    """Find the best split of the sorted columns low:high and of the coded columns coded_low:coded_high at one node."""
    with cython.nogil:
        best_sorted_splits(data, search, start, stop, low, high)
        if coded_high > coded_low:
            count_rows(data, search, 0, start, stop, coded_low, coded_high)
            best_coded_splits(data, search, 0, start, stop, coded_low, coded_high, True)


def best_sorted_splits(data, search, start, stop, low, high):
    """Write the gain and the place of the best split of each sorted column in low:high.

    The gain is NaN if there is no split. It may also be NaN if an earlier column in low:high has a better split.
    """
    highest: cython.double = -1.0
    for column in range(low, high):
        if search.progress[1] != 0.0:
            return
        attribute = data.sorted_attribute[column]
        search.gains[attribute] = NAN
        if not search.is_constant[column]:
            place = best_split_presorted(data, search, column, start, stop, highest - 10.0 * search.tie)
            _write_split(search, column, attribute, place)
            if place >= 0:
                highest = max(highest, search.numerator / search.denominator)


def best_coded_splits(data, search, slot, start, stop, low, high, is_counted):
    """Write the gain and the place of the best split of each coded column in low:high.

    is_counted: whether the slot holds the node's counts. If not, the slot is scratch, and the rows start:stop are read.
    """
    for column in range(low, high):
        attribute = data.coded_attribute[column]
        search.gains[attribute] = NAN
        if not search.is_constant[data.n_sorted + column]:
            if is_counted:
                place = best_split_histogram(data, search, slot, data.first[column], data.n_codes[column])
            else:
                place = best_split_few_rows(data, search, slot, column, start, stop)
            _write_split(search, data.n_sorted + column, attribute, place)


def _write_split(search, column, attribute, place):
    if place == b.CONSTANT:
        search.is_constant[column] = 1
    elif place >= 0:
        search.gains[attribute] = search.offset + search.scale * (search.numerator / search.denominator)
        search.places[attribute] = place


def best_attribute(parameters, search):
    """Return the attribute with the largest gain, the first of equal ones; -1 if no split has enough gain."""
    tie = 1e-9 * search.impurity
    best: cython.longlong = -1
    best_gain: cython.double = 0.0
    for attribute in range(search.gains.shape[0]):
        gain = search.gains[attribute]
        if isnan(gain):
            continue
        if isnan(parameters.min_impurity_decrease):
            if not gain > tie:
                continue
        elif search.weight / parameters.root_weight * gain < parameters.min_impurity_decrease - tie:
            continue
        if best < 0 or gain > best_gain + tie:
            best, best_gain = attribute, gain
    return best
