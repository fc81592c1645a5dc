"""Encode data sets as chunks. A chunk has consecutive rows as one Arrow IPC block, compressed with LZ4.

::

    rows      0 ........ 65 535 | 65 536 ........ 131 071 | ...
    chunk     first_row = 0     | first_row = 65 536      |

The columns are the features of the schema in its order: float64 with NaN for missing, or int32 codes with -1 for
missing. A chunk of a wide table has fewer rows, so that its size is bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import espalier
from service.serialization import load_pyarrow

MAX_CHUNK_ROWS: Final = 65_536
MAX_CHUNK_BYTES: Final = 64 * 2**20
CELL_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a data set, encoded as `content`."""

    first_row: int
    n_rows: int
    content: bytes


def chunk_rows(n_columns: int) -> int:
    """Return the number of rows in a full chunk of `n_columns` columns."""
    return max(1, min(MAX_CHUNK_ROWS, MAX_CHUNK_BYTES // (CELL_BYTES * max(n_columns, 1))))


def encode_table(table: espalier.Dataset, *, rows_per_chunk: int | None = None) -> Iterator[Chunk]:
    """Yield the chunks of a data set; each is encoded when it is requested."""
    pyarrow = load_pyarrow()
    n_rows = rows_per_chunk or chunk_rows(len(table.schema.features))
    options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
    for start in range(0, table.n_rows, n_rows):
        columns = [pyarrow.array(column) for column in table.slice(start, start + n_rows)]
        batch = pyarrow.record_batch(columns, names=[str(place) for place in range(len(columns))])
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        yield Chunk(start, batch.num_rows, sink.getvalue().to_pybytes())


def decode_chunks(
    chunks: Iterable[Chunk], schema: espalier.Schema, *, places: Sequence[int], start: int, stop: int
) -> Iterator[tuple[int, espalier.Dataset]]:
    """Yield the rows ``start:stop`` of the data set, chunk by chunk, as (number of the first row, rows).

    Each chunk must have some of these rows. `places` has the indices in `schema` of the features to read, in ascending
    order; other columns are not decompressed.
    """
    pyarrow = load_pyarrow()
    options = pyarrow.ipc.IpcReadOptions(included_fields=list(places))
    chosen = espalier.Schema(tuple(schema.features[place] for place in places), schema.missing_values)
    for chunk in chunks:
        first, last = max(start, chunk.first_row), min(stop, chunk.first_row + chunk.n_rows)
        with pyarrow.ipc.open_stream(chunk.content, options=options) as reader:
            batch = reader.read_next_batch().slice(first - chunk.first_row, last - first)
        yield first, espalier.Dataset(chosen, tuple(column.to_numpy() for column in batch.columns))


def join_rows(
    parts: Iterable[tuple[int, espalier.Dataset]], schema: espalier.Schema, *, start: int, stop: int
) -> espalier.Dataset:
    """Join the parts from `decode_chunks` or `Store.rows` into one data set with the rows ``start:stop``."""
    columns: tuple[Any, ...] = tuple(
        np.empty(stop - start, dtype=np.int32 if each.coded else np.float64) for each in schema.features
    )
    for first, part in parts:
        for column, cells in zip(columns, part.columns, strict=True):
            column[first - start : first - start + part.n_rows] = cells
    return espalier.Dataset(schema, columns)
