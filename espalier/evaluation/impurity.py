"""Impurity of a group of rows and Pearson's statistic of a contingency table, for people."""

from dataclasses import dataclass

import numpy as np

from espalier.arrays import Array, Floats, Places


@dataclass(frozen=True, slots=True)
class ContingencyTable:
    """A sparse contingency table of branches and classes: only its cells with rows.

    Attributes:
        branch: Of each cell, (cells,).
        target: Its class, (cells,).
        weight: Of its rows, above 0, (cells,).
        branches: Weight of each branch, (branches,).
        classes: Weight of each class, (classes,).
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
        weight: float64 (n_rows,), above 0.
        n_branches: Branches, also those without rows.
        n_classes: Classes, also those without rows.
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
    """Return the entropy of the shares that `weights` (classes,) have; `unit` is ln 2 for bits, 1 for nats."""
    total = float(weights.sum())
    shares = weights[weights > 0] / total if total > 0 else np.ones(1)
    return abs(float((shares * np.log(shares)).sum())) / unit


def gini_of(weights: Floats) -> float:
    """Return Σ p(1 − p) over the shares that `weights` (classes,) have."""
    total = float(weights.sum())
    shares = weights / total if total > 0 else np.zeros(1)
    return float((shares * (1 - shares)).sum())


def variance_of(target: Array, weight: Floats) -> float:
    """Return the weighted population variance of `target` (rows,); 0 without rows."""
    if not len(target):
        return 0.0
    return float(np.average((target - np.average(target, weights=weight)) ** 2, weights=weight))


def entropy_within(cells: ContingencyTable, unit: float) -> float:
    """Return the mean entropy inside the branches, each by its weight; `unit` as in `entropy_of`."""
    shares = cells.weight / cells.branches[cells.branch]
    return abs(float((cells.weight * np.log(shares)).sum())) / _total(cells) / unit


def gini_within(cells: ContingencyTable) -> float:
    """Return the mean Σ p(1 − p) inside the branches, each by its weight."""
    shares = cells.weight / cells.branches[cells.branch]
    return float((cells.weight * (1 - shares)).sum()) / _total(cells)


def chi_square_of(cells: ContingencyTable) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom, over the branches and classes that have rows.

    A cell without rows adds what is expected of it; together they add what the others leave of the whole weight.
    """
    n_branches, n_classes = np.count_nonzero(cells.branches), np.count_nonzero(cells.classes)
    freedom = (int(n_branches) - 1) * (int(n_classes) - 1)
    if freedom <= 0:
        return 0.0, 0
    expected = cells.branches[cells.branch] * cells.classes[cells.target] / _total(cells)
    seen = float(((cells.weight - expected) ** 2 / expected).sum())
    all_seen = len(cells.weight) == n_branches * n_classes
    return seen + (0.0 if all_seen else max(_total(cells) - float(expected.sum()), 0.0)), freedom


def _total(cells: ContingencyTable) -> float:
    return float(cells.weight.sum()) or 1.0
