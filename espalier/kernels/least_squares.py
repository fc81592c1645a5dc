"""Least squares by Cholesky's factor: solved, and solved again with a column less.

The columns are standardised (see `linear`); `gram` holds the weighted sums of their products, with
the ridge on its diagonal.
"""

import numpy as np

from espalier.kernels.jit import inner

__all__ = ["RIDGE", "factorise", "solve", "take_out"]

RIDGE = 1e-8
"""Added to the diagonal of the sums of squares and products of the standardised columns."""
ILL_CONDITIONED = 1e-6
"""Below this share of a node's weight, the least pivot asks for sums of squares taken from the rows themselves."""


@inner
def factorise(gram, n_columns, factor):  # type: ignore[no-untyped-def]
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
def solve(  # type: ignore[no-untyped-def]
    first, last, active, column_feature, column_cut, values, target, weight, node_stats, node, mean, deviation, factor,
    moment, kept, n_kept, beta, step, residual,
):  # fmt: skip
    """Write the coefficients of the kept columns and give the weighted squared residuals.

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
def _back_substitute(factor, n_columns, right):  # type: ignore[no-untyped-def]
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
def take_out(factor, kept, n_kept, dropped):  # type: ignore[no-untyped-def]
    """Take one of the kept columns out of the factor and the list; gives how many are left."""
    _drop(factor, n_kept, dropped)
    for j in range(dropped, n_kept - 1):
        kept[j] = kept[j + 1]
    return n_kept - 1


@inner
def _drop(factor, n_columns, dropped):  # type: ignore[no-untyped-def]
    """Take one column out of the factor: shift the later ones left, and turn their new subdiagonal to 0 (Givens)."""
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
