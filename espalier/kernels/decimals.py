"""Decimal numbers from their signs: eight digits at a time, and rounded once.

Up to 19 digits are taken as one whole number w, and w · 10^q is rounded once: by one multiplication or division of
exact numbers where w < 2^53 and |q| <= 22 (Clinger 1990), else by the product of w and the first 128 bits of 5^q
(Lemire 2021, algorithm 1). What these cannot decide is left to the caller.
"""

import numpy as np

from espalier.kernels.jit import inner

__all__ = [
    "LARGEST_EXACT",
    "MOST_DIGITS",
    "POWERS_OF_FIVE",
    "digits",
    "digits_behind",
    "eight_signs",
    "exponent_behind",
    "first_digits",
    "number_of",
]

MOST_DIGITS = 19
MOST_EXPONENT_DIGITS = 5
LARGEST_EXACT = np.uint64(1) << np.uint64(53)
EXACT_POWERS = np.array([float(10**power) for power in range(23)])
LEAST_POWER, MOST_POWER = -342, 308
PLUS, MINUS = np.uint8(43), np.uint8(45)
ZERO, NINE, TEN = np.uint64(48), np.uint64(9), np.uint64(10)
SIGNS = np.array([1.0, -1.0])
LOW_HALF = np.uint64((1 << 32) - 1)
HALF = np.uint64(32)
ONE = np.uint64(1)
MINUS_ONE = np.uint64((1 << 64) - 1)
POWERS_OF_TEN = np.array([10**power for power in range(9)], np.uint64)
ZEROS = np.uint64(0x3030303030303030)
ABOVE_NINE = np.uint64(0x7676767676767676)
TOP_BITS = np.uint64(0x8080808080808080)
PLACES = np.uint64(0x0001020304050607)
LAST_BITS = np.uint64(0x1FF)
MANTISSA_BITS = np.uint64(52)
MANTISSA = (np.uint64(1) << np.uint64(52)) - np.uint64(1)


def _powers_of_five():
    """Give the first 128 bits of 5^q for q from -342 to 308, uint64 (651, 2): upper half, lower half (Lemire 2021)."""
    table = np.empty((MOST_POWER - LEAST_POWER + 1, 2), np.uint64)
    for power in range(LEAST_POWER, MOST_POWER + 1):
        five = 5 ** abs(power)
        if power < 0:
            n_bits = (five - 1).bit_length()
            first = (1 << (n_bits + 127 if power >= -27 else 2 * n_bits + 128)) // five + 1
        else:
            first = five << 128
        first >>= max(0, first.bit_length() - 128)
        table[power - LEAST_POWER] = first >> 64, first & ((1 << 64) - 1)
    return table


POWERS_OF_FIVE = _powers_of_five()


@inner
def first_digits(content, at):
    """Read the whole number that stands here, one digit at a time; returns it and the place behind.

    Mostly it has one digit or two, which the processor foresees.
    """
    whole = np.uint64(0)
    while True:
        digit = np.uint64(content[np.uint64(at)]) - ZERO
        if digit > NINE:
            return whole, at
        whole = whole * TEN + digit
        at += 1


@inner
def digits(content, at, whole):
    """Go on reading a whole number with the digits that stand here, eight at a time; returns it and the place."""
    while True:
        eight = eight_signs(content, at) ^ ZEROS
        n_digits = _n_digits(eight)
        whole = whole * POWERS_OF_TEN[np.uint64(n_digits)] + _added_up(eight, n_digits)
        at += n_digits
        if n_digits < 8:
            return whole, at


@inner
def digits_behind(content, at, whole):
    """Go on reading a whole number with the digits that stand here; returns it and the place behind.

    Sixteen signs are looked at without a jump: how many of them are digits cannot be foreseen.
    """
    first, second = eight_signs(content, at) ^ ZEROS, eight_signs(content, at + 8) ^ ZEROS
    n_first, n_second = _n_digits(first), _n_digits(second)
    n_second &= -(n_first >> np.int64(3))  # none, unless there are eight before them
    whole = whole * POWERS_OF_TEN[np.uint64(n_first)] + _added_up(first, n_first)
    whole = whole * POWERS_OF_TEN[np.uint64(n_second)] + _added_up(second, n_second)
    at += n_first + n_second
    if n_second < 8:
        return whole, at
    return digits(content, at, whole)


@inner
def _n_digits(eight):
    """Give how many of eight signs, from which ZEROS are taken, stand before the first that is no digit; 8: all are."""
    others = (eight + ABOVE_NINE | eight) & TOP_BITS
    lowest = (others & (~others + ONE)) >> np.uint64(7)
    return np.int64((lowest * PLACES) >> np.uint64(56)) + (np.int64(others == np.uint64(0)) << np.int64(3))


@inner
def _added_up(eight, n_digits):
    """Give the number of the first so many of eight digits.

    Of eight signs taken as one number, the first in the lowest byte, the digits are moved to the upper end, so that
    zeros stand before them, and then added up by twos, fours and eight.
    """
    half = np.uint64(32 - 4 * n_digits)  # no number is moved by all of its 64 bits at once
    eight = eight << half << half
    eight = (eight * np.uint64(2561)) >> np.uint64(8)
    eight = ((eight & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    return ((eight & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)


@inner
def eight_signs(content, at):
    """Give eight signs as one number; the compiler makes one load of it."""
    low = np.uint64(at)
    value = np.uint64(content[low])
    for place in range(1, 8):
        value |= np.uint64(content[low + np.uint64(place)]) << np.uint64(8 * place)
    return value


@inner
def exponent_behind(content, at):
    """Read the exponent of which the e stands here; returns it, the place behind, and 1, or 0 where it is none."""
    at += 1
    sign = content[np.uint64(at)]
    below = sign == MINUS
    if below or sign == PLUS:
        at += 1
    first = at
    exponent, at = digits(content, at, np.uint64(0))
    if at == first or at - first > MOST_EXPONENT_DIGITS:
        return 0, at, 0
    return (-np.int64(exponent) if below else np.int64(exponent)), at, 1


@inner
def number_of(whole, power, negative, powers):
    """Give ±whole · 10^power, rounded once, and 1; 0 where that is not decided. powers: POWERS_OF_FIVE."""
    if whole < LARGEST_EXACT and -22 <= power <= 22:
        value = np.float64(np.int64(whole))  # of signed ones there is an instruction
        value = value / EXACT_POWERS[np.uint64(-power)] if power < 0 else value * EXACT_POWERS[np.uint64(power)]
        return value * SIGNS[np.uint64(negative)], 1
    value, decided = _rounded(whole, power, powers)
    return -value if negative else value, decided


@inner
def _rounded(whole, power, powers):
    """Give whole · 10^power rounded to even, and 1; 0 where that is not decided, or no normal number."""
    if whole == 0 or power < LEAST_POWER or power > MOST_POWER:
        return np.nan, 0
    zeros = 0
    while whole >> np.uint64(63) == 0:
        whole <<= ONE
        zeros += 1
    high, low = _product(whole, powers[power - LEAST_POWER, 0])
    if high & LAST_BITS == LAST_BITS:
        second, _ = _product(whole, powers[power - LEAST_POWER, 1])
        low += second
        if second > low:
            high += ONE
    if low == MINUS_ONE:
        return np.nan, 0
    upper = np.int64(high >> np.uint64(63))
    shift = np.uint64(upper + 9)
    bits = high >> shift
    exponent = ((217706 * power) >> 16) + 63 + upper - zeros + 1023
    if exponent <= 0:
        return np.nan, 0
    if low <= ONE and -4 <= power <= 23 and bits & np.uint64(3) == ONE and bits << shift == high:
        bits &= ~ONE
    bits = (bits + (bits & ONE)) >> ONE
    if bits >= LARGEST_EXACT:
        bits = LARGEST_EXACT >> ONE
        exponent += 1
    if exponent >= 0x7FF:
        return np.nan, 0
    bits = bits & MANTISSA | np.uint64(exponent) << MANTISSA_BITS
    return bits.view(np.float64), 1


@inner
def _product(left, right):
    """Give the upper and the lower half of a product of 64 times 64 bits."""
    left_low, left_high = left & LOW_HALF, left >> HALF
    right_low, right_high = right & LOW_HALF, right >> HALF
    lowest = left_low * right_low
    middle = left_high * right_low + (lowest >> HALF)
    other = left_low * right_high + (middle & LOW_HALF)
    return left_high * right_high + (middle >> HALF) + (other >> HALF), (other << HALF) | (lowest & LOW_HALF)
