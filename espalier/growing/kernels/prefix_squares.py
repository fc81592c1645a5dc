"""Squared deviations from the mean of every prefix of a sequence of rows, for criteria that take a root of them.

A root magnifies what is left where sums of squares are subtracted: the fifth root of 1e-16 is 6e-4. Here nothing is
subtracted; a row adds to the squares and moves the mean (Welford 1962, West 1979), and equal targets have squares of 0.
"""

import cython


def squares_of_rows(work, rows, start, stop, extra_start, extra_stop, share):
    """Return the squares of ``rows[start:stop]`` together with `share` of ``rows[extra_start:extra_stop]``."""
    whole: cython.double = 0.0
    mean: cython.double = 0.0
    squares: cython.double = 0.0
    for at in range(extra_start, extra_stop):
        whole, mean, squares = with_row(work, rows[at], share, whole, mean, squares)
    for at in range(start, stop):
        whole, mean, squares = with_row(work, rows[at], 1.0, whole, mean, squares)
    return squares


def with_row(work, row, share, whole, mean, squares):
    """Return weight, mean and squares with `share` of another row."""
    weight = work.sums.weight[row] * share
    if weight <= 0.0:
        return whole, mean, squares
    whole += weight
    apart = work.targets.target[row] - work.context.centre
    before = apart - mean
    mean += before * (weight / whole)
    return whole, mean, squares + weight * before * (apart - mean)


def prefix_squares(work, rows, start, stop, extra_start, extra_stop, answer):
    """Write the squares of each prefix of ``rows[start:stop]``, or, if `stop` is below, of ``rows[start:stop:-1]``.

    The rows ``rows[extra_start:extra_stop]`` belong to every prefix. answer: float64; ``answer[i]`` is of the first i.
    """
    whole: cython.double = 0.0
    mean: cython.double = 0.0
    squares: cython.double = 0.0
    for at in range(extra_start, extra_stop):
        whole, mean, squares = with_row(work, rows[at], 1.0, whole, mean, squares)
    answer[0] = squares
    step: cython.int = 1 if stop >= start else -1
    count: cython.longlong = 0
    place: cython.longlong = start
    while place != stop:
        whole, mean, squares = with_row(work, rows[place], 1.0, whole, mean, squares)
        count += 1
        answer[count] = squares
        place += step


def squares_of_order(work, rows, start, end, stop):
    """Fill the tables of both ends of ``rows[start:end]``.

    Where the unknown rows are tried in either branch, also those with ``rows[end:stop]`` added to each prefix.
    """
    prefix_squares(work, rows, start, end, end, end, work.medians.forward)
    prefix_squares(work, rows, end - 1, start - 1, end, end, work.medians.backward)
    if work.search.places_unknown:
        prefix_squares(work, rows, start, end, end, stop, work.medians.forward_all)
        prefix_squares(work, rows, end - 1, start - 1, end, stop, work.medians.backward_all)
