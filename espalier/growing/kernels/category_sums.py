"""The categories of a nominal attribute that meet in a node, and what each adds to a score.

groups.present   [7, 2, 5]      codes in the order in which they were met
groups.place     [1, 2, 0]      places in it, ascending by code: 2, 5, 7
groups.group     [·, ·, ·]      statistics, in the order of `present`
"""

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.criterion import add_row, clear, gain_form, sort_by_key, term, weight_of
from espalier.growing.kernels.median import group_deviation
from espalier.kernels.jit import inner


@inner
def gather_groups(rules, columns, rows, work, groups, place, master, attribute):
    """Sum the statistics of each category present in a node; returns how many there are.

    Afterwards groups.place lists them ascending by code, work.known and work.unknown hold the totals.
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
        slot = groups.slot[code]
        if slot < 0:
            slot = n_present
            groups.slot[code] = slot
            groups.present[slot] = code
            groups.group_rows[slot] = 0
            clear(groups.group[slot])
            n_present += 1
        groups.group_rows[slot] += 1
        group = groups.group[slot]
        add_row(group, row, work.weight[row], rules.n_classes, rows.target_class, rows.target, place.centre)
    for slot in range(n_present):
        groups.slot[groups.present[slot]] = -1
        groups.place[slot] = slot
        groups.key[slot] = groups.present[slot]
        for k in range(work.known.size):
            work.known[k] += groups.group[slot, k]
    sort_by_key(groups.place, groups.key, n_present, groups.scratch)
    return n_present


@inner
def fill_buckets(columns, groups, rare, place, master, attribute, n_present):
    """List the node's rows by category (ascending), those without one behind: medians need the rows themselves.

    The rows of the j-th category are rare.bucket[rare.bucket_start[j] : rare.bucket_start[j + 1]], counted from 0 and
    not from place.start: a node may stand far behind the first n entries of the master sequence.
    """
    codes = columns.codes[attribute]
    at = 0
    for j in range(n_present):
        slot = groups.place[j]
        groups.slot[groups.present[slot]] = j
        rare.bucket_start[j] = at
        at += groups.group_rows[slot]
    rare.bucket_start[n_present] = at
    rare.bucket_start[n_present + 1] = place.stop - place.start
    for j in range(n_present):
        groups.scratch[j] = rare.bucket_start[j]
    for i in range(place.start, place.stop):
        row = master[i]
        if codes[row] < 0:
            rare.bucket[at] = row
            at += 1
        else:
            j = groups.slot[codes[row]]
            rare.bucket[groups.scratch[j]] = row
            groups.scratch[j] += 1
    for j in range(n_present):
        groups.slot[groups.present[j]] = -1


@inner
def group_term(rules, rows, work, groups, rare, place, j, n_present, share, totals):
    """Give the term of the j-th category present with `share` of the unknown rows; j = n_present: of those alone."""
    if rules.criterion == c.ABSOLUTE_ERROR:
        end = rare.bucket_start[n_present]
        first = end if j == n_present else rare.bucket_start[j]
        last = end if j == n_present else rare.bucket_start[j + 1]
        stop = rare.bucket_start[n_present + 1] if share > 0.0 else end
        return group_deviation(
            rare.bucket, first, last, rare.bucket, end, stop, share, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree,
        )  # fmt: skip
    for k in range(work.trial.size):
        base = 0.0 if j == n_present else groups.group[groups.place[j], k]
        work.trial[k] = base + share * work.unknown[k]
    return term(rules.criterion, work.trial, totals)


@inner
def whole_term(rules, rows, work, rare, place, n_present, with_unknown):
    """Give the term of all known rows together, or of all rows."""
    if rules.criterion == c.ABSOLUTE_ERROR:
        stop = rare.bucket_start[n_present + 1 if with_unknown else n_present]
        return group_deviation(
            rare.bucket, 0, stop, rare.bucket, stop, stop, 0.0, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree,
        )  # fmt: skip
    totals = work.node if with_unknown else work.known
    return term(rules.criterion, totals, totals)


@inner
def form_of_groups(rules, rows, work, rare, place, n_present, both):
    """Give (offset, scale) of the gain of a division of all known rows, or of all rows."""
    known_weight = weight_of(work.known, rules.n_classes)
    whole = whole_term(rules, rows, work, rare, place, n_present, both)
    weight = place.weight if both else known_weight
    return gain_form(rules.criterion, work.node, whole, weight, place.weight)
