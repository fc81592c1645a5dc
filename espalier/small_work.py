"""Run small work without waiting for a compiler: kernels run as Python if no machine code is kept yet.

A kernel is Python that numba compiles, and returns the same numbers either way. Compiling takes 20 to 50 seconds, once
a machine; a small training as Python takes two or three. A process that has spent ten seconds so compiles from then on.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from espalier.kernels.interpreting import interpreting

Result = TypeVar("Result")

SMALL_CELLS: Final = 10_000
"""Attributes times rows of a table whose training takes two or three seconds as Python."""
BUDGET_SECONDS: Final = 10.0
_ALLOWED: Final[ContextVar[bool]] = ContextVar("small_work_allowed", default=True)
_SPENT: Final = {"seconds": 0.0}


def run_uncompiled_if_small(n_cells: int, work: Callable[[], Result]) -> Result:
    """Return what `work` returns; small work does not wait for a compiler.

    Args:
        n_cells: Attributes times rows that the work reads, plus nodes of a tree that it reads.
        work: Calls kernels.

    >>> run_uncompiled_if_small(56, lambda: "a tree")
    'a tree'
    """
    if n_cells > SMALL_CELLS or _SPENT["seconds"] >= BUDGET_SECONDS or waits_for_compiler():
        return work()
    began = time.monotonic()
    with interpreting() as block:
        try:
            return work()
        finally:
            if block.kernels:
                _SPENT["seconds"] += time.monotonic() - began


@contextmanager
def always_compiled() -> Iterator[None]:
    """Compile what is called in this block, however small the work is."""
    token = _ALLOWED.set(False)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def waits_for_compiler() -> bool:
    """Return whether this is a block of `always_compiled`."""
    return not _ALLOWED.get()
