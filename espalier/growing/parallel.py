"""The parallel driver of both growers: threads take the largest node first, and the calling thread reports progress.

A job is a node that is still to be grown. A thread that takes a job either splits the node and returns jobs for its
children, or grows the whole subtree and returns no jobs::

    pending (largest first)  ──►  thread 0: advance(job)  ──►  jobs of the children  ──►  pending
                             ──►  thread 1: advance(job)  ──►  …
    calling thread: starts the jobs, and calls report(): progress out, stop flag in
"""

import heapq
import itertools
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, TypeVar

from espalier.arrays import Floats

WATCH_SECONDS: Final = 0.05
"""Least time between two reports. A report reads the states of all jobs so far, so one report per job would be slow."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A node to be grown. Its rows are the range ``start:stop`` of every sequence of rows, however it is sorted."""

    node: int
    depth: int
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        """Number of rows of the node."""
        return self.stop - self.start


AnyJob = TypeVar("AnyJob", bound=Job)


def run_jobs(
    jobs: Iterable[AnyJob],
    advance: Callable[[AnyJob, int], Iterable[AnyJob]],
    report: Callable[[], None],
    *,
    state: Floats,
    pool: ThreadPoolExecutor,
    n_threads: int,
) -> None:
    """Run jobs, and the jobs that these return, until none is left.

    The job with the most rows is started first; among equal jobs, the one that was added first. An error of a job sets
    the stop flag, and is raised when the running jobs have ended.

    Args:
        jobs: The first jobs.
        advance: Runs a job and returns further jobs. Its second argument, from 0 to `n_threads` - 1, differs between
            running jobs and selects the scratch arrays.
        report: Called about every `WATCH_SECONDS`, and at the end.
        state: float64 (2); ``state[1]`` is the stop flag. No job is started once it is set.
        pool: Has at least `n_threads` free threads.
        n_threads: Maximum number of jobs that run at the same time.
    """
    numbers = itertools.count()
    pending = [(-job.n_rows, next(numbers), job) for job in jobs]
    heapq.heapify(pending)
    threads, failed = list(range(n_threads)), list[Future[Iterable[AnyJob]]]()
    running = dict[Future[Iterable[AnyJob]], int]()
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
