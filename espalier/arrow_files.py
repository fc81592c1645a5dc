"""Parquet files and Arrow streams as stretches of a table; pyarrow reads them.

What such a file says of its own sizes is not to be believed, and pyarrow has no limit on what one page or one buffer
may unpack to: a caller that does not trust its files reads them in a process whose memory is limited.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import IO, Any, Final

from espalier.errors import DataError, Fault, pointer
from espalier.frames import frame_columns
from espalier.gathering import Block, Gatherer
from espalier.limits import Limits
from espalier.sources import Source

__all__ = ["arrow_blocks", "parquet_blocks"]

ROWS_AT_ONCE: Final = 65_536
CELLS_AT_ONCE: Final = 1_000_000
FILE_MAGIC: Final = b"ARROW1"
"""Begins an Arrow file; its stream has none."""


def parquet_blocks(source: Source, gatherer: Gatherer, *, limits: Limits) -> Iterator[Block]:
    """Read a Parquet file.

    Raises:
        DataError: It is none, it is damaged, a column is of a type without a meaning here, or pyarrow is not installed.
        TooLarge: Too many columns or rows.
    """
    arrow = _pyarrow()
    parquet = import_module("pyarrow.parquet")
    return _read(lambda: _parquet_tables(arrow, parquet, source.file(), limits), arrow, gatherer, "a Parquet file")


def arrow_blocks(source: Source, gatherer: Gatherer, *, limits: Limits) -> Iterator[Block]:
    """Read an Arrow stream, or an Arrow file (Feather).

    Raises:
        DataError: It is none, it is damaged, a column is of a type without a meaning here, or pyarrow is not installed.
        TooLarge: Too many columns.
    """
    arrow = _pyarrow()
    return _read(lambda: _arrow_tables(arrow, source.file(), limits), arrow, gatherer, "an Arrow stream")


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        message = "Parquet and Arrow are read by pyarrow 21 or later, which is not installed"
        raise DataError([Fault("", "not_installed", message)]) from None


def _read(tables: Any, arrow: Any, gatherer: Gatherer, what: str) -> Iterator[Block]:
    try:
        for table in tables():
            kept = [name for name in table.column_names if gatherer.wants(name)]
            _check_names(table.column_names)
            yield Block(len(table), tuple(frame_columns(table.select(kept))))
    except arrow.ArrowMemoryError:
        raise MemoryError from None
    except (arrow.ArrowException, OSError, ValueError, OverflowError, LookupError):  # what they say may repeat cells
        message = f"not {what}, or it is damaged or cut short"
        raise DataError([Fault("", "not_readable", message)]) from None


def _parquet_tables(arrow: Any, parquet: Any, file: IO[bytes], limits: Limits) -> Iterator[Any]:
    content = parquet.ParquetFile(file)
    n_columns = len(content.schema_arrow.names)
    limits.check_table(n_rows=content.metadata.num_rows, n_columns=n_columns)
    batches = content.iter_batches(batch_size=_rows_at_once(n_columns), use_threads=False)
    yield from _tables(arrow, content.schema_arrow, batches)


def _arrow_tables(arrow: Any, file: IO[bytes], limits: Limits) -> Iterator[Any]:
    magic = file.read(len(FILE_MAGIC))
    file.seek(0)
    if magic == FILE_MAGIC:
        whole = arrow.ipc.open_file(file)
        schema, batches = whole.schema, (whole.get_batch(place) for place in range(whole.num_record_batches))
    else:
        stream = arrow.ipc.open_stream(file)
        schema, batches = stream.schema, stream
    limits.check("columns", len(schema.names))
    yield from _tables(arrow, schema, _parts(batches, _rows_at_once(len(schema.names))))


def _parts(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    for batch in batches:
        batch.validate(full=True)  # offsets and codes that point outside
        for first in range(0, len(batch), n_rows):
            yield batch.slice(first, n_rows)


def _tables(arrow: Any, schema: Any, batches: Iterable[Any]) -> Iterator[Any]:
    frame_columns(schema.empty_table())  # columns of types without a meaning are refused before they are read
    is_empty = True
    for batch in batches:
        is_empty = False
        yield arrow.Table.from_batches([batch])
    if is_empty:
        yield schema.empty_table()


def _rows_at_once(n_columns: int) -> int:
    return max(1, min(ROWS_AT_ONCE, CELLS_AT_ONCE // max(1, n_columns)))


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise DataError([Fault(pointer(name), "duplicate", f"two columns are called {name!r}") for name in twice])
