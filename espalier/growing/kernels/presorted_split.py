"""The best threshold of a presorted column at one node of the binary grower (`histogram_split`: of a coded column).

Scores are fractions, compared by cross-multiplication: numerator · other denominator. A split must be better than the
best before it by more than `tie`, so that the first of equal ones is chosen.

**Blocks that cannot win are skipped.** With l rows on the left of which c are of a class that has t of the n, the score
grows with A² / (l · (n - l)), A = c·n - t·l (for several classes with the sum of their A²). Over a block of B rows with
p rows of the class, A goes up by p·(n - t) and down by (B - p)·t at most, and the denominator is least at one end. If
even that is not better than the best so far, no split inside the block is, and only p had to be counted: a sum over
neighbouring numbers, which the processor does eight or sixteen at a time. For a numeric target, A is the sum of the
distances from the mean; over a block it goes up by no more than the positive ones, down by the others.

A column is only searched far enough to show that an earlier one is better: `floor` is a score ten times the tie below
the best of the columns before. The first split above it would have been chosen without the floor too, if it is above by
more than the tie; if not, the column is searched again without a floor.
"""

import numpy as np

from espalier.kernels.jit import inner

ROW_BITS = np.uint32(24)
ROW_MASK = np.uint32((1 << 24) - 1)
MAX_ROWS = 1 << 24
MAX_CLASSES = 256
MAX_CODES = 256
BLOCK = 16
COUNTED_CLASSES = 8
CLASSES_BLOCK = 32
MIN_COUNTED_ROWS = 256
NUMBERS_BLOCK = 8
MIN_SUMMED_ROWS = 64
CONSTANT = -2
SURE = 1.0 - 1e-12  # exceeds the rounding error of a bound

# What a row adds to a statistic, and how a split is scored.
TWO_CLASSES = 0
CLASSES = 1
NUMBERS = 2
WEIGHTED_PAIR = 3  # two classes or numbers, with row weights
WEIGHTED_CLASSES = 4


@inner
def best_split_presorted(
    kind, orders, codes, column, start, stop, row_class, row_value, row_weight, totals, weight, min_weight, tie, floor,
    left, right,
):  # fmt: skip
    """Find the best threshold of a node's rows in one presorted order.

    orders: uint32; start:stop of the column's order are the node's rows, ascending. codes: uint32 (columns, n), by row;
    row_class: uint8; row_value: float64, the target or 1 for the second class; row_weight: float64, or one entry.
    totals: float64 (width) of the node: class weights, or (weight, sum). min_weight: of a branch. floor: a score that
    the best split must exceed to be of use, -1: none; it does not change which split is found. left, right: float64
    scratch (classes). Returns (numerator, denominator, index in start:stop of the last row of the left branch; -1: no
    split, CONSTANT: nor will there be one below).
    """
    rows = orders[column, start:stop]
    own_codes = codes[column]
    if kind >= WEIGHTED_PAIR and _is_constant(rows, own_codes):
        return -1.0, 1.0, CONSTANT
    if kind == TWO_CLASSES:
        return _scan_two_classes(rows, own_codes, np.int64(totals[1]), np.int64(min_weight), tie, floor)
    if kind == CLASSES:
        return _scan_classes(rows, own_codes, totals, np.int64(min_weight), tie, floor, left.view(np.int64))
    if kind == NUMBERS:
        return _scan_numbers(rows, own_codes, row_value, totals[1] / weight, np.int64(min_weight), tie, floor)
    if kind == WEIGHTED_PAIR:
        return _scan_weighted_pair(rows, own_codes, row_value, row_weight, totals[1] / weight, weight, min_weight, tie)
    return _scan_weighted_classes(rows, own_codes, row_class, row_weight, totals, weight, min_weight, tie, left, right)


@inner
def _is_constant(rows, codes):
    return codes[rows[0] & ROW_MASK] == codes[rows[rows.size - 1] & ROW_MASK]


@inner
def _scan_two_classes(rows, codes, second, min_weight, tie, floor):
    n_rows = rows.size
    best_numerator, best_denominator, limit, bar = floor, 1.0, floor, floor * SURE
    best = -1
    looked = False
    ahead = np.int64(0)
    n_left = min_weight - 1
    last = n_rows - min_weight
    for value in rows[:n_left]:
        ahead += np.int64(value >> ROW_BITS) * n_rows - second
    ahead_at_start = ahead
    up, down = float(n_rows - second), float(second)
    while n_left < last:
        stop = min(n_left + BLOCK, last)
        if stop - n_left == BLOCK:
            n_second = np.uint32(0)
            for value in rows[n_left:stop]:
                n_second += value >> ROW_BITS
            share = float(n_second)
            most = float(ahead) + share * up
            fewest = float(ahead) - (BLOCK - share) * down
            room = min(float(n_left) * float(n_rows - n_left), float(stop) * float(n_rows - stop))
            if max(most * most, fewest * fewest) <= bar * room:
                ahead += np.int64(n_second) * n_rows - BLOCK * second
                n_left = stop
                continue
        while n_left < stop:
            value = rows[n_left]
            ahead += np.int64(value >> ROW_BITS) * n_rows - second
            n_left += 1
            apart = float(ahead)
            numerator = apart * apart
            denominator = float(n_left) * float(n_rows - n_left)
            if numerator * best_denominator > limit * denominator:
                if codes[value & ROW_MASK] == codes[rows[n_left] & ROW_MASK]:
                    # Whether all values are equal is only checked here, where it is rarely needed.
                    if not looked and _is_constant(rows, codes):
                        return -1.0, 1.0, CONSTANT
                    looked = True
                    continue
                if best < 0 and floor >= 0.0 and numerator <= (floor + 2.0 * tie) * denominator:
                    # So near to the floor that a split below it might have won: search again without one.
                    best_numerator, best_denominator, limit, bar, floor = -1.0, 1.0, -1.0, -1.0, -1.0
                    ahead, n_left = ahead_at_start, min_weight - 1
                    break
                best_numerator, best_denominator, best = numerator, denominator, n_left - 1
                limit = numerator + tie * denominator
                bar = limit / denominator * SURE
    return best_numerator, best_denominator, best


@inner
def _scan_classes(rows, codes, totals, min_weight, tie, floor, seen):
    n_rows = rows.size
    n_classes = totals.size
    best_numerator, best_denominator, limit, bar = floor, 1.0, floor, floor * SURE
    best = -1
    looked = False
    squares = np.int64(0)
    for k in range(n_classes):
        seen[k] = 0
        squares += np.int64(totals[k]) * np.int64(totals[k])
    left_squares, right_squares = np.int64(0), squares
    n_left = np.int64(0)
    last = n_rows - min_weight
    counted = n_classes <= COUNTED_CLASSES and n_rows >= MIN_COUNTED_ROWS
    while n_left < last:
        stop = min(n_left + CLASSES_BLOCK, last) if counted else last
        if counted and bar > 0.0 and stop - n_left == CLASSES_BLOCK:
            # Eight counts of eight bits.
            counts = np.uint64(0)
            for value in rows[n_left:stop]:
                counts += np.uint64(1) << (np.uint64(value >> ROW_BITS) << np.uint64(3))
            room = min(float(n_left) * float(n_rows - n_left), float(stop) * float(n_rows - stop))
            apart = 0.0
            for k in range(n_classes):
                share = float((counts >> np.uint64(8 * k)) & np.uint64(255))
                here = float(seen[k]) * n_rows - totals[k] * n_left
                most = here + share * (n_rows - totals[k])
                fewest = here - (CLASSES_BLOCK - share) * totals[k]
                apart += max(most * most, fewest * fewest)
            if room > 0.0 and float(squares) + apart / room <= bar * n_rows:
                left_squares, right_squares = np.int64(0), np.int64(0)
                for k in range(n_classes):
                    seen[k] += np.int64((counts >> np.uint64(8 * k)) & np.uint64(255))
                    left_squares += seen[k] * seen[k]
                    right_squares += (np.int64(totals[k]) - seen[k]) * (np.int64(totals[k]) - seen[k])
                n_left = stop
                continue
        while n_left < stop:
            value = rows[n_left]
            k = value >> ROW_BITS
            own = seen[k]
            seen[k] = own + 1
            left_squares += 2 * own + 1
            right_squares -= 2 * (np.int64(totals[k]) - own) - 1
            n_left += 1
            numerator = float(left_squares) * float(n_rows - n_left) + float(right_squares) * float(n_left)
            denominator = float(n_left) * float(n_rows - n_left)
            if numerator * best_denominator > limit * denominator and n_left >= min_weight:
                if codes[value & ROW_MASK] == codes[rows[n_left] & ROW_MASK]:
                    # Whether all values are equal is only checked here, where it is rarely needed.
                    if not looked and _is_constant(rows, codes):
                        return -1.0, 1.0, CONSTANT
                    looked = True
                    continue
                if best < 0 and floor >= 0.0 and numerator <= (floor + 2.0 * tie) * denominator:
                    # So near to the floor that a split below it might have won: search again without one.
                    best_numerator, best_denominator, limit, bar, floor = -1.0, 1.0, -1.0, -1.0, -1.0
                    left_squares, right_squares, n_left = np.int64(0), squares, np.int64(0)
                    for every in range(n_classes):
                        seen[every] = 0
                    break
                best_numerator, best_denominator, best = numerator, denominator, n_left - 1
                limit = numerator + tie * denominator
                bar = limit / denominator * SURE
    return best_numerator, best_denominator, best


@inner
def _scan_numbers(rows, codes, row_value, mean, min_weight, tie, floor):
    n_rows = rows.size
    best_numerator, best_denominator, limit, bar = floor, 1.0, floor, floor * SURE
    best = -1
    looked = False
    apart = 0.0
    for value in rows[: min_weight - 1]:
        apart += row_value[value & ROW_MASK] - mean
    apart_at_start = apart
    n_left = min_weight - 1
    last = n_rows - min_weight
    blocks = n_rows >= MIN_SUMMED_ROWS
    while n_left < last:
        stop = min(n_left + NUMBERS_BLOCK, last) if blocks else last
        whole = blocks and stop - n_left == NUMBERS_BLOCK
        after = apart
        if whole:
            here = rows[n_left:stop]
            first, second = row_value[here[0] & ROW_MASK] - mean, row_value[here[1] & ROW_MASK] - mean
            third, fourth = row_value[here[2] & ROW_MASK] - mean, row_value[here[3] & ROW_MASK] - mean
            fifth, sixth = row_value[here[4] & ROW_MASK] - mean, row_value[here[5] & ROW_MASK] - mean
            seventh, eighth = row_value[here[6] & ROW_MASK] - mean, row_value[here[7] & ROW_MASK] - mean
            total = ((first + second) + (third + fourth)) + ((fifth + sixth) + (seventh + eighth))
            ups_and_downs = ((abs(first) + abs(second)) + (abs(third) + abs(fourth))) + (
                (abs(fifth) + abs(sixth)) + (abs(seventh) + abs(eighth))
            )
            most = apart + 0.5 * (total + ups_and_downs)
            fewest = apart + 0.5 * (total - ups_and_downs)
            room = min(float(n_left) * float(n_rows - n_left), float(stop) * float(n_rows - stop))
            # Whether the block is skipped or not, the following sums start from the same number.
            after = apart + total
            if bar > 0.0 and max(most * most, fewest * fewest) <= bar * room:
                apart = after
                n_left = stop
                continue
        while n_left < stop:
            row = rows[n_left] & ROW_MASK
            apart += row_value[row] - mean
            n_left += 1
            numerator = apart * apart
            denominator = float(n_left) * float(n_rows - n_left)
            if numerator * best_denominator > limit * denominator:
                if codes[row] == codes[rows[n_left] & ROW_MASK]:
                    # Whether all values are equal is only checked here, where it is rarely needed.
                    if not looked and _is_constant(rows, codes):
                        return -1.0, 1.0, CONSTANT
                    looked = True
                    continue
                if best < 0 and floor >= 0.0 and numerator <= (floor + 2.0 * tie) * denominator:
                    # So near to the floor that a split below it might have won: search again without one.
                    best_numerator, best_denominator, limit, bar, floor = -1.0, 1.0, -1.0, -1.0, -1.0
                    apart, n_left = apart_at_start, min_weight - 1
                    break
                best_numerator, best_denominator, best = numerator, denominator, n_left - 1
                limit = numerator + tie * denominator
                bar = limit / denominator * SURE
        if whole and n_left == stop:
            apart = after
    return best_numerator, best_denominator, best


@inner
def _scan_weighted_pair(rows, codes, row_value, row_weight, mean, weight, min_weight, tie):
    best_numerator, best_denominator, limit = -1.0, 1.0, -1.0
    best = -1
    apart, left_weight = 0.0, 0.0
    for at in range(rows.size - 1):
        row = rows[at] & ROW_MASK
        heavy = row_weight[row]
        apart += heavy * (row_value[row] - mean)
        left_weight += heavy
        right_weight = weight - left_weight
        numerator = apart * apart
        denominator = left_weight * right_weight
        if numerator * best_denominator > limit * denominator and (
            codes[row] != codes[rows[at + 1] & ROW_MASK]
            and left_weight >= min_weight
            and right_weight >= min_weight
            and denominator > 0.0
        ):
            best_numerator, best_denominator, best = numerator, denominator, at
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best


@inner
def _scan_weighted_classes(rows, codes, row_class, row_weight, totals, weight, min_weight, tie, left, right):
    best_numerator, best_denominator, limit = -1.0, 1.0, -1.0
    best = -1
    left_squares, right_squares = 0.0, 0.0
    for k in range(totals.size):
        left[k] = 0.0
        right[k] = totals[k]
        right_squares += totals[k] * totals[k]
    left_weight = 0.0
    for at in range(rows.size - 1):
        row = rows[at] & ROW_MASK
        heavy = row_weight[row]
        k = np.int64(row_class[row])
        left_squares += heavy * (2.0 * left[k] + heavy)
        right_squares -= heavy * (2.0 * right[k] - heavy)
        left[k] += heavy
        right[k] -= heavy
        left_weight += heavy
        right_weight = weight - left_weight
        numerator = left_squares * right_weight + right_squares * left_weight
        denominator = left_weight * right_weight
        if numerator * best_denominator > limit * denominator and (
            codes[row] != codes[rows[at + 1] & ROW_MASK]
            and left_weight >= min_weight
            and right_weight >= min_weight
            and denominator > 0.0
        ):
            best_numerator, best_denominator, best = numerator, denominator, at
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best
