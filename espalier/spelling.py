"""Numbers that were read from text, and how they were spelt there, so that the text need not be kept.

Nearly all numbers of a file are spelt in one way, without an exponent and without a nought too many, and a double gives
it back if it has at most 15 digits (`espalier.kernels.csv_cells` sees to it). The others are noted::

    text      1.5   2   2.50   ?
    values    1.5   2   2.5    nan
    noted               2.50

"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["LONGEST_NOTED", "MOST_NOTED", "number_text", "texts_of"]

MOST_NOTED = 65_536
"""Cells of a table whose text is noted; of the columns with more the text is kept."""
LONGEST_NOTED = 64
"""Signs of a text that is noted: a number may be spelt by as many noughts as a cell holds."""


def number_text(value: float) -> str:
    """Spell a number as most programs do: the fewest digits that are nearest to it, without an exponent.

    >>> [number_text(value) for value in (2.0, -0.25, 1e-7, 1e22, -0.0)]
    ['2', '-0.25', '0.0000001', '10000000000000000000000', '0']
    """
    text = repr(value + 0.0)  # of two zeros, one
    return np.format_float_positional(value, trim="-") if "e" in text else text.removesuffix(".0")


def texts_of(
    values: npt.NDArray[np.float64], noted: Mapping[int, str]
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Give the distinct texts of numbers, in the order of their rows, and of each row the place of its own.

    Args:
        values: float64 (rows), NaN where missing.
        noted: The texts that `number_text` does not give, by row.

    Returns:
        The texts, and int64 (rows), -1 where missing.

    >>> texts, places = texts_of(np.array([2, 1.5, np.nan, 2, 2]), {4: "2.0"})
    >>> texts, places.tolist()
    (('2', '1.5', '2.0'), [0, 1, -1, 0, 2])
    """
    known = ~np.isnan(values)
    places = np.full(len(values), -1, dtype=np.int64)
    distinct, places[known] = np.unique(values[known], return_inverse=True)
    texts = [number_text(value) for value in distinct.tolist()]
    place_of: dict[str, int] = {}
    for row, text in noted.items():
        places[row] = place_of.setdefault(text, len(texts) + len(place_of))
    texts += place_of
    rows = np.flatnonzero(places >= 0)
    first = np.full(len(texts), len(values))
    first[places[rows[::-1]]] = rows[::-1]  # the last that is written is the first of its text
    order = np.argsort(first)
    moved = np.empty(len(texts) + 1, dtype=np.int64)
    moved[order], moved[-1] = np.arange(len(texts)), -1
    return tuple(texts[place] for place in order.tolist()), moved[places]
