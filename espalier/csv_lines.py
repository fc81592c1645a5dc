"""CSV that comes in pieces, cut where a line of the table ends: in memory there is a piece, whatever comes in all.

A line end inside quotes is part of a cell. Where quotes stand as RFC 4180 has them, around whole cells and doubled
inside, a line end belongs to a cell exactly if an odd number of quotes stands before it. In other files, which are
legal too (``5" pipe,x``), only reading from the start tells cells from lines: from there on they are cut by a reader
of cells, line by line::

    names ↵ | a,b ↵ c,"d ↵ e" ↵ | f,g ↵ h,i ↵ | j,5" ↵ | k,l ↵ …
             content               content       cells    cells
"""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from espalier.csv_compiled import LINE_FEED, PADDING, Lines, WholeLines, whole_lines
from espalier.csv_text import unreadable
from espalier.errors import DataError, Fault

__all__ = ["ByteStream", "Piece", "lines_of", "pieces_of_csv", "reading_into"]

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
QUOTE: Final = ord('"')
BESIDE_QUOTES: Final = np.array([ord(sign) for sign in ',\n\r"'], dtype=np.uint8)
LONGEST_LINE: Final = 16 * 2**20
"""Bytes of one line of the table; what is longer would have to be held whole."""
EMPTY_LINES: Final = re.compile(r"[\r\n]*\n")
LINES_AT_ONCE: Final = 4_096
FIRST_BYTES: Final = 2**18
"""Of the first piece: small, so that what is made of it comes soon."""


class ByteStream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes, and none only at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """Some whole lines of the table.

    Attributes:
        first_line: The number of the first of them in the text, from 1.
        lines: As they came; None where they had to be read.
        cells: As they were read; None where they need not be.
        first_byte: Where they begin in the text.
    """

    first_line: int
    lines: Lines | None = None
    cells: list[list[str]] | None = None
    first_byte: int = 0


def pieces_of_csv(stream: ByteStream, *, size: int) -> Iterator[Piece]:
    """Cut CSV into pieces; the first one is the line of the names alone, the others grow to about `size` bytes.

    Raises:
        DataError: A line that does not end within `LONGEST_LINE`, quotes that never close, text that is not UTF-8.
    """
    cutter = _Cutter(stream, size)
    yield from cutter.names()
    yield from cutter.rest()


def reading_into(stream: ByteStream) -> Callable[[memoryview], int]:
    """Give what fills a buffer from a stream, as far as it gives at once; 0 at the end only.

    A stream with a `readinto` of its own needs no copy; where only its `read` is its own, that is what it means.
    """
    own: Any = getattr(stream, "readinto", None)
    kinds = [kind for kind in type(stream).__mro__ if "read" in vars(kind) or "readinto" in vars(kind)]
    if own is not None and kinds and "readinto" in vars(kinds[0]):
        return own  # type: ignore[no-any-return]

    def copied(buffer: memoryview) -> int:
        part = stream.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    return copied


def lines_of(piece: Piece) -> Iterator[tuple[int, list[str]]]:
    """Give the cells of each line of a piece with the number of the text's line where it ends; empty lines are none.

    Raises:
        DataError: The piece is not UTF-8, or not CSV.
    """
    if piece.lines is None:
        yield from ((piece.first_line + place, line) for place, line in enumerate(piece.cells or ()))
        return
    content = piece.lines.content
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = piece.first_line + content.count(b"\n", 0, error.start)
        raise _not_csv(f"line {line} is not UTF-8 text") from None
    if "\0" in text:
        line = piece.first_line + text.count("\n", 0, text.index("\0"))
        raise _not_csv(f"it holds NUL characters, in line {line}")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from ((piece.first_line + reader.line_num - 1, line) for line in reader if line)
    except csv.Error as error:
        raise unreadable(piece.first_line + reader.line_num - 1, error) from None


class _Cutter:
    """Receives the text into blocks, and cuts each at a line end; what is behind goes to the next one's begin::

    block     names ↵ a,b ↵ c,d ↵ e,    | … | padding
    a piece   |──────────────────|
    """

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._read_into = reading_into(stream)
        self._size, self._largest = min(FIRST_BYTES, size), size
        self._block = np.empty(0, dtype=np.uint8)
        self._n_waiting = 0  # bytes of the block
        self._at_end = False
        self._line = 1
        self._n_cut = 0
        self._inside = False  # where lines are read: whether the last one went on within quotes
        self._fill(self._size)
        if self._waiting.startswith(BYTE_ORDER_MARK):
            self._pass_over(len(BYTE_ORDER_MARK))

    def names(self) -> Iterator[Piece]:
        """Cut off the first line that is not empty; where it cannot be cut, read it and all that follows."""
        while True:
            n_bytes = _empty_lines(self._waiting)
            self._line += _n_line_ends(self._waiting[:n_bytes])
            self._pass_over(n_bytes)
            waiting = self._waiting
            quotes = _quotes(waiting)
            end = -1 if quotes is None else _first_end(waiting, quotes, at_end=self._at_end)
            if end > 0:
                yield self._cut(end)
                return
            if quotes is None:
                yield from self._read_rest(at_first=1)
                return
            if self._at_end:
                if self._n_waiting:
                    yield self._whole(quotes)
                return
            self._fill(self._size)

    def rest(self) -> Iterator[Piece]:
        """Cut what comes after the names."""
        while self._n_waiting or not self._at_end:
            seen = None if self._at_end else whole_lines(self._block[: self._n_waiting], first_byte=self._n_cut)
            if seen is not None:
                yield self._cut(seen.end, seen)
                self._size = min(2 * self._size, self._largest)
                self._fill(self._size)
                continue
            waiting = self._waiting
            quotes = _quotes(waiting)
            if quotes is None:
                yield from self._read_rest()
            elif self._at_end:
                yield self._whole(quotes)
            else:
                end = _last_end(waiting, quotes)
                if end:
                    yield self._cut(end)
                    self._size = min(2 * self._size, self._largest)
                self._fill(max(self._size, self._n_waiting))

    @property
    def _waiting(self) -> bytes:
        """A copy of what was received and is not cut."""
        return self._block[: self._n_waiting].tobytes()

    def _fill(self, wanted: int) -> None:
        """Receive so many bytes more, into a block of their own with what waits."""
        if self._n_waiting > LONGEST_LINE:
            message = f"line {self._line} is longer than {LONGEST_LINE} bytes, or its quotes do not close"
            raise DataError([Fault("", "too_long", message)])
        n_bytes, size = self._n_waiting, self._n_waiting + wanted
        block = np.empty(size + PADDING, dtype=np.uint8)
        block[:n_bytes] = self._block[:n_bytes]
        buffer = block.data[:size]
        while n_bytes < size and (n_more := self._read_into(buffer[n_bytes:])):
            n_bytes += n_more
        self._block, self._n_waiting, self._at_end = block, n_bytes, n_bytes < size

    def _pass_over(self, n_bytes: int) -> None:
        self._block = self._block[n_bytes:]
        self._n_waiting -= n_bytes

    def _whole(self, quotes: npt.NDArray[np.intp]) -> Piece:
        """Cut off all that is left."""
        if len(quotes) % 2:
            line = self._line + self._waiting.count(b"\n", 0, int(quotes[-1]))
            raise _not_csv(f"the quotes that open in line {line} do not close")
        return self._cut(self._n_waiting)

    def _cut(self, end: int, seen: WholeLines | None = None) -> Piece:
        block, n_behind = self._block, self._n_waiting - end
        if not n_behind:
            block[end] = LINE_FEED
        seen = seen or WholeLines(end, _n_line_ends(block[:end].tobytes()))
        lines = Lines(block[: end + PADDING], seen.n_feeds, is_plain=seen.is_plain)
        piece = Piece(self._line, lines, first_byte=self._n_cut)
        self._block, self._n_waiting = np.empty(n_behind + PADDING, dtype=np.uint8), n_behind
        self._block[:n_behind] = block[end : end + n_behind]
        self._n_cut += end
        self._line += seen.n_feeds
        return piece

    def _read_rest(self, *, at_first: int | None = None) -> Iterator[Piece]:
        """Read cells from here on, line by line; `at_first` lines stand in the first piece."""
        reader = csv.reader(self._texts(), strict=True)
        wanted = at_first or LINES_AT_ONCE
        first = self._line
        cells: list[list[str]] = []
        try:
            for line in reader:
                self._inside = False
                cells += [line] if line else []
                if len(cells) >= wanted:
                    yield Piece(first, cells=cells)
                    first, cells, wanted = self._line, [], LINES_AT_ONCE
        except csv.Error as error:
            raise unreadable(self._line - 1, error) from None
        if cells:
            yield Piece(first, cells=cells)

    def _texts(self) -> Iterator[str]:
        """Give the lines of the text, with their ends; of those between lines of the table none that is empty."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        waiting = ""
        while True:
            try:
                waiting += decoder.decode(self._waiting, final=self._at_end)
            except UnicodeDecodeError:
                raise _not_csv(f"it is not UTF-8 text, in or after line {self._line}") from None
            at = 0
            while (end := waiting.find("\n", at) + 1) > 0:
                if not self._inside and (empty := EMPTY_LINES.match(waiting, at)) is not None:
                    # Without a step of Python for each: some hundred millions of them are a small upload, packed.
                    self._line += waiting.count("\n", at, empty.end())
                    at = empty.end()
                    continue
                line, at = waiting[at:end], end
                self._line += 1
                if "\0" in line:
                    raise _not_csv(f"it holds NUL characters, in line {self._line - 1}")
                self._inside = True
                yield line
            waiting = waiting[at:]
            self._n_waiting = 0
            if self._at_end:
                break
            if len(waiting) > LONGEST_LINE:
                raise DataError([Fault("", "too_long", f"line {self._line} is longer than {LONGEST_LINE} signs")])
            self._fill(self._size)
        if waiting:
            self._line += 1
            yield waiting


def _empty_lines(content: bytes) -> int:
    """Give how many bytes the line ends at the start are."""
    return len(content) - len(content.lstrip(b"\r\n"))


def _n_line_ends(content: bytes) -> int:
    return content.count(b"\n") or content.count(b"\r")


def _quotes(content: bytes) -> npt.NDArray[np.intp] | None:
    """Give the places of the quotes; None where one stands elsewhere than it should."""
    if b'"' not in content:
        return np.empty(0, dtype=np.intp)
    signs = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(signs == QUOTE)
    opening, closing = quotes[0::2], quotes[1::2]
    before = signs[opening[opening > 0] - 1]
    after = signs[closing[closing < len(signs) - 1] + 1]
    regular = bool(np.isin(before, BESIDE_QUOTES).all() and np.isin(after, BESIDE_QUOTES).all())
    return quotes if regular else None


def _first_end(content: bytes, quotes: npt.NDArray[np.intp], *, at_end: bool) -> int:
    """Give where the first line of the table ends; -1 where that is not seen yet."""
    at = 0
    while (end := _end_after(content, at, at_end=at_end)) > 0:
        if np.searchsorted(quotes, end) % 2 == 0:
            return end
        at = end
    return -1


def _last_end(content: bytes, quotes: npt.NDArray[np.intp]) -> int:
    """Give where the last whole line of the table ends; 0 where there is none."""
    end = len(content)
    while end > 0:
        line_end = content.rfind(b"\n", 0, end) + 1
        if not line_end:
            line_end = content.rfind(b"\r", 0, end - 1) + 1
        n_before = int(np.searchsorted(quotes, line_end))
        if n_before % 2 == 0:
            return line_end
        end = int(quotes[n_before - 1])  # the line end is inside of these quotes: before they open
    return 0


def _end_after(content: bytes, at: int, *, at_end: bool) -> int:
    """Give the place after the first line end from `at` on; -1 where there is none, or its second half may come."""
    ends = [place for sign in (b"\n", b"\r") if (place := content.find(sign, at)) >= 0]
    if not ends:
        return -1
    end = min(ends) + 1
    if content[end - 1 : end] == b"\n":
        return end
    if end == len(content) and not at_end:
        return -1
    return end + 1 if content[end : end + 1] == b"\n" else end


def _not_csv(message: str) -> DataError:
    return DataError([Fault("", "not_csv", f"not CSV: {message}")])
