"""Which branch of a test a row takes: by its own value, or in place of one.

A row's values are float64 (F, n), by columns: numbers, codes of categories, NaN missing.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.codes import NUMERIC, UNKNOWN
from espalier.kernels.jit import inner

__all__ = [
    "Nodes",
    "Substitutes",
    "branch_of",
    "find_sides",
    "most_branches",
    "other_branch",
    "own_branch",
    "test_at",
]


class Nodes(NamedTuple):
    """The arrays of `espalier.tree.Tree` that say where a row goes."""

    child_start: Any
    child: Any
    feature: Any
    test: Any
    threshold: Any
    code_start: Any
    code_branch: Any
    fallback: Any


class Substitutes(NamedTuple):
    """The arrays of `espalier.tree.Surrogates`; ``start`` is all zeros where there are none."""

    start: Any
    feature: Any
    test: Any
    threshold: Any
    below: Any
    code_start: Any
    code_branch: Any


@inner
def own_branch(nodes, split, values, row):  # type: ignore[no-untyped-def]
    """Give the branch that a row's own value takes at a test, -1 where it has none or one never seen there.

    values: float64 (F, n), codes of categories, NaN missing.
    """
    return branch_of(values[nodes.feature[split], row], test_at(nodes, split), nodes.code_branch)


@inner
def test_at(nodes, split):  # type: ignore[no-untyped-def]
    """Give what `branch_of` asks of a test: its kind, its cut, and where its codes begin and end."""
    return (
        np.int64(nodes.test[split]), nodes.threshold[split], np.int64(nodes.code_start[split]),
        np.int64(nodes.code_start[split + 1]),
    )  # fmt: skip


@inner
def branch_of(value, test, code_branch):  # type: ignore[no-untyped-def]
    """Give the branch of a value at a test that `test_at` gives, once for many rows; -1 as in `own_branch`."""
    kind, cut, start, stop = test
    if kind == UNKNOWN:
        return np.int64(math.isnan(value))
    if math.isnan(value):
        return np.int64(-1)
    if kind == NUMERIC:
        return np.int64(0 if value <= cut else 1)
    place = start + np.int64(value)
    return np.int64(code_branch[place]) if place < stop else np.int64(-1)


@inner
def other_branch(nodes, substitutes, split, values, row):  # type: ignore[no-untyped-def]
    """Give the branch of a row without a value of its own, -1 for all of them."""
    for other in range(substitutes.start[split], substitutes.start[split + 1]):
        value = values[substitutes.feature[other], row]
        if math.isnan(value):
            continue
        if substitutes.test[other] == NUMERIC:
            below = int(substitutes.below[other])
            return below if value <= substitutes.threshold[other] else 1 - below
        place = substitutes.code_start[other] + int(value)
        if place < substitutes.code_start[other + 1] and substitutes.code_branch[place] >= 0:
            return int(substitutes.code_branch[place])
    return int(nodes.fallback[split])


@inner
def find_sides(nodes, split, values, row, first, n_pieces, side):  # type: ignore[no-untyped-def]
    """Write the branch that the own value of each of the pieces from `first` on takes; -1 as in `own_branch`.

    Returns how many take none.
    """
    feature, test, cut = nodes.feature[split], nodes.test[split], nodes.threshold[split]
    start, stop = np.int64(nodes.code_start[split]), np.int64(nodes.code_start[split + 1])
    n_astray = 0
    # Reckoned in place of asked: which side a row takes cannot be foreseen, and a wrong guess is dear.
    if test == NUMERIC:
        for piece in range(n_pieces):
            own = row[first + piece]
            value = values[feature, own if own >= 0 else ~own]
            is_missing = np.int64(math.isnan(value))
            side[piece] = np.int64(value > cut) - is_missing
            n_astray += is_missing
    elif test == UNKNOWN:
        for piece in range(n_pieces):
            own = row[first + piece]
            side[piece] = np.int64(math.isnan(values[feature, own if own >= 0 else ~own]))
    else:
        for piece in range(n_pieces):
            own = row[first + piece]
            value = values[feature, own if own >= 0 else ~own]
            place = stop if math.isnan(value) else start + np.int64(value)
            branch = np.int64(nodes.code_branch[place]) if place < stop else -1
            side[piece] = branch
            n_astray += np.int64(branch < 0)
    return n_astray


@inner
def most_branches(nodes):  # type: ignore[no-untyped-def]
    """Give how many branches a test has at most, 1 where there is none."""
    most = np.int64(1)
    for node in range(len(nodes.child_start) - 1):
        most = max(most, np.int64(nodes.child_start[node + 1] - nodes.child_start[node]))
    return most
