"""Deviations of the targets of a group of rows, and of every prefix of a sequence of rows.

``absolute_error`` needs the sum of absolute deviations from the weighted median. Two binary indexed trees (Fenwick,
1994) over the ranks of the target hold sums of weights and of weighted targets; the node's mean is subtracted from each
target::

    tree[i] = sum over ranks (i − lowbit(i), i]        add: walk up      find the median's rank: walk down

Each further row of a prefix costs O(log n) instead of a sort. The trees have one entry more than there are ranks. The
computation for a group or for all prefixes starts and ends with empty trees. If stopped early, rows may remain.

``sdr`` and ``m5`` need a root of the sum of squared deviations from the mean. A root magnifies rounding errors: the
fifth root of 1e-16 is 6e-4. Subtracting sums of squares would leave such errors. Instead, each row updates the mean and
the sum of squared deviations (Welford 1962, West 1979). For equal targets, this sum is exactly 0.
"""

import cython
from cython.cimports.espalier.growing.kernels import constants as c
from cython.cimports.espalier.growing.kernels.splits.criterion import root_term


def add_rows(work, rows, start, stop, share):
    """Add ``rows[start:stop]`` to the Fenwick trees, each with weight times `share`; a negative share removes rows."""
    for at in range(start, stop):
        _add_row(work, rows[at], share)


def _add_row(work, row, share):
    weight = work.sums.weight[row] * share
    weighted = weight * (work.targets.target[row] - work.context.centre)
    at = work.medians.target_rank[row] + 1
    while at < work.medians.weight_tree.shape[0]:
        work.medians.weight_tree[at] += weight
        work.medians.sum_tree[at] += weighted
        at += at & -at
    work.medians.weight_in_trees += weight
    work.medians.sum_in_trees += weighted


def remove_rows(medians, rows, start, stop):
    """Clear the entries of the Fenwick trees that these rows have changed, so that no rounding errors remain."""
    for place in range(start, stop):
        at = medians.target_rank[rows[place]] + 1
        while at < medians.weight_tree.shape[0]:
            medians.weight_tree[at] = 0.0
            medians.sum_tree[at] = 0.0
            at += at & -at
    medians.weight_in_trees = 0.0
    medians.sum_in_trees = 0.0


def deviation(work):
    """Return the deviation, Σ w·|y − median|, of the rows in the trees."""
    whole, total = work.medians.weight_in_trees, work.medians.sum_in_trees
    if whole <= 0.0:
        return 0.0
    step: cython.Py_ssize_t = 1
    while step * 2 < work.medians.weight_tree.shape[0]:
        step *= 2
    at: cython.Py_ssize_t = 0
    below = 0.0
    sum_below = 0.0
    half = 0.5 * whole * (1.0 - 1e-12)
    while step > 0:
        following = at + step
        if following < work.medians.weight_tree.shape[0] and below + work.medians.weight_tree[following] < half:
            at = following
            below += work.medians.weight_tree[at]
            sum_below += work.medians.sum_tree[at]
        step //= 2
    # Rank `at` (from 0) is the first at which half of the weight is reached.
    median = work.medians.target_value[min(at, work.medians.target_value.shape[0] - 1)] - work.context.centre
    return max(0.0, (median * below - sum_below) + ((total - sum_below) - median * (whole - below)))


def group_deviation(work, rows, start, stop):
    """Return the deviation of ``rows[start:stop]``."""
    return deviation_with_share(work, rows, start, stop, stop, stop, 0.0)


def deviation_with_share(work, rows, start, stop, extra_start, extra_stop, share):
    """Return the deviation of two ranges of rows together. The extra rows count with `share` of their weight."""
    add_rows(work, rows, start, stop, 1.0)
    add_rows(work, rows, extra_start, extra_stop, share)
    answer = deviation(work)
    remove_rows(work.medians, rows, start, stop)
    remove_rows(work.medians, rows, extra_start, extra_stop)
    return answer


def with_row(work, row, share, whole, mean, squares):
    """Return the weight, the mean and the sum of squared deviations of a group after adding `share` of a row."""
    weight = work.sums.weight[row] * share
    if weight <= 0.0:
        return whole, mean, squares
    whole += weight
    apart = work.targets.target[row] - work.context.centre
    before = apart - mean
    mean += before * (weight / whole)
    return whole, mean, squares + weight * before * (apart - mean)


def takes_deviations(criterion):
    """Return whether a criterion compares thresholds by deviations, not by sums."""
    return criterion == c.ABSOLUTE_ERROR or criterion >= c.SDR


def deviation_term(criterion, weight, amount):
    """Return a group's weight times impurity. amount: its sum of absolute (absolute_error) or squared deviations."""
    return amount if criterion == c.ABSOLUTE_ERROR else root_term(criterion, weight, amount)


def deviation_of_rows(work, rows, start, stop, extra_start, extra_stop, share):
    """Return the sum of absolute (absolute_error) or squared deviations of some rows.

    These are ``rows[start:stop]``, and ``rows[extra_start:extra_stop]`` at `share` of their weight.
    """
    if work.parameters.criterion == c.ABSOLUTE_ERROR:
        return deviation_with_share(work, rows, start, stop, extra_start, extra_stop, share)
    whole: cython.double = 0.0
    mean: cython.double = 0.0
    squares: cython.double = 0.0
    for at in range(extra_start, extra_stop):
        whole, mean, squares = with_row(work, rows[at], share, whole, mean, squares)
    for at in range(start, stop):
        whole, mean, squares = with_row(work, rows[at], 1.0, whole, mean, squares)
    return squares


def fill_prefixes(work, rows, start, end, stop):
    """Fill the tables: the deviation of every prefix and suffix of ``rows[start:end]``.

    Table `forward` has the prefixes, `backward` the suffixes. If `places_unknown`, also fill `forward_all` and
    `backward_all`. There the unknown rows, ``rows[end:stop]``, belong to every prefix and suffix.
    """
    write_prefixes(work, rows, start, end, end, end, work.medians.forward)
    write_prefixes(work, rows, end - 1, start - 1, end, end, work.medians.backward)
    if work.search.places_unknown:
        write_prefixes(work, rows, start, end, end, stop, work.medians.forward_all)
        write_prefixes(work, rows, end - 1, start - 1, end, stop, work.medians.backward_all)


def write_prefixes(work, rows, start, stop, extra_start, extra_stop, answer):
    """Write the sum of absolute (absolute_error) or squared deviations of each prefix of a sequence of rows.

    The sequence is ``rows[start:stop]``, or ``rows[start:stop:-1]`` if `stop` < `start`. The rows
    ``rows[extra_start:extra_stop]`` belong to every prefix. answer: float64; ``answer[i]`` is for the first i rows.

    Ends early, perhaps with rows in the trees, if the stop flag is set meanwhile.
    """
    is_absolute: cython.bint = work.parameters.criterion == c.ABSOLUTE_ERROR
    whole: cython.double = 0.0
    mean: cython.double = 0.0
    squares: cython.double = 0.0
    if is_absolute:
        add_rows(work, rows, extra_start, extra_stop, 1.0)
    else:
        for at in range(extra_start, extra_stop):
            whole, mean, squares = with_row(work, rows[at], 1.0, whole, mean, squares)
    answer[0] = deviation(work) if is_absolute else squares
    step: cython.int = 1 if stop >= start else -1
    count: cython.longlong = 0
    place: cython.longlong = start
    while place != stop:
        if is_absolute:
            _add_row(work, rows[place], 1.0)
        else:
            whole, mean, squares = with_row(work, rows[place], 1.0, whole, mean, squares)
        count += 1
        answer[count] = deviation(work) if is_absolute else squares
        place += step
        if count % c.ROWS_BETWEEN_CHECKS == 0 and work.medians.progress[1] != 0.0:
            return
    if is_absolute:
        first, last = (start, stop) if step > 0 else (stop + 1, start + 1)
        remove_rows(work.medians, rows, first, last)
        remove_rows(work.medians, rows, extra_start, extra_stop)


def prefix_terms(work, n_left, n_right, left_weight, branch):
    """Return the sum of the terms of both branches, with the unknown rows in `branch` (-1: in none)."""
    right_weight = work.search.known_weight - left_weight
    left = work.medians.forward_all[n_left] if branch == 0 else work.medians.forward[n_left]
    right = work.medians.backward_all[n_right] if branch == 1 else work.medians.backward[n_right]
    if branch == 0:
        left_weight += work.search.unknown_weight
    elif branch == 1:
        right_weight += work.search.unknown_weight
    criterion = work.parameters.criterion
    return deviation_term(criterion, left_weight, left) + deviation_term(criterion, right_weight, right)
