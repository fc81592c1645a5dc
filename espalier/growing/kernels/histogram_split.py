"""The best threshold of a coded column at one node of the binary grower, from statistics per code.

Counts are float64, `width` numbers a code: a weight per class; of two classes (first, second); of numbers (weight,
sum). Scores and ties are those of `presorted_split`. A node of few rows marks the codes that occur and reads no others.
"""

import numpy as np

from espalier.growing.kernels.presorted_split import (
    CLASSES,
    MAX_CODES,
    NUMBERS,
    ROW_BITS,
    ROW_MASK,
    TWO_CLASSES,
    WEIGHTED_CLASSES,
    WEIGHTED_PAIR,
)
from espalier.kernels.jit import inner

SMALL = 24
"""Nodes of at most so many rows are not counted."""
SMALL_OF_MANY_CODES = 48
"""The same where there are more counts to look through than such a node has cells."""
WORDS = MAX_CODES // 64
ONE = np.uint64(1)
SIX = np.uint64(6)
LAST_SIX = np.uint64(63)
HALF = np.uint64(32)
LOW_HALF = np.uint64((1 << 32) - 1)
ALL_FIVES = np.uint64(0x077CB531)
"""A sequence of de Bruijn: any five of its bits in a row differ, so that these say by how far it was shifted."""
PLACE_OF_BIT = np.zeros(32, np.uint8)
for _bit in range(32):
    PLACE_OF_BIT[((int(ALL_FIVES) << _bit) & int(LOW_HALF)) >> 27] = _bit


@inner
def best_split_histogram(kind, counts, first, n_codes, width, totals, weight, min_weight, tie, left, right):
    """Find the best threshold of a column from its counts per code.

    counts: float64; ``counts[first + code·width : + width]`` are the statistics of a code. Returns (numerator,
    denominator, last code of the left branch; -1: no split, left weight).
    """
    best_numerator = -1.0
    best_denominator = 1.0
    limit = -1.0
    best = -1
    best_left = 0.0
    left_weight = 0.0
    last = _last_code(counts, first, n_codes, width)
    if kind in (CLASSES, WEIGHTED_CLASSES):
        left_squares, right_squares = 0.0, 0.0
        for k in range(width):
            left[k] = 0.0
            right[k] = totals[k]
            right_squares += totals[k] * totals[k]
        for code in range(last):
            here = 0.0
            base = first + code * width
            for k in range(width):
                heavy = counts[base + k]
                if heavy != 0.0:
                    here += heavy
                    left_squares += heavy * (2.0 * left[k] + heavy)
                    right_squares -= heavy * (2.0 * right[k] - heavy)
                    left[k] += heavy
                    right[k] -= heavy
            if here <= 0.0:
                continue
            left_weight += here
            right_weight = weight - left_weight
            if left_weight < min_weight or right_weight < min_weight or right_weight <= 0.0:
                continue
            numerator = left_squares * right_weight + right_squares * left_weight
            denominator = left_weight * right_weight
            if numerator * best_denominator > limit * denominator:
                best_numerator, best_denominator, best, best_left = numerator, denominator, code, left_weight
                limit = numerator + tie * denominator
        return best_numerator, best_denominator, best, best_left
    # Two numbers a code: of two classes (first, second), else (weight, sum).
    apart = 0.0
    scale = weight if kind == TWO_CLASSES else 1.0
    share = totals[1] if kind == TWO_CLASSES else totals[1] / weight
    for code in range(last):
        base = first + 2 * code
        here = counts[base] + counts[base + 1] if kind == TWO_CLASSES else counts[base]
        if here <= 0.0:
            continue
        left_weight += here
        apart += counts[base + 1] * scale - share * here
        right_weight = weight - left_weight
        if left_weight < min_weight or right_weight < min_weight or right_weight <= 0.0:
            continue
        numerator = apart * apart
        denominator = left_weight * right_weight
        if numerator * best_denominator > limit * denominator:
            best_numerator, best_denominator, best, best_left = numerator, denominator, code, left_weight
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best, best_left


@inner
def _last_code(counts, first, n_codes, width):
    """Return the last code with rows. Behind it only rounding errors of weights remain, which are no branch."""
    for code in range(n_codes - 1, -1, -1):
        for k in range(width):
            if counts[first + code * width + k] != 0.0:
                return code
    return 0


@inner
def count_rows(
    kind, counts, rows, cells, first, n_codes, is_constant, width, low, high, row_class, row_value, row_weight, active,
    base,
):  # fmt: skip
    """Sum the statistics of some rows per code, for the coded columns low:high that are not constant.

    rows: uint32. cells: uint8 (n, H). first: int64 (H), where a column's counts begin. is_constant: uint8 (H), 1:
    skipped. active, base: uint64 (H), scratch.
    """
    n_active = 0
    for column in range(low, high):
        if is_constant[column] == 0:
            active[n_active] = column
            base[n_active] = first[column]
            n_active += 1
            for at in range(first[column], first[column] + n_codes[column] * width):
                counts[at] = 0.0
    # Two rows at a time, so that the position of a column's counts is read once for both.
    even = rows.size & ~1
    for at in range(0, even, 2):
        _count_two(
            kind, counts, rows[at], rows[at + 1], cells, active[:n_active], base, width, row_class, row_value,
            row_weight,
        )  # fmt: skip
    if even < rows.size:
        _count_one(kind, counts, rows[even], cells, active[:n_active], base, width, row_class, row_value, row_weight)


@inner
def _count_two(kind, counts, one, other, cells, active, base, width, row_class, row_value, row_weight):
    wide = np.uint64(width)
    line, other_line = cells[one & ROW_MASK], cells[other & ROW_MASK]
    k, heavy = _class_and_weight(kind, one, row_class, row_weight)
    other_k, other_heavy = _class_and_weight(kind, other, row_class, row_weight)
    if kind in (NUMBERS, WEIGHTED_PAIR):
        moment = heavy * row_value[one & ROW_MASK]
        other_moment = other_heavy * row_value[other & ROW_MASK]
        for place in range(active.size):
            column, start = active[place], base[place]
            at = start + (np.uint64(line[column]) << np.uint64(1))
            counts[at] += heavy
            counts[at + np.uint64(1)] += moment
            at = start + (np.uint64(other_line[column]) << np.uint64(1))
            counts[at] += other_heavy
            counts[at + np.uint64(1)] += other_moment
    else:
        for place in range(active.size):
            column, start = active[place], base[place]
            counts[start + np.uint64(line[column]) * wide + k] += heavy
            counts[start + np.uint64(other_line[column]) * wide + other_k] += other_heavy


@inner
def _count_one(kind, counts, value, cells, active, base, width, row_class, row_value, row_weight):
    wide = np.uint64(width)
    line = cells[value & ROW_MASK]
    k, heavy = _class_and_weight(kind, value, row_class, row_weight)
    for place in range(active.size):
        if kind in (NUMBERS, WEIGHTED_PAIR):
            at = base[place] + (np.uint64(line[active[place]]) << np.uint64(1))
            counts[at] += heavy
            counts[at + np.uint64(1)] += heavy * row_value[value & ROW_MASK]
        else:
            counts[base[place] + np.uint64(line[active[place]]) * wide + k] += heavy


@inner
def _class_and_weight(kind, value, row_class, row_weight):
    if kind <= NUMBERS:
        return np.uint64(value >> ROW_BITS), 1.0
    k = np.uint64(row_class[value & ROW_MASK]) if kind == WEIGHTED_CLASSES else np.uint64(0)
    return k, row_weight[value & ROW_MASK]


@inner
def has_one_value(kind, counts, first, n_codes, width):
    """Return whether at most one value of a column occurs."""
    n_present = 0
    # Of a pair (weight, sum) only the weight shows whether a code occurs.
    looked_at = 1 if kind in (NUMBERS, WEIGHTED_PAIR) else width
    for code in range(n_codes):
        for k in range(looked_at):
            if counts[first + code * width + k] != 0.0:
                n_present += 1
                break
        if n_present > 1:
            return False
    return True


@inner
def best_split_few_rows(kind, rows, cells, column, row_class, row_value, row_weight, totals, weight, min_weight, tie,
               left, right, bits, by_code, keys, counts, width):  # fmt: skip
    """Find the best threshold of a coded column on a few rows, without reading the codes that do not occur.

    Returns like `best_split_histogram`, and whether the column is constant. bits: uint64 (WORDS), which codes occur;
    by_code: float64 (MAX_CODES·width); both zero before and after. keys: int64 (rows), counts: float64 (rows·width),
    written.
    """
    wide = np.uint64(width)
    for value in rows:
        row = value & ROW_MASK
        code = np.uint64(cells[row, column])
        bits[code >> SIX] |= ONE << (code & LAST_SIX)
        base = code * wide
        if kind <= CLASSES:
            by_code[base + np.uint64(value >> ROW_BITS)] += 1.0
        elif kind == WEIGHTED_CLASSES:
            by_code[base + np.uint64(row_class[row])] += row_weight[row]
        else:
            heavy = row_weight[row] if kind == WEIGHTED_PAIR else 1.0
            by_code[base] += heavy
            by_code[base + ONE] += heavy * row_value[row]
    n_keys = 0
    for word in range(WORDS):
        pending = bits[word]
        bits[word] = np.uint64(0)
        while pending != np.uint64(0):
            lowest = pending & (~pending + ONE)
            pending ^= lowest
            half = HALF if lowest > LOW_HALF else np.uint64(0)
            fives = (((lowest >> half) * ALL_FIVES) & LOW_HALF) >> np.uint64(27)
            code = (np.uint64(word) << SIX) + half + np.uint64(PLACE_OF_BIT[fives])
            keys[n_keys] = code
            base = code * wide
            for k in range(width):
                counts[n_keys * width + k] = by_code[base + np.uint64(k)]
                by_code[base + np.uint64(k)] = 0.0
            n_keys += 1
    if n_keys < 2:
        return -1.0, 1.0, -1, 0.0, True
    numerator, denominator, best, left_weight = best_split_histogram(
        kind, counts, 0, n_keys, width, totals, weight, min_weight, tie, left, right
    )
    return numerator, denominator, np.int64(keys[best]) if best >= 0 else -1, left_weight, False
