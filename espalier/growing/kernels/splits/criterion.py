"""The term of a group of rows in the gain of a split, computed from the group's additive statistics.

Statistics of a group are numbers that add up over groups:

- classification: the weight of each class;
- regression: weight, Σ w·(y − c), Σ w·(y − c)², Σ w·y, where c is the node's mean, to limit cancellation.

Terms of entropy, Gini and chi-square add numbers of one sign, so they are exact to a few units in the last place. Under
every criterion, a split's gain has the form ``offset + scale · Σ term(branch)``. Functions that are called for each
split take a pointer to the first statistic.
"""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.libc.math import INFINITY, expm1, fabs, log, log1p, log2, pow as power, sqrt

NOISE = 1e-13
WEIGHT_TOLERANCE = 1e-9
"""A weight meets a limit if it is below it by at most this share of the limit: weights are rounded sums."""
LN_2 = log(2.0)


def term(criterion, n_classes, stats, totals):
    """Return the term of a group of rows: its weight times its impurity, with two exceptions.

    Under chi_square, the term is the group's summand of the statistic before scaling (`gain_form`). Under poisson, it
    is minus half of the deviance of the group's mean from the node's mean.

    n_classes: 0 for a regression. stats: sums over the group. totals: those over all branches (chi_square, sdr, m5).
    """
    if criterion >= c.SQUARED_ERROR:
        return _number_term(criterion, stats, totals)
    weight = weight_of(stats, n_classes)
    if weight <= 0.0:
        return 0.0
    inner = 0.0
    if criterion <= c.NORMALIZED_GAIN:
        for k in range(n_classes):
            if stats[k] > 0.0:
                inner -= stats[k] * log2(stats[k] / weight)
        return inner
    if criterion == c.GINI:
        for k in range(n_classes):
            inner += stats[k] * (weight - stats[k])
        return inner / weight
    if criterion == c.MISCLASSIFICATION:
        for k in range(n_classes):
            inner = max(inner, stats[k])
        return weight - inner
    for k in range(n_classes):
        if totals[k] > 0.0:
            inner += stats[k] * stats[k] / totals[k]
    return inner / weight


def _number_term(criterion, stats, totals):
    weight = stats[0]
    if weight <= 0.0:
        return 0.0
    if criterion == c.POISSON:
        return -poisson_deviance(weight, stats[1] / weight, (stats[3] - stats[1]) / weight)
    squares = max(0.0, stats[2] - stats[1] * stats[1] / weight)
    if criterion == c.SQUARED_ERROR:
        return squares
    # In a group of equal values, rounding leaves a small variance, which a root would magnify.
    return root_term(criterion, weight, squares if squares > NOISE * max(stats[2], totals[2]) else 0.0)


def root_term(criterion, weight, squares):
    """Return the weight times the square root (SDR) or the fifth root (M5) of the variance."""
    if weight <= 0.0:
        return 0.0
    if criterion == c.SDR:
        return sqrt(squares * weight)
    return weight * power(squares / weight, 0.2)


def poisson_deviance(weight, apart, centre):
    """Return `weight` times half of the Poisson deviance of a target ``centre + apart`` from the mean `centre`.

    It is ``weight · centre · h(apart / centre)`` with h(t) = (1 + t)·ln(1 + t) − t. For small t, where the difference
    would cancel, the series of h is used.
    """
    if centre <= 0.0:
        return 0.0
    t = apart / centre
    if t <= -1.0:
        return weight * centre
    if fabs(t) > 0.01:
        return weight * centre * ((1.0 + t) * log1p(t) - t)
    series = 1.0 / 20.0 - t * (1.0 / 30.0 - t * (1.0 / 42.0 - t / 56.0))
    return weight * apart * t * (0.5 - t * (1.0 / 6.0 - t * (1.0 / 12.0 - t * series)))


def gain_form(criterion, whole_term, known_weight, node_weight):
    """Return (offset, scale): a split's gain is ``offset + scale · Σ term(branch)``.

    whole_term: the term of the rows of all branches as one group. known_weight: the weight of these rows. node_weight:
    the weight of all rows of the node.
    """
    if criterion == c.CHI_SQUARE:
        return -known_weight, known_weight
    return whole_term / node_weight, -1.0 / node_weight


def weight_of(stats, n_classes):
    """Return the weight of a group."""
    if n_classes == 0:
        return stats[0]
    weight = 0.0
    for k in range(n_classes):
        weight += stats[k]
    return weight


def size_of(parameters, stats):
    """Return the weight of a group with class weights divided out. Limits on the size of nodes apply to this weight."""
    if not parameters.has_class_weights:
        return weight_of(stats, parameters.n_classes)
    size = 0.0
    for k in range(parameters.n_classes):
        size += stats[k] * parameters.class_scale[k]
    return size


def is_leaf(parameters, stats, depth, is_constant):
    """Return whether a stopping rule makes a node a leaf, before any attribute is tried.

    stats: weight per class, or (weight, mean, squared deviations). is_constant: whether a numeric target is constant.
    """
    weight = weight_of(stats, parameters.n_classes)
    least = max(parameters.min_weight_split, 2.0 * parameters.min_weight_leaf) * (1.0 - WEIGHT_TOLERANCE)
    if weight <= 0.0 or size_of(parameters, stats) < least or 0 <= parameters.max_depth <= depth:
        return True
    if parameters.n_classes == 0:
        variance = stats[2] / weight
        return is_constant or variance < parameters.min_variance or sqrt(variance) < parameters.min_sd
    n_present: cython.int = 0
    for k in range(parameters.n_classes):
        n_present += stats[k] > 0.0
    return n_present < 2


def plogp(weight, whole):
    """Return −p·log2 p in bits, where p = weight/whole, or 0 without weight."""
    if weight <= 0.0:
        return 0.0
    return -weight / whole * log2(weight / whole)


def with_cost(parameters, score, cost, paid):
    """Weigh a score by the attribute's cost. Return the result's base-2 logarithm, so that large gains do not overflow.

    Sources: Nunez (1991), Tan and Schlimmer (1990), Norton (1989). An attribute that a node above tests (`paid`) costs
    0 under Nunez. Under the other two, which divide by the cost, it costs ``parameters.cheapest``.
    """
    if parameters.cost_function == c.NO_COSTS:
        return score
    if score <= 0.0:
        return -INFINITY
    if parameters.cost_function == c.NUNEZ:
        price = 0.0 if paid else cost
        return score + log2(-expm1(-score * LN_2)) - parameters.cost_weight * log2(price + 1.0)
    price = parameters.cheapest if paid else cost
    return log2(score) * (2.0 if parameters.cost_function == c.TAN_SCHLIMMER else 1.0) - log2(price)


def clear(stats):
    """Set statistics to 0."""
    for k in range(stats.shape[0]):
        stats[k] = 0.0


def add_row(stats, targets, n_classes, row, weight, centre):
    """Add one row to statistics."""
    if n_classes > 0:
        stats[targets.target_class[row]] += weight
    else:
        apart = targets.target[row] - centre
        stats[0] += weight
        stats[1] += weight * apart
        stats[2] += weight * apart * apart
        stats[3] += weight * targets.target[row]
