"""The best cut of an ordered attribute at a node.

A node is a stretch of the master sequence and the same stretch of each presorted order; in an order, rows whose value
is known stand first, ascending, and the others behind them::

    orders[k]   ... | 4 9 1 7 | 3 0 | ...
                    start     end   stop        codes ascend over start:end, are −1 over end:stop
"""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import (
    ABOVE_ALL,
    INT_ABOVE,
    INT_BELOW,
    INT_EXPERT,
    INT_HEURISTIC,
    INT_TEST,
    INT_UNKNOWN,
    finish_two,
    keep_sides,
    least_side,
    term_with_unknown,
    tie_of_gains,
)
from espalier.growing.kernels.criterion import add_row, clear, gain_form, term, weight_of
from espalier.growing.kernels.gain_bounds import (
    block_of,
    count_cuts,
    has_bound,
    is_apart,
    look_ahead,
    may_win,
    most_of_block,
    most_of_cut,
)
from espalier.growing.kernels.median import deviations_of_order, group_deviation
from espalier.kernels.jit import inner


@inner
def offer_ordered(rules, columns, rows, work, rare, place, sequence, attribute, paid, ints, reals):
    """Find the best cut of an ordered attribute; writes the offer, its test LEAF where there is none.

    sequence: int32, the attribute's presorted order. ints, reals: the offer.
    """
    ints[INT_TEST] = c.LEAF
    codes = columns.codes[attribute]
    start, stop = place.start, place.stop
    end = _end_of_known(sequence, codes, start, stop)
    n_known = end - start
    both = rules.missing == c.DIRECTION and end < stop and n_known > 0
    if n_known == 0 or (codes[sequence[start]] == codes[sequence[end - 1]] and not both):
        return
    _split_known(rules, rows, work, place, sequence, end)
    known_weight = weight_of(work.known, rules.n_classes)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    absolute = rules.criterion == c.ABSOLUTE_ERROR
    totals = work.node if both else work.known
    if absolute:
        deviations_of_order(rows, work, rare, sequence, start, end, stop, both)
        whole = rare.forward_all[n_known] if both else rare.forward[n_known]
    else:
        whole = term(rules.criterion, totals, totals)
    form_weight = place.weight if both else known_weight
    offset, scale = gain_form(rules.criterion, totals, whole, form_weight, place.weight)
    margin = least_side(rules, known_weight)
    first_value = columns.value_start[attribute]
    expert, last_expert = rare.expert_start[attribute], rare.expert_start[attribute + 1]
    experts = last_expert > expert
    lowest, highest = 1, n_known - 1
    if rules.criterion == c.M5:
        fifth = max(1, n_known // 5)
        lowest, highest = fifth + 1, n_known - fifth - 1
    # Which cuts are tried is said of numbers: of ordered categories each is one binary column, and has one cut.
    numeric = rules.numeric if columns.kind[attribute] == c.ORDERED_KIND else c.BEST
    if not experts and numeric in (c.MEDIAN, c.NEAR_MEDIAN):
        middle = _middle_place(rules, columns, rows, sequence, attribute, start, n_known, lowest, highest)
        lowest, highest = max(middle, 1), middle
    clear(work.left)
    for k in range(work.known.size):
        work.right[k] = work.known[k]
    left_weight = 0.0
    found = False
    worth = 0.0
    n_tried = 0
    below = 0
    above = 0
    best_unknown = -1
    best_place = 0
    best_expert = -1
    best_test = c.NUMERIC
    # An expert's threshold may have all known rows on one side, if unknown ones are sent to the other.
    edge = 1 if experts and both else 0
    bounded = not both and not experts and numeric == c.BEST and has_bound(rules)
    block = block_of(rules, n_known) if bounded else 0
    i, next_block = -edge, lowest
    while i + 1 < n_known + edge:
        i += 1
        if block > 0 and found and i >= next_block and i + block - 1 <= highest and left_weight >= margin:
            ahead_weight = look_ahead(rows, work, sequence[start + i - 1 : start + i - 1 + block], left_weight)
            if known_weight - ahead_weight >= margin and (
                most_of_block(rules, work, known_weight, left_weight, ahead_weight) <= worth * place.weight
                or not may_win(rules, work, totals, offset, scale, worth)
            ):
                n_tried += count_cuts(rules, columns, codes, sequence[start + i - 1 : start + i + block], first_value)
                for k in range(work.left.size):
                    work.left[k], work.right[k] = work.ahead_left[k], work.ahead_right[k]
                left_weight = ahead_weight
                i += block - 1
                continue
            next_block = i + block
        here = -1
        if i > 0:
            row = sequence[start + i - 1]
            weight = work.weight[row]
            left_weight += weight
            if rules.n_classes > 0:
                k = rows.target_class[row]
                work.left[k] += weight
                work.right[k] = max(0.0, work.right[k] - weight)
            else:
                add_row(work.left, row, weight, 0, rows.target_class, rows.target, place.centre)
            here = codes[row]
        following = codes[sequence[start + i]] if i < n_known else ABOVE_ALL
        if here == following:
            continue
        n_alike = 1
        if experts:
            while expert < last_expert and rare.expert_rank[expert] < here:
                expert += 1
            n_alike = 0
            while expert + n_alike < last_expert and rare.expert_rank[expert + n_alike] < following:
                n_alike += 1
            if n_alike == 0:
                continue
        else:
            if i < lowest or i > highest:
                continue
            if rules.window == 1 and not is_apart(columns, first_value, here, following):
                continue
            if numeric == c.BOUNDARY and not _changes_class(rules, rows, codes, sequence, start + i, start, end):
                continue
        if rules.n_classes == 0:
            for k in range(4):
                work.right[k] = work.known[k] - work.left[k]
        right_weight = known_weight - left_weight
        for way in range(2 if both else 1):
            if (i == 0 and way == 1) or (i == n_known and way == 0):
                continue
            left_full, right_full = left_weight, right_weight
            if both:
                if way == 0:
                    left_full += unknown_weight
                else:
                    right_full += unknown_weight
            if left_full < margin or right_full < margin:
                continue
            n_tried += n_alike
            if bounded and found and most_of_cut(rules, work, known_weight, left_weight) <= worth * place.weight:
                continue
            if absolute:
                if not both:
                    inner = rare.forward[i] + rare.backward[n_known - i]
                elif way == 0:
                    inner = rare.forward_all[i] + rare.backward[n_known - i]
                else:
                    inner = rare.forward[i] + rare.backward_all[n_known - i]
            elif not both:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            else:
                inner = term_with_unknown(rules, work, way, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of_gains(rules, place):
                found = True
                worth = gain
                below, above = here, following
                best_place = i
                best_expert = expert if experts else -1
                best_unknown = way if both else -1
                keep_sides(work, way if both else -1)
    if both:
        unknown_fits = unknown_weight >= margin and known_weight >= margin
        if unknown_fits:
            n_tried += 1
            if absolute:
                inner = rare.forward[n_known] + _unknown_deviation(rows, work, rare, sequence, end, stop)
            else:
                inner = term(rules.criterion, work.known, totals) + term(rules.criterion, work.unknown, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of_gains(rules, place):
                found = True
                worth = gain
                best_unknown = 1
                best_test = c.UNKNOWN
                for k in range(work.known.size):
                    work.best_left[k] = work.known[k]
                    work.best_right[k] = work.unknown[k]
    if not found:
        return
    ints[INT_TEST] = best_test
    ints[INT_BELOW] = below
    ints[INT_ABOVE] = above
    ints[INT_UNKNOWN] = best_unknown
    ints[INT_EXPERT] = best_expert
    ints[INT_HEURISTIC] = 0
    if rules.missing == c.SPREAD and end < stop:
        worth = _spread_gain_of_two(rules, rows, work, rare, place, sequence, start, start + best_place, end, stop)
    if rules.mdl_correction == 1 and best_test == c.NUMERIC and columns.kind[attribute] == c.ORDERED_KIND:
        worth -= math.log2(n_tried) / place.weight
    aside = 0.0 if both else unknown_weight
    finish_two(rules, columns, work, rare, place, attribute, paid, worth, aside, ints, reals)


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
def _split_known(rules, rows, work, place, sequence, end):
    """Sum the statistics of the rows that know the value and of those that do not."""
    clear(work.unknown)
    if end == place.stop:
        for k in range(work.node.size):
            work.known[k] = work.node[k]
        return
    if rules.n_classes == 2:
        _sum_two_classes(work.by_class, sequence[place.start : end], work.known)
        _sum_two_classes(work.by_class, sequence[end : place.stop], work.unknown)
        return
    clear(work.known)
    for at in range(place.start, end):
        row = sequence[at]
        add_row(work.known, row, work.weight[row], rules.n_classes, rows.target_class, rows.target, place.centre)
    for at in range(end, place.stop):
        row = sequence[at]
        add_row(work.unknown, row, work.weight[row], rules.n_classes, rows.target_class, rows.target, place.centre)


@inner
def _sum_two_classes(by_class, sequence, sums):
    """Sum the weight of each of two classes, as `add_row` does, without guessing the class."""
    one, other = 0.0, 0.0
    for row in sequence:
        one += by_class[row, 0]
        other += by_class[row, 1]
    sums[0], sums[1] = one, other


@inner
def _changes_class(rules, rows, codes, sequence, at, start, end):
    """Whether the rows of the value before `at` and those of the value from `at` on are not all of one class."""
    first = sequence[at]
    chosen = float(rows.target_class[first]) if rules.n_classes > 0 else rows.target[first]
    place = at - 1
    code = codes[sequence[place]]
    while place >= start and codes[sequence[place]] == code:
        row = sequence[place]
        if (float(rows.target_class[row]) if rules.n_classes > 0 else rows.target[row]) != chosen:
            return True
        place -= 1
    place = at
    code = codes[first]
    while place < end and codes[sequence[place]] == code:
        row = sequence[place]
        if (float(rows.target_class[row]) if rules.n_classes > 0 else rows.target[row]) != chosen:
            return True
        place += 1
    return False


@inner
def _middle_place(rules, columns, rows, sequence, attribute, start, n_known, lowest, highest):
    """Give the place nearest to the middle where the value (near_median: and the class) changes; 0 for none.

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
        if rules.window == 1 and not is_apart(columns, first_value, below, above):
            continue
        if rules.numeric == c.NEAR_MEDIAN:
            if rules.n_classes > 0 and rows.target_class[before] == rows.target_class[after]:
                continue
            if rules.n_classes == 0 and rows.target[before] == rows.target[after]:
                continue
        return at
    return 0


@inner
def _spread_gain_of_two(rules, rows, work, rare, place, sequence, start, cut, end, stop):
    """Give the gain of the best two sides once the unknown rows are shared out by known weight."""
    left_weight = weight_of(work.best_left, rules.n_classes)
    right_weight = weight_of(work.best_right, rules.n_classes)
    share = left_weight / (left_weight + right_weight)
    if rules.criterion == c.ABSOLUTE_ERROR:
        inner = group_deviation(
            sequence, start, cut, sequence, end, stop, share, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree,
        ) + group_deviation(
            sequence, cut, end, sequence, end, stop, 1.0 - share, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree,
        )  # fmt: skip
        whole = group_deviation(
            sequence, start, stop, sequence, stop, stop, 0.0, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree,
        )  # fmt: skip
    else:
        for k in range(work.trial.size):
            work.trial[k] = work.best_left[k] + share * work.unknown[k]
        inner = term(rules.criterion, work.trial, work.node)
        for k in range(work.trial.size):
            work.trial[k] = work.best_right[k] + (1.0 - share) * work.unknown[k]
        inner += term(rules.criterion, work.trial, work.node)
        whole = term(rules.criterion, work.node, work.node)
    offset, scale = gain_form(rules.criterion, work.node, whole, place.weight, place.weight)
    return offset + scale * inner


@inner
def _unknown_deviation(rows, work, rare, sequence, end, stop):
    return group_deviation(
        sequence, end, stop, sequence, stop, stop, 0.0, work.weight, rare.target_rank, rows.target,
        rare.target_value, rare.weight_tree, rare.sum_tree,
    )  # fmt: skip
