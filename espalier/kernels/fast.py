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

from espalier.kernels import codes as c
from espalier.kernels import grow_binary, scans
from espalier.kernels.fast_table import FastTable
from espalier.kernels.nodes import (
    FALLBACK,
    FEATURE,
    FIRST_CHILD,
    N_CHILDREN,
    N_NODE_INTS,
    N_NODE_REALS,
    PARENT,
    TEST,
    THRESHOLD,
    WEIGHT,
)
from espalier.processors import in_threads, n_threads, thread_pool

__all__ = ["grow_fast"]

Array = npt.NDArray[Any]

LEAST_ROWS_OF_A_JOB: Final = 20_000
JOBS_A_THREAD: Final = 16
LEAST_ROWS_TO_SHARE: Final = 20_000
MOST_POOL_BYTES: Final = 64_000_000
WATCH_SECONDS: Final = 0.05


def grow_fast(
    rules: Any, table: FastTable, state: Array, threads: int | None = None
) -> tuple[int, int, Array, Array, Array]:
    """Grow the tree; returns (status, nodes, node ints, node reals, node statistics), numbered as they were made.

    state: float64 (2), share settled (written) and stop flag (read).
    """
    return _Grower(rules, table, state, threads or n_threads()).grow()


@dataclass(frozen=True, slots=True)
class _Job:
    """A subtree that is still to be grown: its root's number and stretch, and the columns that are constant there."""

    node: int
    start: int
    stop: int
    flat: Array


class _Grower:
    """One growing of one tree: the top's tables, and the jobs that it leaves."""

    def __init__(self, rules: Any, table: FastTable, state: Array, threads: int) -> None:
        self.rules, self.table, self.state, self.threads = rules, table, state, threads
        self.n_rows = table.orders.shape[1]
        self.n_columns = len(table.sorted_attribute) + len(table.coded_attribute)
        width = rules.n_classes or 3
        room = 2 * JOBS_A_THREAD * 8 * threads + 64
        self.ints = np.empty((room, N_NODE_INTS), np.int32)
        self.reals = np.empty((room, N_NODE_REALS))
        self.stats = np.empty((room, width))
        self.totals = np.empty(2 if table.numeric or table.kind == scans.WEIGHTED_PAIR else width)
        self.beside = np.empty((room, 2), np.int32)
        self.sides = np.zeros(self.n_rows // 32 + 1, np.uint32)
        self.places = np.empty(self.n_rows, np.int32)
        self.n_nodes = 1
        self.settled_at_top = 0.0

    def grow(self) -> tuple[int, int, Array, Array, Array]:
        table, state = self.table, self.state
        grow_binary.sum_root(table.numeric, table.kind, table.orders[-1], table.rows_of, table.target, self.ints,
                             self.reals, self.stats, self.totals)  # fmt: skip
        if self._is_leaf():
            state[0] = 1.0
            return c.DONE, 1, self.ints[:1], self.reals[:1], self.stats[:1]
        root = _Job(0, 0, self.n_rows, np.zeros(self.n_columns + 1, np.uint8))
        with thread_pool(self.threads) as pool:
            jobs = self._grow_top(root, pool)
            jobs.sort(key=lambda job: job.start - job.stop)
            settled = [np.zeros(1) for _ in jobs]
            running = [pool.submit(self._grow_job, *each) for each in zip(jobs, settled, strict=True)]
            self._watch(running, settled)
            grown = [each.result() for each in running]
        if state[1]:
            return c.STOPPED, 0, self.ints, self.reals, self.stats
        return self._joined(jobs, grown)

    def _is_leaf(self) -> bool:
        return bool(grow_binary.root_is_leaf(self.rules, self.table.numeric, self.stats, self.reals))

    def _grow_top(self, root: _Job, pool: ThreadPoolExecutor) -> list[_Job]:
        """Split the largest nodes with all threads at each, until what is left can be shared out."""
        least = max(LEAST_ROWS_OF_A_JOB, self.n_rows // (JOBS_A_THREAD * self.threads))
        waiting, jobs = [root], []
        if self.n_rows < LEAST_ROWS_TO_SHARE:
            return waiting
        while waiting and not self.state[1]:
            job = waiting.pop()
            if job.stop - job.start < least or self.n_nodes + 2 > len(self.ints):
                jobs.append(job)
            else:
                waiting += self._split(job, pool)
        return jobs + waiting

    def _split(self, job: _Job, pool: ThreadPoolExecutor) -> list[_Job]:
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
        _run(pool, scan, parts)
        attribute = grow_binary.choose(rules, table.numeric, table.kind, gains, self.stats, self.reals, node)
        if attribute < 0 or self.state[1]:
            self.settled_at_top += float(self.reals[node, WEIGHT])
            return []
        first_child = self.n_nodes
        self.n_nodes += 2
        middle = grow_binary.split_node(
            table.orders, table.cells, table.nominal, table.sorted_column, table.coded_column, self.sides, 1, start,
            stop, attribute, places[attribute], gains[attribute], self.ints, self.reals, self.beside, node, first_child,
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
            rules, table.numeric, table.kind, rows, table.rows_of, table.target, middle - start, self.ints, self.reals,
            self.stats, node, first_child, self.totals,
        )  # fmt: skip
        if any(lives):
            shares = enumerate(_even_parts(n_sorted if by_rows else n_sorted + 1, self.threads))
            _run(pool, deal, [(low, high, *lives, place) for place, (low, high) in shares])
        ends = ((first_child, start, middle), (first_child + 1, middle, stop))
        for alive, (child, _, _) in zip(lives, ends, strict=True):
            self.settled_at_top += 0.0 if alive else float(self.reals[child, WEIGHT])
        return [_Job(*end, job.flat.copy()) for alive, end in zip(lives, ends, strict=True) if alive]

    def _grow_job(self, job: _Job, settled: Array) -> tuple[int, Array, Array, Array, Array]:
        table, node = self.table, job.node
        n_counts = int(table.first[-1] + table.n_codes[-1] * len(self.totals)) if len(table.coded_attribute) else 1
        slots = max(3, min(64, MOST_POOL_BYTES // (8 * n_counts)))
        answer: tuple[int, Array, Array, Array, Array] = grow_binary.grow_subtree(
            self.rules, table.numeric, table.kind, table.orders, table.codes, table.cells, table.first, table.n_codes,
            table.nominal, table.sorted_attribute, table.coded_attribute, table.sorted_column, table.coded_column,
            table.rows_of, table.target, self.places, job.flat, self.ints[node : node + 1],
            self.reals[node : node + 1], self.stats[node : node + 1], job.start, job.stop, slots, settled, self.state,
        )  # fmt: skip
        return answer

    def _watch(self, running: Sequence[Future[Any]], settled: Sequence[Array]) -> None:
        """Write the share that is settled while the jobs run."""
        left: set[Future[Any]] = set(running)
        while left:
            left = wait(left, timeout=WATCH_SECONDS).not_done
            done = self.settled_at_top + sum(float(each[0]) for each in settled)
            self.state[0] = done / self.rules.root_weight

    def _joined(
        self, jobs: Sequence[_Job], grown: Sequence[tuple[int, Array, Array, Array, Array]]
    ) -> tuple[int, int, Array, Array, Array]:
        """Put the jobs' nodes behind those of the top, numbers shifted, and write the thresholds."""
        parts = [[each[: self.n_nodes]] for each in (self.ints, self.reals, self.stats, self.beside)]
        offset = self.n_nodes
        for job, (n_nodes, *made) in zip(jobs, grown, strict=True):
            ints, shift = made[0][:n_nodes], offset - 1
            ints[:, FIRST_CHILD] += np.where(ints[:, N_CHILDREN] > 0, shift, 0).astype(np.int32)
            below = ints[1:, PARENT]
            ints[1:, PARENT] = np.where(below == 0, job.node, below + shift)
            ints[0, PARENT] = self.ints[job.node, PARENT]
            for part, own in zip(parts, made, strict=True):
                part[0][job.node] = own[0]
                part.append(own[1:n_nodes])
            offset += n_nodes - 1
        ints, reals, stats, beside = in_threads(np.concatenate, parts)
        if self.rules.missing in (c.FRACTIONAL, c.SPREAD):
            ints[:, FALLBACK] = -1
        self._write_thresholds(ints, reals, beside)
        return c.DONE, offset, ints, reals, stats

    def _write_thresholds(self, ints: Array, reals: Array, beside: Array) -> None:
        """Take the threshold of every numeric test from the rows at its sides; observed ones are training values."""
        tested = np.where(ints[:, TEST] == c.NUMERIC, ints[:, FEATURE], -1)
        by_attribute = np.argsort(tested, kind="stable")
        ends = np.searchsorted(tested[by_attribute], np.arange(len(self.table.columns) + 1))
        for attribute, (low, high) in enumerate(itertools.pairwise(ends)):
            if high > low:
                column = self.table.columns[attribute]
                self._write_thresholds_of(column, by_attribute[low:high], beside, reals)

    def _write_thresholds_of(self, column: Array, nodes: Array, beside: Array, reals: Array) -> None:
        values = column.astype(np.float64)
        grow_binary.write_thresholds(values, nodes, beside, reals)
        if not self.rules.observed:
            return
        values.sort()
        reals[nodes, THRESHOLD] = values[np.searchsorted(values, reals[nodes, THRESHOLD], side="right") - 1]


def _even_parts(count: int, n_parts: int) -> list[tuple[int, int]]:
    """Cut range(count) into at most n_parts stretches of like length."""
    n_parts = max(1, min(n_parts, count))
    ends = [place * count // n_parts for place in range(n_parts + 1)]
    return [(low, high) for low, high in itertools.pairwise(ends) if high > low]


def _run(pool: ThreadPoolExecutor, work: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> None:
    """Do all parts, on all threads, and wait."""
    for future in [pool.submit(work, *part) for part in parts]:
        future.result()
