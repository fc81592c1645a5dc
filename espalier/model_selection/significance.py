"""Significance tests of paired figures, a fold or a row each."""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from espalier.stats import student_t_two_sided

ROUNDING: Final = 1e-12
"""Relative difference below which two figures are equal."""


def paired_differences(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the difference of each pair of figures; differences within rounding of a sum are 0."""
    one, other = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    apart = one - other
    return np.where(np.abs(apart) <= ROUNDING * np.maximum(np.abs(one), np.abs(other)), 0.0, apart)


def resampled_t(apart: npt.NDArray[np.float64], test_to_training: float) -> tuple[float, str]:
    """Return the p-value of the mean difference, and the name of the test.

    If all differences are the same they have no variance, and the test no result: then the p-value is that of the sign
    test, 2 · 2^-k for k differences of one sign.

    Args:
        apart: Differences, float64 (n), a fold or a row each.
        test_to_training: Number of test rows per training row; 0 is Student's paired t-test.
    """
    count = len(apart)
    mean = float(apart.mean())
    name = "corrected resampled t-test (Nadeau and Bengio 2003)" if test_to_training else "paired t-test (Student 1908)"
    if count < 2 or mean == 0:
        return 1.0, name
    if np.ptp(apart) <= ROUNDING * abs(mean):
        return math.ldexp(1.0, 1 - count), "sign test (all differences are the same)"
    # As shares of the largest: squares of what is very small would be 0.
    shares = apart / float(np.abs(apart).max())
    variance = float(shares.var(ddof=1)) * (1 / count + test_to_training)
    return student_t_two_sided(float(shares.mean()) / math.sqrt(variance), count - 1), name
