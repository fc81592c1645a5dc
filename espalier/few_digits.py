"""Columns of numbers of a few digits in half the bytes, by compiled code: see `espalier.kernels.decimal_words`."""

import sys
import threading
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["DecimalWords", "decimal_words", "found_words", "load_decimal_words"]

WHOLE_BITS: Final = np.uint32(29)
WHOLE: Final = np.uint32(2**29 - 1)
MIDDLE: Final = 2.0**28
LARGEST: Final = 2.0**28 - 3
MISSING: Final = np.uint32(2**32 - 1)
OTHER: Final = np.uint32(2**32 - 2)
N_UNITS: Final = 8
MOST_PLACES: Final = 22 - N_UNITS
"""Of the largest number: 10^22 is the last power of ten that is a float64."""

_first_use = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class DecimalWords:
    """A column of numbers as words of 32 bits.

    Attributes:
        first: Places behind the decimal point of words whose upper three bits are 0.
        words: uint32 (n_rows,).
        others: Those numbers that no word stands for, in their order, float64.

    >>> words = DecimalWords(0, np.array([2**28 + 7, 2**32 - 1, 2**32 - 2], np.uint32), np.array([1 / 3]))
    >>> out = np.empty(3)
    >>> words.write_numbers(out)
    >>> out.tolist()
    [7.0, nan, 0.3333333333333333]
    """

    first: int
    words: npt.NDArray[np.uint32]
    others: npt.NDArray[np.float64]

    def write_numbers(self, out: npt.NDArray[np.float64]) -> None:
        """Write the numbers, NaN for missing, (n_rows,)."""
        np.subtract(self.words & WHOLE, MIDDLE, out=out, dtype=np.float64)
        np.divide(out, _units(self.first).take(self.words >> WHOLE_BITS), out=out)
        if int(self.words.max(initial=0)) >= OTHER:
            out[self.words == MISSING] = np.nan
            out[self.words == OTHER] = self.others


def decimal_words(numbers: npt.NDArray[np.float64]) -> DecimalWords | None:
    """Find words for numbers by compiled code, where this process has loaded such code to read CSV; see `found_words`.

    Returns:
        None where one is too large, or no code is loaded: it is not loaded for this.

    >>> from espalier import decimal_words
    >>> numbers, back = np.array([36.6, np.nan]), np.zeros(2)
    >>> words = decimal_words(numbers)
    >>> if words is None:
    ...     back[:] = numbers
    ... else:
    ...     words.write_numbers(out=back)
    >>> back.tolist()
    [36.6, nan]
    >>> decimal_words(np.array([1e300])) is None
    True
    """
    reading: Any = sys.modules.get("espalier.kernels.csv_cells")
    if reading is None or not getattr(reading.read_cells, "overloads", None):
        return None
    return found_words(numbers)


def found_words(numbers: npt.NDArray[np.float64]) -> DecimalWords | None:
    """Find words for numbers, NaN for missing; they stand for the same bits, but NaN is NaN. None: one is too large.

    >>> words = found_words(np.array([36.6, np.nan, 1 / 3]))
    >>> words.first, words.others.tolist()
    (6, [0.3333333333333333])
    >>> int(words.words[0]) == 2**28 + 36_600_000
    True
    """
    with np.errstate(invalid="ignore"):
        most = float(max(np.fmax.reduce(numbers, initial=0.0), -np.fmin.reduce(numbers, initial=0.0)))
    first = next((places for places in range(MOST_PLACES, -1, -1) if most * 10.0**places <= LARGEST), None)
    if first is None:
        return None
    words = np.empty(len(numbers), dtype=np.uint32)
    _find_words(np.ascontiguousarray(numbers), first, words)
    return DecimalWords(first, words, numbers[words == OTHER])


def load_decimal_words() -> None:
    """Have the code compiled, or loaded."""
    _find_words(np.zeros(1), 0, np.empty(1, dtype=np.uint32))


def _find_words(numbers: npt.NDArray[np.float64], first: int, words: npt.NDArray[np.uint32]) -> None:
    from espalier.kernels.decimal_words import find_words  # noqa: PLC0415 - numba is loaded for long tables only

    if numbers.flags.writeable:
        numbers = numbers.view()
        numbers.flags.writeable = False  # machine code is made for one kind of array
    arguments = numbers, numbers.view(np.int64), _units(first), words
    if getattr(find_words, "overloads", True):
        find_words(*arguments)
        return
    with _first_use:  # the first thread loads or compiles the code while the others wait
        find_words(*arguments)


def _units(first: int) -> npt.NDArray[np.float64]:
    return np.array([10.0 ** (first + place) for place in range(N_UNITS)])
