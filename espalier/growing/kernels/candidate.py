"""Split candidates.

Each attribute proposes at most one candidate per node, stored as one row of an int32 table (`INT_*`) and one row of a
float64 table (`REAL_*`).
"""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.criterion import plogp, term, weight_of, with_cost
from espalier.kernels.jit import inner
from espalier.stats import chi_square_tail

INT_TEST = 0  # LEAF: no candidate
INT_BELOW = 1  # rank of the last value of branch 0; nominal: category, mask or order
INT_ABOVE = 2  # rank of the first value of branch 1; nominal: index of the split in the order
INT_UNKNOWN = 3  # branch of the rows with unknown value, -1: none
INT_CUT_POINT = 4  # index of a given cut point, -1: the middle
INT_HEURISTIC = 5  # 1: the subset was searched along orders that need not contain the best one
N_INTS = 6

REAL_GAIN = 0
REAL_SCORE = 1
REAL_SECOND = 2  # known weight of the second heaviest branch
REAL_KNOWN = 3  # known weight
N_REALS = 4

TIE_OF_RATIOS = 1e-6
TIE = 1e-9
TIE_OF_LOGARITHMS = TIE / math.log(2.0)
MIN_M5_GAIN = 1e-6
WEIGHT_TOLERANCE = 1e-6
NEIGHBOUR_GAP = 1e-5
EXHAUSTIVE_CATEGORIES = 10
N_POWER_STEPS = 200
ABOVE_ALL = 1 << 30


@inner
def tie_of_gains(parameters, context):
    """Return the difference below which two gains are equal: a share of the largest possible gain, less for ratios."""
    if parameters.criterion == c.GAIN_RATIO:
        return TIE_OF_RATIOS
    return TIE * (context.weight if parameters.criterion == c.CHI_SQUARE else context.impurity)


@inner
def tie_of_scores(parameters, best_score, context):
    """Return the difference below which another attribute's score is equal to `best_score`."""
    if parameters.cost_function == c.NUNEZ:
        return TIE_OF_LOGARITHMS
    if parameters.cost_function != c.NO_COSTS:
        return TIE * best_score
    if parameters.criterion == c.M5:
        return MIN_M5_GAIN
    return TIE if parameters.criterion == c.NORMALIZED_GAIN else tie_of_gains(parameters, context)


@inner
def negligible_gain(parameters, context):
    """Return the largest gain that counts as none."""
    return MIN_M5_GAIN if parameters.criterion == c.M5 else tie_of_gains(parameters, context)


@inner
def min_branch_weight(parameters, known_weight):
    """Return the least weight of each branch of a threshold split, minus a tolerance for rounding."""
    if parameters.leaf_weight_of_winner == 1:
        return 0.0
    margin = parameters.min_weight_leaf
    if parameters.window == 1 and parameters.n_classes > 0:
        margin = max(margin, min(25.0, 0.1 * known_weight / parameters.n_classes))
    return margin - WEIGHT_TOLERANCE


@inner
def term_with_unknown(parameters, sums, branch, totals):
    """Return the sum of the terms of both branches, with the unknown rows in `branch`."""
    side = sums.left if branch == 0 else sums.right
    other = sums.right if branch == 0 else sums.left
    for k in range(side.size):
        sums.trial[k] = side[k] + sums.unknown[k]
    return term(parameters.criterion, sums.trial, totals) + term(parameters.criterion, other, totals)


@inner
def store_branches(sums, branch):
    """Store the statistics of both branches as the best ones, with the unknown rows in `branch` (-1: in none)."""
    for k in range(sums.left.size):
        sums.best_left[k] = sums.left[k]
        sums.best_right[k] = sums.right[k]
    if branch == 0:
        for k in range(sums.left.size):
            sums.best_left[k] += sums.unknown[k]
    if branch == 1:
        for k in range(sums.left.size):
            sums.best_right[k] += sums.unknown[k]


@inner
def finish_two(parameters, columns, sums, context, attribute, paid, gain, aside, ints, reals):
    """Set gain and score of a binary candidate whose branches are `best_left` and `best_right`."""
    left_weight = weight_of(sums.best_left, parameters.n_classes)
    right_weight = weight_of(sums.best_right, parameters.n_classes)
    if not math.isnan(parameters.chi_square_alpha):
        statistic, n_columns = _chi_square_of_two(sums, left_weight, right_weight)
        if chi_square_tail(statistic, n_columns - 1) > parameters.chi_square_alpha:
            ints[INT_TEST] = c.LEAF
            return
    whole = left_weight + right_weight + aside
    information = plogp(left_weight, whole) + plogp(right_weight, whole) + plogp(aside, whole)
    reals[REAL_SECOND] = min(left_weight, right_weight)
    reals[REAL_KNOWN] = left_weight + right_weight
    score_candidate(parameters, columns, context, attribute, paid, gain, information, ints, reals)


@inner
def score_candidate(parameters, columns, context, attribute, paid, gain, information, ints, reals):
    """Set the candidate's gain and score.

    The score is the gain, the gain ratio or the normalized gain, weighed by the attribute's cost if a cost function is
    set. A gain within rounding error of 0 is set to 0, so that rounding does not decide between splits that gain
    nothing.
    """
    if abs(gain) <= TIE * (context.weight if parameters.criterion == c.CHI_SQUARE else context.impurity):
        gain = 0.0
    score = gain
    if parameters.cost_function != c.NO_COSTS and gain <= negligible_gain(parameters, context):
        score = 0.0
    if parameters.criterion == c.GAIN_RATIO:
        if information <= 0.0:
            ints[INT_TEST] = c.LEAF
            return
        score /= information
    elif parameters.criterion == c.NORMALIZED_GAIN:
        score = score / context.impurity if context.impurity > 0.0 else 0.0
    reals[REAL_GAIN] = gain
    cost = columns.cost[attribute]
    score = with_cost(score, cost, paid, parameters.cost_function, parameters.cost_weight, parameters.cheapest)
    reals[REAL_SCORE] = score


@inner
def _chi_square_of_two(sums, left_weight, right_weight):
    """Return Pearson's statistic of both branches, and the number of classes that occur."""
    whole = left_weight + right_weight
    inner = 0.0
    n_columns = 0
    for k in range(sums.best_left.size):
        total = sums.best_left[k] + sums.best_right[k]
        if total > 0.0:
            n_columns += 1
            inner += sums.best_left[k] ** 2 / (left_weight * total) + sums.best_right[k] ** 2 / (right_weight * total)
    return whole * (inner - 1.0), n_columns
