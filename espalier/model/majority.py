"""The majority of class weights: the first of the heaviest classes; weights that are equal up to rounding are equal."""

from typing import Final

import numpy as np

from espalier.arrays import Array, Ints

ROUNDING: Final = 1e-12
"""Sums of weights that differ by at most this share are equal: their order of addition must not decide."""


def majority(weights: Array) -> Ints:
    """Return the first of the heaviest classes of each row of weights above or at 0, int32 (rows).

    >>> majority(np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])).tolist()
    [0, 0]
    """
    least = weights.max(axis=1, keepdims=True) - ROUNDING * weights.sum(axis=1, keepdims=True)
    first: Ints = (weights >= least).argmax(axis=1).astype(np.int32)
    return first
