"""The parallel driver of both growers: threads take the largest node first, and one thread reports progress.

A job is a node that is still to be grown. A thread that takes one either splits the node and returns jobs for its
children, or grows the whole subtree and returns none::

    queue (largest first)  ──►  thread 0: advance(job)  ──►  jobs of the children  ──►  queue
                           ──►  thread 1: advance(job)  ──►  …
    calling thread: report() every 50 ms: progress out, stop flag in

Every node sees the same rows in the same order, whichever thread grows it, so the tree does not depend on the number of
threads.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Condition
from typing import Final, Generic, Protocol, TypeVar

from espalier.arrays import Floats

WATCH_SECONDS: Final = 0.05


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
    """Run jobs, and those that they return, until none is left.

    `advance` runs a job on the thread of the given number and returns the jobs that remain. `report` is called every
    50 ms, and once more at the end. No job is started once ``state[1]`` is set; it is set if a job raises. At least
    `n_threads` threads of `pool` are free.
    """
    queue = JobQueue(jobs)

    def work(thread: int) -> None:
        queue.run(lambda job: () if state[1] else advance(job, thread))

    running = [pool.submit(work, thread) for thread in range(n_threads)]
    pending: set[Future[None]] = set(running)
    while pending:
        done, pending = wait(pending, timeout=WATCH_SECONDS)
        if any(each.exception() for each in done):
            state[1] = 1.0
        report()
    for each in running:
        each.result()


class JobQueue(Generic[Job]):
    """Jobs that several threads take: the largest first; of equally large ones, the first added."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._pending: list[tuple[int, int, Job]] = []
        self._numbers = itertools.count()
        self._n_busy = 0
        self._changed = Condition()
        self._add(jobs)

    def run(self, do: Callable[[Job], Iterable[Job]]) -> None:
        """Run jobs until none is left and no other thread runs one that may return more.

        If `do` raises, this call raises the same error, and other threads continue.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or not self._n_busy)
                if not self._pending:
                    return
                _, _, job = heapq.heappop(self._pending)
                self._n_busy += 1
            following: Iterable[Job] = ()
            try:
                following = do(job)
            finally:
                with self._changed:
                    self._n_busy -= 1
                    self._add(following)
                    self._changed.notify_all()

    def _add(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            heapq.heappush(self._pending, (-job.n_rows, next(self._numbers), job))
