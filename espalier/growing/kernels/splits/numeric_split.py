"""The best threshold of an ordered attribute at a node.

A node is a range of the master sequence and the same range of each presorted order. In an order, the rows with known
value come first, in ascending order of the value. The rows with unknown value follow::

    orders[k]   ... | 4 9 1 7 | 3 0 | ...
                    start     end   stop        codes ascend over start:end and are −1 over end:stop
"""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.espalier.growing.kernels.splits.candidate import (
    finish_two,
    is_better,
    is_heavy_enough,
    min_branch_size,
    start_search,
    store_branches,
    store_unknown_test,
    terms_of_branches,
    terms_of_unknown_test,
    terms_with_share,
)
from cython.cimports.espalier.growing.kernels.splits.criterion import (
    LN_2,
    WEIGHT_TOLERANCE,
    add_row,
    clear,
    gain_form,
    size_of,
    term,
    weight_of,
)
from cython.cimports.espalier.growing.kernels.splits.deviations import (
    deviation_of_rows,
    deviation_term,
    fill_prefixes,
    prefix_terms,
    takes_deviations,
)
from cython.cimports.espalier.model.node_tests import LEAF, NUMERIC
from cython.cimports.libc.math import INFINITY, fabs, floor, log2

NEIGHBOUR_GAP = 1e-5
"""C4.5 treats two values as equal if they differ by at most this."""
UNSURE = 1.0 + 1e-9  # enlarges a bound by more than its rounding error
ABOVE_ALL = 1 << 30  # a rank above all others


def best_numeric_split(work, sequence, attribute, paid, ints, reals):
    """Find the best threshold of an ordered attribute and write the candidate; its test is LEAF if there is none.

    sequence: int32, the attribute's presorted order. ints, reals: the candidate.
    """
    ints[c.INT_TEST] = LEAF
    start, stop = work.context.start, work.context.stop
    end = _end_of_known(work, attribute, sequence)
    if end == start:
        return
    places_unknown: cython.bint = work.parameters.missing == c.DIRECTION and end < stop
    if (
        work.columns.codes[attribute, sequence[start]] == work.columns.codes[attribute, sequence[end - 1]]
        and not places_unknown
    ):
        return
    _split_known(work, sequence, end)
    start_search(work, attribute, paid, ints)
    work.search.places_unknown = places_unknown
    work.search.margin = min_branch_size(work, work.search.known_size)
    _set_gain_form(work, sequence, end)
    n_below, n_tried = _try_thresholds(work, sequence, end, ints)
    if places_unknown:
        n_tried += _try_unknown_test(work, sequence, end, ints)
    if not work.search.found:
        return
    gain = work.search.gain
    if work.parameters.missing == c.SPREAD and end < stop:
        gain = _gain_with_share(work, sequence, start + n_below, end)
    if (
        work.parameters.mdl_correction
        and ints[c.INT_TEST] == NUMERIC
        and work.columns.kind[attribute] == c.ORDERED_KIND
    ):
        gain -= log2(n_tried) / work.context.weight
    finish_two(work, gain, ints, reals)


def _end_of_known(work, attribute, sequence):
    low, high = work.context.start, work.context.stop
    while low < high:
        middle = (low + high) // 2
        if work.columns.codes[attribute, sequence[middle]] >= 0:
            low = middle + 1
        else:
            high = middle
    return low


def _split_known(work, sequence, end):
    """Sum the statistics of the known rows, which end at `end`, and separately those of the unknown rows."""
    clear(work.sums.unknown)
    if end == work.context.stop:
        for k in range(work.sums.node.shape[0]):
            work.sums.known[k] = work.sums.node[k]
        return
    clear(work.sums.known)
    known, unknown = cython.address(work.sums.known[0]), cython.address(work.sums.unknown[0])
    _sum_rows(work, sequence, work.context.start, end, known)
    _sum_rows(work, sequence, end, work.context.stop, unknown)


def _sum_rows(work, sequence, first, last, stats):
    for at in range(first, last):
        row = sequence[at]
        add_row(stats, work.targets, work.parameters.n_classes, row, work.sums.weight[row], work.context.centre)


def _set_gain_form(work, sequence, end):
    n_known = end - work.context.start
    totals = cython.address(work.sums.node[0]) if work.search.places_unknown else cython.address(work.sums.known[0])
    weight = work.context.weight if work.search.places_unknown else work.search.known_weight
    if takes_deviations(work.parameters.criterion):
        fill_prefixes(work, sequence, work.context.start, end, work.context.stop)
        prefixes = work.medians.forward_all if work.search.places_unknown else work.medians.forward
        whole = deviation_term(work.parameters.criterion, weight, prefixes[n_known])
    else:
        whole = term(work.parameters.criterion, work.parameters.n_classes, totals, totals)
    work.search.offset, work.search.scale = gain_form(work.parameters.criterion, whole, weight, work.context.weight)


def _try_thresholds(work, sequence, end, ints):
    """Find the best threshold. Return (number of known rows below it, number of splits tried)."""
    attribute, start = work.search.attribute, work.context.start
    n_known = end - start
    places_unknown: cython.bint = work.search.places_unknown
    known_weight = work.search.known_weight
    codes = cython.address(work.columns.codes[attribute, 0])
    first_value = work.columns.value_start[attribute]
    cut_point, last_cut_point = work.cut_points.start[attribute], work.cut_points.start[attribute + 1]
    has_cut_points: cython.bint = last_cut_point > cut_point
    lightest, heaviest = 0.0, INFINITY
    if work.parameters.criterion == c.M5:
        # Each side must have at least a fifth of the rows, plus one row.
        fifth = max(1.0, floor(known_weight / 5.0 * (1.0 + WEIGHT_TOLERANCE)))
        lightest = (fifth + 1.0) * (1.0 - WEIGHT_TOLERANCE)
        heaviest = known_weight - lightest
    lowest: cython.longlong = 1
    highest = n_known - 1
    # `numeric` applies to ordered attributes only. For a nominal one (`ordered_binaries`), all splits are tried.
    numeric: cython.int = work.parameters.numeric if work.columns.kind[attribute] == c.ORDERED_KIND else c.BEST
    if not has_cut_points and (numeric in (c.MEDIAN, c.NEAR_MEDIAN)):
        middle = _middle_place(work, sequence, n_known, lightest, heaviest)
        lowest, highest = max(middle, 1), middle
    clear(work.sums.left)
    for k in range(work.sums.known.shape[0]):
        work.sums.right[k] = work.sums.known[k]
    left_weight = 0.0
    n_tried: cython.longlong = 0
    best_place: cython.longlong = 0
    # A given cut point may have all known rows in one branch if the unknown ones are in the other.
    edge: cython.int = 1 if has_cut_points and places_unknown else 0
    has_prefixes: cython.bint = takes_deviations(work.parameters.criterion)
    bounded: cython.bint = not places_unknown and work.parameters.n_classes >= 2 and work.parameters.criterion <= c.GINI
    i: cython.longlong
    for i in range(1 - edge, n_known + edge):
        at = start + i
        here: cython.int = -1
        if i > 0:
            row = sequence[at - 1]
            weight = work.sums.weight[row]
            left_weight += weight
            if work.parameters.n_classes > 0:
                k = work.targets.target_class[row]
                work.sums.left[k] += weight
                work.sums.right[k] = max(0.0, work.sums.right[k] - weight)
            else:
                add_row(cython.address(work.sums.left[0]), work.targets, 0, row, weight, work.context.centre)
            here = codes[row]
        following: cython.int = codes[sequence[at]] if i < n_known else ABOVE_ALL
        if here == following:
            continue
        n_alike: cython.longlong = 1
        if has_cut_points:
            while cut_point < last_cut_point and work.cut_points.rank[cut_point] < here:
                cut_point += 1
            n_alike = 0
            while cut_point + n_alike < last_cut_point and work.cut_points.rank[cut_point + n_alike] < following:
                n_alike += 1
            if n_alike == 0:
                continue
        else:
            if i < lowest or i > highest or left_weight < lightest or left_weight > heaviest:
                continue
            if work.parameters.window and not is_apart(work.columns, first_value, here, following):
                continue
            if numeric == c.BOUNDARY and not _changes_target(work, sequence, at, end):
                continue
        if work.parameters.n_classes == 0:
            for k in range(4):
                work.sums.right[k] = work.sums.known[k] - work.sums.left[k]
        for branch in range(0 if places_unknown else -1, 2 if places_unknown else 0):
            if (i == 0 and branch == 1) or (i == n_known and branch == 0):
                continue
            left_size = left_weight
            if work.parameters.has_class_weights:
                left_size = size_of(work.parameters, cython.address(work.sums.left[0]))
            if not is_heavy_enough(work.search, left_size, work.search.known_size - left_size, branch):
                continue
            n_tried += n_alike
            if (
                bounded
                and work.search.found
                and max_gain_of_split(work, left_weight) <= work.search.best * work.context.weight
            ):
                continue
            if has_prefixes:
                terms = prefix_terms(work, i, n_known - i, left_weight, branch)
            else:
                terms = terms_of_branches(work, branch)
            gain = work.search.offset + work.search.scale * terms
            if is_better(work.search, gain, gain):
                best_place = i
                ints[c.INT_TEST] = NUMERIC
                ints[c.INT_BELOW], ints[c.INT_ABOVE] = here, following
                ints[c.INT_CUT_POINT] = cut_point if has_cut_points else -1
                ints[c.INT_UNKNOWN] = branch
                store_branches(work.sums, branch)
    return best_place, n_tried


def is_apart(columns, first_value, below, above):
    """Return whether C4.5 treats the values of two ranks as different. `below` must not exceed `above`."""
    return columns.value[first_value + below] + NEIGHBOUR_GAP < columns.value[first_value + above]


def max_gain_of_split(work, left_weight):
    """Return an upper bound of the current split's gain times the node's weight. It is computed without logarithms.

    K is the weight of the known rows, t_k the part of K in class k. l is the weight of the left branch, l_k the part
    of l in class k. ``a_k = l_k - l * t_k / K`` measures how far class k in the left branch is from its share of
    the known rows. The bound, before it is enlarged for rounding errors, is

    - entropies, in bits: ``K^2 / (l * (K - l) * ln 2) * sum of a_k^2 / t_k``, which is Pearson's statistic divided by
      ln 2. This is a bound because the logarithm of a number is at most the number minus 1;
    - Gini: ``K / (l * (K - l)) * sum of a_k^2``, which is the exact product;
    - infinity if a branch has no weight.
    """
    known_weight = work.search.known_weight
    room = left_weight * (known_weight - left_weight)
    if not room > 0.0:
        return INFINITY
    apart = 0.0
    for k in range(work.sums.known.shape[0]):
        if work.sums.known[k] > 0.0:
            here = work.sums.left[k] - left_weight * (work.sums.known[k] / known_weight)
            apart += here * here / (1.0 if work.parameters.criterion == c.GINI else work.sums.known[k])
    scale = known_weight if work.parameters.criterion == c.GINI else known_weight * known_weight / LN_2
    return scale * apart / room * UNSURE


def _changes_target(work, sequence, at, end):
    """Return whether more than one target occurs among the rows of the two values that meet at place `at`."""
    codes = cython.address(work.columns.codes[work.search.attribute, 0])
    first, last = at - 1, at
    while first > work.context.start and codes[sequence[first - 1]] == codes[sequence[at - 1]]:
        first -= 1
    while last + 1 < end and codes[sequence[last + 1]] == codes[sequence[at]]:
        last += 1
    changes: cython.bint = False
    for other in range(first, last + 1):
        changes |= not _same_target(work, sequence[other], sequence[at])
    return changes


def _same_target(work, row, other):
    if work.parameters.n_classes > 0:
        return work.targets.target_class[row] == work.targets.target_class[other]
    return work.targets.target[row] == work.targets.target[other]


def _middle_place(work, sequence, n_known, lightest, heaviest):
    """Return how many rows with known value lie below the threshold nearest to the middle; 0 if there is no threshold.

    A threshold lies between different values; under near_median, also between different targets. A row of weight 2
    counts as two rows. If a row weighs less than 1, the lightest one counts as one row. Of n rows, ideally n // 2 + ½
    lie below. Of two equally near thresholds, the upper one is preferred; at distance ½, the lower one. Example: of 6
    rows, 3 are preferred below, then 4, then 5, 2 and 1.
    """
    codes = cython.address(work.columns.codes[work.search.attribute, 0])
    first_value = work.columns.value_start[work.search.attribute]
    unit = 1.0
    for place in range(n_known):
        unit = min(unit, work.sums.weight[sequence[work.context.start + place]])
    middle = unit * (floor(work.search.known_weight / (2.0 * unit) * (1.0 + WEIGHT_TOLERANCE)) + 0.5)
    slack = WEIGHT_TOLERANCE * middle
    best: cython.longlong = 0
    least = INFINITY
    left_weight = 0.0
    for place in range(1, n_known):
        before, after = sequence[work.context.start + place - 1], sequence[work.context.start + place]
        left_weight += work.sums.weight[before]
        below, above = codes[before], codes[after]
        if below == above or left_weight < lightest or left_weight > heaviest:
            continue
        distance = fabs(left_weight - middle)
        is_nearer: cython.bint = distance < least - slack
        is_upper: cython.bint = left_weight > middle and distance > 0.5 * unit + slack
        if not is_nearer and not (is_upper and distance < least + slack):
            continue
        if work.parameters.window and not is_apart(work.columns, first_value, below, above):
            continue
        if work.parameters.numeric == c.NEAR_MEDIAN and _same_target(work, before, after):
            continue
        best, least = place, distance
    return best


def _try_unknown_test(work, sequence, end, ints):
    """Try to split known from unknown rows. Return the number of splits tried: 0 if a branch is too light, else 1."""
    if work.search.unknown_size < work.search.margin or work.search.known_size < work.search.margin:
        return 0
    if takes_deviations(work.parameters.criterion):
        known = work.medians.forward[end - work.context.start]
        unknown = deviation_of_rows(work, sequence, end, work.context.stop, end, end, 0.0)
        terms = deviation_term(work.parameters.criterion, work.search.known_weight, known)
        terms += deviation_term(work.parameters.criterion, work.search.unknown_weight, unknown)
    else:
        terms = terms_of_unknown_test(work)
    gain = work.search.offset + work.search.scale * terms
    if is_better(work.search, gain, gain):
        store_unknown_test(work.sums, ints)
    return 1


def _gain_with_share(work, sequence, middle, end):
    """Return the best split's gain if the unknown rows are divided in proportion to the branches' known weight."""
    start, stop = work.context.start, work.context.stop
    left_weight = weight_of(cython.address(work.sums.best_left[0]), work.parameters.n_classes)
    right_weight = weight_of(cython.address(work.sums.best_right[0]), work.parameters.n_classes)
    share = left_weight / (left_weight + right_weight)
    if takes_deviations(work.parameters.criterion):
        unknown_weight = work.search.unknown_weight
        left = deviation_of_rows(work, sequence, start, middle, end, stop, share)
        right = deviation_of_rows(work, sequence, middle, end, end, stop, 1.0 - share)
        terms = deviation_term(work.parameters.criterion, left_weight + share * unknown_weight, left)
        terms += deviation_term(work.parameters.criterion, right_weight + (1.0 - share) * unknown_weight, right)
        node_deviation = deviation_of_rows(work, sequence, start, stop, stop, stop, 0.0)
        whole = deviation_term(work.parameters.criterion, work.context.weight, node_deviation)
    else:
        terms = terms_with_share(work, share)
        node = cython.address(work.sums.node[0])
        whole = term(work.parameters.criterion, work.parameters.n_classes, node, node)
    offset, scale = gain_form(work.parameters.criterion, whole, work.context.weight, work.context.weight)
    return offset + scale * terms
