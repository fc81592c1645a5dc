"""Sort the columns of the binary grower, and code columns of few values.

A column of many values is sorted by 32 bits of the value and the row in one 64-bit number.

Numbers of the same sign are ordered like the bits of their magnitudes. Bits that no value of the column uses are
removed first: the zeros at the end (all of a float32's, most of a whole number's) and the exponents below the smallest
magnitude. The remainder rarely has more than 32 bits, so that three passes of 11 bits sort a million rows::

    63 ........... 32 | 31 .... 24 | 23 ........ 0
      code of value   |   class    |     row            the lower half is the order that the split search reads

Afterwards only the codes are compared. Where more bits remain, the upper 32 are sorted, runs of equal codes are sorted
by insertion, and the code is the rank.
"""

import math

import numpy as np

from espalier.kernels.jit import compiled, inner, maker

CODE_BITS = np.uint64(32)
CLASS_BITS = np.uint64(24)
DIGIT_BITS = 11
N_DIGITS = 3
MAX_EQUAL_CODES = 64
ONE = np.uint64(1)
SIGN = np.uint64(1) << np.uint64(63)
SMALL_NUMBERS = 256
LARGEST_SMALL = 2.0**50
LOW_HALF = np.uint64((1 << 32) - 1)


@compiled
def write_codes(values, codes, counts):
    """Write the upper 32 bits that each row's value needs. Return how many bits a value needs.

    values: float64 (n), none missing. codes: uint32 (n), written; up to 32 bits they order like the values, and
    `sort_packed` reads no value. counts: uint32 (3, 2048), how many codes have a digit, written.
    """
    zeros, least, below, above = _span(values)
    n_bits = np.int64(_length(below + above))
    counts[:] = 0
    _write_codes(values, zeros, least, below, np.uint64(max(0, n_bits - 32)), codes, counts)
    return n_bits


@compiled
def sort_packed(values, n_bits, row_class, class_bits, codes, counts, order, near, far):
    """Sort a column, equal values by row; afterwards the codes order like the values.

    values: float64 (n), read if n_bits is above 32. n_bits, codes, counts: from `write_codes`. row_class: uint8 (n),
    read if class_bits is 1. order: uint32 (n), row with its class in the upper eight bits, written. near, far: uint64
    (n), scratch. Returns False, with nothing usable written, if too many values share their upper 32 bits.
    """
    n_passes = max(1, (min(n_bits, 32) + DIGIT_BITS - 1) // DIGIT_BITS)
    for digit in range(n_passes):
        place = np.uint32(0)
        for value in range(1 << DIGIT_BITS):
            count = counts[digit, value]
            counts[digit, value] = place
            place += count
    _first_pass(codes, row_class, class_bits, counts[0], near)
    for digit in range(1, n_passes):
        _next_pass(near, np.uint64(32 + digit * DIGIT_BITS), counts[digit], far)
        near, far = far, near
    if n_bits > 32 and not _put_right(values, near):
        return False
    for place in range(order.size):
        order[place] = np.uint32(near[place] & LOW_HALF)
    if n_bits > 32:
        _rank(values, near, codes)
    return True


@inner
def _span(values):
    """Return (zeros at the end of all values, least magnitude but 0, range below 0, range above 0).

    The last three are without those zeros.
    """
    bits = values.view(np.uint64)
    together = np.uint64(0)
    least = SIGN
    below, above = np.uint64(0), np.uint64(0)
    for row in range(values.size):
        magnitude = bits[row] & ~SIGN
        together |= magnitude
        if magnitude != np.uint64(0):
            least = min(least, magnitude)
        if bits[row] & SIGN:
            below = max(below, magnitude)
        else:
            above = max(above, magnitude)
    zeros = np.uint64(0)
    while zeros < np.uint64(63) and (together >> zeros) & ONE == np.uint64(0):
        zeros += ONE
    least >>= zeros
    below, above = below >> zeros, above >> zeros
    if below > 0:
        below = below - least + ONE
    if above > 0:
        above = above - least + ONE
    return zeros, least, below, above


@inner
def _length(number):
    length = np.uint64(0)
    while length < np.uint64(64) and number >> length != np.uint64(0):
        length += ONE
    return length


@inner
def _write_codes(values, zeros, least, below, shift, codes, counts):
    bits = values.view(np.uint64)
    mask = np.uint32((1 << DIGIT_BITS) - 1)
    for row in range(values.size):
        magnitude = (bits[row] & ~SIGN) >> zeros
        size = magnitude - least + ONE if magnitude != np.uint64(0) else np.uint64(0)
        code = np.uint32((below - size if bits[row] & SIGN else below + size) >> shift)
        codes[row] = code
        counts[0, code & mask] += np.uint32(1)
        counts[1, (code >> np.uint32(DIGIT_BITS)) & mask] += np.uint32(1)
        counts[2, code >> np.uint32(2 * DIGIT_BITS)] += np.uint32(1)


@inner
def _first_pass(codes, row_class, class_bits, places, sink):
    mask = np.uint32((1 << DIGIT_BITS) - 1)
    for row in range(codes.size):
        code = codes[row]
        packed = (np.uint64(code) << CODE_BITS) | np.uint64(row)
        if class_bits == 1:
            packed |= np.uint64(row_class[row]) << CLASS_BITS
        place = places[code & mask]
        places[code & mask] = place + np.uint32(1)
        sink[place] = packed


@inner
def _next_pass(source, shift, places, sink):
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    for packed in source:
        digit = (packed >> shift) & mask
        place = places[digit]
        places[digit] = place + np.uint32(1)
        sink[place] = packed


@inner
def _row_of(packed):
    return packed & np.uint64((1 << 24) - 1)


@inner
def _put_right(values, packed):
    """Sort runs of equal upper halves by value, in place. Return False if one is too long for that."""
    start = 0
    for stop in range(1, packed.size + 1):
        if stop < packed.size and packed[stop] >> CODE_BITS == packed[start] >> CODE_BITS:
            continue
        if stop - start > MAX_EQUAL_CODES:
            return False
        for at in range(start + 1, stop):
            moved = packed[at]
            value = values[_row_of(moved)]
            place = at
            while place > start and values[_row_of(packed[place - 1])] > value:
                packed[place] = packed[place - 1]
                place -= 1
            packed[place] = moved
        start = stop
    return True


@inner
def _rank(values, packed, codes):
    rank = np.uint32(0)
    for place in range(packed.size):
        row = _row_of(packed[place])
        if place > 0:
            before = packed[place - 1]
            if before >> CODE_BITS != packed[place] >> CODE_BITS or values[_row_of(before)] != values[row]:
                rank += np.uint32(1)
        codes[row] = rank


@compiled
def code_column(values, cells, distinct, most):
    """Write the rank of each row's value if a column has at most `most` (256) distinct values.

    values: float64 (n), none missing. cells: uint8 (n), written. distinct: float64 (most), written. Returns the number
    of distinct values, -1 for too many. A hash table of values, sorted at the end.
    """
    if most >= SMALL_NUMBERS:
        n_found = _code_small_numbers(values, cells, distinct)
        if n_found >= 0:
            return n_found
    n_slots = 1024
    slots = np.full(n_slots, -1, np.int32)
    found = np.empty(most, np.float64)
    n_found = 0
    bits = values.view(np.uint64)
    zero = np.float64(0.0)
    for row in range(values.size):
        value = values[row] + zero
        key = bits[row] if value != zero else np.uint64(0)
        at = np.int64(
            (key ^ (key >> np.uint64(29)) ^ (key >> np.uint64(47)) ^ (key >> np.uint64(53))) & np.uint64(1023)
        )
        while slots[at] >= 0 and found[slots[at]] != value:
            at = (at + 1) % n_slots
        if slots[at] < 0:
            if n_found == most:
                return -1
            slots[at] = n_found
            found[n_found] = value
            n_found += 1
        cells[row] = slots[at]
    order = np.argsort(found[:n_found])
    rank = np.empty(most, np.uint8)
    for place in range(n_found):
        rank[order[place]] = place
        distinct[place] = found[order[place]]
    for row in range(values.size):
        cells[row] = rank[cells[row]]
    return n_found


@maker
def _code_small_numbers(values, cells, distinct):
    """Code a column whose values lie among 256 consecutive whole numbers. Return -1 for other columns."""
    present, rank = np.zeros(SMALL_NUMBERS, np.uint8), np.zeros(SMALL_NUMBERS, np.uint8)
    low = values[0]
    for row in range(values.size):
        low = min(low, values[row])
    # Beyond that, floats are further than 1 apart.
    if not abs(low) < LARGEST_SMALL or low != math.floor(low):
        return -1
    for row in range(values.size):
        size = values[row] - low
        if not size < SMALL_NUMBERS:
            return -1
        code = np.uint8(size)
        if np.float64(code) != size:
            return -1
        cells[row] = code
        present[code] = 1
    n_found = 0
    for code in range(SMALL_NUMBERS):
        if present[code]:
            rank[code] = n_found
            distinct[n_found] = low + code
            n_found += 1
    if distinct[n_found - 1] - low != n_found - 1:
        for row in range(values.size):
            cells[row] = rank[cells[row]]
    return n_found


@compiled
def number_rows(row_class, class_bits, order):
    """Write the rows in their own order, uint32 (n): their numbers, each with its class in the upper eight bits.

    row_class: uint8 (n), read if class_bits is 1.
    """
    for row in range(order.size):
        order[row] = np.uint32(row)
        if class_bits == 1:
            order[row] |= np.uint32(row_class[row]) << np.uint32(24)


@compiled
def spread_cells(column_cells, cells, start, stop):
    """Transpose the rows start:stop of columns of bytes, uint8 (H, n), to uint8 (n, H), block by block."""
    for first in range(start, stop, 1024):
        last = min(first + 1024, stop)
        for column in range(column_cells.shape[0]):
            for row in range(first, last):
                cells[row, column] = column_cells[column, row]


@compiled
def sort_codes(codes, n_codes, order):
    """Sort rows by code, missing ones (-1) last, equal ones by row.

    codes: int32 (n). order: int32 (n), written. Returns the number of known codes.
    """
    counts = np.zeros(n_codes + 1, np.int64)
    for row in range(codes.size):
        counts[codes[row] if codes[row] >= 0 else n_codes] += 1
    n_known = codes.size - counts[n_codes]
    place = 0
    for code in range(n_codes + 1):
        count = counts[code]
        counts[code] = place
        place += count
    for row in range(codes.size):
        code = codes[row] if codes[row] >= 0 else n_codes
        order[counts[code]] = row
        counts[code] += 1
    return n_known
