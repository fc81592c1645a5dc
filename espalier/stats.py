# cython: annotation_typing=False
# The C types are in stats.pxd; the types in the signatures are for mypy.
"""Tail probabilities, compiled when the package is built, for Python and kernels."""

from math import fsum

from cython.cimports.libc.math import erfc, exp, fabs, isinf, lgamma, log, log1p, sqrt

MAX_TERMS = 10_000
PRECISION = 1e-15
TINY = 1e-300


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return P(X ≥ statistic) of the chi-square distribution with `freedom` degrees of freedom.

    The terms of the recurrence of the incomplete gamma function are summed (Abramowitz and Stegun 1964, 26.4.4, 26.4.5
    and 6.5.22). Each term is computed from its logarithm, because its factors could overflow.

    >>> round(chi_square_tail(2.8, 1), 12)
    0.094264306841
    """
    if freedom <= 0 or statistic <= 0.0:
        return 1.0
    half = statistic / 2.0
    log_half = log(half)
    if freedom % 2 == 0:
        tail = 0.0
        power = 0.0
    else:
        tail = erfc(sqrt(half))
        power = 0.5
    while power < freedom / 2.0 - 0.25:
        tail += exp(power * log_half - half - lgamma(power + 1.0))
        power += 1.0
    return min(1.0, tail)


def student_t_two_sided(statistic: float, degrees: float) -> float:
    """Return P(|t| ≥ |statistic|) of Student's t distribution with `degrees` degrees of freedom.

    The probability is I_x(degrees/2, 1/2) with x = degrees/(degrees + statistic²) (Abramowitz and Stegun 1964, 26.7.1).

    >>> round(student_t_two_sided(2.262157, 9), 6)
    0.05
    """
    if isinf(statistic):
        return 0.0
    return beta_ratio(degrees / (degrees + statistic * statistic), degrees / 2.0, 0.5)


def binomial_two_sided(successes: int, trials: int) -> float:
    """Return the two-sided p-value of `successes` in `trials` if each trial succeeds with probability 1/2.

    >>> round(binomial_two_sided(1, 10), 12)
    0.021484375
    """
    if trials == 0:
        return 1.0
    fewer = min(successes, trials - successes)
    # Logarithms, because 2^-trials underflows for thousands of trials.
    logarithms = [lgamma(trials + 1) - lgamma(k + 1) - lgamma(trials - k + 1) for k in range(fewer + 1)]
    tail = fsum(exp(each - trials * log(2)) for each in logarithms)
    return min(1.0, 2 * tail)


def beta_ratio(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) (Abramowitz and Stegun 1964, 26.5.8)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - beta_series(1.0 - x, b, a)
    return beta_series(x, a, b)


def beta_series(x: float, a: float, b: float) -> float:
    """Return I_x(a, b) for 0 < x ≤ (a + 1)/(a + b + 2), by its continued fraction (Lentz 1976)."""
    front: float = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    value, above, below = 1.0, 1.0, 0.0
    for term in range(1, MAX_TERMS):
        half = term // 2
        if term % 2:
            part = -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        else:
            part = half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        below = 1.0 + part * below
        if below == 0.0:
            below = TINY
        below = 1.0 / below
        above = 1.0 + part / above
        if above == 0.0:
            above = TINY
        value *= above * below
        if fabs(above * below - 1.0) < PRECISION:
            break
    return front / value
