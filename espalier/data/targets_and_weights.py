"""Faults of targets and weights. Messages give row numbers, never cells."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from espalier.arrays import Array, Mask
from espalier.data.schema import Role
from espalier.errors import Fault, listed

MAX_ROWS_SHOWN: Final = 3
MAX_TARGET: Final = 1e100
MIN_SPREAD: Final = 1e-100
"""The smallest legal range of a target that varies. Squares of smaller ranges, times squared weights, may underflow."""
MAX_WEIGHT: Final = 1e50
"""Squared weights times squared targets may overflow for larger weights, or underflow for those below 1/MAX_WEIGHT."""


def faults_where(is_bad: Mask, code: str, message: str) -> list[Fault]:
    """Return one fault that counts the bad rows and names the first of them; an empty list if no row is bad."""
    rows = np.flatnonzero(is_bad).tolist()
    if not rows:
        return []
    shown = listed(map(str, rows), MAX_ROWS_SHOWN)
    message += f": {len(rows)} cell{'s' if len(rows) > 1 else ''} (row {shown}, counted from 0)"
    return [Fault("", code, message)]


def faults_of_target(column: Array) -> list[Fault]:
    """Return the faults of a target: missing values, numbers beyond `MAX_TARGET`, or a range in (0, `MIN_SPREAD`)."""
    is_missing = column < 0 if column.dtype == np.int32 else np.isnan(column)
    legal = f"a numeric target must be between ±{MAX_TARGET:g}"
    faults = faults_where(is_missing, "missing", "the target must not be missing") or faults_where(
        np.abs(column) > MAX_TARGET, "too_large", legal
    )
    if not faults and len(column) and 0 < float(column.max()) - float(column.min()) < MIN_SPREAD:
        message = f"the extremes of a target must differ by {MIN_SPREAD:g} or more, or be equal: choose another unit"
        faults.append(Fault("", "too_close", message))
    return faults


def faults_of_weights(column: Array) -> list[Fault]:
    """Return the faults of weights: missing, negative, all zero, or above 0 but out of range."""
    weight = np.asarray(column, dtype=np.float64)
    legal = f"a weight above 0 must be from {1 / MAX_WEIGHT:g} to {MAX_WEIGHT:g}"
    faults = [
        *faults_where(np.isnan(weight), "missing", "a weight must not be missing"),
        *faults_where(weight < 0, "negative", "a weight must be at least 0"),
        *faults_where((weight > MAX_WEIGHT) | ((weight > 0) & (weight < 1 / MAX_WEIGHT)), "out_of_range", legal),
    ]
    if not faults and not np.any(weight > 0):
        faults.append(Fault("", "no_weight", "at least one weight must be above 0"))
    return faults


WHOLE_CHECKS: Final[Mapping[Role | None, Callable[[Array], list[Fault]]]] = {
    Role.TARGET: faults_of_target,
    Role.WEIGHT: faults_of_weights,
}
