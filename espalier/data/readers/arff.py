r"""ARFF, the format of Weka.

    % a comment                                            to the end of the line
    @relation weather
    @attribute outlook {sunny, overcast, 'rather rainy'}   nominal, its categories in their order
    @attribute temperature numeric                         also real and integer
    @attribute noted date "yyyy-MM-dd HH:mm"               without a format: yyyy-MM-dd'T'HH:mm:ss
    @attribute remark string                               nominal, its categories as they occur
    @data
    sunny, 85, "2024-05-01 12:00", 'it\'s dry'             ? is a missing value
    {1 70, 3 x, 2 "2024-05-02 09:30"}                      sparse: what is left out is 0, or the first category

Keywords are of either case. Relational attributes, and weights of attributes and rows, are refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import RawColumn, column_from_texts
from espalier.data.labels import number_from_text
from espalier.data.limits import Limits
from espalier.data.readers.json import lines_of
from espalier.data.readers.source import Source
from espalier.data.schema import FeatureKind
from espalier.errors import DataError, Fault, pointer

CELLS_AT_ONCE: Final = 500_000
NUMBERS: Final = frozenset({"numeric", "real", "integer"})
DATE_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss"
KEYWORD: Final = re.compile(r"@(relation|attribute|data|end)\b", re.IGNORECASE)
TYPES: Final = "numeric, real, integer, string, date, or categories in braces"

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
DATE_TOKEN: Final = re.compile(
    r"'(?P<quoted>[^']*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<sign>[^A-Za-z'])"
)


Cells = Sequence[str | None]
Made = TypeVar("Made")
Column = Callable[[str, Cells, Sequence[int]], RawColumn]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One line of the header.

    Attributes:
        name: Of the column.
        column: Returns the column, from its name, its cells, and the numbers of their lines, for messages.
        zero: The cell of a sparse row that leaves it out; None: it must not.
    """

    name: str
    column: Column
    zero: str | None


def read_arff(source: Source, assembler: TableAssembler, *, limits: Limits) -> Iterator[Block]:
    """Read ARFF, UTF-8.

    Raises:
        DataError: Not ARFF, a type that is not read, a row of another length, a category that is not listed; by line.
        TooLarge: A line is too long, or there are too many columns.
    """
    lines = _lines(source, limits)
    attributes = _header(lines, frozenset(assembler.missing_values), limits)
    zeros = [attribute.zero for attribute in attributes]
    at_once = max(1, CELLS_AT_ONCE // len(attributes))
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    for number, line in lines:
        rows.append(_at(number, cells_of_row, line, zeros))
        numbers.append(number)
        if len(rows) == at_once:
            yield _block(attributes, rows, numbers, assembler)
            rows, numbers = [], []
    if rows:
        yield _block(attributes, rows, numbers, assembler)
    elif not assembler.n_rows:
        message = f"the ARFF has {len(attributes)} attributes and no rows below @data"
        raise DataError([Fault("", "empty", message)])


def _lines(source: Source, limits: Limits) -> Iterator[tuple[int, str]]:
    """Return the lines that hold more than a comment, each with its number from 1."""
    for number, content in lines_of(source, limits=limits):
        try:
            line = content.decode()
        except UnicodeDecodeError:
            raise _fault(number, "it is not UTF-8 text") from None
        if "\0" in line:
            raise _fault(number, "it holds NUL characters")
        if uncommented(line):
            yield number, line


def _header(lines: Iterator[tuple[int, str]], missing: frozenset[str], limits: Limits) -> list[Attribute]:
    attributes: dict[str, Attribute] = {}
    for number, line in lines:
        match = KEYWORD.match(line)
        keyword = match[1].lower() if match else ""
        if keyword == "data":
            if not attributes:
                raise _fault(number, "there are no @attribute lines before it")
            return list(attributes.values())
        if keyword == "attribute" and match:
            attribute = _at(number, _attribute, line[match.end() :], missing)
            if attribute.name in attributes:
                message = f"two attributes are called {attribute.name!r} (line {number})"
                raise DataError([Fault("", "duplicate", message)])
            attributes[attribute.name] = attribute
            limits.check("columns", len(attributes))
        elif keyword != "relation":
            raise _fault(number, "before @data there are @relation and @attribute lines only")
    raise DataError([Fault("", "not_arff", "not ARFF: there is no @data line")])


def _attribute(line: str, missing: frozenset[str]) -> Attribute:
    """Read what follows ``@attribute``."""
    rest = Rest(line)
    name = (rest.word() or "?") if rest.next() else ""
    if not rest.next():
        raise BadLineError(f"an attribute has a name and a type; legal: {TYPES}")
    if rest.take("{"):
        given = [] if rest.next() == "}" else list(rest.listed())
        categories = tuple("?" if category is None else category for category in given)
        if not rest.take("}") or rest.next():
            raise BadLineError("categories stand in braces, with commas between them, and nothing follows")
        if len(set(categories)) < len(categories):
            raise BadLineError("a category is listed twice")
        listed_categories = tuple(category for category in categories if category not in missing)
        return Attribute(name, partial(_nominal, listed_categories, missing), categories[0] if categories else None)
    kind = (rest.word() or "").lower()
    column: Column
    zero: str | None
    if kind == "date":
        pattern = date_reader((rest.word() or "") if rest.next() else DATE_FORMAT)
        column, zero = partial(_floats, FeatureKind.DATETIME, partial(instant_of, pattern), missing), None
    elif kind in NUMBERS:
        column, zero = partial(_floats, FeatureKind.NUMERIC, number_from_text, missing), "0"
    elif kind == "string":
        column, zero = _texts, None
    else:
        raise BadLineError(f"this type of attribute is not read; legal: {TYPES}")
    if rest.next():
        raise BadLineError("more follows the type; weights of attributes are not read")
    return Attribute(name, column, zero)


def _block(
    attributes: Sequence[Attribute], rows: Sequence[list[str | None]], numbers: Sequence[int], assembler: TableAssembler
) -> Block:
    columns = zip(attributes, zip(*rows, strict=True), strict=True)
    return Block(
        len(rows),
        tuple(
            attribute.column(attribute.name, cells, numbers)
            for attribute, cells in columns
            if assembler.wants(attribute.name)
        ),
    )


def _floats(
    kind: FeatureKind,
    read: Callable[[str], float | None],
    missing: frozenset[str],
    name: str,
    cells: Cells,
    _: Sequence[int],
) -> RawColumn:
    """Return a column of numbers; a cell that is no number becomes infinite, which is reported later, with its row."""
    table: dict[str | None, float] = {None: np.nan}
    for cell in set(cells):
        if cell is not None:
            value = np.nan if cell in missing else read(cell)
            table[cell] = np.inf if value is None else value
    values = np.array([table[cell] for cell in cells], dtype=np.float64)
    return RawColumn(name, kind, values, copy=False)


def _texts(name: str, cells: Cells, _: Sequence[int]) -> RawColumn:
    return column_from_texts(name, cells, kind=FeatureKind.NOMINAL)


def _nominal(
    categories: tuple[str, ...], missing: frozenset[str], name: str, cells: Cells, numbers: Sequence[int]
) -> RawColumn:
    table: dict[str | None, int] = {None: -1, **dict.fromkeys(missing, -1)}
    table.update({category: code for code, category in enumerate(categories)})
    codes = np.array([table.get(cell, -2) for cell in cells], dtype=np.int32)
    if np.any(codes == -2):
        line = numbers[int(np.argmax(codes == -2))]
        message = f"line {line}: must be one of the categories that the @attribute line lists, or ?"
        raise DataError([Fault(pointer(name), "unknown_category", message)])
    return RawColumn(name, FeatureKind.NOMINAL, codes, labels=categories, categories_complete=True)


def _at(number: int, make: Callable[..., Made], *arguments: Any) -> Made:
    """Return what `make` makes of a line; its errors get the number of the line."""
    try:
        return make(*arguments)
    except BadLineError as error:
        raise _fault(number, str(error)) from None


def _fault(number: int, message: str) -> DataError:
    return DataError([Fault("", "not_arff", f"not ARFF: line {number}: {message}")])


# Lines


class BadLineError(Exception):
    """A line is wrong; the text lists what is legal, without the number of the line."""


@dataclass(slots=True)
class Rest:
    """The rest of a line, which is read from the left."""

    line: str
    at: int = 0

    def next(self) -> str:
        """Return the next character that is not blank; "" at the end of the line and at a comment."""
        self.at = _end(BLANK, self.line, self.at)
        sign = self.line[self.at : self.at + 1]
        return "" if sign == "%" else sign

    def take(self, sign: str) -> bool:
        """Take the character `sign` if it is next, and return whether it was."""
        match = self.next() == sign
        self.at += match
        return match

    def cell(self, plain: re.Pattern[str] = PLAIN) -> str | None:
        """Take a text in quotes or without, None for ``?`` without.

        Raises:
            BadLineError: There is none, or its quotes are not closed.
        """
        sign = self.next()
        if sign in ("'", '"') and sign:
            match = QUOTED.match(self.line, self.at)
            if match is None:
                raise BadLineError("a quote is not closed")
            self.at = match.end()
            return ESCAPE.sub(_unescaped, match[1] if match[1] is not None else match[2])
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
        """Take texts between commas, to the end or to a brace."""
        yield self.cell()
        while self.take(","):
            yield self.cell()


def cells_of_row(line: str, zeros: Sequence[str | None]) -> list[str | None]:
    """Return the cells of a row, dense or sparse; None where missing.

    Args:
        line: Not blank, no comment.
        zeros: The cell of each column in a sparse row that leaves it out; None: it must not.

    Raises:
        BadLineError: It has another number of cells, and other faults of form.
    """
    if SPECIAL.search(line) is None:  # most lines
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
    """Return whether a line holds more than a comment."""
    return bool(Rest(line).next())


def date_reader(date_format: str) -> re.Pattern[str]:
    """Return the pattern of dates in a format; `instant_of` reads what it matches.

    Raises:
        BadLineError: The format has parts that are not read.
    """
    pattern = ""
    place = 0
    seen: set[str] = set()
    while place < len(date_format):
        match = DATE_TOKEN.match(date_format, place)
        letters = match["letters"] if match else None
        if match is None or (letters is not None and (letters not in DATE_PARTS or letters in seen)):
            legal = ", ".join(DATE_PARTS)
            raise BadLineError(f"this date format is not read; legal, each once: {legal}, signs, and texts in quotes")
        if letters is not None:
            seen.add(letters)
        pattern += DATE_PARTS[letters] if letters is not None else re.escape(match["quoted"] or match["sign"] or "'")
        place = match.end()
    return re.compile(pattern)


def instant_of(pattern: re.Pattern[str], text: str) -> float | None:
    """Read a date as seconds since 1970-01-01 UTC; None where it is none."""
    match = pattern.fullmatch(text)
    if match is None:
        return None
    parts = {name: int(digits) for name, digits in match.groupdict().items()}
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
    match = pattern.match(line, at)
    return match.end() if match else at


def _unescaped(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign[1:], 16)) if len(sign) > 1 else ESCAPED.get(sign, sign)
