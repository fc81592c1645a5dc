"""Statistics of the categories of a nominal attribute that are present in a node.

categories.present     [7, 2, 5]      codes in order of occurrence
categories.ascending   [1, 2, 0]      indexes in it, ascending by code: 2, 5, 7
categories.group       [·, ·, ·]      statistics, in the order of `present`
"""

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.criterion import add_row, clear, gain_form, sort_by_key, term, weight_of
from espalier.growing.kernels.median import group_deviation
from espalier.kernels.jit import inner


@inner
def sum_categories(parameters, columns, targets, work, context, master, attribute):
    """Sum the statistics of each category present in a node. Return how many there are.

    Afterwards categories.ascending lists them by code; sums.known and sums.unknown hold the totals.
    """
    codes = columns.codes[attribute]
    clear(work.sums.unknown)
    clear(work.sums.known)
    n_present = 0
    for at in range(context.start, context.stop):
        row = master[at]
        code = codes[row]
        if code < 0:
            add_row(
                work.sums.unknown, row, work.sums.weight[row], parameters.n_classes, targets.target_class,
                targets.target, context.centre,
            )  # fmt: skip
            continue
        slot = work.categories.slot[code]
        if slot < 0:
            slot = n_present
            work.categories.slot[code] = slot
            work.categories.present[slot] = code
            work.categories.n_rows_of[slot] = 0
            clear(work.categories.group[slot])
            n_present += 1
        work.categories.n_rows_of[slot] += 1
        group = work.categories.group[slot]
        add_row(
            group, row, work.sums.weight[row], parameters.n_classes, targets.target_class, targets.target,
            context.centre,
        )  # fmt: skip
    for slot in range(n_present):
        work.categories.slot[work.categories.present[slot]] = -1
        work.categories.ascending[slot] = slot
        work.categories.key[slot] = work.categories.present[slot]
        for k in range(work.sums.known.size):
            work.sums.known[k] += work.categories.group[slot, k]
    sort_by_key(work.categories.ascending, work.categories.key, n_present, work.categories.scratch)
    return n_present


@inner
def fill_buckets(columns, work, context, master, attribute, n_present):
    """List the node's rows by category (ascending), rows without one last: medians need the rows themselves.

    The rows of the j-th category are ``bucket[bucket_start[j]:bucket_start[j + 1]]``, counted from 0 and not from
    context.start: a node may begin far behind the first n entries of the master sequence.
    """
    codes = columns.codes[attribute]
    at = 0
    for j in range(n_present):
        slot = work.categories.ascending[j]
        work.categories.slot[work.categories.present[slot]] = j
        work.medians.bucket_start[j] = at
        at += work.categories.n_rows_of[slot]
    work.medians.bucket_start[n_present] = at
    work.medians.bucket_start[n_present + 1] = context.stop - context.start
    for j in range(n_present):
        work.categories.scratch[j] = work.medians.bucket_start[j]
    for i in range(context.start, context.stop):
        row = master[i]
        if codes[row] < 0:
            work.medians.bucket[at] = row
            at += 1
        else:
            j = work.categories.slot[codes[row]]
            work.medians.bucket[work.categories.scratch[j]] = row
            work.categories.scratch[j] += 1
    for j in range(n_present):
        work.categories.slot[work.categories.present[j]] = -1


@inner
def category_term(parameters, targets, work, context, j, n_present, share, totals):
    """Return the term of the j-th category present with `share` of the unknown rows; j = n_present: of those alone."""
    if parameters.criterion == c.ABSOLUTE_ERROR:
        end = work.medians.bucket_start[n_present]
        first = end if j == n_present else work.medians.bucket_start[j]
        last = end if j == n_present else work.medians.bucket_start[j + 1]
        stop = work.medians.bucket_start[n_present + 1] if share > 0.0 else end
        return group_deviation(targets, work, work.medians.bucket, first, last, work.medians.bucket, end, stop, share)
    for k in range(work.sums.trial.size):
        base = 0.0 if j == n_present else work.categories.group[work.categories.ascending[j], k]
        work.sums.trial[k] = base + share * work.sums.unknown[k]
    return term(parameters.criterion, work.sums.trial, totals)


@inner
def whole_term(parameters, targets, work, context, n_present, with_unknown):
    """Return the term of all known rows together, or of all rows."""
    if parameters.criterion == c.ABSOLUTE_ERROR:
        stop = work.medians.bucket_start[n_present + 1 if with_unknown else n_present]
        return group_deviation(targets, work, work.medians.bucket, 0, stop, work.medians.bucket, stop, stop, 0.0)
    totals = work.sums.node if with_unknown else work.sums.known
    return term(parameters.criterion, totals, totals)


@inner
def gain_form_of_categories(parameters, targets, work, context, n_present, both):
    """Return (offset, scale) of the gain of a split of all known rows, or of all rows."""
    known_weight = weight_of(work.sums.known, parameters.n_classes)
    whole = whole_term(parameters, targets, work, context, n_present, both)
    weight = context.weight if both else known_weight
    return gain_form(parameters.criterion, work.sums.node, whole, weight, context.weight)
