"""The cells of data sets as chunks: consecutive rows, each as the bytes of one Parquet file.

    rows      0 ........ 65 535 | 65 536 ........ 131 071 | ...
    chunk     first_row = 0     | first_row = 65 536      |
    columns   c0, c1, …: one a feature of the schema, in its order; float64, or int32 codes with -1 for missing

pyarrow is loaded by the first call that needs it: a process that only predicts never does.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import espalier

__all__ = ["CHUNK_ROWS", "Chunk", "cells", "encode", "encode_rows"]

CHUNK_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a data set as the bytes of one Parquet file."""

    first_row: int
    n_rows: int
    content: bytes


def encode(table: espalier.Table, *, chunk_rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Pack a data set into chunks; do it before the transaction, since it takes the longest."""
    for first_row in range(0, table.n_rows, chunk_rows):
        yield encode_rows(table, first_row, min(first_row + chunk_rows, table.n_rows))


def encode_rows(table: espalier.Table, start: int, stop: int) -> Chunk:
    """Pack rows ``start:stop`` of a data set."""
    return Chunk(start, stop - start, _packed(table.stretch(start, stop)))


def cells(content: bytes, places: list[int], *, start: int, stop: int) -> list[np.ndarray]:
    """Unpack rows ``start:stop`` of a chunk's columns at `places`."""
    from pyarrow import parquet  # noqa: PLC0415 - see the top of this module

    names = [f"c{place}" for place in places]
    table = parquet.read_table(io.BytesIO(content), columns=names, use_threads=False)
    return [column.to_numpy()[max(start, 0) : stop] for column in table.columns]


def _packed(columns: tuple[np.ndarray, ...]) -> bytes:
    import pyarrow  # noqa: PLC0415 - see the top of this module
    from pyarrow import parquet  # noqa: PLC0415 - as above

    names = [f"c{place}" for place in range(len(columns))]
    table = pyarrow.table([pyarrow.array(column) for column in columns], names=names)
    coded = [name for name, column in zip(names, columns, strict=True) if column.dtype == np.int32]
    content = io.BytesIO()
    # A dictionary of 65 536 numbers that all differ is made for nothing: it took four fifths of the time. Split by
    # bytes, what numbers of one column have in common lies together and shrinks as well.
    parquet.write_table(
        table,
        content,
        compression="zstd",
        use_dictionary=coded,
        use_byte_stream_split=[name for name in names if name not in coded],
        write_statistics=False,
    )
    return content.getvalue()
