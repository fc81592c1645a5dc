"""Splits of complete numeric tables in exact rational arithmetic, and logarithms to 60 digits.

A float is a rational number, so that sums, means and squared deviations of floats have no rounding here; only roots and
logarithms are rounded, once, at the end.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

Rows = Sequence[tuple[Fraction, Fraction]]
"""Target and weight of each row."""

DIGITS = 60


def rows_of(target: Sequence[float], weight: Sequence[float]) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(value), Fraction(mass)) for value, mass in zip(target, weight, strict=True)]


def weight_of(rows: Rows) -> Fraction:
    return sum((weight for _, weight in rows), Fraction(0))


def mean(rows: Rows) -> Fraction:
    return sum((value * weight for value, weight in rows), Fraction(0)) / weight_of(rows)


def squares(rows: Rows) -> Fraction:
    """The sum of squared deviations from the mean."""
    middle = mean(rows)
    return sum((weight * (value - middle) ** 2 for value, weight in rows), Fraction(0))


def absolute_deviations(rows: Rows) -> Fraction:
    """The sum of deviations from the median."""
    half, below = weight_of(rows) / 2, Fraction(0)
    for value, weight in sorted(rows):
        below += weight
        if below >= half:
            return sum((mass * abs(other - value) for other, mass in rows), Fraction(0))
    raise AssertionError("rows weigh something")


def squared_error(rows: Rows) -> Decimal:
    return _decimal(squares(rows))


def absolute_error(rows: Rows) -> Decimal:
    return _decimal(absolute_deviations(rows))


def sdr(rows: Rows) -> Decimal:
    weight = weight_of(rows)
    return _decimal(weight) * _decimal(squares(rows) / weight).sqrt()


def m5(rows: Rows) -> Decimal:
    weight, variance = weight_of(rows), squares(rows) / weight_of(rows)
    return _decimal(weight) * _decimal(variance) ** (Decimal(1) / 5) if variance else Decimal(0)


def poisson(rows: Rows) -> Decimal:
    """Half of the deviance: Σ w·y·ln(y/mean), since the linear terms cancel."""
    middle = mean(rows)
    parts = (_decimal(weight * value) * _decimal(value / middle).ln() for value, weight in rows if value > 0)
    return sum(parts, Decimal(0))


def information_gain(rows: Rows) -> Decimal:
    """The entropy in bits; the targets are class codes."""
    whole, shares = weight_of(rows), _class_weights(rows)
    parts = (-_decimal(each) * _decimal(each / whole).ln() / Decimal(2).ln() for each in shares)
    return sum(parts, Decimal(0))


def gini(rows: Rows) -> Decimal:
    whole = weight_of(rows)
    return _decimal(sum((each * (whole - each) / whole for each in _class_weights(rows)), Fraction(0)))


IMPURITIES: dict[str, Callable[[Rows], Decimal]] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "sdr": sdr,
    "m5": m5,
    "poisson": poisson,
    "information_gain": information_gain,
    "gini": gini,
}
"""Weight times impurity of some rows, by criterion."""


def gain(criterion: str, branches: Sequence[Rows]) -> Decimal:
    """What a split lowers the impurity by."""
    impurity, together = IMPURITIES[criterion], [row for branch in branches for row in branch]
    with localcontext(prec=DIGITS):
        lost = impurity(together) - sum(map(impurity, branches), Decimal(0))
        return lost / _decimal(weight_of(together))


def impurity(criterion: str, rows: Rows) -> Decimal:
    with localcontext(prec=DIGITS):
        return IMPURITIES[criterion](rows) / _decimal(weight_of(rows))


def gains(criterion: str, columns: Sequence[Sequence[float]], rows: Rows) -> list[Decimal]:
    """The gain of every threshold of every column."""
    found = []
    for column in columns:
        ordered = sorted(range(len(rows)), key=column.__getitem__)
        for place, (below, above) in enumerate(pairwise(ordered), 1):
            if column[below] < column[above]:
                branches = [[rows[row] for row in part] for part in (ordered[:place], ordered[place:])]
                found.append(gain(criterion, branches))
    return found


def _class_weights(rows: Rows) -> list[Fraction]:
    return [weight_of([row for row in rows if row[0] == code]) for code in sorted({value for value, _ in rows})]


def _decimal(number: Fraction) -> Decimal:
    with localcontext(prec=DIGITS):
        return Decimal(number.numerator) / Decimal(number.denominator)
