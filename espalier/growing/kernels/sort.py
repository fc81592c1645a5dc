"""Sort columns of numbers, and code columns of few values.

A column of many values is sorted as 64-bit numbers: a 32-bit code of the value in the upper half, the row in the lower.

Floating-point magnitudes are ordered like their bits. A shift removes the trailing zero bits that all values share
(float32 and whole numbers have many). A subtraction removes the gap between 0 and the smallest magnitude. The values of
many columns then need at most 32 bits. A radix sort of the rows by 32 bits takes at most three passes of 11 bits::

    63 ........... 32 | 31 ................... 0
      code of value   |         row

Later only the codes are compared. If more than 32 bits remain, the kernel sorts the rows by the upper 32; then
`espalier.growing.encode` sorts them by value, and replaces each code by the rank of its value.
"""

import cython
import numpy as np
from cython.cimports.espalier.growing.kernels.binary import constants as b


def write_codes(bits, codes, counts):
    """Write the code of each row. Return how many bits the values need.

    If values need at most 32 bits, a code is all of these bits, and codes are ordered like the values. Otherwise a code
    is the upper 32 of the needed bits. bits: uint64 (n), the bits of the float64 values, none missing. codes:
    uint32 (n), written. counts: uint32 (3, 2048), written: the number of codes with each value of each digit.
    """
    with cython.nogil:
        zeros, least, below, above = _span(bits)
        n_bits = _bit_length(below + above)
        for digit in range(b.N_DIGITS):
            for value in range(b.DIGIT_VALUES):
                counts[digit, value] = 0
        _write_shifted(bits, zeros, least, below, max(0, n_bits - b.CODE_BITS), codes, counts)
    return n_bits


def sort_rows(n_bits, codes, counts, order, near, far):
    """Sort the rows of a column by code, and rows with equal codes by row number.

    n_bits, codes, counts (changed): from `write_codes`. order: uint32 (n), written. near, far: uint64 (n), scratch.
    """
    place: cython.uint
    digit: cython.longlong
    with cython.nogil:
        n_passes = max(1, (min(n_bits, b.CODE_BITS) + b.DIGIT_BITS - 1) // b.DIGIT_BITS)
        for digit in range(n_passes):
            place = 0
            for value in range(b.DIGIT_VALUES):
                count = counts[digit, value]
                counts[digit, value] = place
                place += count
        _first_pass(codes, counts, near)
        for digit in range(1, n_passes):
            _next_pass(near, digit, counts, far)
            near, far = far, near
        for at in range(order.shape[0]):
            order[at] = cython.cast(cython.uint, near[at])


def _span(bits):
    """Return (zeros, least, below, above), from which `_write_shifted` computes the codes.

    zeros: number of trailing zero bits that all values share. The other results refer to magnitudes shifted right by
    `zeros`. least: the smallest magnitude above 0. below, above: the largest magnitude of the negative and of the
    positive values, minus `least`, plus 1; or 0 if there are none.
    """
    sign = cython.cast(cython.ulonglong, 1) << 63
    used: cython.ulonglong = 0
    least, below, above = sign, used, used
    for row in range(bits.shape[0]):
        magnitude = bits[row] & (sign - 1)
        used |= magnitude
        if magnitude != 0:
            least = min(least, magnitude)
        if bits[row] >= sign:
            below = max(below, magnitude)
        else:
            above = max(above, magnitude)
    zeros: cython.ulonglong = 0
    while zeros < 63 and (used >> zeros) & 1 == 0:
        zeros += 1
    least >>= zeros
    below >>= zeros
    above >>= zeros
    if below > 0:
        below = below - least + 1
    if above > 0:
        above = above - least + 1
    return zeros, least, below, above


def _bit_length(number):
    length = 0
    while length < 64 and number >> length != 0:
        length += 1
    return length


def _write_shifted(bits, zeros, least, below, shift, codes, counts):
    sign = cython.cast(cython.ulonglong, 1) << 63
    for row in range(bits.shape[0]):
        magnitude = (bits[row] & (sign - 1)) >> zeros
        size: cython.ulonglong = magnitude - least + 1 if magnitude != 0 else 0
        code: cython.uint = (below - size if bits[row] >= sign else below + size) >> shift
        codes[row] = code
        counts[0, code % b.DIGIT_VALUES] += 1
        counts[1, (code >> b.DIGIT_BITS) % b.DIGIT_VALUES] += 1
        counts[2, code >> (2 * b.DIGIT_BITS)] += 1


def _first_pass(codes, places, sink):
    for row in range(codes.shape[0]):
        code = codes[row]
        place = places[0, code % b.DIGIT_VALUES]
        places[0, code % b.DIGIT_VALUES] = place + 1
        sink[place] = (cython.cast(cython.ulonglong, code) << b.CODE_BITS) | row


def _next_pass(source, digit, places, sink):
    shift = b.CODE_BITS + digit * b.DIGIT_BITS
    for at in range(source.shape[0]):
        packed = source[at]
        value = (packed >> shift) % b.DIGIT_VALUES
        place = places[digit, value]
        places[digit, value] = place + 1
        sink[place] = packed


def code_column(values, cells, most):
    """Write the rank of each row's value if a column has at most `most` (256) distinct values.

    values: float64 (n), none missing. cells: uint8 (n), written. Returns the number of distinct values, or -1 if there
    are more. A hash table numbers the values in order of first occurrence; then the numbers are replaced by ranks.
    """
    slots: cython.int[::1] = np.full(b.N_SLOTS, -1, np.int32)
    found: cython.double[::1] = np.empty(most)
    bits: cython.ulonglong[::1] = np.asarray(values).view(np.uint64)
    n_found: cython.int = 0
    with cython.nogil:
        for row in range(values.shape[0]):
            value = values[row] + 0.0
            key = bits[row] if value != 0.0 else 0
            at = (key ^ (key >> 29) ^ (key >> 47) ^ (key >> 53)) % b.N_SLOTS
            while slots[at] >= 0 and found[slots[at]] != value:
                at = (at + 1) % b.N_SLOTS
            if slots[at] < 0:
                if n_found == most:
                    return -1
                slots[at] = n_found
                found[n_found] = value
                n_found += 1
            cells[row] = slots[at]
    rank = np.empty(n_found, np.uint8)
    rank[np.argsort(np.asarray(found)[:n_found])] = np.arange(n_found)
    ranks: cython.uchar[::1] = rank
    with cython.nogil:
        for row in range(values.shape[0]):
            cells[row] = ranks[cells[row]]
    return n_found
