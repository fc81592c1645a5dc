"""Binary splits of categories: the best subset (Breiman and others, 1984), or each category against the rest."""

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
    store_branches,
    term_with_unknown,
    tie_of_gains,
)
from espalier.growing.kernels.category_sums import gain_form_of_categories
from espalier.growing.kernels.criterion import clear, plogp, sort_by_key, term, weight_of
from espalier.growing.kernels.median import add_to_trees, deviation, deviations_of_order, remove_from_trees
from espalier.kernels.jit import inner


@inner
def best_subset_split(parameters, targets, work, context, n_present, both, ints):
    """Find the best two groups of the categories present; branch 0 holds the first of them."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = gain_form_of_categories(parameters, targets, work, context, n_present, both)
    if parameters.n_classes > 2 and n_present <= EXHAUSTIVE_CATEGORIES:
        gain = _best_mask(parameters, work, context, n_present, both, offset, scale, ints)
        for j in range(n_present):
            work.categories.branch[j] = 0 if j == 0 else (ints[INT_BELOW] >> (j - 1)) & 1
        return gain, 0.0
    gain = 0.0
    found = False
    n_orders = parameters.n_classes + 1 if parameters.n_classes > 2 else 1
    for which in range(n_orders):
        _order_categories(parameters, work, which, n_present)
        found, gain = _best_split_of_order(
            parameters, targets, work, context, n_present, both, offset, scale, which, found, gain, ints
        )
    if not found:
        return 0.0, 0.0
    ints[INT_HEURISTIC] = 1 if n_orders > 1 else 0
    _order_categories(parameters, work, ints[INT_BELOW], n_present)
    first_is_right = 0
    for i in range(n_present):
        j = work.categories.order[i]
        work.categories.branch[j] = 1 if i >= ints[INT_ABOVE] else 0
        if j == 0:
            first_is_right = work.categories.branch[j]
    if first_is_right == 1:
        for j in range(n_present):
            work.categories.branch[j] = 1 - work.categories.branch[j]
        for k in range(work.sums.best_left.size):
            work.sums.best_left[k], work.sums.best_right[k] = work.sums.best_right[k], work.sums.best_left[k]
    return gain, 0.0


@inner
def _best_mask(parameters, work, context, n_present, both, offset, scale, ints):
    """Try every subset of at most ten categories; bit j−1 of the mask puts the j-th one into branch 1."""
    totals = work.sums.node if both else work.sums.known
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    margin = 0.0 if parameters.leaf_weight_of_winner == 1 else parameters.min_weight_leaf - WEIGHT_TOLERANCE
    found = False
    best_score = 0.0
    for mask in range(1, 1 << (n_present - 1)):
        clear(work.sums.left)
        clear(work.sums.right)
        for j in range(n_present):
            side = work.sums.right if j > 0 and (mask >> (j - 1)) & 1 else work.sums.left
            for k in range(side.size):
                side[k] += work.categories.group[work.categories.ascending[j], k]
        left_weight = weight_of(work.sums.left, parameters.n_classes)
        right_weight = weight_of(work.sums.right, parameters.n_classes)
        for branch in range(2 if both else 1):
            left_full = left_weight + (unknown_weight if both and branch == 0 else 0.0)
            right_full = right_weight + (unknown_weight if both and branch == 1 else 0.0)
            if left_full < margin or right_full < margin:
                continue
            if both:
                inner = term_with_unknown(parameters, work.sums, branch, totals)
            else:
                inner = term(parameters.criterion, work.sums.left, totals) + term(
                    parameters.criterion, work.sums.right, totals
                )
            gain = offset + scale * inner
            if not found or gain > best_score + tie_of_gains(parameters, context):
                found = True
                best_score = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = mask
                ints[INT_UNKNOWN] = branch if both else -1
                store_branches(work.sums, branch if both else -1)
    return best_score


@inner
def _order_categories(parameters, work, which, n_present):
    """Write an order of the categories present into categories.order; equal ones ascend by code.

    They are ordered by mean response, by the share of class `which`, or along the principal component of the class
    shares (which = n_classes).
    """
    if parameters.n_classes > 2 and which == parameters.n_classes:
        _principal_component(parameters, work, n_present)
    else:
        chosen = 1 if parameters.n_classes == 2 else which
        for j in range(n_present):
            group = work.categories.group[work.categories.ascending[j]]
            weight = weight_of(group, parameters.n_classes)
            work.categories.key[j] = (group[chosen] if parameters.n_classes > 0 else group[3]) / weight
    for j in range(n_present):
        work.categories.order[j] = j
    sort_by_key(work.categories.order, work.categories.key, n_present, work.categories.scratch)


@inner
def _principal_component(parameters, work, n_present):
    """Write each category's coordinate along the principal component of the class shares into categories.key.

    Power iteration on the weighted covariance (Coppersmith and others, 1999).
    """
    n_classes = parameters.n_classes
    direction, centre, summed = work.categories.direction[0], work.categories.direction[1], work.categories.direction[2]
    whole = weight_of(work.sums.known, n_classes)
    for k in range(n_classes):
        direction[k] = 1.0 + k
        centre[k] = work.sums.known[k] / whole
    for _ in range(N_POWER_STEPS):
        for k in range(n_classes):
            summed[k] = 0.0
        for j in range(n_present):
            group = work.categories.group[work.categories.ascending[j]]
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
        group = work.categories.group[work.categories.ascending[j]]
        weight = weight_of(group, n_classes)
        along = 0.0
        for k in range(n_classes):
            along += (group[k] / weight - centre[k]) * direction[k]
        work.categories.key[j] = along


@inner
def _best_split_of_order(
    parameters, targets, work, context, n_present, both, offset, scale, which, found, best_score, ints
):
    """Try the splits along categories.order. Return (found, gain), updated if a split is better."""
    totals = work.sums.node if both else work.sums.known
    known_weight = weight_of(work.sums.known, parameters.n_classes)
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    margin = 0.0 if parameters.leaf_weight_of_winner == 1 else parameters.min_weight_leaf - WEIGHT_TOLERANCE
    absolute = parameters.criterion == c.ABSOLUTE_ERROR
    n_known = 0
    if absolute:
        n_known = _deviations_of_categories(targets, work, n_present, both)
    clear(work.sums.left)
    n_left = 0
    first_is_left = False
    for i in range(1, n_present):
        j = work.categories.order[i - 1]
        n_left += work.categories.n_rows_of[work.categories.ascending[j]]
        first_is_left = first_is_left or j == 0
        for k in range(work.sums.left.size):
            work.sums.left[k] += work.categories.group[work.categories.ascending[j], k]
            rest = work.sums.known[k] - work.sums.left[k]
            work.sums.right[k] = max(0.0, rest) if parameters.n_classes > 0 else rest
        left_weight = weight_of(work.sums.left, parameters.n_classes)
        for branch in range(2 if both else 1):
            # Branch 0 is that of the first category, whether or not it is the left one along the order.
            side = branch if first_is_left else 1 - branch
            left_full = left_weight + (unknown_weight if both and side == 0 else 0.0)
            right_full = known_weight - left_weight + (unknown_weight if both and side == 1 else 0.0)
            if left_full < margin or right_full < margin:
                continue
            if absolute:
                left_table = work.medians.forward_all if both and side == 0 else work.medians.forward
                right_table = work.medians.backward_all if both and side == 1 else work.medians.backward
                inner = left_table[n_left] + right_table[n_known - n_left]
            elif both:
                inner = term_with_unknown(parameters, work.sums, side, totals)
            else:
                inner = term(parameters.criterion, work.sums.left, totals) + term(
                    parameters.criterion, work.sums.right, totals
                )
            gain = offset + scale * inner
            if not found or gain > best_score + tie_of_gains(parameters, context):
                found = True
                best_score = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = which
                ints[INT_ABOVE] = i
                ints[INT_UNKNOWN] = branch if both else -1
                store_branches(work.sums, side if both else -1)
    return found, best_score


@inner
def _deviations_of_categories(targets, work, n_present, both):
    """Fill the tables of prefix deviations along categories.order. Return the number of known rows."""
    end, stop = work.medians.bucket_start[n_present], work.medians.bucket_start[n_present + 1]
    listed = work.medians.sequence
    n_known = 0
    for i in range(n_present):
        j = work.categories.order[i]
        for at in range(work.medians.bucket_start[j], work.medians.bucket_start[j + 1]):
            listed[n_known] = work.medians.bucket[at]
            n_known += 1
    for i in range(end, stop):
        listed[i] = work.medians.bucket[i]
    deviations_of_order(targets, work, listed, 0, n_known, stop, both)
    return n_known


@inner
def best_one_vs_rest_split(parameters, targets, work, context, n_present, both, ints):
    """Find the best category against the rest; by gain ratio if that is the criterion."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = gain_form_of_categories(parameters, targets, work, context, n_present, both)
    totals = work.sums.node if both else work.sums.known
    known_weight = weight_of(work.sums.known, parameters.n_classes)
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    margin = 0.0 if parameters.leaf_weight_of_winner == 1 else parameters.min_weight_leaf - WEIGHT_TOLERANCE
    found = False
    best_score = 0.0
    best_gain = 0.0
    if parameters.criterion == c.ABSOLUTE_ERROR:
        _load_trees(targets, work, 0, work.medians.bucket_start[n_present], 1.0)
    for j in range(n_present):
        group = work.categories.group[work.categories.ascending[j]]
        for k in range(group.size):
            work.sums.left[k] = group[k]
            rest = work.sums.known[k] - group[k]
            work.sums.right[k] = max(0.0, rest) if parameters.n_classes > 0 else rest
        left_weight = weight_of(group, parameters.n_classes)
        for branch in range(2 if both else 1):
            left_full = left_weight + (unknown_weight if both and branch == 0 else 0.0)
            right_full = known_weight - left_weight + (unknown_weight if both and branch == 1 else 0.0)
            if left_full < margin or right_full < margin:
                continue
            if parameters.criterion == c.ABSOLUTE_ERROR:
                inner = _one_against_rest_deviation(targets, work, j, n_present, branch if both else -1)
            elif both:
                inner = term_with_unknown(parameters, work.sums, branch, totals)
            else:
                inner = term(parameters.criterion, work.sums.left, totals) + term(
                    parameters.criterion, work.sums.right, totals
                )
            gain = offset + scale * inner
            value = gain
            if parameters.criterion == c.GAIN_RATIO:
                aside = 0.0 if both else unknown_weight
                whole = known_weight + unknown_weight
                value /= plogp(left_full, whole) + plogp(right_full, whole) + plogp(aside, whole)
            if not found or value > best_score + tie_of_gains(parameters, context):
                found = True
                best_score = value
                best_gain = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = work.categories.present[work.categories.ascending[j]]
                ints[INT_UNKNOWN] = branch if both else -1
                store_branches(work.sums, branch if both else -1)
    if parameters.criterion == c.ABSOLUTE_ERROR:
        for at in range(work.medians.bucket_start[n_present + 1]):
            remove_from_trees(work.medians, work.medians.bucket[at])
    for j in range(n_present):
        work.categories.branch[j] = 0 if work.categories.present[work.categories.ascending[j]] == ints[INT_BELOW] else 1
    return best_gain, 0.0


@inner
def _load_trees(targets, work, start, stop, sign):
    for at in range(start, stop):
        row = work.medians.bucket[at]
        add_to_trees(work.medians, work.medians.target_rank[row], sign * work.sums.weight[row], targets.target[row])


@inner
def _one_against_rest_deviation(targets, work, j, n_present, branch):
    """Return the deviations of one category and of the rest, while the trees hold all known rows."""
    first, last = work.medians.bucket_start[j], work.medians.bucket_start[j + 1]
    end, stop = work.medians.bucket_start[n_present], work.medians.bucket_start[n_present + 1]
    _load_trees(targets, work, first, last, -1.0)
    if branch == 1:
        _load_trees(targets, work, end, stop, 1.0)
    whole, total = work.sums.right[0], work.sums.right[3]
    if branch == 1:
        whole, total = whole + work.sums.unknown[0], total + work.sums.unknown[3]
    rest = deviation(work.medians, whole, total)
    if branch == 1:
        _load_trees(targets, work, end, stop, -1.0)
    _load_trees(targets, work, first, last, 1.0)
    # The trees are in use, so the category itself is sorted.
    return rest + _small_deviation(targets, work, first, last, end, stop if branch == 0 else end)


@inner
def _small_deviation(targets, work, first, last, extra_first, extra_last):
    """Return the deviation of some rows from their median without the trees: sort, then one pass."""
    count = 0
    whole = 0.0
    for at in range(first, last):
        work.medians.forward[count] = targets.target[work.medians.bucket[at]]
        work.medians.backward[count] = work.sums.weight[work.medians.bucket[at]]
        whole += work.medians.backward[count]
        count += 1
    for at in range(extra_first, extra_last):
        work.medians.forward[count] = targets.target[work.medians.bucket[at]]
        work.medians.backward[count] = work.sums.weight[work.medians.bucket[at]]
        whole += work.medians.backward[count]
        count += 1
    _sort_pairs(work.medians.forward, work.medians.backward, count, work.medians.forward_all, work.medians.backward_all)
    median = 0.0
    below = 0.0
    for i in range(count):
        below += work.medians.backward[i]
        if below >= 0.5 * whole * (1.0 - 1e-12):
            median = work.medians.forward[i]
            break
    answer = 0.0
    for i in range(count):
        answer += work.medians.backward[i] * abs(work.medians.forward[i] - median)
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
