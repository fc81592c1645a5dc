"""The majority class is the first class with the largest weight. Weights that differ only by rounding are equal."""

from typing import Final

import numpy as np

from espalier.arrays import Array, Ints

ROUNDING: Final = 1e-12
"""Class weights that differ by at most this share of their sum are equal: the order of addition must not matter."""


def majority(weights: Array) -> Ints:
    """Return the majority class of each row of `weights`, float64 (rows, classes). The result is int32 (rows).

    >>> majority(np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])).tolist()
    [0, 0]
    """
    least = weights.max(axis=1, keepdims=True) - ROUNDING * weights.sum(axis=1, keepdims=True)
    first: Ints = (weights >= least).argmax(axis=1).astype(np.int32)
    return first
