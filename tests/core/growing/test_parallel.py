"""Work that is shared out over threads."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from espalier.growing.parallel import WATCH_SECONDS, run_jobs
from espalier.threads import parallel_map


@dataclass(frozen=True)
class Job:
    n_rows: int
    name: str = ""


def run(jobs: Iterable[Job], do: Callable[[Job], list[Job]], n_threads: int = 1) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        run_jobs(jobs, lambda job, _: do(job), lambda: None, state=np.zeros(2), pool=pool, n_threads=n_threads)


def test_the_largest_job_comes_first_and_of_equals_the_one_that_was_there_first() -> None:
    done = []

    def halves(job: Job) -> list[Job]:
        done.append(job)
        return [Job(job.n_rows // 2, "left"), Job(job.n_rows // 2, "right")] if job.n_rows > 2 else []

    run([Job(3, "a"), Job(8, "b"), Job(3, "c")], halves)
    assert done[:3] == [Job(8, "b"), Job(4, "left"), Job(4, "right")]
    assert done[3:5] == [Job(3, "a"), Job(3, "c")]
    twos = 2 * [Job(2, "left"), Job(2, "right")]
    assert sorted(done[5:], key=str) == sorted(twos + 2 * [Job(1, "left"), Job(1, "right")], key=str)


def test_a_thread_without_a_job_gets_one_that_another_brings() -> None:
    threads: dict[int, set[int]] = {0: set(), 1: set()}
    both = threading.Barrier(2, timeout=20)

    def do(job: Job) -> list[Job]:
        threads[job.n_rows].add(threading.get_ident())
        if job.n_rows == 0:
            return [Job(1), Job(1)]
        both.wait()  # passed only if the thread that had nothing at first took one of these two
        return []

    run([Job(0)], do, n_threads=2)
    assert len(threads[0]) == 1
    assert len(threads[1]) == 2


def test_after_a_job_that_fails_no_other_begins() -> None:
    done = []

    def do(job: Job) -> list[Job]:
        if job.n_rows == 5:
            raise ValueError("five")
        done.append(job.n_rows)
        return []

    with pytest.raises(ValueError, match="five"):
        run(map(Job, range(8)), do)
    assert done == [7, 6]


def test_a_job_that_runs_when_another_fails_ends_first_and_those_that_it_returns_do_not_begin() -> None:
    both, state, begun, ended = threading.Barrier(2, timeout=20), np.zeros(2), [], []
    has_failed = threading.Event()

    def advance(job: Job, _thread: int) -> list[Job]:
        begun.append(job.name)
        both.wait()
        if job.name == "fails":
            raise ValueError("failed")
        assert has_failed.wait(timeout=20)
        ended.append(job.name)
        return [Job(3, "returned")]

    def report() -> None:
        if state[1]:
            has_failed.set()

    jobs = [Job(2, "fails"), Job(2, "runs"), Job(1, "pending")]
    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="failed"):
        run_jobs(jobs, advance, report, state=state, pool=pool, n_threads=2)
    assert sorted(begun) == ["fails", "runs"]
    assert ended == ["runs"]


def test_after_a_stop_from_outside_no_job_begins_and_the_end_is_reported() -> None:
    is_stopped, state, done, reported = threading.Event(), np.zeros(2), list[str](), list[list[str]]()

    def advance(job: Job, _thread: int) -> list[Job]:
        assert is_stopped.wait(timeout=20)
        done.append(job.name)
        return [Job(3, "returned")]

    def report() -> None:
        reported.append(done.copy())
        state[1] = 1.0
        is_stopped.set()

    with ThreadPoolExecutor(1) as pool:
        run_jobs([Job(2, "runs"), Job(1, "pending")], advance, report, state=state, pool=pool, n_threads=1)
    assert done == ["runs"]
    assert (reported[0], reported[-1]) == ([], ["runs"])


def test_many_short_jobs_are_reported_together() -> None:
    reports, start = [], time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        run_jobs(
            map(Job, range(2_000)), lambda *_: [], lambda: reports.append(1), state=np.zeros(2), pool=pool, n_threads=1
        )
    assert 1 <= len(reports) <= 1 + (time.monotonic() - start) / WATCH_SECONDS


@pytest.mark.parametrize(("n_cells", "n_threads"), [(999_999, 1), (1_000_000, 2)])
def test_few_cells_make_no_threads(n_cells: int, n_threads: int) -> None:
    current_service = threading.get_ident()
    found = parallel_map(lambda _: threading.get_ident(), range(2), n_cells=n_cells)
    assert (found == [current_service, current_service]) == (n_threads == 1)
