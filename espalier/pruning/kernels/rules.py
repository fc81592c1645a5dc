"""Which rows a rule gains by dropping a condition.

While a rule is shortened, a row that fails exactly one condition is gained when that condition is dropped. Two numbers
a row identify it::

    row            0  1  2  3
    test 0 fails   ·  ·  ·  x
    test 1 fails   ·  x  ·  x
    n_failing      0  1  0  2       how many conditions the row fails
    failing_sum    0  1  0  1       the sum of their places: if it is only one, its place
"""

from espalier.kernels.jit import compiled


@compiled
def count_failing(failing, n_failing, failing_sum):
    """Count the failing conditions of each row.

    failing: bool (conditions, rows). n_failing, failing_sum: int32 (rows), written.
    """
    n_failing[:] = 0
    failing_sum[:] = 0
    for place in range(failing.shape[0]):
        fails = failing[place]
        for row in range(fails.size):
            if fails[row]:
                n_failing[row] += 1
                failing_sum[row] += place


@compiled
def drop_condition(fails, place, n_failing, failing_sum):
    """Remove condition `place`: `fails`, bool (rows), is its line of the table."""
    for row in range(fails.size):
        if fails[row]:
            n_failing[row] -= 1
            failing_sum[row] -= place


@compiled
def sum_gains(n_failing, failing_sum, weight, missed, gained, gained_missed):
    """Sum the weights of the rows that fail nothing, and of those that fail only one condition, per condition.

    weight, missed: float64 (rows), the row's weight and its loss. gained, gained_missed: float64 (conditions), written.
    Returns the weight and the loss of the rows that fail nothing.
    """
    gained[:] = 0.0
    gained_missed[:] = 0.0
    covered, lost = 0.0, 0.0
    for row in range(n_failing.size):
        if n_failing[row] == 0:
            covered += weight[row]
            lost += missed[row]
        elif n_failing[row] == 1:
            gained[failing_sum[row]] += weight[row]
            gained_missed[failing_sum[row]] += missed[row]
    return covered, lost
