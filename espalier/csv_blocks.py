"""CSV as stretches of a table: parsed on two threads, by compiled code or by pyarrow, else line by line.

All ways give the same cells. Compiled code reads plain CSV. pyarrow, where there is no compiled code or a piece is not
plain, is asked for numbers only where they are wanted, and what it takes for one is one here too. Where it finds none,
or a line that does not fit, the piece is looked at again in the slow way, which knows. A short file is read in the slow
way from the start: loading the others would take longer.
"""

import csv
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import chain, islice
from typing import Any, Final, TypeVar

import numpy as np

from espalier.csv_compiled import Labelled, Lines, PlainPiece, is_compiled, read_plain
from espalier.csv_lines import LONGEST_LINE, Piece, lines_of, pieces_of_csv
from espalier.csv_text import LONG_CELL, check_names, ragged
from espalier.errors import DataError, Fault, TooLarge
from espalier.frame_column import FrameColumn
from espalier.gathering import Block, Gatherer
from espalier.limits import Limits
from espalier.sources import Source

__all__ = ["by_compiled_code", "by_pyarrow", "csv_blocks"]

PIECE: Final = 2_097_152
"""Bytes of a piece, but for the first ones, which are smaller."""
WORTH_LOADING: Final = 65_536
"""Bytes of a first piece from which on compiled code or pyarrow is loaded."""
THREADS: Final = 2
AHEAD: Final = 3
"""Pieces that are parsed, or wait for it, at a time."""
CELLS_AT_ONCE: Final = 500_000
"""Cells of a block that is read in the slow way: each is a Python object for a while."""

Result = TypeVar("Result")
Way = Callable[[Sequence[str], Gatherer, Lines, int], Block | None]
"""Reads lines of the table, the first of which begins at a byte of the text, into a block."""


def csv_blocks(
    source: Source, gatherer: Gatherer, *, limits: Limits, piece: int = PIECE, ways: Sequence[Way] | None = None
) -> Iterator[Block]:
    """Read CSV (RFC 4180, comma, first line the names, UTF-8).

    ways: of reading a piece, tried before it is read line by line; by default as the length of the first says.

    Raises:
        DataError: Not CSV: not UTF-8, NUL, no names, a name twice, no rows, a line of another length, by its number.
        TooLarge: A line is too long, or there are too many columns.
    """
    try:
        copy = _Copy(source, gatherer) if source.choose() else None
        pieces = pieces_of_csv(source, size=piece)
        names = next((line for first in islice(pieces, 1) for _, line in lines_of(first)), [])
        check_names(names)
        limits.check("columns", len(names))
        for first in islice(pieces, 1):
            is_long = first.lines is not None and len(first.lines) >= WORTH_LOADING
            parse = partial(_parsed, (FAST if is_long else ()) if ways is None else ways, names, gatherer)
            for each, blocks in _in_order(parse, chain([first], pieces)):
                first_row = gatherer.n_rows
                yield from blocks
                if copy is not None:
                    copy.take(each, names, first_row)
    except DataError as error:
        if error.faults[0].code == "too_long":
            raise TooLarge("bytes in one line", LONGEST_LINE) from None
        if error.faults[0].code == LONG_CELL:  # longer than `csv` takes: than the limit, too, where there is one
            limits.check("cell_chars", csv.field_size_limit() + 1)
        raise
    if not gatherer.n_rows:
        raise DataError([Fault("", "empty", f"the CSV has {len(names)} column names and no rows")])


def _in_order(parse: Callable[[Piece], Result], pieces: Iterator[Piece]) -> Iterator[Result]:
    """Parse on other threads, while the next pieces are read on this one; the first shows what to look for."""
    for first in islice(pieces, 1):
        yield parse(first)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="csv") as pool:
        ahead: deque[Future[Result]] = deque()
        for piece in pieces:
            ahead.append(pool.submit(parse, piece))
            if len(ahead) > AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _parsed(
    ways: Sequence[Way], names: Sequence[str], gatherer: Gatherer, piece: Piece
) -> tuple[Piece, Iterable[Block]]:
    lines = piece.lines
    if ways and lines is not None and lines.is_text():
        for way in ways:
            block = way(names, gatherer, lines, piece.first_byte)
            if block is not None:
                return piece, [block]
    return piece, _by_lines(names, gatherer, piece)


class _Copy:
    """CSV of its own, in the file of the source: the names, and the rows from the first whose text is needed on."""

    def __init__(self, source: Source, gatherer: Gatherer) -> None:
        self._source = source
        self._gatherer = gatherer
        self._is_begun = False

    def take(self, piece: Piece, names: Sequence[str], first_row: int) -> None:
        """Take a piece whose rows were gathered, the first of them this one, if its text may be needed."""
        if not self._is_begun:
            if not self._gatherer.needs_text:
                return
            self._is_begun = True
            self._gatherer.text_from = first_row
            self._source.keep(_text([names]))
        self._source.keep(_text(piece.cells or ()) if piece.lines is None else piece.lines.view)


def _text(cells: Iterable[Sequence[str]]) -> bytes:
    """Write cells in quotes: bare, a carriage return ends a line, and a byte order mark at the start is passed over."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(cells)
    return text.getvalue().encode()


# Line by line


def _by_lines(names: Sequence[str], gatherer: Gatherer, piece: Piece) -> Iterator[Block]:
    rows: list[list[str]] = []
    at_once = max(1, CELLS_AT_ONCE // len(names))
    for number, line in lines_of(piece):
        if len(line) != len(names):
            raise ragged(number, len(line), names)
        rows.append(line)
        if len(rows) == at_once:
            yield _block(names, rows, gatherer)
            rows = []
    if rows:
        yield _block(names, rows, gatherer)


def _block(names: Sequence[str], rows: Sequence[Sequence[str]], gatherer: Gatherer) -> Block:
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return Block(len(rows), tuple(_text_column(name, cells) for name, cells in columns if gatherer.wants(name)))


def _text_column(name: str, cells: Sequence[str]) -> FrameColumn:
    known: dict[str, int] = {}
    codes = np.fromiter(
        (known.setdefault(cell, len(known)) if cell else -1 for cell in cells), dtype=np.int32, count=len(cells)
    )
    return FrameColumn(name, None, codes, labels=tuple(known))


# By compiled code


def by_compiled_code(names: Sequence[str], gatherer: Gatherer, lines: Lines, first_byte: int) -> Block | None:
    """Read a piece; None where it is not plain, or code is not compiled, nor worth it at this place of a table."""
    if not is_compiled(first_byte):
        return None
    wanted = [name for name in names if gatherer.wants(name)]
    labelled = {name for name in wanted if gatherer.wants_labels(name)}
    numbers = [name for name in wanted if name not in labelled]
    piece = read_plain(lines, names, numbers=numbers, texts=labelled, missing=gatherer.missing_values)
    if piece is None:
        return None
    if not piece.n_rows:
        return Block(0, ())
    return Block(piece.n_rows, tuple(_plain_column(name, piece) for name in wanted))


def _plain_column(name: str, piece: PlainPiece) -> FrameColumn:
    cells, noted = piece.columns[name], piece.noted
    if isinstance(cells, Labelled):
        return FrameColumn(name, None, cells.places, labels=cells.texts)
    return FrameColumn(name, None, cells, owned=True, noted=None if noted is None else noted[name])


# By pyarrow


def by_pyarrow(names: Sequence[str], gatherer: Gatherer, lines: Lines, first_byte: int) -> Block | None:
    """Read a piece; None where pyarrow cannot, or is not there: the slow way says why."""
    try:
        import_module("pyarrow.csv")
    except ImportError:
        return None
    arrow = import_module("pyarrow")
    content = lines.content
    wanted = [name for name in names if gatherer.wants(name)]
    labelled = frozenset(name for name in wanted if gatherer.wants_labels(name))
    if not wanted:
        return None  # what is wrong with a line must be found now, while its number is known
    if not content.strip(b"\r\n"):
        return Block(0, ())
    texts = arrow.dictionary(arrow.int32(), arrow.string())
    read = partial(_columns, arrow, content, names, gatherer.missing_values)
    for numbers in (arrow.float64(), arrow.string()):  # where a cell is no number, each column is looked at on its own
        try:
            return read({name: texts if name in labelled else numbers for name in wanted})
        except (arrow.ArrowInvalid, _NoNumberError):
            pass
        except _TooLongError:
            break
    return None


class _NoNumberError(Exception):
    """pyarrow took a text such as NaN for a number."""


class _TooLongError(Exception):
    """pyarrow took a text that is longer than a cell of CSV may be."""


def _columns(
    arrow: Any, content: bytes, names: Sequence[str], missing_values: Sequence[str], types: dict[str, Any]
) -> Block:
    arrow_csv = import_module("pyarrow.csv")
    table = arrow_csv.read_csv(
        arrow.BufferReader(content),
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=list(names)),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=b'"' in content),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=["", *missing_values],
            strings_can_be_null=True,
        ),
    )
    return Block(len(table), tuple(_column(arrow, name, table[name]) for name in types))


def _column(arrow: Any, name: str, chunks: Any) -> FrameColumn:
    if arrow.types.is_string(chunks.type):
        try:
            return _number_column(name, chunks.cast(arrow.float64()))
        except (arrow.ArrowInvalid, _NoNumberError):
            chunks = chunks.dictionary_encode()
    if arrow.types.is_floating(chunks.type):
        return _number_column(name, chunks)
    array = chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
    codes = array.indices.fill_null(-1).to_numpy()
    labels = tuple(array.dictionary.to_pylist())
    if max(map(len, labels), default=0) > csv.field_size_limit():
        raise _TooLongError  # the slow way refuses it by its line
    return FrameColumn(name, None, codes, labels=labels)


def _number_column(name: str, chunks: Any) -> FrameColumn:
    values = np.array(chunks.to_numpy(), dtype=np.float64)
    if int(np.count_nonzero(np.isfinite(values))) + chunks.null_count != len(values):
        raise _NoNumberError
    return FrameColumn(name, None, values, owned=True)


FAST: Final[tuple[Way, ...]] = (by_compiled_code, by_pyarrow)
"""Ways of reading a piece of a long file."""
