"""A temporary file for columns that are too large for memory. The encoded columns are memory-mapped from this file.

file    | x0, rows 0–999 | x1, rows 0–999 | x0, rows 1000–1999 | … | x0, encoded | x1, encoded | …
                                                                     memory-mapped
"""

import mmap
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from espalier.arrays import Array

MAX_BYTES_IN_MEMORY: Final = 2**25
"""If the blocks of a table that are in memory have more bytes, they are written to the file."""
ITEM_BYTES: Final = 8
"""Arrays begin at multiples of this number of bytes."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """The position of an array in the file: its offset in bytes, and its number of items."""

    offset: int
    n_items: int


class Spill:
    """A temporary file of arrays. Its space is freed when it is closed and no mapped array is referenced."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115 - see close()
        self._end = 0

    def write(self, array: Array) -> StoredArray:
        """Append an array and return its position."""
        self._file.seek(self._end)
        stored = StoredArray(self._end, len(array))
        rest = np.ascontiguousarray(array).data.cast("B") if len(array) else memoryview(b"")
        self._end += -(-len(rest) // ITEM_BYTES) * ITEM_BYTES
        while rest:
            rest = rest[self._file.write(rest) :]
        return stored

    def read(self, parts: Sequence[StoredArray], dtype: npt.DTypeLike) -> Array:
        """Read arrays of one dtype from the file and return them as one array in memory."""
        whole = np.empty(sum(part.n_items for part in parts), dtype=dtype)
        first = 0
        for part in parts:
            rest = whole[first : first + part.n_items].data.cast("B") if part.n_items else memoryview(b"")
            self._file.seek(part.offset)
            while rest and (n_bytes := self._file.readinto(rest)):
                rest = rest[n_bytes:]
            first += part.n_items
        return whole

    def mapped(self, arrays: Sequence[tuple[StoredArray, npt.DTypeLike]]) -> list[Array]:
        """Return memory-mapped, read-only arrays. Each is given by its position in the file and its dtype."""
        whole = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return [np.frombuffer(whole, dtype, stored.n_items, stored.offset) for stored, dtype in arrays]

    def close(self) -> None:
        """Close the file; mapped arrays stay readable."""
        self._file.close()
