"""How many threads may work at once, and a loop that shares its rounds out over them."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

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


@dataclass(frozen=True, slots=True)
class Crew:
    """Threads that work together, one task after the other; the one that asks is one of them.

    Attributes:
        n_threads: How many they are.
        pool: Where the others wait; None where there are none.
    """

    n_threads: int
    pool: ThreadPoolExecutor | None = None

    def each(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Give ``[work(a, b, …) for a, b, … in zip(…)]``; the first is the work of the thread that asks."""
        if self.pool is None:
            return list(map(work, *arguments))
        # Who only waits has to be woken: that takes as long as a short piece of work.
        pieces = list(zip(*arguments, strict=True))
        waiting = [self.pool.submit(work, *each) for each in pieces[1:]]
        return [*(work(*each) for each in pieces[:1]), *(each.result() for each in waiting)]

    def in_turn(self, work: Callable[[Any], Any], pieces: Sequence[Any]) -> list[Any]:
        """Give ``[work(each) for each in pieces]``: who is free takes the next, so let the longest come first."""
        done = [None] * len(pieces)
        numbers = itertools.count()

        def work_off(_: int) -> None:
            while (place := next(numbers)) < len(pieces):
                done[place] = work(pieces[place])

        self.each(work_off, range(min(self.n_threads, len(pieces))))
        return done

    def bounds(self, count: int) -> list[int]:
        """Give where each thread's stretch of `count` things begins, and where the last one ends."""
        return [count * place // self.n_threads for place in range(self.n_threads + 1)]

    def stretches(self, work: Callable[[int, int], Any], count: int) -> list[Any]:
        """Call `work` with where each thread's stretch of `count` things begins and ends.

        Where there is much to do and each piece is short: a call takes the interpreter's lock, which another thread may
        hold.
        """
        bounds = self.bounds(count)
        return self.each(work, bounds[:-1], bounds[1:])


@contextmanager
def crew(threads: int) -> Iterator[Crew]:
    """Give a crew, whose threads are made once for all that they do; one thread is the one that asks.

    >>> with crew(2) as both:
    ...     both.each(pow, (2, 3), (5, 4)), both.in_turn(abs, (-3, 2, -1)), both.stretches(range, 5)
    ([32, 81], [3, 2, 1], [range(0, 2), range(2, 5)])
    """
    if threads == 1:
        yield Crew(1)
        return
    with thread_pool(threads - 1) as pool:
        yield Crew(threads, pool)


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
