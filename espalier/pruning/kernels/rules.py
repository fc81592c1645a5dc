"""Which rows a rule gains by dropping a condition.

While a rule is shortened, a row that fails one condition and no other is gained when that one goes. Two numbers a row
say which::

    row            0  1  2  3
    test 0 fails   ·  ·  ·  x
    test 1 fails   ·  x  ·  x
    n_failing      0  1  0  2       how many conditions the row fails
    failing_sum    0  1  0  1       the sum of their places: the place itself where it is one
"""

from espalier.kernels.jit import compiled


@compiled
def begin(failing, n_failing, failing_sum):  # type: ignore[no-untyped-def]
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
def drop(fails, place, n_failing, failing_sum):  # type: ignore[no-untyped-def]
    """Take condition `place` away: `fails`, bool (rows), is its line of the table."""
    for row in range(fails.size):
        if fails[row]:
            n_failing[row] -= 1
            failing_sum[row] -= place


@compiled
def tally(n_failing, failing_sum, weight, missed, gained, gained_missed):  # type: ignore[no-untyped-def]
    """Add up weights: of the rows that fail nothing, and of those that each condition alone keeps out.

    weight, missed: float64 (rows), the row's weight and what is lost on it. gained, gained_missed: float64
    (conditions), written. Returns the weight and the loss of the rows that fail nothing.
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
