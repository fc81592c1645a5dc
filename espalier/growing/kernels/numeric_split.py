"""The best threshold of an ordered attribute at a node.

A node is a range of the master sequence and the same range of each presorted order. In an order, rows whose value is
known come first, ascending, then the others::

    orders[k]   ... | 4 9 1 7 | 3 0 | ...
                    start     end   stop        codes ascend over start:end, are −1 over end:stop
"""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import (
    ABOVE_ALL,
    INT_ABOVE,
    INT_BELOW,
    INT_CUT_POINT,
    INT_HEURISTIC,
    INT_TEST,
    INT_UNKNOWN,
    finish_two,
    min_branch_weight,
    store_branches,
    term_with_unknown,
    tie_of_gains,
)
from espalier.growing.kernels.criterion import add_row, clear, gain_form, term, weight_of
from espalier.growing.kernels.gain_bounds import (
    advance_block,
    block_of,
    can_win,
    count_splits,
    has_bound,
    is_apart,
    max_gain_in_block,
    max_gain_of_split,
)
from espalier.growing.kernels.median import deviations_of_order, group_deviation
from espalier.kernels.jit import inner


@inner
def best_numeric_split(parameters, columns, targets, work, context, sequence, attribute, paid, ints, reals):
    """Find the best threshold of an ordered attribute and write the candidate; its test is LEAF if there is none.

    sequence: int32, the attribute's presorted order. ints, reals: the candidate.
    """
    ints[INT_TEST] = c.LEAF
    codes = columns.codes[attribute]
    start, stop = context.start, context.stop
    end = _end_of_known(sequence, codes, start, stop)
    n_known = end - start
    both = parameters.missing == c.DIRECTION and end < stop and n_known > 0
    if n_known == 0 or (codes[sequence[start]] == codes[sequence[end - 1]] and not both):
        return
    _split_known(parameters, targets, work.sums, context, sequence, end)
    known_weight = weight_of(work.sums.known, parameters.n_classes)
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    absolute = parameters.criterion == c.ABSOLUTE_ERROR
    totals = work.sums.node if both else work.sums.known
    if absolute:
        deviations_of_order(targets, work, sequence, start, end, stop, both)
        whole = work.medians.forward_all[n_known] if both else work.medians.forward[n_known]
    else:
        whole = term(parameters.criterion, totals, totals)
    form_weight = context.weight if both else known_weight
    offset, scale = gain_form(parameters.criterion, totals, whole, form_weight, context.weight)
    margin = min_branch_weight(parameters, known_weight)
    first_value = columns.value_start[attribute]
    cut_point, last_cut_point = work.cut_points.start[attribute], work.cut_points.start[attribute + 1]
    has_cut_points = last_cut_point > cut_point
    lowest, highest = 1, n_known - 1
    if parameters.criterion == c.M5:
        fifth = max(1, n_known // 5)
        lowest, highest = fifth + 1, n_known - fifth - 1
    # `numeric` applies to numbers. Each split of ordered categories is one binary column.
    numeric = parameters.numeric if columns.kind[attribute] == c.ORDERED_KIND else c.BEST
    if not has_cut_points and numeric in (c.MEDIAN, c.NEAR_MEDIAN):
        middle = _middle_place(parameters, columns, targets, sequence, attribute, start, n_known, lowest, highest)
        lowest, highest = max(middle, 1), middle
    clear(work.sums.left)
    for k in range(work.sums.known.size):
        work.sums.right[k] = work.sums.known[k]
    left_weight = 0.0
    found = False
    best_gain = 0.0
    n_tried = 0
    below = 0
    above = 0
    best_unknown = -1
    best_place = 0
    best_cut_point = -1
    best_test = c.NUMERIC
    # A given cut point may have all known rows in one branch, if the unknown ones are in the other.
    edge = 1 if has_cut_points and both else 0
    bounded = not both and not has_cut_points and numeric == c.BEST and has_bound(parameters)
    block = block_of(parameters, n_known) if bounded else 0
    i, next_block = -edge, lowest
    while i + 1 < n_known + edge:
        i += 1
        if block > 0 and found and i >= next_block and i + block - 1 <= highest and left_weight >= margin:
            ahead_weight = advance_block(
                targets, work.sums, sequence[start + i - 1 : start + i - 1 + block], left_weight
            )
            if known_weight - ahead_weight >= margin and (
                max_gain_in_block(parameters, work.sums, known_weight, left_weight, ahead_weight)
                <= best_gain * context.weight
                or not can_win(parameters, work.sums, totals, offset, scale, best_gain)
            ):
                n_tried += count_splits(
                    parameters, columns, codes, sequence[start + i - 1 : start + i + block], first_value
                )
                for k in range(work.sums.left.size):
                    work.sums.left[k], work.sums.right[k] = work.sums.ahead_left[k], work.sums.ahead_right[k]
                left_weight = ahead_weight
                i += block - 1
                continue
            next_block = i + block
        here = -1
        if i > 0:
            row = sequence[start + i - 1]
            weight = work.sums.weight[row]
            left_weight += weight
            if parameters.n_classes > 0:
                k = targets.target_class[row]
                work.sums.left[k] += weight
                work.sums.right[k] = max(0.0, work.sums.right[k] - weight)
            else:
                add_row(work.sums.left, row, weight, 0, targets.target_class, targets.target, context.centre)
            here = codes[row]
        following = codes[sequence[start + i]] if i < n_known else ABOVE_ALL
        if here == following:
            continue
        n_alike = 1
        if has_cut_points:
            while cut_point < last_cut_point and work.cut_points.rank[cut_point] < here:
                cut_point += 1
            n_alike = 0
            while cut_point + n_alike < last_cut_point and work.cut_points.rank[cut_point + n_alike] < following:
                n_alike += 1
            if n_alike == 0:
                continue
        else:
            if i < lowest or i > highest:
                continue
            if parameters.window == 1 and not is_apart(columns, first_value, here, following):
                continue
            if numeric == c.BOUNDARY and not _changes_class(
                parameters, targets, codes, sequence, start + i, start, end
            ):
                continue
        if parameters.n_classes == 0:
            for k in range(4):
                work.sums.right[k] = work.sums.known[k] - work.sums.left[k]
        right_weight = known_weight - left_weight
        for branch in range(2 if both else 1):
            if (i == 0 and branch == 1) or (i == n_known and branch == 0):
                continue
            left_full, right_full = left_weight, right_weight
            if both:
                if branch == 0:
                    left_full += unknown_weight
                else:
                    right_full += unknown_weight
            if left_full < margin or right_full < margin:
                continue
            n_tried += n_alike
            if (
                bounded
                and found
                and max_gain_of_split(parameters, work.sums, known_weight, left_weight) <= best_gain * context.weight
            ):
                continue
            if absolute:
                if not both:
                    inner = work.medians.forward[i] + work.medians.backward[n_known - i]
                elif branch == 0:
                    inner = work.medians.forward_all[i] + work.medians.backward[n_known - i]
                else:
                    inner = work.medians.forward[i] + work.medians.backward_all[n_known - i]
            elif not both:
                inner = term(parameters.criterion, work.sums.left, totals) + term(
                    parameters.criterion, work.sums.right, totals
                )
            else:
                inner = term_with_unknown(parameters, work.sums, branch, totals)
            gain = offset + scale * inner
            if not found or gain > best_gain + tie_of_gains(parameters, context):
                found = True
                best_gain = gain
                below, above = here, following
                best_place = i
                best_cut_point = cut_point if has_cut_points else -1
                best_unknown = branch if both else -1
                store_branches(work.sums, branch if both else -1)
    if both:
        unknown_fits = unknown_weight >= margin and known_weight >= margin
        if unknown_fits:
            n_tried += 1
            if absolute:
                inner = work.medians.forward[n_known] + _unknown_deviation(targets, work, sequence, end, stop)
            else:
                inner = term(parameters.criterion, work.sums.known, totals) + term(
                    parameters.criterion, work.sums.unknown, totals
                )
            gain = offset + scale * inner
            if not found or gain > best_gain + tie_of_gains(parameters, context):
                found = True
                best_gain = gain
                best_unknown = 1
                best_test = c.UNKNOWN
                for k in range(work.sums.known.size):
                    work.sums.best_left[k] = work.sums.known[k]
                    work.sums.best_right[k] = work.sums.unknown[k]
    if not found:
        return
    ints[INT_TEST] = best_test
    ints[INT_BELOW] = below
    ints[INT_ABOVE] = above
    ints[INT_UNKNOWN] = best_unknown
    ints[INT_CUT_POINT] = best_cut_point
    ints[INT_HEURISTIC] = 0
    if parameters.missing == c.SPREAD and end < stop:
        best_gain = _spread_gain_of_two(
            parameters, targets, work, context, sequence, start, start + best_place, end, stop
        )
    if parameters.mdl_correction == 1 and best_test == c.NUMERIC and columns.kind[attribute] == c.ORDERED_KIND:
        best_gain -= math.log2(n_tried) / context.weight
    aside = 0.0 if both else unknown_weight
    finish_two(parameters, columns, work.sums, context, attribute, paid, best_gain, aside, ints, reals)


@inner
def _end_of_known(sequence, codes, start, stop):
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if codes[sequence[middle]] >= 0:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _split_known(parameters, targets, sums, context, sequence, end):
    """Sum the statistics of the rows whose value is known and of the others."""
    clear(sums.unknown)
    if end == context.stop:
        for k in range(sums.node.size):
            sums.known[k] = sums.node[k]
        return
    if parameters.n_classes == 2:
        _sum_two_classes(sums.by_class, sequence[context.start : end], sums.known)
        _sum_two_classes(sums.by_class, sequence[end : context.stop], sums.unknown)
        return
    clear(sums.known)
    for at in range(context.start, end):
        row = sequence[at]
        add_row(
            sums.known, row, sums.weight[row], parameters.n_classes, targets.target_class, targets.target,
            context.centre,
        )  # fmt: skip
    for at in range(end, context.stop):
        row = sequence[at]
        add_row(
            sums.unknown, row, sums.weight[row], parameters.n_classes, targets.target_class, targets.target,
            context.centre,
        )  # fmt: skip


@inner
def _sum_two_classes(by_class, sequence, sums):
    """Sum the weight of each of two classes like `add_row`, without a branch that depends on the class."""
    one, other = 0.0, 0.0
    for row in sequence:
        one += by_class[row, 0]
        other += by_class[row, 1]
    sums[0], sums[1] = one, other


@inner
def _changes_class(parameters, targets, codes, sequence, at, start, end):
    """Return whether the rows with the value before `at` and those with the value at `at` belong to several classes."""
    first, last = at - 1, at
    while first > start and codes[sequence[first - 1]] == codes[sequence[at - 1]]:
        first -= 1
    while last + 1 < end and codes[sequence[last + 1]] == codes[sequence[at]]:
        last += 1
    for row in sequence[first : last + 1]:
        if parameters.n_classes > 0 and targets.target_class[row] != targets.target_class[sequence[at]]:
            return True
        if parameters.n_classes == 0 and targets.target[row] != targets.target[sequence[at]]:
            return True
    return False


@inner
def _middle_place(parameters, columns, targets, sequence, attribute, start, n_known, lowest, highest):
    """Return the place nearest to the middle where the value (near_median: and the class) changes; 0 for none.

    Tried in the order m−1|m, m|m+1, then for d = 2, 3, …: m+d−1|m+d, m−d|m−d+1.
    """
    codes = columns.codes[attribute]
    first_value = columns.value_start[attribute]
    middle = n_known // 2
    for step in range(2 * n_known + 2):
        if step < 2:
            at = middle + step
        else:
            distance = step // 2 + 1
            at = middle + distance if step % 2 == 0 else middle - distance + 1
        if at < lowest or at > highest or at < 1 or at > n_known - 1:
            continue
        before, after = sequence[start + at - 1], sequence[start + at]
        below, above = codes[before], codes[after]
        if below == above:
            continue
        if parameters.window == 1 and not is_apart(columns, first_value, below, above):
            continue
        if parameters.numeric == c.NEAR_MEDIAN:
            if parameters.n_classes > 0 and targets.target_class[before] == targets.target_class[after]:
                continue
            if parameters.n_classes == 0 and targets.target[before] == targets.target[after]:
                continue
        return at
    return 0


@inner
def _spread_gain_of_two(parameters, targets, work, context, sequence, start, middle, end, stop):
    """Return the gain of the two best branches after the unknown rows are shared out by known weight."""
    left_weight = weight_of(work.sums.best_left, parameters.n_classes)
    right_weight = weight_of(work.sums.best_right, parameters.n_classes)
    share = left_weight / (left_weight + right_weight)
    if parameters.criterion == c.ABSOLUTE_ERROR:
        inner = group_deviation(targets, work, sequence, start, middle, sequence, end, stop, share) + group_deviation(
            targets, work, sequence, middle, end, sequence, end, stop, 1.0 - share
        )
        whole = group_deviation(targets, work, sequence, start, stop, sequence, stop, stop, 0.0)
    else:
        for k in range(work.sums.trial.size):
            work.sums.trial[k] = work.sums.best_left[k] + share * work.sums.unknown[k]
        inner = term(parameters.criterion, work.sums.trial, work.sums.node)
        for k in range(work.sums.trial.size):
            work.sums.trial[k] = work.sums.best_right[k] + (1.0 - share) * work.sums.unknown[k]
        inner += term(parameters.criterion, work.sums.trial, work.sums.node)
        whole = term(parameters.criterion, work.sums.node, work.sums.node)
    offset, scale = gain_form(parameters.criterion, work.sums.node, whole, context.weight, context.weight)
    return offset + scale * inner


@inner
def _unknown_deviation(targets, work, sequence, end, stop):
    return group_deviation(targets, work, sequence, end, stop, sequence, stop, stop, 0.0)
