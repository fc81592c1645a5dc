"""What is wrong with the cells of one column, told by row numbers and never by the cells themselves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.data.schema import Role
from espalier.errors import Fault

SHOWN_ROWS: Final = 3
LARGEST_TARGET: Final = 1e100
LARGEST_WEIGHT: Final = 1e50
"""Weighted sums of squares of more are no numbers; no weight is smaller than the reciprocal, or its square is none."""


def fault_of_rows(rows: Sequence[int] | npt.NDArray[np.intp], code: str, message: str) -> Fault:
    """Give one fault for all `rows`, naming the first of them."""
    shown = ", ".join(str(row) for row in rows[:SHOWN_ROWS]) + (", …" if len(rows) > SHOWN_ROWS else "")
    return Fault("", code, f"{message}: {len(rows)} cell{'s' if len(rows) > 1 else ''} (row {shown}, counted from 0)")


def faults_of_target(column: npt.NDArray[Any]) -> list[Fault]:
    """See whether a target is known everywhere, and small enough to be squared."""
    faults = _faults_of_missing(column, "the target")
    if column.dtype == np.float64 and not faults:
        rows = np.flatnonzero(np.abs(column) > LARGEST_TARGET).tolist()
        legal = f"a numeric target must be between ±{LARGEST_TARGET:g}"
        faults += [fault_of_rows(rows, "too_large", legal)] if rows else []
    return faults


def faults_of_weights(column: npt.NDArray[np.float64]) -> list[Fault]:
    """See whether weights are known, not negative, not all zero, and of a size that can be added up and squared."""
    faults = _faults_of_missing(column, "a weight")
    negative = np.flatnonzero(column < 0).tolist()
    if negative:
        faults.append(fault_of_rows(negative, "negative", "a weight must be at least 0"))
    extreme = np.flatnonzero((column > LARGEST_WEIGHT) | ((column > 0) & (column < 1 / LARGEST_WEIGHT))).tolist()
    if extreme:
        legal = f"a weight above 0 must be from {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
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
"""What must hold of all cells of a column together."""
