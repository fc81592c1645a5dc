"""Scans of the fast lane: the best cut of one column at one node, from a sorted stretch or from counts by value.

Scores are fractions, compared by cross-multiplication: numerator · other denominator. A cut must be better than the
best before it by more than `tie`, so that of equal ones the first is kept.

**Stretches that cannot win are passed over.** With l rows on the left of which c are of a class that has t of the n,
the score grows with A² / (l · (n - l)), A = c·n - t·l (for several classes with the sum of their A²). Over a block of
B rows that holds p of the class, A goes up by p·(n - t) and down by (B - p)·t at most, and the denominator is least at
one end. If even that is not better than the best so far, no cut inside the block is, and only p had to be counted: a
sum over neighbouring numbers, which the processor does eight or sixteen at a time. Of a target that is a number, A is
the sum of the distances from the mean; over a block it goes up by no more than the positive ones, down by the others.

A column need not be looked at more closely than it takes to say that an earlier one is better: `floor` is a score ten
times the tie below the best of the columns before. The first cut above it is one that would have been kept without the
floor too, if it is above by more than the tie; if not, the column is scanned anew without a floor.
"""

import numpy as np

from espalier.kernels.jit import inner

ROW_BITS = np.uint32(24)
ROW_MASK = np.uint32((1 << 24) - 1)
MOST_ROWS = 1 << 24
MOST_CLASSES = 256
MOST_CODES = 256
SMALL = 24
BLOCK = 16
COUNTED_CLASSES = 8
CLASSES_BLOCK = 32
LEAST_COUNTED = 256
NUMBERS_BLOCK = 8
LEAST_SUMMED = 64
CONSTANT = -2
SURE = 1.0 - 1e-12  # more than the rounding of a bound

# What a row adds to a statistic, and how a cut is scored.
TWO_CLASSES = 0
CLASSES = 1
NUMBERS = 2
WEIGHTED_PAIR = 3  # two classes or numbers, with row weights
WEIGHTED_CLASSES = 4


@inner
def scan_order(
    kind, orders, codes, column, start, stop, row_class, row_value, row_weight, totals, weight, least, tie, floor, left,
    right,
):  # fmt: skip
    """Find the best cut of one sorted stretch.

    orders: uint32, of which start:stop of the column's are the node's rows in ascending order. codes: uint32 (columns,
    n), by row; row_class: uint8; row_value: float64, the target or 1 for the second class; row_weight: float64, or one
    entry. totals: float64 (width) of the node: class weights, or (weight, sum). least: least weight of a side. floor: a
    score that the best cut must surpass to be of use, -1: none; a cut that is found is the same as without. left,
    right: float64 scratch (classes). Returns (numerator, denominator, place in the stretch of the last row of the left
    side; -1: no cut, CONSTANT: nor will there be below).
    """
    stretch = orders[column, start:stop]
    own_codes = codes[column]
    if kind >= WEIGHTED_PAIR and _is_constant(stretch, own_codes):
        return -1.0, 1.0, CONSTANT
    if kind == TWO_CLASSES:
        return _scan_two_classes(stretch, own_codes, np.int64(totals[1]), np.int64(least), tie, floor)
    if kind == CLASSES:
        return _scan_classes(stretch, own_codes, totals, np.int64(least), tie, floor, left.view(np.int64))
    if kind == NUMBERS:
        return _scan_numbers(stretch, own_codes, row_value, totals[1] / weight, np.int64(least), tie, floor)
    if kind == WEIGHTED_PAIR:
        return _scan_weighted_pair(stretch, own_codes, row_value, row_weight, totals[1] / weight, weight, least, tie)
    return _scan_weighted_classes(stretch, own_codes, row_class, row_weight, totals, weight, least, tie, left, right)


@inner
def _is_constant(stretch, codes):
    return codes[stretch[0] & ROW_MASK] == codes[stretch[stretch.size - 1] & ROW_MASK]


@inner
def _scan_two_classes(stretch, codes, second, least, tie, floor):
    n_rows = stretch.size
    best_numerator, best_denominator, limit, bar = floor, 1.0, floor, floor * SURE
    best = -1
    looked = False
    ahead = np.int64(0)
    n_left = least - 1
    last = n_rows - least
    for value in stretch[:n_left]:
        ahead += np.int64(value >> ROW_BITS) * n_rows - second
    ahead_at_start = ahead
    up, down = float(n_rows - second), float(second)
    while n_left < last:
        stop = min(n_left + BLOCK, last)
        if stop - n_left == BLOCK:
            n_second = np.uint32(0)
            for value in stretch[n_left:stop]:
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
            value = stretch[n_left]
            ahead += np.int64(value >> ROW_BITS) * n_rows - second
            n_left += 1
            apart = float(ahead)
            numerator = apart * apart
            denominator = float(n_left) * float(n_rows - n_left)
            if numerator * best_denominator > limit * denominator:
                if codes[value & ROW_MASK] == codes[stretch[n_left] & ROW_MASK]:
                    # Only now is it worth the while to look whether all are equal.
                    if not looked and _is_constant(stretch, codes):
                        return -1.0, 1.0, CONSTANT
                    looked = True
                    continue
                if best < 0 and floor >= 0.0 and numerator <= (floor + 2.0 * tie) * denominator:
                    # Too near to the floor to say that nothing below it would have stood in its way: once more.
                    best_numerator, best_denominator, limit, bar, floor = -1.0, 1.0, -1.0, -1.0, -1.0
                    ahead, n_left = ahead_at_start, least - 1
                    break
                best_numerator, best_denominator, best = numerator, denominator, n_left - 1
                limit = numerator + tie * denominator
                bar = limit / denominator * SURE
    return best_numerator, best_denominator, best


@inner
def _scan_classes(stretch, codes, totals, least, tie, floor, seen):
    n_rows = stretch.size
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
    last = n_rows - least
    counted = n_classes <= COUNTED_CLASSES and n_rows >= LEAST_COUNTED
    while n_left < last:
        stop = min(n_left + CLASSES_BLOCK, last) if counted else last
        if counted and bar > 0.0 and stop - n_left == CLASSES_BLOCK:
            # Eight counts of eight bits.
            counts = np.uint64(0)
            for value in stretch[n_left:stop]:
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
            value = stretch[n_left]
            k = value >> ROW_BITS
            own = seen[k]
            seen[k] = own + 1
            left_squares += 2 * own + 1
            right_squares -= 2 * (np.int64(totals[k]) - own) - 1
            n_left += 1
            numerator = float(left_squares) * float(n_rows - n_left) + float(right_squares) * float(n_left)
            denominator = float(n_left) * float(n_rows - n_left)
            if numerator * best_denominator > limit * denominator and n_left >= least:
                if codes[value & ROW_MASK] == codes[stretch[n_left] & ROW_MASK]:
                    # Only now is it worth the while to look whether all are equal.
                    if not looked and _is_constant(stretch, codes):
                        return -1.0, 1.0, CONSTANT
                    looked = True
                    continue
                if best < 0 and floor >= 0.0 and numerator <= (floor + 2.0 * tie) * denominator:
                    # Too near to the floor to say that nothing below it would have stood in its way: once more.
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
def _scan_numbers(stretch, codes, row_value, mean, least, tie, floor):
    n_rows = stretch.size
    best_numerator, best_denominator, limit, bar = floor, 1.0, floor, floor * SURE
    best = -1
    looked = False
    apart = 0.0
    for value in stretch[: least - 1]:
        apart += row_value[value & ROW_MASK] - mean
    apart_at_start = apart
    n_left = least - 1
    last = n_rows - least
    blocks = n_rows >= LEAST_SUMMED
    while n_left < last:
        stop = min(n_left + NUMBERS_BLOCK, last) if blocks else last
        whole = blocks and stop - n_left == NUMBERS_BLOCK
        after = apart
        if whole:
            here = stretch[n_left:stop]
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
            # Whether the block is passed over or not, what follows is summed from the same number.
            after = apart + total
            if bar > 0.0 and max(most * most, fewest * fewest) <= bar * room:
                apart = after
                n_left = stop
                continue
        while n_left < stop:
            row = stretch[n_left] & ROW_MASK
            apart += row_value[row] - mean
            n_left += 1
            numerator = apart * apart
            denominator = float(n_left) * float(n_rows - n_left)
            if numerator * best_denominator > limit * denominator:
                if codes[row] == codes[stretch[n_left] & ROW_MASK]:
                    # Only now is it worth the while to look whether all are equal.
                    if not looked and _is_constant(stretch, codes):
                        return -1.0, 1.0, CONSTANT
                    looked = True
                    continue
                if best < 0 and floor >= 0.0 and numerator <= (floor + 2.0 * tie) * denominator:
                    # Too near to the floor to say that nothing below it would have stood in its way: once more.
                    best_numerator, best_denominator, limit, bar, floor = -1.0, 1.0, -1.0, -1.0, -1.0
                    apart, n_left = apart_at_start, least - 1
                    break
                best_numerator, best_denominator, best = numerator, denominator, n_left - 1
                limit = numerator + tie * denominator
                bar = limit / denominator * SURE
        if whole and n_left == stop:
            apart = after
    return best_numerator, best_denominator, best


@inner
def _scan_weighted_pair(stretch, codes, row_value, row_weight, mean, weight, least, tie):
    best_numerator, best_denominator, limit = -1.0, 1.0, -1.0
    best = -1
    apart, left_weight = 0.0, 0.0
    for at in range(stretch.size - 1):
        row = stretch[at] & ROW_MASK
        heavy = row_weight[row]
        apart += heavy * (row_value[row] - mean)
        left_weight += heavy
        right_weight = weight - left_weight
        numerator = apart * apart
        denominator = left_weight * right_weight
        if numerator * best_denominator > limit * denominator and (
            codes[row] != codes[stretch[at + 1] & ROW_MASK]
            and left_weight >= least
            and right_weight >= least
            and denominator > 0.0
        ):
            best_numerator, best_denominator, best = numerator, denominator, at
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best


@inner
def _scan_weighted_classes(stretch, codes, row_class, row_weight, totals, weight, least, tie, left, right):
    best_numerator, best_denominator, limit = -1.0, 1.0, -1.0
    best = -1
    left_squares, right_squares = 0.0, 0.0
    for k in range(totals.size):
        left[k] = 0.0
        right[k] = totals[k]
        right_squares += totals[k] * totals[k]
    left_weight = 0.0
    for at in range(stretch.size - 1):
        row = stretch[at] & ROW_MASK
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
            codes[row] != codes[stretch[at + 1] & ROW_MASK]
            and left_weight >= least
            and right_weight >= least
            and denominator > 0.0
        ):
            best_numerator, best_denominator, best = numerator, denominator, at
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best


@inner
def scan_counts(kind, counts, first, n_codes, width, totals, weight, least, tie, left, right):
    """Find the best cut of a column from its counts by value.

    counts: float64; ``counts[first + code·width : + width]`` are the statistics of a value. Returns (numerator,
    denominator, last code of the left side; -1: no cut, left weight).
    """
    best_numerator = -1.0
    best_denominator = 1.0
    limit = -1.0
    best = -1
    best_left = 0.0
    left_weight = 0.0
    if kind in (CLASSES, WEIGHTED_CLASSES):
        left_squares, right_squares = 0.0, 0.0
        for k in range(width):
            left[k] = 0.0
            right[k] = totals[k]
            right_squares += totals[k] * totals[k]
        for code in range(n_codes):
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
            if left_weight < least or right_weight < least or right_weight <= 0.0:
                continue
            numerator = left_squares * right_weight + right_squares * left_weight
            denominator = left_weight * right_weight
            if numerator * best_denominator > limit * denominator:
                best_numerator, best_denominator, best, best_left = numerator, denominator, code, left_weight
                limit = numerator + tie * denominator
        return best_numerator, best_denominator, best, best_left
    # Two numbers a value: two classes hold (first, second), the others (weight, sum).
    apart = 0.0
    scale = weight if kind == TWO_CLASSES else 1.0
    share = totals[1] if kind == TWO_CLASSES else totals[1] / weight
    for code in range(n_codes):
        base = first + 2 * code
        here = counts[base] + counts[base + 1] if kind == TWO_CLASSES else counts[base]
        if here <= 0.0:
            continue
        left_weight += here
        apart += counts[base + 1] * scale - share * here
        right_weight = weight - left_weight
        if left_weight < least or right_weight < least or right_weight <= 0.0:
            continue
        numerator = apart * apart
        denominator = left_weight * right_weight
        if numerator * best_denominator > limit * denominator:
            best_numerator, best_denominator, best, best_left = numerator, denominator, code, left_weight
            limit = numerator + tie * denominator
    return best_numerator, best_denominator, best, best_left


@inner
def count_rows(
    kind, counts, rows, cells, first, n_codes, flat, width, low, high, row_class, row_value, row_weight, active, base
):  # fmt: skip
    """Count the statistics of some rows by value, for the coded columns low:high that are not constant.

    rows: uint32. cells: uint8 (n, H). first: int64 (H), where a column's counts begin. flat: uint8 (H), 1: constant,
    left alone. active, base: uint64 (H), scratch.
    """
    n_active = 0
    for column in range(low, high):
        if flat[column] == 0:
            active[n_active] = column
            base[n_active] = first[column]
            n_active += 1
            for at in range(first[column], first[column] + n_codes[column] * width):
                counts[at] = 0.0
    # Two rows at a time: what says where a column's counts are is looked up once for both. Each is added by itself.
    even = rows.size & ~1
    for at in range(0, even, 2):
        _count_two(
            kind,
            counts,
            rows[at],
            rows[at + 1],
            cells,
            active[:n_active],
            base,
            width,
            row_class,
            row_value,
            row_weight,
        )
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
def is_flat(kind, counts, first, n_codes, width):
    """Whether at most one value of a column occurs."""
    n_present = 0
    # Of a pair (weight, sum) the weight says whether a value occurs.
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
def scan_small(kind, rows, cells, column, row_class, row_value, row_weight, totals, weight, least, tie,
               left, right, keys, counts, width):  # fmt: skip
    """Find the best cut of a coded column on a few rows, sorted by insertion.

    Returns as `scan_counts`, and whether the column is constant. keys: int64 (SMALL), counts: float64 (SMALL·width).
    """
    n_keys = 0
    for value in rows:
        row = value & ROW_MASK
        code = np.int64(cells[row, column])
        place = n_keys
        while place > 0 and keys[place - 1] > code:
            place -= 1
        if place == 0 or keys[place - 1] != code:
            for later in range(n_keys, place, -1):
                keys[later] = keys[later - 1]
                for k in range(width):
                    counts[later * width + k] = counts[(later - 1) * width + k]
            keys[place] = code
            for k in range(width):
                counts[place * width + k] = 0.0
            n_keys += 1
        else:
            place -= 1
        base = place * width
        if kind <= CLASSES:
            counts[base + np.int64(value >> ROW_BITS)] += 1.0
        elif kind == WEIGHTED_CLASSES:
            counts[base + np.int64(row_class[row])] += row_weight[row]
        else:
            heavy = row_weight[row] if kind == WEIGHTED_PAIR else 1.0
            counts[base] += heavy
            counts[base + 1] += heavy * row_value[row]
    if n_keys < 2:
        return -1.0, 1.0, -1, 0.0, True
    numerator, denominator, best, left_weight = scan_counts(
        kind, counts, 0, n_keys, width, totals, weight, least, tie, left, right
    )
    return numerator, denominator, np.int64(keys[best]) if best >= 0 else -1, left_weight, False
