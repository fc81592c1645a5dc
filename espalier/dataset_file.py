"""Data sets whose cells are in a temporary file: as large as the disk allows, a stretch of rows in memory at a time.

file      | x0, rows 0–999 | x1, rows 0–999 | x0, rows 1 000–1 999 | x1, …
segment   a stretch of one column as it was read: float64, or int32 places in a table of what they stand for
"""

import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.dataset import Column, Dataset, kept_fingerprint
from espalier.schema import Schema

__all__ = ["CellFile", "DatasetFile", "Segment", "StoredColumn"]

IN_MEMORY: Final = 4_000_000
"""Bytes up to which cells stay in memory."""


class CellFile:
    """A temporary file of arrays, appended and read by several threads; gone when it is closed."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115 - closed with this object
        self._closing = weakref.finalize(self, self._file.close)
        self._end = 0
        self._lock = threading.Lock()

    def append(self, array: npt.NDArray[Any]) -> int:
        """Write an array; give its place."""
        with self._lock:
            place = self._end
            self._file.seek(place)
            self._file.write(np.ascontiguousarray(array).data)
            self._end += array.nbytes
        return place

    def read(self, place: int, n_items: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Read an array again."""
        with self._lock:
            self._file.seek(place)
            content = self._file.read(n_items * np.dtype(dtype).itemsize)
        return np.frombuffer(content, dtype=dtype)

    def close(self) -> None:
        """Forget everything."""
        self._closing()


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive cells of one column.

    Attributes:
        first_row: Of the table.
        n_rows: How many.
        place: In the file; None where all are missing.
    """

    first_row: int
    n_rows: int
    place: int | None


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column in a file.

    Attributes:
        segments: In the order of the rows, without gaps.
        table: What the stored int32 places stand for, int32 codes or float64, its last entry for -1 (missing); None
            where the cells are stored as float64.
        dtype: Of the column as it is read: int32 codes or float64.
    """

    segments: tuple[Segment, ...]
    table: npt.NDArray[Any] | None
    dtype: npt.DTypeLike

    def parts(self, file: CellFile, start: int, stop: int) -> Iterator[npt.NDArray[Any]]:
        """Read rows ``start:stop``, piece by piece."""
        for segment in self.segments:
            low, high = max(start - segment.first_row, 0), min(stop - segment.first_row, segment.n_rows)
            if low < high:
                yield self._piece(file, segment, low, high)

    def _piece(self, file: CellFile, segment: Segment, low: int, high: int) -> npt.NDArray[Any]:
        if segment.place is None:
            missing = -1 if np.dtype(self.dtype) == np.int32 else np.nan
            return np.full(high - low, missing, dtype=self.dtype)
        stored = np.dtype(np.float64 if self.table is None else np.int32)
        cells = file.read(segment.place + low * stored.itemsize, high - low, stored)
        return cells if self.table is None else self.table[cells]


@dataclass(frozen=True, eq=False)
class DatasetFile:
    """A data set whose cells are in a temporary file; what it says is what `Dataset` would say of the same table.

    Attributes:
        schema: Kind, role and categories of each column.
        n_rows: Number of rows.
        notices: As `Dataset.notices`.
        columns: One a schema feature.
        file: Holds their cells.
    """

    schema: Schema
    n_rows: int
    notices: tuple[str, ...]
    columns: tuple[StoredColumn, ...]
    file: CellFile

    @property
    def fingerprint(self) -> str:
        """As `Dataset.fingerprint`."""
        return kept_fingerprint(self, lambda: (column.parts(self.file, 0, self.n_rows) for column in self.columns))

    def stretch(self, start: int, stop: int) -> tuple[Column, ...]:
        """Give the cells of rows ``start:stop``, an array a column."""
        return tuple(_joined(list(column.parts(self.file, start, stop)), column.dtype) for column in self.columns)

    def dataset(self) -> Dataset:
        """Give all of it in memory."""
        return Dataset(self.schema, self.stretch(0, self.n_rows))

    def close(self) -> None:
        """Forget the cells."""
        self.file.close()


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)
