"""Upper confidence limits of an error rate: plain functions of numbers, called from Python and from kernels.

Nothing here imports numba.
"""

import math
from typing import Final

from espalier.stats import beta_ratio

NORMAL: Final = 0
C45: Final = 1
EXACT: Final = 2

C45_TAIL: Final = 0.67
TINY: Final = 1e-300
HALVINGS: Final = 200
RELATIVE_STEP: Final = 1e-14
"""A step shorter than this share of the rate is the last."""


def added_errors(weight: float, errors: float, confidence: float, z: float, quantile: int) -> float:
    """Return how many errors to add to `errors` among `weight` rows to reach the upper limit (Quinlan 1993, chapter 4).

    weight, errors: real numbers, errors at most weight. z: the normal quantile of `confidence`. quantile: NORMAL
    (Wilson's limit with continuity correction), C45 (the same, with release 8's tail) or EXACT.
    """
    if confidence > 0.5 or weight <= 0.0:
        return 0.0
    if quantile == EXACT:
        return exact_errors(weight, errors, confidence)
    return normal_errors(weight, errors, confidence, z, quantile)


def exact_errors(weight: float, errors: float, confidence: float) -> float:
    """Return the errors to add to reach the binomial limit."""
    return max(weight * exact_limit(weight, errors, confidence) - errors, 0.0)


def normal_errors(weight: float, errors: float, confidence: float, z: float, quantile: int) -> float:
    """Return the errors to add to reach Wilson's limit; between no error and one error it is interpolated."""
    if errors < 1.0:
        base = weight * (1.0 - math.exp(math.log(confidence) / weight))
        if errors <= 0.0:
            return base
        return base + errors * (larger_errors(weight, 1.0, z, quantile) - base)
    return larger_errors(weight, errors, z, quantile)


def larger_errors(weight: float, errors: float, z: float, quantile: int) -> float:
    """Return the errors to add to reach Wilson's limit, for one error or more."""
    if errors + 0.5 >= weight:
        return (C45_TAIL if quantile == C45 else 1.0) * max(weight - errors, 0.0)
    f = (errors + 0.5) / weight
    square = z * z
    spread = z * math.sqrt(f / weight - f * f / weight + square / (4.0 * weight * weight))
    return weight * (f + square / (2.0 * weight) + spread) / (1.0 + square / weight) - errors


def exact_limit(weight: float, errors: float, confidence: float) -> float:
    """Return the error rate at which at most `errors` of `weight` rows are wrong with probability `confidence`.

    It solves I_{1-p}(weight - errors, errors + 1) = confidence (Clopper and Pearson 1934) by Newton's method, with
    bisection where a step would leave the interval that contains the solution.
    """
    if errors >= weight:
        return 1.0
    a, b = weight - errors, errors + 1.0
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    low, high = 0.0, 1.0
    rate = b / (a + b)
    if rate >= 1.0:
        # What is right weighs less than rounding leaves of the rest.
        return 1.0
    for _ in range(HALVINGS):
        excess = beta_ratio(1.0 - rate, a, b) - confidence
        if excess > 0.0:
            low = rate
        else:
            high = rate
        slope = math.exp(scale + (a - 1.0) * math.log1p(-rate) + (b - 1.0) * math.log(rate))
        following = rate + excess / slope if slope > TINY else high
        if not low < following < high:
            following = (low + high) / 2.0
        if abs(following - rate) <= RELATIVE_STEP * following:
            return following
        rate = following
    return rate
