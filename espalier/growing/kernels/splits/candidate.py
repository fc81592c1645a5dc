"""Split candidates. An attribute has at most one per node: a row of an int32 table and a row of a float64 table."""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.espalier.growing.kernels.splits.criterion import (
    WEIGHT_TOLERANCE,
    plogp,
    size_of,
    term,
    weight_of,
    with_cost,
)
from cython.cimports.espalier.model.node_tests import LEAF, UNKNOWN
from cython.cimports.espalier.stats import chi_square_tail
from cython.cimports.libc.math import INFINITY, fabs, isnan, log

TIE_OF_RATIOS = 1e-6
TIE = 1e-9
TIE_OF_LOGARITHMS = TIE / log(2.0)  # logarithms to base 2 of scores that differ by a share of TIE
MIN_M5_GAIN = 1e-6


def tie_of_gains(work):
    """Return the largest difference at which two gains tie: a constant under gain_ratio, else the rounding error."""
    return TIE_OF_RATIOS if work.parameters.criterion == c.GAIN_RATIO else _rounding_error(work)


def tie_of_scores(work):
    """Return the largest difference at which the scores of two attributes tie."""
    if work.parameters.cost_function != c.NO_COSTS:
        return TIE_OF_LOGARITHMS
    if work.parameters.criterion == c.M5:
        return MIN_M5_GAIN
    return TIE if work.parameters.criterion == c.NORMALIZED_GAIN else tie_of_gains(work)


def negligible_gain(work):
    """Return the largest gain that is treated as no gain."""
    return MIN_M5_GAIN if work.parameters.criterion == c.M5 else tie_of_gains(work)


def _rounding_error(work):
    return TIE * (work.context.weight if work.parameters.criterion == c.CHI_SQUARE else work.context.impurity)


def start_search(work, attribute, paid, ints):
    """Start an attribute's search. `work.sums` must hold the statistics of rows with known and with unknown value."""
    ints[c.INT_BELOW], ints[c.INT_ABOVE] = 0, 0
    ints[c.INT_UNKNOWN], ints[c.INT_CUT_POINT], ints[c.INT_HEURISTIC] = -1, -1, 0
    work.search.attribute = attribute
    work.search.paid = paid
    work.search.known_weight = weight_of(cython.address(work.sums.known[0]), work.parameters.n_classes)
    work.search.unknown_weight = weight_of(cython.address(work.sums.unknown[0]), work.parameters.n_classes)
    work.search.known_size = size_of(work.parameters, cython.address(work.sums.known[0]))
    work.search.unknown_size = size_of(work.parameters, cython.address(work.sums.unknown[0]))
    work.search.tie = tie_of_gains(work)
    work.search.found, work.search.gain, work.search.best, work.search.excluded = False, 0.0, 0.0, -INFINITY


def min_branch_size(work, known_size):
    """Return the minimum size of a branch, less a rounding tolerance; 0 under ``leaf_weight_rule: winner``.

    known_size: size of the known rows, for C4.5's limit on threshold splits; 0 for a nominal attribute.
    """
    if work.parameters.leaf_weight_of_winner:
        return 0.0
    margin = work.parameters.min_weight_leaf
    if work.parameters.window and work.parameters.n_classes > 0:
        margin = max(margin, min(25.0, 0.1 * known_size / work.parameters.n_classes))
    return margin * (1.0 - WEIGHT_TOLERANCE)


def is_heavy_enough(search, left_size, right_size, branch):
    """Return whether both branches are heavy enough, with the unknown rows in `branch` (-1: in none)."""
    if branch == 0:
        left_size += search.unknown_size
    elif branch == 1:
        right_size += search.unknown_size
    return left_size >= search.margin and right_size >= search.margin


def is_better(search, gain, value):
    """Return whether a split is better than the best one so far; if it is, store it as the best one.

    value: the gain or the gain ratio, by which splits are compared.
    """
    if search.found and not value > search.best + search.tie:
        return False
    search.found, search.gain, search.best = True, gain, value
    return True


def terms_of_branches(work, branch):
    """Return the sum of the terms of `left` and `right`, with the unknown rows in `branch` (-1: in none)."""
    criterion, n_classes = work.parameters.criterion, work.parameters.n_classes
    left, right = cython.address(work.sums.left[0]), cython.address(work.sums.right[0])
    totals = cython.address(work.sums.known[0])
    if branch >= 0:
        totals = cython.address(work.sums.node[0])
        joined = left if branch == 0 else right
        for k in range(work.sums.trial.shape[0]):
            work.sums.trial[k] = joined[k] + work.sums.unknown[k]
        if branch == 0:
            left = cython.address(work.sums.trial[0])
        else:
            right = cython.address(work.sums.trial[0])
    return term(criterion, n_classes, left, totals) + term(criterion, n_classes, right, totals)


def terms_of_unknown_test(work):
    """Return the sum of `term` over two branches: the known rows, and the unknown rows."""
    criterion, n_classes = work.parameters.criterion, work.parameters.n_classes
    known, unknown = cython.address(work.sums.known[0]), cython.address(work.sums.unknown[0])
    totals = cython.address(work.sums.node[0])
    return term(criterion, n_classes, known, totals) + term(criterion, n_classes, unknown, totals)


def terms_with_share(work, share):
    """Return the sum of the best branches' terms. The left gets `share` of the unknown rows, the right the rest."""
    totals, trial = cython.address(work.sums.node[0]), cython.address(work.sums.trial[0])
    for k in range(work.sums.trial.shape[0]):
        work.sums.trial[k] = work.sums.best_left[k] + share * work.sums.unknown[k]
    terms = term(work.parameters.criterion, work.parameters.n_classes, trial, totals)
    for k in range(work.sums.trial.shape[0]):
        work.sums.trial[k] = work.sums.best_right[k] + (1.0 - share) * work.sums.unknown[k]
    return terms + term(work.parameters.criterion, work.parameters.n_classes, trial, totals)


def store_branches(sums, branch):
    """Copy `left` and `right` to `best_left` and `best_right`, with the unknown rows in `branch` (-1: in none)."""
    for k in range(sums.left.shape[0]):
        sums.best_left[k] = sums.left[k] + (sums.unknown[k] if branch == 0 else 0.0)
        sums.best_right[k] = sums.right[k] + (sums.unknown[k] if branch == 1 else 0.0)


def store_unknown_test(sums, ints):
    """Store the test that sends the known rows to branch 0 and the unknown rows to branch 1."""
    ints[c.INT_TEST] = UNKNOWN
    ints[c.INT_UNKNOWN] = 1
    for k in range(sums.known.shape[0]):
        sums.best_left[k] = sums.known[k]
        sums.best_right[k] = sums.unknown[k]


def finish_two(work, gain, ints, reals):
    """Set the gain, the score and the size of the smaller branch for a candidate with two branches.

    If the p-value of the chi-square test exceeds `chi_square_alpha`, only the test is set: it becomes LEAF.
    """
    left_weight = weight_of(cython.address(work.sums.best_left[0]), work.parameters.n_classes)
    right_weight = weight_of(cython.address(work.sums.best_right[0]), work.parameters.n_classes)
    if not isnan(work.parameters.chi_square_alpha):
        statistic, n_columns = _chi_square_of_two(work.sums, left_weight, right_weight)
        if chi_square_tail(statistic, n_columns - 1) > work.parameters.chi_square_alpha:
            ints[c.INT_TEST] = LEAF
            return
    aside = 0.0 if work.search.places_unknown else work.search.unknown_weight
    whole = left_weight + right_weight + aside
    information = plogp(left_weight, whole) + plogp(right_weight, whole) + plogp(aside, whole)
    left_size = size_of(work.parameters, cython.address(work.sums.best_left[0]))
    reals[c.REAL_SECOND] = min(left_size, size_of(work.parameters, cython.address(work.sums.best_right[0])))
    score_candidate(work, gain, information, ints, reals)


def score_candidate(work, gain, information, ints, reals):
    """Set the candidate's gain and score.

    The score is the gain, the gain ratio or the normalized gain, weighed by the attribute's cost if a cost function is
    set. A gain within rounding error of 0 becomes 0. With costs, a gain of at most `negligible_gain` is scored like 0.

    information: split information in bits, read only under gain_ratio. If it is 0, the candidate's test becomes LEAF,
    and gain and score are not set.
    """
    if fabs(gain) <= _rounding_error(work):
        gain = 0.0
    score = gain
    if work.parameters.cost_function != c.NO_COSTS and gain <= negligible_gain(work):
        score = 0.0
    if work.parameters.criterion == c.GAIN_RATIO:
        if information <= 0.0:
            ints[c.INT_TEST] = LEAF
            return
        score /= information
    elif work.parameters.criterion == c.NORMALIZED_GAIN:
        score = score / work.context.impurity if work.context.impurity > 0.0 else 0.0
    reals[c.REAL_GAIN] = gain
    reals[c.REAL_SCORE] = with_cost(work.parameters, score, work.columns.cost[work.search.attribute], work.search.paid)


def _chi_square_of_two(sums, left_weight, right_weight):
    """Return (Pearson's statistic of branches against classes, number of classes that occur)."""
    whole = left_weight + right_weight
    inner = 0.0
    n_columns: cython.int = 0
    for k in range(sums.best_left.shape[0]):
        left, right = sums.best_left[k], sums.best_right[k]
        total = left + right
        if total > 0.0:
            n_columns += 1
            inner += left * left / (left_weight * total) + right * right / (right_weight * total)
    return whole * (inner - 1.0), n_columns
