r"""ARFF, the format of Weka.

    % a comment                                            to the end of the line
    @relation weather
    @attribute outlook {sunny, overcast, 'rather rainy'}   nominal, its categories in their order
    @attribute temperature numeric                         also real and integer
    @attribute noted date "yyyy-MM-dd HH:mm"               without a format: yyyy-MM-dd'T'HH:mm:ss
    @attribute remark string                               nominal, its categories sorted
    @data
    sunny, 85, "2024-05-01 12:00", 'it\'s dry'             ? is a missing value
    {1 70, 3 x, 2 "2024-05-02 09:30"}                      sparse: a cell left out is 0, or the first category

Keywords and types ignore case. A sparse row must give all texts and dates. Relations and weights are refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import numpy as np

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import RawColumn, column_from_labels
from espalier.data.limits import Limits
from espalier.data.number_parsing import number_from_text
from espalier.data.readers.source import Source, in_blocks
from espalier.data.schema import CODED_KINDS, FeatureKind
from espalier.errors import DataError, Fault, pointer

CELLS_AT_ONCE: Final = 500_000
NUMBERS: Final = frozenset({"numeric", "real", "integer"})
DATE_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss"
DATE_PARTS: Final[Mapping[str, str]] = {
    "yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second", "SSS": "millisecond",
}  # fmt: skip
"""The legal letters in a date format, as in Java's SimpleDateFormat, each with the part of the date that it means."""
DATE_PART: Final = re.compile(r"'[^']*'|([A-Za-z])\1*|.", re.DOTALL)
TYPES: Final = "numeric, real, integer, string, date, or categories in braces"
WEIGHTS: Final = "weights of rows are not read: make them a column"

KEYWORD: Final = re.compile(r"@(relation|attribute|data|end)\b", re.IGNORECASE)
SPECIAL: Final = re.compile(r"""['"%{}]""")
QUOTED: Final = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
BLANK: Final = re.compile(r"[ \t]*")
PLAIN: Final = re.compile(r"[^,%{}]*")
WORD: Final = re.compile(r"[^ \t,%{}]*")
ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
MISSING: Final = "?"

Cells = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute, from a line of the header.

    Attributes:
        parse: Function that returns a cell's number, or None for an illegal cell. If `parse` is None, cells stay texts.
        categories: The categories that the header lists; None if it lists none.
        zero: The value of a cell that a sparse row leaves out; None if no row may leave it out.
    """

    name: str
    kind: FeatureKind
    parse: Callable[[str], float | None] | None = None
    categories: Sequence[str] | None = None
    zero: str | None = None


@dataclass(slots=True)
class Line:
    """A line of an ARFF file, read from left to right; `at` is the index in `text` of the next character."""

    number: int
    text: str
    at: int = 0

    def fault(self, message: str) -> DataError:
        """Return the error of this line. `message` must not contain the text of a cell."""
        return DataError([Fault("", "not_arff", f"not ARFF: line {self.number}: {message}")])

    def next(self) -> str:
        """Move to the next character that is not blank, and return it; "" at the end of the line and at a comment."""
        self.at = _end(BLANK, self.text, self.at)
        return self.text[self.at : self.at + 1].replace("%", "")

    def take(self, character: str) -> bool:
        """Skip blanks and, if `character` comes next, skip it and return true; otherwise return false."""
        is_next = self.next() == character
        self.at += is_next
        return is_next

    def cell(self, plain: re.Pattern[str] = PLAIN) -> str | None:
        """Read a text with or without quotes; return None for ``?`` without quotes."""
        if self.next() in ("'", '"'):
            match = QUOTED.match(self.text, self.at)
            if match is None:
                raise self.fault("a quote is not closed")
            self.at = match.end()
            return ESCAPE.sub(_unescaped, match[1] if match[1] is not None else match[2])
        end = _end(plain, self.text, self.at)
        text = self.text[self.at : end].rstrip(" \t")
        if not text:
            raise self.fault("a cell is empty: a missing one is written ?, an empty text ''")
        self.at = end
        return None if text == MISSING else text

    def word(self) -> str | None:
        """Read a text in quotes, or up to the next blank, comma, brace or %; return None for ``?`` without quotes."""
        return self.cell(WORD)


def read_arff(source: Source, assembler: TableAssembler) -> Iterator[Block]:
    """Yield the blocks of an ARFF file in UTF-8.

    Raises:
        DataError: The file is not ARFF or has no rows; or a type, a number of cells or a category is not legal.
    """
    lines = _lines(source)
    attributes = [
        # A column that is declared to have categories keeps its texts.
        replace(attribute, parse=None) if assembler.declared.column(attribute.name).kind in CODED_KINDS else attribute
        for attribute in _header(lines, assembler.limits)
    ]
    missing = frozenset(assembler.declared.missing_values)
    zeros = [attribute.zero for attribute in attributes]
    sized = ((len(line.text), line) for line in lines)
    for block in in_blocks(sized, max(1, CELLS_AT_ONCE // len(attributes))):
        cells = zip(*(_cells_of_row(line, zeros) for line in block), strict=True)
        columns = zip(attributes, cells, strict=True)
        yield Block(len(block), tuple(_column(attribute, each, block, missing) for attribute, each in columns))
    if not assembler.n_rows:
        raise DataError([Fault("", "empty", f"the ARFF has {len(attributes)} attributes and no rows below @data")])


def _column(attribute: Attribute, cells: Cells, lines: Sequence[Line], missing: frozenset[str]) -> RawColumn:
    """Return a column. A cell that cannot be parsed becomes infinite, which `espalier.data.inference` reports later."""
    if attribute.parse is not None:
        # Numbers that mean a missing value are replaced later, because they may be declared as categories.
        absent = {None, *(text for text in missing if number_from_text(text) is None)}
        numbers: dict[str | None, float] = dict.fromkeys(absent, np.nan)
        for cell in set(cells):
            if cell is not None and cell not in absent:
                number = attribute.parse(cell)
                numbers[cell] = np.inf if number is None else number
        return RawColumn(attribute.name, attribute.kind, np.array([numbers[cell] for cell in cells]))
    if attribute.categories is None:
        return column_from_labels(attribute.name, cells, kind=attribute.kind)
    categories = tuple(attribute.categories)
    known = dict.fromkeys([None, *missing], -1) | {category: code for code, category in enumerate(categories)}
    codes = np.array([known.get(cell, -2) for cell in cells], dtype=np.int32)
    if np.any(codes == -2):
        line = lines[int(np.argmax(codes == -2))]
        message = f"line {line.number}: must be one of the categories that the @attribute line lists, or ?"
        raise DataError([Fault(pointer(attribute.name), "unknown_category", message)])
    return RawColumn(attribute.name, attribute.kind, codes, labels=categories, categories_complete=True)


def _lines(source: Source) -> Iterator[Line]:
    for number, content in source.lines():
        try:
            line = Line(number, content.decode())
        except UnicodeDecodeError:
            raise Line(number, "").fault("the line is not UTF-8 text") from None
        if "\0" in line.text:
            raise line.fault("the line has NUL characters")
        if line.next():
            yield line


def _cells_of_row(line: Line, zeros: Sequence[str | None]) -> Cells:
    """Return the cells of a row, None if missing. If `zeros` has None for a column, a sparse row must give its cell."""
    cells: list[str | None]
    if SPECIAL.search(line.text) is None:  # most lines
        cells = [None if cell == MISSING else cell for cell in (cell.strip(" \t") for cell in line.text.split(","))]
        if "" in cells:
            raise line.fault("a cell is empty: a missing one is written ?, an empty text ''")
    elif line.take("{"):
        return _cells_of_sparse_row(line, zeros)
    else:
        cells = [line.cell()]
        while line.take(",") and line.next() != "{":  # a brace begins a weight
            cells.append(line.cell())
        if line.next():
            raise line.fault(f"text follows the last cell; {WEIGHTS}")
    if len(cells) != len(zeros):
        raise line.fault(f"the line has {len(cells)} cells, but the header lists {len(zeros)} attributes")
    return cells


def _cells_of_sparse_row(line: Line, zeros: Sequence[str | None]) -> Cells:
    given: dict[int, str | None] = {}
    is_done = line.take("}")
    while not is_done:
        index = line.word()
        if index is None or not (index.isascii() and index.isdigit() and len(index) < 10) or int(index) >= len(zeros):
            legal = f"a whole number from 0 to {len(zeros) - 1}"
            raise line.fault(f"a sparse cell begins with the number of its attribute, {legal}")
        if int(index) in given:
            raise line.fault(f"attribute number {int(index)} is given twice")
        given[int(index)] = line.cell()
        is_done = not line.take(",")
        if is_done and not line.take("}"):
            raise line.fault("a sparse row ends with }")
    if line.next():
        raise line.fault(f"text follows the last cell; {WEIGHTS}")
    if lacking := [place for place, zero in enumerate(zeros) if zero is None and place not in given]:
        raise line.fault(f"a sparse row must give every text and date; number {lacking[0]} is missing")
    return [given.get(place, zero) for place, zero in enumerate(zeros)]


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else ESCAPED.get(escaped, escaped)


def _header(lines: Iterator[Line], limits: Limits) -> list[Attribute]:
    attributes: dict[str, Attribute] = {}
    for line in lines:
        match = KEYWORD.match(line.text)
        keyword = match[1].lower() if match else ""
        if keyword == "data":
            if not attributes:
                raise line.fault("there are no @attribute lines before it")
            return list(attributes.values())
        if keyword == "attribute" and match:
            line.at = match.end()
            attribute = _attribute(line)
            if attribute.name in attributes:
                message = f"two attributes are called {attribute.name!r} (line {line.number})"
                raise DataError([Fault("", "duplicate", message)])
            attributes[attribute.name] = attribute
            limits.check("columns", len(attributes))
        elif keyword != "relation":
            raise line.fault("before @data there are @relation and @attribute lines only")
    raise DataError([Fault("", "not_arff", "not ARFF: there is no @data line")])


def _attribute(line: Line) -> Attribute:
    word = line.word() if line.next() else ""
    name = MISSING if word is None else word
    if not name or not line.next():
        raise line.fault(f"an attribute has a name and a type; legal: {TYPES}")
    if line.take("{"):
        categories = _categories(line)
        return Attribute(name, FeatureKind.NOMINAL, None, categories, categories[0] if categories else None)
    kind = (line.word() or "").lower()
    if kind == "date":
        pattern = _date_pattern((line.word() or "") if line.next() else DATE_FORMAT)
        if pattern is None:
            legal = ", ".join(DATE_PARTS)
            raise line.fault(f"this date format is not read; legal, each once: {legal}; punctuation, quoted texts")
        attribute = Attribute(name, FeatureKind.DATETIME, partial(_instant_of, pattern))
    elif kind in NUMBERS:
        attribute = Attribute(name, FeatureKind.NUMERIC, number_from_text, zero="0")
    elif kind == "string":
        attribute = Attribute(name, FeatureKind.NOMINAL)
    else:
        raise line.fault(f"this type of attribute is not read; legal: {TYPES}")
    if line.next():
        raise line.fault("unexpected text after the type; weights of attributes are not read")
    return attribute


def _categories(line: Line) -> list[str]:
    cells = [] if line.next() == "}" else [line.cell()]
    while line.take(","):
        cells.append(line.cell())
    categories = [MISSING if cell is None else cell for cell in cells]
    if not line.take("}") or line.next():
        raise line.fault("categories must be in braces, with commas between them and nothing behind them")
    if len(set(categories)) < len(categories):
        raise line.fault("a category is listed twice")
    return categories


def _date_pattern(date_format: str) -> re.Pattern[str] | None:
    """Return a pattern that matches dates of a format; None if a part of the format is not legal."""
    pattern = ""
    seen = set()
    for match in DATE_PART.finditer(date_format):
        part = match[0]
        if part in DATE_PARTS and part not in seen:
            seen.add(part)
            pattern += f"(?P<{DATE_PARTS[part]}>[0-9]{{{len(part)}}})"
        elif match[1] or part == "'":
            return None
        else:
            pattern += re.escape(part if part[0] != "'" else part[1:-1] or "'")
    return re.compile(pattern)


def _instant_of(pattern: re.Pattern[str], text: str) -> float | None:
    """Return a date as seconds since 1970-01-01 UTC; None if the text is not a date."""
    match = pattern.fullmatch(text)
    if match is None:
        return None
    parts = {"year": 1970, "month": 1, "day": 1} | {name: int(digits) for name, digits in match.groupdict().items()}
    millisecond = parts.pop("millisecond", 0)
    try:
        return datetime(**parts, tzinfo=UTC).timestamp() + millisecond / 1000
    except ValueError:
        return None
