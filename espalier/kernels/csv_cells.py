"""The cells of CSV read where they stand: numbers to float64, texts to places in a list of distinct ones.

Only what is plain is read: lines of as many cells as there are columns, that end in a line feed, with or without a
carriage return; quotes around a whole cell and nowhere else. Whatever else there is, the kernel stops and says so, and
its caller reads the piece in a way that knows all of CSV::

    content   1.5,"yes",?↵0.25,"no",7↵
    values    [1.5, 0.25], [nan, 7.0]                 one row a column of numbers
    codes     [0, 1]                                  one row a column of texts
    texts     (5, 8), (18, 20)                        where each distinct text begins and ends

A number is digits with a sign, a point and an exponent, rounded once (`espalier.kernels.decimals`). What is not
decided there is left to the caller, cell by cell. Of the others the caller is told which are not spelt as
`espalier.spelling.number_text` would spell them: 1.50, 007, 1e3.
"""

import numpy as np

from espalier.kernels.decimals import (
    MOST_DIGITS,
    POWERS_OF_FIVE,
    digits_behind,
    eight_signs,
    exponent_behind,
    first_digits,
    number_of,
)
from espalier.kernels.jit import compiled, inner

__all__ = ["FULL", "LEFT_OUT", "NUMBER", "POWERS_OF_FIVE", "READ", "TEXT", "last_line", "read_cells"]

LEFT_OUT, NUMBER, TEXT = 0, 1, 2
PADDING = 16
READ, NOT_PLAIN, FULL = 0, 1, 2

COMMA, QUOTE, LINE_FEED, RETURN = np.uint8(44), np.uint8(34), np.uint8(10), np.uint8(13)
PLUS, MINUS, POINT, NOUGHT = np.uint8(43), np.uint8(45), np.uint8(46), np.uint8(48)
NUL, BEYOND_ASCII = np.uint8(0), np.uint8(128)
STRETCH = 64
SURE_DIGITS = 15  # of any number of so many, the nearest double is nearest to no other
SMALL_E, LARGE_E = np.uint8(101), np.uint8(69)
HALF = np.uint64(32)
ONE = np.uint64(1)
TOP_BITS = np.uint64(0x8080808080808080)
PLACES = np.uint64(0x0001020304050607)
ONES = np.uint64(0x0101010101010101)
QUOTES = np.uint64(34) * ONES
MOST_PROBES = 512  # with half of the table free, only texts that were chosen to collide need more
HASH_START, HASH_FACTOR = np.uint64(14695981039346656037), np.uint64(1099511628211)


@compiled
def read_cells(
    content, kinds, rows_of, powers, missing, missing_ends, values, codes, texts, n_texts, table, odd, spelt
):
    """Read whole lines into columns; returns what came of it, the number of rows, and that of odd cells and spelt ones.

    content: uint8, of which the last PADDING stand behind the text: a line feed, then anything. kinds: int8 (columns),
    LEFT_OUT, NUMBER or TEXT; rows_of: int32 (columns), the row of `values` or `codes` that each is written to.
    powers: POWERS_OF_FIVE. missing: uint8, the texts that stand for missing, one after the other, each up to its entry
    of missing_ends, int32; an empty cell always does.
    values: float64 (numbers, rows), NaN where missing, written. codes: int32 (texts, rows), -1 where empty, written.
    texts: int64 (texts, most, 2), where the distinct ones begin and end, written; n_texts: int32 (texts), how many,
    zero at first. table: int32 (texts, a power of two above twice `most`), -1 at first. odd: int64 (m, 4), numbers that
    are left to the caller: row of `values`, row, begin, end. spelt: int64 (m, 4), the same of those that were read and
    are spelt otherwise; when it is full, more are counted only.
    Returns (READ, rows, odd cells, spelt ones); (NOT_PLAIN, …) where something is not plain, (FULL, …) where an array
    is too small.
    """
    at, end = 0, content.size - PADDING
    row, n_odd, n_spelt, n_columns = 0, 0, 0, kinds.size
    most_rows = max(values.shape[1], codes.shape[1])
    while at < end:
        if content[at] == LINE_FEED:
            at += 1
            continue
        if content[at] == RETURN and at + 1 < end and content[at + 1] == LINE_FEED:
            at += 2
            continue
        if row >= most_rows:
            return FULL, row, n_odd, n_spelt
        for column in range(n_columns):
            if column > 0:
                if at >= end or content[np.uint64(at)] != COMMA:
                    return NOT_PLAIN, row, n_odd, n_spelt
                at += 1
            kind = kinds[np.uint64(column)]
            state = 0
            begin = at
            if kind == NUMBER:
                value, at, state, usual = _number(content, begin, powers)
                values[np.uint64(rows_of[np.uint64(column)]), np.uint64(row)] = value
                if not usual and state == 1:
                    if n_spelt < spelt.shape[0]:
                        _note(spelt[n_spelt], rows_of[column], row, begin, at)
                    n_spelt += 1
            quoted = False
            if state != 1:
                quoted = begin < end and content[begin] == QUOTE
                if quoted:
                    begin += 1
                at = _end_of_cell(content, begin, quoted)
                if at < 0:
                    return NOT_PLAIN, row, n_odd, n_spelt
                if kind == NUMBER:
                    values[rows_of[column], row] = np.nan
                    if at > begin and not _is_missing(content, begin, at, missing, missing_ends):
                        if n_odd >= odd.shape[0]:
                            return FULL, row, n_odd, n_spelt
                        _note(odd[n_odd], rows_of[column], row, begin, at)
                        n_odd += 1
                elif kind == TEXT:
                    place = rows_of[column]
                    code = -1
                    if at > begin:
                        code = _code(content, begin, at, texts[place], n_texts, place, table[place])
                        if code < 0:
                            return FULL, row, n_odd, n_spelt
                    codes[place, row] = code
            if quoted:
                at += 1
        if at < end:
            if content[at] == RETURN:
                at += 1
            if at >= end or content[at] != LINE_FEED:
                return NOT_PLAIN, row, n_odd, n_spelt
            at += 1
        row += 1
    return READ, row, n_odd, n_spelt


@inner
def _note(cell, place, row, begin, end):
    cell[0], cell[1], cell[2], cell[3] = place, row, begin, end


@inner
def _end_of_cell(content, begin, quoted):
    """Give the place behind the last sign of a cell; -1 where it is not plain."""
    at, end = begin, content.size - PADDING
    if quoted:
        while at < end and content[at] != QUOTE:
            at += 1
        if at >= end:
            return -1
        if at + 1 < end and content[at + 1] == QUOTE:
            return -1
        return at
    while at < end:
        sign = content[at]
        if sign in (COMMA, LINE_FEED):
            return at
        if sign == QUOTE:
            return -1
        if sign == RETURN:
            return at if at + 1 < end and content[at + 1] == LINE_FEED else -1
        at += 1
    return at


@inner
def _is_missing(content, begin, end, missing, missing_ends):
    start = 0
    for stop in missing_ends:
        if stop - start == end - begin:
            same = True
            for offset in range(end - begin):
                if content[begin + offset] != missing[start + offset]:
                    same = False
                    break
            if same:
                return True
        start = stop
    return False


@inner
def _code(content, begin, end, texts, n_texts, place, table):
    """Give the place of a text among the distinct ones, a new one if need be; -1 where no room is found for it."""
    code = HASH_START
    for at in range(begin, end):
        code = (code ^ np.uint64(content[at])) * HASH_FACTOR
    mask = np.int64(table.size - 1)
    slot = np.int64((code ^ (code >> HALF)) & np.uint64(mask))
    n_probes = 0
    while table[slot] >= 0:
        n_probes += 1
        if n_probes > MOST_PROBES:
            return -1
        known = table[slot]
        first = texts[known, 0]
        if texts[known, 1] - first == end - begin:
            same = True
            for offset in range(end - begin):
                if content[first + offset] != content[begin + offset]:
                    same = False
                    break
            if same:
                return known
        slot = (slot + 1) & mask
    new = n_texts[place]
    if new >= texts.shape[0]:
        return -1
    texts[new, 0], texts[new, 1] = begin, end
    table[slot] = new
    n_texts[place] = new + 1
    return new


@inner
def _number(content, begin, powers):
    """Read a number that begins here; returns it, the place behind it, and 1, or 0 where it is none or not decided.

    Returns as well whether it is spelt as `espalier.spelling.number_text` would: without an exponent, by at most 15
    digits, which the nearest double gives back, and none of them too many.
    """
    at = begin
    sign = content[np.uint64(at)]
    negative = sign == MINUS
    at += np.int64(negative) + np.int64(sign == PLUS)  # no jump: which sign comes next cannot be foreseen
    first = at
    whole, at = first_digits(content, at)
    n_digits = at - first
    usual = (sign != PLUS) & ((content[np.uint64(first)] != NOUGHT) | (n_digits == 1)) & (n_digits > 0)
    power = 0
    if content[np.uint64(at)] == POINT:
        at += 1
        point = at
        whole, at = digits_behind(content, at, whole)
        power = point - at
        n_digits -= power
        usual &= (power < 0) & (content[np.uint64(at - 1)] != NOUGHT)
    if n_digits == 0 or n_digits > MOST_DIGITS:
        return np.nan, at, 0, False
    usual &= (n_digits <= SURE_DIGITS) & ((whole != 0) | (not negative))
    sign = content[np.uint64(at)]
    if sign in (SMALL_E, LARGE_E):
        exponent, at, is_one = exponent_behind(content, at)
        if not is_one:
            return np.nan, at, 0, False
        power += exponent
        sign = content[np.uint64(at)]
        usual = False
    if sign not in (COMMA, LINE_FEED, RETURN):
        return np.nan, at, 0, False
    value, decided = number_of(whole, power, negative, powers)
    return value, at, decided, usual


@compiled
def last_line(content):
    """Find the last line feed outside of quotes, in uint8 that begin with a line; returns its end, and the feeds to it.

    Returns as well whether all is ASCII without NUL. The end is 0 where there is none, and -1 where a quote opens or
    closes elsewhere than beside a comma, a line end or another quote. A stretch is looked at without a jump, so that
    many signs are looked at together; only where one holds a quote it is gone through again.
    """
    n_feeds, strange, place = 0, np.uint8(0), 0
    inside, regular = False, True
    while place < content.size:
        stop = min(place + STRETCH, content.size)
        feeds, has_quotes, odd = _looked_over(content, place, stop)
        n_feeds += np.int64(feeds)
        strange = np.uint8(strange | odd)
        if has_quotes:
            inside, regular = _past_quotes(content, place, stop, inside)
            if not regular:
                return -1, 0, False
        place = stop
    end = content.size
    while end > 0:  # back to the line feed, by the last quotes
        sign = content[np.uint64(end - 1)]
        if sign == LINE_FEED:
            if not inside:
                return end, n_feeds, strange == 0
            n_feeds -= 1
        elif sign == QUOTE:
            inside = not inside
        end -= 1
    return 0, 0, strange == 0


@inner
def _looked_over(content, place, stop):
    """Give the line feeds of a stretch, whether it has a quote, and whether a NUL or a sign beyond ASCII."""
    feeds, quotes, odd = np.uint8(0), np.uint8(0), np.uint8(0)
    if stop - place == STRETCH:
        for offset in range(STRETCH):
            sign = content[np.uint64(place + offset)]
            feeds = np.uint8(feeds + np.uint8(sign == LINE_FEED))
            quotes = np.uint8(quotes | np.uint8(sign == QUOTE))
            odd = np.uint8(odd | np.uint8(sign == NUL) | (sign & BEYOND_ASCII))
        return feeds, quotes, odd
    for at in range(place, stop):
        sign = content[np.uint64(at)]
        feeds = np.uint8(feeds + np.uint8(sign == LINE_FEED))
        quotes = np.uint8(quotes | np.uint8(sign == QUOTE))
        odd = np.uint8(odd | np.uint8(sign == NUL) | (sign & BEYOND_ASCII))
    return feeds, quotes, odd


@inner
def _past_quotes(content, at, stop, inside):
    """Give whether one is inside of quotes behind a stretch, and whether each quote in it stands where it should."""
    while at < stop:
        if at + 8 <= content.size:
            at += _before_quote(content, at)
        if at < stop and content[np.uint64(at)] == QUOTE:
            beside = at + 1 if inside else at - 1
            if 0 <= beside < content.size and content[beside] not in (COMMA, LINE_FEED, RETURN, QUOTE):
                return inside, False
            inside = not inside
        at += 1
    return inside, True


@inner
def _before_quote(content, at):
    """Give how many of eight signs stand before the first quote: 7 where there is none among them."""
    quotes = eight_signs(content, at) ^ QUOTES
    # The top bit of each byte that is zero; above the lowest of them others may be set, too (Mycroft 1987).
    zeros = (quotes - ONES) & ~quotes & TOP_BITS
    if zeros == 0:
        return 7
    return np.int64(((zeros & (~zeros + ONE)) >> np.uint64(7)) * PLACES >> np.uint64(56))
