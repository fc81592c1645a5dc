"""What a group of rows adds to a score, computed from its additive statistics.

Statistics of a group are `width` numbers that add up over groups:

- classification: the weight of each class;
- regression: weight, Σ w·(y − c), Σ w·(y − c)², Σ w·y with c the node's mean, so that little cancels.

A split's gain is ``offset + scale · Σ term(branch)``: every criterion fits this form.
"""

import math

from espalier.growing.kernels import constants as c
from espalier.kernels.jit import inner, shared
from espalier.stats import chi_square_tail

NOISE = 1e-13
LN_2 = math.log(2.0)
shared(chi_square_tail)


@inner
def term(criterion, stats, totals):
    """Return weight times impurity of a group (chi_square: its part of the statistic).

    stats: float64 (width). totals: float64 (width), the sums over all branches, used by chi_square only.
    """
    if criterion >= c.SQUARED_ERROR:
        return _number_term(criterion, stats)
    weight = 0.0
    for k in range(stats.size):
        weight += stats[k]
    if weight <= 0.0:
        return 0.0
    if criterion <= c.NORMALIZED_GAIN:
        inner = 0.0
        for k in range(stats.size):
            if stats[k] > 0.0:
                inner += stats[k] * math.log2(stats[k])
        return weight * math.log2(weight) - inner
    if criterion == c.GINI:
        inner = 0.0
        for k in range(stats.size):
            inner += stats[k] * stats[k]
        return weight - inner / weight
    if criterion == c.MISCLASSIFICATION:
        largest = 0.0
        for k in range(stats.size):
            largest = max(largest, stats[k])
        return weight - largest
    inner = 0.0
    for k in range(stats.size):
        if totals[k] > 0.0:
            inner += stats[k] * stats[k] / totals[k]
    return inner / weight


@inner
def _number_term(criterion, stats):
    weight = stats[0]
    if weight <= 0.0:
        return 0.0
    if criterion == c.POISSON:
        return -stats[3] * math.log(stats[3] / weight) if stats[3] > 0.0 else 0.0
    squares = stats[2] - stats[1] * stats[1] / weight
    # Rounding leaves a small variance in a group of equal values, which a root would magnify.
    if squares < NOISE * stats[2]:
        squares = 0.0
    if criterion == c.SQUARED_ERROR:
        return squares
    if criterion == c.SDR:
        return math.sqrt(squares * weight)
    return weight * (squares / weight) ** 0.2


@inner
def gain_form(criterion, stats, whole_term, known_weight, node_weight):
    """Return (offset, scale) of a split's gain over the sum of its branches' terms.

    whole_term is the term of all branches together.
    """
    if criterion == c.CHI_SQUARE:
        return -known_weight, known_weight
    return whole_term / node_weight, -1.0 / node_weight


@inner
def weight_of(stats, n_classes):
    """Return the weight of a group."""
    if n_classes == 0:
        return stats[0]
    weight = 0.0
    for k in range(stats.size):
        weight += stats[k]
    return weight


@inner
def plogp(weight, whole):
    """Return −p·log2 p in bits, p = weight/whole; 0 for no weight."""
    if weight <= 0.0:
        return 0.0
    return -weight / whole * math.log2(weight / whole)


@inner
def with_cost(score, cost, paid, cost_function, cost_weight, cheapest):
    """Weigh a score by the attribute's cost.

    Nunez (1991), as the logarithm to base 2 so that no large gain overflows; Tan and Schlimmer (1990), Norton (1989).
    An attribute that the path has paid for costs nothing more; where a function divides by the cost, it counts as much
    as the cheapest attribute.
    """
    if cost_function == c.NO_COSTS:
        return score
    if cost_function == c.NUNEZ:
        if score <= 0.0:
            return -math.inf
        return score + math.log2(-math.expm1(-score * LN_2)) - cost_weight * math.log2((0.0 if paid else cost) + 1.0)
    price = cheapest if paid else cost
    if cost_function == c.TAN_SCHLIMMER:
        return score * score / price
    return score / price


@inner
def clear(stats):
    """Set statistics to 0."""
    for k in range(stats.size):
        stats[k] = 0.0


@inner
def add_row(stats, row, weight, n_classes, target_class, target, centre):
    """Add one row to statistics."""
    if n_classes > 0:
        stats[target_class[row]] += weight
    else:
        apart = target[row] - centre
        stats[0] += weight
        stats[1] += weight * apart
        stats[2] += weight * apart * apart
        stats[3] += weight * target[row]


@inner
def sort_by_key(places, key, count, scratch):
    """Sort places[:count] by key[place], equal keys in the given order: merges of doubling runs.

    places, scratch: int32. key: float64, indexed by place.
    """
    for start in range(0, count, 16):
        for place in range(start + 1, min(start + 16, count)):
            moving = places[place]
            at = place
            while at > start and key[places[at - 1]] > key[moving]:
                places[at] = places[at - 1]
                at -= 1
            places[at] = moving
    width = 16
    while width < count:
        for start in range(0, count, 2 * width):
            middle, end = min(start + width, count), min(start + 2 * width, count)
            left, right = start, middle
            for at in range(start, end):
                if left < middle and (right >= end or key[places[left]] <= key[places[right]]):
                    scratch[at] = places[left]
                    left += 1
                else:
                    scratch[at] = places[right]
                    right += 1
        for at in range(count):
            places[at] = scratch[at]
        width *= 2
