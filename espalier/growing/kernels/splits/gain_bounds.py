"""Blocks of an ordered attribute's rows that cannot contain its best split, and are skipped.

With weight l of the K known on the left, l_k of which are of class k (t_k of all), ``a_k = l_k - l * t_k / K`` says how
far the left branch is from having every class in proportion. A split's gain times the weight of the node is at most

- entropies, in bits: ``K^2 / (l * (K - l) * ln 2) * sum of a_k^2 / t_k``, Pearson's statistic over ln 2, since a
  logarithm is at most its argument less 1;
- Gini: ``K / (l * (K - l)) * sum of a_k^2``, which it equals.

Over a block each a_k rises and falls only by a bounded amount, and ``l * (K - l)`` is least at one of the ends: if even
this bound is not better than the best so far, no split inside is. Only where this is not enough, and for up to three
classes, the gain itself is computed at the corners, at the price of six logarithms each.
"""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.espalier.growing.kernels.splits.criterion import term
from cython.cimports.libc.math import INFINITY, log

from espalier.growing.kernels.constants import NEIGHBOUR_GAP

MAX_CORNER_CLASSES = 3
"""Classes up to which all corners of a block are looked at: 2 to the power of this."""
SMALL = 100
LARGE = 2_000
"""Known rows of a node from which blocks of 16, and of 32, are tried."""
UNSURE = 1.0 + 1e-9  # exceeds the rounding error of a bound
GAP = NEIGHBOUR_GAP
LN_2 = log(2.0)


def has_bound(parameters):
    """Return whether the criterion's gain has a bound."""
    return parameters.criterion <= c.GINI and parameters.n_classes >= 2


def block_of(parameters, n_known):
    """Return how many rows are skipped at once; 0, none, where a block would rarely be skipped."""
    if parameters.n_classes > MAX_CORNER_CLASSES or n_known < SMALL:
        return 0
    return 16 if n_known < LARGE else 32


def advance_block(targets, sums, sequence, first, last, left_weight):
    """Move the rows ``sequence[first:last]`` to the left branch in ``sums.ahead_left`` and ``ahead_right``.

    Return its weight then.
    """
    if sums.left.shape[0] == 2:
        return _advance_two_classes(sums, sequence, first, last, left_weight)
    for k in range(sums.left.shape[0]):
        sums.ahead_left[k], sums.ahead_right[k] = sums.left[k], sums.right[k]
    for at in range(first, last):
        weight, k = sums.weight[sequence[at]], targets.target_class[sequence[at]]
        left_weight += weight
        sums.ahead_left[k] += weight
        sums.ahead_right[k] = max(0.0, sums.ahead_right[k] - weight)
    return left_weight


def _advance_two_classes(sums, sequence, first, last, left_weight):
    """Advance two classes: their four sums stay in registers, and no branch depends on the class."""
    left: cython.double = sums.left[0]
    other_left: cython.double = sums.left[1]
    right: cython.double = sums.right[0]
    other_right: cython.double = sums.right[1]
    for at in range(first, last):
        one, other = sums.by_class[sequence[at], 0], sums.by_class[sequence[at], 1]
        left_weight += one + other
        left += one
        other_left += other
        right = max(0.0, right - one)
        other_right = max(0.0, other_right - other)
    sums.ahead_left[0], sums.ahead_left[1] = left, other_left
    sums.ahead_right[0], sums.ahead_right[1] = right, other_right
    return left_weight


def max_gain_in_block(parameters, sums, known_weight, left_weight, ahead_weight):
    """Return an upper bound of the gain, times the node's weight, of every split from here to the state ahead."""
    apart = 0.0
    for k in range(sums.known.shape[0]):
        if sums.known[k] > 0.0:
            share = sums.known[k] / known_weight
            here = sums.left[k] - left_weight * share
            own = sums.ahead_left[k] - sums.left[k]
            most = here + own * (1.0 - share)
            fewest = here - (ahead_weight - left_weight - own) * share
            apart += max(most * most, fewest * fewest) / (1.0 if parameters.criterion == c.GINI else sums.known[k])
    room = min(left_weight * (known_weight - left_weight), ahead_weight * (known_weight - ahead_weight))
    return _bound(parameters, known_weight, apart, room)


def max_gain_of_split(parameters, sums, known_weight, left_weight):
    """Return an upper bound of the gain of the current split, times the node's weight."""
    apart = 0.0
    for k in range(sums.known.shape[0]):
        if sums.known[k] > 0.0:
            here = sums.left[k] - left_weight * (sums.known[k] / known_weight)
            apart += here * here / (1.0 if parameters.criterion == c.GINI else sums.known[k])
    return _bound(parameters, known_weight, apart, left_weight * (known_weight - left_weight))


def _bound(parameters, known_weight, apart, room):
    if not room > 0.0:
        return INFINITY
    scale = known_weight if parameters.criterion == c.GINI else known_weight * known_weight / LN_2
    return scale * apart / room * UNSURE


def can_win(parameters, sums, search):
    """Return whether a split between the two states of the branches may gain more than the best one.

    In between each class's weight goes from one state to the other. Gain is convex in these weights, so it is largest
    at a corner, where each weight is in one of its two states.
    """
    criterion, n_classes = parameters.criterion, parameters.n_classes
    left, right = cython.address(sums.corner_left[0]), cython.address(sums.corner_right[0])
    totals = cython.address(sums.known[0])
    for corner in range(1 << n_classes):
        for k in range(n_classes):
            moved: cython.bint = (corner >> k) & 1 == 1
            left[k] = sums.ahead_left[k] if moved else sums.left[k]
            right[k] = sums.ahead_right[k] if moved else sums.right[k]
        terms = term(criterion, n_classes, left, totals) + term(criterion, n_classes, right, totals)
        if search.offset + search.scale * terms > search.best:
            return True
    return False


def count_splits(parameters, columns, attribute, sequence, first, last):
    """Count the splits between neighbours of ``sequence[first:last]``, without a jump that depends on them."""
    count: cython.longlong = 0
    codes = cython.address(columns.codes[attribute, 0])
    here = codes[sequence[first]]
    if not parameters.window:
        for at in range(first + 1, last):
            following = codes[sequence[at]]
            count += here != following
            here = following
        return count
    first_value = columns.value_start[attribute]
    for at in range(first + 1, last):
        following = codes[sequence[at]]
        count += is_apart(columns, first_value, here, following)
        here = following
    return count


def is_apart(columns, first_value, below, above):
    """Return whether two ranks, the first not above the second, have values that C4.5 treats as different."""
    step = columns.step[first_value + below]
    if step == c.FAR_APART:
        return columns.value[first_value + below] + GAP < columns.value[first_value + above]
    return above - below >= step
