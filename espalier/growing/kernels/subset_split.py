"""Categories divided in two: the best subset (Breiman and others, 1984), or each one against the rest."""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import (
    EXHAUSTIVE_CATEGORIES,
    INT_ABOVE,
    INT_BELOW,
    INT_HEURISTIC,
    INT_TEST,
    INT_UNKNOWN,
    N_POWER_STEPS,
    WEIGHT_TOLERANCE,
    keep_sides,
    term_with_unknown,
    tie_of_gains,
)
from espalier.growing.kernels.category_sums import form_of_groups
from espalier.growing.kernels.criterion import clear, plogp, sort_by_key, term, weight_of
from espalier.growing.kernels.median import add_to_trees, deviation, deviations_of_order, take_out
from espalier.kernels.jit import inner


@inner
def offer_subset(rules, rows, work, groups, subsets, rare, place, n_present, both, ints):
    """Two groups of the categories present; branch 0 holds the first of them."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = form_of_groups(rules, rows, work, rare, place, n_present, both)
    if rules.n_classes > 2 and n_present <= EXHAUSTIVE_CATEGORIES:
        gain = _best_mask(rules, work, groups, place, n_present, both, offset, scale, ints)
        for j in range(n_present):
            groups.branch[j] = 0 if j == 0 else (ints[INT_BELOW] >> (j - 1)) & 1
        return gain, 0.0
    gain = 0.0
    found = False
    n_orders = rules.n_classes + 1 if rules.n_classes > 2 else 1
    for which in range(n_orders):
        _order_groups(rules, work, groups, subsets, which, n_present)
        found, gain = _best_cut_of_groups(
            rules, rows, work, groups, subsets, rare, place, n_present, both, offset, scale, which, found, gain, ints
        )
    if not found:
        return 0.0, 0.0
    ints[INT_HEURISTIC] = 1 if n_orders > 1 else 0
    _order_groups(rules, work, groups, subsets, ints[INT_BELOW], n_present)
    first_is_right = 0
    for i in range(n_present):
        j = subsets.order[i]
        groups.branch[j] = 1 if i >= ints[INT_ABOVE] else 0
        if j == 0:
            first_is_right = groups.branch[j]
    if first_is_right == 1:
        for j in range(n_present):
            groups.branch[j] = 1 - groups.branch[j]
        for k in range(work.best_left.size):
            work.best_left[k], work.best_right[k] = work.best_right[k], work.best_left[k]
    return gain, 0.0


@inner
def _best_mask(rules, work, groups, place, n_present, both, offset, scale, ints):
    """Try every division of at most ten categories; bit j−1 of the mask puts the j-th one into branch 1."""
    totals = work.node if both else work.known
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    found = False
    worth = 0.0
    for mask in range(1, 1 << (n_present - 1)):
        clear(work.left)
        clear(work.right)
        for j in range(n_present):
            side = work.right if j > 0 and (mask >> (j - 1)) & 1 else work.left
            for k in range(side.size):
                side[k] += groups.group[groups.place[j], k]
        left_weight = weight_of(work.left, rules.n_classes)
        right_weight = weight_of(work.right, rules.n_classes)
        for way in range(2 if both else 1):
            left_full = left_weight + (unknown_weight if both and way == 0 else 0.0)
            right_full = right_weight + (unknown_weight if both and way == 1 else 0.0)
            if left_full < margin or right_full < margin:
                continue
            if both:
                inner = term_with_unknown(rules, work, way, totals)
            else:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of_gains(rules, place):
                found = True
                worth = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = mask
                ints[INT_UNKNOWN] = way if both else -1
                keep_sides(work, way if both else -1)
    return worth


@inner
def _order_groups(rules, work, groups, subsets, which, n_present):
    """Write into subsets.order the categories present by mean response, by the share of class `which`, or along the
    principal component of the class shares (which = n_classes); equal ones ascend by code.
    """
    if rules.n_classes > 2 and which == rules.n_classes:
        _principal_component(rules, work, groups, subsets, n_present)
    else:
        chosen = 1 if rules.n_classes == 2 else which
        for j in range(n_present):
            group = groups.group[groups.place[j]]
            weight = weight_of(group, rules.n_classes)
            groups.key[j] = (group[chosen] if rules.n_classes > 0 else group[3]) / weight
    for j in range(n_present):
        subsets.order[j] = j
    sort_by_key(subsets.order, groups.key, n_present, groups.scratch)


@inner
def _principal_component(rules, work, groups, subsets, n_present):
    """Write each category's place along the first principal component of the class shares (Coppersmith and others,
    1999) into groups.key: power iteration on the weighted covariance.
    """
    n_classes = rules.n_classes
    direction, centre, summed = subsets.direction[0], subsets.direction[1], subsets.direction[2]
    whole = weight_of(work.known, n_classes)
    for k in range(n_classes):
        direction[k] = 1.0 + k
        centre[k] = work.known[k] / whole
    for _ in range(N_POWER_STEPS):
        for k in range(n_classes):
            summed[k] = 0.0
        for j in range(n_present):
            group = groups.group[groups.place[j]]
            weight = weight_of(group, n_classes)
            along = 0.0
            for k in range(n_classes):
                along += (group[k] / weight - centre[k]) * direction[k]
            for k in range(n_classes):
                summed[k] += weight * along * (group[k] / weight - centre[k])
        length = 0.0
        for k in range(n_classes):
            length += summed[k] * summed[k]
        length = math.sqrt(length)
        for k in range(n_classes):
            direction[k] = summed[k] / length if length > 0.0 else 0.0
    for j in range(n_present):
        group = groups.group[groups.place[j]]
        weight = weight_of(group, n_classes)
        along = 0.0
        for k in range(n_classes):
            along += (group[k] / weight - centre[k]) * direction[k]
        groups.key[j] = along


@inner
def _best_cut_of_groups(
    rules, rows, work, groups, subsets, rare, place, n_present, both, offset, scale, which, found, worth, ints
):  # fmt: skip
    """Try the cuts of subsets.order; returns (found, gain), improved where a cut is better."""
    totals = work.node if both else work.known
    known_weight = weight_of(work.known, rules.n_classes)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    absolute = rules.criterion == c.ABSOLUTE_ERROR
    n_known = 0
    if absolute:
        n_known = _deviations_of_groups(rows, work, groups, subsets, rare, n_present, both)
    clear(work.left)
    n_left = 0
    first_is_left = False
    for i in range(1, n_present):
        j = subsets.order[i - 1]
        n_left += groups.group_rows[groups.place[j]]
        first_is_left = first_is_left or j == 0
        for k in range(work.left.size):
            work.left[k] += groups.group[groups.place[j], k]
            rest = work.known[k] - work.left[k]
            work.right[k] = max(0.0, rest) if rules.n_classes > 0 else rest
        left_weight = weight_of(work.left, rules.n_classes)
        for way in range(2 if both else 1):
            # Branch 0 is the side of the first category, whichever side of the cut that is.
            side = way if first_is_left else 1 - way
            left_full = left_weight + (unknown_weight if both and side == 0 else 0.0)
            right_full = known_weight - left_weight + (unknown_weight if both and side == 1 else 0.0)
            if left_full < margin or right_full < margin:
                continue
            if absolute:
                left_table = rare.forward_all if both and side == 0 else rare.forward
                right_table = rare.backward_all if both and side == 1 else rare.backward
                inner = left_table[n_left] + right_table[n_known - n_left]
            elif both:
                inner = term_with_unknown(rules, work, side, totals)
            else:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of_gains(rules, place):
                found = True
                worth = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = which
                ints[INT_ABOVE] = i
                ints[INT_UNKNOWN] = way if both else -1
                keep_sides(work, side if both else -1)
    return found, worth


@inner
def _deviations_of_groups(rows, work, groups, subsets, rare, n_present, both):
    """Fill the tables of prefix deviations along subsets.order; returns the number of known rows."""
    end, stop = rare.bucket_start[n_present], rare.bucket_start[n_present + 1]
    listed = rare.sequence
    n_known = 0
    for i in range(n_present):
        j = subsets.order[i]
        for at in range(rare.bucket_start[j], rare.bucket_start[j + 1]):
            listed[n_known] = rare.bucket[at]
            n_known += 1
    for i in range(end, stop):
        listed[i] = rare.bucket[i]
    deviations_of_order(rows, work, rare, listed, 0, n_known, stop, both)
    return n_known


@inner
def offer_one_vs_rest(rules, rows, work, groups, rare, place, n_present, both, ints):
    """Each category present against the rest; by gain ratio where that is the criterion."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = form_of_groups(rules, rows, work, rare, place, n_present, both)
    totals = work.node if both else work.known
    known_weight = weight_of(work.known, rules.n_classes)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    found = False
    worth = 0.0
    best_gain = 0.0
    if rules.criterion == c.ABSOLUTE_ERROR:
        _load_trees(rows, work, rare, 0, rare.bucket_start[n_present], 1.0)
    for j in range(n_present):
        group = groups.group[groups.place[j]]
        for k in range(group.size):
            work.left[k] = group[k]
            rest = work.known[k] - group[k]
            work.right[k] = max(0.0, rest) if rules.n_classes > 0 else rest
        left_weight = weight_of(group, rules.n_classes)
        for way in range(2 if both else 1):
            left_full = left_weight + (unknown_weight if both and way == 0 else 0.0)
            right_full = known_weight - left_weight + (unknown_weight if both and way == 1 else 0.0)
            if left_full < margin or right_full < margin:
                continue
            if rules.criterion == c.ABSOLUTE_ERROR:
                inner = _one_against_rest_deviation(rows, work, rare, j, n_present, way if both else -1)
            elif both:
                inner = term_with_unknown(rules, work, way, totals)
            else:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            gain = offset + scale * inner
            value = gain
            if rules.criterion == c.GAIN_RATIO:
                aside = 0.0 if both else unknown_weight
                whole = known_weight + unknown_weight
                value /= plogp(left_full, whole) + plogp(right_full, whole) + plogp(aside, whole)
            if not found or value > worth + tie_of_gains(rules, place):
                found = True
                worth = value
                best_gain = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = groups.present[groups.place[j]]
                ints[INT_UNKNOWN] = way if both else -1
                keep_sides(work, way if both else -1)
    if rules.criterion == c.ABSOLUTE_ERROR:
        for at in range(rare.bucket_start[n_present + 1]):
            take_out(rare.bucket[at], rare.target_rank, rare.weight_tree, rare.sum_tree)
    for j in range(n_present):
        groups.branch[j] = 0 if groups.present[groups.place[j]] == ints[INT_BELOW] else 1
    return best_gain, 0.0


@inner
def _load_trees(rows, work, rare, start, stop, sign):
    for at in range(start, stop):
        row = rare.bucket[at]
        add_to_trees(rare.target_rank[row], sign * work.weight[row], rows.target[row], rare.weight_tree, rare.sum_tree)


@inner
def _one_against_rest_deviation(rows, work, rare, j, n_present, way):
    """Give the deviations of one category and of the rest, while the trees hold all known rows."""
    first, last = rare.bucket_start[j], rare.bucket_start[j + 1]
    end, stop = rare.bucket_start[n_present], rare.bucket_start[n_present + 1]
    _load_trees(rows, work, rare, first, last, -1.0)
    if way == 1:
        _load_trees(rows, work, rare, end, stop, 1.0)
    whole, total = work.right[0], work.right[3]
    if way == 1:
        whole, total = whole + work.unknown[0], total + work.unknown[3]
    rest = deviation(whole, total, rare.target_value, rare.weight_tree, rare.sum_tree)
    if way == 1:
        _load_trees(rows, work, rare, end, stop, -1.0)
    _load_trees(rows, work, rare, first, last, 1.0)
    # The trees are taken, so the category itself is sorted apart.
    return rest + _small_deviation(rows, work, rare, first, last, end, stop if way == 0 else end)


@inner
def _small_deviation(rows, work, rare, first, last, extra_first, extra_last):
    """Give the deviation of some rows from their median without the trees: sort, then one walk."""
    count = 0
    whole = 0.0
    for at in range(first, last):
        rare.forward[count] = rows.target[rare.bucket[at]]
        rare.backward[count] = work.weight[rare.bucket[at]]
        whole += rare.backward[count]
        count += 1
    for at in range(extra_first, extra_last):
        rare.forward[count] = rows.target[rare.bucket[at]]
        rare.backward[count] = work.weight[rare.bucket[at]]
        whole += rare.backward[count]
        count += 1
    _sort_pairs(rare.forward, rare.backward, count, rare.forward_all, rare.backward_all)
    median = 0.0
    below = 0.0
    for i in range(count):
        below += rare.backward[i]
        if below >= 0.5 * whole * (1.0 - 1e-12):
            median = rare.forward[i]
            break
    answer = 0.0
    for i in range(count):
        answer += rare.backward[i] * abs(rare.forward[i] - median)
    return answer


@inner
def _sort_pairs(values, weights, count, other_values, other_weights):
    """Sort pairs by value, by merges of doubling runs."""
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            middle, end = min(start + width, count), min(start + 2 * width, count)
            left, right = start, middle
            for at in range(start, end):
                if left < middle and (right >= end or values[left] <= values[right]):
                    other_values[at], other_weights[at] = values[left], weights[left]
                    left += 1
                else:
                    other_values[at], other_weights[at] = values[right], weights[right]
                    right += 1
        for at in range(count):
            values[at], weights[at] = other_values[at], other_weights[at]
        width *= 2
