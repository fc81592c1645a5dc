"""The cells of a JSON list of objects read where they stand: numbers to float64, texts to codes of known categories.

Only what is plain is read: objects of the same members in the same order, spelt alike, whose values are numbers, null
or texts of a list. Whatever else there is, the kernel stops and says so, and its caller reads the list by a reader that
knows all of JSON. What is read here is JSON (RFC 8259), and means the same there::

    content   [{"size":1.5,"wind":"weak"},{"size":null,"wind":"strong"}]
    values    [1.5, nan]                      one row a member that is a number
    codes     [0, 1]                          one row a member that is a text
"""

import numpy as np

from espalier.kernels.decimals import (
    LARGEST_EXACT,
    MOST_DIGITS,
    digits,
    exponent_behind,
    first_digits,
    number_of,
)
from espalier.kernels.jit import compiled, inner

__all__ = ["PADDING", "read_rows"]

PADDING = 16

LIST, LIST_END, OBJECT, OBJECT_END = np.uint8(91), np.uint8(93), np.uint8(123), np.uint8(125)
COMMA, COLON, QUOTE, SMALL_N = np.uint8(44), np.uint8(58), np.uint8(34), np.uint8(110)
SPACE, TAB, LINE_FEED, RETURN = np.uint8(32), np.uint8(9), np.uint8(10), np.uint8(13)
MINUS, POINT, SMALL_E, LARGE_E = np.uint8(45), np.uint8(46), np.uint8(101), np.uint8(69)
ZERO_SIGN = np.uint8(48)
NULL = np.array([110, 117, 108, 108], np.uint8)


@compiled
def read_rows(content, begin, names, name_ends, powers, labels, label_ends, label_codes, first_label, values, codes):
    """Read a list of objects into columns; returns how many there are, and the place behind the list, or (-1, 0).

    content: uint8, of which the last PADDING stand behind the text and are 0. begin: where the list does.
    names: uint8, the members' names with their quotes, as they are spelt, one after the other, each up to its entry of
    name_ends, int32 (members). powers: POWERS_OF_FIVE.
    labels: uint8, the texts of categories with their quotes, each up to its entry of label_ends, int32; label_codes:
    int32, the code of each; first_label: int32 (members + 1), the first one of each member, the same as the next one's
    where its values are numbers.
    values: float64 (numbers, rows), NaN where null, written. codes: int32 (texts, rows), -1 where null, written.
    (-1, 0): something is not plain, or there are more rows than room.
    """
    n_members, size = name_ends.size, content.size - PADDING
    most_rows = max(values.shape[1], codes.shape[1])
    at, row = begin, 0
    if content[at] != LIST:
        return -1, 0
    while True:
        at = _next(content, at + 1)
        if content[at] != OBJECT or row >= most_rows:
            return -1, 0
        start, n_numbers, n_texts = 0, 0, 0
        for member in range(n_members):
            at = _next(content, at + 1)
            stop = name_ends[member]
            if not _stands_here(content, at, size, names, start, stop):
                return -1, 0
            at = _next(content, at + stop - start)
            start = stop
            if content[at] != COLON:
                return -1, 0
            at = _next(content, at + 1)
            if first_label[member] == first_label[member + 1]:
                value, at = _number(content, at, size, powers)
                values[n_numbers, row] = value
                n_numbers += 1
            else:
                code, at = _code(
                    content, at, size, labels, label_ends, label_codes, first_label[member], first_label[member + 1]
                )
                codes[n_texts, row] = code
                n_texts += 1
            if at < 0:
                return -1, 0
            at = _next(content, at)
            if content[at] != (COMMA if member + 1 < n_members else OBJECT_END):
                return -1, 0
        row += 1
        at = _next(content, at + 1)
        if content[at] == LIST_END:
            return row, at + 1
        if content[at] != COMMA:
            return -1, 0


@inner
def _next(content, at):
    """Give the place of the next sign that is no space."""
    while content[np.uint64(at)] in (SPACE, TAB, LINE_FEED, RETURN):
        at += 1
    return at


@inner
def _stands_here(content, at, size, texts, start, stop):
    """Say whether the text from `start` to `stop` stands at a place."""
    if at + stop - start > size:
        return False
    for offset in range(stop - start):  # noqa: SIM110 - compiled
        if content[np.uint64(at + offset)] != texts[np.uint64(start + offset)]:
            return False
    return True


@inner
def _code(content, at, size, labels, label_ends, label_codes, first, last):
    """Read a text of a list, or null; returns its code and the place behind, -1 where it is none."""
    if content[at] == QUOTE:
        for label in range(first, last):
            start = label_ends[label - 1] if label > 0 else 0
            if _stands_here(content, at, size, labels, start, label_ends[label]):
                return label_codes[label], at + label_ends[label] - start
        return -1, -1
    return -1, (at + 4 if _stands_here(content, at, size, NULL, 0, 4) else -1)


@inner
def _number(content, at, size, powers):
    """Read a number, or null; returns it and the place behind, -1 where it is none, or not decided.

    A whole number beyond 2^53 is not decided: whoever asks may want to know of it as it is.
    """
    sign = content[np.uint64(at)]
    if sign == SMALL_N:
        return np.nan, (at + 4 if _stands_here(content, at, size, NULL, 0, 4) else -1)
    negative = sign == MINUS
    at += np.int64(negative)
    first = at
    whole, at = first_digits(content, at)
    n_digits = at - first
    if n_digits == 0 or n_digits > MOST_DIGITS or (n_digits > 1 and content[first] == ZERO_SIGN):
        return np.nan, -1
    sign = content[np.uint64(at)]
    if sign not in (POINT, SMALL_E, LARGE_E):
        if whole > LARGEST_EXACT:
            return np.nan, -1
        value = np.float64(np.int64(whole))
        return (-value if negative and whole > 0 else value), at
    power = 0
    if sign == POINT:
        at += 1
        point = at
        if whole == 0:  # zeros in front are no digits
            n_digits = 0
            while content[np.uint64(at)] == ZERO_SIGN:
                at += 1
        behind = at
        whole, at = digits(content, at, whole)
        if at == point or n_digits + at - behind > MOST_DIGITS:
            return np.nan, -1
        power = point - at
        sign = content[np.uint64(at)]
    if sign in (SMALL_E, LARGE_E):
        exponent, at, is_one = exponent_behind(content, at)
        if not is_one:
            return np.nan, -1
        power += exponent
    value, decided = number_of(whole, power, negative, powers)
    return value, (at if decided else -1)
