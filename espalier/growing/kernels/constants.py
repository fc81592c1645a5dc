"""Integer constants shared by Python and the kernels, and the named tuples that kernels take."""

from types import MappingProxyType
from typing import Any, Final, NamedTuple

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


class GrowParameters(NamedTuple):
    """A configuration as numbers; unset parameters are -1 (whole numbers) or NaN (real ones)."""

    criterion: int
    n_classes: int  # 0: regression
    nominal: int
    numeric: int
    observed: int
    window: int
    mdl_correction: int
    average_gain_guard: int
    missing: int
    max_surrogates: int
    max_depth: int
    max_leaf_nodes: int
    leaf_weight_of_winner: int
    cost_function: int
    all_many_valued: int  # every attribute is nominal with a great many values
    min_weight_split: float
    min_weight_leaf: float
    min_impurity_decrease: float  # NaN: a split must gain something
    chi_square_alpha: float
    min_sd: float  # of the target, in its own unit
    min_variance: float
    cost_weight: float
    cheapest: float
    root_weight: float


class EncodedColumns(NamedTuple):
    """The attributes, feature-major; F attributes, n rows.

    codes: int32 (F, n): rank of the value among all training values, or category; -1 missing.
    kind: int32 (F): ORDERED_KIND, NOMINAL_KIND or BINARIES_KIND (a nominal one recoded by mean target).
    n_codes: int32 (F); order_place: int32 (F), its row in the presorted orders, -1 for a nominal one.
    value_start: int64 (F+1), value: float64: the value of each rank, ascending.
    step: uint8, as many, or none without C4.5's window: from how many ranks above on a value is another one for it.
    recode_start: int64 (F+1), recode: int32: of a BINARIES_KIND attribute the rank of each category, -1 never seen.
    many_valued: int32 (F): left out of the average of the average-gain guard. cost: float64 (F).
    """

    codes: Any
    kind: Any
    n_codes: Any
    order_place: Any
    value_start: Any
    value: Any
    step: Any
    recode_start: Any
    recode: Any
    many_valued: Any
    cost: Any


class Targets(NamedTuple):
    """The target and the weights of n rows.

    target_class: int32 (n), zeros for a regression. target: float64 (n), zeros for a classification.
    weight: float64 (n), above 0.
    """

    target_class: Any
    target: Any
    weight: Any


class NodeContext(NamedTuple):
    """A node that looks for a split."""

    start: int
    stop: int
    weight: float
    impurity: float
    centre: float  # subtracted from targets in the statistics of a regression
