"""Sort the columns of the binary grower, and code columns of few values.

A column of many values is sorted as 64-bit numbers: a 32-bit code of the value in the upper half, the row in the lower.

Floating-point magnitudes are ordered like their bits. Bits that no value of the column uses are removed first: trailing
zeros (float32 and whole numbers have many) and the exponents below the smallest magnitude. The remainder rarely has
more than 32 bits, so three passes of 11 bits sort a million rows::

    63 ........... 32 | 31 ................... 0
      code of value   |   class    |     row            the lower half is the order that the split search reads

Later only the codes are compared. If more than 32 bits remain, the upper 32 are sorted first. Then runs of equal codes
are sorted by insertion, and each code is replaced by its rank.
"""

import cython
import numpy as np
from cython.cimports.espalier.growing.kernels.binary import constants as b
from cython.cimports.libc.math import fabs, floor

LARGEST_SMALL = 2.0**50


def write_codes(bits, codes, counts):
    """Write the code of each row: the upper 32 of the bits that its value needs. Return how many bits a value needs.

    bits: uint64 (n), the bits of the float64 values, none missing. codes: uint32 (n), written. If a value needs at most
    32 bits, the codes are ordered like the values, and `sort_packed` reads no values. counts: uint32 (3, 2048),
    written: the number of codes with each value of each digit.
    """
    with cython.nogil:
        zeros, least, below, above = _span(bits)
        n_bits = _bit_length(below + above)
        for digit in range(b.N_DIGITS):
            for value in range(b.DIGIT_VALUES):
                counts[digit, value] = 0
        _write_shifted(bits, zeros, least, below, max(0, n_bits - b.CODE_BITS), codes, counts)
    return n_bits


def sort_packed(values, n_bits, row_class, row_bits, codes, counts, order, near, far):
    """Sort a column, equal values by row. Afterwards the codes are ordered like the values.

    values: float64 (n), read only if n_bits is above 32. n_bits, codes, counts: from `write_codes`. row_class: uint8
    (n), empty without classes. order: uint32 (n), written: the row in the lower `row_bits` bits, with its class above.
    near, far: uint64 (n), scratch.
    Returns False, with nothing usable written, if too many values share their upper 32 bits; else True.
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
        _first_pass(codes, row_class, row_bits, counts, near)
        for digit in range(1, n_passes):
            if digit % 2 == 1:
                _next_pass(near, digit, counts, far)
            else:
                _next_pass(far, digit, counts, near)
        if n_passes % 2 == 1:
            is_sorted = _finish_sort(values, n_bits, row_bits, codes, order, near)
        else:
            is_sorted = _finish_sort(values, n_bits, row_bits, codes, order, far)
    return is_sorted


def _span(bits):
    """Return (trailing zero bits common to all values, least magnitude above 0, negative range, positive range).

    The last three are shifted right by the number of trailing zeros.
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


def _first_pass(codes, row_class, row_bits, places, sink):
    has_class: cython.bint = row_class.shape[0] > 0
    for row in range(codes.shape[0]):
        code = codes[row]
        packed = (cython.cast(cython.ulonglong, code) << b.CODE_BITS) | row
        if has_class:
            packed |= cython.cast(cython.ulonglong, row_class[row]) << row_bits
        place = places[0, code % b.DIGIT_VALUES]
        places[0, code % b.DIGIT_VALUES] = place + 1
        sink[place] = packed


def _next_pass(source, digit, places, sink):
    shift = b.CODE_BITS + digit * b.DIGIT_BITS
    for at in range(source.shape[0]):
        packed = source[at]
        value = (packed >> shift) % b.DIGIT_VALUES
        place = places[digit, value]
        places[digit, value] = place + 1
        sink[place] = packed


def _finish_sort(values, n_bits, row_bits, codes, order, packed):
    if n_bits > b.CODE_BITS and not _sort_equal_codes(values, row_bits, packed):
        return False
    for place in range(order.shape[0]):
        order[place] = cython.cast(cython.uint, packed[place])
    if n_bits > b.CODE_BITS:
        _write_ranks(values, row_bits, packed, codes)
    return True


def _row_of(packed, row_bits):
    return packed & ((cython.cast(cython.ulonglong, 1) << row_bits) - 1)


def _sort_equal_codes(values, row_bits, packed):
    """Sort runs of equal upper halves by value, in place. Return False if a run is too long for insertion sort."""
    n_rows = packed.shape[0]
    start: cython.Py_ssize_t = 0
    for stop in range(1, n_rows + 1):
        if stop < n_rows and packed[stop] >> b.CODE_BITS == packed[start] >> b.CODE_BITS:
            continue
        if stop - start > b.MAX_EQUAL_CODES:
            return False
        for at in range(start + 1, stop):
            moved = packed[at]
            value = values[_row_of(moved, row_bits)]
            place = at
            while place > start and values[_row_of(packed[place - 1], row_bits)] > value:
                packed[place] = packed[place - 1]
                place -= 1
            packed[place] = moved
        start = stop
    return True


def _write_ranks(values, row_bits, packed, codes):
    rank: cython.uint = 0
    for place in range(packed.shape[0]):
        row = _row_of(packed[place], row_bits)
        if place > 0:
            before = packed[place - 1]
            if (
                before >> b.CODE_BITS != packed[place] >> b.CODE_BITS
                or values[_row_of(before, row_bits)] != values[row]
            ):
                rank += 1
        codes[row] = rank


def code_column(values, cells, distinct, most):
    """Write the rank of each row's value if a column has at most `most` (256) distinct values.

    values: float64 (n), none missing. cells: uint8 (n), written. distinct: float64 (most), written. Returns the number
    of distinct values, -1 for too many.
    """
    if most >= b.SMALL_NUMBERS:
        n_found = _code_small_numbers(values, cells, distinct)
        if n_found >= 0:
            return n_found
    slots: cython.int[::1] = np.full(b.N_SLOTS, -1, np.int32)
    found: cython.double[::1] = np.empty(most)
    bits: cython.ulonglong[::1] = np.asarray(values).view(np.uint64)
    with cython.nogil:
        n_found = _number_values(values, bits, cells, slots, found)
    if n_found < 0:
        return -1
    ascending: cython.longlong[::1] = np.argsort(np.asarray(found)[:n_found])
    rank: cython.uchar[::1] = np.empty(most, np.uint8)
    with cython.nogil:
        for place in range(n_found):
            rank[ascending[place]] = place
            distinct[place] = found[ascending[place]]
        for row in range(values.shape[0]):
            cells[row] = rank[cells[row]]
    return n_found


def _number_values(values, bits, cells, slots, found):
    """Write the number of each row's value among the distinct ones, in order of first occurrence.

    Values are found by a hash table. Returns how many distinct values there are, -1 for too many.
    """
    n_found: cython.int = 0
    for row in range(values.shape[0]):
        value = values[row] + 0.0
        key = bits[row] if value != 0.0 else 0
        at = (key ^ (key >> 29) ^ (key >> 47) ^ (key >> 53)) % b.N_SLOTS
        while slots[at] >= 0 and found[slots[at]] != value:
            at = (at + 1) % b.N_SLOTS
        if slots[at] < 0:
            if n_found == found.shape[0]:
                return -1
            slots[at] = n_found
            found[n_found] = value
            n_found += 1
        cells[row] = slots[at]
    return n_found


def _code_small_numbers(values, cells, distinct):
    """Code a column whose values lie among 256 consecutive whole numbers. Return -1 for other columns."""
    present: cython.uchar[::1] = np.zeros(b.SMALL_NUMBERS, np.uint8)
    rank: cython.uchar[::1] = np.empty(b.SMALL_NUMBERS, np.uint8)
    n_found: cython.longlong = 0
    with cython.nogil:
        low = values[0]
        for row in range(values.shape[0]):
            low = min(low, values[row])
        # Floats from 2**53 on are more than 1 apart, so `low + code` would be rounded.
        if not fabs(low) < LARGEST_SMALL or low != floor(low):
            return -1
        for row in range(values.shape[0]):
            size = values[row] - low
            if not size < b.SMALL_NUMBERS:
                return -1
            code = cython.cast(cython.int, size)
            if code != size:
                return -1
            cells[row] = code
            present[code] = 1
        for code in range(b.SMALL_NUMBERS):
            if present[code]:
                rank[code] = n_found
                distinct[n_found] = low + code
                n_found += 1
        if distinct[n_found - 1] - low != n_found - 1:
            for row in range(values.shape[0]):
                cells[row] = rank[cells[row]]
    return n_found


def number_rows(row_class, row_bits, order):
    """Write the row numbers 0 to n - 1: each in the lower `row_bits` bits, with the row's class above.

    row_class: uint8 (n), empty without classes. order: uint32 (n), written.
    """
    has_class: cython.bint = row_class.shape[0] > 0
    row: cython.uint
    with cython.nogil:
        for row in range(order.shape[0]):
            order[row] = row
            if has_class:
                order[row] |= cython.cast(cython.uint, row_class[row]) << row_bits


def spread_cells(column_cells, cells, start, stop):
    """Transpose the rows start:stop of columns of bytes, uint8 (H, n), to uint8 (n, H), block by block."""
    with cython.nogil:
        for first in range(start, stop, 1024):
            last = min(first + 1024, stop)
            for column in range(column_cells.shape[0]):
                for row in range(first, last):
                    cells[row, column] = column_cells[column, row]


def sort_codes(codes, n_codes, order):
    """Sort rows by code, missing ones (-1) last, equal ones by row.

    codes: int32 (n). order: int32 (n), written. Returns the number of rows with a known code.
    """
    counts: cython.longlong[::1] = np.zeros(n_codes + 1, np.int64)
    place: cython.longlong = 0
    with cython.nogil:
        for row in range(codes.shape[0]):
            counts[codes[row] if codes[row] >= 0 else n_codes] += 1
        n_known = codes.shape[0] - counts[n_codes]
        for code in range(n_codes + 1):
            count = counts[code]
            counts[code] = place
            place += count
        for row in range(codes.shape[0]):
            code = codes[row] if codes[row] >= 0 else n_codes
            order[counts[code]] = row
            counts[code] += 1
    return n_known
