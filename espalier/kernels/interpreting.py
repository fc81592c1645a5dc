"""Kernels run as the Python that they are written in, where small work would wait for the compiler.

numba is not loaded here: a block is opened around work that may never come to a kernel.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(slots=True)
class Interpreting:
    """A block of work in which a kernel without machine code runs as Python.

    Attributes:
        kernels: Those that did.
    """

    kernels: set[Any] = field(default_factory=set)


_CURRENT: Final[ContextVar[Interpreting | None]] = ContextVar("interpreting", default=None)


def current() -> Interpreting | None:
    """Return the block that this thread is in; None outside of one."""
    return _CURRENT.get()


@contextmanager
def interpreting() -> Iterator[Interpreting]:
    """Open a block for this thread, and for those of a pool that it makes (`espalier.threads.thread_pool`).

    >>> with interpreting() as block:
    ...     current() is block
    True
    >>> current() is None
    True
    """
    block = Interpreting()
    token = _CURRENT.set(block)
    try:
        yield block
    finally:
        _CURRENT.reset(token)
