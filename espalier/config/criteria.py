"""The split criteria. Each has one entry, with the properties that other modules use.

`growing/kernels/splits/criterion.py` has the formulas; the kernels number the criteria in the order of `CRITERIA`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Criterion:
    """A split criterion.

    Attributes:
        meaning: The figure that the best split maximises.
        impurity: The impurity measure that cost-complexity pruning uses, a key of its `MEASURES`; None if the measure
            cannot be computed from the statistics of a node.
        in_bits: Whether gains are in bits.
        grows_with_weight: Whether the gain grows with the weight of the rows (else it is a mean over the rows).
        sums_each_cut: Whether growing stores a deviation for every prefix of the sorted rows.
        of_medians: Whether leaves predict the median of their rows' targets.
        of_counts: Whether targets below 0 are refused.
    """

    meaning: str
    impurity: str | None = None
    in_bits: bool = False
    grows_with_weight: bool = False
    sums_each_cut: bool = False
    of_medians: bool = False
    of_counts: bool = False


CRITERIA_OF_TASK: Final[Mapping[str, Mapping[str, Criterion]]] = {
    "classification": {
        "information_gain": Criterion("the information gain in bits", "entropy", in_bits=True),
        "gain_ratio": Criterion("the gain divided by the entropy of the split", "entropy", in_bits=True),
        "normalized_gain": Criterion("the gain divided by the entropy of the node", "entropy", in_bits=True),
        "gini": Criterion("the decrease of Σp(1−p) over the class shares p", "gini"),
        "misclassification": Criterion("the decrease of 1 − the largest class share", "misclassification"),
        "chi_square": Criterion("Pearson's chi-square statistic", "gini", grows_with_weight=True),
    },
    "regression": {
        "squared_error": Criterion("the decrease of the variance", "variance"),
        "absolute_error": Criterion(
            "the decrease of the mean distance from the median", sums_each_cut=True, of_medians=True
        ),
        "poisson": Criterion("the decrease of half the Poisson deviance", of_counts=True),
        "sdr": Criterion("the decrease of the standard deviation", "deviation", sums_each_cut=True),
        "m5": Criterion("the decrease of the fifth root of the variance", "variance", sums_each_cut=True),
    },
}
CRITERIA: Final = MappingProxyType({**CRITERIA_OF_TASK["classification"], **CRITERIA_OF_TASK["regression"]})
