"""How many threads may work at once, and a loop that shares its rounds out over them."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final

__all__ = ["in_threads", "in_threads_if_many", "n_threads", "thread_pool"]

MANY_CELLS: Final = 1_000_000


def n_threads() -> int:
    """Give the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Make a pool whose threads see the context variables of the one that makes it.

    >>> with thread_pool(1) as pool:
    ...     pool.submit(pow, 2, 5).result()
    32
    """
    seen = tuple(copy_context().items())

    def begin() -> None:
        for variable, value in seen:
            variable.set(value)

    return ThreadPoolExecutor(threads, initializer=begin)


def in_threads(work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    """Give ``[work(a, b, …) for a, b, … in zip(…)]``, done by as many threads as there are processors.

    >>> in_threads(pow, (2, 3), (5, 4))
    [32, 81]
    """
    with thread_pool(n_threads()) as pool:
        return list(pool.map(work, *arguments))


def in_threads_if_many(n_cells: int, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    """Do the same by one thread where fewer than a million cells are looked at: making threads would take longer.

    >>> in_threads_if_many(10, abs, (-1, 2))
    [1, 2]
    """
    return in_threads(work, *arguments) if n_cells >= MANY_CELLS else list(map(work, *arguments))
