"""Read Parquet files, Arrow streams, Arrow files and tables of pyarrow.

A hostile file can make pyarrow allocate any amount of memory. Limit the memory of a process that reads such files.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import numpy as np

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import (
    TICKS_PER_SECOND,
    LabelCodes,
    RawColumn,
    UnreadableError,
    column_from_ticks,
    column_of_categories,
    plain_cell,
)
from espalier.data.limits import Limits
from espalier.data.notices import Notice, finer_instants
from espalier.data.readers.source import Source
from espalier.data.schema import FeatureKind
from espalier.errors import DataError, Fault, pointer, within

INDEX: Final = re.compile(r"__index_level_[0-9]+__")
"""Name that pandas gives to the column of an index without a name."""
LEGAL: Final = "give numbers, texts, dates, true and false, or leave the column out"
SECONDS_OF_A_DAY: Final = 86_400
ROWS_AT_ONCE: Final = 65_536
CELLS_AT_ONCE: Final = 1_000_000
FILE_MAGIC: Final = b"ARROW1"
"""The first bytes of an Arrow file. An Arrow stream begins with other bytes."""


def columns_of_arrow(table: Any) -> list[RawColumn]:
    """Return the columns of a table of pyarrow."""
    index = index_of_pandas(table.schema)
    columns = read_columns(zip(table.column_names, table.columns, strict=True), arrow_column)
    return [replace(column, is_index=column.name in index) for column in columns]


def read_columns(columns: Iterable[tuple[str, Any]], read: Callable[[str, Any], RawColumn]) -> list[RawColumn]:
    """Call `read` with each pair of a name and cells, and return the resulting columns.

    Raises:
        DataError: Two columns have the same name, or a column cannot be read. The faults of all columns are collected.
    """
    faults: list[Fault] = []
    raw_columns: dict[str, RawColumn | None] = {}
    for name, cells in columns:
        if name in raw_columns:
            faults.append(Fault(pointer(name), "duplicate", f"two columns are called {name!r}"))
        raw_columns[name] = None
        try:
            raw_columns[name] = read(name, cells)
        except UnreadableError as error:
            given = error.column_type or getattr(cells, "dtype", None) or getattr(cells, "type", "list")
            faults.append(unreadable(name, given))
        except DataError as error:
            faults += within(pointer(name), error.faults)
        except UnicodeDecodeError:
            faults.append(Fault(pointer(name), "not_text", "its texts are not UTF-8"))
    DataError.raise_for(faults)
    return [column for column in raw_columns.values() if column is not None]


def index_of_pandas(schema: Any) -> set[str]:
    """Return the names of columns that were an index in pandas, as the metadata or the names themselves show."""
    try:
        given = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (ValueError, LookupError, TypeError, RecursionError):
        given = []
    listed = given if isinstance(given, list) else []
    return {name for name in (*listed, *filter(INDEX.fullmatch, schema.names)) if isinstance(name, str)}


def unreadable(name: str, given: Any) -> Fault:
    """Return the fault of a column whose type cannot be read."""
    message = f"columns of the type {given} cannot be read: {LEGAL}"
    return Fault(pointer(name), "wrong_type", message)


def arrow_column(name: str, chunks: Any) -> RawColumn:
    """Return a chunked array of pyarrow as a column.

    Raises:
        UnreadableError: The type cannot be read.
    """
    types = import_module("pyarrow").types
    for test, read in COLUMN_READERS.items():
        if getattr(types, test)(chunks.type):
            return read(name, chunks)
    read_extension = EXTENSION_READERS.get(getattr(chunks.type, "extension_name", ""))
    if read_extension is None:
        raise UnreadableError("no such cells", str(chunks.type))
    return read_extension(name, chunks.cast(chunks.type.storage_type))


def _null_column(name: str, chunks: Any) -> RawColumn:
    return RawColumn(name, None, np.full(len(chunks), -1, dtype=np.int32), labels=())


def _float_column(name: str, chunks: Any) -> RawColumn:
    return RawColumn(name, FeatureKind.NUMERIC, np.array(chunks.cast("float64").to_numpy()))


def _integer_column(name: str, chunks: Any) -> RawColumn:
    absent = chunks.is_null().to_numpy() if chunks.null_count else None
    return RawColumn(name, FeatureKind.NUMERIC, chunks.fill_null(0).to_numpy(), absent)


def _boolean_column(name: str, chunks: Any) -> RawColumn:
    codes = chunks.cast("int8").fill_null(-1).to_numpy()
    return RawColumn(name, FeatureKind.BOOLEAN, codes, labels=(False, True))


def _decimal_column(name: str, chunks: Any) -> RawColumn:
    """Return decimals as texts, which are exact; pyarrow's cast to double does not always give the nearest double."""
    return replace(_text_column(name, chunks.cast("string")), kind=FeatureKind.NUMERIC)


def _instant_column(name: str, chunks: Any) -> RawColumn:
    if import_module("pyarrow").types.is_date32(chunks.type):
        ticks = chunks.cast("int32").fill_null(0).to_numpy() * np.int64(SECONDS_OF_A_DAY)
        per_second = 1
    else:
        ticks = chunks.cast("int64").fill_null(0).to_numpy()
        per_second = TICKS_PER_SECOND[getattr(chunks.type, "unit", "ms")]
    return column_from_ticks(name, ticks, per_second, absent=chunks.is_null().to_numpy())


def _text_column(name: str, chunks: Any) -> RawColumn:
    return _dictionary_column(name, chunks.cast("large_string").dictionary_encode())


def _dictionary_column(name: str, chunks: Any) -> RawColumn:
    types, type_ = import_module("pyarrow").types, chunks.type.value_type
    is_typed = types.is_timestamp(type_) or types.is_date(type_) or types.is_boolean(type_)
    if is_typed and not chunks.type.ordered:
        return arrow_column(name, chunks.cast(type_))
    parts = (
        (part.dictionary.to_pylist(), part.indices.cast("int64").fill_null(-1).to_numpy()) for part in chunks.chunks
    )
    return category_column(name, parts, ordered=chunks.type.ordered)


def category_column(name: str, parts: Iterable[tuple[Sequence[Any], Any]], *, ordered: bool) -> RawColumn:
    """Join parts of a column. Each part is a pair: categories, and the index of each cell's category (-1 = missing)."""
    codes = LabelCodes()
    cells = [np.empty(0, dtype=np.int32)]
    notices: tuple[Notice, ...] = ()
    for categories, indices in parts:
        notices = notices or finer_instants(name, categories)
        plain = list(map(plain_cell, categories))
        table = codes.encode_ordered(plain) if ordered else codes.encode(plain)
        cells.append(np.append(table, np.int32(-1))[indices])
    return replace(column_of_categories(name, np.concatenate(cells), codes.labels, ordered=ordered), notices=notices)


def _run_column(name: str, chunks: Any) -> RawColumn:
    arrow = import_module("pyarrow")
    type_ = chunks.type.value_type
    # pyarrow's `take` does not support string views.
    plain = arrow.large_string() if arrow.types.is_string_view(type_) else type_
    parts = []
    for runs in chunks.chunks:  # pyarrow's decoder supports no dictionaries or extension types
        rows = np.arange(runs.offset, runs.offset + len(runs))
        parts.append(runs.values.cast(plain).take(arrow.array(np.searchsorted(runs.run_ends, rows, "right"))))
    return arrow_column(name, arrow.chunked_array(parts, plain))


COLUMN_READERS: Final[Mapping[str, Callable[[str, Any], RawColumn]]] = {
    "is_null": _null_column,
    "is_floating": _float_column,
    "is_integer": _integer_column,
    "is_boolean": _boolean_column,
    "is_decimal": _decimal_column,
    "is_date": _instant_column,
    "is_timestamp": _instant_column,
    "is_string": _text_column,
    "is_large_string": _text_column,
    "is_string_view": _text_column,
    "is_dictionary": _dictionary_column,
    "is_run_end_encoded": _run_column,
}
"""For each test of `pyarrow.types`, the function that reads a column whose type passes the test."""
EXTENSION_READERS: Final[Mapping[str, Callable[[str, Any], RawColumn]]] = {
    "arrow.json": _text_column,
    "arrow.bool8": lambda name, storage: _boolean_column(name, storage.cast("bool")),
}
"""For each name of an extension type, the function that reads the type's stored values."""


def read_parquet(source: Source, assembler: TableAssembler) -> Iterator[Block]:
    """Yield the blocks of a Parquet file."""
    return _read(_parquet_batches, source, assembler, "a Parquet file")


def read_arrow(source: Source, assembler: TableAssembler) -> Iterator[Block]:
    """Yield the blocks of an Arrow stream, or of an Arrow file (Feather)."""
    return _read(_arrow_batches, source, assembler, "an Arrow stream")


def _read(
    batches_of: Callable[[Source, Limits], tuple[Any, Iterable[Any]]],
    source: Source,
    assembler: TableAssembler,
    what: str,
) -> Iterator[Block]:
    arrow = import_module("pyarrow")
    try:
        schema, batches = batches_of(source, assembler.limits)
        # Columns of types that cannot be read are refused before the first row is read.
        nothing = ((field.name, arrow.chunked_array([], field.type)) for field in schema)
        empty = read_columns(nothing, arrow_column)
        for batch in batches:
            yield Block(len(batch), tuple(columns_of_arrow(arrow.Table.from_batches([batch]))))
        if not assembler.n_rows:
            yield Block(0, tuple(empty))
    except arrow.ArrowMemoryError:
        raise MemoryError from None
    except arrow.ArrowNotImplementedError:
        message = f"{what} with a column of a type that cannot be read: {LEGAL}"
        raise DataError([Fault("", "wrong_type", message)]) from None
    except (arrow.ArrowException, OSError, ValueError, OverflowError, LookupError):  # their messages may repeat cells
        message = f"not {what}, or it is damaged or cut short, or its texts are not UTF-8"
        raise DataError([Fault("", "not_readable", message)]) from None


def _parquet_batches(source: Source, limits: Limits) -> tuple[Any, Iterable[Any]]:
    content = import_module("pyarrow.parquet").ParquetFile(source.rewind(), pre_buffer=False)
    _check_orders(content)
    n_columns = len(content.schema_arrow.names)
    limits.check_table(n_rows=content.metadata.num_rows, n_columns=n_columns)
    return content.schema_arrow, content.iter_batches(batch_size=_rows_at_once(n_columns), use_threads=False)


def _check_orders(content: Any) -> None:
    """Raise DataError if an ordered dictionary has lost its order, because Parquet has stored only its texts."""
    groups = map(content.metadata.row_group, range(content.metadata.num_row_groups))
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    plain = {chunk.path_in_schema for chunk in chunks if not chunk.has_dictionary_page}
    types = import_module("pyarrow").types
    lost = [each.name for each in content.schema_arrow if types.is_dictionary(each.type) and each.type.ordered]
    message = "its categories are ordered, but the file does not hold their order: write a dictionary column, or texts"
    faults = [Fault(pointer(name), "order", message) for name in lost if name in plain]
    DataError.raise_for(faults)


def _arrow_batches(source: Source, limits: Limits) -> tuple[Any, Iterable[Any]]:
    ipc, file = import_module("pyarrow").ipc, source.rewind()
    magic = file.read(len(FILE_MAGIC))
    file.seek(0)
    content = ipc.open_file(file) if magic == FILE_MAGIC else ipc.open_stream(file)
    n_columns = len(content.schema.names)
    limits.check("columns", n_columns)
    if magic == FILE_MAGIC:
        batches = (content.get_batch(place) for place in range(content.num_record_batches))
    else:
        batches = iter(content)
    return content.schema, _parts(batches, _rows_at_once(n_columns))


def _parts(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    for batch in batches:
        faults = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)  # offsets and codes may point outside their buffers
            except import_module("pyarrow").ArrowInvalid:
                message = "its values are damaged, or its texts are not UTF-8"
                faults.append(Fault(pointer(name), "not_readable", message))
        DataError.raise_for(faults)
        for first in range(0, len(batch), n_rows):
            yield batch.slice(first, n_rows)


def _rows_at_once(n_columns: int) -> int:
    return max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // max(1, n_columns)))
