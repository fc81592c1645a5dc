"""Measure how fast this machine reads memory: one thread or all threads reduce a gigabyte of numbers to one number."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.measuring import Measurable, Subject, measure, n_processors, print_table
from benchmarks.run import Run

GIGABYTE: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes per second that one thread reads, and that all threads read together."""

    one: float
    all: float

    @property
    def best(self) -> float:
        """Return the larger bandwidth."""
        return max(self.one, self.all)


def measured(run: Run) -> Bandwidth:
    """Measure the bandwidth in a separate process for each number of threads.

    Raises:
        RuntimeError: The bandwidth could not be measured.
    """
    n_bytes = run.rows(GIGABYTE)
    counts = {"one": 1, "all": n_processors()}
    subjects = [
        Subject(name, "benchmarks.bandwidth:reading", {"n_threads": count, "n_bytes": n_bytes})
        for name, count in counts.items()
    ]
    results = measure(subjects, repetitions=5)
    if any(each.seconds is None for each in results.values()):
        raise RuntimeError(f"the read bandwidth could not be measured: {results}")
    return Bandwidth(**{name: n_bytes / (each.seconds or 1) for name, each in results.items()})


def show(bandwidth: Bandwidth) -> None:
    """Print the table of the bandwidth."""
    rows = [["1 thread", f"{bandwidth.one / 1e9:.1f}"], [f"{n_processors()} threads", f"{bandwidth.all / 1e9:.1f}"]]
    print_table("Reading memory, one after the other (an array reduced to one number)", ("threads", "GB/s"), rows)


def reading(n_threads: int, n_bytes: int) -> Measurable:
    """Return a measurable in which threads combine the parts of a large array into one number."""
    parts = np.array_split(np.ones(n_bytes // 8, np.int64), n_threads)
    pool = ThreadPoolExecutor(n_threads)

    def act() -> int:
        # numpy reads eight numbers at a time here, without the interpreter's lock.
        return sum(pool.map(np.bitwise_or.reduce, parts))

    return Measurable(act, warm_up=act)
