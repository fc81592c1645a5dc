"""How fast this machine reads memory: the sum of a gigabyte of numbers, by one thread and by all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import Measurable, Subject, measure, n_processors, print_table
from benchmarks.run import Run

GIGABYTE: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes a second, read by one thread and by all."""

    one: float
    all: float

    @property
    def best(self) -> float:
        """The larger of the two."""
        return max(self.one, self.all)


def measured(run: Run) -> Bandwidth:
    """Measure it: best use of the machine, in a process of its own.

    Raises:
        RuntimeError: It could not be measured.
    """
    n_bytes = run.rows(GIGABYTE)
    counts = {"one": 1, "all": n_processors()}
    subjects = [
        Subject(name, "benchmarks.bandwidth:summing", {"n_threads": count, "n_bytes": n_bytes})
        for name, count in counts.items()
    ]
    found = measure(subjects, repetitions=5)
    if any(each.seconds is None for each in found.values()):
        raise RuntimeError(f"the read bandwidth could not be measured: {found}")
    return Bandwidth(**{name: n_bytes / (each.seconds or 1) for name, each in found.items()})


def show(found: Bandwidth) -> None:
    """Print it."""
    rows = [["1 thread", f"{found.one / 1e9:.1f}"], [f"{n_processors()} threads", f"{found.all / 1e9:.1f}"]]
    print_table("Reading memory, one after the other (sum of 1 GB)", ("threads", "GB/s"), rows)


def summing(n_threads: int, n_bytes: int) -> Measurable:
    """Give the sum of a large array, its parts shared out over threads."""
    total = _compiled_sum()
    parts = np.array_split(np.ones(n_bytes // 8), n_threads)
    pool = ThreadPoolExecutor(n_threads)

    def act() -> float:
        return float(sum(pool.map(total, parts)))

    return Measurable(act, warm_up=act)


def _compiled_sum() -> Callable[[npt.NDArray[Any]], Any]:
    import numba  # noqa: PLC0415 - only in the process that measures

    @numba.njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
    def total(numbers: npt.NDArray[Any]) -> Any:
        found = 0.0
        for place in range(np.uint64(0), np.uint64(len(numbers))):  # unsigned: a signed index may wrap, and gathers
            found += numbers[place]
        return found

    compiled: Callable[[npt.NDArray[Any]], Any] = total
    return compiled
