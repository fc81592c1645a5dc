"""Constants shared by Python and the kernels; `constants.pxd` holds the same whole numbers for kernels."""

from types import MappingProxyType
from typing import Final

from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC, UNKNOWN  # noqa: F401 - kernels read them here, too

# Criteria. The first three use Shannon's entropy; those from SQUARED_ERROR on are for a numeric target.
INFORMATION_GAIN: Final = 0
GAIN_RATIO: Final = 1
NORMALIZED_GAIN: Final = 2
GINI: Final = 3
MISCLASSIFICATION: Final = 4
CHI_SQUARE: Final = 5
SQUARED_ERROR: Final = 6
ABSOLUTE_ERROR: Final = 7
POISSON: Final = 8
SDR: Final = 9
M5: Final = 10

# How an attribute's values are split.
ORDERED_KIND: Final = 0
NOMINAL_KIND: Final = 1
BINARIES_KIND: Final = 2

MULTIWAY: Final = 0
SUBSET: Final = 1
ONE_VS_REST: Final = 2
ORDERED_BINARIES: Final = 3

BEST: Final = 0
BOUNDARY: Final = 1
MEDIAN: Final = 2
NEAR_MEDIAN: Final = 3
NO_NUMERIC: Final = 4

FRACTIONAL: Final = 0
SPREAD: Final = 1
DIRECTION: Final = 2
MAJORITY: Final = 3
SURROGATE: Final = 4
IMPUTED: Final = 5

NO_COSTS: Final = 0
NUNEZ: Final = 1
TAN_SCHLIMMER: Final = 2
NORTON: Final = 3

# How a kernel ended
DONE: Final = 0
STOPPED: Final = 1
TOO_MANY_NODES: Final = 2
TOO_MANY_CATEGORIES: Final = 3

# Columns of the tables of candidates.
INT_TEST: Final = 0  # LEAF: no candidate
INT_BELOW: Final = 1  # rank of the last value of branch 0; nominal: category, mask or order
INT_ABOVE: Final = 2  # rank of the first value of branch 1; nominal: index of the split in the order
INT_UNKNOWN: Final = 3  # branch of the rows with unknown value, -1: none
INT_CUT_POINT: Final = 4  # index of a given cut point, -1: the middle
INT_HEURISTIC: Final = 5  # 1: the subset was searched along orders that need not contain the best one
N_INTS: Final = 6

REAL_GAIN: Final = 0
REAL_SCORE: Final = 1
REAL_SECOND: Final = 2  # known size of the second largest branch
N_REALS: Final = 3

ROWS_BETWEEN_CHECKS: Final = 1 << 16
"""A long scan of one attribute reads the stop flag once in so many rows."""
NEIGHBOUR_GAP: Final = 1e-5
"""Difference up to which C4.5 treats two values as equal."""
FAR_APART: Final = 255
"""A step that does not say by how many ranks two values must be apart: the values have to be compared."""

CRITERIA: Final = MappingProxyType(
    {
        "information_gain": INFORMATION_GAIN,
        "gain_ratio": GAIN_RATIO,
        "normalized_gain": NORMALIZED_GAIN,
        "gini": GINI,
        "misclassification": MISCLASSIFICATION,
        "chi_square": CHI_SQUARE,
        "squared_error": SQUARED_ERROR,
        "absolute_error": ABSOLUTE_ERROR,
        "poisson": POISSON,
        "sdr": SDR,
        "m5": M5,
    }
)
NOMINALS: Final = MappingProxyType(
    {"multiway": MULTIWAY, "subset": SUBSET, "one_vs_rest": ONE_VS_REST, "ordered_binaries": ORDERED_BINARIES}
)
NUMERICS: Final = MappingProxyType(
    {"best": BEST, "boundary": BOUNDARY, "median": MEDIAN, "near_median": NEAR_MEDIAN, "none": NO_NUMERIC}
)
MISSING: Final = MappingProxyType(
    {
        "fractional": FRACTIONAL,
        "spread": SPREAD,
        "direction": DIRECTION,
        "majority": MAJORITY,
        "surrogate": SURROGATE,
        "imputed": IMPUTED,
    }
)
COST_FUNCTIONS: Final = MappingProxyType(
    {None: NO_COSTS, "nunez": NUNEZ, "tan_schlimmer": TAN_SCHLIMMER, "norton": NORTON}
)
