"""The cells of a column as numbers or as labels, whichever of the two a table held."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.arrow import distinct_values
from espalier.frame_column import FrameColumn
from espalier.schema import EARLIEST_INSTANT, LATEST_INSTANT, FeatureKind, instant_text

__all__ = ["UNREADABLE", "Floats", "are_beyond", "floats_of", "labelled"]

UNREADABLE: Final = object()
"""Stands for a cell that is neither text, a number, true nor false."""

Floats = npt.NDArray[np.float64]


def floats_of(column: FrameColumn) -> Floats:
    """Give its numbers as float64 (n_rows,), NaN where missing, an array that nobody else has."""
    if column.owned:
        return column.values
    values = np.array(column.values, dtype=np.float64)
    if column.absent is not None:
        values[column.absent] = np.nan
    return values


def are_beyond(values: Floats, kind: FeatureKind) -> npt.NDArray[np.bool_]:
    """Say which numbers, or instants, are beyond what is legal, bool (n_rows,)."""
    if kind is FeatureKind.DATETIME:
        return (values < EARLIEST_INSTANT) | (values > LATEST_INSTANT)
    return np.isinf(values)


def labelled(column: FrameColumn) -> tuple[Sequence[Any], npt.NDArray[Any]]:
    """Give distinct labels and the place of each row's own among them, negative where missing."""
    if column.labels is not None:
        return column.labels, column.values
    absent = column.absent if column.absent is not None else np.zeros(len(column.values), dtype=np.bool_)
    if column.values.dtype.kind == "f":
        absent = absent | np.isnan(column.values)
    places = np.full(len(column.values), -1, dtype=np.int64)
    distinct, places[~absent] = distinct_values(column.values[~absent])
    labels: list[Any] = distinct.tolist()
    if column.kind is FeatureKind.DATETIME:
        labels = [
            instant_text(value) if EARLIEST_INSTANT <= value <= LATEST_INSTANT else UNREADABLE for value in labels
        ]
    return labels, places
