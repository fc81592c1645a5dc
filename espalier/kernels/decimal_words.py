"""Numbers of a few digits as words of 32 bits: a decimal point that floats.

A word holds a whole number and how many places it stands behind the decimal point, from `first` on::

    bits 31–29   places - first           units[places - first] = 10^places
    bits 28–0    whole + 2^28             |whole| <= 2^28 - 3, so eight digits, or nine that begin with 1

The number is whole / 10^places, rounded once; of the places that leave room for all digits the most are taken.
"""

import numpy as np

from espalier.kernels.jit import compiled

__all__ = ["find_words"]

WHOLE_BITS = 29
MIDDLE = 1 << 28
LARGEST = MIDDLE - 3
MISSING, OTHER = (1 << 32) - 1, (1 << 32) - 2
MINUS_ZERO = np.int64(-(2**63))


@compiled
def find_words(numbers, bits, units, words):
    """Find the word of each number: MISSING for NaN, OTHER for a number that has none.

    numbers: float64 (n). bits: the same as int64. units: float64 (N_UNITS), ascending powers of ten.
    words: uint32 (n), written.
    """
    unit_1, unit_2, unit_3, unit_4 = units[1], units[2], units[3], units[4]
    unit_5, unit_6, unit_7 = units[5], units[6], units[7]
    most_1, most_2, most_3, most_4 = LARGEST / unit_1, LARGEST / unit_2, LARGEST / unit_3, LARGEST / unit_4
    most_5, most_6, most_7 = LARGEST / unit_5, LARGEST / unit_6, LARGEST / unit_7
    for row in range(numbers.size):  # without a jump, so that eight numbers are looked at together
        number = numbers[np.uint64(row)]
        size = abs(number)
        unit, place = units[0], np.int64(0)
        unit, place = (unit_1, np.int64(1)) if size <= most_1 else (unit, place)
        unit, place = (unit_2, np.int64(2)) if size <= most_2 else (unit, place)
        unit, place = (unit_3, np.int64(3)) if size <= most_3 else (unit, place)
        unit, place = (unit_4, np.int64(4)) if size <= most_4 else (unit, place)
        unit, place = (unit_5, np.int64(5)) if size <= most_5 else (unit, place)
        unit, place = (unit_6, np.int64(6)) if size <= most_6 else (unit, place)
        unit, place = (unit_7, np.int64(7)) if size <= most_7 else (unit, place)
        whole = np.rint(number * unit)
        fits = (whole / unit == number) & (abs(whole) <= LARGEST) & (bits[np.uint64(row)] != MINUS_ZERO)
        word = (place << WHOLE_BITS) | (np.int64(whole if fits else 0.0) + MIDDLE)
        word = word if fits else np.int64(OTHER)
        words[np.uint64(row)] = np.uint32(word if number == number else np.int64(MISSING))  # noqa: PLR0124 - NaN differs
