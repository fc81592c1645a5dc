"""Deviations from the median under ``absolute_error``, for every prefix of a sequence of rows."""

import numpy as np
import pytest

from espalier.config.criteria import CRITERIA
from espalier.growing.kernels.arguments import GrowParameters, Medians, Sums, Targets, Workspace
from espalier.growing.kernels.constants import ROWS_BETWEEN_CHECKS
from espalier.growing.kernels.splits.deviations import write_prefixes


def workspace(rank, value, target, weight, *, stop=0.0):
    medians = Medians(
        target_rank=rank, target_value=value, weight_tree=np.zeros(len(value) + 1), sum_tree=np.zeros(len(value) + 1),
        progress=np.array([0.0, stop]),
    )  # fmt: skip
    targets = Targets(target_class=np.zeros(len(target), np.int32), target=target, weight=weight)
    parameters = GrowParameters(criterion=list(CRITERIA).index("absolute_error"))
    return Workspace(parameters=parameters, targets=targets, sums=Sums(weight=weight), medians=medians)


def deviation(target, weight):
    """Return the least sum of weighted deviations from one of the targets: a median is one."""
    return min((np.sum(weight * np.abs(target - middle)) for middle in target), default=0.0)


@pytest.mark.parametrize("step", [1, -1])
def test_every_prefix_deviates_as_if_it_were_sorted_alone(step):
    rng = np.random.default_rng(5)
    target, weight = rng.integers(0, 9, 30) * 0.5, rng.choice([0.5, 1.0, 2.0], 40)
    target = np.concatenate([target, rng.normal(size=10)])
    value, rank = np.unique(target, return_inverse=True)
    rows = rng.permutation(40).astype(np.int32)
    work = workspace(rank.astype(np.int32), value, target, weight)
    answer = np.zeros(31)
    for _ in range(2):  # the trees are empty again
        start, stop = (0, 30) if step == 1 else (29, -1)
        write_prefixes(work, rows, start, stop, 30, 40, answer)
        for n_rows in range(31):
            prefix = np.concatenate([rows[:30][::step][:n_rows], rows[30:]])
            assert answer[n_rows] == pytest.approx(deviation(target[prefix], weight[prefix]), abs=1e-9)


@pytest.mark.parametrize(("stop", "last_known"), [(0.0, ROWS_BETWEEN_CHECKS + 9), (1.0, ROWS_BETWEEN_CHECKS)])
def test_a_stop_is_seen_within_one_long_scan(stop, last_known):
    n_rows = ROWS_BETWEEN_CHECKS + 9
    rows, answer = np.arange(n_rows, dtype=np.int32), np.full(n_rows + 1, -1.0)
    work = workspace(np.zeros(n_rows, np.int32), np.zeros(1), np.zeros(n_rows), np.ones(n_rows), stop=stop)
    write_prefixes(work, rows, 0, n_rows, 0, 0, answer)
    # All targets are equal, so nothing deviates. What was not read is unchanged.
    assert np.all(answer[: last_known + 1] == 0.0)
    assert np.all(answer[last_known + 1 :] == -1.0)
