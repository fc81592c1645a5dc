"""Bounds of the gain: no split is better than its bound, so that those below the best gain may be skipped."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from espalier.config.criteria import CRITERIA
from espalier.growing.kernels.arguments import GrowParameters, Sums, Workspace
from espalier.growing.kernels.splits.numeric_split import max_gain_of_split

Floats = npt.NDArray[np.float64]


def impurity(stats: Floats, criterion: int) -> float:
    """Weight times entropy in bits, or times Gini, by definition."""
    shares = stats[stats > 0] / stats.sum() if stats.sum() > 0 else stats[:0]
    if criterion == list(CRITERIA).index("gini"):
        return float(stats.sum() * (1 - np.sum(shares**2))) if len(shares) else 0.0
    return float(-stats.sum() * sum(share * math.log2(share) for share in shares))


def gain(left: Floats, known: Floats, criterion: int) -> float:
    return impurity(known, criterion) - impurity(left, criterion) - impurity(known - left, criterion)


@pytest.mark.parametrize(
    "criterion", [list(CRITERIA).index(word) for word in ("information_gain", "gain_ratio", "gini")]
)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_no_cut_gains_more_than_its_bound(n_classes: int, criterion: int) -> None:
    random = np.random.default_rng(n_classes)
    parameters = GrowParameters(criterion=criterion)
    for _ in range(60):
        rows = np.zeros((80, n_classes))
        skew = random.dirichlet(np.full(n_classes, 0.5))
        rows[np.arange(80), random.choice(n_classes, 80, p=skew)] = random.choice([0.05, 1.0, 1.0, 3.0], 80)
        sums, known = np.cumsum(rows, axis=0), rows.sum(axis=0)
        for at in range(79):
            work = Workspace(parameters=parameters, sums=Sums(known=known, left=sums[at]))
            work.search.known_weight = known.sum()
            assert gain(sums[at], known, criterion) <= max_gain_of_split(work, sums[at].sum()) + 1e-9
