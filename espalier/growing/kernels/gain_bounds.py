"""Stretches of an ordered attribute's rows that cannot hold its best cut, and are passed over.

With weight l of the K known on the left, l_k of which are of class k (t_k of all), ``a_k = l_k - l * t_k / K`` says how
far the left side is from having every class in proportion. A cut's gain, times the weight of the node, is at most

- entropies, in bits: ``K^2 / (l * (K - l) * ln 2) * sum of a_k^2 / t_k``, Pearson's statistic over ln 2, since a
  logarithm is at most its argument less 1;
- Gini: ``K / (l * (K - l)) * sum of a_k^2``, which it equals.

Over a block each a_k rises and falls only so far, and ``l * (K - l)`` is least at one of the ends: if even that is not
better than the best so far, no cut inside is. Only where this is not enough, up to three classes, the gain itself is
asked for in the corners, at the price of six logarithms each.
"""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import NEIGHBOUR_GAP
from espalier.growing.kernels.criterion import term
from espalier.kernels.jit import inner

MOST_CORNERED = 3
"""Classes up to which all corners of a block are looked at: 2 to the power of this."""
SMALL = 100
LARGE = 2_000
"""Known rows of a node from which blocks of 16, and of 32, are tried."""
FAR_APART = 255
"""A step that does not say by how many ranks two values must be apart: the values have to be looked at."""
UNSURE = 1.0 + 1e-9  # more than the rounding of a bound


@inner
def has_bound(rules):
    """Whether a score is one of those whose gain has a bound."""
    return rules.criterion <= c.GINI and rules.n_classes >= 2


@inner
def block_of(rules, n_known):
    """Give how many rows are looked at together; 0, one at a time, where a block would hardly ever be passed over."""
    if rules.n_classes > MOST_CORNERED or n_known < SMALL:
        return 0
    return 16 if n_known < LARGE else 32


@inner
def look_ahead(rows, work, block, left_weight):
    """Send the next rows to the left, in ``work.ahead_left`` and ``ahead_right``; gives the left side's weight then."""
    for k in range(work.left.size):
        work.ahead_left[k], work.ahead_right[k] = work.left[k], work.right[k]
    if work.left.size == 2:
        return _send_two_classes(work, block, left_weight)
    for row in block:
        weight, k = work.weight[row], rows.target_class[row]
        left_weight += weight
        work.ahead_left[k] += weight
        work.ahead_right[k] = max(0.0, work.ahead_right[k] - weight)
    return left_weight


@inner
def _send_two_classes(work, block, left_weight):
    """Do the same for two classes: their four sums stay in registers, and no class is guessed."""
    left, other_left = work.ahead_left[0], work.ahead_left[1]
    right, other_right = work.ahead_right[0], work.ahead_right[1]
    for row in block:
        one, other = work.by_class[row, 0], work.by_class[row, 1]
        left_weight += one + other
        left += one
        other_left += other
        right = max(0.0, right - one)
        other_right = max(0.0, other_right - other)
    work.ahead_left[0], work.ahead_left[1] = left, other_left
    work.ahead_right[0], work.ahead_right[1] = right, other_right
    return left_weight


@inner
def most_of_block(rules, work, known_weight, left_weight, ahead_weight):
    """Give what no cut's gain, times the weight of the node, is above from here to the state ahead."""
    apart = 0.0
    for k in range(work.known.size):
        if work.known[k] > 0.0:
            share = work.known[k] / known_weight
            here = work.left[k] - left_weight * share
            own = work.ahead_left[k] - work.left[k]
            most = here + own * (1.0 - share)
            fewest = here - (ahead_weight - left_weight - own) * share
            apart += max(most * most, fewest * fewest) / (1.0 if rules.criterion == c.GINI else work.known[k])
    room = min(left_weight * (known_weight - left_weight), ahead_weight * (known_weight - ahead_weight))
    return _bound(rules, known_weight, apart, room)


@inner
def most_of_cut(rules, work, known_weight, left_weight):
    """Give what the gain of the cut at hand, times the weight of the node, is not above."""
    apart = 0.0
    for k in range(work.known.size):
        if work.known[k] > 0.0:
            here = work.left[k] - left_weight * (work.known[k] / known_weight)
            apart += here * here / (1.0 if rules.criterion == c.GINI else work.known[k])
    return _bound(rules, known_weight, apart, left_weight * (known_weight - left_weight))


@inner
def _bound(rules, known_weight, apart, room):
    if not room > 0.0:
        return math.inf
    scale = known_weight if rules.criterion == c.GINI else known_weight * known_weight / math.log(2.0)
    return scale * apart / room * UNSURE


@inner
def may_win(rules, work, totals, offset, scale, worth):
    """Whether a cut between the two states of the sides may gain more than `worth`.

    On the way each class's weight goes from one to the other. Gain is convex in these weights, so it is largest where
    each is at one end of its way, and no cut in between gains more.
    """
    for corner in range(1 << work.left.size):
        for k in range(work.left.size):
            moved = (corner >> k) & 1 == 1
            work.corner_left[k] = work.ahead_left[k] if moved else work.left[k]
            work.corner_right[k] = work.ahead_right[k] if moved else work.right[k]
        inner = term(rules.criterion, work.corner_left, totals) + term(rules.criterion, work.corner_right, totals)
        if offset + scale * inner > worth:
            return True
    return False


@inner
def count_cuts(rules, columns, codes, block, first_value):
    """Count the cuts between neighbours of a block, without a jump that depends on them."""
    count = 0
    here = codes[block[0]]
    if rules.window == 0:
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
    """Whether two ranks, the first not above the second, have values that C4.5 takes for different ones."""
    step = columns.step[first_value + here]
    if step == FAR_APART:
        return columns.value[first_value + here] + NEIGHBOUR_GAP < columns.value[first_value + following]
    return following - here >= step
