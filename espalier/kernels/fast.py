"""How the growing of one tree in the fast lane is shared out over threads.

The largest nodes are split one by one, columns shared out. What they leave is worked off by every thread on its own,
the largest node first: it is split, and its children wait in its place; or it is small, and is grown to its leaves.
All of it uses the same scans, so the tree does not depend on the number of threads.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.kernels import binary_nodes, binary_sides, grow_binary, scans
from espalier.kernels.fast_nodes import N_INTS, N_REALS, WEIGHT
from espalier.kernels.fast_table import FastTable
from espalier.kernels.joining import Part
from espalier.kernels.work_list import WorkList
from espalier.memory import own_table
from espalier.processors import n_threads

__all__ = ["grow_fast"]

Array = npt.NDArray[Any]

LEAST_ROWS_OF_A_JOB: Final = 20_000
LEAST_SORTED_CELLS_OF_A_JOB: Final = 200_000
"""A job copies its sorted columns: what is too little to be shared out need not be copied in large pieces either."""
JOBS_A_THREAD: Final = 16
LEAST_ROWS_TO_SHARE: Final = 20_000
WORTH_GIVING_BACK: Final = 4
"""Nodes that take a quarter of their rows' stretch of the orders, or more, are worth some calls of the system."""
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

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


class _Hand:
    """What one thread writes while it splits a node.

    Attributes:
        sides: uint32, a bit a row. spare: uint32 (n). totals: float64, what the scans want of the node.
        settled: float64 (1), the weight of the leaves that were finished with it.
    """

    def __init__(self, n_rows: int, n_totals: int) -> None:
        self.sides = np.zeros(n_rows // 32 + 1, np.uint32)
        self.spare = np.empty(n_rows, np.uint32)
        self.totals = np.empty(n_totals)
        self.settled = np.zeros(1)


class _Grower:
    """One growing of one tree: the tables of the nodes that are split here, and the parts that grow below them."""

    def __init__(self, rules: Any, table: FastTable, state: Array, pool: ThreadPoolExecutor) -> None:
        self.rules, self.table, self.state, self.pool = rules, table, state, pool
        self.threads = threads = n_threads()
        self.n_rows = table.orders.shape[1]
        self.n_sorted, self.n_coded = len(table.sorted_attribute), len(table.coded_attribute)
        width = rules.n_classes or 3
        n_totals = 2 if table.numeric or table.kind == scans.WEIGHTED_PAIR else width
        self.n_counts = int(table.first[-1] + table.n_codes[-1] * n_totals) if self.n_coded else 1
        room = 2 * JOBS_A_THREAD * 8 * threads + 64
        self.ints = np.empty((room, N_INTS), np.int32)
        self.reals = np.empty((room, N_REALS))
        self.stats = np.empty((room, width))
        self.hands = [_Hand(self.n_rows, n_totals) for _ in range(threads)]
        self.places = np.empty(self.n_rows, np.int32)
        self.parts: list[Part] = []
        self.n_nodes = 1
        self.numbering = Lock()

    def grow(self) -> list[Part] | None:
        table, state = self.table, self.state
        is_leaf = grow_binary.sum_root(
            self.rules, table.numeric, table.kind, table.orders[-1], table.rows_of, table.target, self.ints, self.reals,
            self.stats,
        )  # fmt: skip
        if is_leaf:
            state[0] = 1.0
            return [self._top()]
        root = _Job(0, 0, 0, self.n_rows, np.zeros(self.n_sorted + self.n_coded + 1, np.uint8))
        work = WorkList(self._split_largest(root), size=lambda job: job.n_rows)
        works = [partial(self._advance, hand=hand) for hand in self.hands]
        self._watch([self.pool.submit(work.work_off, each) for each in works])
        return None if state[1] else [self._top(), *self.parts]

    def _top(self) -> Part:
        return Part(0, self.n_nodes, self.ints, self.reals, self.stats)

    def _split_largest(self, root: _Job) -> list[_Job]:
        """Split with all threads at one node what would keep one of them busy after the others have ended."""
        waiting, rest = [root], []
        while waiting and not self.state[1]:
            job = waiting.pop()
            if self.threads == 1 or self._is_grown_whole(job) or job.n_rows * 2 * self.threads <= self.n_rows:
                rest.append(job)
            else:
                waiting += self._split(job, self.hands)
        return rest

    def _is_grown_whole(self, job: _Job) -> bool:
        """Whether a subtree is small enough to move into tables of its own and to be grown in one go."""
        enough = min(LEAST_ROWS_OF_A_JOB, LEAST_SORTED_CELLS_OF_A_JOB // max(1, self.n_sorted))
        least = max(enough, self.n_rows // (JOBS_A_THREAD * self.threads))
        full = self.n_nodes + 2 * self.threads > len(self.ints)
        return self.n_rows < LEAST_ROWS_TO_SHARE or job.n_rows < least or full

    def _advance(self, job: _Job, hand: _Hand) -> list[_Job]:
        """Split a node, or grow all of its subtree; gives what is left to do below it."""
        if self.state[1]:
            return []
        if not self._is_grown_whole(job):
            return self._split(job, [hand])
        self._grow_whole(job, hand)
        return []

    def _split(self, job: _Job, hands: Sequence[_Hand]) -> list[_Job]:
        """Split one node, its columns shared out over hands; gives its children that may be split further."""
        attribute, gain, place = self._best_cut(job, hands)
        node, hand = job.node, hands[0]
        if attribute < 0 or self.state[1]:
            hand.settled[0] += self.reals[node, WEIGHT]
            return []
        table, start, stop = self.table, job.start, job.stop
        with self.numbering:
            first_child = self.n_nodes
            self.n_nodes += 2
        middle = grow_binary.split_node(
            table.orders, table.cells, table.sorted_column, table.coded_column, hand.sides, 1, start, stop, attribute,
            place, gain, self.ints, self.reals, node, first_child,
        )  # fmt: skip
        lives = self._deal(job, hands, int(table.sorted_column[attribute]), middle, first_child)
        children = []
        for alive, child, ends in zip(
            lives, (first_child, first_child + 1), ((start, middle), (middle, stop)), strict=True
        ):
            if alive:
                children.append(_Job(child, job.depth + 1, *ends, job.flat.copy()))
            else:
                hand.settled[0] += self.reals[child, WEIGHT]
        return children

    def _best_cut(self, job: _Job, hands: Sequence[_Hand]) -> tuple[int, float, int]:
        """Give the attribute (-1: none), the gain and the place of the best cut of a node."""
        table, rules, node, totals = self.table, self.rules, job.node, hands[0].totals
        gains = np.full(self.n_sorted + self.n_coded, np.nan)
        places = np.zeros(self.n_sorted + self.n_coded, np.int64)
        counts = np.empty(self.n_counts)
        grow_binary.totals_of(table.numeric, table.kind, self.stats, node, totals)

        def scan(low: int, high: int, coded_low: int, coded_high: int) -> None:
            binary_nodes.scan_columns(
                rules, table.numeric, table.kind, table.orders, table.codes, table.cells, table.first, table.n_codes,
                table.sorted_attribute, table.coded_attribute, table.rows_of, self.stats[node], self.reals[node],
                totals, job.start, job.stop, low, high, coded_low, coded_high, job.flat, counts, gains, places,
                self.state,
            )  # fmt: skip

        if len(hands) == 1:
            scan(0, self.n_sorted, 0, self.n_coded)
        else:
            # Two a thread: one that finds little to pass over does not keep the others waiting.
            parts = [(low, high, 0, 0) for low, high in _even_parts(self.n_sorted, 2 * len(hands))]
            parts += [(0, 0, low, high) for low, high in _even_parts(self.n_coded, len(hands))]
            _run(self.pool, scan, parts)
        attribute = grow_binary.choose(rules, table.numeric, table.kind, gains, self.stats, self.reals, node)
        return attribute, gains[attribute], places[attribute]

    def _deal(self, job: _Job, hands: Sequence[_Hand], divided: int, middle: int, first_child: int) -> tuple[int, int]:
        """Sum the children and bring their rows together in each order; returns which of them live, left and right.

        divided: the order that was cut, which needs no dealing.
        """
        table, start, stop, n_sorted = self.table, job.start, job.stop, self.n_sorted
        sides = hands[0].sides

        def deal(low: int, high: int, left: int, right: int, place: int) -> None:
            binary_sides.deal_columns(
                table.orders, low, high, divided, start, stop, sides, job.flat, hands[place].spare, left, right
            )

        # The rows' own order comes first only where the sums are taken in it; else it is one more order to deal.
        by_rows = self.n_coded > 0 or table.kind > scans.CLASSES
        if by_rows:
            deal(n_sorted, n_sorted + 1, 1, 1, 0)
        rows = table.orders[-1 if by_rows else divided, start:stop]
        left, right = grow_binary.finish_children(
            self.rules, table.numeric, table.kind, rows, table.rows_of, table.target, middle - start, job.depth + 1,
            self.reals, self.stats, job.node, first_child,
        )  # fmt: skip
        if left or right:
            shares = enumerate(_even_parts(n_sorted if by_rows else n_sorted + 1, len(hands)))
            _run(self.pool, deal, [(low, high, left, right, place) for place, (low, high) in shares])
        return left, right

    def _grow_whole(self, job: _Job, hand: _Hand) -> None:
        table, node = self.table, job.node
        slots = max(3, min(64, MOST_POOL_BYTES // (8 * self.n_counts)))
        ints, reals, stats = (_begun(top[node], 2 * job.n_rows) for top in (self.ints, self.reals, self.stats))
        n_nodes = grow_binary.grow_subtree(
            self.rules, table.numeric, table.kind, table.orders, table.codes, table.cells, table.first, table.n_codes,
            table.sorted_attribute, table.coded_attribute, table.sorted_column, table.coded_column, table.rows_of,
            table.target, self.places, job.flat, job.depth, ints, reals, stats, job.start, job.stop, slots,
            hand.settled, self.state,
        )  # fmt: skip
        part = Part(node, n_nodes, ints, reals, stats)
        self.parts.append(part)
        if part.n_bytes * WORTH_GIVING_BACK > table.orders[:, job.start : job.stop].nbytes:
            # The subtree had moved: what it left behind makes room for the next ones' nodes.
            table.lines.give_back(job.start, job.stop)

    def _watch(self, running: Sequence[Future[None]]) -> None:
        """Write the share that is settled while the threads work."""
        left: set[Future[None]] = set(running)
        while left:
            done, left = wait(left, timeout=WATCH_SECONDS)
            if any(each.exception() for each in done):
                self.state[1] = 1.0  # the others need not go on
            self.state[0] = sum(float(hand.settled[0]) for hand in self.hands) / self.rules.root_weight
        for each in running:
            each.result()


def _begun(root: Array, n_nodes: int) -> Array:
    """Give a table of so many nodes at most; what is written of it takes memory, and no more."""
    table = own_table(n_nodes, len(root), root.dtype)
    table[0] = root
    return table


def _even_parts(count: int, n_parts: int) -> list[tuple[int, int]]:
    """Cut range(count) into at most n_parts stretches of like length."""
    n_parts = max(1, min(n_parts, count))
    ends = [place * count // n_parts for place in range(n_parts + 1)]
    return [(low, high) for low, high in itertools.pairwise(ends) if high > low]


def _run(pool: ThreadPoolExecutor, work: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> None:
    """Do all parts, on all threads, and wait; a single one is done here, which may be one of the pool's threads."""
    if len(parts) == 1:
        work(*parts[0])
        return
    for future in [pool.submit(work, *part) for part in parts]:
        future.result()
