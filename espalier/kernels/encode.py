"""Rank-coding of columns: one radix sort a column, then only whole numbers."""

import math

import numpy as np

from espalier.kernels.blocks import FAR_APART
from espalier.kernels.jit import compiled, maker
from espalier.kernels.offers import NEIGHBOUR_GAP

DIGIT_BITS = 11
N_DIGITS = 6
SMALL_NUMBERS = 256
LARGEST_SMALL = 2.0**50


@compiled
def sort_column(values, order, keys, other_keys, other_order):
    """Sort one column, missing values last, equal ones by row: least significant digit first, six passes of 11 bits.

    values: float64 (n), NaN missing. order: int32 (n), written. keys, other_keys: uint64 (n), other_order: int32 (n),
    scratch. Returns the number of known values. A pass in which every key has one digit is left out.
    """
    n_rows = values.size
    bits = values.view(np.uint64)
    sign = np.uint64(1) << np.uint64(63)
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    counts = np.zeros((N_DIGITS, 1 << DIGIT_BITS), np.int64)
    n_known = 0
    for row in range(n_rows):
        key = bits[row]
        if values[row] != values[row]:
            key = ~np.uint64(0)
        else:
            n_known += 1
            if values[row] == 0.0:
                key = sign
            elif key & sign:
                key = ~key
            else:
                key = key | sign
        keys[row] = key
        order[row] = row
        for digit in range(N_DIGITS):
            counts[digit, np.int64((key >> np.uint64(digit * DIGIT_BITS)) & mask)] += 1
    source_keys, source_order = keys, order
    sink_keys, sink_order = other_keys, other_order
    n_passes = 0
    for digit in range(N_DIGITS):
        shift = np.uint64(digit * DIGIT_BITS)
        if n_rows == 0 or counts[digit, np.int64((source_keys[0] >> shift) & mask)] == n_rows:
            continue
        place = 0
        for value in range(1 << DIGIT_BITS):
            count = counts[digit, value]
            counts[digit, value] = place
            place += count
        for row in range(n_rows):
            key = source_keys[row]
            value = np.int64((key >> shift) & mask)
            place = counts[digit, value]
            counts[digit, value] = place + 1
            sink_keys[place] = key
            sink_order[place] = source_order[row]
        source_keys, sink_keys = sink_keys, source_keys
        source_order, sink_order = sink_order, source_order
        n_passes += 1
    if n_passes % 2 == 1:
        for row in range(n_rows):
            order[row] = source_order[row]
    return n_known


@compiled
def rank_column(values, order, n_known, codes, distinct, steps):
    """Give each row the rank of its value, -1 where it is missing.

    order: int32 (n) from `sort_column`. codes: int32 (n) and distinct: float64 (n), written. steps: uint8 (n or 0),
    written: by how many ranks, FAR_APART at most, the next value lies above that is more than NEIGHBOUR_GAP away.
    Returns the number of distinct values, which are the first entries of `distinct` and `steps`.
    """
    n_distinct = 0
    for place in range(n_known):
        row = order[place]
        value = values[row]
        if place == 0 or value != distinct[n_distinct - 1]:
            distinct[n_distinct] = value
            n_distinct += 1
        codes[row] = n_distinct - 1
    for place in range(n_known, values.size):
        codes[order[place]] = -1
    above = 0
    for rank in range(min(n_distinct, steps.size)):
        while above < n_distinct and not distinct[rank] + NEIGHBOUR_GAP < distinct[above]:
            above += 1
        steps[rank] = min(above - rank, FAR_APART)
    return n_distinct


@compiled
def code_column(values, cells, distinct, most):
    """Give each row the rank of its value where a column has at most `most` (256) distinct values.

    values: float64 (n), none missing. cells: uint8 (n), written. distinct: float64 (most), written. Returns how many
    distinct values there are, -1 for too many: a hash table of values, sorted at the end.
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
    """Do the same where all values lie among 256 whole numbers in a row, as codes of categories do; -1 elsewhere."""
    present, rank = np.zeros(SMALL_NUMBERS, np.uint8), np.zeros(SMALL_NUMBERS, np.uint8)
    low = values[0]
    for row in range(values.size):
        low = min(low, values[row])
    # Further from 0 the steps between numbers are no longer whole.
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
    """Write the rows' own order, uint32 (n): the numbers of the rows, each with its class in the upper eight bits.

    row_class: uint8 (n), looked at where class_bits is 1.
    """
    for row in range(order.size):
        order[row] = np.uint32(row)
        if class_bits == 1:
            order[row] |= np.uint32(row_class[row]) << np.uint32(24)


@compiled
def spread_cells(column_cells, cells, start, stop):
    """Write the rows start:stop of columns of bytes, uint8 (H, n), as rows of bytes, uint8 (n, H), block by block."""
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
