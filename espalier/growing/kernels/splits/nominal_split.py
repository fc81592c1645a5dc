"""The best split of a nominal attribute at a node: a branch per category, two groups, or a test for missing values."""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.espalier.growing.kernels.splits.candidate import (
    finish_two,
    is_better,
    min_branch_size,
    score_candidate,
    start_search,
    store_unknown_test,
    terms_of_unknown_test,
    terms_with_share,
)
from cython.cimports.espalier.growing.kernels.splits.category_sums import (
    category_size,
    category_term,
    category_weight,
    fill_buckets,
    set_gain_form,
    sum_categories,
    whole_term,
)
from cython.cimports.espalier.growing.kernels.splits.criterion import plogp, term, weight_of
from cython.cimports.espalier.growing.kernels.splits.deviations import deviation_with_share
from cython.cimports.espalier.growing.kernels.splits.subset_split import best_one_vs_rest_split, best_subset_split
from cython.cimports.espalier.model.node_tests import LEAF, NOMINAL
from cython.cimports.espalier.stats import chi_square_tail
from cython.cimports.libc.math import isnan


def best_nominal_split(work, master, attribute, paid, ints, reals):
    """Find the best split of a nominal attribute and write the candidate; its test is LEAF if there is none.

    master: int32, the master sequence. Afterwards categories.present[categories.ascending[j]] is the j-th category
    present. If the test is NOMINAL, categories.branch[j] is the branch of this category.
    """
    ints[c.INT_TEST] = LEAF
    sum_categories(work, master, attribute)
    start_search(work, attribute, paid, ints)
    n_present = work.search.n_present
    has_unknown: cython.bint = work.search.unknown_weight > 0.0
    work.search.places_unknown = work.parameters.missing == c.DIRECTION and has_unknown and n_present > 0
    work.search.margin = min_branch_size(work, 0.0)
    if n_present == 0 or (n_present == 1 and not work.search.places_unknown):
        return
    if work.parameters.criterion == c.ABSOLUTE_ERROR:
        fill_buckets(work, master)
    set_gain_form(work, work.search.places_unknown)
    if n_present > 1:
        if work.parameters.nominal == c.MULTIWAY:
            _multiway_split(work, ints)
        elif work.parameters.nominal == c.ONE_VS_REST:
            best_one_vs_rest_split(work, ints)
        else:
            best_subset_split(work, ints)
    if work.search.places_unknown:
        _try_unknown_test(work, ints)
    if not work.search.found:
        return
    gain = work.search.gain
    if work.parameters.missing == c.SPREAD and has_unknown:
        gain = _gain_with_share(work)
    if work.parameters.nominal != c.MULTIWAY or ints[c.INT_TEST] != NOMINAL:
        finish_two(work, gain, ints, reals)
    elif (
        not isnan(work.parameters.chi_square_alpha)
        and _p_value(work, ints[c.INT_UNKNOWN]) > work.parameters.chi_square_alpha
    ):
        ints[c.INT_TEST] = LEAF
    else:
        information = _weigh_branches(work, ints[c.INT_UNKNOWN], reals)
        score_candidate(work, gain, information, ints, reals)


def _multiway_split(work, ints):
    terms = 0.0
    n_heavy: cython.int = 0
    for j in range(work.search.n_present):
        terms += category_term(work, j, 0.0, work.search.places_unknown)
        n_heavy += category_size(work, j) >= work.search.margin
        work.categories.branch[j] = work.categories.present[work.categories.ascending[j]]
    if work.search.places_unknown:
        _place_unknown(work, terms, n_heavy, ints)
    elif n_heavy >= 2:
        gain = work.search.offset + work.search.scale * terms
        is_better(work.search, gain, gain)
        ints[c.INT_TEST] = NOMINAL


def _place_unknown(work, terms, n_heavy, ints):
    """Try the unknown rows in each branch that has known rows, and in the first branch that has none.

    terms: sum of the branches' terms. n_heavy: number of branches that are heavy enough. Unknown rows count in neither.
    """
    n_present, margin = work.search.n_present, work.search.margin
    j: cython.int = 0
    tried_empty: cython.bint = False
    code: cython.int
    for code in range(work.columns.n_codes[work.search.attribute]):
        place = n_present
        if j < n_present and work.categories.present[work.categories.ascending[j]] == code:
            place = j
            j += 1
        elif tried_empty:
            continue
        else:
            tried_empty = True
        size = category_size(work, place) if place < n_present else 0.0
        becomes_heavy: cython.bint = size < margin and size + work.search.unknown_size >= margin
        if n_heavy + becomes_heavy < 2:
            continue
        others = terms
        if place < n_present:
            others -= category_term(work, place, 0.0, True)
        joined = category_term(work, place, 1.0, True)
        gain = work.search.offset + work.search.scale * (others + joined)
        if is_better(work.search, gain, gain):
            ints[c.INT_TEST], ints[c.INT_UNKNOWN] = NOMINAL, code


def _weigh_branches(work, unknown_code, reals):
    """Set the size of the second largest branch. Return the split information.

    unknown_code: the category whose branch holds the unknown rows; -1 if they are a group without a branch.
    """
    n_present, unknown_weight = work.search.n_present, work.search.unknown_weight
    whole = work.search.known_weight + unknown_weight if unknown_code < 0 else work.context.weight
    information = plogp(unknown_weight, whole) if unknown_code < 0 else 0.0
    first = 0.0
    second = 0.0
    is_placed: cython.bint = unknown_code < 0
    for j in range(n_present + 1):
        if j == n_present and is_placed:
            break
        weight = category_weight(work, j) if j < n_present else 0.0
        size = category_size(work, j) if j < n_present else 0.0
        if j == n_present or work.categories.present[work.categories.ascending[j]] == unknown_code:
            weight += unknown_weight
            size += work.search.unknown_size
            is_placed = True
        information += plogp(weight, whole)
        second = max(second, min(first, size))
        first = max(first, size)
    reals[c.REAL_SECOND] = second
    return information


def _try_unknown_test(work, ints):
    """Try the split of known against unknown rows, which the strategy `direction` tries last."""
    known_weight, unknown_weight = work.search.known_weight, work.search.unknown_weight
    if work.search.known_size < work.search.margin or work.search.unknown_size < work.search.margin:
        return
    if work.parameters.criterion == c.ABSOLUTE_ERROR:
        terms = category_term(work, work.search.n_present, 1.0, True)
        terms += whole_term(work, False)
    else:
        terms = terms_of_unknown_test(work)
    gain = work.search.offset + work.search.scale * terms
    value = gain
    if work.parameters.nominal == c.ONE_VS_REST and work.parameters.criterion == c.GAIN_RATIO:
        value = gain / (plogp(known_weight, work.context.weight) + plogp(unknown_weight, work.context.weight))
    if is_better(work.search, gain, value):
        store_unknown_test(work.sums, ints)


def _p_value(work, unknown_code):
    """Return the p-value of the chi-square test of the categories present against the classes.

    unknown_code: the category to which the unknown rows are added, or -1 to leave them out.
    """
    n_present, n_classes = work.search.n_present, work.sums.known.shape[0]
    trial, totals = cython.address(work.sums.trial[0]), cython.address(work.sums.left[0])
    whole = 0.0
    n_columns: cython.int = 0
    for k in range(n_classes):
        totals[k] = work.sums.known[k] + (work.sums.unknown[k] if unknown_code >= 0 else 0.0)
        whole += totals[k]
        n_columns += totals[k] > 0.0
    inner = 0.0
    n_rows: cython.int = 0
    is_placed: cython.bint = unknown_code < 0
    for j in range(n_present + 1):
        if j == n_present and is_placed:
            break
        joins: cython.bint = j == n_present or work.categories.present[work.categories.ascending[j]] == unknown_code
        for k in range(n_classes):
            trial[k] = work.categories.group[work.categories.ascending[j], k] if j < n_present else 0.0
            if joins:
                trial[k] += work.sums.unknown[k]
        is_placed |= joins
        n_rows += 1
        inner += term(c.CHI_SQUARE, n_classes, trial, totals)
    return chi_square_tail(whole * (inner - 1.0), (n_rows - 1) * (n_columns - 1))


def _gain_with_share(work):
    """Return the gain if all branches share the unknown rows in proportion to the known weight of each branch."""
    terms = 0.0
    if work.parameters.nominal == c.MULTIWAY:
        for j in range(work.search.n_present):
            share = category_weight(work, j) / work.search.known_weight
            terms += category_term(work, j, share, True)
    else:
        left_weight = weight_of(cython.address(work.sums.best_left[0]), work.parameters.n_classes)
        share = left_weight / work.search.known_weight
        if work.parameters.criterion == c.ABSOLUTE_ERROR:
            terms = _deviations_with_share(work, 0, share) + _deviations_with_share(work, 1, 1.0 - share)
        else:
            terms = terms_with_share(work, share)
    set_gain_form(work, True)
    return work.search.offset + work.search.scale * terms


def _deviations_with_share(work, branch, share):
    """Return the deviation of the rows of a branch, including its share of the unknown rows."""
    n_present = work.search.n_present
    end, stop = work.medians.bucket_start[n_present], work.medians.bucket_start[n_present + 1]
    n_rows: cython.int = 0
    for j in range(n_present):
        if work.categories.branch[j] == branch:
            for at in range(work.medians.bucket_start[j], work.medians.bucket_start[j + 1]):
                work.medians.sequence[n_rows] = work.medians.bucket[at]
                n_rows += 1
    for at in range(end, stop):
        work.medians.sequence[at] = work.medians.bucket[at]
    return deviation_with_share(work, work.medians.sequence, 0, n_rows, end, stop, share)
