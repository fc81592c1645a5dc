"""Lines of ARFF, cut into what they hold: cells, names, lists of categories; quotes and comments understood."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

__all__ = ["BadLineError", "Rest", "cells_of_row", "date_reader", "instant_of", "uncommented"]

SPECIAL: Final = re.compile(r"""['"%{}]""")
QUOTED: Final = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
BLANK: Final = re.compile(r"[ \t]*")
PLAIN: Final = re.compile(r"[^,%{}]*")
WORD: Final = re.compile(r"[^ \t,%{}]*")
ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
MISSING: Final = "?"
DATE_PARTS: Final[Mapping[str, str]] = {
    "yyyy": "(?P<year>[0-9]{4})",
    "MM": "(?P<month>[0-9]{2})",
    "dd": "(?P<day>[0-9]{2})",
    "HH": "(?P<hour>[0-9]{2})",
    "mm": "(?P<minute>[0-9]{2})",
    "ss": "(?P<second>[0-9]{2})",
    "SSS": "(?P<millisecond>[0-9]{3})",
}
"""The parts of a date that are read, as Java's SimpleDateFormat calls them."""
DATE_PIECE: Final = re.compile(
    r"'(?P<quoted>[^']*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<sign>[^A-Za-z'])"
)


class BadLineError(Exception):
    """What is wrong with a line and what is legal, for people; without its number."""


@dataclass(slots=True)
class Rest:
    """What is left of a line: it is taken from the left."""

    line: str
    at: int = 0

    def next(self) -> str:
        """Give the next sign that is not blank, or nothing at the end of the line, or where a comment begins."""
        self.at = _end(BLANK, self.line, self.at)
        sign = self.line[self.at : self.at + 1]
        return "" if sign == "%" else sign

    def take(self, sign: str) -> bool:
        """Take `sign` if it comes next."""
        found = self.next() == sign
        self.at += found
        return found

    def cell(self, plain: re.Pattern[str] = PLAIN) -> str | None:
        """Take a text in quotes or without, None for ``?`` without.

        Raises:
            BadLineError: There is none, or its quotes are not closed.
        """
        sign = self.next()
        if sign in ("'", '"') and sign:
            found = QUOTED.match(self.line, self.at)
            if found is None:
                raise BadLineError("a quote is not closed")
            self.at = found.end()
            return ESCAPE.sub(_unescaped, found[1] if found[1] is not None else found[2])
        end = _end(plain, self.line, self.at)
        text = self.line[self.at : end].rstrip(" \t")
        if not text:
            raise BadLineError("a cell is empty: a missing one is written ?, an empty text ''")
        self.at = end
        return None if text == MISSING else text

    def word(self) -> str | None:
        """Take a text in quotes, or without up to the next blank."""
        return self.cell(WORD)

    def listed(self) -> Iterator[str | None]:
        """Take texts between commas, to the end or to a brace.

        Raises:
            BadLineError: As `cell`.
        """
        yield self.cell()
        while self.take(","):
            yield self.cell()


def cells_of_row(line: str, zeros: Sequence[str | None]) -> list[str | None]:
    """Give the cells of a row, dense or sparse; None where missing.

    Args:
        line: Not blank, no comment.
        zeros: What each column holds in a sparse row that leaves it out; None: it must not.

    Raises:
        BadLineError: It has another number of cells, and other faults of form.
    """
    if SPECIAL.search(line) is None:  # what most lines are
        cells: list[str | None] = [None if cell == MISSING else cell for cell in map(_stripped, line.split(","))]
        if "" in cells:
            raise BadLineError("a cell is empty: a missing one is written ?, an empty text ''")
    else:
        rest = Rest(line)
        if rest.take("{"):
            return _sparse(rest, zeros)
        cells = [rest.cell()]
        while rest.take(",") and rest.next() != "{":  # there a weight begins
            cells.append(rest.cell())
        if rest.next():
            raise BadLineError("more follows the last cell; weights of rows are not read: make them a column")
    if len(cells) != len(zeros):
        raise BadLineError(f"it has {len(cells)} cells, the header lists {len(zeros)} attributes")
    return cells


def uncommented(line: str) -> bool:
    """Say whether a line holds more than a comment."""
    return bool(Rest(line).next())


def date_reader(date_format: str) -> re.Pattern[str]:
    """Give the pattern of dates in a format; `instant_of` reads what it matches.

    Raises:
        BadLineError: The format has parts that are not read.
    """
    pattern = ""
    place = 0
    seen: set[str] = set()
    while place < len(date_format):
        found = DATE_PIECE.match(date_format, place)
        letters = found["letters"] if found else None
        if found is None or (letters is not None and (letters not in DATE_PARTS or letters in seen)):
            legal = ", ".join(DATE_PARTS)
            raise BadLineError(f"this date format is not read; legal, each once: {legal}, signs, and texts in quotes")
        if letters is not None:
            seen.add(letters)
        pattern += DATE_PARTS[letters] if letters is not None else re.escape(found["quoted"] or found["sign"] or "'")
        place = found.end()
    return re.compile(pattern)


def instant_of(pattern: re.Pattern[str], text: str) -> float | None:
    """Read a date as seconds since 1970-01-01 UTC; None where it is none."""
    found = pattern.fullmatch(text)
    if found is None:
        return None
    parts = {name: int(digits) for name, digits in found.groupdict().items()}
    millisecond = parts.pop("millisecond", 0)
    try:
        instant = datetime(
            parts.pop("year", 1970), parts.pop("month", 1), parts.pop("day", 1), **parts, tzinfo=UTC
        )  # fmt: skip
    except ValueError:
        return None
    return instant.timestamp() + millisecond / 1000


def _sparse(rest: Rest, zeros: Sequence[str | None]) -> list[str | None]:
    cells: list[str | None] = list(zeros)
    given: set[int] = set()
    if not rest.take("}"):
        while True:
            index = rest.word()
            if index is None or not (index.isascii() and index.isdigit()) or int(index[:9]) >= len(zeros):
                legal = f"a whole number from 0 to {len(zeros) - 1}"
                raise BadLineError(f"a sparse cell begins with the number of its attribute, {legal}")
            if int(index) in given:
                raise BadLineError(f"attribute number {int(index)} is given twice")
            given.add(int(index))
            cells[int(index)] = rest.cell()
            if not rest.take(","):
                break
        if not rest.take("}"):
            raise BadLineError("a sparse row ends with }")
    if rest.next():
        raise BadLineError("more follows the last cell; weights of rows are not read: make them a column")
    if lacking := [place for place, zero in enumerate(zeros) if zero is None and place not in given]:
        raise BadLineError(f"a sparse row must give its texts and dates; number {lacking[0]} is left out")
    return cells


def _stripped(cell: str) -> str:
    return cell.strip(" \t")


def _end(pattern: re.Pattern[str], line: str, at: int) -> int:
    found = pattern.match(line, at)
    return found.end() if found else at


def _unescaped(found: re.Match[str]) -> str:
    sign = found[1]
    return chr(int(sign[1:], 16)) if len(sign) > 1 else ESCAPED.get(sign, sign)
