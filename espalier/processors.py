"""How many threads may work at once, and a loop that shares its rounds out over them."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["in_threads", "n_threads"]


def n_threads() -> int:
    """Give the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    """Give ``[work(a, b, …) for a, b, … in zip(…)]``, done by as many threads as there are processors.

    >>> in_threads(pow, (2, 3), (5, 4))
    [32, 81]
    """
    with ThreadPoolExecutor(n_threads()) as pool:
        return list(pool.map(work, *arguments))
