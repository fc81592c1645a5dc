"""Tables in Arrow's memory format: frames of any library, Parquet files, Arrow streams and files; pyarrow reads them.

The sizes in a file may be wrong, and pyarrow does not limit the size of an unpacked page or buffer: read files that
you do not trust in a process with limited memory.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import (
    RawColumn,
    UnreadableError,
    column_from_array,
    column_from_cells,
    column_of_codes,
    plain_cell,
    plain_labels,
    seconds_from_microseconds,
)
from espalier.data.limits import Limits
from espalier.data.readers.source import Source
from espalier.data.schema import FeatureKind
from espalier.errors import DataError, Fault, pointer

ROWS_AT_ONCE: Final = 65_536
CELLS_AT_ONCE: Final = 1_000_000
FILE_MAGIC: Final = b"ARROW1"
"""Begins an Arrow file; a stream has none."""

ColumnReader = Callable[[], RawColumn]


# Frames


def is_frame(table: object) -> bool:
    """Return whether `columns_of_frame` can read `table`."""
    return _is_pandas(table) or _is_lazy(table) or hasattr(table, "__arrow_c_stream__")


def columns_of_frame(table: Any) -> list[RawColumn]:
    """Return the columns of a pandas, polars or pyarrow table, or of anything with ``__arrow_c_stream__``.

    A column of texts is nominal, one of true and false boolean, an ordered categorical ordinal, one of dates or times
    datetime (without a time zone it is taken as UTC), any other one of numbers numeric.

    Raises:
        DataError: It is none of these, two columns have one name, or a column is of a type that cannot be read; every
            such column.
    """
    if not is_frame(table):
        message = "must be a pandas, polars or pyarrow table, or an object with __arrow_c_stream__"
        raise DataError([Fault("", "wrong_type", f"{message}, not a {type(table).__name__}")])
    if _is_pandas(table):
        names = [str(name) for name in table.columns]
        return _read_all(
            (name, table.dtypes.iloc[n], partial(_pandas_column, name, table.iloc[:, n]))
            for n, name in enumerate(names)
        )
    whole = _arrow_table(table.collect() if _is_lazy(table) else table)
    columns = zip(whole.column_names, whole.columns, strict=True)
    return _read_all((name, chunks.type, partial(_column, name, chunks)) for name, chunks in columns)


def columns_from_arrays(columns: Mapping[str, Any]) -> list[RawColumn]:
    """Return columns that are one-dimensional numpy arrays or lists of Python objects."""
    types = (cells.dtype if isinstance(cells, np.ndarray) else "list" for cells in columns.values())
    readers = (partial(_array_column, name, cells) for name, cells in columns.items())
    return _read_all(zip(columns, types, readers, strict=True))


def _read_all(readers: Iterable[tuple[str, object, ColumnReader]]) -> list[RawColumn]:
    faults: list[Fault] = []
    columns: list[RawColumn] = []
    seen: set[str] = set()
    for name, column_type, read in readers:
        if name in seen:
            faults.append(Fault(pointer(name), "duplicate", f"two columns are called {name!r}"))
        seen.add(name)
        try:
            columns.append(read())
        except UnreadableError as error:
            given = error.column_type or column_type
            message = f"columns of the type {given} cannot be read: give numbers, texts, dates, true and false"
            faults.append(Fault(pointer(name), "wrong_type", message))
    if faults:
        raise DataError(faults)
    return columns


def _array_column(name: str, cells: Any) -> RawColumn:
    if not isinstance(cells, np.ndarray):
        return column_from_cells(name, cells)
    if cells.dtype.kind == "b":
        return RawColumn(name, FeatureKind.BOOLEAN, cells.astype(np.int8), labels=(False, True))
    return column_from_array(name, cells)


def _is_pandas(table: object) -> bool:
    return type(table).__module__.partition(".")[0] == "pandas" and hasattr(type(table), "columns")


def _is_lazy(table: object) -> bool:
    return type(table).__module__.partition(".")[0] == "polars" and hasattr(type(table), "collect")


def _pandas_column(name: str, series: Any) -> RawColumn:
    if hasattr(series, "cat"):
        labels = plain_labels(series.cat.categories.tolist())
        kind = FeatureKind.ORDINAL if series.cat.ordered else FeatureKind.NOMINAL
        return RawColumn(name, kind, series.cat.codes.to_numpy(), labels=labels)
    arrow = import_module("pyarrow")
    try:
        found = arrow.array(series, from_pandas=True)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):  # objects of several types
        found = None
    if found is None:
        return column_from_cells(name, series.to_numpy(dtype=object, na_value=None).tolist())
    return _column(name, found if isinstance(found, arrow.ChunkedArray) else arrow.chunked_array([found]))


def _arrow_table(table: Any) -> Any:
    arrow = import_module("pyarrow")
    try:
        return table if isinstance(table, arrow.Table) else arrow.RecordBatchReader.from_stream(table).read_all()
    except (arrow.ArrowException, AttributeError, TypeError) as error:
        message = f"the table's Arrow stream cannot be read: {type(error).__name__}"
        raise DataError([Fault("", "wrong_type", message)]) from error


# Columns


def _column(name: str, chunks: Any) -> RawColumn:
    arrow = import_module("pyarrow")
    types, given = arrow.types, chunks.type
    absent = chunks.is_null().to_numpy()
    if types.is_floating(given) or types.is_decimal(given):
        column = RawColumn(name, FeatureKind.NUMERIC, chunks.cast(arrow.float64()).to_numpy())
    elif types.is_integer(given):
        values = chunks.fill_null(0) if absent.any() else chunks
        column = RawColumn(name, FeatureKind.NUMERIC, values.to_numpy(), absent if absent.any() else None)
    elif types.is_boolean(given):
        codes = np.where(absent, -1, chunks.cast(arrow.int8()).fill_null(0).to_numpy())
        column = RawColumn(name, FeatureKind.BOOLEAN, codes, labels=(False, True))
    elif types.is_timestamp(given) or types.is_date(given):
        zone = given.tz if types.is_timestamp(given) else None
        micros = chunks.cast(arrow.timestamp("us", tz=zone), safe=False).cast(arrow.int64()).fill_null(0).to_numpy()
        column = RawColumn(
            name, FeatureKind.DATETIME, np.where(absent, np.nan, seconds_from_microseconds(micros)), copy=False
        )
    elif types.is_null(given):
        column = RawColumn(name, FeatureKind.NOMINAL, np.full(len(chunks), -1, dtype=np.int32), labels=())
    else:
        column = _categories(name, chunks)
    return column


def _categories(name: str, chunks: Any) -> RawColumn:
    arrow = import_module("pyarrow")
    types, given = arrow.types, chunks.type
    text = types.is_string(given) or types.is_large_string(given) or str(given) == "string_view"
    if not text and not types.is_dictionary(given):
        raise UnreadableError("no such cells", str(given))
    # A view's texts have no dictionary form of their own.
    encoded = chunks.cast(arrow.large_string()).dictionary_encode() if text else _without_views(chunks)
    ordered = not text and given.ordered
    return _dictionary_column(name, encoded.unify_dictionaries(), ordered=ordered)


def _without_views(chunks: Any) -> Any:
    """Return a dictionary column whose values are no string views, which cannot be unified."""
    if str(chunks.type.value_type) != "string_view":
        return chunks
    arrow = import_module("pyarrow")
    wanted = arrow.dictionary(arrow.int64(), arrow.large_string(), ordered=chunks.type.ordered)
    parts = [
        arrow.DictionaryArray.from_arrays(
            part.indices.cast(arrow.int64()), part.dictionary.cast(arrow.large_string()), ordered=chunks.type.ordered
        )
        for part in chunks.chunks
    ]
    return arrow.chunked_array(parts, type=wanted)


def _dictionary_column(name: str, chunks: Any, *, ordered: bool) -> RawColumn:
    codes: npt.NDArray[Any] = np.full(len(chunks), -1, dtype=np.int64)
    start = 0
    values: list[Any] = []
    for part in chunks.chunks:
        values = part.dictionary.to_pylist()
        codes[start : start + len(part)] = part.indices.fill_null(-1).cast("int64").to_numpy()
        start += len(part)
    if None in values:  # a dictionary may hold "missing" as an entry
        places = np.cumsum([value is not None for value in values]) - 1
        table = np.append(np.where([value is None for value in values], -1, places), -1)
        codes, values = table[codes], [value for value in values if value is not None]
    if ordered:
        return RawColumn(name, FeatureKind.ORDINAL, codes, labels=plain_labels(values))
    return column_of_codes(name, codes, [plain_cell(value) for value in values], nominal=True)


# Files


def read_parquet(source: Source, assembler: TableAssembler, *, limits: Limits) -> Iterator[Block]:
    """Read a Parquet file."""
    return _read(lambda: _parquet_tables(source.file(), limits), assembler, "a Parquet file")


def read_arrow(source: Source, assembler: TableAssembler, *, limits: Limits) -> Iterator[Block]:
    """Read an Arrow stream, or an Arrow file (Feather)."""
    return _read(lambda: _arrow_tables(source.file(), limits), assembler, "an Arrow stream")


def _read(tables: Callable[[], Iterator[Any]], assembler: TableAssembler, what: str) -> Iterator[Block]:
    arrow = import_module("pyarrow")
    try:
        for table in tables():
            wanted_names = [name for name in table.column_names if assembler.wants(name)]
            yield Block(len(table), tuple(columns_of_frame(table.select(wanted_names))))
    except arrow.ArrowMemoryError:
        raise MemoryError from None
    except (arrow.ArrowException, OSError, ValueError, OverflowError, LookupError):  # their texts may repeat cells
        message = f"not {what}, or it is damaged or cut short"
        raise DataError([Fault("", "not_readable", message)]) from None


def _parquet_tables(file: IO[bytes], limits: Limits) -> Iterator[Any]:
    content = import_module("pyarrow.parquet").ParquetFile(file)
    n_columns = len(content.schema_arrow.names)
    limits.check_table(n_rows=content.metadata.num_rows, n_columns=n_columns)
    batches = content.iter_batches(batch_size=_rows_at_once(n_columns), use_threads=False)
    yield from _tables(content.schema_arrow, batches)


def _arrow_tables(file: IO[bytes], limits: Limits) -> Iterator[Any]:
    ipc = import_module("pyarrow").ipc
    magic = file.read(len(FILE_MAGIC))
    file.seek(0)
    if magic == FILE_MAGIC:
        whole = ipc.open_file(file)
        schema, batches = whole.schema, (whole.get_batch(place) for place in range(whole.num_record_batches))
    else:
        stream = ipc.open_stream(file)
        schema, batches = stream.schema, stream
    limits.check("columns", len(schema.names))
    yield from _tables(schema, _parts(batches, _rows_at_once(len(schema.names))))


def _parts(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    for batch in batches:
        batch.validate(full=True)  # offsets and codes that point outside
        for first in range(0, len(batch), n_rows):
            yield batch.slice(first, n_rows)


def _tables(schema: Any, batches: Iterable[Any]) -> Iterator[Any]:
    columns_of_frame(schema.empty_table())  # columns of types without a meaning are refused before they are read
    table_type = import_module("pyarrow").Table
    is_empty = True
    for batch in batches:
        is_empty = False
        yield table_type.from_batches([batch])
    if is_empty:
        yield schema.empty_table()


def _rows_at_once(n_columns: int) -> int:
    return max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // max(1, n_columns)))
