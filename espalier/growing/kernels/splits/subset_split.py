"""Binary splits of categories: the best subset (Breiman and others, 1984), or each category against the rest."""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.espalier.growing.kernels.splits.candidate import (
    is_better,
    is_heavy_enough,
    store_branches,
    terms_of_branches,
)
from cython.cimports.espalier.growing.kernels.splits.category_sums import category_term, category_weight, sort_by_key
from cython.cimports.espalier.growing.kernels.splits.criterion import clear, plogp, size_of, weight_of
from cython.cimports.espalier.growing.kernels.splits.deviations import (
    add_rows,
    deviation,
    fill_prefixes,
    prefix_terms,
    remove_rows,
)
from cython.cimports.espalier.model.node_tests import NOMINAL
from cython.cimports.libc.math import frexp, ldexp, rint, sqrt

EXHAUSTIVE_CATEGORIES = 10
"""All subsets of at most this number of categories can be tried."""
N_POWER_STEPS = 200


def best_subset_split(work, ints):
    """Find the best division of the categories into two groups. If INT_HEURISTIC is 1, a better one may exist.

    Branch 0 gets the category with the lowest code. With up to two classes, the categories are sorted, and the order
    is split. All subsets are tried with more than two classes, and if a branch of the best of these splits is too
    light. Exceptions: absolute_error, and many categories (with more than two classes, several orders are then split).
    """
    n_present, n_classes = work.search.n_present, work.parameters.n_classes
    can_try_all: cython.bint = n_present <= EXHAUSTIVE_CATEGORIES and work.parameters.criterion != c.ABSOLUTE_ERROR
    is_exact: cython.bint = work.parameters.criterion <= c.SQUARED_ERROR or work.parameters.criterion == c.POISSON
    n_orders: cython.int = 1 if n_classes <= 2 else 0 if can_try_all else n_classes + 1
    for which in range(n_orders):
        _order_categories(work, which)
        _try_splits_of_order(work, which, ints)
    if not work.search.found or work.search.excluded > work.search.best + work.search.tie:
        is_exact = can_try_all
        if can_try_all:
            _try_masks(work, ints)
    if not work.search.found:
        return
    ints[c.INT_HEURISTIC] = 1 if n_orders > 1 or (n_present > 2 and not is_exact) else 0
    if ints[c.INT_ABOVE] == 0:
        for j in range(n_present):
            work.categories.branch[j] = (2 * ints[c.INT_BELOW] >> j) & 1
        return
    _order_categories(work, ints[c.INT_BELOW])
    for i in range(n_present):
        work.categories.branch[work.categories.order[i]] = 1 if i >= ints[c.INT_ABOVE] else 0
    if work.categories.branch[0] == 1:
        for j in range(n_present):
            work.categories.branch[j] = 1 - work.categories.branch[j]
        for k in range(work.sums.best_left.shape[0]):
            left = work.sums.best_left[k]
            work.sums.best_left[k] = work.sums.best_right[k]
            work.sums.best_right[k] = left


def best_one_vs_rest_split(work, ints):
    """Find the best split of one category from the rest: by gain ratio if that is the criterion, else by gain.

    Branch 0 gets this category, branch 1 the rest.
    """
    n_present = work.search.n_present
    is_absolute: cython.bint = work.parameters.criterion == c.ABSOLUTE_ERROR
    if is_absolute:
        for j in range(n_present):
            work.medians.forward[j] = category_term(work, j, 0.0, False)
            if work.search.places_unknown:
                work.medians.backward[j] = category_term(work, j, 1.0, False)
        add_rows(work, work.medians.bucket, 0, work.medians.bucket_start[n_present], 1.0)
    for j in range(n_present):
        place = work.categories.ascending[j]
        for k in range(work.sums.left.shape[0]):
            work.sums.left[k] = work.categories.group[place, k]
        _set_right(work)
        _try_split(work, work.categories.present[place], 0, j, True, ints)
    if is_absolute:
        remove_rows(work.medians, work.medians.bucket, 0, work.medians.bucket_start[n_present + 1])
    for j in range(n_present):
        work.categories.branch[j] = (
            0 if work.categories.present[work.categories.ascending[j]] == ints[c.INT_BELOW] else 1
        )


def _try_masks(work, ints):
    """Try every subset. If bit j − 1 of the mask is 1, the j-th category present (j > 0) goes to branch 1."""
    mask: cython.int
    for mask in range(1, 1 << (work.search.n_present - 1)):
        clear(work.sums.left)
        clear(work.sums.right)
        for j in range(work.search.n_present):
            is_right: cython.bint = (2 * mask >> j) & 1
            side = cython.address(work.sums.right[0]) if is_right else cython.address(work.sums.left[0])
            for k in range(work.sums.left.shape[0]):
                side[k] += work.categories.group[work.categories.ascending[j], k]
        _try_split(work, mask, 0, 0, True, ints)


def _try_splits_of_order(work, which, ints):
    if work.parameters.criterion == c.ABSOLUTE_ERROR:
        _deviations_of_categories(work)
    clear(work.sums.left)
    n_left: cython.int = 0
    first_is_left: cython.bint = False
    i: cython.int
    for i in range(1, work.search.n_present):
        j = work.categories.order[i - 1]
        place = work.categories.ascending[j]
        n_left += work.categories.n_rows_of[place]
        first_is_left = first_is_left or j == 0
        for k in range(work.sums.left.shape[0]):
            work.sums.left[k] += work.categories.group[place, k]
        _set_right(work)
        _try_split(work, which, i, n_left, first_is_left, ints)


def _try_split(work, below, above, at, first_is_left, ints):
    """Try the split into `left` and `right`; if `places_unknown`, with the unknown rows in branch 0, then in branch 1.

    below, above: the candidate's INT_BELOW and INT_ABOVE. at: the number of rows in `left`, or the index of a
    category that is split from the rest; read only under absolute_error. first_is_left: whether branch 0 is `left`.
    """
    one_vs_rest: cython.bint = work.parameters.nominal == c.ONE_VS_REST
    left_weight = weight_of(cython.address(work.sums.left[0]), work.parameters.n_classes)
    right_weight = work.search.known_weight - left_weight
    left_size = size_of(work.parameters, cython.address(work.sums.left[0]))
    for branch in range(0 if work.search.places_unknown else -1, 2 if work.search.places_unknown else 0):
        # `side`: whether the unknown rows are in `left` (0), in `right` (1) or in neither (-1).
        side = branch if first_is_left or branch < 0 else 1 - branch
        is_heavy: cython.bint = is_heavy_enough(work.search, left_size, work.search.known_size - left_size, side)
        if one_vs_rest and not is_heavy:
            continue
        if work.parameters.criterion != c.ABSOLUTE_ERROR:
            terms = terms_of_branches(work, side)
        elif one_vs_rest:
            terms = _one_against_rest_deviation(work, at, side)
        else:
            n_right = work.medians.bucket_start[work.search.n_present] - at
            terms = prefix_terms(work, at, n_right, left_weight, side)
        gain = work.search.offset + work.search.scale * terms
        if not is_heavy:
            work.search.excluded = max(work.search.excluded, gain)
            continue
        value = gain
        if one_vs_rest and work.parameters.criterion == c.GAIN_RATIO:
            value = gain / _information(work.search, left_weight, right_weight, side)
        if is_better(work.search, gain, value):
            ints[c.INT_TEST] = NOMINAL
            ints[c.INT_BELOW], ints[c.INT_ABOVE], ints[c.INT_UNKNOWN] = below, above, branch
            store_branches(work.sums, side)


def _information(search, left_weight, right_weight, side):
    """Return the split information of two branches, with the unknown rows in branch `side` or as a third group (-1)."""
    whole = search.known_weight + search.unknown_weight
    if side == 0:
        left_weight += search.unknown_weight
    elif side == 1:
        right_weight += search.unknown_weight
    aside = search.unknown_weight if side < 0 else 0.0
    return plogp(left_weight, whole) + plogp(right_weight, whole) + plogp(aside, whole)


def _set_right(work):
    for k in range(work.sums.left.shape[0]):
        rest = work.sums.known[k] - work.sums.left[k]
        work.sums.right[k] = max(0.0, rest) if work.parameters.n_classes > 0 else rest


def _order_categories(work, which):
    """Sort the categories present, and write the order into categories.order. At equal keys, the lower code is first.

    In a regression, the key is the mean target. With two classes, it is the share of the second class. With more, it
    is the share of class `which` or, if `which` is n_classes, the coordinate along the principal component.
    """
    n_classes = work.parameters.n_classes
    if n_classes > 2 and which == n_classes:
        _principal_component(work)
    else:
        column: cython.int = 1 if n_classes <= 2 else which
        for j in range(work.search.n_present):
            weight = category_weight(work, j)
            work.categories.key[j] = work.categories.group[work.categories.ascending[j], column] / weight
    place: cython.int
    unit = _unit_of_keys(work)
    for place in range(work.search.n_present):
        work.categories.key[place] = rint(work.categories.key[place] / unit)
        work.categories.order[place] = place
    sort_by_key(work.categories.order, work.categories.key, work.search.n_present)


def _unit_of_keys(work):
    """Return a power of two. Keys are rounded to its multiples, so that rounding errors do not affect the keys' order.

    In a classification, it is 2^-40. In a regression, it is about 2^-40 standard deviations of the known rows' targets.
    """
    if work.parameters.n_classes > 0:
        return ldexp(1.0, -40)
    exponent: cython.int = 0
    frexp(sqrt(work.sums.known[2] / work.search.known_weight), cython.address(exponent))
    return ldexp(1.0, exponent - 40)


def _principal_component(work):
    """Write the categories' coordinates along the principal component of class shares (Coppersmith et al., 1999)."""
    n_classes = work.parameters.n_classes
    direction, centre = cython.address(work.categories.direction[0, 0]), cython.address(work.categories.direction[1, 0])
    summed = cython.address(work.categories.direction[2, 0])
    for k in range(n_classes):
        direction[k] = 1.0 + k
        centre[k] = work.sums.known[k] / work.search.known_weight
    for _ in range(N_POWER_STEPS):
        for k in range(n_classes):
            summed[k] = 0.0
        for j in range(work.search.n_present):
            group = cython.address(work.categories.group[work.categories.ascending[j], 0])
            weight = category_weight(work, j)
            along = _coordinate(work.categories, group, weight)
            for k in range(n_classes):
                summed[k] += weight * along * (group[k] / weight - centre[k])
        length = 0.0
        for k in range(n_classes):
            length += summed[k] * summed[k]
        length = sqrt(length)
        for k in range(n_classes):
            direction[k] = summed[k] / length if length > 0.0 else 0.0
    for j in range(work.search.n_present):
        group = cython.address(work.categories.group[work.categories.ascending[j], 0])
        work.categories.key[j] = _coordinate(work.categories, group, category_weight(work, j))


def _coordinate(categories, group, weight):
    """Return the coordinate of a category's class shares along the current direction of the power iteration."""
    along: cython.double = 0.0
    for k in range(categories.direction.shape[1]):
        along += (group[k] / weight - categories.direction[1, k]) * categories.direction[0, k]
    return along


def _deviations_of_categories(work):
    """Fill the tables of prefix deviations along categories.order."""
    n_present = work.search.n_present
    end, stop = work.medians.bucket_start[n_present], work.medians.bucket_start[n_present + 1]
    n_known: cython.int = 0
    for i in range(n_present):
        j = work.categories.order[i]
        for at in range(work.medians.bucket_start[j], work.medians.bucket_start[j + 1]):
            work.medians.sequence[n_known] = work.medians.bucket[at]
            n_known += 1
    for at in range(end, stop):
        work.medians.sequence[at] = work.medians.bucket[at]
    fill_prefixes(work, work.medians.sequence, 0, end, stop)


def _one_against_rest_deviation(work, j, branch):
    """Return the deviation of the j-th category plus that of the rest, with the unknown rows in `branch` (-1: in none).

    On entry and on return, the Fenwick trees in `work.medians` hold the known rows.
    """
    n_present = work.search.n_present
    first, last = work.medians.bucket_start[j], work.medians.bucket_start[j + 1]
    end, stop = work.medians.bucket_start[n_present], work.medians.bucket_start[n_present + 1]
    weight, total = work.sums.right[0], work.sums.right[1]
    add_rows(work, work.medians.bucket, first, last, -1.0)
    if branch == 1:
        add_rows(work, work.medians.bucket, end, stop, 1.0)
        weight, total = weight + work.sums.unknown[0], total + work.sums.unknown[1]
    work.medians.weight_in_trees, work.medians.sum_in_trees = weight, total
    rest = deviation(work)
    if branch == 1:
        add_rows(work, work.medians.bucket, end, stop, -1.0)
    add_rows(work, work.medians.bucket, first, last, 1.0)
    return rest + (work.medians.backward[j] if branch == 0 else work.medians.forward[j])
