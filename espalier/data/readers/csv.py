"""Read CSV with pyarrow, block by block on two threads: numbers as float64, texts as dictionaries.

If pyarrow cannot read a column as numbers, its cells become labels. Labels may later still be read as numbers. If
pyarrow cannot parse a block, the csv module splits the block; the errors of the csv module name the line.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, Final

import numpy as np

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import RawColumn, column_from_labels
from espalier.data.notices import LEADING_ZEROS, leading_zeros_notice
from espalier.data.readers.csv_blocks import (
    LONG_CELL,
    MAX_LINE_BYTES,
    CsvBlock,
    check_names,
    csv_blocks,
    names_of,
    rows_of,
)
from espalier.data.readers.source import Source
from espalier.errors import DataError, Fault, TooLarge

BLOCK_BYTES: Final = 2**21
THREADS: Final = 2
MAX_BLOCKS_AHEAD: Final = 3

Names = Sequence[str]


def read_csv(source: Source, assembler: TableAssembler, *, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Read CSV (RFC 4180: commas, the first line holds the names, UTF-8), in blocks of about `size` bytes.

    Raises:
        DataError: The text is not UTF-8, has NUL characters or unclosed quotes, or lacks names or rows. Or two columns
            have the same name, a row has a wrong number of cells, or a cell is too long for the csv module.
        TooLarge: A line is too long, there are too many columns, or a cell exceeds `cell_chars` and csv's own limit.
    """
    try:
        blocks = csv_blocks(source, size=size)
        names = names_of(blocks)
        check_names(names)
        assembler.limits.check("columns", len(names))
        yield from _in_order(partial(_parse, names, assembler), blocks)
    except DataError as error:
        code = error.faults[0].code
        if code == "too_long":
            raise TooLarge("bytes in one line", MAX_LINE_BYTES) from None
        if code == LONG_CELL:  # if the limit of the caller is lower than that of the csv module, report the former
            assembler.limits.check("cell_chars", csv.field_size_limit() + 1)
        raise
    if not assembler.n_rows:
        raise _no_rows(names)


def rows_of_csv(source: Source) -> tuple[list[str], list[list[str]]]:
    """Return the column names and the rows of a CSV. A row has one text per column."""
    blocks = csv_blocks(source, size=BLOCK_BYTES)
    names = names_of(blocks)
    check_names(names)
    rows = [row for block in blocks for row in rows_of(block, names)]
    if not rows:
        raise _no_rows(names)
    return names, rows


def parse_columns(
    block: CsvBlock, names: Names, types: Mapping[str, str], missing_values: Sequence[str]
) -> tuple[RawColumn, ...] | None:
    """Return columns of a block, parsed by pyarrow.

    Args:
        block: The block.
        names: Names of all columns of the block.
        types: For each column to return, ``double``, ``text`` or ``any`` (numbers if all cells are numbers, else text).
        missing_values: Texts that mean a missing value in a column of numbers. In a column of texts, they are labels.

    Returns:
        The columns. None if pyarrow cannot read the block as the csv module would: the block is not UTF-8 or has NUL,
        its quotes are not regular, a line has a wrong number of cells, or a cell does not fit the type of its column.
    """
    arrow, arrow_csv = import_module("pyarrow"), import_module("pyarrow.csv")
    arrow_types = {
        "double": arrow.float64(),
        "text": arrow.dictionary(arrow.int32(), arrow.string()),
        "any": arrow.string(),
    }
    content = block.content
    if not block.is_regular or b"\0" in content:
        return None
    try:
        if not content.isascii():
            content.decode()  # a check: pyarrow does not check the columns that it skips
        table = arrow_csv.read_csv(
            arrow.BufferReader(content),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=list(names)
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=b'"' in content),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: arrow_types[word] for name, word in types.items()},
                include_columns=list(types),
                null_values=["", *missing_values],
            ),
        )
    except (arrow.ArrowInvalid, UnicodeDecodeError):
        return None
    columns = [_column(name, table[name], missing_values) for name in types]
    parsed = tuple(column for column in columns if column is not None)
    return parsed if len(parsed) == len(columns) else None


def _column(name: str, chunks: Any, missing_values: Sequence[str]) -> RawColumn | None:
    """Return a column of numbers or texts; None if `chunks` holds a float that is not finite: NaN may be a label."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    if arrow.types.is_string(chunks.type):
        absent = compute.is_in(chunks, value_set=arrow.array(["", *missing_values], arrow.string()))
        with suppress(arrow.ArrowInvalid):
            present = compute.if_else(absent, None, chunks)
            column = _column(name, present.cast(arrow.float64()), missing_values)
            if column is not None:
                zeros = present.filter(compute.match_substring_regex(present, LEADING_ZEROS))
                notices = tuple(leading_zeros_notice(name, text) for text in zeros[:1].to_pylist())
                return replace(column, notices=notices)
        chunks = chunks.dictionary_encode()
    if arrow.types.is_floating(chunks.type):
        values = np.array(chunks.to_numpy())
        n_finite = int(np.count_nonzero(np.isfinite(values)))
        return RawColumn(name, None, values) if n_finite + chunks.null_count == len(values) else None
    array = chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
    labels, codes = array.dictionary.to_pylist(), array.indices.to_numpy()
    if "" in labels:
        codes = np.where(codes == labels.index(""), -1, codes)
    return RawColumn(name, None, codes, labels=labels)


def _parse(names: Names, assembler: TableAssembler, block: CsvBlock) -> Block:
    labelled = frozenset(name for name in names if assembler.wants_labels(name))
    for numbers in ("double", "any") if assembler.n_rows else ("any",):
        types = {name: "text" if name in labelled else numbers for name in names}
        columns = parse_columns(block, names, types, assembler.declared.missing_values)
        if columns is not None:
            longest = max((len(label) for column in columns for label in column.labels or ()), default=0)
            if longest <= csv.field_size_limit():
                return Block(len(columns[0].values), columns)
    rows = rows_of(block, names)
    cells = zip(names, zip(*rows, strict=True), strict=True)
    return Block(len(rows), tuple(column_from_labels(name, [cell or None for cell in each]) for name, each in cells))


def _no_rows(names: Names) -> DataError:
    return DataError([Fault("", "empty", f"the CSV has {len(names)} column names and no rows")])


def _in_order(parse: Callable[[CsvBlock], Block], blocks: Iterator[CsvBlock]) -> Iterator[Block]:
    """Yield parsed blocks in order. The first, which decides how columns are stored, is parsed before all others."""
    for first in islice(blocks, 1):
        yield parse(first)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="csv") as pool:
        ahead: deque[Future[Block]] = deque()
        for block in blocks:
            ahead.append(pool.submit(parse, block))
            if len(ahead) > MAX_BLOCKS_AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
