r"""ARFF, the format of Weka, as stretches of a table.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from espalier.arff_lines import BadLineError, Rest, cells_of_row, date_reader, instant_of, uncommented
from espalier.errors import DataError, Fault, pointer
from espalier.frame_column import FrameColumn
from espalier.gathering import Block, Gatherer
from espalier.json_tables import lines_of
from espalier.limits import Limits
from espalier.marks import number_from_text
from espalier.schema import FeatureKind
from espalier.sources import Source

__all__ = ["arff_blocks"]

CELLS_AT_ONCE: Final = 500_000
NUMBERS: Final = frozenset({"numeric", "real", "integer"})
DATE_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss"
KEYWORD: Final = re.compile(r"@(relation|attribute|data|end)\b", re.IGNORECASE)
TYPES: Final = "numeric, real, integer, string, date, or categories in braces"

Cells = Sequence[str | None]
Made = TypeVar("Made")
Column = Callable[[str, Cells, Sequence[int]], FrameColumn]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One line of the header.

    Attributes:
        name: Of the column.
        column: Makes it of its cells; the second argument are the numbers of their lines, for messages.
        zero: What a sparse row means that leaves it out; None: it must not.
    """

    name: str
    column: Column
    zero: str | None


def arff_blocks(source: Source, gatherer: Gatherer, *, limits: Limits) -> Iterator[Block]:
    """Read ARFF, UTF-8.

    Raises:
        DataError: Not ARFF, a type that is not read, a row of another length, a category that is not listed; by line.
        TooLarge: A line is too long, or there are too many columns.
    """
    lines = _lines(source, limits)
    attributes = _header(lines, frozenset(gatherer.missing_values), limits)
    zeros = [attribute.zero for attribute in attributes]
    at_once = max(1, CELLS_AT_ONCE // len(attributes))
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    for number, line in lines:
        rows.append(_at(number, cells_of_row, line, zeros))
        numbers.append(number)
        if len(rows) == at_once:
            yield _block(attributes, rows, numbers, gatherer)
            rows, numbers = [], []
    if rows:
        yield _block(attributes, rows, numbers, gatherer)
    elif not gatherer.n_rows:
        message = f"the ARFF has {len(attributes)} attributes and no rows below @data"
        raise DataError([Fault("", "empty", message)])


def _lines(source: Source, limits: Limits) -> Iterator[tuple[int, str]]:
    """Give the lines that hold more than a comment, each with its number from 1."""
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
        found = KEYWORD.match(line)
        keyword = found[1].lower() if found else ""
        if keyword == "data":
            if not attributes:
                raise _fault(number, "there are no @attribute lines before it")
            return list(attributes.values())
        if keyword == "attribute" and found:
            attribute = _at(number, _attribute, line[found.end() :], missing)
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
        kept = tuple(category for category in categories if category not in missing)
        return Attribute(name, partial(_nominal, kept, missing), categories[0] if categories else None)
    kind = (rest.word() or "").lower()
    column: Column
    zero: str | None
    if kind == "date":
        pattern = date_reader((rest.word() or "") if rest.next() else DATE_FORMAT)
        column, zero = partial(_dates, pattern, missing), None
    elif kind in NUMBERS:
        column, zero = partial(_numbers, missing), "0"
    elif kind == "string":
        column, zero = _texts, None
    else:
        raise BadLineError(f"this type of attribute is not read; legal: {TYPES}")
    if rest.next():
        raise BadLineError("more follows the type; weights of attributes are not read")
    return Attribute(name, column, zero)


def _block(
    attributes: Sequence[Attribute], rows: Sequence[list[str | None]], numbers: Sequence[int], gatherer: Gatherer
) -> Block:
    columns = zip(attributes, zip(*rows, strict=True), strict=True)
    return Block(
        len(rows),
        tuple(
            attribute.column(attribute.name, cells, numbers)
            for attribute, cells in columns
            if gatherer.wants(attribute.name)
        ),
    )


def _numbers(missing: frozenset[str], name: str, cells: Cells, _: Sequence[int]) -> FrameColumn:
    return _floats(name, FeatureKind.NUMERIC, number_from_text, missing, cells)


def _dates(pattern: re.Pattern[str], missing: frozenset[str], name: str, cells: Cells, _: Sequence[int]) -> FrameColumn:
    return _floats(name, FeatureKind.DATETIME, partial(instant_of, pattern), missing, cells)


def _floats(
    name: str, kind: FeatureKind, read: Callable[[str], float | None], missing: frozenset[str], cells: Cells
) -> FrameColumn:
    """Make a column of numbers; what was no number is infinite, and refused with its row later."""
    table: dict[str | None, float] = {None: np.nan}
    for cell in set(cells):
        if cell is not None:
            value = np.nan if cell in missing else read(cell)
            table[cell] = np.inf if value is None else value
    values = np.array([table[cell] for cell in cells], dtype=np.float64)
    return FrameColumn(name, kind, values, owned=True)


def _texts(name: str, cells: Cells, _: Sequence[int]) -> FrameColumn:
    known: dict[str, int] = {}
    codes = [-1 if cell is None else known.setdefault(cell, len(known)) for cell in cells]
    return FrameColumn(name, FeatureKind.NOMINAL, np.array(codes, dtype=np.int32), labels=tuple(known))


def _nominal(
    categories: tuple[str, ...], missing: frozenset[str], name: str, cells: Cells, numbers: Sequence[int]
) -> FrameColumn:
    table: dict[str | None, int] = {None: -1, **dict.fromkeys(missing, -1)}
    table.update({category: code for code, category in enumerate(categories)})
    codes = np.array([table.get(cell, -2) for cell in cells], dtype=np.int32)
    if np.any(codes == -2):
        line = numbers[int(np.argmax(codes == -2))]
        message = f"line {line}: must be one of the categories that the @attribute line lists, or ?"
        raise DataError([Fault(pointer(name), "unknown_category", message)])
    return FrameColumn(name, FeatureKind.NOMINAL, codes, labels=categories, listed=True)


def _at(number: int, make: Callable[..., Made], *arguments: Any) -> Made:
    """Make something of a line; what is wrong with it gets its number."""
    try:
        return make(*arguments)
    except BadLineError as error:
        raise _fault(number, str(error)) from None


def _fault(number: int, message: str) -> DataError:
    return DataError([Fault("", "not_arff", f"not ARFF: line {number}: {message}")])
