"""Divide CSV into blocks of whole lines, so that the text need not be in memory as a whole.

A line end inside quotes is part of a cell. If quotes are used as in RFC 4180 (around whole cells, and doubled inside),
a line end is inside quotes if and only if an odd number of quotes precede it. In other text, such as ``5" pipe,x``, the
csv module finds the ends of the rows.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from espalier.arrays import Places
from espalier.data.readers.source import BYTE_ORDER_MARK, ByteStream
from espalier.errors import DataError, Fault

LINE_ENDS: Final = b"\r\n"
BESIDE_QUOTES: Final = np.frombuffer(b',\n\r"', dtype=np.uint8)
MAX_LINE_BYTES: Final = 16 * 2**20
"""Maximum bytes of a line of the table. A whole line must be in memory."""
FIRST_BLOCK_BYTES: Final = 2**18
LONG_CELL: Final = "long_cell"
"""Fault code of a cell that is longer than the csv module reads."""
OTHER_SEPARATORS: Final = ";\t|"


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Whole lines of the table, at least one of them not empty.

    Attributes:
        first_line: Number of the block's first line in the text, from 1.
        is_regular: Whether quotes are used as in RFC 4180.
    """

    content: bytes
    first_line: int
    is_regular: bool


def csv_blocks(stream: ByteStream, *, size: int) -> Iterator[CsvBlock]:
    """Divide CSV into blocks: the first holds only the header line, the others grow to about `size` bytes.

    If a read returns fewer bytes than requested, `stream` is at its end.

    Raises:
        DataError: Quotes do not close, or a line is too long.
    """
    line, n_bytes, is_first = 1, max(min(FIRST_BLOCK_BYTES, size), len(BYTE_ORDER_MARK)), True
    content = stream.read(n_bytes)
    waiting, at_end = content.removeprefix(BYTE_ORDER_MARK), len(content) < n_bytes
    while True:
        stripped = waiting.lstrip(LINE_ENDS)
        line += _count_line_ends(waiting[: len(waiting) - len(stripped)])
        waiting = stripped
        quotes = _quotes(waiting)
        end = _end_of_rows(waiting, quotes, only_first=is_first, at_end=at_end)
        if end == len(waiting) and quotes is not None and len(quotes) % 2:
            opening = line + _count_line_ends(waiting[: quotes[-1]])
            raise not_csv(f"the quotes that open in line {opening} do not close")
        if end:
            yield CsvBlock(waiting[:end], line, quotes is not None)
            line += _count_line_ends(waiting[:end])
            waiting = waiting[end:]
            if is_first:
                is_first = False
                continue
            n_bytes = min(2 * n_bytes, size)
        if at_end and not waiting:
            return
        if len(waiting) > MAX_LINE_BYTES:
            message = f"line {line} is longer than {MAX_LINE_BYTES} bytes, or its quotes do not close"
            raise DataError([Fault("", "too_long", message)])
        n_wanted = max(n_bytes, len(waiting))
        content = stream.read(n_wanted)
        waiting, at_end = waiting + content, len(content) < n_wanted


def names_of(blocks: Iterator[CsvBlock]) -> list[str]:
    """Return the column names, which are the cells of the first block.

    Raises:
        DataError: There is no block, or the first block is not CSV.
    """
    for first in blocks:
        return next(names for _, names in _lines_of(first))
    raise DataError([Fault("", "empty", "the CSV is empty: the first line must hold the column names")])


def check_names(names: Sequence[str]) -> None:
    """Check that each column has a unique name.

    Raises:
        DataError: A column has no name, or two columns have the same name.
    """
    faults = [
        Fault("", "empty_name", f"column {place + 1} has no name") for place, name in enumerate(names) if name == ""
    ]
    twice = sorted(name for name, n_columns in Counter(names).items() if name and n_columns > 1)
    faults += [Fault("", "duplicate", f"two columns are called {name!r}") for name in twice]
    DataError.raise_for(faults)


def rows_of(block: CsvBlock, names: Sequence[str]) -> list[list[str]]:
    """Return the rows of a block, split by the csv module into one cell per name.

    Raises:
        DataError: The block is not UTF-8 or not CSV, or a line has a wrong number of cells. The message gives the line.
    """
    rows = []
    for line, row in _lines_of(block):
        if len(row) != len(names):
            first = f"the first line has {len(names)} name{'s' if len(names) > 1 else ''}"
            message = f"line {line} has {len(row)} cells, {first}"
            if len(names) == 1 and any(sign in names[0] for sign in OTHER_SEPARATORS):
                message += ": cells must be separated by commas"
            raise DataError([Fault("", "ragged", message)])
        rows.append(row)
    return rows


def not_csv(message: str, code: str = "not_csv") -> DataError:
    """Return the error of a text that is not CSV."""
    return DataError([Fault("", code, f"not CSV: {message}")])


def _lines_of(block: CsvBlock) -> Iterator[tuple[int, list[str]]]:
    """Yield, for each row that is not empty, the number of its last line and its cells."""
    try:
        text = block.content.decode()
    except UnicodeDecodeError as error:
        line = block.first_line + _count_line_ends(block.content[: error.start])
        raise not_csv(f"line {line} is not UTF-8 text") from None
    if "\0" in text:
        line = block.first_line + _count_line_ends(block.content[: block.content.index(b"\0")])
        raise not_csv(f"line {line} has NUL characters")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from ((block.first_line + reader.line_num - 1, row) for row in reader if row)
    except csv.Error as error:
        line = block.first_line + reader.line_num - 1
        if str(error).startswith("field larger than"):
            message = f"line {line} has a cell of more than {csv.field_size_limit()} characters"
            raise not_csv(message, LONG_CELL) from None
        raise not_csv(f"line {line}: {error}") from None


def _count_line_ends(content: bytes) -> int:
    text = np.frombuffer(content, dtype=np.uint8)  # an array, because `bytes.count` takes several times as long
    n_feeds = int(np.count_nonzero(text == ord("\n")))
    return n_feeds + content.count(b"\r") - content.count(b"\r\n") if b"\r" in content else n_feeds


def _quotes(content: bytes) -> Places | None:
    """Return the indexes of quotes; None if an opening quote starts no cell, or a closing quote ends no cell."""
    if b'"' not in content:
        return np.empty(0, dtype=np.intp)
    text = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    opening, closing = quotes[0::2], quotes[1::2]
    before = text[opening[opening > 0] - 1]
    after = text[closing[closing < len(text) - 1] + 1]
    is_regular = bool(np.isin(before, BESIDE_QUOTES).all() and np.isin(after, BESIDE_QUOTES).all())
    return quotes if is_regular else None


def _end_of_rows(content: bytes, quotes: Places | None, *, only_first: bool, at_end: bool) -> int:
    """Return the end of the last complete row, or of the first if `only_first`; 0 if no row is known to be complete.

    `at_end`: whether the file ends here, which completes the last row. `quotes`: the result of `_quotes`.
    """
    whole = len(content) if at_end else 0
    if only_first:
        return next(_row_ends(content), whole)
    if at_end:
        return whole
    if quotes is None:
        return max(_row_ends(content), default=0)
    text = np.frombuffer(content.removesuffix(b"\r"), dtype=np.uint8)  # a line feed may follow
    for start in (max(0, len(text) - FIRST_BLOCK_BYTES), 0):  # a row almost always ends near the end
        ends = start + np.flatnonzero((text[start:] == ord("\n")) | (text[start:] == ord("\r")))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        if len(ends):
            return int(ends[-1]) + 1
    return 0


def _row_ends(content: bytes) -> Iterator[int]:
    """Yield the index at which the csv module ends each non-empty row, except the index at the end of the content."""
    lines = io.StringIO(content.decode("latin-1"), newline="")
    try:
        yield from (lines.tell() for row in csv.reader(lines) if row and lines.tell() < len(content))
    except csv.Error:  # a cell is too long, which is reported once the block is read
        if lines.tell() < len(content):
            yield lines.tell()
