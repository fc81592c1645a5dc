"""The cells of data sets as chunks: consecutive rows, each column packed by itself.

    rows      0 ........ 65 535 | 65 536 ........ 131 071 | ...
    chunk     first_row = 0     | first_row = 65 536      |
    content   "ESPD" | 4 bytes: length of the forms | the forms, JSON: one a column | column 0 | column 1 | …

A column is one of the schema's features, in their order; `service.cell_packing` says how it is packed. Chunks from
before there were words begin with "ESPC". Those from before this layout are Parquet files, whose columns are called c0,
c1, …; they are read by pyarrow.
"""

import io
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import orjson

import espalier
from service.cell_packing import pack_column, packed_size, unpack_column

__all__ = ["CHUNK_ROWS", "Chunk", "Packed", "encode_rows", "unpack_rows"]

CHUNK_ROWS = 65_536
MAGIC: Final = b"ESPD"
MAGICS: Final = (MAGIC, b"ESPC")
"""Of chunks that are read; a program that does not know the forms of a chunk must not know its first bytes either."""
LENGTH: Final = struct.Struct("<I")
HEAD: Final = len(MAGIC) + LENGTH.size


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a data set, packed."""

    first_row: int
    n_rows: int
    content: bytes


class Packed(Protocol):
    """The content of a chunk, read from its beginning on, as a file is."""

    def read(self, size: int = -1, /) -> bytes:
        """Give so many bytes, or all that are left."""
        ...

    def seek(self, offset: int, whence: int, /) -> Any:
        """Pass over so many bytes, where ``whence`` is `os.SEEK_CUR`."""
        ...


def encode_rows(table: espalier.Table, start: int, stop: int) -> Chunk:
    """Pack rows ``start:stop`` of a data set."""
    return Chunk(start, stop - start, _packed(table.stretch(start, stop), stop - start))


def unpack_rows(
    content: Packed, places: Sequence[int], *, start: int, stop: int, out: Sequence[npt.NDArray[Any]]
) -> None:
    """Unpack rows ``start:stop`` of a chunk's columns at `places`, each into its array of `out`: (stop - start,).

    The places ascend; a column is in memory, packed, while it is unpacked.
    """
    head = content.read(HEAD)
    if not head.startswith(MAGICS):
        _read_parquet(head + content.read(), places, start=start, stop=stop, out=out)
        return
    (length,) = LENGTH.unpack_from(head, len(MAGIC))
    told = orjson.loads(content.read(length))
    n_rows, forms = told["n_rows"], told["columns"]
    wanted = dict(zip(places, out, strict=True))
    for place, form in enumerate(forms):
        size = packed_size(form, n_rows)
        if place not in wanted:
            content.seek(size, os.SEEK_CUR)
            continue
        packed, column = memoryview(content.read(size)), wanted[place]
        if start == 0 and stop == n_rows:
            unpack_column(form, packed, column)
        else:
            whole = np.empty(n_rows, dtype=column.dtype)
            unpack_column(form, packed, whole)
            column[:] = whole[start:stop]


def _packed(columns: Iterable[npt.NDArray[Any]], n_rows: int) -> bytes:
    packed = [pack_column(column) for column in columns]
    told = orjson.dumps({"n_rows": n_rows, "columns": [each.form for each in packed]})
    return b"".join([MAGIC, LENGTH.pack(len(told)), told, *(part.data for each in packed for part in each.parts)])


def _read_parquet(
    content: bytes, places: Sequence[int], *, start: int, stop: int, out: Sequence[npt.NDArray[Any]]
) -> None:
    from pyarrow import parquet  # noqa: PLC0415 - for old chunks only

    table = parquet.read_table(io.BytesIO(content), columns=[f"c{place}" for place in places], use_threads=False)
    for column, found in zip(out, table.columns, strict=True):
        column[:] = found.to_numpy()[start:stop]
