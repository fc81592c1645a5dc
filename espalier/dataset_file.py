"""Data sets whose cells are in a temporary file: as large as the disk allows, a stretch of rows in memory at a time.

file      | x0, rows 0–999 | x1, rows 0–999 | x0, rows 1 000–1 999 | x1, …
segment   a stretch of one column as it was read: float64, or int32 places in a table of what they stand for
"""

import os
import tempfile
import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from espalier.dataset import Column, Dataset, kept_fingerprint
from espalier.schema import Schema

__all__ = ["CellFile", "DatasetFile", "Segment", "StoredColumn"]

IN_MEMORY: Final = 2_000_000
"""Bytes that stay in memory; when there are more, all of them are written at once."""
MOST_AT_ONCE: Final = 1_000
"""Arrays in one call of the system."""
FIRST_ROW: Final = attrgetter("first_row")
PLACE_BYTES: Final = np.dtype(np.int32).itemsize
ROWS_AT_ONCE: Final = 65_536
"""Of a column, where it is read from its first row to its last."""


class CellFile:
    """Arrays in a temporary file, appended and read by several threads; gone when it is closed.

    What is appended waits in memory, and nobody may change it, until there is enough to be written by one call::

        file      | arrays ................ | written
        waiting                             | array | array | … end
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._files: list[_ByPlace] = []  # one, as soon as there is more than stays in memory
        self._closing = weakref.finalize(self, _close, self._files)
        self._waiting: list[Any] = []
        self._written = 0
        self._end = 0
        self._lock = threading.Lock()

    def append(self, array: npt.NDArray[Any]) -> int:
        """Take an array; give its place."""
        with self._lock:
            place = self._end
            if array.nbytes:
                self._waiting.append(np.ascontiguousarray(array).data.cast("B"))
                self._end += array.nbytes
            if self._end - self._written > self._in_memory:
                self._write()
        return place

    def read(self, place: int, n_items: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Read an array again."""
        array = np.empty(n_items, dtype=dtype)
        self.read_into(array, place)
        return array

    def read_into(self, array: npt.NDArray[Any], place: int) -> None:
        """Read an array, or a part of one that begins at this place."""
        end, n_bytes = place + array.nbytes, 0
        if end > self._written and array.nbytes and self._is_in_memory(array, place, end):
            return
        while n_bytes < array.nbytes:
            rest = array.data.cast("B")[n_bytes:] if n_bytes else array.data
            n_more = self._files[0].read(rest, place + n_bytes)
            if not n_more:
                raise EOFError("the file of cells ends before they do")
            n_bytes += n_more

    def close(self) -> None:
        """Forget everything."""
        self._waiting = []
        self._closing()

    def _is_in_memory(self, array: npt.NDArray[Any], place: int, end: int) -> bool:
        """Read an array if nothing was written yet; else write what waits."""
        with self._lock:
            if self._files:
                self._write()
                return False
            self._waiting = [memoryview(b"".join(self._waiting))]
            array.data.cast("B")[:] = self._waiting[0][place:end]
            return True

    def _write(self) -> None:
        if not self._files:
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with this object
            self._files.append(_ByPlace(file) if hasattr(os, "preadv") else _ByTurns(file))
        waiting = self._waiting
        while waiting:
            n_bytes = self._files[0].write(waiting[:MOST_AT_ONCE], self._written)  # or it waits on
            self._written += n_bytes
            while waiting and n_bytes >= len(waiting[0]):
                n_bytes -= len(waiting.pop(0))
            if n_bytes:
                waiting[0] = waiting[0][n_bytes:]


class _ByPlace:
    """A file of which each call says the place: several threads read and write at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def read(self, array: memoryview, place: int) -> int:
        """Read an array, or its beginning; give how many bytes."""
        return os.preadv(self.file.fileno(), [array], place)

    def write(self, arrays: Sequence[memoryview], place: int) -> int:
        """Write arrays one behind the other, or what the system takes; give how many bytes."""
        return os.pwritev(self.file.fileno(), arrays, place)


class _ByTurns(_ByPlace):
    """The same for systems without such calls (Windows, macOS before 11): one thread at a time moves to its place."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._lock = threading.Lock()

    def read(self, array: memoryview, place: int) -> int:
        with self._lock:
            self.file.seek(place)
            return int(self.file.readinto(array))  # type: ignore[attr-defined]

    def write(self, arrays: Sequence[memoryview], place: int) -> int:
        with self._lock:
            self.file.seek(place)
            return self.file.write(arrays[0])


def _close(files: list[_ByPlace]) -> None:
    for one in files:
        one.file.close()


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

    def read(self, file: CellFile, start: int, stop: int) -> npt.NDArray[Any]:
        """Read rows ``start:stop``."""
        cells: npt.NDArray[Any] = np.empty(max(stop - start, 0), dtype=self.dtype)
        first = max(bisect_right(self.segments, start, key=FIRST_ROW) - 1, 0)
        for segment in islice(self.segments, first, None):
            if segment.first_row >= stop:
                break
            low, high = max(start, segment.first_row), min(stop, segment.first_row + segment.n_rows)
            self._read_into(cells[low - start : high - start], file, segment, low - segment.first_row)
        return cells

    def parts(self, file: CellFile, n_rows: int) -> Iterator[npt.NDArray[Any]]:
        """Read the first so many rows, piece by piece."""
        for start in range(0, n_rows, ROWS_AT_ONCE):
            yield self.read(file, start, min(start + ROWS_AT_ONCE, n_rows))

    def _read_into(self, cells: npt.NDArray[Any], file: CellFile, segment: Segment, low: int) -> None:
        if segment.place is None:
            cells[:] = -1 if cells.dtype == np.int32 else np.nan
        elif self.table is None:
            file.read_into(cells, segment.place + low * cells.itemsize)
        else:
            cells[:] = self.table[file.read(segment.place + low * PLACE_BYTES, len(cells), np.int32)]


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
        return kept_fingerprint(self, lambda: (column.parts(self.file, self.n_rows) for column in self.columns))

    def stretch(self, start: int, stop: int) -> Iterator[Column]:
        """Give the cells of rows ``start:stop``, an array a column; each is read when it is asked for."""
        return (column.read(self.file, start, stop) for column in self.columns)

    def dataset(self) -> Dataset:
        """Give all of it in memory."""
        return Dataset(self.schema, tuple(self.stretch(0, self.n_rows)))

    def close(self) -> None:
        """Forget the cells."""
        self.file.close()
