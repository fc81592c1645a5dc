"""Recognize numbers, and parse texts as numbers."""

import math
from typing import Any


def is_number(label: object) -> bool:
    """Return whether a label is a number; true and false are not."""
    return isinstance(label, int | float) and not isinstance(label, bool)


def number_from_text(text: str) -> float | None:
    """Return the number that a text means; None if it is not a finite number.

    >>> number_from_text(" -1.5e3"), number_from_text("1_000"), number_from_text("nan")
    (-1500.0, None, None)
    """
    if "_" in text or not text.isascii():
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def plain_number(cell: Any) -> float | None:
    """Return the finite number that a cell is, or that its text means; None for any other cell."""
    if isinstance(cell, str):
        return number_from_text(cell)
    try:
        value = float(cell) if is_number(cell) else math.nan
    except OverflowError:
        return None
    return value if math.isfinite(value) else None
