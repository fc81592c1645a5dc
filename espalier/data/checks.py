"""Faults of targets and weights, named by row numbers, never by the cells themselves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.data.schema import Role
from espalier.errors import Fault

MAX_ROWS_SHOWN: Final = 3
MAX_TARGET: Final = 1e100
MAX_WEIGHT: Final = 1e50
"""Weighted sums of squares overflow above it; weights below its reciprocal underflow when they are squared."""


def fault_of_rows(rows: Sequence[int] | npt.NDArray[np.intp], code: str, message: str) -> Fault:
    """Return one fault for all `rows` that names the first of them."""
    shown = ", ".join(str(row) for row in rows[:MAX_ROWS_SHOWN]) + (", …" if len(rows) > MAX_ROWS_SHOWN else "")
    return Fault("", code, f"{message}: {len(rows)} cell{'s' if len(rows) > 1 else ''} (row {shown}, counted from 0)")


def faults_of_target(column: npt.NDArray[Any]) -> list[Fault]:
    """Return the faults of a target: missing values, numbers too large to be squared."""
    faults = _faults_of_missing(column, "the target")
    if column.dtype == np.float64 and not faults:
        rows = np.flatnonzero(np.abs(column) > MAX_TARGET).tolist()
        legal = f"a numeric target must be between ±{MAX_TARGET:g}"
        faults += [fault_of_rows(rows, "too_large", legal)] if rows else []
    return faults


def faults_of_weights(column: npt.NDArray[np.float64]) -> list[Fault]:
    """Return the faults of weights: missing, negative, all zero, or of a size that cannot be squared and added."""
    faults = _faults_of_missing(column, "a weight")
    negative = np.flatnonzero(column < 0).tolist()
    if negative:
        faults.append(fault_of_rows(negative, "negative", "a weight must be at least 0"))
    extreme = np.flatnonzero((column > MAX_WEIGHT) | ((column > 0) & (column < 1 / MAX_WEIGHT))).tolist()
    if extreme:
        legal = f"a weight above 0 must be from {1 / MAX_WEIGHT:g} to {MAX_WEIGHT:g}"
        faults.append(fault_of_rows(extreme, "out_of_range", legal))
    if not faults and not np.any(column > 0):
        faults.append(Fault("", "no_weight", "at least one weight must be above 0"))
    return faults


def _faults_of_missing(column: npt.NDArray[Any], what: str) -> list[Fault]:
    rows = np.flatnonzero(np.isnan(column) if column.dtype == np.float64 else column < 0).tolist()
    return [fault_of_rows(rows, "missing", f"{what} must not be missing")] if rows else []


WHOLE_CHECKS: Final[Mapping[Role | None, Callable[[npt.NDArray[Any]], list[Fault]]]] = {
    Role.TARGET: faults_of_target,
    Role.WEIGHT: lambda column: faults_of_weights(np.asarray(column, dtype=np.float64)),
}
"""Checks of all cells of a column together."""
