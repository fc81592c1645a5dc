"""Probabilities of the standard test statistics, from their textbook series."""

import math
from typing import Final

__all__ = ["binomial_two_sided", "student_t_two_sided"]

MAX_TERMS: Final = 10_000
PRECISION: Final = 1e-15
TINY: Final = 1e-300


def student_t_two_sided(statistic: float, degrees: float) -> float:
    """Give the probability that |t| is at least this large by chance, Student's t with `degrees` of freedom.

    p = I_x(degrees/2, 1/2) with x = degrees/(degrees + t²) (Abramowitz and Stegun 1964, 26.7.1).

    >>> round(student_t_two_sided(2.262157, 9), 6)
    0.05
    """
    if math.isinf(statistic):
        return 0.0
    return incomplete_beta(degrees / (degrees + statistic * statistic), degrees / 2, 0.5)


def binomial_two_sided(successes: int, trials: int) -> float:
    """Give the probability of a split at least as uneven as this one, each side being equally likely.

    >>> round(binomial_two_sided(1, 10), 12)
    0.021484375
    """
    if trials == 0:
        return 1.0
    fewer = min(successes, trials - successes)
    # log space: 2^-trials underflows for thousands of trials
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in range(fewer + 1)]
    tail = math.fsum(math.exp(log - trials * math.log(2)) for log in logs)
    return min(1.0, 2 * tail)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Give the regularised incomplete beta function I_x(a, b) (Abramowitz and Stegun 1964, 26.5.8).

    The continued fraction is evaluated by Lentz's method (1976); beyond its quick region the symmetry
    I_x(a, b) = 1 − I_{1−x}(b, a) is used.
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluate 1 + d1/(1 + d2/(1 + …)) from the front."""
    value, above, below = 1.0, 1.0, 0.0
    for term in range(1, MAX_TERMS):
        half = term // 2
        if term % 2:
            part = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            part = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        below = 1.0 / (1.0 + part * below or TINY)
        above = 1.0 + part / above or TINY
        value *= above * below
        if abs(above * below - 1.0) < PRECISION:
            break
    return value
