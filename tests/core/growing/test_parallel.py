"""Work that is shared out over threads, and the memory that it is done in."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from espalier.growing.parallel import JobQueue
from espalier.threads import parallel_map


@dataclass(frozen=True)
class Job:
    n_rows: int
    name: str = ""


def test_the_largest_job_comes_first_and_of_equals_the_one_that_was_there_first() -> None:
    done = []

    def halves(job: Job) -> list[Job]:
        done.append(job)
        return [Job(job.n_rows // 2, "left"), Job(job.n_rows // 2, "right")] if job.n_rows > 2 else []

    JobQueue([Job(3, "a"), Job(8, "b"), Job(3, "c")]).run(halves)
    assert done[:3] == [Job(8, "b"), Job(4, "left"), Job(4, "right")]
    assert done[3:5] == [Job(3, "a"), Job(3, "c")]
    twos = 2 * [Job(2, "left"), Job(2, "right")]
    assert sorted(done[5:], key=str) == sorted(twos + 2 * [Job(1, "left"), Job(1, "right")], key=str)


def test_a_thread_that_finds_nothing_waits_for_what_another_still_brings() -> None:
    threads: dict[int, set[int]] = {0: set(), 1: set()}
    both = threading.Barrier(2, timeout=20)

    def do(job: Job) -> list[Job]:
        threads[job.n_rows].add(threading.get_ident())
        if job.n_rows == 0:
            return [Job(1), Job(1)]
        both.wait()  # passed only if the thread that had nothing at first took one of these two
        return []

    queue = JobQueue([Job(0)])
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(queue.run, do) for _ in range(2)]:
            each.result()
    assert len(threads[0]) == 1
    assert len(threads[1]) == 2


def test_a_job_that_fails_ends_its_thread_and_no_other() -> None:
    done = []

    def do(job: Job) -> list[Job]:
        if job.n_rows == 5:
            raise ValueError("five")
        done.append(job.n_rows)
        return []

    queue = JobQueue(map(Job, range(8)))
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(queue.run, do) for _ in range(2)]
    assert [str(end.exception()) for end in ends if end.exception()] == ["five"]
    assert sorted(done) == [0, 1, 2, 3, 4, 6, 7]


@pytest.mark.parametrize(("n_cells", "n_threads"), [(999_999, 1), (1_000_000, 2)])
def test_few_cells_make_no_threads(n_cells: int, n_threads: int) -> None:
    current_service = threading.get_ident()
    found = parallel_map(lambda _: threading.get_ident(), range(2), n_cells=n_cells)
    assert (found == [current_service, current_service]) == (n_threads == 1)
