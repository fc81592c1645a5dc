"""What one attribute offers a node: one row of two small tables, and how its worth is told.

Whole numbers (`INT_*`) and reals (`REAL_*`); `ordered` and `nominal` write them.
"""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.criterion import plogp, term, weight_of, with_cost
from espalier.kernels.jit import inner
from espalier.stats import chi_square_tail

INT_TEST = 0  # LEAF: nothing is offered
INT_BELOW = 1  # rank of the last value of branch 0; nominal: category, mask or order
INT_ABOVE = 2  # rank of the first value of branch 1; nominal: place of the cut in the order
INT_UNKNOWN = 3  # branch of the rows with unknown value, -1: set aside
INT_EXPERT = 4  # place of an expert's threshold, -1: the middle
INT_HEURISTIC = 5  # 1: the subset was found along orders that need not hold the best one
N_INTS = 6

REAL_GAIN = 0
REAL_SCORE = 1
REAL_SECOND = 2  # known weight of the second heaviest branch
REAL_KNOWN = 3  # known weight
N_REALS = 4

TIE_OF_RATIOS = 1e-6
TIE = 1e-9
TIE_OF_LOGARITHMS = TIE / math.log(2.0)
LEAST_M5_GAIN = 1e-6
WEIGHT_TOLERANCE = 1e-6
NEIGHBOUR_GAP = 1e-5
EXHAUSTIVE_CATEGORIES = 10
N_POWER_STEPS = 200
ABOVE_ALL = 1 << 30


@inner
def tie_of_gains(rules, place):
    """Give the difference below which two gains count as equal: a share of what there is to gain, less for ratios."""
    if rules.criterion == c.GAIN_RATIO:
        return TIE_OF_RATIOS
    return TIE * (place.weight if rules.criterion == c.CHI_SQUARE else place.impurity)


@inner
def tie_of_scores(rules, worth, place):
    """Give the difference below which another attribute's score counts as equal to `worth`."""
    if rules.cost_function == c.NUNEZ:
        return TIE_OF_LOGARITHMS
    if rules.cost_function != c.NO_COSTS:
        return TIE * worth
    if rules.criterion == c.M5:
        return LEAST_M5_GAIN
    return TIE if rules.criterion == c.NORMALIZED_GAIN else tie_of_gains(rules, place)


@inner
def nothing(rules, place):
    """Give the gain up to which a split gains nothing."""
    return LEAST_M5_GAIN if rules.criterion == c.M5 else tie_of_gains(rules, place)


@inner
def least_side(rules, known_weight):
    """Give the least weight of each side of a cut, less what rounding may take."""
    if rules.leaf_weight_of_winner == 1:
        return 0.0
    margin = rules.min_weight_leaf
    if rules.window == 1 and rules.n_classes > 0:
        margin = max(margin, min(25.0, 0.1 * known_weight / rules.n_classes))
    return margin - WEIGHT_TOLERANCE


@inner
def term_with_unknown(rules, work, way, totals):
    """Sum the terms of two sides, the unknown rows on side `way`."""
    side = work.left if way == 0 else work.right
    other = work.right if way == 0 else work.left
    for k in range(side.size):
        work.trial[k] = side[k] + work.unknown[k]
    return term(rules.criterion, work.trial, totals) + term(rules.criterion, other, totals)


@inner
def keep_sides(work, way):
    """Remember both sides, the unknown rows added to side `way` (-1: to none)."""
    for k in range(work.left.size):
        work.best_left[k] = work.left[k]
        work.best_right[k] = work.right[k]
    if way == 0:
        for k in range(work.left.size):
            work.best_left[k] += work.unknown[k]
    if way == 1:
        for k in range(work.left.size):
            work.best_right[k] += work.unknown[k]


@inner
def finish_two(rules, columns, work, rare, place, attribute, paid, gain, aside, ints, reals):
    """Write gain and score of a split in two whose sides are `best_left` and `best_right`."""
    left_weight = weight_of(work.best_left, rules.n_classes)
    right_weight = weight_of(work.best_right, rules.n_classes)
    if not math.isnan(rules.chi_square_alpha):
        statistic, n_columns = _chi_square_of_two(work, left_weight, right_weight)
        if chi_square_tail(statistic, n_columns - 1) > rules.chi_square_alpha:
            ints[INT_TEST] = c.LEAF
            return
    whole = left_weight + right_weight + aside
    information = plogp(left_weight, whole) + plogp(right_weight, whole) + plogp(aside, whole)
    reals[REAL_SECOND] = min(left_weight, right_weight)
    reals[REAL_KNOWN] = left_weight + right_weight
    rate(rules, columns, rare, place, attribute, paid, gain, information, ints, reals)


@inner
def rate(rules, columns, rare, place, attribute, paid, gain, information, ints, reals):
    """Write gain and score: what attributes compete by, the ratio where asked for, weighed against costs.

    A trace of a gain, of either sign, is none: rounding would decide between splits that gain nothing.
    """
    if abs(gain) <= TIE * (place.weight if rules.criterion == c.CHI_SQUARE else place.impurity):
        gain = 0.0
    score = gain
    if rules.cost_function != c.NO_COSTS and gain <= nothing(rules, place):
        score = 0.0
    if rules.criterion == c.GAIN_RATIO:
        if information <= 0.0:
            ints[INT_TEST] = c.LEAF
            return
        score /= information
    elif rules.criterion == c.NORMALIZED_GAIN:
        score = score / place.impurity if place.impurity > 0.0 else 0.0
    reals[REAL_GAIN] = gain
    cost = columns.cost[attribute]
    score = with_cost(score, cost, paid, rules.cost_function, rules.cost_weight, rules.cheapest)
    reals[REAL_SCORE] = score


@inner
def _chi_square_of_two(work, left_weight, right_weight):
    """Give Pearson's statistic of the two sides, and the number of classes that occur."""
    whole = left_weight + right_weight
    inner = 0.0
    n_columns = 0
    for k in range(work.best_left.size):
        total = work.best_left[k] + work.best_right[k]
        if total > 0.0:
            n_columns += 1
            inner += work.best_left[k] ** 2 / (left_weight * total) + work.best_right[k] ** 2 / (right_weight * total)
    return whole * (inner - 1.0), n_columns
