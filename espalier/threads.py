"""The number of processors, a thread pool whose threads get the context variables, and a parallel map."""

import os
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MIN_CELLS_FOR_THREADS: Final = 1_000_000
"""Reading fewer cells takes less time than starting threads."""


def n_threads() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_pool(threads: int) -> "ThreadPoolExecutor":
    """Return a pool whose threads begin with the context variables of the calling thread.

    >>> with thread_pool(1) as pool:
    ...     pool.submit(pow, 2, 5).result()
    32
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a process that only predicts needs no pool

    seen = tuple(copy_context().items())

    def begin() -> None:
        for variable, value in seen:
            variable.set(value)

    return ThreadPoolExecutor(threads, initializer=begin)


def parallel_map(
    work: Callable[..., Any], *arguments: Iterable[Any], n_cells: int = MIN_CELLS_FOR_THREADS
) -> list[Any]:
    """Return ``[work(a, b, …) for a, b, … in zip(…)]``, computed by one thread per processor.

    `n_cells` is the approximate number of cells to read. Below `MIN_CELLS_FOR_THREADS`, no threads are started.

    >>> parallel_map(pow, (2, 3), (5, 4)), parallel_map(abs, (-1, 2), n_cells=2)
    ([32, 81], [1, 2])
    """
    if n_cells < MIN_CELLS_FOR_THREADS:
        return list(map(work, *arguments))
    with thread_pool(n_threads()) as pool:
        return list(pool.map(work, *arguments))
