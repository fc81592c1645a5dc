"""A linear model at every node: least squares with a small ridge. Regressors are dropped while this improves the model.

Collinear regressors are left out first: least squares gives them large coefficients of opposite signs.

Rows are ordered leaf by leaf in preorder, so the rows of a node are one range::

    node     0         1     2      3     4        leaf      1 1 1 3 3 4
    rows     0:6       0:3   3:6    3:5   5:6      row order 0 1 2 3 4 5

A regressor with cut 0 is the value of an ordered attribute. A regressor with another cut belongs to a nominal
attribute: it is 1 where the category's rank is at least the cut, else 0. All sums are over standardised regressors,
which are centred and divided by their standard deviation at the node.
"""

import cython
import numpy as np
from cython.cimports.espalier.growing.kernels.nodes import enlarge
from cython.cimports.libc.math import INFINITY, fabs, sqrt

COLLINEAR = 1.5
"""A regressor is left out if its standardised coefficient exceeds this many standard deviations of the target."""
TIE = 1e-6
"""Coefficients that differ by at most this share of the largest count as equal; of equal ones, the first is dropped."""
LEAST_GAIN = 1e-9
"""A criterion that improves by less than this share has not improved."""
LARGEST = 1e147
"""Bound on a coefficient and on its product with the regressor's mean. A sum of 256 products is then below 1e150."""
LARGEST_CELL = 1e140
"""A regressor with a value of larger magnitude does not take part: its sum of squares could overflow."""

BLOCK = 256

RIDGE = 1e-8
"""Added to the diagonal of the sums of squares and products of the standardised regressors."""
ILL_CONDITIONED = 1e-6
"""`solve` refines a fit if (smallest squared pivot) / weight or SSE / (squared deviations) is at most this."""
EXACT = 1e-32
"""Least SSE of a fit, as a share of the squared deviations: the square of a double's rounding error."""


class LinearFit:
    """Rows and regressors of all nodes, and the fit of one node.

    Args:
        feature: int32 (regressors); the attribute of each regressor.
        cut: int32 (regressors); the cut of each regressor.
        values: float64 (F, rows), numbers or ranks; rows ordered leaf by leaf.
        target, weight: float64 (rows), in the same order.
        node_stats: float64 (n, 3), per node: weight, mean, sum of squared deviations.
        most: Maximum number of regressors of a node. If a node has more, those tested at the heaviest nodes are taken.
    """

    def __init__(self, feature, cut, values, target, weight, node_stats, most):
        self.feature, self.cut, self.values = feature, cut, values
        self.target, self.weight, self.node_stats = target, weight, node_stats
        n_regressors, n_rows = len(feature), len(target)
        width = min(n_regressors, most)
        self.heaviest, self.listed = np.empty(n_regressors), np.empty(n_regressors, np.int32)
        self.active, self.kept = np.empty((2, width), np.int32)
        self.mean, self.deviation, self.moment = np.empty((3, width))
        self.gram, self.factor = np.empty((2, width, width))
        self.block, self.residual = np.empty((BLOCK, width)), np.empty(n_rows)
        self.beta, self.trial, self.step = np.empty((3, width))


def fit_nodes(fit, size, first_row, tested, state):
    """Fit a model to the rows of each node, from the regressors tested in its subtree, then drop regressors (M5).

    size: int32 (n), nodes in each subtree. first_row: int64 (n + 1), first row of each node. tested: int32 (n), the
    regressor that each node tests, -1 at a leaf. state: float64 (2), share of finished weight (written), stop flag.

    Returns (start, regressor, coefficient, intercept, squares). start: int64 (n + 1); the terms of node i are
    ``start[i]:start[i + 1]``. regressor: int32 (terms). coefficient: float64 (terms). intercept: float64 (n). squares:
    float64 (n), weighted sums of squared residuals. After a stop, the arrays are incomplete.
    """
    n_nodes = size.shape[0]
    starts = np.zeros(n_nodes + 1, np.int64)
    intercepts, residuals = np.array(fit.node_stats[:, 1]), np.array(fit.node_stats[:, 2])
    start: cython.longlong[::1] = starts
    intercept: cython.double[::1] = intercepts
    squares: cython.double[::1] = residuals
    term: cython.int[::1] = np.empty(max(16, n_nodes), np.int32)
    coefficient: cython.double[::1] = np.empty(max(16, n_nodes))
    done: cython.double = 0.0
    with cython.nogil:
        for node in range(n_nodes):
            if state[1] != 0.0:
                break
            fit.first, fit.last = first_row[node], first_row[node + size[node]]
            fit.mass, fit.target_mean = fit.node_stats[node, 0], fit.node_stats[node, 1]
            fit.deviations = fit.node_stats[node, 2]
            fit.n_kept = 0
            if 0.0 < fit.deviations <= LARGEST_CELL * LARGEST_CELL:
                list_regressors(fit, node, size[node], tested)
                standardise(fit)
                if fit.n_active > 0:
                    sum_products(fit)
                    squares[node] = fit_and_drop(fit)
            for j in range(fit.n_kept):
                slope = fit.beta[j] / fit.deviation[fit.kept[j]]
                if not fabs(slope) * max(1.0, fabs(fit.mean[fit.kept[j]])) <= LARGEST:
                    # Predictions would be too large: the node keeps its mean.
                    fit.n_kept = 0
                    squares[node] = fit.deviations
            start[node + 1] = start[node] + fit.n_kept
            if start[node + 1] > term.shape[0]:
                room = max(2 * term.shape[0], start[node + 1])
                term = enlarge(term, start[node], room)
                coefficient = enlarge(coefficient, start[node], room)
            for j in range(fit.n_kept):
                slope = fit.beta[j] / fit.deviation[fit.kept[j]]
                term[start[node] + j] = fit.active[fit.kept[j]]
                coefficient[start[node] + j] = slope
                intercept[node] -= slope * fit.mean[fit.kept[j]]
            if size[node] == 1:
                done += fit.mass
                state[0] = done / fit.node_stats[0, 0]
    n_terms = start[n_nodes]
    return starts, np.array(term[:n_terms]), np.array(coefficient[:n_terms]), intercepts, residuals


def list_regressors(fit, node, size, tested):
    """List the regressors tested in a subtree, ascending. If there are too many, list those of its heaviest nodes."""
    fit.heaviest[:] = 0.0
    for below in range(node, node + size):
        regressor = tested[below]
        if regressor >= 0:
            fit.heaviest[regressor] = max(fit.heaviest[regressor], fit.node_stats[below, 0])
    n_tested: cython.int = 0
    for regressor in range(fit.heaviest.shape[0]):
        n_tested += fit.heaviest[regressor] > 0.0
    if n_tested > fit.active.shape[0]:
        keep_heaviest(fit)
    fit.n_listed = 0
    for regressor in range(fit.heaviest.shape[0]):
        if fit.heaviest[regressor] > 0.0:
            fit.listed[fit.n_listed] = regressor
            fit.n_listed += 1


def keep_heaviest(fit):
    """Drop regressors beyond the maximum number. Those tested at the heaviest nodes stay; of equal ones, the first."""
    heaviest = np.asarray(fit.heaviest)
    heaviest[np.argsort(-heaviest, kind="stable")[len(fit.active) :]] = 0.0


def cell(fit, regressor, row):
    """Return the value of a regressor in a row, not standardised."""
    x: cython.double = fit.values[fit.feature[regressor], row]
    if fit.cut[regressor] > 0:
        return 1.0 if x >= fit.cut[regressor] else 0.0
    return x


def standardise(fit):
    """Compute the mean and the population standard deviation of each listed regressor, and list those that vary.

    A regressor with a value beyond `LARGEST_CELL`, or with a deviation rounded to 0 or infinity, does not take part.
    """
    fit.n_active = 0
    for place in range(fit.n_listed):
        regressor = fit.listed[place]
        total: cython.double = 0.0
        whole: cython.double = 0.0
        low: cython.double = INFINITY
        high: cython.double = -INFINITY
        for row in range(fit.first, fit.last):
            x = cell(fit, regressor, row)
            low, high = min(low, x), max(high, x)
            if max(-low, high) > LARGEST_CELL:
                break
            total += fit.weight[row] * x
            whole += fit.weight[row]
        if not (low < high and max(-low, high) <= LARGEST_CELL):
            continue
        centre = total / whole
        spread: cython.double = 0.0
        apart: cython.double = 0.0
        for row in range(fit.first, fit.last):
            x = cell(fit, regressor, row)
            apart += fit.weight[row] * (x - centre)
            spread += fit.weight[row] * (x - centre) * (x - centre)
        # The mean of these deviations is nearly equal to the rounding error of `centre`.
        centre += apart / whole
        spread = sqrt(max(0.0, spread / whole - (apart / whole) * (apart / whole)))
        if 0.0 < spread < INFINITY:
            fit.mean[fit.n_active], fit.deviation[fit.n_active] = centre, spread
            fit.active[fit.n_active] = regressor
            fit.n_active += 1


def sum_products(fit):
    """Sum the weighted products of standardised regressors, pair by pair (upper triangle), and with the target."""
    n_active = fit.n_active
    fit.moment[:n_active] = 0.0
    fit.gram[:n_active, :n_active] = 0.0
    begin: cython.longlong = fit.first
    while begin < fit.last:
        n_block: cython.longlong = min(BLOCK, fit.last - begin)
        for j in range(n_active):
            for at in range(n_block):
                fit.block[at, j] = (cell(fit, fit.active[j], begin + at) - fit.mean[j]) / fit.deviation[j]
        for at in range(n_block):
            for j in range(n_active):
                weighted = fit.weight[begin + at] * fit.block[at, j]
                fit.moment[j] += weighted * (fit.target[begin + at] - fit.target_mean)
                for k in range(j, n_active):
                    fit.gram[j, k] += weighted * fit.block[at, k]
        begin += n_block
    for j in range(n_active):
        fit.gram[j, j] += RIDGE


def fit_and_drop(fit):
    """Fit all regressors, leave out those with too large coefficients, then drop others while the model improves.

    Each drop removes the coefficient of smallest magnitude. The model improves if SSE/SSE_full·(n − p_full) + 2p falls.
    SSE is the weighted sum of squared residuals, n the node's weight, and p the number of coefficients plus 1. "full"
    is the model before the first such drop. Writes the remaining regressors and their standardised coefficients.
    Returns the SSE. If SSE_full is not finite, no regressor remains, and the mean's SSE is returned.
    """
    fit.n_kept = fit.n_active
    for j in range(fit.n_active):
        fit.kept[j] = j
    factorise(fit)
    sse: cython.double = solve(fit, fit.beta)
    largest_coefficient = COLLINEAR * sqrt(fit.deviations / fit.mass)
    while fit.n_kept > 0:
        dropped = largest_of(fit.beta, fit.n_kept)
        if not fabs(fit.beta[dropped]) > largest_coefficient:
            break
        drop(fit, dropped)
        sse = solve(fit, fit.beta)
    if not sse < INFINITY:
        fit.n_kept = 0
        return fit.deviations
    full_sse, full_parameters = sse, fit.n_kept + 1
    criterion = fit.mass - full_parameters + 2 * full_parameters
    while fit.n_kept > 0:
        dropped = smallest_of(fit.beta, fit.n_kept)
        regressor = fit.kept[dropped]
        drop(fit, dropped)
        fewer_sse = solve(fit, fit.trial)
        fewer = fewer_sse / full_sse * (fit.mass - full_parameters) + 2 * (fit.n_kept + 1)
        if not fewer < criterion - LEAST_GAIN * fabs(criterion):
            for j in range(fit.n_kept, dropped, -1):
                fit.kept[j] = fit.kept[j - 1]
            fit.kept[dropped] = regressor
            fit.n_kept += 1
            break
        criterion, sse = fewer, fewer_sse
        fit.beta[: fit.n_kept] = fit.trial[: fit.n_kept]
    return sse


def largest_of(beta, n_kept):
    """Return the index of the coefficient of largest magnitude among the first `n_kept`, the first of equal ones."""
    largest: cython.double = 0.0
    for j in range(n_kept):
        largest = max(largest, fabs(beta[j]))
    place: cython.int = 0
    while place < n_kept - 1 and fabs(beta[place]) < largest - TIE * largest:
        place += 1
    return place


def smallest_of(beta, n_kept):
    """Return the index of the coefficient of smallest magnitude among the first `n_kept`, the first of equal ones."""
    smallest: cython.double = INFINITY
    largest: cython.double = 0.0
    for j in range(n_kept):
        smallest, largest = min(smallest, fabs(beta[j])), max(largest, fabs(beta[j]))
    place: cython.int = 0
    while fabs(beta[place]) > smallest + TIE * largest:
        place += 1
    return place


def factorise(fit):
    """Compute the upper triangular Cholesky factor, gram = factorᵀ·factor. A squared pivot is never below the ridge."""
    for j in range(fit.n_active):
        for k in range(j, fit.n_active):
            fit.factor[j, k] = fit.gram[j, k]
    for i in range(fit.n_active):
        pivot = sqrt(max(fit.factor[i, i], RIDGE))
        fit.factor[i, i] = pivot
        for k in range(i + 1, fit.n_active):
            fit.factor[i, k] /= pivot
        for j in range(i + 1, fit.n_active):
            share = fit.factor[i, j]
            for k in range(j, fit.n_active):
                fit.factor[j, k] -= share * fit.factor[i, k]


def solve(fit, beta):
    """Write the coefficients of the remaining regressors. Return the weighted sum of squared residuals.

    If the regressors are nearly dependent or the fit is nearly exact, the solution is refined once from the residuals
    of the rows (corrected seminormal equations, Björck 1987). The sum is then taken over the new residuals.
    """
    if fit.n_kept == 0:
        return fit.deviations
    least: cython.double = INFINITY
    for j in range(fit.n_kept):
        beta[j] = fit.moment[fit.kept[j]]
        least = min(least, fit.factor[j, j] * fit.factor[j, j])
    back_substitute(fit, beta)
    sse: cython.double = fit.deviations
    for j in range(fit.n_kept):
        sse -= beta[j] * (fit.moment[fit.kept[j]] + RIDGE * beta[j])
    if least > ILL_CONDITIONED * fit.mass and sse > ILL_CONDITIONED * fit.deviations:
        return sse
    write_residuals(fit, beta)
    for j in range(fit.n_kept):
        regressor, centre = fit.active[fit.kept[j]], fit.mean[fit.kept[j]]
        total: cython.double = 0.0
        for row in range(fit.first, fit.last):
            total += fit.weight[row] * fit.residual[row] * (cell(fit, regressor, row) - centre)
        fit.step[j] = total / fit.deviation[fit.kept[j]] - RIDGE * beta[j]
    back_substitute(fit, fit.step)
    for j in range(fit.n_kept):
        beta[j] += fit.step[j]
    write_residuals(fit, beta)
    sse = 0.0
    for row in range(fit.first, fit.last):
        sse += fit.weight[row] * fit.residual[row] * fit.residual[row]
    return EXACT * fit.deviations if sse < EXACT * fit.deviations else sse  # a divisor in `fit_and_drop`


def write_residuals(fit, beta):
    """Write the residuals of the node's rows. beta: the standardised coefficients of the remaining regressors."""
    for row in range(fit.first, fit.last):
        fit.residual[row] = fit.target[row] - fit.target_mean
    for j in range(fit.n_kept):
        regressor, centre = fit.active[fit.kept[j]], fit.mean[fit.kept[j]]
        slope = beta[j] / fit.deviation[fit.kept[j]]
        for row in range(fit.first, fit.last):
            fit.residual[row] -= slope * (cell(fit, regressor, row) - centre)


def back_substitute(fit, right):
    """Solve factorᵀ·factor·x = right in place."""
    for i in range(fit.n_kept):
        total: cython.double = right[i]
        for j in range(i):
            total -= fit.factor[j, i] * right[j]
        right[i] = total / fit.factor[i, i]
    for i in range(fit.n_kept - 1, -1, -1):
        total = right[i]
        for j in range(i + 1, fit.n_kept):
            total -= fit.factor[i, j] * right[j]
        right[i] = total / fit.factor[i, i]


def drop(fit, dropped):
    """Remove a regressor from the list and the factor. dropped: its index in `fit.kept`.

    The later columns of the factor move left, and their new subdiagonal is rotated to 0 (Givens).
    """
    fit.n_kept -= 1
    for j in range(dropped, fit.n_kept):
        fit.kept[j] = fit.kept[j + 1]
        for i in range(j + 2):
            fit.factor[i, j] = fit.factor[i, j + 1]
    for i in range(dropped, fit.n_kept):
        below = fit.factor[i + 1, i]
        length = sqrt(fit.factor[i, i] * fit.factor[i, i] + below * below)
        cosine, sine = fit.factor[i, i] / length, below / length
        for k in range(i, fit.n_kept):
            upper, lower = fit.factor[i, k], fit.factor[i + 1, k]
            fit.factor[i, k] = cosine * upper + sine * lower
            fit.factor[i + 1, k] = cosine * lower - sine * upper
