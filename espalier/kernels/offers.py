"""The best split that one attribute offers at a node.

A node is a stretch of the master sequence and the same stretch of each presorted order; in an order, rows whose value
is known stand first, ascending, and the others behind them::

    orders[k]   ... | 4 9 1 7 | 3 0 | ...
                    start     end   stop        codes ascend over start:end, are −1 over end:stop

An offer is a row of two small tables: whole numbers (`INT_*`) and reals (`REAL_*`).
"""

import math
from typing import Any, NamedTuple

from espalier.kernels import codes as c
from espalier.kernels.deviation import (
    add_to_trees,
    deviation,
    group_deviation,
    prefix_deviations,
    take_out,
)
from espalier.kernels.impurity import (
    add_row,
    chi_square_tail,
    clear,
    gain_form,
    plogp,
    sort_by_key,
    term,
    weight_of,
    with_cost,
)
from espalier.kernels.jit import inner

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
LEAST_M5_GAIN = 1e-6
WEIGHT_TOLERANCE = 1e-6
NEIGHBOUR_GAP = 1e-5
EXHAUSTIVE_CATEGORIES = 10
N_POWER_STEPS = 200
ABOVE_ALL = 1 << 30


class Place(NamedTuple):
    """A node that looks for a split."""

    start: int
    stop: int
    weight: float
    impurity: float
    centre: float  # what regression statistics are taken around


class Work(NamedTuple):
    """Scratch arrays that are made once a tree; P = most categories that can meet in a node."""

    weight: Any  # float64 (n): weight of each row in the node at hand
    node: Any  # float64 (width): statistics of the node
    known: Any  # float64 (width), and so on down to best_right
    unknown: Any
    left: Any
    right: Any
    trial: Any
    best_left: Any
    best_right: Any
    group: Any  # float64 (P, width): statistics of each category present
    group_rows: Any  # int32 (P)
    present: Any  # int32 (P): its code
    slot: Any  # int32 (most categories): code -> place in `present`, -1 between uses
    branch: Any  # int32 (P): branch of each category present, in the order of `place`
    place: Any  # int32 (P): places in `present`, ascending by code
    order: Any  # int32 (P)
    scratch: Any  # int32 (P)
    key: Any  # float64 (P)
    direction: Any  # float64 (3, classes)
    bucket: Any  # int32 (n): rows by category, for medians
    bucket_start: Any  # int32 (P + 1)
    sequence: Any  # int32 (n): rows along an order of categories, for medians
    forward: Any  # float64 (n + 1), and the next three: deviations of prefixes
    backward: Any
    forward_all: Any
    backward_all: Any
    target_value: Any  # float64: distinct targets, ascending
    weight_tree: Any
    sum_tree: Any


@inner
def tie_of(rules, worth, impurity):
    """Give the difference below which another score counts as equal to `worth`."""
    if rules.criterion == c.GAIN_RATIO:
        return TIE_OF_RATIOS
    if rules.criterion in (c.CHI_SQUARE, c.NORMALIZED_GAIN) or rules.cost_function != c.NO_COSTS:
        return TIE * abs(worth)
    return TIE * impurity


@inner
def nothing(rules, impurity):
    """Give the gain up to which a split gains nothing."""
    if rules.criterion == c.GAIN_RATIO:
        return TIE_OF_RATIOS
    if rules.criterion == c.M5:
        return LEAST_M5_GAIN
    return TIE * impurity


@inner
def offer_ordered(rules, columns, rows, work, place, sequence, attribute, paid, ints, reals):
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
        _deviations_of_order(rows, work, sequence, start, end, stop, both)
        whole = work.forward_all[n_known] if both else work.forward[n_known]
    else:
        whole = term(rules.criterion, totals, totals)
    form_weight = place.weight if both else known_weight
    offset, scale = gain_form(rules.criterion, totals, whole, form_weight, place.weight)
    margin = _margin(rules, known_weight)
    gap = NEIGHBOUR_GAP if rules.window == 1 else 0.0
    first_value = columns.value_start[attribute]
    first_expert, last_expert = columns.expert_start[attribute], columns.expert_start[attribute + 1]
    experts = last_expert > first_expert
    expert = first_expert
    lowest, highest = 1, n_known - 1
    if rules.criterion == c.M5:
        fifth = max(1, n_known // 5)
        lowest, highest = fifth + 1, n_known - fifth - 1
    if not experts and (rules.numeric in (c.MEDIAN, c.NEAR_MEDIAN)):
        middle = _middle_place(rules, columns, rows, sequence, attribute, start, n_known, gap, lowest, highest)
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
    for i in range(1 - edge, n_known + edge):
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
            while expert < last_expert and columns.expert_rank[expert] < here:
                expert += 1
            n_alike = 0
            while expert + n_alike < last_expert and columns.expert_rank[expert + n_alike] < following:
                n_alike += 1
            if n_alike == 0:
                continue
        else:
            if i < lowest or i > highest:
                continue
            if gap > 0.0 and not (columns.value[first_value + following] - columns.value[first_value + here] > gap):
                continue
            if rules.numeric == c.BOUNDARY and not _changes_class(rules, rows, codes, sequence, start + i, start, end):
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
            if absolute:
                if not both:
                    inner = work.forward[i] + work.backward[n_known - i]
                elif way == 0:
                    inner = work.forward_all[i] + work.backward[n_known - i]
                else:
                    inner = work.forward[i] + work.backward_all[n_known - i]
            elif not both:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            else:
                inner = _term_with_unknown(rules, work, way, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of(rules, worth, place.impurity):
                found = True
                worth = gain
                below, above = here, following
                best_place = i
                best_expert = expert if experts else -1
                best_unknown = way if both else -1
                _keep_sides(work, way if both else -1)
    if both:
        unknown_fits = unknown_weight >= margin and known_weight >= margin
        if unknown_fits:
            n_tried += 1
            if absolute:
                inner = work.forward[n_known] + _unknown_deviation(rows, work, sequence, end, stop)
            else:
                inner = term(rules.criterion, work.known, totals) + term(rules.criterion, work.unknown, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of(rules, worth, place.impurity):
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
        worth = _spread_gain_of_two(rules, rows, work, place, sequence, start, start + best_place, end, stop)
    if rules.mdl_correction == 1 and best_test == c.NUMERIC and columns.kind[attribute] == c.ORDERED_KIND:
        worth -= math.log2(n_tried) / place.weight
    aside = 0.0 if both else unknown_weight
    _finish_two(rules, columns, work, place, attribute, paid, worth, aside, ints, reals)


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
    clear(work.known)
    for at in range(place.start, end):
        row = sequence[at]
        add_row(work.known, row, work.weight[row], rules.n_classes, rows.target_class, rows.target, place.centre)
    for at in range(end, place.stop):
        row = sequence[at]
        add_row(work.unknown, row, work.weight[row], rules.n_classes, rows.target_class, rows.target, place.centre)


@inner
def _margin(rules, known_weight):
    """Give the least weight of each side of a cut, less what rounding may take."""
    if rules.leaf_weight_of_winner == 1:
        return 0.0
    margin = rules.min_weight_leaf
    if rules.window == 1 and rules.n_classes > 0:
        margin = max(margin, min(25.0, 0.1 * known_weight / rules.n_classes))
    return margin - WEIGHT_TOLERANCE


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
def _middle_place(rules, columns, rows, sequence, attribute, start, n_known, gap, lowest, highest):
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
        if gap > 0.0 and not (columns.value[first_value + above] - columns.value[first_value + below] > gap):
            continue
        if rules.numeric == c.NEAR_MEDIAN:
            if rules.n_classes > 0 and rows.target_class[before] == rows.target_class[after]:
                continue
            if rules.n_classes == 0 and rows.target[before] == rows.target[after]:
                continue
        return at
    return 0


@inner
def _term_with_unknown(rules, work, way, totals):
    """Sum the terms of two sides, the unknown rows on side `way`."""
    side = work.left if way == 0 else work.right
    other = work.right if way == 0 else work.left
    for k in range(side.size):
        work.trial[k] = side[k] + work.unknown[k]
    return term(rules.criterion, work.trial, totals) + term(rules.criterion, other, totals)


@inner
def _keep_sides(work, way):
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
def _deviations_of_order(rows, work, sequence, start, end, stop, both):
    """Fill the four tables of prefix deviations of a sequence of rows."""
    prefix_deviations(
        sequence, start, end, 1, sequence, end, end, work.weight, rows.target_rank, rows.target, work.target_value,
        work.weight_tree, work.sum_tree, work.forward,
    )  # fmt: skip
    prefix_deviations(
        sequence, end - 1, start - 1, -1, sequence, end, end, work.weight, rows.target_rank, rows.target,
        work.target_value, work.weight_tree, work.sum_tree, work.backward,
    )  # fmt: skip
    if both:
        prefix_deviations(
            sequence, start, end, 1, sequence, end, stop, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree, work.forward_all,
        )  # fmt: skip
        prefix_deviations(
            sequence, end - 1, start - 1, -1, sequence, end, stop, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree, work.backward_all,
        )  # fmt: skip


@inner
def _unknown_deviation(rows, work, sequence, end, stop):
    return group_deviation(
        sequence, end, stop, sequence, stop, stop, 0.0, work.weight, rows.target_rank, rows.target,
        work.target_value, work.weight_tree, work.sum_tree,
    )  # fmt: skip


@inner
def _spread_gain_of_two(rules, rows, work, place, sequence, start, cut, end, stop):
    """Give the gain of the best two sides once the unknown rows are shared out by known weight."""
    left_weight = weight_of(work.best_left, rules.n_classes)
    right_weight = weight_of(work.best_right, rules.n_classes)
    share = left_weight / (left_weight + right_weight)
    if rules.criterion == c.ABSOLUTE_ERROR:
        inner = group_deviation(
            sequence, start, cut, sequence, end, stop, share, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree,
        ) + group_deviation(
            sequence, cut, end, sequence, end, stop, 1.0 - share, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree,
        )  # fmt: skip
        whole = group_deviation(
            sequence, start, stop, sequence, stop, stop, 0.0, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree,
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
def _finish_two(rules, columns, work, place, attribute, paid, gain, aside, ints, reals):
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
    _rate(rules, columns, place, attribute, paid, gain, information, ints, reals)


@inner
def _rate(rules, columns, place, attribute, paid, gain, information, ints, reals):
    """Write gain and score: what attributes compete by, the ratio where asked for, weighed against costs."""
    score = gain
    if rules.criterion == c.GAIN_RATIO:
        if information <= 0.0:
            ints[INT_TEST] = c.LEAF
            return
        score /= information
    elif rules.criterion == c.NORMALIZED_GAIN:
        score = score / place.impurity if place.impurity > 0.0 else 0.0
    reals[REAL_GAIN] = gain
    reals[REAL_SCORE] = with_cost(
        score, columns.cost[attribute], paid, rules.cost_function, rules.cost_weight, rules.cheapest
    )


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


@inner
def gather_groups(rules, columns, rows, work, place, master, attribute):
    """Sum the statistics of each category present in a node; returns how many there are.

    Afterwards work.place lists them ascending by code, work.known and work.unknown hold the totals.
    """
    codes = columns.codes[attribute]
    clear(work.unknown)
    clear(work.known)
    n_present = 0
    for at in range(place.start, place.stop):
        row = master[at]
        code = codes[row]
        if code < 0:
            add_row(work.unknown, row, work.weight[row], rules.n_classes, rows.target_class, rows.target, place.centre)
            continue
        slot = work.slot[code]
        if slot < 0:
            slot = n_present
            work.slot[code] = slot
            work.present[slot] = code
            work.group_rows[slot] = 0
            clear(work.group[slot])
            n_present += 1
        work.group_rows[slot] += 1
        add_row(work.group[slot], row, work.weight[row], rules.n_classes, rows.target_class, rows.target, place.centre)
    for slot in range(n_present):
        work.slot[work.present[slot]] = -1
        work.place[slot] = slot
        work.key[slot] = work.present[slot]
        for k in range(work.known.size):
            work.known[k] += work.group[slot, k]
    sort_by_key(work.place, work.key, n_present, work.scratch)
    return n_present


@inner
def offer_nominal(rules, columns, rows, work, place, master, attribute, paid, ints, reals):
    """Find the best division of a nominal attribute's categories; writes the offer.

    master: int32, the node's rows. Afterwards work.present[work.place[j]] is the j-th category present, and
    work.branch[j] its branch.
    """
    ints[INT_TEST] = c.LEAF
    ints[INT_HEURISTIC] = 0
    ints[INT_EXPERT] = -1
    n_present = gather_groups(rules, columns, rows, work, place, master, attribute)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    both = rules.missing == c.DIRECTION and unknown_weight > 0.0 and n_present > 0
    if n_present == 0 or (n_present == 1 and not both):
        return
    if rules.criterion == c.ABSOLUTE_ERROR:
        _fill_buckets(columns, work, place, master, attribute, n_present)
    if rules.nominal == c.MULTIWAY:
        gain, information = _offer_multiway(rules, columns, rows, work, place, attribute, n_present, both, ints, reals)
    elif rules.nominal == c.ONE_VS_REST:
        gain, information = _offer_one_vs_rest(rules, rows, work, place, n_present, both, ints)
    else:
        gain, information = _offer_subset(rules, rows, work, place, n_present, both, ints)
    if both:
        gain = _or_unknown(rules, rows, work, place, n_present, gain, ints)
    if ints[INT_TEST] == c.LEAF:
        return
    if rules.nominal == c.MULTIWAY and ints[INT_TEST] == c.NOMINAL:
        if not math.isnan(rules.chi_square_alpha) and _tail_of_groups(work, n_present, ints) > rules.chi_square_alpha:
            ints[INT_TEST] = c.LEAF
            return
        _rate(rules, columns, place, attribute, paid, gain, information, ints, reals)
        return
    if rules.missing == c.SPREAD and unknown_weight > 0.0:
        gain = _spread_gain_of_groups(rules, rows, work, place, n_present, 2)
    _finish_two(rules, columns, work, place, attribute, paid, gain, 0.0 if both else unknown_weight, ints, reals)


@inner
def _fill_buckets(columns, work, place, master, attribute, n_present):
    """List the node's rows by category (ascending), those without one behind: medians need the rows themselves."""
    codes = columns.codes[attribute]
    at = place.start
    for j in range(n_present):
        slot = work.place[j]
        work.slot[work.present[slot]] = j
        work.bucket_start[j] = at
        at += work.group_rows[slot]
    work.bucket_start[n_present] = at
    for j in range(n_present):
        work.scratch[j] = work.bucket_start[j]
    for i in range(place.start, place.stop):
        row = master[i]
        if codes[row] < 0:
            work.bucket[at] = row
            at += 1
        else:
            j = work.slot[codes[row]]
            work.bucket[work.scratch[j]] = row
            work.scratch[j] += 1
    for j in range(n_present):
        work.slot[work.present[j]] = -1


@inner
def _group_term(rules, rows, work, place, j, n_present, share, totals):
    """Give the term of the j-th category present with `share` of the unknown rows; j = n_present: of those alone."""
    if rules.criterion == c.ABSOLUTE_ERROR:
        end = work.bucket_start[n_present]
        first = end if j == n_present else work.bucket_start[j]
        last = end if j == n_present else work.bucket_start[j + 1]
        stop = place.stop if share > 0.0 else end
        return group_deviation(
            work.bucket, first, last, work.bucket, end, stop, share, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree,
        )  # fmt: skip
    for k in range(work.trial.size):
        base = 0.0 if j == n_present else work.group[work.place[j], k]
        work.trial[k] = base + share * work.unknown[k]
    return term(rules.criterion, work.trial, totals)


@inner
def _whole_term(rules, rows, work, place, n_present, with_unknown):
    """Give the term of all known rows together, or of all rows."""
    if rules.criterion == c.ABSOLUTE_ERROR:
        stop = place.stop if with_unknown else work.bucket_start[n_present]
        return group_deviation(
            work.bucket, place.start, stop, work.bucket, stop, stop, 0.0, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree,
        )  # fmt: skip
    totals = work.node if with_unknown else work.known
    return term(rules.criterion, totals, totals)


@inner
def _form(rules, rows, work, place, n_present, both):
    known_weight = weight_of(work.known, rules.n_classes)
    whole = _whole_term(rules, rows, work, place, n_present, both)
    weight = place.weight if both else known_weight
    return gain_form(rules.criterion, work.node, whole, weight, place.weight)


@inner
def _offer_multiway(rules, columns, rows, work, place, attribute, n_present, both, ints, reals):
    """One branch a category of the schema; returns (gain, split information)."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = _form(rules, rows, work, place, n_present, both)
    totals = work.node if both else work.known
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    aside = 0.0 if both else unknown_weight
    whole = weight_of(work.known, rules.n_classes) + unknown_weight
    inner = 0.0
    information = plogp(aside, whole)
    n_heavy = 0
    first, second = 0.0, 0.0
    for j in range(n_present):
        inner += _group_term(rules, rows, work, place, j, n_present, 0.0, totals)
        weight = weight_of(work.group[work.place[j]], rules.n_classes)
        information += plogp(weight, whole)
        n_heavy += 1 if weight >= margin else 0
        second = max(second, min(first, weight))
        first = max(first, weight)
        work.branch[j] = work.present[work.place[j]]
    reals[REAL_SECOND] = second
    reals[REAL_KNOWN] = whole - unknown_weight
    ints[INT_BELOW] = 0
    ints[INT_ABOVE] = 0
    ints[INT_UNKNOWN] = -1
    if both:
        return _multiway_with_unknown(
            rules, columns, rows, work, place, attribute, n_present, inner, offset, scale, margin, ints
        )
    if n_heavy < 2:
        return 0.0, 0.0
    ints[INT_TEST] = c.NOMINAL
    gain = offset + scale * inner
    if rules.missing == c.SPREAD and unknown_weight > 0.0:
        gain = _spread_gain_of_groups(rules, rows, work, place, n_present, n_present)
    return gain, information


@inner
def _multiway_with_unknown(
    rules, columns, rows, work, place, attribute, n_present, inner, offset, scale, margin, ints
):  # fmt: skip
    """Try the unknown rows in every branch, the first branch without rows included."""
    totals = work.node
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    found = False
    worth = 0.0
    j = 0
    n_heavy = 0
    for i in range(n_present):
        n_heavy += 1 if weight_of(work.group[work.place[i]], rules.n_classes) >= margin else 0
    tried_empty = False
    for code in range(columns.n_codes[attribute]):
        is_present = j < n_present and work.present[work.place[j]] == code
        if is_present:
            weight = weight_of(work.group[work.place[j]], rules.n_classes)
            heavy = n_heavy + (1 if weight < margin and weight + unknown_weight >= margin else 0)
            alone = _group_term(rules, rows, work, place, j, n_present, 0.0, totals)
            trial = inner - alone + _group_term(rules, rows, work, place, j, n_present, 1.0, totals)
            j += 1
        elif tried_empty:
            continue
        else:
            tried_empty = True
            heavy = n_heavy + (1 if unknown_weight >= margin else 0)
            trial = inner + _group_term(rules, rows, work, place, n_present, n_present, 1.0, totals)
        if heavy < 2:
            continue
        gain = offset + scale * trial
        if not found or gain > worth + tie_of(rules, worth, place.impurity):
            found = True
            worth = gain
            ints[INT_TEST] = c.NOMINAL
            ints[INT_UNKNOWN] = code
    information = 0.0
    chosen_seen = False
    for i in range(n_present):
        weight = weight_of(work.group[work.place[i]], rules.n_classes)
        if work.present[work.place[i]] == ints[INT_UNKNOWN]:
            weight += unknown_weight
            chosen_seen = True
        information += plogp(weight, place.weight)
    if not chosen_seen:
        information += plogp(unknown_weight, place.weight)
    return worth, information


@inner
def _offer_one_vs_rest(rules, rows, work, place, n_present, both, ints):
    """Each category present against the rest; by gain ratio where that is the criterion."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = _form(rules, rows, work, place, n_present, both)
    totals = work.node if both else work.known
    known_weight = weight_of(work.known, rules.n_classes)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    found = False
    worth = 0.0
    best_gain = 0.0
    if rules.criterion == c.ABSOLUTE_ERROR:
        _load_trees(rows, work, place.start, work.bucket_start[n_present], 1.0)
    for j in range(n_present):
        group = work.group[work.place[j]]
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
                inner = _one_against_rest_deviation(rows, work, place, j, n_present, way if both else -1)
            elif both:
                inner = _term_with_unknown(rules, work, way, totals)
            else:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            gain = offset + scale * inner
            value = gain
            if rules.criterion == c.GAIN_RATIO:
                aside = 0.0 if both else unknown_weight
                whole = known_weight + unknown_weight
                value /= plogp(left_full, whole) + plogp(right_full, whole) + plogp(aside, whole)
            if not found or value > worth + tie_of(rules, worth, place.impurity):
                found = True
                worth = value
                best_gain = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = work.present[work.place[j]]
                ints[INT_UNKNOWN] = way if both else -1
                _keep_sides(work, way if both else -1)
    if rules.criterion == c.ABSOLUTE_ERROR:
        for at in range(place.start, place.stop):
            take_out(work.bucket[at], rows.target_rank, work.weight_tree, work.sum_tree)
    for j in range(n_present):
        work.branch[j] = 0 if work.present[work.place[j]] == ints[INT_BELOW] else 1
    return best_gain, 0.0


@inner
def _load_trees(rows, work, start, stop, sign):
    for at in range(start, stop):
        row = work.bucket[at]
        add_to_trees(rows.target_rank[row], sign * work.weight[row], rows.target[row], work.weight_tree, work.sum_tree)


@inner
def _one_against_rest_deviation(rows, work, place, j, n_present, way):
    """Give the deviations of one category and of the rest, while the trees hold all known rows."""
    first, last = work.bucket_start[j], work.bucket_start[j + 1]
    end = work.bucket_start[n_present]
    _load_trees(rows, work, first, last, -1.0)
    if way == 1:
        _load_trees(rows, work, end, place.stop, 1.0)
    whole, total = work.right[0], work.right[3]
    if way == 1:
        whole, total = whole + work.unknown[0], total + work.unknown[3]
    rest = deviation(whole, total, work.target_value, work.weight_tree, work.sum_tree)
    if way == 1:
        _load_trees(rows, work, end, place.stop, -1.0)
    _load_trees(rows, work, first, last, 1.0)
    # The trees are taken, so the category itself is sorted apart.
    return rest + _small_deviation(rows, work, first, last, end, place.stop if way == 0 else end)


@inner
def _small_deviation(rows, work, first, last, extra_first, extra_last):
    """Give the deviation of some rows from their median without the trees: sort, then one walk."""
    count = 0
    whole = 0.0
    for at in range(first, last):
        work.forward[count] = rows.target[work.bucket[at]]
        work.backward[count] = work.weight[work.bucket[at]]
        whole += work.backward[count]
        count += 1
    for at in range(extra_first, extra_last):
        work.forward[count] = rows.target[work.bucket[at]]
        work.backward[count] = work.weight[work.bucket[at]]
        whole += work.backward[count]
        count += 1
    _sort_pairs(work.forward, work.backward, count, work.forward_all, work.backward_all)
    median = 0.0
    below = 0.0
    for i in range(count):
        below += work.backward[i]
        if below >= 0.5 * whole * (1.0 - 1e-12):
            median = work.forward[i]
            break
    answer = 0.0
    for i in range(count):
        answer += work.backward[i] * abs(work.forward[i] - median)
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


@inner
def _offer_subset(rules, rows, work, place, n_present, both, ints):
    """Two groups of the categories present; branch 0 holds the first of them."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = _form(rules, rows, work, place, n_present, both)
    if rules.n_classes > 2 and n_present <= EXHAUSTIVE_CATEGORIES:
        gain = _best_mask(rules, work, place, n_present, both, offset, scale, ints)
        for j in range(n_present):
            work.branch[j] = 0 if j == 0 else (ints[INT_BELOW] >> (j - 1)) & 1
        return gain, 0.0
    gain = 0.0
    found = False
    n_orders = rules.n_classes + 1 if rules.n_classes > 2 else 1
    for which in range(n_orders):
        _order_groups(rules, work, which, n_present)
        found, gain = _best_cut_of_groups(
            rules, rows, work, place, n_present, both, offset, scale, which, found, gain, ints
        )
    if not found:
        return 0.0, 0.0
    ints[INT_HEURISTIC] = 1 if n_orders > 1 else 0
    _order_groups(rules, work, ints[INT_BELOW], n_present)
    first_is_right = 0
    for i in range(n_present):
        j = work.order[i]
        work.branch[j] = 1 if i >= ints[INT_ABOVE] else 0
        if j == 0:
            first_is_right = work.branch[j]
    if first_is_right == 1:
        for j in range(n_present):
            work.branch[j] = 1 - work.branch[j]
    return gain, 0.0


@inner
def _best_mask(rules, work, place, n_present, both, offset, scale, ints):
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
                side[k] += work.group[work.place[j], k]
        left_weight = weight_of(work.left, rules.n_classes)
        right_weight = weight_of(work.right, rules.n_classes)
        for way in range(2 if both else 1):
            left_full = left_weight + (unknown_weight if both and way == 0 else 0.0)
            right_full = right_weight + (unknown_weight if both and way == 1 else 0.0)
            if left_full < margin or right_full < margin:
                continue
            if both:
                inner = _term_with_unknown(rules, work, way, totals)
            else:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of(rules, worth, place.impurity):
                found = True
                worth = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = mask
                ints[INT_UNKNOWN] = way if both else -1
                _keep_sides(work, way if both else -1)
    return worth


@inner
def _order_groups(rules, work, which, n_present):
    """Write into work.order the categories present by mean response, by the share of class `which`, or along the
    principal component of the class shares (which = n_classes); equal ones ascend by code.
    """
    if rules.n_classes > 2 and which == rules.n_classes:
        _principal_component(rules, work, n_present)
    else:
        chosen = 1 if rules.n_classes == 2 else which
        for j in range(n_present):
            group = work.group[work.place[j]]
            weight = weight_of(group, rules.n_classes)
            work.key[j] = (group[chosen] if rules.n_classes > 0 else group[3]) / weight
    for j in range(n_present):
        work.order[j] = j
    sort_by_key(work.order, work.key, n_present, work.scratch)


@inner
def _principal_component(rules, work, n_present):
    """Write each category's place along the first principal component of the class shares (Coppersmith and others,
    1999) into work.key: power iteration on the weighted covariance.
    """
    n_classes = rules.n_classes
    direction, centre, summed = work.direction[0], work.direction[1], work.direction[2]
    whole = weight_of(work.known, n_classes)
    for k in range(n_classes):
        direction[k] = 1.0 + k
        centre[k] = work.known[k] / whole
    for _ in range(N_POWER_STEPS):
        for k in range(n_classes):
            summed[k] = 0.0
        for j in range(n_present):
            group = work.group[work.place[j]]
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
        group = work.group[work.place[j]]
        weight = weight_of(group, n_classes)
        along = 0.0
        for k in range(n_classes):
            along += (group[k] / weight - centre[k]) * direction[k]
        work.key[j] = along


@inner
def _best_cut_of_groups(
    rules, rows, work, place, n_present, both, offset, scale, which, found, worth, ints
):  # fmt: skip
    """Try the cuts of work.order; returns (found, gain), improved where a cut is better."""
    totals = work.node if both else work.known
    known_weight = weight_of(work.known, rules.n_classes)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    absolute = rules.criterion == c.ABSOLUTE_ERROR
    n_known = 0
    if absolute:
        n_known = _deviations_of_groups(rows, work, place, n_present, both)
    clear(work.left)
    n_left = 0
    first_is_left = False
    for i in range(1, n_present):
        j = work.order[i - 1]
        n_left += work.group_rows[work.place[j]]
        first_is_left = first_is_left or j == 0
        for k in range(work.left.size):
            work.left[k] += work.group[work.place[j], k]
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
                left_table = work.forward_all if both and side == 0 else work.forward
                right_table = work.backward_all if both and side == 1 else work.backward
                inner = left_table[n_left] + right_table[n_known - n_left]
            elif both:
                inner = _term_with_unknown(rules, work, side, totals)
            else:
                inner = term(rules.criterion, work.left, totals) + term(rules.criterion, work.right, totals)
            gain = offset + scale * inner
            if not found or gain > worth + tie_of(rules, worth, place.impurity):
                found = True
                worth = gain
                ints[INT_TEST] = c.NOMINAL
                ints[INT_BELOW] = which
                ints[INT_ABOVE] = i
                ints[INT_UNKNOWN] = way if both else -1
                _keep_sides(work, side if both else -1)
    return found, worth


@inner
def _deviations_of_groups(rows, work, place, n_present, both):
    """Fill the tables of prefix deviations along work.order; returns the number of known rows."""
    end = work.bucket_start[n_present]
    listed = work.sequence
    n_known = 0
    for i in range(n_present):
        j = work.order[i]
        for at in range(work.bucket_start[j], work.bucket_start[j + 1]):
            listed[n_known] = work.bucket[at]
            n_known += 1
    for i in range(end, place.stop):
        listed[n_known + i - end] = work.bucket[i]
    _deviations_of_order(rows, work, listed, 0, n_known, n_known + place.stop - end, both)
    return n_known


@inner
def _or_unknown(rules, rows, work, place, n_present, gain, ints):
    """Try unknown against known, the last candidate of `direction`; returns the better gain."""
    known_weight = weight_of(work.known, rules.n_classes)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    if known_weight < margin or unknown_weight < margin:
        return gain
    everything = True
    offset, scale = _form(rules, rows, work, place, n_present, everything)
    inner = _group_term(rules, rows, work, place, n_present, n_present, 1.0, work.node)
    if rules.criterion == c.ABSOLUTE_ERROR:
        inner += _whole_term(rules, rows, work, place, n_present, not everything)
    else:
        inner += term(rules.criterion, work.known, work.node)
    trial = offset + scale * inner
    if ints[INT_TEST] != c.LEAF and not trial > gain + tie_of(rules, gain, place.impurity):
        return gain
    ints[INT_TEST] = c.UNKNOWN
    ints[INT_UNKNOWN] = 1
    for k in range(work.known.size):
        work.best_left[k] = work.known[k]
        work.best_right[k] = work.unknown[k]
    return trial


@inner
def _tail_of_groups(work, n_present, ints):
    """Give the p-value of the table of all categories present."""
    unknown_at = ints[INT_UNKNOWN]
    whole = 0.0
    n_columns = 0
    joined = False
    for k in range(work.known.size):
        total = work.known[k] + (work.unknown[k] if unknown_at >= 0 else 0.0)
        work.left[k] = total
        whole += total
        n_columns += 1 if total > 0.0 else 0
    inner = 0.0
    n_rows = n_present
    for j in range(n_present + 1):
        if j == n_present and (unknown_at < 0 or joined):
            continue
        for k in range(work.known.size):
            work.trial[k] = work.group[work.place[j], k] if j < n_present else work.unknown[k]
        if j < n_present and work.present[work.place[j]] == unknown_at:
            joined = True
            for k in range(work.known.size):
                work.trial[k] += work.unknown[k]
        if j == n_present:
            n_rows += 1
        inner += term(c.CHI_SQUARE, work.trial, work.left)
    return chi_square_tail(whole * (inner - 1.0), (n_rows - 1) * (n_columns - 1))


@inner
def _spread_gain_of_groups(rules, rows, work, place, n_present, n_branches):
    """Give the gain once the unknown rows are shared out: over all categories present, or over two branches."""
    known_weight = weight_of(work.known, rules.n_classes)
    everything = True
    whole = _whole_term(rules, rows, work, place, n_present, everything)
    offset, scale = gain_form(rules.criterion, work.node, whole, place.weight, place.weight)
    inner = 0.0
    if n_branches == n_present and rules.nominal == c.MULTIWAY:
        for j in range(n_present):
            share = weight_of(work.group[work.place[j]], rules.n_classes) / known_weight
            inner += _group_term(rules, rows, work, place, j, n_present, share, work.node)
        return offset + scale * inner
    left_share = weight_of(work.best_left, rules.n_classes) / known_weight
    if rules.criterion == c.ABSOLUTE_ERROR:
        return offset + scale * _shared_deviation_of_two(rows, work, place, n_present, left_share)
    for k in range(work.trial.size):
        work.trial[k] = work.best_left[k] + left_share * work.unknown[k]
    inner += term(rules.criterion, work.trial, work.node)
    for k in range(work.trial.size):
        work.trial[k] = work.best_right[k] + (1.0 - left_share) * work.unknown[k]
    inner += term(rules.criterion, work.trial, work.node)
    return offset + scale * inner


@inner
def _shared_deviation_of_two(rows, work, place, n_present, left_share):
    """Give the deviations of both branches of work.branch, each with its share of the unknown rows."""
    end = work.bucket_start[n_present]
    answer = 0.0
    for branch in range(2):
        at = 0
        for j in range(n_present):
            if work.branch[j] == branch:
                for i in range(work.bucket_start[j], work.bucket_start[j + 1]):
                    work.sequence[at] = work.bucket[i]
                    at += 1
        answer += group_deviation(
            work.sequence, 0, at, work.bucket, end, place.stop, left_share if branch == 0 else 1.0 - left_share,
            work.weight, rows.target_rank, rows.target, work.target_value, work.weight_tree, work.sum_tree,
        )  # fmt: skip
    return answer
