"""The best split of a nominal attribute at a node: one branch per category, or two groups of categories."""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import (
    INT_ABOVE,
    INT_BELOW,
    INT_CUT_POINT,
    INT_HEURISTIC,
    INT_TEST,
    INT_UNKNOWN,
    REAL_KNOWN,
    REAL_SECOND,
    WEIGHT_TOLERANCE,
    finish_two,
    score_candidate,
    tie_of_gains,
)
from espalier.growing.kernels.category_sums import (
    category_term,
    fill_buckets,
    gain_form_of_categories,
    sum_categories,
    whole_term,
)
from espalier.growing.kernels.criterion import gain_form, plogp, term, weight_of
from espalier.growing.kernels.median import group_deviation
from espalier.growing.kernels.subset_split import best_one_vs_rest_split, best_subset_split
from espalier.kernels.jit import inner
from espalier.stats import chi_square_tail


@inner
def best_nominal_split(parameters, columns, targets, work, context, master, attribute, paid, ints, reals):
    """Find the best split of a nominal attribute's categories and write the candidate.

    master: int32, the node's rows. Afterwards categories.present[categories.ascending[j]] is the j-th category present,
    and categories.branch[j] its branch.
    """
    ints[INT_TEST] = c.LEAF
    ints[INT_HEURISTIC] = 0
    ints[INT_CUT_POINT] = -1
    n_present = sum_categories(parameters, columns, targets, work, context, master, attribute)
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    both = parameters.missing == c.DIRECTION and unknown_weight > 0.0 and n_present > 0
    if n_present == 0 or (n_present == 1 and not both):
        return
    if parameters.criterion == c.ABSOLUTE_ERROR:
        fill_buckets(columns, work, context, master, attribute, n_present)
    gain, information = 0.0, 0.0
    if parameters.nominal == c.MULTIWAY:
        gain, information = _multiway_split(
            parameters, columns, targets, work, context, attribute, n_present, both, ints, reals
        )
    elif parameters.nominal == c.ONE_VS_REST:
        gain, information = best_one_vs_rest_split(parameters, targets, work, context, n_present, both, ints)
    else:
        gain, information = best_subset_split(parameters, targets, work, context, n_present, both, ints)
    if both:
        gain = _or_known_against_unknown(parameters, targets, work, context, n_present, gain, ints)
    if ints[INT_TEST] == c.LEAF:
        return
    if parameters.nominal == c.MULTIWAY and ints[INT_TEST] == c.NOMINAL:
        if (
            not math.isnan(parameters.chi_square_alpha)
            and _chi_square_tail(work, n_present, ints) > parameters.chi_square_alpha
        ):
            ints[INT_TEST] = c.LEAF
            return
        score_candidate(parameters, columns, context, attribute, paid, gain, information, ints, reals)
        return
    if parameters.missing == c.SPREAD and unknown_weight > 0.0:
        gain = _spread_gain_of_categories(parameters, targets, work, context, n_present, 2)
    finish_two(
        parameters, columns, work.sums, context, attribute, paid, gain, 0.0 if both else unknown_weight, ints, reals
    )


@inner
def _multiway_split(parameters, columns, targets, work, context, attribute, n_present, both, ints, reals):
    """Split into one branch per category of the schema. Return (gain, split information)."""
    if n_present < 2:
        return 0.0, 0.0
    offset, scale = gain_form_of_categories(parameters, targets, work, context, n_present, both)
    totals = work.sums.node if both else work.sums.known
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    margin = 0.0 if parameters.leaf_weight_of_winner == 1 else parameters.min_weight_leaf - WEIGHT_TOLERANCE
    aside = 0.0 if both else unknown_weight
    whole = weight_of(work.sums.known, parameters.n_classes) + unknown_weight
    inner = 0.0
    information = plogp(aside, whole)
    n_heavy = 0
    first, second = 0.0, 0.0
    for j in range(n_present):
        inner += category_term(parameters, targets, work, context, j, n_present, 0.0, totals)
        weight = weight_of(work.categories.group[work.categories.ascending[j]], parameters.n_classes)
        information += plogp(weight, whole)
        n_heavy += 1 if weight >= margin else 0
        second = max(second, min(first, weight))
        first = max(first, weight)
        work.categories.branch[j] = work.categories.present[work.categories.ascending[j]]
    reals[REAL_SECOND] = second
    reals[REAL_KNOWN] = whole - unknown_weight
    ints[INT_BELOW] = 0
    ints[INT_ABOVE] = 0
    ints[INT_UNKNOWN] = -1
    if both:
        return _multiway_with_unknown(
            parameters, columns, targets, work, context, attribute, n_present, inner, offset, scale, margin, ints,
            reals,
        )  # fmt: skip
    if n_heavy < 2:
        return 0.0, 0.0
    ints[INT_TEST] = c.NOMINAL
    gain = offset + scale * inner
    if parameters.missing == c.SPREAD and unknown_weight > 0.0:
        gain = _spread_gain_of_categories(parameters, targets, work, context, n_present, n_present)
    return gain, information


@inner
def _multiway_with_unknown(
    parameters, columns, targets, work, context, attribute, n_present, inner, offset, scale, margin, ints, reals
):
    """Try the unknown rows in every branch, including the first branch without rows."""
    totals = work.sums.node
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    found = False
    best_gain = 0.0
    j = 0
    n_heavy = 0
    for i in range(n_present):
        n_heavy += (
            1 if weight_of(work.categories.group[work.categories.ascending[i]], parameters.n_classes) >= margin else 0
        )
    tried_empty = False
    for code in range(columns.n_codes[attribute]):
        is_present = j < n_present and work.categories.present[work.categories.ascending[j]] == code
        if is_present:
            weight = weight_of(work.categories.group[work.categories.ascending[j]], parameters.n_classes)
            heavy = n_heavy + (1 if weight < margin and weight + unknown_weight >= margin else 0)
            alone = category_term(parameters, targets, work, context, j, n_present, 0.0, totals)
            trial = inner - alone + category_term(parameters, targets, work, context, j, n_present, 1.0, totals)
            j += 1
        elif tried_empty:
            continue
        else:
            tried_empty = True
            heavy = n_heavy + (1 if unknown_weight >= margin else 0)
            trial = inner + category_term(parameters, targets, work, context, n_present, n_present, 1.0, totals)
        if heavy < 2:
            continue
        gain = offset + scale * trial
        if not found or gain > best_gain + tie_of_gains(parameters, context):
            found = True
            best_gain = gain
            ints[INT_TEST] = c.NOMINAL
            ints[INT_UNKNOWN] = code
    information = 0.0
    first, second = 0.0, 0.0
    chosen_seen = False
    for i in range(n_present + 1):
        if i == n_present and chosen_seen:
            continue
        weight = (
            weight_of(work.categories.group[work.categories.ascending[i]], parameters.n_classes)
            if i < n_present
            else 0.0
        )
        if i == n_present or work.categories.present[work.categories.ascending[i]] == ints[INT_UNKNOWN]:
            weight += unknown_weight
            chosen_seen = True
        information += plogp(weight, context.weight)
        second = max(second, min(first, weight))
        first = max(first, weight)
    reals[REAL_SECOND] = second
    reals[REAL_KNOWN] = context.weight
    return best_gain, information


@inner
def _or_known_against_unknown(parameters, targets, work, context, n_present, gain, ints):
    """Try unknown against known, the last candidate of `direction`. Return the better gain."""
    known_weight = weight_of(work.sums.known, parameters.n_classes)
    unknown_weight = weight_of(work.sums.unknown, parameters.n_classes)
    margin = 0.0 if parameters.leaf_weight_of_winner == 1 else parameters.min_weight_leaf - WEIGHT_TOLERANCE
    if known_weight < margin or unknown_weight < margin:
        return gain
    everything = True
    offset, scale = gain_form_of_categories(parameters, targets, work, context, n_present, everything)
    inner = category_term(parameters, targets, work, context, n_present, n_present, 1.0, work.sums.node)
    if parameters.criterion == c.ABSOLUTE_ERROR:
        inner += whole_term(parameters, targets, work, context, n_present, not everything)
    else:
        inner += term(parameters.criterion, work.sums.known, work.sums.node)
    trial = offset + scale * inner
    if ints[INT_TEST] != c.LEAF:
        tried, so_far = trial, gain
        if parameters.nominal == c.ONE_VS_REST and parameters.criterion == c.GAIN_RATIO:
            tried /= plogp(known_weight, context.weight) + plogp(unknown_weight, context.weight)
            left_weight = weight_of(work.sums.best_left, parameters.n_classes)
            so_far /= plogp(left_weight, context.weight) + plogp(context.weight - left_weight, context.weight)
        if not tried > so_far + tie_of_gains(parameters, context):
            return gain
    ints[INT_TEST] = c.UNKNOWN
    ints[INT_UNKNOWN] = 1
    for k in range(work.sums.known.size):
        work.sums.best_left[k] = work.sums.known[k]
        work.sums.best_right[k] = work.sums.unknown[k]
    return trial


@inner
def _chi_square_tail(work, n_present, ints):
    """Return the p-value of the contingency table of all categories present."""
    unknown_at = ints[INT_UNKNOWN]
    whole = 0.0
    n_columns = 0
    joined = False
    for k in range(work.sums.known.size):
        total = work.sums.known[k] + (work.sums.unknown[k] if unknown_at >= 0 else 0.0)
        work.sums.left[k] = total
        whole += total
        n_columns += 1 if total > 0.0 else 0
    inner = 0.0
    n_rows = n_present
    for j in range(n_present + 1):
        if j == n_present and (unknown_at < 0 or joined):
            continue
        for k in range(work.sums.known.size):
            work.sums.trial[k] = (
                work.categories.group[work.categories.ascending[j], k] if j < n_present else work.sums.unknown[k]
            )
        if j < n_present and work.categories.present[work.categories.ascending[j]] == unknown_at:
            joined = True
            for k in range(work.sums.known.size):
                work.sums.trial[k] += work.sums.unknown[k]
        if j == n_present:
            n_rows += 1
        inner += term(c.CHI_SQUARE, work.sums.trial, work.sums.left)
    return chi_square_tail(whole * (inner - 1.0), (n_rows - 1) * (n_columns - 1))


@inner
def _spread_gain_of_categories(parameters, targets, work, context, n_present, n_branches):
    """Return the gain after the unknown rows are shared out over all categories present, or over two branches."""
    known_weight = weight_of(work.sums.known, parameters.n_classes)
    everything = True
    whole = whole_term(parameters, targets, work, context, n_present, everything)
    offset, scale = gain_form(parameters.criterion, work.sums.node, whole, context.weight, context.weight)
    inner = 0.0
    if n_branches == n_present and parameters.nominal == c.MULTIWAY:
        for j in range(n_present):
            share = weight_of(work.categories.group[work.categories.ascending[j]], parameters.n_classes) / known_weight
            inner += category_term(parameters, targets, work, context, j, n_present, share, work.sums.node)
        return offset + scale * inner
    left_share = weight_of(work.sums.best_left, parameters.n_classes) / known_weight
    if parameters.criterion == c.ABSOLUTE_ERROR:
        return offset + scale * _spread_deviation_of_two(targets, work, context, n_present, left_share)
    for k in range(work.sums.trial.size):
        work.sums.trial[k] = work.sums.best_left[k] + left_share * work.sums.unknown[k]
    inner += term(parameters.criterion, work.sums.trial, work.sums.node)
    for k in range(work.sums.trial.size):
        work.sums.trial[k] = work.sums.best_right[k] + (1.0 - left_share) * work.sums.unknown[k]
    inner += term(parameters.criterion, work.sums.trial, work.sums.node)
    return offset + scale * inner


@inner
def _spread_deviation_of_two(targets, work, context, n_present, left_share):
    """Return the deviations of both branches of categories.branch, each with its share of the unknown rows."""
    end, stop = work.medians.bucket_start[n_present], work.medians.bucket_start[n_present + 1]
    answer = 0.0
    for branch in range(2):
        at = 0
        for j in range(n_present):
            if work.categories.branch[j] == branch:
                for i in range(work.medians.bucket_start[j], work.medians.bucket_start[j + 1]):
                    work.medians.sequence[at] = work.medians.bucket[i]
                    at += 1
        answer += group_deviation(
            targets,
            work,
            work.medians.sequence,
            0,
            at,
            work.medians.bucket,
            end,
            stop,
            left_share if branch == 0 else 1.0 - left_share,
        )
    return answer
