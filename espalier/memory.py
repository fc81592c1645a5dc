"""Memory in large pages, for arrays that are written to all over.

Memory that was freed may come back in pages of 4 KiB, and a sort that writes to 2 048 places at once then waits for the
processor to find its pages more than for the memory itself: on one machine 25 ms a column in the place of 17.
"""

import mmap
from contextlib import suppress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["large_array"]

LARGE_PAGE: Final = 2 << 20


def large_array(size: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Give an array that nothing was written to, in large pages if it fills one and the system has them.

    >>> large_array(3, np.uint32).shape
    (3,)
    """
    n_bytes = size * np.dtype(kind).itemsize
    if n_bytes >= LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        # A system that is built without them, or that has no memory: numpy asks in the ordinary way, and says so.
        with suppress(OSError):
            memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            memory.madvise(mmap.MADV_HUGEPAGE)
            return np.frombuffer(memory, kind)
    return np.empty(size, kind)
