"""The best threshold of a presorted column at one node of the binary grower.

Scores are fractions, compared by cross-multiplication. A split must be better than the best before it by more than
`tie`, so that the first of equal ones is chosen.

**Blocks of unweighted rows are skipped if they cannot win.** Of n rows, l are on the left; of t rows of a class, c are
on the left. The score grows with A² / (l · (n - l)), where A = c·n - t·l; with several classes, A² is summed over them.
If p rows of a block of B rows have the class, A rises by at most p·(n - t) and falls by at most (B - p)·t. The
denominator is least at one end of the block. If the score from these bounds is not better than the best so far, no
split in the block is better. In a skipped block, the scan only counts p for each class and computes no scores.

For a numeric target, A is the sum of the left rows' distances from the mean. Over a block, A rises by at most the sum
of the positive distances and falls by at most the sum of the negative ones. Distances are computed from a rounded mean;
its rounding error, `rest`, is subtracted once per row.

Without row weights, only splits with a score above `floor` are searched for. The floor is ten ties below the best score
of the earlier columns. If the first split found exceeds the floor by more than two ties, it would also have been taken
without a floor. If it exceeds the floor by less, the column is searched again without a floor.
"""

import cython
from cython.cimports.espalier.growing.kernels.binary import constants as b
from cython.cimports.libc.math import fabs

SURE = 1.0 - 1e-12  # lowers the bar by more than the rounding error of a bound


def best_split_presorted(data, search, column, start, stop, floor):
    """Find the best threshold of a node's rows in one presorted order.

    The entries start:stop of the column's order are the node's rows. floor: splits of at most this score need not be
    found (negative: no floor). Returns the index of the left branch's last row in the order, or NO_SPLIT or CONSTANT.
    The score of the split is ``search.numerator / search.denominator``.
    """
    _begin_scan(search, floor if data.kind < b.WEIGHTED_PAIR else -1.0)
    _scan(data, search, column, start, stop)
    if search.place == b.AGAIN:
        _begin_scan(search, -1.0)
        _scan(data, search, column, start, stop)
    return search.place


def _begin_scan(search, floor):
    search.numerator, search.denominator = floor, 1.0
    search.limit, search.bar, search.floor = floor, floor * SURE, floor
    search.place, search.is_varied = b.NO_SPLIT, False


def _scan(data, search, column, start, stop):
    if data.kind == b.TWO_CLASSES:
        _scan_two_classes(data, search, column, start, stop)
    elif data.kind == b.CLASSES:
        _scan_classes(data, search, column, start, stop)
    elif data.kind == b.NUMBERS:
        _scan_numbers(data, search, column, start, stop)
    elif data.kind == b.WEIGHTED_PAIR:
        _scan_weighted_pair(data, search, column, start, stop)
    else:
        _scan_weighted_classes(data, search, column, start, stop)


def _take_split(data, search, column, start, stop, n_left, numerator, denominator):
    """Take a split with a better score, unless the values on both sides are equal. Return whether the scan must end."""
    at = start + n_left
    code = data.codes[column, data.orders[column, at - 1] & data.row_mask]
    if code == data.codes[column, data.orders[column, at] & data.row_mask]:
        # Whether all values are equal is checked only here, since this point is rarely reached.
        if not search.is_varied:
            first, last = data.orders[column, start] & data.row_mask, data.orders[column, stop - 1] & data.row_mask
            if data.codes[column, first] == data.codes[column, last]:
                search.place = b.CONSTANT
                return True
            search.is_varied = True
        return False
    if search.place < 0 and search.floor >= 0.0 and numerator <= (search.floor + 2.0 * search.tie) * denominator:
        # Without a floor, a split just below the floor might have been taken instead: search again without a floor.
        search.place = b.AGAIN
        return True
    search.numerator, search.denominator, search.place = numerator, denominator, at - 1
    search.limit = numerator + search.tie * denominator
    search.bar = search.limit / denominator * SURE
    return False


def _least_room(n_left, stop, n_rows):
    """Return a lower bound of the denominators of the splits of a block."""
    here = cython.cast(cython.double, n_left) * cython.cast(cython.double, n_rows - n_left)
    there = cython.cast(cython.double, stop) * cython.cast(cython.double, n_rows - stop)
    return min(here, there)


def _scan_two_classes(data, search, column, start, stop):
    n_rows = stop - start
    n_second = cython.cast(cython.longlong, search.totals[1])
    min_weight = cython.cast(cython.longlong, search.min_weight)
    up, down = cython.cast(cython.double, n_rows - n_second), cython.cast(cython.double, n_second)
    ahead: cython.longlong = 0
    n_left = min_weight - 1
    last = n_rows - min_weight
    for at in range(start, start + n_left):
        ahead += (data.orders[column, at] >> data.row_bits) * n_rows - n_second
    while n_left < last:
        end = min(n_left + b.BLOCK, last)
        if end - n_left == b.BLOCK:
            n_here: cython.uint = 0
            for place in range(b.BLOCK):
                n_here += data.orders[column, start + n_left + place] >> data.row_bits
            share = cython.cast(cython.double, n_here)
            most = ahead + share * up
            fewest = ahead - (b.BLOCK - share) * down
            if max(most * most, fewest * fewest) <= search.bar * _least_room(n_left, end, n_rows):
                ahead += n_here * n_rows - b.BLOCK * n_second
                n_left = end
                continue
        while n_left < end:
            ahead += (data.orders[column, start + n_left] >> data.row_bits) * n_rows - n_second
            n_left += 1
            distance = cython.cast(cython.double, ahead)
            numerator = distance * distance
            denominator = cython.cast(cython.double, n_left) * cython.cast(cython.double, n_rows - n_left)
            if numerator * search.denominator > search.limit * denominator and _take_split(
                data, search, column, start, stop, n_left, numerator, denominator
            ):
                return


def _scan_classes(data, search, column, start, stop):
    n_rows = stop - start
    n_classes = data.width
    min_weight = cython.cast(cython.longlong, search.min_weight)
    squares: cython.longlong = 0
    for k in range(n_classes):
        search.class_counts[k] = 0
        squares += cython.cast(cython.longlong, search.totals[k]) * cython.cast(cython.longlong, search.totals[k])
    left_squares: cython.longlong = 0
    right_squares = squares
    n_left: cython.longlong = 0
    last = n_rows - min_weight
    is_counted: cython.bint = n_classes <= b.MAX_COUNTED_CLASSES and n_rows >= b.MIN_COUNTED_ROWS
    while n_left < last:
        end = min(n_left + b.CLASSES_BLOCK, last) if is_counted else last
        if is_counted and search.bar > 0.0 and end - n_left == b.CLASSES_BLOCK:
            # Eight counters of eight bits each in one number.
            counts: cython.ulonglong = 0
            for place in range(b.CLASSES_BLOCK):
                value = data.orders[column, start + n_left + place]
                counts += cython.cast(cython.ulonglong, 1) << ((value >> data.row_bits) << 3)
            room = _least_room(n_left, end, n_rows)
            distances = 0.0
            for k in range(n_classes):
                share = cython.cast(cython.double, (counts >> (8 * k)) & 255)
                here = cython.cast(cython.double, search.class_counts[k]) * n_rows - search.totals[k] * n_left
                most = here + share * (n_rows - search.totals[k])
                fewest = here - (b.CLASSES_BLOCK - share) * search.totals[k]
                distances += max(most * most, fewest * fewest)
            if room > 0.0 and squares + distances / room <= search.bar * n_rows:
                left_squares, right_squares = 0, 0
                for k in range(n_classes):
                    search.class_counts[k] += (counts >> (8 * k)) & 255
                    own = search.class_counts[k]
                    rest = cython.cast(cython.longlong, search.totals[k]) - own
                    left_squares += own * own
                    right_squares += rest * rest
                n_left = end
                continue
        while n_left < end:
            k = data.orders[column, start + n_left] >> data.row_bits
            own = search.class_counts[k]
            search.class_counts[k] = own + 1
            left_squares += 2 * own + 1
            right_squares -= 2 * (cython.cast(cython.longlong, search.totals[k]) - own) - 1
            n_left += 1
            size, others = cython.cast(cython.double, n_left), cython.cast(cython.double, n_rows - n_left)
            numerator = left_squares * others + right_squares * size
            denominator = size * others
            if (
                numerator * search.denominator > search.limit * denominator
                and n_left >= min_weight
                and _take_split(data, search, column, start, stop, n_left, numerator, denominator)
            ):
                return


def _scan_numbers(data, search, column, start, stop):
    n_rows = stop - start
    mean, rest = search.centre, search.rest
    min_weight = cython.cast(cython.longlong, search.min_weight)
    distance: cython.double = 0.0
    n_left = min_weight - 1
    last = n_rows - min_weight
    for at in range(start, start + n_left):
        distance += data.row_value[data.orders[column, at] & data.row_mask] - mean
    has_blocks: cython.bint = n_rows >= b.MIN_SUMMED_ROWS
    while n_left < last:
        end = min(n_left + b.NUMBERS_BLOCK, last) if has_blocks else last
        is_whole: cython.bint = has_blocks and end - n_left == b.NUMBERS_BLOCK
        after = distance
        if is_whole:
            at = start + n_left
            first = data.row_value[data.orders[column, at] & data.row_mask] - mean
            second = data.row_value[data.orders[column, at + 1] & data.row_mask] - mean
            third = data.row_value[data.orders[column, at + 2] & data.row_mask] - mean
            fourth = data.row_value[data.orders[column, at + 3] & data.row_mask] - mean
            fifth = data.row_value[data.orders[column, at + 4] & data.row_mask] - mean
            sixth = data.row_value[data.orders[column, at + 5] & data.row_mask] - mean
            seventh = data.row_value[data.orders[column, at + 6] & data.row_mask] - mean
            eighth = data.row_value[data.orders[column, at + 7] & data.row_mask] - mean
            total = ((first + second) + (third + fourth)) + ((fifth + sixth) + (seventh + eighth))
            ups_and_downs = ((fabs(first) + fabs(second)) + (fabs(third) + fabs(fourth))) + (
                (fabs(fifth) + fabs(sixth)) + (fabs(seventh) + fabs(eighth))
            )
            # The distance of each number from the exact mean is smaller by `rest`.
            here = distance - n_left * rest
            change, ups_and_downs = total - b.NUMBERS_BLOCK * rest, ups_and_downs + b.NUMBERS_BLOCK * fabs(rest)
            most = here + 0.5 * (change + ups_and_downs)
            fewest = here + 0.5 * (change - ups_and_downs)
            # Whether the block is skipped or not, the following sums start from the same number.
            after = distance + total
            room = _least_room(n_left, end, n_rows)
            if search.bar > 0.0 and max(most * most, fewest * fewest) <= search.bar * room:
                distance = after
                n_left = end
                continue
        while n_left < end:
            distance += data.row_value[data.orders[column, start + n_left] & data.row_mask] - mean
            n_left += 1
            apart = distance - n_left * rest
            numerator = apart * apart
            denominator = cython.cast(cython.double, n_left) * cython.cast(cython.double, n_rows - n_left)
            if numerator * search.denominator > search.limit * denominator and _take_split(
                data, search, column, start, stop, n_left, numerator, denominator
            ):
                return
        if is_whole:
            distance = after


def _scan_weighted_pair(data, search, column, start, stop):
    mean, rest = search.centre, search.rest
    distance: cython.double = 0.0
    left_weight: cython.double = 0.0
    for at in range(start, stop - 1):
        row = data.orders[column, at] & data.row_mask
        weight = data.row_weight[row]
        distance += weight * (data.row_value[row] - mean)
        left_weight += weight
        right_weight = search.weight - left_weight
        apart = (distance - left_weight * rest) * search.unit
        numerator = apart * apart
        denominator = (left_weight * search.unit) * (right_weight * search.unit)
        if (
            numerator * search.denominator > search.limit * denominator
            and are_heavy_enough(search, size_of_pair(search, left_weight, distance + mean * left_weight))
            and denominator > 0.0
            and _take_split(data, search, column, start, stop, at + 1 - start, numerator, denominator)
        ):
            return


def size_of_pair(search, weight, second):
    """Return a branch's weight with class weights divided out. second: the part of `weight` in class 1."""
    if not search.has_class_weights:
        return weight
    return (weight - second) * search.class_scale[0] + second * search.class_scale[1]


def size_of_classes(search, weight):
    """Return the left branch's weight with class weights divided out. ``search.left`` has its weight in each class."""
    if not search.has_class_weights:
        return weight
    size: cython.double = 0.0
    for k in range(search.class_scale.shape[0]):
        size += search.left[k] * search.class_scale[k]
    return size


def are_heavy_enough(search, left_size):
    """Return whether both branches are heavy enough, given the size of the left one."""
    return left_size >= search.min_weight and search.size - left_size >= search.min_weight


def _scan_weighted_classes(data, search, column, start, stop):
    left, right = search.left, search.right
    left_squares: cython.double = 0.0
    right_squares: cython.double = 0.0
    for k in range(data.width):
        left[k], right[k] = 0.0, search.totals[k]
        right_squares += search.totals[k] * search.totals[k]
    left_weight: cython.double = 0.0
    for at in range(start, stop - 1):
        row = data.orders[column, at] & data.row_mask
        weight = data.row_weight[row]
        own = data.row_class[row]
        left_squares += weight * (2.0 * left[own] + weight)
        right_squares -= weight * (2.0 * right[own] - weight)
        left[own] += weight
        right[own] -= weight
        left_weight += weight
        right_weight = search.weight - left_weight
        numerator = left_squares * right_weight + right_squares * left_weight
        denominator = left_weight * right_weight
        if (
            numerator * search.denominator > search.limit * denominator
            and are_heavy_enough(search, size_of_classes(search, left_weight))
            and denominator > 0.0
            and _take_split(data, search, column, start, stop, at + 1 - start, numerator, denominator)
        ):
            return
