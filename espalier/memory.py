"""Memory that is asked of the system itself: in large pages where much is written, and given back when it is over.

Memory that was freed may come back in pages of 4 KiB, and a sort that writes to 2 048 places at once then waits for the
processor to find its pages more than for the memory itself: on one machine 25 ms a column in the place of 17. And the C
library keeps what was freed, in each thread's own heap, for the next who asks: while a tree grows that is memory twice.
"""

import mmap
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["Lines", "large_array", "lines", "own_table"]

Array = npt.NDArray[Any]

LARGE_PAGE: Final = 2 << 20
LEAST_OWN: Final = 1 << 18
"""Bytes from which memory of its own is worth a call of the system."""
LEAST_IN_LARGE_PAGES: Final = 2 * LARGE_PAGE
"""Less is asked of the C library, which has some left from last time: to come by a new page takes longer than to fill
it."""
MOST_ROUNDING: Final = 8
"""Up to an eighth is added to fill large pages."""


def large_array(size: int, kind: npt.DTypeLike) -> Array:
    """Give an array that nothing was written to, in large pages if it fills two and the system has them.

    That is memory of its own, which the system has again as soon as nobody holds the array.

    >>> large_array(3, np.uint32).shape
    (3,)
    """
    memory = _memory(size * np.dtype(kind).itemsize, in_large_pages=True)
    return np.empty(size, kind) if memory is None else np.frombuffer(memory, kind, size)


def own_table(n_rows: int, width: int, kind: npt.DTypeLike) -> Array:
    """Give a table that nothing was written to; of memory of its own only what is written to counts.

    >>> own_table(3, 2, np.uint32).shape
    (3, 2)
    """
    memory = _memory(n_rows * width * np.dtype(kind).itemsize, in_large_pages=False)
    flat = np.empty(n_rows * width, kind) if memory is None else np.frombuffer(memory, kind)
    return flat.reshape(n_rows, width)


@dataclass(frozen=True, slots=True)
class Lines:
    """An array of lines, the middle of which can be given back while the rest is used.

    Attributes:
        array: (lines, n).
    """

    array: Array
    _memory: mmap.mmap | None

    def give_back(self, start: int, stop: int) -> None:
        """Give ``start:stop`` of every line back to the system, in whole pages; nobody may look there any more."""
        if self._memory is None:
            return
        n_lines, length = self.array.shape
        width = self.array.itemsize
        for line in range(n_lines):
            first = -(-(line * length + start) * width // mmap.PAGESIZE) * mmap.PAGESIZE
            last = (line * length + stop) * width // mmap.PAGESIZE * mmap.PAGESIZE
            if first < last:
                with suppress(OSError):  # then it is kept until the end
                    self._memory.madvise(mmap.MADV_DONTNEED, first, last - first)


def lines(n_lines: int, length: int, kind: npt.DTypeLike) -> Lines:
    """Give lines that nothing was written to.

    >>> table = lines(2, 3, np.uint32)
    >>> table.give_back(0, 3)
    >>> table.array.shape
    (2, 3)
    """
    memory = _memory(n_lines * length * np.dtype(kind).itemsize, in_large_pages=True)
    flat = np.empty(n_lines * length, kind) if memory is None else np.frombuffer(memory, kind, n_lines * length)
    return Lines(flat.reshape(n_lines, length), memory)


def _memory(n_bytes: int, *, in_large_pages: bool) -> mmap.mmap | None:
    """Ask the system for memory; None where there is little, or none to be had in this way."""
    least = LEAST_IN_LARGE_PAGES if in_large_pages else LEAST_OWN
    if n_bytes < least or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    whole = -(-n_bytes // LARGE_PAGE) * LARGE_PAGE
    if in_large_pages and whole - n_bytes <= n_bytes // MOST_ROUNDING:
        n_bytes = whole  # else its end is in small pages, and on some systems all of it
    # A system that is built without them, or that has no memory: numpy asks in the ordinary way, and says so.
    with suppress(OSError):
        memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if in_large_pages and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)
        return memory
    return None
