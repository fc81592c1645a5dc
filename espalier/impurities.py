"""Impurities of a group of rows, and Pearson's statistic of a table of counts, as they are shown to people."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["chi_square_of", "entropy_of", "gini_of", "variance_of"]

Floats = npt.NDArray[np.float64]


def entropy_of(weights: Floats, unit: float) -> float:
    """Give the entropy of the shares that `weights` (classes,) have; `unit` is ln 2 for bits, 1 for nats."""
    total = float(weights.sum())
    shares = weights[weights > 0] / total if total > 0 else np.ones(1)
    return abs(float((shares * np.log(shares)).sum())) / unit


def gini_of(weights: Floats) -> float:
    """Give Σ p(1 − p) over the shares that `weights` (classes,) have."""
    total = float(weights.sum())
    shares = weights / total if total > 0 else np.zeros(1)
    return float((shares * (1 - shares)).sum())


def variance_of(target: npt.NDArray[Any], weight: Floats) -> float:
    """Give the weighted population variance of `target` (rows,); 0 without rows."""
    if not len(target):
        return 0.0
    return float(np.average((target - np.average(target, weights=weight)) ** 2, weights=weight))


def chi_square_of(counts: Floats) -> tuple[float, int]:
    """Give Pearson's statistic and its degrees of freedom, over the branches and classes that have rows."""
    seen = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    freedom = (seen.shape[0] - 1) * (seen.shape[1] - 1)
    if freedom <= 0:
        return 0.0, 0
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    return float(((seen - expected) ** 2 / expected).sum()), freedom
