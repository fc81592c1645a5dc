"""CSV cut into blocks of whole lines: one block is in memory, however long the text is.

A line end inside quotes is part of a cell. Where quotes are used as RFC 4180 has them, around whole cells and doubled
inside, a line end belongs to a cell exactly if the number of quotes before it is odd. Other text, which is legal too
(``5" pipe,x``), is split into cells from the start only: from there on the csv module reads it line by line.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from espalier.data.readers.source import ByteStream
from espalier.errors import DataError, Fault

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
BESIDE_QUOTES: Final = np.frombuffer(b',\n\r"', dtype=np.uint8)
MAX_LINE_BYTES: Final = 16 * 2**20
"""Bytes of a line of the table: it must be in memory as a whole."""
FIRST_BLOCK_BYTES: Final = 2**18
EMPTY_LINES: Final = re.compile(r"[\r\n]*\n")
LINES_AT_ONCE: Final = 4_096
LONG_CELL: Final = "long_cell"
"""Code of a fault: a cell is longer than the csv module reads."""
OTHER_SEPARATORS: Final = ";\t|"


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Whole lines of the table: either as text, UTF-8 not checked yet, or split into cells.

    Attributes:
        first_line: Number of the first of them in the text, from 1.
        content: The lines; None if they are split already.
        rows: Their cells, if they are split.
    """

    first_line: int
    content: bytes | None = None
    rows: tuple[list[str], ...] = ()


def csv_blocks(stream: ByteStream, *, size: int) -> Iterator[CsvBlock]:
    """Cut CSV into blocks: the first holds the line of the names alone, the others grow to about `size` bytes."""
    cutter = _Cutter(stream, size)
    yield from cutter.names()
    yield from cutter.rest()


def rows_of(block: CsvBlock) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line that is not empty, with the number of the line of the text where it ends.

    Raises:
        DataError: The block is not UTF-8, or not CSV.
    """
    if block.content is None:
        yield from ((block.first_line + place, row) for place, row in enumerate(block.rows))
        return
    try:
        text = block.content.decode()
    except UnicodeDecodeError as error:
        line = block.first_line + block.content.count(b"\n", 0, error.start)
        raise not_csv(f"line {line} is not UTF-8 text") from None
    if "\0" in text:
        line = block.first_line + text.count("\n", 0, text.index("\0"))
        raise not_csv(f"it holds NUL characters, in line {line}")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from ((block.first_line + reader.line_num - 1, row) for row in reader if row)
    except csv.Error as error:
        raise unreadable(block.first_line + reader.line_num - 1, error) from None


class _Cutter:
    """Reads the text and cuts it at line ends; the rest after the last line end is the start of the next block."""

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream = stream
        self._size, self._max_size = min(FIRST_BLOCK_BYTES, size), size
        self._waiting = b""
        self._at_end = False
        self._line = 1
        self._is_inside = False  # where the csv module reads: whether the last line goes on within quotes
        self._fill(max(self._size, len(BYTE_ORDER_MARK)))
        self._waiting = self._waiting.removeprefix(BYTE_ORDER_MARK)

    def names(self) -> Iterator[CsvBlock]:
        """Cut off the first line that is not empty; if it cannot be cut, read it and all that follows."""
        while True:
            stripped = self._waiting.lstrip(b"\r\n")
            self._line += _count_line_ends(self._waiting[: len(self._waiting) - len(stripped)])
            self._waiting = stripped
            quotes = _quotes(stripped)
            if quotes is None:
                yield from self._read_rest(n_first=1)
                return
            end = _first_end(stripped, quotes, at_end=self._at_end)
            if end > 0:
                yield self._cut(end)
                return
            if self._at_end:
                if stripped:
                    yield self._cut_all(quotes)
                return
            self._fill(self._size)

    def rest(self) -> Iterator[CsvBlock]:
        """Cut what follows the names."""
        while self._waiting or not self._at_end:
            quotes = _quotes(self._waiting)
            if quotes is None:
                yield from self._read_rest()
            elif self._at_end:
                yield self._cut_all(quotes)
            else:
                end = _last_end(self._waiting, quotes)
                if end:
                    yield self._cut(end)
                    self._size = min(2 * self._size, self._max_size)
                self._fill(max(self._size, len(self._waiting)))

    def _fill(self, n_bytes: int) -> None:
        """Read so many bytes more."""
        if len(self._waiting) > MAX_LINE_BYTES:
            message = f"line {self._line} is longer than {MAX_LINE_BYTES} bytes, or its quotes do not close"
            raise DataError([Fault("", "too_long", message)])
        parts = [self._waiting]
        while n_bytes > 0 and (part := self._stream.read(n_bytes)):
            parts.append(part)
            n_bytes -= len(part)
        self._waiting, self._at_end = b"".join(parts), n_bytes > 0

    def _cut_all(self, quotes: npt.NDArray[np.intp]) -> CsvBlock:
        if len(quotes) % 2:
            line = self._line + self._waiting.count(b"\n", 0, int(quotes[-1]))
            raise not_csv(f"the quotes that open in line {line} do not close")
        return self._cut(len(self._waiting))

    def _cut(self, end: int) -> CsvBlock:
        block = CsvBlock(self._line, self._waiting[:end])
        self._line += _count_line_ends(self._waiting[:end])
        self._waiting = self._waiting[end:]
        return block

    def _read_rest(self, *, n_first: int | None = None) -> Iterator[CsvBlock]:
        """Split all that follows into cells, line by line; the first block has `n_first` rows."""
        reader = csv.reader(self._lines(), strict=True)
        n_wanted = n_first or LINES_AT_ONCE
        first = self._line
        rows: list[list[str]] = []
        try:
            for row in reader:
                self._is_inside = False
                rows += [row] if row else []
                if len(rows) >= n_wanted:
                    yield CsvBlock(first, rows=tuple(rows))
                    first, rows, n_wanted = self._line, [], LINES_AT_ONCE
        except csv.Error as error:
            raise unreadable(self._line - 1, error) from None
        if rows:
            yield CsvBlock(first, rows=tuple(rows))

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the text with their ends, but no empty lines between lines of the table."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        waiting = ""
        while True:
            try:
                waiting += decoder.decode(self._waiting, final=self._at_end)
            except UnicodeDecodeError:
                raise not_csv(f"it is not UTF-8 text, in or after line {self._line}") from None
            at = 0
            while (end := waiting.find("\n", at) + 1) > 0:
                if not self._is_inside and (empty := EMPTY_LINES.match(waiting, at)) is not None:
                    # Not one by one: a small packed upload may hold some hundred millions of them.
                    self._line += waiting.count("\n", at, empty.end())
                    at = empty.end()
                    continue
                line, at = waiting[at:end], end
                self._line += 1
                if "\0" in line:
                    raise not_csv(f"it holds NUL characters, in line {self._line - 1}")
                self._is_inside = True
                yield line
            waiting, self._waiting = waiting[at:], b""
            if self._at_end:
                break
            if len(waiting) > MAX_LINE_BYTES:
                message = f"line {self._line} is longer than {MAX_LINE_BYTES} characters"
                raise DataError([Fault("", "too_long", message)])
            self._fill(self._size)
        if waiting:
            self._line += 1
            yield waiting


def _count_line_ends(content: bytes) -> int:
    return content.count(b"\n") or content.count(b"\r")


def _quotes(content: bytes) -> npt.NDArray[np.intp] | None:
    """Return the places of the quotes; None if one is neither at the start nor at the end of a cell."""
    if b'"' not in content:
        return np.empty(0, dtype=np.intp)
    text = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    opening, closing = quotes[0::2], quotes[1::2]
    before = text[opening[opening > 0] - 1]
    after = text[closing[closing < len(text) - 1] + 1]
    is_regular = bool(np.isin(before, BESIDE_QUOTES).all() and np.isin(after, BESIDE_QUOTES).all())
    return quotes if is_regular else None


def _first_end(content: bytes, quotes: npt.NDArray[np.intp], *, at_end: bool) -> int:
    """Return where the first line of the table ends; -1 if that is not known yet."""
    at = 0
    while (end := _end_after(content, at, at_end=at_end)) > 0:
        if np.searchsorted(quotes, end) % 2 == 0:
            return end
        at = end
    return -1


def _last_end(content: bytes, quotes: npt.NDArray[np.intp]) -> int:
    """Return where the last whole line of the table ends; 0 if there is none."""
    end = len(content)
    while end > 0:
        line_end = content.rfind(b"\n", 0, end) + 1
        if not line_end:
            line_end = content.rfind(b"\r", 0, end - 1) + 1
        n_before = int(np.searchsorted(quotes, line_end))
        if n_before % 2 == 0:
            return line_end
        end = int(quotes[n_before - 1])  # the line end is within these quotes: search before they open
    return 0


def _end_after(content: bytes, at: int, *, at_end: bool) -> int:
    """Return the place after the first line end from `at` on; -1 if there is none, or its second half may follow."""
    ends = [place for sign in (b"\n", b"\r") if (place := content.find(sign, at)) >= 0]
    if not ends:
        return -1
    end = min(ends) + 1
    if content[end - 1 : end] == b"\n":
        return end
    if end == len(content) and not at_end:
        return -1
    return end + 1 if content[end : end + 1] == b"\n" else end


# What is wrong with a text


def not_csv(message: str) -> DataError:
    """Return the error of a text that is no CSV."""
    return DataError([Fault("", "not_csv", f"not CSV: {message}")])


def unreadable(line: int, error: csv.Error) -> DataError:
    """Return the error of a line that the csv module rejects; it also limits the length of a cell."""
    is_long = str(error).startswith("field larger than")
    what = f" has a cell of more than {csv.field_size_limit()} characters" if is_long else f": {error}"
    return DataError([Fault("", LONG_CELL if is_long else "not_csv", f"not CSV: line {line}{what}")])


def ragged(line: int, n_cells: int, names: Sequence[str]) -> DataError:
    """Return the error of a line that has another number of cells than there are names."""
    message = f"line {line} has {n_cells} cells, the first line has {len(names)} name{'s' if len(names) > 1 else ''}"
    if len(names) == 1 and any(sign in names[0] for sign in OTHER_SEPARATORS):
        message += ": cells must be separated by commas"
    return DataError([Fault("", "ragged", message)])


def check_names(names: Sequence[str]) -> None:
    """Check that each column has a unique name.

    Raises:
        DataError: Every column that has none.
    """
    if not names:
        raise DataError([Fault("", "empty", "the CSV is empty: the first line must hold the column names")])
    faults = [
        Fault("", "empty_name", f"column {place + 1} has no name") for place, name in enumerate(names) if name == ""
    ]
    twice = sorted(name for name, n_columns in Counter(names).items() if name and n_columns > 1)
    faults += [Fault("", "duplicate", f"two columns are called {name!r}") for name in twice]
    if faults:
        raise DataError(faults)
