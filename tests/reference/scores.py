"""Impurities, and what each score makes of them: ALGORITHMS.md section 1, one formula a function.

A sample is a list of (row, weight). Nothing is summed incrementally: every score is computed from its rows.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.reference.table import Target

Sample = list[tuple[int, float]]
Config = Mapping[str, Any]

CLASS_CRITERIA = ("information_gain", "gain_ratio", "normalized_gain", "gini", "misclassification", "chi_square")
NUMBER_CRITERIA = ("squared_error", "absolute_error", "poisson", "sdr", "m5")


def total(sample: Sample) -> float:
    """The weight of a sample."""
    return math.fsum(weight for _, weight in sample)


def size(sample: Sample, target: Target, config: Config) -> float:
    """The weight of a sample without class weights: what limits on the size of a leaf count."""
    factors = config.get("class_factors") or {}
    return math.fsum(weight / factors.get(int(target.values[row]), 1.0) for row, weight in sample)


def class_weights(sample: Sample, target: Target) -> tuple[float, ...]:
    """The weight of each class."""
    weights: list[list[float]] = [[] for _ in range(target.k)]
    for row, weight in sample:
        weights[int(target.values[row])].append(weight)
    return tuple(map(math.fsum, weights))


def moments(sample: Sample, target: Target) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of the target.

    Equal values deviate by nothing, not by what rounding makes of their mean: M5's fifth root of 1e-31 is 6e-7.
    """
    weight = total(sample)
    if weight == 0:
        return 0.0, 0.0, 0.0
    values = {target.values[row] for row, _ in sample}
    if len(values) == 1:
        return weight, values.pop(), 0.0
    mean = math.fsum(w * target.values[row] for row, w in sample) / weight
    return weight, mean, math.fsum(w * (target.values[row] - mean) ** 2 for row, w in sample)


def entropy(weights: Sequence[float]) -> float:
    """Shannon's entropy in bits of a list of weights (Shannon, 1948)."""
    whole = math.fsum(weights)
    return -math.fsum(w / whole * math.log2(w / whole) for w in weights if w > 0) + 0.0 if whole > 0 else 0.0


def gini(weights: Sequence[float]) -> float:
    """The sum of p(1 − p) (Breiman and others, 1984)."""
    whole = math.fsum(weights)
    return math.fsum(w / whole * (1 - w / whole) for w in weights) if whole > 0 else 0.0


def misclassification(weights: Sequence[float]) -> float:
    """The share that is not of the largest class."""
    whole = math.fsum(weights)
    return 1 - max(weights) / whole if whole > 0 else 0.0


def variance(sample: Sample, target: Target) -> float:
    """The population variance of the target."""
    weight, _, squared = moments(sample, target)
    return squared / weight if weight > 0 else 0.0


def median(sample: Sample, target: Target) -> float:
    """The weighted median; where exactly half the weight lies below, the middle of the two neighbours."""
    ordered = sorted((target.values[row], weight) for row, weight in sample if weight > 0)
    half = total(sample) / 2
    below = 0.0
    for position, (value, weight) in enumerate(ordered):
        below += weight
        if below == half and position + 1 < len(ordered):
            return (value + ordered[position + 1][0]) / 2
        if below >= half:
            return value
    return ordered[-1][0] if ordered else 0.0


def absolute_deviation(sample: Sample, target: Target) -> float:
    """The mean absolute deviation from the median."""
    middle = median(sample, target)
    weight = total(sample)
    return math.fsum(w * abs(target.values[row] - middle) for row, w in sample) / weight if weight > 0 else 0.0


def half_poisson_deviance(sample: Sample, target: Target) -> float:
    """The mean of y·log(y/mean): half the Poisson deviance, since the linear terms cancel."""
    weight, mean, _ = moments(sample, target)
    if weight == 0 or mean <= 0:
        return 0.0
    parts = [w * y * math.log(y / mean) for y, w in ((target.values[row], w) for row, w in sample) if y > 0]
    return math.fsum(parts) / weight


IMPURITY_OF_CLASSES = {
    "information_gain": entropy,
    "gain_ratio": entropy,
    "normalized_gain": entropy,
    "gini": gini,
    "misclassification": misclassification,
    "chi_square": gini,  # only where a decrease is asked for: stopping rules and pure nodes
}
IMPURITY_OF_NUMBERS: dict[str, Callable[[Sample, Target], float]] = {
    "squared_error": variance,
    "absolute_error": absolute_deviation,
    "poisson": half_poisson_deviance,
    "sdr": lambda sample, target: math.sqrt(variance(sample, target)),
    "m5": lambda sample, target: math.pow(variance(sample, target), 0.2),
}


def impurity(criterion: str, sample: Sample, target: Target) -> float:
    """The impurity that the criterion measures."""
    if target.kind == "class":
        return IMPURITY_OF_CLASSES[criterion](class_weights(sample, target))
    return IMPURITY_OF_NUMBERS[criterion](sample, target)


def decrease(criterion: str, branches: Sequence[Sample], target: Target) -> float:
    """Impurity of all branches together minus the weighted impurity of each."""
    together = [entry for branch in branches for entry in branch]
    whole = total(together)
    if whole == 0:
        return 0.0
    after = math.fsum(total(branch) / whole * impurity(criterion, branch, target) for branch in branches if branch)
    return impurity(criterion, together, target) - after


def split_information(branch_weights: Sequence[float], unknown_weight: float) -> float:
    """Quinlan's split information in bits: the unknown rows count as one more branch, over the node's weight."""
    return entropy([*branch_weights, unknown_weight])


def chi_square(branches: Sequence[Sample], target: Target) -> tuple[float, int, float]:
    """Pearson's statistic of the branch × class table, its degrees of freedom and its p-value."""
    table = [row for row in (class_weights(branch, target) for branch in branches) if sum(row) > 0]
    columns = [column for column in range(target.k) if sum(row[column] for row in table) > 0]
    whole = math.fsum(math.fsum(row) for row in table)
    statistic = 0.0
    for row in table:
        for column in columns:
            expected = math.fsum(row) * math.fsum(other[column] for other in table) / whole
            statistic += (row[column] - expected) ** 2 / expected
    freedom = (len(table) - 1) * (len(columns) - 1)
    return statistic, freedom, chi_square_tail(statistic, freedom)


def chi_square_tail(statistic: float, freedom: int) -> float:
    """P(X > statistic) of the chi-square distribution, by its finite sums for even and odd freedom.

    Abramowitz and Stegun (1964), 26.4.4 and 26.4.5.
    """
    if freedom == 0 or statistic <= 0:
        return 1.0
    half = statistic / 2
    if freedom % 2 == 0:
        term = tail = math.exp(-half)
        for step in range(1, freedom // 2):
            term *= half / step
            tail += term
        return tail
    tail = math.erfc(math.sqrt(half))
    term = math.sqrt(2 / math.pi) * math.exp(-half) / math.sqrt(statistic)
    for step in range(1, (freedom - 1) // 2 + 1):
        term *= statistic / (2 * step - 1)
        tail += term
    return tail


COST_FUNCTIONS: dict[str, Callable[[float, float, float], float]] = {
    "nunez": lambda gain, cost, weight: (math.pow(2, gain) - 1) / math.pow(cost + 1, weight),
    "tan_schlimmer": lambda gain, cost, _: gain**2 / cost,
    "norton": lambda gain, cost, _: gain / cost,
}


def with_cost(score: float, attribute: int, *, paid: frozenset[int], config: Config) -> float:
    """The score after the attribute's cost; what the path has already paid for costs nothing more.

    `nunez` takes a cost of 0. The other two divide by the cost: there a paid attribute counts as cheap as the
    cheapest of the table, so that it is never worse off than an attribute that must still be paid.
    """
    if config["cost_function"] is None:
        return score
    costs = config["attribute_costs"] or {}
    cost = costs.get(attribute, 1.0)
    if attribute in paid:
        cost = 0.0 if config["cost_function"] == "nunez" else min([1.0, *costs.values()])
    return COST_FUNCTIONS[config["cost_function"]](score, cost, config["cost_weight"])
