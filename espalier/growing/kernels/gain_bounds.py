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

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import NEIGHBOUR_GAP
from espalier.growing.kernels.criterion import term
from espalier.kernels.jit import inner

MAX_CORNER_CLASSES = 3
"""Classes up to which all corners of a block are looked at: 2 to the power of this."""
SMALL = 100
LARGE = 2_000
"""Known rows of a node from which blocks of 16, and of 32, are tried."""
FAR_APART = 255
"""A step that does not say by how many ranks two values must be apart: the values have to be looked at."""
UNSURE = 1.0 + 1e-9  # exceeds the rounding error of a bound


@inner
def has_bound(parameters):
    """Return whether the criterion's gain has a bound."""
    return parameters.criterion <= c.GINI and parameters.n_classes >= 2


@inner
def block_of(parameters, n_known):
    """Return how many rows are skipped at once; 0, none, where a block would rarely be skipped."""
    if parameters.n_classes > MAX_CORNER_CLASSES or n_known < SMALL:
        return 0
    return 16 if n_known < LARGE else 32


@inner
def advance_block(targets, sums, block, left_weight):
    """Move the next rows to the left branch in ``sums.ahead_left`` and ``ahead_right``. Return its weight then."""
    for k in range(sums.left.size):
        sums.ahead_left[k], sums.ahead_right[k] = sums.left[k], sums.right[k]
    if sums.left.size == 2:
        return _advance_two_classes(sums, block, left_weight)
    for row in block:
        weight, k = sums.weight[row], targets.target_class[row]
        left_weight += weight
        sums.ahead_left[k] += weight
        sums.ahead_right[k] = max(0.0, sums.ahead_right[k] - weight)
    return left_weight


@inner
def _advance_two_classes(sums, block, left_weight):
    """Advance two classes: their four sums stay in registers, and no branch depends on the class."""
    left, other_left = sums.ahead_left[0], sums.ahead_left[1]
    right, other_right = sums.ahead_right[0], sums.ahead_right[1]
    for row in block:
        one, other = sums.by_class[row, 0], sums.by_class[row, 1]
        left_weight += one + other
        left += one
        other_left += other
        right = max(0.0, right - one)
        other_right = max(0.0, other_right - other)
    sums.ahead_left[0], sums.ahead_left[1] = left, other_left
    sums.ahead_right[0], sums.ahead_right[1] = right, other_right
    return left_weight


@inner
def max_gain_in_block(parameters, sums, known_weight, left_weight, ahead_weight):
    """Return an upper bound of the gain, times the node's weight, of every split from here to the state ahead."""
    apart = 0.0
    for k in range(sums.known.size):
        if sums.known[k] > 0.0:
            share = sums.known[k] / known_weight
            here = sums.left[k] - left_weight * share
            own = sums.ahead_left[k] - sums.left[k]
            most = here + own * (1.0 - share)
            fewest = here - (ahead_weight - left_weight - own) * share
            apart += max(most * most, fewest * fewest) / (1.0 if parameters.criterion == c.GINI else sums.known[k])
    room = min(left_weight * (known_weight - left_weight), ahead_weight * (known_weight - ahead_weight))
    return _bound(parameters, known_weight, apart, room)


@inner
def max_gain_of_split(parameters, sums, known_weight, left_weight):
    """Return an upper bound of the gain of the current split, times the node's weight."""
    apart = 0.0
    for k in range(sums.known.size):
        if sums.known[k] > 0.0:
            here = sums.left[k] - left_weight * (sums.known[k] / known_weight)
            apart += here * here / (1.0 if parameters.criterion == c.GINI else sums.known[k])
    return _bound(parameters, known_weight, apart, left_weight * (known_weight - left_weight))


@inner
def _bound(parameters, known_weight, apart, room):
    if not room > 0.0:
        return math.inf
    scale = known_weight if parameters.criterion == c.GINI else known_weight * known_weight / math.log(2.0)
    return scale * apart / room * UNSURE


@inner
def can_win(parameters, sums, totals, offset, scale, best_gain):
    """Return whether a split between the two states of the branches may gain more than `best_gain`.

    In between each class's weight goes from one state to the other. Gain is convex in these weights, so it is largest
    at a corner, where each weight is in one of its two states.
    """
    for corner in range(1 << sums.left.size):
        for k in range(sums.left.size):
            moved = (corner >> k) & 1 == 1
            sums.corner_left[k] = sums.ahead_left[k] if moved else sums.left[k]
            sums.corner_right[k] = sums.ahead_right[k] if moved else sums.right[k]
        inner = term(parameters.criterion, sums.corner_left, totals) + term(
            parameters.criterion, sums.corner_right, totals
        )
        if offset + scale * inner > best_gain:
            return True
    return False


@inner
def count_splits(parameters, columns, codes, block, first_value):
    """Count the splits between neighbours of a block, without a jump that depends on them."""
    count = 0
    here = codes[block[0]]
    if parameters.window == 0:
        for row in block[1:]:
            following = codes[row]
            count += 1 if here != following else 0
            here = following
        return count
    for row in block[1:]:
        following = codes[row]
        count += 1 if is_apart(columns, first_value, here, following) else 0
        here = following
    return count


@inner
def is_apart(columns, first_value, here, following):
    """Return whether two ranks, the first not above the second, have values that C4.5 treats as different."""
    step = columns.step[first_value + here]
    if step == FAR_APART:
        return columns.value[first_value + here] + NEIGHBOUR_GAP < columns.value[first_value + following]
    return following - here >= step
