"""The constants of `constants.pxd` that Python also needs.

A criterion's number is its position in `espalier.config.criteria.CRITERIA`. The number of a split type, missing-value
strategy or cost function is its position in its tuple in `espalier.config.training_parameters`, cost functions from 1.

Columns of the tables of candidates::

    INT_TEST        NUMERIC (a threshold), NOMINAL, UNKNOWN (known against unknown values), or LEAF (no candidate)
    INT_BELOW       the largest rank below the threshold. For two groups of categories: the code of the category that is
                    split from the rest, the mask of a subset, or the number of the order that is split (`subset_split`)
    INT_ABOVE       the least rank above the threshold. For an order of the categories: the index at which it is split
    INT_UNKNOWN     the branch of the rows with unknown value, -1 if the candidate does not place them
    INT_CUT_POINT   the index of a given cut point, -1 if the threshold is computed from two values
    INT_HEURISTIC   1 if a better subset may exist, because only some orders of the categories were searched
    REAL_GAIN       the gain
    REAL_SCORE      the score by which candidates are compared
    REAL_SECOND     the size of the second largest branch; unknown rows count only if INT_UNKNOWN places them
"""

from typing import Final

GINI: Final = 3
SQUARED_ERROR: Final = 6

# How an attribute's values are split.
ORDERED_KIND: Final = 0
NOMINAL_KIND: Final = 1
BINARIES_KIND: Final = 2

ORDERED_BINARIES: Final = 3
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
"""Under absolute_error, sdr and m5, the scan of an attribute reads the stop flag once per this many rows."""
