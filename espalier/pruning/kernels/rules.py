"""Sums over rows while rules are shortened and chosen.

While a rule is shortened, a row that fails exactly one condition is gained when that condition is dropped. Two numbers
per row identify that condition::

    row            0  1  2  3
    test 0 fails   ·  ·  ·  x
    test 1 fails   ·  x  ·  x
    n_failing      0  1  0  2       how many conditions the row fails
    failing_sum    0  1  0  1       the sum of their indexes: if only one fails, its index
"""

import cython
from cython.cimports.libc.math import lgamma

LOG_2 = 0.6931471805599453


def change_condition(fails, place, step, n_failing, failing_sum):
    """Add condition `place` if `step` is 1, remove it if -1. fails: bool (rows), true where the condition fails."""
    with cython.nogil:
        for row in range(fails.shape[0]):
            if fails[row]:
                n_failing[row] += step
                failing_sum[row] += step * place


def sum_gains(counted, n_failing, failing_sum, weight, missed, gained, gained_missed):
    """Sum weight and loss of the rows that fail no condition and, for each condition, of the rows that fail only it.

    counted: bool (rows); other rows are left out. weight, missed: float64 (rows), the row's weight and its weighted
    loss. gained, gained_missed: float64 (conditions); the sums of each condition are added to them. Returns (weight,
    loss) of the rows that fail no condition.
    """
    covered: cython.double = 0.0
    lost: cython.double = 0.0
    with cython.nogil:
        for row in range(counted.shape[0]):
            if counted[row] and n_failing[row] == 0:
                covered += weight[row]
                lost += missed[row]
            elif counted[row] and n_failing[row] == 1:
                gained[failing_sum[row]] += weight[row]
                gained_missed[failing_sum[row]] += missed[row]
    return covered, lost


def sum_holding(holds, rows, weight, is_own, sums):
    """Sum, for each rule, the weights of the `rows` for which the rule holds.

    holds: uint8 (groups of eight rules, all rows), one bit per rule. rows: int64, indexes. weight: float64 (all rows).
    is_own: bool (all rows), whether a row is of the rules' class. sums: float64 (2, 8 · groups), written: for each rule
    the weight of rows of this class, and of rows of other classes.
    """
    with cython.nogil:
        sums[:] = 0.0
        for group in range(holds.shape[0]):
            for at in range(rows.shape[0]):
                row = rows[at]
                bits = holds[group, row]
                if bits:
                    side = 0 if is_own[row] else 1
                    for bit in range(8):
                        if bits & (128 >> bit):
                            sums[side, 8 * group + bit] += weight[row]


def changed_lengths(chosen, bits, gained, lost, covered, total, share, lengths):
    """Compute for each rule the description length of the chosen rules with this rule removed or, if not chosen, added.

    chosen: bool (rules). bits: float64 (rules). share: the factor on the bits of rules. lengths: float64 (rules),
    written. gained, lost: float64 (2, rules), the covered weight that adding a rule gains, and that removing it loses.
    covered, total: float64 (2), the weight of covered rows, and of all rows. Index 0 is the rules' class, 1 the others.
    """
    theory: cython.double = 0.0
    size: cython.int = 0
    with cython.nogil:
        for rule in range(chosen.shape[0]):
            if chosen[rule]:
                theory += bits[rule]
                size += 1
        smaller, larger = lgamma(size) / LOG_2 if size else 0.0, lgamma(size + 2.0) / LOG_2
        for rule in range(chosen.shape[0]):
            if chosen[rule]:
                own, other = covered[0] - lost[0, rule], covered[1] - lost[1, rule]
                lengths[rule] = share * (theory - bits[rule] - smaller)
            else:
                own, other = covered[0] + gained[0, rule], covered[1] + gained[1, rule]
                lengths[rule] = share * (theory + bits[rule] - larger)
            lengths[rule] += exception_bits(own, other, total[0], total[1])


def exception_bits(own, other, own_total, other_total):
    """Return the number of bits that encode the exceptions to a class's rules.

    Exceptions are covered rows of other classes and uncovered rows of the class. own, other: covered weight of the
    class, and of all others. own_total, other_total: weight of the class, and of all others, covered or not.
    """
    return log2_choose(own + other, other) + log2_choose(own_total + other_total - own - other, own_total - own)


def log2_choose(total, chosen):
    """Return log2 of a binomial coefficient, by the gamma function, since weights need not be whole numbers."""
    total, chosen = max(total, 0.0), max(chosen, 0.0)
    return (lgamma(total + 1.0) - lgamma(chosen + 1.0) - lgamma(max(total - chosen, 0.0) + 1.0)) / LOG_2
