"""Values that replace missing values of rows, and scales of attributes. Both are learned in training.

Scales are rounded so that they do not reveal the value of a row.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from espalier.arrays import Array, Floats
from espalier.data.instants import EARLIEST_INSTANT, LATEST_INSTANT
from espalier.data.labels import MAX_INTEGER
from espalier.data.schema import Feature, FeatureKind
from espalier.threads import parallel_map

DAY: Final = 86_400.0
STEPS: Final = {FeatureKind.NUMERIC: (1.0,), FeatureKind.DATETIME: (DAY, 1.0)}
"""For each kind, the steps to try, largest first. A step fits a column if all values are multiples of the step."""
BLOCK: Final = 8_192
"""Number of rows that are checked at once. The first block is enough to reject a step for most columns."""
MAX_SPAN: Final = 1e308


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of an attribute of numbers or dates, rounded so that it does not reveal the value of a row.

    Attributes:
        span: Largest minus smallest training value, to two significant digits.
        middle: Mean of smallest and largest training value, rounded to a tenth of the span's order of magnitude.
        step: The largest of these steps of which every training value is a multiple: 86400 (a date in whole days of
            UTC), or 1 (a whole number, or a date in whole seconds). 0 if neither fits, or if a value exceeds ±2⁵³.
    """

    span: float
    middle: float
    step: float


@dataclass(frozen=True, slots=True)
class Preparation:
    """Values learned from all training rows.

    Attributes:
        imputed: Replacements of missing values, one per attribute: the mean, or the code of the most frequent category
            as a float; if imported, the document's value; NaN if there is none. None unless ``missing="imputed"``.
        scales: One per attribute; None for an attribute of categories or without known values. In older and in
            imported models, `scales` itself is None.
    """

    imputed: tuple[float, ...] | None = None
    scales: tuple[Scale | None, ...] | None = None


def scales_of(attributes: Sequence[Feature], columns: Sequence[Array]) -> tuple[Scale | None, ...]:
    """Return the scale of each attribute from its column; None for an attribute of categories or without known values.

    >>> scales_of([Feature("age", FeatureKind.NUMERIC)], [np.array([18.0, 93.0, np.nan])])
    (Scale(span=75.0, middle=56.0, step=1.0),)
    """
    # Pass indexes instead of columns to the threads: a column that is not in memory is then read by its thread.
    numbers = range(len(attributes))
    n_cells = len(columns[0]) * len(columns) if len(columns) else 0
    return tuple(parallel_map(lambda number: _scale(attributes[number], columns[number]), numbers, n_cells=n_cells))


def _scale(feature: Feature, column: Array) -> Scale | None:
    if feature.coded:
        return None
    low = float(np.fmin.reduce(column, initial=np.inf))
    high = float(np.fmax.reduce(column, initial=-np.inf))
    if low > high:
        return None
    # Half the span, because the span itself may overflow.
    span = min(2.0 * min(high / 2 - low / 2, sys.float_info.max / 2), MAX_SPAN)
    middle = _roughly(low / 2 + high / 2, span)
    if feature.kind is FeatureKind.DATETIME:
        middle = min(max(middle, EARLIEST_INSTANT), LATEST_INSTANT)
    steps = STEPS[feature.kind] if max(-low, high) <= MAX_INTEGER else ()
    step = next((step for step in steps if _are_multiples(column, step)), 0.0)
    return Scale(float(f"{span:.2g}"), middle, step)


def _roughly(middle: float, span: float) -> float:
    """Return `middle`, rounded to a tenth of the power of ten at or below `span`; to two digits if `span` is 0."""
    if span == 0:
        return float(f"{middle:.2g}")
    digits = 1 - int(np.floor(np.log10(span)))
    return middle if digits > 300 else round(middle, digits)


def _are_multiples(column: Floats, step: float) -> bool:
    for first in range(0, len(column), BLOCK):
        block = column[first : first + BLOCK]
        times = block[~np.isnan(block)] / step
        if not np.array_equal(times, np.rint(times)):
            return False
    return True
