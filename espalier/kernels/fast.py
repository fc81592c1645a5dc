"""How the growing of one tree in the fast lane is shared out over threads.

The top of the tree is grown node by node, columns shared out; below, every subtree is one job of its own. Both use the
same scans, so the tree does not depend on the number of threads.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.kernels import grow_binary, scans
from espalier.kernels.fast_nodes import N_INTS, N_REALS, WEIGHT
from espalier.kernels.fast_table import FastTable
from espalier.kernels.joining import Part
from espalier.processors import n_threads

__all__ = ["grow_fast"]

Array = npt.NDArray[Any]

LEAST_ROWS_OF_A_JOB: Final = 20_000
LEAST_SORTED_CELLS_OF_A_JOB: Final = 200_000
"""A job copies its sorted columns: what is too little to be shared out need not be copied in large pieces either."""
JOBS_A_THREAD: Final = 16
LEAST_ROWS_TO_SHARE: Final = 20_000
MOST_POOL_BYTES: Final = 64_000_000
WATCH_SECONDS: Final = 0.05


def grow_fast(rules: Any, table: FastTable, state: Array, pool: ThreadPoolExecutor) -> list[Part] | None:
    """Grow the tree; returns its parts, the top first, or None if it was stopped.

    state: float64 (2), share settled (written) and stop flag (read).
    """
    return _Grower(rules, table, state, pool).grow()


@dataclass(frozen=True, slots=True)
class _Job:
    """A subtree that is still to be grown: its root's number and stretch, and the columns that are constant there."""

    node: int
    depth: int
    start: int
    stop: int
    flat: Array


class _Grower:
    """One growing of one tree: the top's tables, and the jobs that it leaves."""

    def __init__(self, rules: Any, table: FastTable, state: Array, pool: ThreadPoolExecutor) -> None:
        self.rules, self.table, self.state, self.pool = rules, table, state, pool
        self.threads = threads = n_threads()
        self.n_rows = table.orders.shape[1]
        self.n_columns = len(table.sorted_attribute) + len(table.coded_attribute)
        width = rules.n_classes or 3
        room = 2 * JOBS_A_THREAD * 8 * threads + 64
        self.ints = np.empty((room, N_INTS), np.int32)
        self.reals = np.empty((room, N_REALS))
        self.stats = np.empty((room, width))
        self.totals = np.empty(2 if table.numeric or table.kind == scans.WEIGHTED_PAIR else width)
        self.sides = np.zeros(self.n_rows // 32 + 1, np.uint32)
        self.places = np.empty(self.n_rows, np.int32)
        self.n_nodes = 1
        self.settled_at_top = 0.0

    def grow(self) -> list[Part] | None:
        table, state = self.table, self.state
        is_leaf = grow_binary.sum_root(
            self.rules, table.numeric, table.kind, table.orders[-1], table.rows_of, table.target, self.ints, self.reals,
            self.stats,
        )  # fmt: skip
        if is_leaf:
            state[0] = 1.0
            return [self._top()]
        root = _Job(0, 0, 0, self.n_rows, np.zeros(self.n_columns + 1, np.uint8))
        jobs = self._grow_top(root)
        jobs.sort(key=lambda job: job.start - job.stop)
        settled = [np.zeros(1) for _ in jobs]
        running = [self.pool.submit(self._grow_job, *each) for each in zip(jobs, settled, strict=True)]
        self._watch(running, settled)
        grown = [each.result() for each in running]
        if state[1]:
            return None
        return [self._top(), *(Part(job.node, *made) for job, made in zip(jobs, grown, strict=True))]

    def _top(self) -> Part:
        return Part(0, self.n_nodes, self.ints, self.reals, self.stats)

    def _grow_top(self, root: _Job) -> list[_Job]:
        """Split the largest nodes with all threads at each, until what is left can be shared out."""
        n_sorted = len(self.table.sorted_attribute)
        enough = min(LEAST_ROWS_OF_A_JOB, LEAST_SORTED_CELLS_OF_A_JOB // max(1, n_sorted))
        least = max(enough, self.n_rows // (JOBS_A_THREAD * self.threads))
        waiting, jobs = [root], []
        if self.n_rows < LEAST_ROWS_TO_SHARE:
            return waiting
        while waiting and not self.state[1]:
            job = waiting.pop()
            if job.stop - job.start < least or self.n_nodes + 2 > len(self.ints):
                jobs.append(job)
            else:
                waiting += self._split(job)
        return jobs + waiting

    def _split(self, job: _Job) -> list[_Job]:
        """Split one node; gives its children that may be split further."""
        table, rules = self.table, self.rules
        start, stop, node = job.start, job.stop, job.node
        gains = np.full(self.n_columns, np.nan)
        places = np.zeros(self.n_columns, np.int64)
        n_sorted, n_coded = len(table.sorted_attribute), len(table.coded_attribute)
        n_counts = int(table.first[-1] + table.n_codes[-1] * len(self.totals)) if n_coded else 1
        counts = np.empty(n_counts)
        grow_binary.totals_of(table.numeric, table.kind, self.stats, node, self.totals)

        def scan(low: int, high: int, coded_low: int, coded_high: int) -> None:
            grow_binary.scan_columns(
                rules, table.numeric, table.kind, table.orders, table.codes, table.cells, table.first, table.n_codes,
                table.sorted_attribute, table.coded_attribute, table.rows_of, self.stats[node], self.reals[node],
                self.totals, start, stop, low, high, coded_low, coded_high, job.flat, counts, gains, places,
                self.state,
            )  # fmt: skip

        # Two a thread: one that finds little to pass over does not keep the others waiting.
        parts = [(low, high, 0, 0) for low, high in _even_parts(n_sorted, 2 * self.threads)]
        parts += [(0, 0, low, high) for low, high in _even_parts(n_coded, self.threads)]
        _run(self.pool, scan, parts)
        attribute = grow_binary.choose(rules, table.numeric, table.kind, gains, self.stats, self.reals, node)
        if attribute < 0 or self.state[1]:
            self.settled_at_top += float(self.reals[node, WEIGHT])
            return []
        first_child = self.n_nodes
        self.n_nodes += 2
        middle = grow_binary.split_node(
            table.orders, table.cells, table.sorted_column, table.coded_column, self.sides, 1, start, stop, attribute,
            places[attribute], gains[attribute], self.ints, self.reals, node, first_child,
        )  # fmt: skip
        divided = int(table.sorted_column[attribute])
        spare = np.empty((self.threads, stop - start), np.uint32)

        def deal(low: int, high: int, left: int, right: int, place: int) -> None:
            grow_binary.deal_columns(
                table.orders, low, high, divided, start, stop, self.sides, job.flat, spare[place], left, right
            )

        # The rows' own order comes first only where the sums are taken in it; else it is one more order to deal.
        by_rows = n_coded > 0 or table.kind > scans.CLASSES
        if by_rows:
            deal(n_sorted, n_sorted + 1, 1, 1, 0)
        rows = table.orders[-1 if by_rows else divided, start:stop]
        lives = grow_binary.finish_children(
            rules, table.numeric, table.kind, rows, table.rows_of, table.target, middle - start, job.depth + 1,
            self.reals, self.stats, node, first_child,
        )  # fmt: skip
        if any(lives):
            shares = enumerate(_even_parts(n_sorted if by_rows else n_sorted + 1, self.threads))
            _run(self.pool, deal, [(low, high, *lives, place) for place, (low, high) in shares])
        below = job.depth + 1
        ends = ((first_child, below, start, middle), (first_child + 1, below, middle, stop))
        for alive, (child, *_) in zip(lives, ends, strict=True):
            self.settled_at_top += 0.0 if alive else float(self.reals[child, WEIGHT])
        return [_Job(*end, job.flat.copy()) for alive, end in zip(lives, ends, strict=True) if alive]

    def _grow_job(self, job: _Job, settled: Array) -> tuple[int, Array, Array, Array]:
        table, node = self.table, job.node
        n_counts = int(table.first[-1] + table.n_codes[-1] * len(self.totals)) if len(table.coded_attribute) else 1
        slots = max(3, min(64, MOST_POOL_BYTES // (8 * n_counts)))
        answer: tuple[int, Array, Array, Array] = grow_binary.grow_subtree(
            self.rules, table.numeric, table.kind, table.orders, table.codes, table.cells, table.first, table.n_codes,
            table.sorted_attribute, table.coded_attribute, table.sorted_column, table.coded_column, table.rows_of,
            table.target, self.places, job.flat, job.depth, self.ints[node : node + 1], self.reals[node : node + 1],
            self.stats[node : node + 1], job.start, job.stop, slots, settled, self.state,
        )  # fmt: skip
        return answer

    def _watch(self, running: Sequence[Future[Any]], settled: Sequence[Array]) -> None:
        """Write the share that is settled while the jobs run."""
        left: set[Future[Any]] = set(running)
        while left:
            left = wait(left, timeout=WATCH_SECONDS).not_done
            done = self.settled_at_top + sum(float(each[0]) for each in settled)
            self.state[0] = done / self.rules.root_weight


def _even_parts(count: int, n_parts: int) -> list[tuple[int, int]]:
    """Cut range(count) into at most n_parts stretches of like length."""
    n_parts = max(1, min(n_parts, count))
    ends = [place * count // n_parts for place in range(n_parts + 1)]
    return [(low, high) for low, high in itertools.pairwise(ends) if high > low]


def _run(pool: ThreadPoolExecutor, work: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> None:
    """Do all parts, on all threads, and wait."""
    for future in [pool.submit(work, *part) for part in parts]:
        future.result()
