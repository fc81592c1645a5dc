"""The best threshold of a coded column at one node of the binary grower, from statistics per code.

Counts are float64, `width` numbers per code. For a numeric target, the two numbers are the weight and the weighted sum
of ``target - search.centre``. For two classes with row weights, they are the total weight and the weight of the second
class. In all other cases, there is one number per class: its weight. Scores and ties are those of `presorted_split`. At
a node of few rows, only the codes that occur are read.
"""

import cython
from cython.cimports.espalier.growing.kernels.binary import constants as b
from cython.cimports.espalier.growing.kernels.binary.presorted_split import (
    are_heavy_enough,
    size_of_classes,
    size_of_pair,
)

# The entry at ((1 << i) * ALL_FIVES >> 27) & 31 is i. It gives the index of the only bit of a number that is set.
PLACE_OF_BIT = [
    0, 1, 28, 2, 29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4, 8, 31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6, 11, 5, 10, 9
]  # fmt: skip


def best_split_histogram(data, search, slot, first, n_codes):
    """Find the best threshold of a column from its counts per code.

    The statistics of a code are `width` entries of ``search.counts[slot]`` from ``first + code * width`` on. Returns
    the last code of the left branch, or, without a split, CONSTANT (all rows have the same code) or NO_SPLIT. The score
    of the split is ``search.numerator / search.denominator``.
    """
    has_classes: cython.bint = data.kind in (b.CLASSES, b.WEIGHTED_CLASSES)
    is_pair_of_classes: cython.bint = data.kind == b.TWO_CLASSES
    width = data.width
    left_weight: cython.double = 0.0
    unit = 1.0 if has_classes else search.unit
    left_squares: cython.double = 0.0
    right_squares: cython.double = 0.0
    distance: cython.double = 0.0
    scale = search.weight if is_pair_of_classes else 1.0
    share = search.totals[1] if is_pair_of_classes else search.rest
    if data.kind == b.WEIGHTED_PAIR and not data.is_numeric:
        share = search.centre
    if has_classes:
        for k in range(width):
            search.left[k], search.right[k] = 0.0, search.totals[k]
            right_squares += search.totals[k] * search.totals[k]
    best: cython.longlong = b.NO_SPLIT
    best_numerator, best_denominator, limit = -1.0, 1.0, -1.0
    for code in range(_last_code(data, search, slot, first, n_codes)):
        base = first + code * width
        here: cython.double = 0.0
        if has_classes:
            for k in range(width):
                weight = search.counts[slot, base + k]
                if weight != 0.0:
                    here += weight
                    left_squares += weight * (2.0 * search.left[k] + weight)
                    right_squares -= weight * (2.0 * search.right[k] - weight)
                    search.left[k] += weight
                    search.right[k] -= weight
        else:
            second = search.counts[slot, base + 1]
            here = search.counts[slot, base] + second if is_pair_of_classes else search.counts[slot, base]
            if here > 0.0:
                distance += second * scale - share * here
        if here <= 0.0:
            continue
        left_weight += here
        right_weight = search.weight - left_weight
        left_size = left_weight
        if search.has_class_weights and has_classes:
            left_size = size_of_classes(search, left_weight)
        elif search.has_class_weights:
            left_size = size_of_pair(search, left_weight, distance + share * left_weight)
        if right_weight <= 0.0 or not are_heavy_enough(search, left_size):
            continue
        apart = distance * unit
        numerator = left_squares * right_weight + right_squares * left_weight if has_classes else apart * apart
        denominator = (left_weight * unit) * (right_weight * unit)
        if numerator * best_denominator > limit * denominator:
            best_numerator, best_denominator, best = numerator, denominator, code
            limit = numerator + search.tie * denominator
    search.numerator, search.denominator = best_numerator, best_denominator
    if best == b.NO_SPLIT and _has_one_value(data, search, slot, first, n_codes):
        return b.CONSTANT
    return best


def _last_code(data, search, slot, first, n_codes):
    """Return the last code with rows, 0 for none. Any weight left after this code is a rounding error, not a branch."""
    for code in range(n_codes - 1, -1, -1):
        for k in range(data.width):
            if search.counts[slot, first + code * data.width + k] != 0.0:
                return code
    return 0


def _has_one_value(data, search, slot, first, n_codes):
    n_present = 0
    # In a pair (weight, sum), only the weight shows whether a code occurs.
    looked_at = 1 if data.kind in (b.NUMBERS, b.WEIGHTED_PAIR) else data.width
    for code in range(n_codes):
        for k in range(looked_at):
            if search.counts[slot, first + code * data.width + k] != 0.0:
                n_present += 1
                break
        if n_present > 1:
            return False
    return True


def count_rows(data, search, slot, start, stop, low, high):
    """Sum the statistics of the rows start:stop by code, for each column of low:high that is not constant."""
    n_active: cython.longlong = 0
    for column in range(low, high):
        if not search.is_constant[data.n_sorted + column]:
            first = data.first[column]
            search.active[n_active], search.base[n_active] = column, first
            n_active += 1
            for at in range(first, first + data.n_codes[column] * data.width):
                search.counts[slot, at] = 0.0
    has_pairs: cython.bint = data.kind in (b.NUMBERS, b.WEIGHTED_PAIR)
    centre = search.centre if data.is_numeric else 0.0
    for at in range(start, stop):
        entry = data.orders[data.n_sorted, at]
        row = entry & data.row_mask
        k, weight = _class_and_weight(data, entry)
        moment = weight * (data.row_value[row] - centre) if has_pairs else 0.0
        for place in range(n_active):
            column, base = search.active[place], search.base[place]
            cell = base + data.cells[row, column] * data.width
            search.counts[slot, cell + k] += weight
            if has_pairs:
                search.counts[slot, cell + 1] += moment


def _class_and_weight(data, entry):
    if data.kind <= b.NUMBERS:
        return entry >> data.row_bits, 1.0
    row = entry & data.row_mask
    return data.row_class[row] if data.kind == b.WEIGHTED_CLASSES else 0, data.row_weight[row]


def best_split_few_rows(data, search, slot, column, start, stop):
    """Find the best threshold of a coded column on a few rows. Codes that do not occur are not read.

    slot: a slot of ``search.counts`` that is not in use. Returns the same as `best_split_histogram`.
    """
    width = data.width
    centre = search.centre if data.is_numeric else 0.0
    for at in range(start, stop):
        entry = data.orders[data.n_sorted, at]
        row = entry & data.row_mask
        code = cython.cast(cython.longlong, data.cells[row, column])
        search.occurring[code // 64] |= cython.cast(cython.ulonglong, 1) << (code % 64)
        k, weight = _class_and_weight(data, entry)
        search.by_code[code * width + k] += weight
        if data.kind in (b.NUMBERS, b.WEIGHTED_PAIR):
            search.by_code[code * width + 1] += weight * (data.row_value[row] - centre)
    n_keys: cython.longlong = 0
    for word in range(b.CODE_WORDS):
        pending = search.occurring[word]
        search.occurring[word] = 0
        while pending != 0:
            lowest = pending & (~pending + 1)
            pending ^= lowest
            half = 0 if lowest >> 32 == 0 else 32
            code = 64 * word + half + PLACE_OF_BIT[(((lowest >> half) * b.ALL_FIVES) >> 27) & 31]
            search.keys[n_keys] = code
            for k in range(width):
                search.counts[slot, n_keys * width + k] = search.by_code[code * width + k]
                search.by_code[code * width + k] = 0.0
            n_keys += 1
    if n_keys < 2:
        return b.CONSTANT
    best = best_split_histogram(data, search, slot, 0, n_keys)
    return search.keys[best] if best >= 0 else b.NO_SPLIT
