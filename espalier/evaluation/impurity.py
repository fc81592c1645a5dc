"""Impurity of a group of rows, and Pearson's statistic of a contingency table."""

from dataclasses import dataclass

import numpy as np

from espalier.arrays import Array, Floats, Places


@dataclass(frozen=True, slots=True)
class ContingencyTable:
    """A sparse contingency table of branches and classes, which has only the cells with rows.

    Attributes:
        branch: Branch of each cell, intp (cells,).
        target: Class of each cell, intp (cells,).
        weight: Weight of the rows of each cell, above 0, float64 (cells,).
        branches: Weight of each branch, float64 (branches,).
        classes: Weight of each class, float64 (classes,).
    """

    branch: Places
    target: Places
    weight: Floats
    branches: Floats
    classes: Floats


def contingency_table(
    branch: Array, target: Array, weight: Floats, *, n_branches: int, n_classes: int
) -> ContingencyTable:
    """Sum the row weights of each pair of branch and class.

    Args:
        branch: int (n_rows,): the branch of each row.
        target: int (n_rows,): the class of each row.
        weight: float64 (n_rows,): the weight of each row, above 0.
        n_branches: Number of branches, those without rows included.
        n_classes: Number of classes, those without rows included.
    """
    pairs, place = np.unique(branch.astype(np.int64) * n_classes + target, return_inverse=True)
    of_cell = np.bincount(place, weights=weight, minlength=len(pairs)).astype(np.float64)
    branches, classes = (pairs // n_classes).astype(np.intp), (pairs % n_classes).astype(np.intp)
    return ContingencyTable(
        branch=branches,
        target=classes,
        weight=of_cell,
        branches=np.bincount(branches, weights=of_cell, minlength=n_branches).astype(np.float64),
        classes=np.bincount(classes, weights=of_cell, minlength=n_classes).astype(np.float64),
    )


def entropy_of(weights: Floats, unit: float) -> float:
    """Return the entropy of classes with `weights` (n_classes,). `unit`: ln 2 for bits, 1 for nats, ln 10 for bans."""
    shares, others = _shares(weights)
    # The log of the largest share is log1p(−q), with q the sum of the others: 1 − q would lose a q below 1e-16.
    logarithms = np.where(shares > 0.5, np.log1p(-np.minimum(others, 0.5)), np.log(shares))
    return abs(float((shares * logarithms).sum())) / unit


def gini_of(weights: Floats) -> float:
    """Return the Gini impurity Σ p(1 − p) of classes from their weights, float64 (n_classes,)."""
    shares, others = _shares(weights)
    return float((shares * others).sum())


def _shares(weights: Floats) -> tuple[Floats, Floats]:
    """Return the shares p > 0, ascending, and each 1 − p. To lose no digits, the last 1 − p adds up the other p."""
    present = np.sort(weights[weights > 0])
    total = float(present.sum())
    if not total:
        return np.ones(1), np.zeros(1)
    shares = present / total
    others = 1 - shares
    others[-1] = float(present[:-1].sum()) / total
    return shares, others


def variance_of(target: Array, weight: Floats) -> float:
    """Return the weighted population variance of `target` (n_rows,); 0 without rows."""
    if not len(target):
        return 0.0
    return float(np.average(distances_from_mean(target, weight) ** 2, weights=weight))


def distances_from_mean(target: Array, weight: Floats) -> Floats:
    """Return each target minus the weighted mean of all targets, (n_rows,).

    The mean of large targets is rounded. As a correction, the mean of the distances is subtracted from each distance.
    """
    apart: Floats = target - np.average(target, weights=weight)
    return apart - np.average(apart, weights=weight)


def entropy_within(cells: ContingencyTable, unit: float) -> float:
    """Return the mean of the branches' entropies, weighted by the branches' weights. `unit` is as in `entropy_of`."""
    shares = cells.weight / cells.branches[cells.branch]
    return abs(float((cells.weight * np.log(shares)).sum())) / _total(cells) / unit


def information_of(cells: ContingencyTable, unit: float) -> float:
    """Return the information gain: `entropy_of` the classes minus `entropy_within` the branches, in the same `unit`.

    To lose no digits, the gain is computed as a sum of terms of one sign: Σ e·(r·ln r − r + 1), where e is the expected
    weight of a cell and r·e its weight.
    """
    expected, unseen = _expected(cells)
    ratio, apart = cells.weight / expected, (cells.weight - expected) / expected
    logarithms = np.where(ratio > 0.5, np.log1p(np.maximum(apart, -0.5)), np.log(ratio))
    terms = expected * np.maximum(ratio * logarithms - apart, 0.0)
    return (float(terms.sum()) + unseen) / _total(cells) / unit


def gini_gain_of(cells: ContingencyTable) -> float:
    """Return the decrease of the Gini impurity: the weighted mean over branches of Σ (p in branch − p in all rows)²."""
    total, n_classes = _total(cells), len(cells.classes)
    shares = cells.classes / total
    seen = cells.branches[cells.branch] * (cells.weight / cells.branches[cells.branch] - shares[cells.target]) ** 2
    n_branches = np.bincount(cells.target, minlength=n_classes)
    with_class = np.bincount(cells.target, weights=cells.branches[cells.branch], minlength=n_classes)
    is_everywhere = n_branches == np.count_nonzero(cells.branches)
    without_class = np.where(is_everywhere, 0.0, np.maximum(total - with_class, 0.0))
    return (float(seen.sum()) + float((without_class * shares**2).sum())) / total


def chi_square_of(cells: ContingencyTable) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom, over the branches and classes that have rows.

    Each cell without rows adds its expected weight to the statistic. Without degrees of freedom, both results are 0.
    """
    n_branches, n_classes = np.count_nonzero(cells.branches), np.count_nonzero(cells.classes)
    if n_branches < 2 or n_classes < 2:
        return 0.0, 0
    freedom = (int(n_branches) - 1) * (int(n_classes) - 1)
    expected, unseen = _expected(cells)
    return float(((cells.weight - expected) ** 2 / expected).sum()) + unseen, freedom


def _expected(cells: ContingencyTable) -> tuple[Floats, float]:
    """Return the expected weight of each cell with rows, and the total expected weight of the other cells."""
    expected = cells.branches[cells.branch] * cells.classes[cells.target] / _total(cells)
    all_seen = len(cells.weight) == np.count_nonzero(cells.branches) * np.count_nonzero(cells.classes)
    return expected, 0.0 if all_seen else max(_total(cells) - float(expected.sum()), 0.0)


def _total(cells: ContingencyTable) -> float:
    return float(cells.weight.sum()) or 1.0
