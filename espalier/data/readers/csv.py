"""CSV through pyarrow: numbers as float64, texts as dictionaries, block by block on two threads.

What pyarrow takes for a number is one here. If a cell of a column of numbers is none, the columns of its block are
converted one by one; the column is read again from the start if numbers came before (`espalier.data.assembly`). What
pyarrow does not parse is split by the csv module, which also reports faults by line.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import RawColumn, column_from_texts
from espalier.data.limits import Limits
from espalier.data.readers.csv_blocks import (
    LONG_CELL,
    MAX_LINE_BYTES,
    CsvBlock,
    check_names,
    csv_blocks,
    ragged,
    rows_of,
)
from espalier.data.readers.source import Source
from espalier.errors import DataError, Fault, TooLarge

BLOCK_BYTES: Final = 2**21
THREADS: Final = 2
MAX_BLOCKS_AHEAD: Final = 3
MAX_CELLS_AT_ONCE: Final = 500_000
"""Cells that are split by the csv module at a time: each is a Python object."""
EMPTY_LINES: Final = b"\r\n"

Made = TypeVar("Made")
Names = Sequence[str]


def read_csv(source: Source, assembler: TableAssembler, *, limits: Limits, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Read CSV (RFC 4180: commas, the first line holds the names, UTF-8), in blocks of about `size` bytes.

    Raises:
        DataError: Not CSV: not UTF-8, NUL, no names, a name twice, no rows, a line of another length, by its number.
        TooLarge: A line or a cell is too long, or there are too many columns.
    """
    try:
        blocks = csv_blocks(source, size=size)
        names = _names(blocks)
        limits.check("columns", len(names))
        for parsed in _in_order(partial(_parse, names, assembler), blocks):
            yield from parsed
    except DataError as error:
        code = error.faults[0].code
        if code == "too_long":
            raise TooLarge("bytes in one line", MAX_LINE_BYTES) from None
        if code == LONG_CELL:  # longer than the csv module reads, so beyond the limit, too, if there is one
            limits.check("cell_chars", csv.field_size_limit() + 1)
        raise
    if not assembler.n_rows:
        raise _no_rows(names)


def rows_of_csv(source: Source) -> tuple[list[str], list[list[str]]]:
    """Return the names of a CSV and its rows as texts, each as long as the names.

    Raises:
        DataError: As `read_csv`.
    """
    blocks = csv_blocks(source, size=BLOCK_BYTES)
    names = _names(blocks)
    rows = []
    for block in blocks:
        for number, row in rows_of(block):
            if len(row) != len(names):
                raise ragged(number, len(row), names)
            rows.append(row)
    if not rows:
        raise _no_rows(names)
    return names, rows


def _names(blocks: Iterator[CsvBlock]) -> list[str]:
    names: list[str] = next((row for first in islice(blocks, 1) for _, row in rows_of(first)), [])
    check_names(names)
    return names


def _no_rows(names: Names) -> DataError:
    return DataError([Fault("", "empty", f"the CSV has {len(names)} column names and no rows")])


def _in_order(parse: Callable[[CsvBlock], Made], blocks: Iterator[CsvBlock]) -> Iterator[Made]:
    """Parse blocks on other threads while this thread reads the next; the first decides how columns are stored."""
    for first in islice(blocks, 1):
        yield parse(first)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="csv") as pool:
        ahead: deque[Future[Made]] = deque()
        for block in blocks:
            ahead.append(pool.submit(parse, block))
            if len(ahead) > MAX_BLOCKS_AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _parse(names: Names, assembler: TableAssembler, block: CsvBlock) -> Iterator[Block]:
    content = block.content
    if content is not None and not content.strip(EMPTY_LINES):
        return iter(())
    parsed = None if content is None or b"\0" in content else _by_pyarrow(names, assembler, content)
    return iter([parsed]) if parsed is not None else _by_lines(names, assembler, block)


# By pyarrow


class UnparsedError(Exception):
    """pyarrow cannot parse some lines, or took a text such as NaN for a number."""


def parse_columns(
    content: bytes, names: Names, types: Mapping[str, str], missing_values: Sequence[str]
) -> tuple[RawColumn, ...]:
    """Return columns of some lines, parsed by pyarrow.

    Args:
        content: Whole lines.
        names: The names of all columns.
        types: The columns to return: as ``double``, ``text``, or ``any``: as numbers if all cells are numbers.
        missing_values: Texts that mean a missing value, besides the empty cell.

    Raises:
        UnparsedError: A cell is not of its column's type, or a line is no CSV.
    """
    arrow, arrow_csv = import_module("pyarrow"), import_module("pyarrow.csv")
    by_word = {
        "double": arrow.float64(),
        "text": arrow.dictionary(arrow.int32(), arrow.string()),
        "any": arrow.string(),
    }
    try:
        table = arrow_csv.read_csv(
            arrow.BufferReader(content),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=list(names)
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=b'"' in content),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: by_word[word] for name, word in types.items()},
                include_columns=list(types),
                null_values=["", *missing_values],
                strings_can_be_null=True,
            ),
        )
        return tuple(_column(arrow, name, table[name]) for name in types)
    except arrow.ArrowInvalid:
        raise UnparsedError from None


def _by_pyarrow(names: Names, assembler: TableAssembler, content: bytes) -> Block | None:
    """Return the block of some lines; None if pyarrow cannot parse them: then the csv module reports the fault."""
    wanted = [name for name in names if assembler.wants(name)]
    if not wanted:
        return None  # a faulty line must be found all the same
    labelled = frozenset(name for name in wanted if assembler.wants_labels(name))
    for numbers in ("double", "any") if assembler.n_rows else ("any",):
        types = {name: "text" if name in labelled else numbers for name in wanted}
        try:
            columns = parse_columns(content, names, types, assembler.missing_values)
        except UnparsedError:
            continue
        longest = max((len(label) for column in columns for label in column.labels or ()), default=0)
        return Block(len(columns[0].values), columns) if longest <= csv.field_size_limit() else None
    return None


def _column(arrow: Any, name: str, chunks: Any) -> RawColumn:
    if arrow.types.is_string(chunks.type):
        try:
            return _number_column(name, chunks.cast(arrow.float64()))
        except (arrow.ArrowInvalid, UnparsedError):
            chunks = chunks.dictionary_encode()
    if arrow.types.is_floating(chunks.type):
        return _number_column(name, chunks)
    array = chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
    codes = array.indices.fill_null(-1).to_numpy()
    return RawColumn(name, None, codes, labels=tuple(array.dictionary.to_pylist()))


def _number_column(name: str, chunks: Any) -> RawColumn:
    values = np.array(chunks.to_numpy(), dtype=np.float64)
    if int(np.count_nonzero(np.isfinite(values))) + chunks.null_count != len(values):
        raise UnparsedError
    return RawColumn(name, None, values, copy=False)


# By the csv module


def _by_lines(names: Names, assembler: TableAssembler, block: CsvBlock) -> Iterator[Block]:
    rows: list[list[str]] = []
    n_at_once = max(1, MAX_CELLS_AT_ONCE // len(names))
    for number, row in rows_of(block):
        if len(row) != len(names):
            raise ragged(number, len(row), names)
        rows.append(row)
        if len(rows) == n_at_once:
            yield _block_of_rows(names, rows, assembler)
            rows = []
    if rows:
        yield _block_of_rows(names, rows, assembler)


def _block_of_rows(names: Names, rows: Sequence[Sequence[str]], assembler: TableAssembler) -> Block:
    columns = zip(names, zip(*rows, strict=True), strict=True)
    texts = ((name, (cell or None for cell in cells)) for name, cells in columns if assembler.wants(name))
    return Block(len(rows), tuple(column_from_texts(name, cells) for name, cells in texts))
