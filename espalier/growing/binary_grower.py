"""Grow a tree of complete data and binary tests by gini or squared error: the binary grower.

The largest nodes are split one by one, their columns shared among all threads, until each thread has enough nodes. Then
every thread takes nodes separately (`espalier.growing.parallel`): a large one is split, a small one is grown to its
leaves by one kernel call. Both use the same kernels, so the tree does not depend on the number of threads.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.growing.binary_data import BinaryData, binary_data
from espalier.growing.finalize import Nodes, Part, joined
from espalier.growing.kernels import binary_nodes, binary_partition, binary_tree, constants as c, presorted_split
from espalier.growing.kernels.binary_nodes import (
    FEATURE,
    FIRST_CHILD,
    FIRST_RIGHT,
    GAIN,
    LAST_LEFT,
    N_INTS,
    N_REALS,
    WEIGHT,
)
from espalier.growing.kernels.nodes import write_thresholds
from espalier.growing.parallel import run_jobs
from espalier.growing.training_data import TrainingData
from espalier.kernels.jit import phase_of
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC
from espalier.progress import Progress

Array = npt.NDArray[Any]

MIN_JOB_ROWS: Final = 20_000
MIN_JOB_SORTED_CELLS: Final = 200_000
"""Sorted cells of a subtree that is grown whole: it is copied, and should fit into the processor's cache."""
JOBS_PER_THREAD: Final = 16
MIN_ROWS_TO_SHARE: Final = 20_000
MAX_POOL_BYTES: Final = 64_000_000
MIN_THRESHOLDS_TO_SHARE: Final = 50_000


def grow_binary(
    parameters: Any, data: TrainingData, progress: Progress, pool: ThreadPoolExecutor, n_threads: int
) -> Nodes:
    """Grow the tree.

    Args:
        parameters: The configuration, as `espalier.growing.kernels.constants.GrowParameters`.
        data: The training rows.
        progress: The share of the weight in finished leaves is written, the stop flag is read.
        pool: At least `n_threads` free threads.
        n_threads: Number of threads.

    Raises:
        Cancelled: The stop flag was set.
    """
    columns = binary_data(parameters, data, pool, n_threads)
    progress.check()
    progress.begin(phase_of(binary_tree.grow_subtree, "growing"))
    parts = _BinaryGrower(parameters, columns, progress.state, pool, n_threads).grow()
    progress.check()
    del columns  # orders and codes take as much memory as the data themselves
    return _nodes_of(parameters, parts, data, pool)


def _nodes_of(parameters: Any, parts: Sequence[Part], data: TrainingData, pool: ThreadPoolExecutor) -> Nodes:
    """Return the nodes of all parts; columns that the binary grower does not store are derived."""
    first_child = joined(parts, lambda part: part.numbers(part.ints[:, FIRST_CHILD]))
    feature = joined(parts, lambda part: part.ints[:, FEATURE])
    beside = joined(parts, lambda part: part.ints[:, LAST_LEFT : FIRST_RIGHT + 1])
    weight = joined(parts, lambda part: part.reals[:, WEIGHT])
    gain = joined(parts, lambda part: part.reals[:, GAIN])
    stats = joined(parts, lambda part: part.stats)
    is_inner = first_child >= 0
    left = first_child[is_inner]
    right = left + 1
    known = weight[left] + weight[right]
    share = np.full(len(weight), np.nan)
    share[left], share[right] = weight[left] / known, weight[right] / known
    fallback = np.full(len(weight), -1, np.int32)
    if parameters.missing not in (c.FRACTIONAL, c.SPREAD):
        fallback[is_inner] = weight[right] > weight[left]
    by_category = np.array([*(attribute.unordered for attribute in data.attributes), False])[feature]
    test = np.where(by_category, NOMINAL, NUMERIC).astype(np.int8)
    test[~is_inner] = LEAF
    nodes = Nodes(
        first_child=first_child,
        n_children=2 * is_inner.astype(np.int32),
        feature=feature,
        test=test,
        threshold=np.full(len(weight), np.nan),
        fallback=fallback,
        share=share,
        weight=weight,
        gain=gain,
        value=np.argmax(stats, axis=1).astype(np.int32) if data.n_classes else stats[:, 1].copy(),
        stats=stats,
        first_code=np.zeros(len(weight), np.int32),
        code_table=np.arange(2, dtype=np.int32),  # of every test of two categories
    )
    _write_thresholds(nodes, beside, data, pool, observed=bool(parameters.observed))
    return nodes


def _write_thresholds(
    nodes: Nodes, beside: Array, data: TrainingData, pool: ThreadPoolExecutor, *, observed: bool
) -> None:
    """Read the threshold of every numeric test from the rows beside it; observed ones are training values."""
    tests = np.flatnonzero(nodes.test == NUMERIC)
    tests = tests[np.argsort(nodes.feature[tests], kind="stable")]
    ends = np.searchsorted(nodes.feature[tests], np.arange(len(data.attributes) + 1))

    def write(attribute: int) -> None:
        own = tests[ends[attribute] : ends[attribute + 1]]
        if not len(own):
            return
        column = data.columns[attribute]
        below, above = (column[beside[own, side]].astype(np.float64) for side in (0, 1))
        write_thresholds(below, above, own, nodes.threshold)
        if observed:
            values = np.sort(column.astype(np.float64))
            nodes.threshold[own] = values[np.searchsorted(values, nodes.threshold[own], side="right") - 1]

    run = pool.map if len(tests) >= MIN_THRESHOLDS_TO_SHARE else map
    list(run(write, range(len(data.attributes))))


@dataclass(frozen=True, slots=True)
class _Job:
    """A subtree that is still to be grown: number and rows of its root, and the columns that are constant there."""

    node: int
    depth: int
    start: int
    stop: int
    constant: Array

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


class _Scratch:
    """The arrays that one thread writes.

    Attributes:
        is_right: uint32, a bit a row. spare: uint32 (n). totals: float64, of the node, for the split search.
        finished: float64 (1), the weight of the leaves that this thread has finished.
    """

    def __init__(self, n_rows: int, n_totals: int) -> None:
        self.is_right = np.zeros(n_rows // 32 + 1, np.uint32)
        self.spare = np.empty(n_rows, np.uint32)
        self.totals = np.empty(n_totals)
        self.finished = np.zeros(1)


class _BinaryGrower:
    """Grows one tree: the tables of the nodes that are split here, and the parts that are grown below them."""

    def __init__(
        self, parameters: Any, data: BinaryData, state: Array, pool: ThreadPoolExecutor, n_threads: int
    ) -> None:
        self.parameters, self.data, self.state, self.pool, self.n_threads = parameters, data, state, pool, n_threads
        self.n_rows = data.n_rows
        self.n_sorted, self.n_coded = len(data.sorted_attribute), len(data.coded_attribute)
        width = parameters.n_classes or 3
        n_totals = 2 if data.numeric or data.kind == presorted_split.WEIGHTED_PAIR else width
        self.n_counts = int(data.first[-1] + data.n_codes[-1] * n_totals) if self.n_coded else 1
        room = 2 * JOBS_PER_THREAD * 8 * n_threads + 64
        self.ints = np.empty((room, N_INTS), np.int32)
        self.reals = np.empty((room, N_REALS))
        self.stats = np.empty((room, width))
        self.scratch = [_Scratch(self.n_rows, n_totals) for _ in range(n_threads)]
        self.places = np.empty(self.n_rows, np.int32)
        self.grown: list[tuple[int, Array, Array, Array]] = []
        self.n_nodes = 1
        self.numbering = Lock()

    def grow(self) -> list[Part]:
        data, state = self.data, self.state
        is_leaf = binary_tree.sum_root(
            self.parameters, data.numeric, data.kind, data.orders[-1], data.rows_of, data.target, self.ints, self.reals,
            self.stats,
        )  # fmt: skip
        if is_leaf:
            state[0] = 1.0
        else:
            root = _Job(0, 0, 0, self.n_rows, np.zeros(self.n_sorted + self.n_coded + 1, np.uint8))
            jobs = self._split_largest(root)
            run_jobs(jobs, self._advance, self._report, state=state, pool=self.pool, n_threads=self.n_threads)
        tables = self.ints[: self.n_nodes], self.reals[: self.n_nodes], self.stats[: self.n_nodes]
        parts, first = [Part(0, 1, *tables)], self.n_nodes
        for node, ints, reals, stats in self.grown:
            parts.append(Part(node, first, ints, reals, stats))
            first += len(ints) - 1
        return parts

    def _report(self) -> None:
        self.state[0] = sum(float(each.finished[0]) for each in self.scratch) / self.parameters.root_weight

    def _split_largest(self, root: _Job) -> list[_Job]:
        """Split, with all threads at one node, nodes so large that one thread would finish after the others."""
        pending, rest = [root], []
        while pending and not self.state[1]:
            job = pending.pop()
            if self.n_threads == 1 or self._is_grown_whole(job) or job.n_rows * 2 * self.n_threads <= self.n_rows:
                rest.append(job)
            else:
                pending += self._split(job, self.scratch)
        return rest

    def _is_grown_whole(self, job: _Job) -> bool:
        """Return whether a subtree is small enough to be copied into separate tables and grown in one call."""
        enough = min(MIN_JOB_ROWS, MIN_JOB_SORTED_CELLS // max(1, self.n_sorted))
        least = max(enough, self.n_rows // (JOBS_PER_THREAD * self.n_threads))
        is_full = self.n_nodes + 2 * self.n_threads > len(self.ints)
        return self.n_rows < MIN_ROWS_TO_SHARE or job.n_rows < least or is_full

    def _advance(self, job: _Job, thread: int) -> list[_Job]:
        if not self._is_grown_whole(job):
            return self._split(job, [self.scratch[thread]])
        self._grow_whole(job, self.scratch[thread])
        return []

    def _split(self, job: _Job, scratch: Sequence[_Scratch]) -> list[_Job]:
        """Split one node, its columns shared among the threads; return jobs for children that may be split."""
        attribute, gain, place = self._best_split(job, scratch)
        node, own = job.node, scratch[0]
        if attribute < 0 or self.state[1]:
            own.finished[0] += self.reals[node, WEIGHT]
            return []
        data, start, stop = self.data, job.start, job.stop
        with self.numbering:
            first_child = self.n_nodes
            self.n_nodes += 2
        middle = binary_tree.split_node(
            data.orders, data.cells, data.sorted_column, data.coded_column, own.is_right, 1, start, stop, attribute,
            place, gain, self.ints, self.reals, node, first_child,
        )  # fmt: skip
        alive = self._partition(job, scratch, int(data.sorted_column[attribute]), middle, first_child)
        jobs = []
        for is_alive, child, low, high in zip(
            alive, (first_child, first_child + 1), (start, middle), (middle, stop), strict=True
        ):
            if is_alive:
                jobs.append(_Job(child, job.depth + 1, low, high, job.constant.copy()))
            else:
                own.finished[0] += self.reals[child, WEIGHT]
        return jobs

    def _best_split(self, job: _Job, scratch: Sequence[_Scratch]) -> tuple[int, float, int]:
        """Return the attribute (-1: none), the gain and the place of the best split of a node."""
        data, parameters, node, totals = self.data, self.parameters, job.node, scratch[0].totals
        gains = np.full(self.n_sorted + self.n_coded, np.nan)
        places = np.zeros(self.n_sorted + self.n_coded, np.int64)
        counts = np.empty(self.n_counts)
        binary_tree.write_split_totals(data.numeric, data.kind, self.stats, node, totals)

        def scan(low: int, high: int, coded_low: int, coded_high: int) -> None:
            binary_nodes.best_splits(
                parameters, data.numeric, data.kind, data.orders, data.codes, data.cells, data.first, data.n_codes,
                data.sorted_attribute, data.coded_attribute, data.rows_of, self.stats[node], self.reals[node], totals,
                job.start, job.stop, low, high, coded_low, coded_high, job.constant, counts, gains, places, self.state,
            )  # fmt: skip

        if len(scratch) == 1:
            scan(0, self.n_sorted, 0, self.n_coded)
        else:
            # Two a thread: columns differ in how many comparisons they need.
            parts = [(low, high, 0, 0) for low, high in _even_parts(self.n_sorted, 2 * len(scratch))]
            parts += [(0, 0, low, high) for low, high in _even_parts(self.n_coded, len(scratch))]
            _run(self.pool, scan, parts)
        attribute = binary_tree.choose_attribute(
            parameters, data.numeric, data.kind, gains, self.stats, self.reals, node
        )
        return attribute, gains[attribute], places[attribute]

    def _partition(
        self, job: _Job, scratch: Sequence[_Scratch], divided: int, middle: int, first_child: int
    ) -> tuple[int, int]:
        """Sum the children and partition every order; return whether the left and the right child may be split.

        divided: the order of the tested attribute, which needs no partition.
        """
        data, start, stop, n_sorted = self.data, job.start, job.stop, self.n_sorted
        is_right = scratch[0].is_right

        def partition(low: int, high: int, left: int, right: int, thread: int) -> None:
            binary_partition.partition_columns(
                data.orders, low, high, divided, start, stop, is_right, job.constant, scratch[thread].spare, left, right
            )

        # The rows' own order comes first only if the sums are taken in it; else it is one more order to partition.
        by_rows = self.n_coded > 0 or data.kind > presorted_split.CLASSES
        if by_rows:
            partition(n_sorted, n_sorted + 1, 1, 1, 0)
        rows = data.orders[-1 if by_rows else divided, start:stop]
        left, right = binary_tree.finish_children(
            self.parameters, data.numeric, data.kind, rows, data.rows_of, data.target, middle - start, job.depth + 1,
            self.reals, self.stats, job.node, first_child,
        )  # fmt: skip
        if left or right:
            shares = enumerate(_even_parts(n_sorted if by_rows else n_sorted + 1, len(scratch)))
            _run(self.pool, partition, [(low, high, left, right, thread) for thread, (low, high) in shares])
        return left, right

    def _grow_whole(self, job: _Job, scratch: _Scratch) -> None:
        data, node = self.data, job.node
        slots = max(3, min(64, MAX_POOL_BYTES // (8 * self.n_counts)))
        ints, reals, stats = (_begun(top[node], 2 * job.n_rows) for top in (self.ints, self.reals, self.stats))
        n_nodes = binary_tree.grow_subtree(
            self.parameters, data.numeric, data.kind, data.orders, data.codes, data.cells, data.first, data.n_codes,
            data.sorted_attribute, data.coded_attribute, data.sorted_column, data.coded_column, data.rows_of,
            data.target, self.places, job.constant, job.depth, ints, reals, stats, job.start, job.stop, slots,
            scratch.finished, self.state,
        )  # fmt: skip
        self.grown.append((node, ints[:n_nodes].copy(), reals[:n_nodes].copy(), stats[:n_nodes].copy()))


def _begun(root: Array, n_nodes: int) -> Array:
    """Return a table for at most `n_nodes` nodes, with its root."""
    table = np.empty((n_nodes, len(root)), root.dtype)
    table[0] = root
    return table


def _even_parts(count: int, n_parts: int) -> list[tuple[int, int]]:
    n_parts = max(1, min(n_parts, count))
    ends = [place * count // n_parts for place in range(n_parts + 1)]
    return [(low, high) for low, high in itertools.pairwise(ends) if high > low]


def _run(pool: ThreadPoolExecutor, work: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> None:
    """Do all parts on the pool and wait; do a single one here, as this may be one of the pool's threads."""
    if len(parts) == 1:
        work(*parts[0])
        return
    for future in [pool.submit(work, *part) for part in parts]:
        future.result()
