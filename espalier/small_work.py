"""Small work does not wait for a compiler.

::

    machine code is kept ──────────────────────► run it
    none yet, and the work is small ───────────► run the kernels as Python      14 rows: 0.2 s, 900 rows: 2 s
    none yet, large work or out of seconds ────► compile, keep, run             20 to 50 s, once a machine

A kernel is Python that numba compiles, and gives the same numbers either way. Work that turns out not to be small (its
tree grows without measure) is stopped when the seconds of this process are used up, and done again with compiled code.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from espalier.errors import Cancelled
from espalier.kernels.interpreting import Interpreting, interpreting
from espalier.progress import Progress

__all__ = ["always_compiled", "done_small", "waits_for_compiler"]

Result = TypeVar("Result")

SMALL_CELLS: Final = 10_000
"""Attributes times rows of a table whose training takes two or three seconds as Python."""
BUDGET_SECONDS: Final = 10.0
"""What a process spends on kernels as Python before it compiles: less than compiling takes."""
_ALLOWED: Final[ContextVar[bool]] = ContextVar("small_work_allowed", default=True)


class _Spent:
    """The seconds that this process has spent on kernels as Python."""

    seconds = 0.0


def done_small(n_cells: int, watch: Progress, work: Callable[[], Result]) -> Result:
    """Do `work` and give its result; where it is small, without waiting for a compiler.

    Args:
        n_cells: Attributes times rows that the work reads, and nodes.
        watch: What `work` itself looks at: it may be interrupted there and begun again.
        work: Has no effect but its result and what it tells `watch`.

    Raises:
        Cancelled: `watch` was stopped.

    >>> done_small(56, Progress(), lambda: "a tree")
    'a tree'
    """
    left = BUDGET_SECONDS - _Spent.seconds
    if n_cells > SMALL_CELLS or left <= 0 or waits_for_compiler():
        return work()
    began = time.monotonic()
    with interpreting() as block:
        alarm = threading.Timer(left, _interrupt, (block, watch))
        alarm.daemon = True
        alarm.start()
        try:
            return work()
        except Cancelled:
            pass
        finally:
            alarm.cancel()
            alarm.join()  # else it might still interrupt what comes after this work
            watch.go_on()
            if block.kernels:
                _Spent.seconds += time.monotonic() - began
    watch.check()
    return work()


@contextmanager
def always_compiled() -> Iterator[None]:
    """Let what is done in this block wait for the compiler, however small it is."""
    token = _ALLOWED.set(False)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def waits_for_compiler() -> bool:
    """Whether this is a block of `always_compiled`."""
    return not _ALLOWED.get()


def _interrupt(block: Interpreting, watch: Progress) -> None:
    block.is_over = True
    if block.kernels:
        watch.interrupt()
