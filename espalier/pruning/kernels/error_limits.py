"""Upper confidence limits of an error rate: functions of numbers, called from Python and from kernels."""

from cython.cimports.espalier.pruning.kernels.constants import C45, EXACT
from cython.cimports.espalier.stats import beta_ratio
from cython.cimports.libc.math import exp, expm1, fabs, lgamma, log, log1p, sqrt

C45_TAIL = 0.67
TINY = 1e-300
HALVINGS = 200
RELATIVE_STEP = 1e-14
"""The iteration ends with a step that is at most this share of the rate."""


def added_errors(weight, errors, confidence, z, quantile):
    """Return how many errors must be added to the observed ones to reach the upper limit (Quinlan 1993, chapter 4).

    weight, errors: the weight of all rows and of the misclassified rows. confidence: probability that the true error
    rate is above the limit; above 0.5, nothing is added. z: the normal quantile for `confidence`, or C4.5's
    approximation. quantile: EXACT (without z), NORMAL (Wilson's limit with continuity correction), or C45: like NORMAL,
    but if errors ≥ 1 and errors + 0.5 ≥ weight, 0.67 of the correctly classified weight is added, as in C4.5 release 8.
    """
    if confidence > 0.5 or weight <= 0.0:
        return 0.0
    # Without errors, the limit p is known: (1 - p)^weight = confidence. Its difference from 1 may be below rounding.
    base = -weight * expm1(log(confidence) / weight)
    if errors <= 0.0:
        return base
    if quantile == EXACT:
        return max(weight * exact_limit(weight, errors, confidence) - errors, 0.0)
    if errors >= 1.0:
        return larger_errors(weight, errors, z, quantile)
    # Below one error, the result is interpolated between those of no error and of one error.
    return base + errors * (larger_errors(weight, 1.0, z, quantile) - base)


def larger_errors(weight, errors, z, quantile):
    """Return the errors to add to reach Wilson's limit, for one error or more."""
    if errors + 0.5 >= weight:
        return (C45_TAIL if quantile == C45 else 1.0) * max(weight - errors, 0.0)
    f = (errors + 0.5) / weight
    square = z * z
    spread = z * sqrt(f / weight - f * f / weight + square / (4.0 * weight * weight))
    return weight * (f + square / (2.0 * weight) + spread) / (1.0 + square / weight) - errors


def exact_limit(weight, errors, confidence):
    """Return the error rate at which at most `errors` of `weight` rows are wrong with probability `confidence`.

    The rate p solves I_{1-p}(weight - errors, errors + 1) = confidence (Clopper and Pearson 1934). Newton's method is
    used, with bisection where a step would leave the interval that contains the solution.
    """
    if errors >= weight:
        return 1.0
    a, b = weight - errors, errors + 1.0
    scale = lgamma(a + b) - lgamma(a) - lgamma(b)
    low, high = 0.0, 1.0
    rate = b / (a + b)
    if rate >= 1.0:
        # The weight of the correctly classified rows is less than the rounding error of `errors`.
        return 1.0
    for _ in range(HALVINGS):
        excess = beta_ratio(1.0 - rate, a, b) - confidence
        if excess > 0.0:
            low = rate
        else:
            high = rate
        slope = exp(scale + (a - 1.0) * log1p(-rate) + (b - 1.0) * log(rate))
        following = rate + excess / slope if slope > TINY else high
        if not low < following < high:
            following = (low + high) / 2.0
        if fabs(following - rate) <= RELATIVE_STEP * following:
            return following
        rate = following
    return rate
