"""A linear model at every node of a tree: least squares with a small ridge; columns are dropped while that improves it.

Collinear columns are left out first: they have large coefficients of both signs.

Rows are ordered leaf by leaf in preorder, so the rows of a node are one range::

    node     0         1     2      3     4        leaf      1 1 1 3 3 4
    rows     0:6       0:3   3:6    3:5   5:6      row order 0 1 2 3 4 5

A *column* is an attribute (cut 0) or a binary column of a nominal one: 1 where the rank is at least the cut. All sums
are over columns centred and divided by their standard deviation at the node.
"""

import numpy as np

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.nodes import enlarge
from espalier.kernels.jit import compiled, inner

COLLINEAR = 1.5
"""Of columns whose coefficients exceed this many standard deviations of the target, the largest is left out."""
TIE = 1e-6
"""Coefficients that differ by at most this share of the largest are equal: the first of such columns is dropped."""
LEAST_GAIN = 1e-9
"""A criterion that improves by less than this share has not improved."""
LARGEST = 1e148
"""No term is larger at the mean of its column, so that a few hundred of them stay below the bound of an answer."""
LARGEST_CELL = 1e140
"""A column that holds a larger value has no sum of squares that is a number, and does not take part."""
BLOCK = 256

RIDGE = 1e-8
"""Added to the diagonal of the sums of squares and products of the standardised columns."""
ILL_CONDITIONED = 1e-6
"""Below this share of a node's weight, the least pivot asks for sums of squares taken from the rows themselves."""


@compiled
def order_rows(values, feature, test, threshold, code_start, code_branch, child_start, child):
    """Send complete rows down a tree and list them leaf by leaf.

    values: float64 (F, rows), numbers or codes. The rest: as in `Tree`. Returns (order int32 (rows), first_row int64
    (n+1)): node i's own rows, if it is a leaf, are order[first_row[i]:first_row[i+1]].
    """
    n_rows, n_nodes = values.shape[1], len(feature)
    leaf = np.empty(n_rows, np.int32)
    first_row = np.zeros(n_nodes + 1, np.int64)
    for row in range(n_rows):
        node = 0
        while test[node] != c.LEAF:
            value = values[feature[node], row]
            branch = 0 if value <= threshold[node] else 1
            if test[node] == c.NOMINAL:
                branch = code_branch[code_start[node] + np.int64(value)]
            node = child[child_start[node] + branch]
        leaf[row] = node
        first_row[node + 1] += 1
    for node in range(n_nodes):
        first_row[node + 1] += first_row[node]
    place = first_row[:-1].copy()
    order = np.empty(n_rows, np.int32)
    for row in range(n_rows):
        order[place[leaf[row]]] = row
        place[leaf[row]] += 1
    return order, first_row


@compiled
def fit_nodes(
    size, first_row, tested, column_feature, column_cut, values, target, weight, node_stats, most_columns, state
):
    """Fit each node's rows by the columns tested at it and below it, then drop columns (M5).

    size: int32 (n). first_row: int64 (n+1), of `order_rows`. tested: int32 (n), the column that a node tests, -1 at a
    leaf. column_feature, column_cut: int32 (columns). values: float64 (F, rows), numbers or ranks; target, weight:
    float64 (rows), all in the order of `order_rows`. node_stats: float64 (n, 3): weight, mean, sum of squared
    deviations. most_columns: of more, those of the heaviest tests are taken. state: float64 (2), progress.

    Returns (status, start int64 (n+1), column int32 (terms), coefficient float64 (terms), intercept float64 (n),
    squares float64 (n): weighted squared residuals).
    """
    n_nodes, n_columns, n_rows = len(size), len(column_feature), values.shape[1]
    start = np.zeros(n_nodes + 1, np.int64)
    term = np.empty(max(16, n_nodes), np.int32)
    coefficient = np.empty(max(16, n_nodes), np.float64)
    intercept, squares = node_stats[:, 1].copy(), node_stats[:, 2].copy()
    width = min(n_columns, most_columns)
    heaviest = np.zeros(n_columns, np.float64)
    listed = np.empty(n_columns, np.int32)
    gram, factor = np.empty((width, width), np.float64), np.empty((width, width), np.float64)
    moment, mean, deviation = np.empty(width), np.empty(width), np.empty(width)
    beta, trial, step = np.empty(width), np.empty(width), np.empty(width)
    block, residual = np.empty((BLOCK, width), np.float64), np.empty(n_rows, np.float64)
    active, kept = np.empty(width, np.int32), np.empty(width, np.int32)
    done = 0.0
    for node in range(n_nodes):
        if state[1] != 0.0:
            return c.STOPPED, start, term, coefficient, intercept, squares
        first, last = first_row[node], first_row[node + size[node]]
        n_listed = _list_columns(node, size[node], tested, node_stats, heaviest, listed, width)
        n_active = _standardise(
            first, last, listed, n_listed, column_feature, column_cut, values, weight, mean, deviation, active
        )
        n_kept = 0
        if n_active > 0 and 0.0 < node_stats[node, 2] <= LARGEST_CELL * LARGEST_CELL:
            _sum_products(
                first, last, active, n_active, column_feature, column_cut, values, target, weight, node_stats[node, 1],
                mean, deviation, block, gram, moment,
            )  # fmt: skip
            n_kept, sse = _fit_and_drop(
                first, last, active, n_active, column_feature, column_cut, values, target, weight, node_stats, node,
                mean, deviation, gram, factor, moment, beta, trial, step, residual, kept,
            )  # fmt: skip
            if n_kept > 0:
                squares[node] = sse
        for j in range(n_kept):
            if not abs(beta[j] / deviation[kept[j]]) * max(1.0, abs(mean[kept[j]])) <= LARGEST:
                # Larger than an answer may be: the node keeps its mean.
                n_kept = 0
                squares[node] = node_stats[node, 2]
        start[node + 1] = start[node] + n_kept
        if start[node + 1] > len(term):
            term = enlarge(term, term.size, max(2 * term.size, start[node + 1]))
            coefficient = enlarge(coefficient, coefficient.size, max(2 * coefficient.size, start[node + 1]))
        for j in range(n_kept):
            slope = beta[j] / deviation[kept[j]]
            term[start[node] + j] = active[kept[j]]
            coefficient[start[node] + j] = slope
            intercept[node] -= slope * mean[kept[j]]
        if size[node] == 1:
            done += node_stats[node, 0]
            state[0] = done / node_stats[0, 0]
    return c.DONE, start, term[: start[n_nodes]], coefficient[: start[n_nodes]], intercept, squares


@compiled
def _list_columns(node, size, tested, node_stats, heaviest, listed, width):
    """Write the columns tested in a subtree, ascending, into `listed`; at most `width`, those of the heaviest tests."""
    heaviest[:] = 0.0
    for below in range(node, node + size):
        column = tested[below]
        if column >= 0:
            heaviest[column] = max(heaviest[column], node_stats[below, 0])
    n_tested = 0
    for column in range(len(heaviest)):
        n_tested += heaviest[column] > 0.0
    if n_tested > width:
        ranked = np.argsort(-heaviest, kind="mergesort")
        for place in range(width, n_tested):
            heaviest[ranked[place]] = 0.0
    n_listed = 0
    for column in range(len(heaviest)):
        if heaviest[column] > 0.0:
            listed[n_listed] = column
            n_listed += 1
    return n_listed


@inner
def _standardise(first, last, listed, n_listed, column_feature, column_cut, values, weight, mean, deviation, active):
    """Write mean and population deviation of each listed column that varies into `active`. Return how many.

    A column with a value beyond `LARGEST_CELL`, or whose deviation is 0 for its size, does not take part.
    """
    n_active = 0
    for place in range(n_listed):
        feature, cut = column_feature[listed[place]], column_cut[listed[place]]
        total, whole = 0.0, 0.0
        low, high = np.inf, -np.inf
        for row in range(first, last):
            x = values[feature, row]
            if cut > 0:
                x = 1.0 if x >= cut else 0.0
            low, high = min(low, x), max(high, x)
            if max(-low, high) > LARGEST_CELL:
                break
            total += weight[row] * x
            whole += weight[row]
        if not (low < high and max(-low, high) <= LARGEST_CELL):
            continue
        centre, spread = total / whole, 0.0
        for row in range(first, last):
            x = values[feature, row]
            if cut > 0:
                x = 1.0 if x >= cut else 0.0
            spread += weight[row] * (x - centre) * (x - centre)
        spread = np.sqrt(spread / whole)
        if not (0.0 < spread < np.inf):
            continue
        mean[n_active], deviation[n_active] = centre, spread
        active[n_active] = listed[place]
        n_active += 1
    return n_active


@inner
def _sum_products(
    first, last, active, n_active, column_feature, column_cut, values, target, weight, target_mean, mean, deviation,
    block, gram, moment,
):  # fmt: skip
    """Write the weighted sums of products of the standardised columns (upper triangle), and those with the target."""
    for j in range(n_active):
        moment[j] = 0.0
        for k in range(j, n_active):
            gram[j, k] = 0.0
    for begin in range(first, last, BLOCK):
        n_block = min(BLOCK, last - begin)
        for j in range(n_active):
            feature, cut = column_feature[active[j]], column_cut[active[j]]
            for at in range(n_block):
                x = values[feature, begin + at]
                if cut > 0:
                    x = 1.0 if x >= cut else 0.0
                block[at, j] = (x - mean[j]) / deviation[j]
        for at in range(n_block):
            y = target[begin + at] - target_mean
            for j in range(n_active):
                z = weight[begin + at] * block[at, j]
                moment[j] += z * y
                for k in range(j, n_active):
                    gram[j, k] += z * block[at, k]
    for j in range(n_active):
        gram[j, j] += RIDGE


@inner
def _fit_and_drop(
    first, last, active, n_active, column_feature, column_cut, values, target, weight, node_stats, node, mean,
    deviation, gram, factor, moment, beta, trial, step, residual, kept,
):  # fmt: skip
    """Solve, leave out the largest coefficient while it is too large, then drop the smallest while that improves.

    It pays while SSE/SSE_full·(n − p_full) + 2p falls; "full" is what is left once no coefficient is too large.

    Writes the kept columns (their places among `active`) and their coefficients on the standardised columns. Returns
    (how many, weighted squared residuals).
    """
    n = node_stats[node, 0]
    n_kept = n_active
    for j in range(n_active):
        kept[j] = j
    factorise(gram, n_active, factor)
    sse = solve(
        first, last, active, column_feature, column_cut, values, target, weight, node_stats, node, mean, deviation,
        factor, moment, kept, n_kept, beta, step, residual,
    )  # fmt: skip
    largest_coefficient = COLLINEAR * np.sqrt(node_stats[node, 2] / n)
    while n_kept > 0:
        dropped = _largest(beta, n_kept)
        if not abs(beta[dropped]) > largest_coefficient:
            break
        n_kept = take_out(factor, kept, n_kept, dropped)
        sse = solve(
            first, last, active, column_feature, column_cut, values, target, weight, node_stats, node, mean, deviation,
            factor, moment, kept, n_kept, beta, step, residual,
        )  # fmt: skip
    if not (0.0 < sse < np.inf):
        # Not a number, or 0, of which no ratio exists: the node keeps its mean.
        return 0, node_stats[node, 2]
    full_sse, full_parameters = sse, n_kept + 1
    criterion = n - full_parameters + 2 * full_parameters
    while n_kept > 0:
        dropped = _smallest(beta, n_kept)
        column = kept[dropped]
        n_kept = take_out(factor, kept, n_kept, dropped)
        fewer_sse = solve(
            first, last, active, column_feature, column_cut, values, target, weight, node_stats, node, mean, deviation,
            factor, moment, kept, n_kept, trial, step, residual,
        )  # fmt: skip
        fewer = fewer_sse / full_sse * (n - full_parameters) + 2 * (n_kept + 1)
        if not fewer < criterion - LEAST_GAIN * abs(criterion):
            for j in range(n_kept, dropped, -1):
                kept[j] = kept[j - 1]
            kept[dropped] = column
            n_kept += 1
            break
        criterion, sse = fewer, fewer_sse
        for j in range(n_kept):
            beta[j] = trial[j]
    return n_kept, sse


@inner
def _largest(beta, n_kept):
    """Return the place of the largest of the first coefficients, the first of equal ones."""
    largest = 0.0
    for j in range(n_kept):
        largest = max(largest, abs(beta[j]))
    place = 0
    while place < n_kept - 1 and abs(beta[place]) < largest - TIE * largest:
        place += 1
    return place


@inner
def _smallest(beta, n_kept):
    """Return the place of the smallest coefficient, the first of equal ones."""
    smallest, largest = np.inf, 0.0
    for j in range(n_kept):
        smallest, largest = min(smallest, abs(beta[j])), max(largest, abs(beta[j]))
    place = 0
    while abs(beta[place]) > smallest + TIE * largest:
        place += 1
    return place


@inner
def factorise(gram, n_columns, factor):
    """Write the upper triangular factor of Cholesky: gram = factorᵀ·factor; a pivot is never below the ridge."""
    for j in range(n_columns):
        for k in range(j, n_columns):
            factor[j, k] = gram[j, k]
    for i in range(n_columns):
        pivot = np.sqrt(max(factor[i, i], RIDGE))
        factor[i, i] = pivot
        for k in range(i + 1, n_columns):
            factor[i, k] /= pivot
        for j in range(i + 1, n_columns):
            share = factor[i, j]
            for k in range(j, n_columns):
                factor[j, k] -= share * factor[i, k]


@inner
def solve(
    first, last, active, column_feature, column_cut, values, target, weight, node_stats, node, mean, deviation, factor,
    moment, kept, n_kept, beta, step, residual,
):  # fmt: skip
    """Write the coefficients of the kept columns and return the weighted squared residuals.

    Where the columns are nearly dependent, the solution is refined once with residuals of the rows themselves (Björck
    1987, corrected seminormal equations), and the squares are taken from them.
    """
    if n_kept == 0:
        return node_stats[node, 2]
    least = np.inf
    for j in range(n_kept):
        beta[j] = moment[kept[j]]
        least = min(least, factor[j, j] * factor[j, j])
    _back_substitute(factor, n_kept, beta)
    sse = node_stats[node, 2]
    for j in range(n_kept):
        sse -= beta[j] * (moment[kept[j]] + RIDGE * beta[j])
    if least > ILL_CONDITIONED * node_stats[node, 0] and sse > ILL_CONDITIONED * node_stats[node, 2]:
        return sse
    for refining in range(2):
        for row in range(first, last):
            residual[row] = target[row] - node_stats[node, 1]
        for j in range(n_kept):
            feature, cut = column_feature[active[kept[j]]], column_cut[active[kept[j]]]
            slope, centre = beta[j] / deviation[kept[j]], mean[kept[j]]
            for row in range(first, last):
                x = values[feature, row]
                if cut > 0:
                    x = 1.0 if x >= cut else 0.0
                residual[row] -= slope * (x - centre)
        if refining == 1:
            break
        for j in range(n_kept):
            feature, cut = column_feature[active[kept[j]]], column_cut[active[kept[j]]]
            centre, total = mean[kept[j]], 0.0
            for row in range(first, last):
                x = values[feature, row]
                if cut > 0:
                    x = 1.0 if x >= cut else 0.0
                total += weight[row] * residual[row] * (x - centre)
            step[j] = total / deviation[kept[j]] - RIDGE * beta[j]
        _back_substitute(factor, n_kept, step)
        for j in range(n_kept):
            beta[j] += step[j]
    sse = 0.0
    for row in range(first, last):
        sse += weight[row] * residual[row] * residual[row]
    return sse


@inner
def _back_substitute(factor, n_columns, right):
    """Solve factorᵀ·factor·x = right in place."""
    for i in range(n_columns):
        total = right[i]
        for j in range(i):
            total -= factor[j, i] * right[j]
        right[i] = total / factor[i, i]
    for i in range(n_columns - 1, -1, -1):
        total = right[i]
        for j in range(i + 1, n_columns):
            total -= factor[i, j] * right[j]
        right[i] = total / factor[i, i]


@inner
def take_out(factor, kept, n_kept, dropped):
    """Remove one of the kept columns from the factor and the list. Return how many are left."""
    _drop(factor, n_kept, dropped)
    for j in range(dropped, n_kept - 1):
        kept[j] = kept[j + 1]
    return n_kept - 1


@inner
def _drop(factor, n_columns, dropped):
    """Remove one column from the factor: shift the later ones left, and rotate their new subdiagonal to 0 (Givens)."""
    for j in range(dropped, n_columns - 1):
        for i in range(j + 2):
            factor[i, j] = factor[i, j + 1]
    for i in range(dropped, n_columns - 1):
        below = factor[i + 1, i]
        length = np.sqrt(factor[i, i] * factor[i, i] + below * below)
        cosine, sine = factor[i, i] / length, below / length
        for k in range(i, n_columns - 1):
            upper, lower = factor[i, k], factor[i + 1, k]
            factor[i, k] = cosine * upper + sine * lower
            factor[i + 1, k] = cosine * lower - sine * upper
