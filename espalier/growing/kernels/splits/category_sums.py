"""Statistics of the categories of a nominal attribute that are present in a node.

categories.present     [7, 2, 5]      codes in order of occurrence
categories.ascending   [1, 2, 0]      indexes in `present`, ascending by code: 2, 5, 7
categories.group       [·, ·, ·]      statistics, in the order of `present`
"""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.espalier.growing.kernels.splits.criterion import (
    add_row,
    clear,
    gain_form,
    size_of,
    term,
    weight_of,
)
from cython.cimports.espalier.growing.kernels.splits.deviations import deviation_with_share, group_deviation


def sum_categories(work, master, attribute):
    """Sum the statistics of each category present in a node, and count these categories.

    Afterwards categories.ascending lists the categories by code, and sums.known and sums.unknown have the statistics of
    the rows with known and with unknown value.
    """
    clear(work.sums.unknown)
    clear(work.sums.known)
    n_present: cython.int = 0
    codes = cython.address(work.columns.codes[attribute, 0])
    for at in range(work.context.start, work.context.stop):
        row = master[at]
        code = codes[row]
        if code < 0:
            stats = cython.address(work.sums.unknown[0])
        else:
            slot = work.categories.slot[code]
            if slot < 0:
                slot = n_present
                work.categories.slot[code] = slot
                work.categories.present[slot] = code
                work.categories.n_rows_of[slot] = 0
                for k in range(work.categories.group.shape[1]):
                    work.categories.group[slot, k] = 0.0
                n_present += 1
            work.categories.n_rows_of[slot] += 1
            stats = cython.address(work.categories.group[slot, 0])
        add_row(stats, work.targets, work.parameters.n_classes, row, work.sums.weight[row], work.context.centre)
    place: cython.int
    for place in range(n_present):
        work.categories.slot[work.categories.present[place]] = -1
        work.categories.ascending[place] = place
        work.categories.key[place] = work.categories.present[place]
        for k in range(work.sums.known.shape[0]):
            work.sums.known[k] += work.categories.group[place, k]
    sort_by_key(work.categories.ascending, work.categories.key, n_present)
    work.search.n_present = n_present


def fill_buckets(work, master):
    """List the known rows in `bucket` by ascending category, then the unknown rows. Medians need the rows themselves.

    The rows of the j-th category are ``bucket[bucket_start[j]:bucket_start[j + 1]]``. The bucket starts at 0, not at
    context.start: a node's range of the master sequence may lie beyond the length of the bucket.
    """
    codes = cython.address(work.columns.codes[work.search.attribute, 0])
    at: cython.int = 0
    j: cython.int
    for j in range(work.search.n_present):
        slot = work.categories.ascending[j]
        work.categories.slot[work.categories.present[slot]] = j
        work.medians.bucket_start[j] = at
        work.categories.scratch[j] = at
        at += work.categories.n_rows_of[slot]
    work.medians.bucket_start[work.search.n_present] = at
    work.medians.bucket_start[work.search.n_present + 1] = work.context.stop - work.context.start
    for i in range(work.context.start, work.context.stop):
        row = master[i]
        if codes[row] < 0:
            work.medians.bucket[at] = row
            at += 1
        else:
            j = work.categories.slot[codes[row]]
            work.medians.bucket[work.categories.scratch[j]] = row
            work.categories.scratch[j] += 1
    for j in range(work.search.n_present):
        work.categories.slot[work.categories.present[j]] = -1


def category_weight(work, j):
    """Return the weight of the j-th category of categories.ascending."""
    return weight_of(cython.address(work.categories.group[work.categories.ascending[j], 0]), work.parameters.n_classes)


def category_size(work, j):
    """Return the weight of the j-th category of categories.ascending, with class weights divided out."""
    return size_of(work.parameters, cython.address(work.categories.group[work.categories.ascending[j], 0]))


def category_term(work, j, share, with_unknown):
    """Return the `term` (see `criterion`) of one branch: the rows of a category, and a fraction of the unknown rows.

    j: index in categories.ascending, or n_present for a branch without known rows. share: the fraction, from 0 to 1.
    with_unknown: whether the split also assigns the unknown rows to branches.
    """
    n_present = work.search.n_present
    if work.parameters.criterion == c.ABSOLUTE_ERROR:
        end = work.medians.bucket_start[n_present]
        first = work.medians.bucket_start[j]
        last = end if j == n_present else work.medians.bucket_start[j + 1]
        stop = work.medians.bucket_start[n_present + 1] if share > 0.0 else end
        return deviation_with_share(work, work.medians.bucket, first, last, end, stop, share)
    for k in range(work.sums.trial.shape[0]):
        base = 0.0 if j == n_present else work.categories.group[work.categories.ascending[j], k]
        work.sums.trial[k] = base + share * work.sums.unknown[k]
    totals = cython.address(work.sums.node[0]) if with_unknown else cython.address(work.sums.known[0])
    return term(work.parameters.criterion, work.parameters.n_classes, cython.address(work.sums.trial[0]), totals)


def whole_term(work, with_unknown):
    """Return the term of all rows (`with_unknown`) or of the known rows only, as one group."""
    if work.parameters.criterion == c.ABSOLUTE_ERROR:
        stop = work.medians.bucket_start[work.search.n_present + (1 if with_unknown else 0)]
        return group_deviation(work, work.medians.bucket, 0, stop)
    totals = cython.address(work.sums.node[0]) if with_unknown else cython.address(work.sums.known[0])
    return term(work.parameters.criterion, work.parameters.n_classes, totals, totals)


def set_gain_form(work, with_unknown):
    """Set offset and scale of the gain for splits of all rows (`with_unknown`) or of the known rows only."""
    whole = whole_term(work, with_unknown)
    weight = work.context.weight if with_unknown else work.search.known_weight
    work.search.offset, work.search.scale = gain_form(work.parameters.criterion, whole, weight, work.context.weight)


def sort_by_key(places, key, count):
    """Sort places[:count] by key[place] with a heap sort. Places with equal keys are sorted by number."""
    end: cython.int
    for end in range(count // 2 - 1, -1, -1):
        _sift(places, key, end, count)
    for end in range(count - 1, 0, -1):
        last = places[end]
        places[end] = places[0]
        places[0] = last
        _sift(places, key, 0, end)


def _sift(places, key, at, count):
    moving = places[at]
    while 2 * at + 1 < count:
        below: cython.int = 2 * at + 1
        if below + 1 < count and _comes_before(key, places[below], places[below + 1]):
            below += 1
        if not _comes_before(key, moving, places[below]):
            break
        places[at] = places[below]
        at = below
    places[at] = moving


def _comes_before(key, one, other):
    return key[one] < key[other] or (key[one] == key[other] and one < other)
