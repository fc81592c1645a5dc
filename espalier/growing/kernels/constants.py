"""The numbers of `constants.pxd` that Python needs, too.

Criteria, splits and strategies for missing values have the number of their place in
`espalier.config.training_parameters`; cost functions follow NO_COSTS. Columns of the tables of candidates: INT_TEST,
LEAF for no candidate; INT_BELOW, INT_ABOVE, the ranks beside a threshold, of a nominal split its category, mask or
order, and its index in the order; INT_UNKNOWN, the branch of the rows with unknown value, -1 for none; INT_CUT_POINT,
the index of a given cut point, -1 for the middle; INT_HEURISTIC, 1 where the subset was searched along orders that need
not contain the best one; REAL_SECOND, the known size of the second largest branch.
"""

from typing import Final

GINI: Final = 3
SQUARED_ERROR: Final = 6

# How an attribute's values are split.
ORDERED_KIND: Final = 0
NOMINAL_KIND: Final = 1
BINARIES_KIND: Final = 2

BEST: Final = 0
FRACTIONAL: Final = 0
SPREAD: Final = 1
SURROGATE: Final = 4
NO_COSTS: Final = 0

# How a kernel ended
DONE: Final = 0
STOPPED: Final = 1
TOO_MANY_NODES: Final = 2
TOO_MANY_CATEGORIES: Final = 3

N_INTS: Final = 6
N_REALS: Final = 3

ROWS_BETWEEN_CHECKS: Final = 1 << 16
"""A long scan of one attribute reads the stop flag once in this number of rows."""
NEIGHBOUR_GAP: Final = 1e-5
"""C4.5 treats two values as equal if they differ by at most this."""
FAR_APART: Final = 255
"""Value of a step if the distance of two ranks does not decide: the values themselves must be compared."""
