"""The parallel driver of both growers: threads take the largest node first, and one thread reports progress.

A job is a node that is still to be grown. A thread that takes one either splits the node and returns jobs for its
children, or grows the whole subtree and returns none::

    pending (largest first)  ──►  thread 0: advance(job)  ──►  jobs of the children  ──►  pending
                             ──►  thread 1: advance(job)  ──►  …
    calling thread: starts the jobs, and calls report(): progress out, stop flag in
"""

import heapq
import itertools
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final, Protocol, TypeVar

from espalier.arrays import Floats

WATCH_SECONDS: Final = 0.05
"""Time between two reports. A report reads the state of every job so far: one per job would take quadratic time."""


class SizedJob(Protocol):
    """A job with a number of rows."""

    @property
    def n_rows(self) -> int:
        """Number of rows of the node."""


Job = TypeVar("Job", bound=SizedJob)


def run_jobs(
    jobs: Iterable[Job],
    advance: Callable[[Job, int], Iterable[Job]],
    report: Callable[[], None],
    *,
    state: Floats,
    pool: ThreadPoolExecutor,
    n_threads: int,
) -> None:
    """Run jobs, and those that they return, until none is left: the largest first, of equal sizes the first added.

    `advance` runs a job on the thread of the given number and returns the jobs that remain. `report` is called about
    every `WATCH_SECONDS`, and at the end. No job is started once the stop flag, ``state[1]``, is set. A job that raises
    sets it, and its error is raised when the running jobs have ended. `pool` must have `n_threads` free threads.
    """
    numbers = itertools.count()
    pending = [(-job.n_rows, next(numbers), job) for job in jobs]
    heapq.heapify(pending)
    threads, running, failed = list(range(n_threads)), dict[Future[Iterable[Job]], int](), list[Future[Iterable[Job]]]()
    reported = time.monotonic()
    while running or (pending and not state[1]):
        while pending and threads and not state[1]:
            thread = threads.pop()
            running[pool.submit(advance, heapq.heappop(pending)[2], thread)] = thread
        for future in wait(running, timeout=WATCH_SECONDS, return_when=FIRST_COMPLETED).done:
            threads.append(running.pop(future))
            if future.exception():
                failed.append(future)
                state[1] = 1.0
            else:
                for job in future.result():
                    heapq.heappush(pending, (-job.n_rows, next(numbers), job))
        if time.monotonic() - reported >= WATCH_SECONDS:
            report()
            reported = time.monotonic()
    report()
    for future in failed:
        future.result()
