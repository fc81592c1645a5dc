"""The best division of a nominal attribute's categories at a node: a branch a category, or two groups."""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import (
    INT_ABOVE,
    INT_BELOW,
    INT_EXPERT,
    INT_HEURISTIC,
    INT_TEST,
    INT_UNKNOWN,
    REAL_KNOWN,
    REAL_SECOND,
    WEIGHT_TOLERANCE,
    finish_two,
    rate,
    tie_of_gains,
)
from espalier.growing.kernels.category_sums import fill_buckets, form_of_groups, gather_groups, group_term, whole_term
from espalier.growing.kernels.criterion import gain_form, plogp, term, weight_of
from espalier.growing.kernels.median import group_deviation
from espalier.growing.kernels.subset_split import offer_one_vs_rest, offer_subset
from espalier.kernels.jit import inner
from espalier.stats import chi_square_tail


@inner
def offer_nominal(rules, columns, rows, work, groups, subsets, rare, place, master, attribute, paid, ints, reals):
    """Find the best division of a nominal attribute's categories; writes the offer.

    master: int32, the node's rows. Afterwards groups.present[groups.place[j]] is the j-th category present, and
    groups.branch[j] its branch.
    """
    ints[INT_TEST] = c.LEAF
    ints[INT_HEURISTIC] = 0
    ints[INT_EXPERT] = -1
    n_present = gather_groups(rules, columns, rows, work, groups, place, master, attribute)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    both = rules.missing == c.DIRECTION and unknown_weight > 0.0 and n_present > 0
    if n_present == 0 or (n_present == 1 and not both):
        return
    if rules.criterion == c.ABSOLUTE_ERROR:
        fill_buckets(columns, groups, rare, place, master, attribute, n_present)
    gain, information = 0.0, 0.0
    if rules.nominal == c.MULTIWAY:
        gain, information = _offer_multiway(
            rules, columns, rows, work, groups, rare, place, attribute, n_present, both, ints, reals
        )
    elif rules.nominal == c.ONE_VS_REST:
        gain, information = offer_one_vs_rest(rules, rows, work, groups, rare, place, n_present, both, ints)
    else:
        gain, information = offer_subset(rules, rows, work, groups, subsets, rare, place, n_present, both, ints)
    if both:
        gain = _or_unknown(rules, rows, work, groups, rare, place, n_present, gain, ints)
    if ints[INT_TEST] == c.LEAF:
        return
    if rules.nominal == c.MULTIWAY and ints[INT_TEST] == c.NOMINAL:
        if (
            not math.isnan(rules.chi_square_alpha)
            and _tail_of_groups(work, groups, n_present, ints) > rules.chi_square_alpha
        ):
            ints[INT_TEST] = c.LEAF
            return
        rate(rules, columns, rare, place, attribute, paid, gain, information, ints, reals)
        return
    if rules.missing == c.SPREAD and unknown_weight > 0.0:
        gain = _spread_gain_of_groups(rules, rows, work, groups, rare, place, n_present, 2)
    finish_two(rules, columns, work, rare, place, attribute, paid, gain, 0.0 if both else unknown_weight, ints, reals)


@inner
def _offer_multiway(rules, columns, rows, work, groups, rare, place, attribute, n_present, both, ints, reals):
    """One branch a category of the schema; returns (gain, split information)."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = form_of_groups(rules, rows, work, rare, place, n_present, both)
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
        inner += group_term(rules, rows, work, groups, rare, place, j, n_present, 0.0, totals)
        weight = weight_of(groups.group[groups.place[j]], rules.n_classes)
        information += plogp(weight, whole)
        n_heavy += 1 if weight >= margin else 0
        second = max(second, min(first, weight))
        first = max(first, weight)
        groups.branch[j] = groups.present[groups.place[j]]
    reals[REAL_SECOND] = second
    reals[REAL_KNOWN] = whole - unknown_weight
    ints[INT_BELOW] = 0
    ints[INT_ABOVE] = 0
    ints[INT_UNKNOWN] = -1
    if both:
        return _multiway_with_unknown(
            rules, columns, rows, work, groups, rare, place, attribute, n_present, inner, offset, scale, margin, ints,
            reals,
        )  # fmt: skip
    if n_heavy < 2:
        return 0.0, 0.0
    ints[INT_TEST] = c.NOMINAL
    gain = offset + scale * inner
    if rules.missing == c.SPREAD and unknown_weight > 0.0:
        gain = _spread_gain_of_groups(rules, rows, work, groups, rare, place, n_present, n_present)
    return gain, information


@inner
def _multiway_with_unknown(
    rules, columns, rows, work, groups, rare, place, attribute, n_present, inner, offset, scale, margin, ints, reals
):  # fmt: skip
    """Try the unknown rows in every branch, the first branch without rows included."""
    totals = work.node
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    found = False
    worth = 0.0
    j = 0
    n_heavy = 0
    for i in range(n_present):
        n_heavy += 1 if weight_of(groups.group[groups.place[i]], rules.n_classes) >= margin else 0
    tried_empty = False
    for code in range(columns.n_codes[attribute]):
        is_present = j < n_present and groups.present[groups.place[j]] == code
        if is_present:
            weight = weight_of(groups.group[groups.place[j]], rules.n_classes)
            heavy = n_heavy + (1 if weight < margin and weight + unknown_weight >= margin else 0)
            alone = group_term(rules, rows, work, groups, rare, place, j, n_present, 0.0, totals)
            trial = inner - alone + group_term(rules, rows, work, groups, rare, place, j, n_present, 1.0, totals)
            j += 1
        elif tried_empty:
            continue
        else:
            tried_empty = True
            heavy = n_heavy + (1 if unknown_weight >= margin else 0)
            trial = inner + group_term(rules, rows, work, groups, rare, place, n_present, n_present, 1.0, totals)
        if heavy < 2:
            continue
        gain = offset + scale * trial
        if not found or gain > worth + tie_of_gains(rules, place):
            found = True
            worth = gain
            ints[INT_TEST] = c.NOMINAL
            ints[INT_UNKNOWN] = code
    information = 0.0
    first, second = 0.0, 0.0
    chosen_seen = False
    for i in range(n_present + 1):
        if i == n_present and chosen_seen:
            continue
        weight = weight_of(groups.group[groups.place[i]], rules.n_classes) if i < n_present else 0.0
        if i == n_present or groups.present[groups.place[i]] == ints[INT_UNKNOWN]:
            weight += unknown_weight
            chosen_seen = True
        information += plogp(weight, place.weight)
        second = max(second, min(first, weight))
        first = max(first, weight)
    reals[REAL_SECOND] = second
    reals[REAL_KNOWN] = place.weight
    return worth, information


@inner
def _or_unknown(rules, rows, work, groups, rare, place, n_present, gain, ints):
    """Try unknown against known, the last candidate of `direction`; returns the better gain."""
    known_weight = weight_of(work.known, rules.n_classes)
    unknown_weight = weight_of(work.unknown, rules.n_classes)
    margin = 0.0 if rules.leaf_weight_of_winner == 1 else rules.min_weight_leaf - WEIGHT_TOLERANCE
    if known_weight < margin or unknown_weight < margin:
        return gain
    everything = True
    offset, scale = form_of_groups(rules, rows, work, rare, place, n_present, everything)
    inner = group_term(rules, rows, work, groups, rare, place, n_present, n_present, 1.0, work.node)
    if rules.criterion == c.ABSOLUTE_ERROR:
        inner += whole_term(rules, rows, work, rare, place, n_present, not everything)
    else:
        inner += term(rules.criterion, work.known, work.node)
    trial = offset + scale * inner
    if ints[INT_TEST] != c.LEAF:
        tried, so_far = trial, gain
        if rules.nominal == c.ONE_VS_REST and rules.criterion == c.GAIN_RATIO:
            tried /= plogp(known_weight, place.weight) + plogp(unknown_weight, place.weight)
            left_weight = weight_of(work.best_left, rules.n_classes)
            so_far /= plogp(left_weight, place.weight) + plogp(place.weight - left_weight, place.weight)
        if not tried > so_far + tie_of_gains(rules, place):
            return gain
    ints[INT_TEST] = c.UNKNOWN
    ints[INT_UNKNOWN] = 1
    for k in range(work.known.size):
        work.best_left[k] = work.known[k]
        work.best_right[k] = work.unknown[k]
    return trial


@inner
def _tail_of_groups(work, groups, n_present, ints):
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
            work.trial[k] = groups.group[groups.place[j], k] if j < n_present else work.unknown[k]
        if j < n_present and groups.present[groups.place[j]] == unknown_at:
            joined = True
            for k in range(work.known.size):
                work.trial[k] += work.unknown[k]
        if j == n_present:
            n_rows += 1
        inner += term(c.CHI_SQUARE, work.trial, work.left)
    return chi_square_tail(whole * (inner - 1.0), (n_rows - 1) * (n_columns - 1))


@inner
def _spread_gain_of_groups(rules, rows, work, groups, rare, place, n_present, n_branches):
    """Give the gain once the unknown rows are shared out: over all categories present, or over two branches."""
    known_weight = weight_of(work.known, rules.n_classes)
    everything = True
    whole = whole_term(rules, rows, work, rare, place, n_present, everything)
    offset, scale = gain_form(rules.criterion, work.node, whole, place.weight, place.weight)
    inner = 0.0
    if n_branches == n_present and rules.nominal == c.MULTIWAY:
        for j in range(n_present):
            share = weight_of(groups.group[groups.place[j]], rules.n_classes) / known_weight
            inner += group_term(rules, rows, work, groups, rare, place, j, n_present, share, work.node)
        return offset + scale * inner
    left_share = weight_of(work.best_left, rules.n_classes) / known_weight
    if rules.criterion == c.ABSOLUTE_ERROR:
        return offset + scale * _shared_deviation_of_two(rows, work, groups, rare, place, n_present, left_share)
    for k in range(work.trial.size):
        work.trial[k] = work.best_left[k] + left_share * work.unknown[k]
    inner += term(rules.criterion, work.trial, work.node)
    for k in range(work.trial.size):
        work.trial[k] = work.best_right[k] + (1.0 - left_share) * work.unknown[k]
    inner += term(rules.criterion, work.trial, work.node)
    return offset + scale * inner


@inner
def _shared_deviation_of_two(rows, work, groups, rare, place, n_present, left_share):
    """Give the deviations of both branches of groups.branch, each with its share of the unknown rows."""
    end, stop = rare.bucket_start[n_present], rare.bucket_start[n_present + 1]
    answer = 0.0
    for branch in range(2):
        at = 0
        for j in range(n_present):
            if groups.branch[j] == branch:
                for i in range(rare.bucket_start[j], rare.bucket_start[j + 1]):
                    rare.sequence[at] = rare.bucket[i]
                    at += 1
        answer += group_deviation(
            rare.sequence, 0, at, rare.bucket, end, stop, left_share if branch == 0 else 1.0 - left_share,
            work.weight, rare.target_rank, rows.target, rare.target_value, rare.weight_tree, rare.sum_tree,
        )  # fmt: skip
    return answer
