"""The chi-square distribution, without a statistics library."""

import math
from typing import Final

__all__ = ["chi_square_tail"]

SMALLEST: Final = 1e-300
PRECISION: Final = 1e-16


def chi_square_tail(statistic: float, degrees_of_freedom: int) -> float:
    """Give P(X ≥ statistic) of the chi-square distribution: Q(freedom/2, statistic/2).

    Q is the regularised incomplete gamma function: 1 minus the series of Abramowitz and Stegun (1964) 6.5.29 below the
    mean, else the continued fraction 6.5.31, evaluated as Lentz (1976) does.

    >>> round(chi_square_tail(2.8, 1), 12)
    0.094264306841
    """
    shape, x = degrees_of_freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1:
        return max(0.0, 1.0 - scale * _lower_series(shape, x))
    return min(1.0, scale * _upper_fraction(shape, x))


def _lower_series(shape: float, x: float) -> float:
    """Give Σ xⁿ / (shape (shape + 1) … (shape + n))."""
    term = total = 1.0 / shape
    place = shape
    while term > total * PRECISION:
        place += 1.0
        term *= x / place
        total += term
    return total


def _upper_fraction(shape: float, x: float) -> float:
    """Give 1/(x + 1 − shape − 1(1 − shape)/(x + 3 − shape − 2(2 − shape)/(x + 5 − shape − …)))."""
    denominator = x + 1.0 - shape
    ratio, inverse = 1.0 / SMALLEST, 1.0 / denominator
    total, change, n = inverse, 0.0, 0
    while abs(change - 1.0) > PRECISION * 4:
        n += 1
        numerator = -n * (n - shape)
        denominator += 2.0
        inverse = 1.0 / _not_zero(numerator * inverse + denominator)
        ratio = _not_zero(denominator + numerator / ratio)
        change = inverse * ratio
        total *= change
    return total


def _not_zero(value: float) -> float:
    return value if abs(value) > SMALLEST else SMALLEST
