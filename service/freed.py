"""Memory that nobody uses any more, given back to the system.

The C library keeps what was freed, in each thread's own heap, for the next who asks. After something large that comes
seldom, that is most of what an idle process holds.
"""

import ctypes
import sys
from functools import cache
from typing import Any

__all__ = ["give_back"]


def give_back() -> None:
    """Give back what is free, where the C library can: GNU's takes some milliseconds for it."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
