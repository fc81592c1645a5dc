"""The binary grower splits each node in two by gini or squared error. It needs complete data.

Its trees equal those of the general grower. First, nodes with more than 1 / (2 · threads) of all rows are split one by
one, and all threads work on the columns of the same node. Then each thread takes one node at a time
(`espalier.growing.parallel`). A large node is split. A small node is grown to its leaves by one kernel call. The same
kernels split all nodes, so the number of threads does not change the tree.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import numpy as np

from espalier.arrays import Array
from espalier.growing.binary_data import binary_columns
from espalier.growing.finalize import Nodes, Part, joined
from espalier.growing.kernels import constants as c
from espalier.growing.kernels.binary import (
    constants as b,
    nodes as binary_nodes,
    partition as binary_partition,
    tree as binary_tree,
)
from espalier.growing.kernels.binary.arguments import BinaryNodes, NodeSearch, Scratch
from espalier.growing.kernels.midpoints import write_thresholds
from espalier.growing.parallel import Job, run_jobs
from espalier.growing.training_data import TrainingData
from espalier.model.majority import majority
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC
from espalier.progress import Progress

MIN_JOB_ROWS: Final = 20_000
MIN_JOB_SORTED_CELLS: Final = 200_000
"""A node with fewer rows and fewer cells in sorted columns is grown by one call: its copy fits into the cache."""
JOBS_PER_THREAD: Final = 16
MIN_ROWS_TO_SHARE: Final = 20_000
MIN_THRESHOLDS_TO_SHARE: Final = 50_000


def grow_binary(
    parameters: Any, data: TrainingData, progress: Progress, pool: ThreadPoolExecutor, n_threads: int
) -> Nodes:
    """Grow the tree with `n_threads` free threads of `pool`. Write the share of finished weight to `progress`."""
    columns = binary_columns(data, pool)
    progress.check()
    progress.begin("growing")
    parts = _BinaryGrower(parameters, columns, progress.state, pool, n_threads).grow()
    progress.check()
    del columns  # orders and codes take as much memory as the data themselves
    return nodes_of(parameters, parts, data, pool)


def nodes_of(parameters: Any, parts: Sequence[Part], data: TrainingData, pool: ThreadPoolExecutor) -> Nodes:
    """Join the parts of a tree, and derive the thresholds, values, branch weights and fallbacks that the parts lack."""
    first_child = joined(parts, lambda part: part.numbers(part.ints[:, b.FIRST_CHILD]))
    feature = joined(parts, lambda part: part.ints[:, b.FEATURE])
    beside = joined(parts, lambda part: part.ints[:, b.LAST_LEFT : b.FIRST_RIGHT + 1])
    weight = joined(parts, lambda part: part.reals[:, b.WEIGHT])
    gain = joined(parts, lambda part: part.reals[:, b.GAIN])
    stats = joined(parts, lambda part: part.stats[:, : data.n_classes or 3])
    is_inner = first_child >= 0
    left = first_child[is_inner]
    right = left + 1
    known = weight[left] + weight[right]
    share = np.full(len(weight), np.nan)
    share[left], share[right] = weight[left] / known, weight[right] / known
    fallback = np.full(len(weight), -1, np.int32)
    if parameters.missing not in (c.FRACTIONAL, c.SPREAD):
        fallback[is_inner] = majority(np.stack([weight[left], weight[right]], axis=1))
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
        value=majority(stats) if data.n_classes else stats[:, 1].copy(),
        stats=stats,
        first_code=np.zeros(len(weight), np.int32),
        code_table=np.arange(2, dtype=np.int32),  # for all nominal tests: each has two categories
    )
    _write_thresholds(nodes, beside, data, pool, observed=bool(parameters.observed))
    return nodes


def _write_thresholds(
    nodes: Nodes, beside: Array, data: TrainingData, pool: ThreadPoolExecutor, *, observed: bool
) -> None:
    """Write thresholds: midpoints of two rows' values; if `observed`, the largest training value up to each midpoint.

    beside: int32 (nodes, 2); a row with the largest value of the left branch, and one with the least of the right one.
    """
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
class _Job(Job):
    """A node. constant: uint8 (columns, sorted ones first), 1 if a column is known to be constant in this node."""

    constant: Array


class _BinaryGrower:
    """Grows one tree: splits the large nodes, calls a kernel for each subtree below them, and collects the results."""

    def __init__(self, parameters: Any, data: Any, state: Array, pool: ThreadPoolExecutor, n_threads: int) -> None:
        self.parameters, self.data, self.state, self.pool, self.n_threads = parameters, data, state, pool, n_threads
        self.n_rows = data.orders.shape[1]
        room = 2 * JOBS_PER_THREAD * 8 * n_threads + 64
        self.ints = np.empty((room, b.N_INTS), np.int32)
        self.reals = np.empty((room, b.N_REALS))
        self.stats = np.empty((room, parameters.n_classes or 4))
        self.nodes = BinaryNodes(self.ints, self.reals, self.stats)
        self.places = np.empty(self.n_rows, np.int32)
        self.is_right = [np.zeros(self.n_rows // 32 + 1, np.uint32) for _ in range(n_threads)]
        self.spare = [np.empty(self.n_rows, np.uint32) for _ in range(n_threads)]
        self.scratch = [self._scratch(thread, thread) for thread in range(n_threads)]
        self.grown: list[tuple[int, Array, Array, Array]] = []
        self.n_nodes = 1
        self.numbering = Lock()

    def _scratch(self, thread: int, marks_of: int) -> Scratch:
        return Scratch(self.is_right[marks_of], self.spare[thread], self.places, self.state)

    def grow(self) -> list[Part]:
        if binary_nodes.sum_root(self.parameters, self.data, self.nodes):
            self.state[0] = 1.0
        else:
            root = _Job(0, 0, 0, self.n_rows, np.zeros(self.data.n_sorted + self.data.n_coded, np.uint8))
            jobs = self._split_largest(root)
            run_jobs(jobs, self._advance, self._report, state=self.state, pool=self.pool, n_threads=self.n_threads)
        tables = self.ints[: self.n_nodes], self.reals[: self.n_nodes], self.stats[: self.n_nodes]
        parts, first = [Part(0, 1, *tables)], self.n_nodes
        for node, ints, reals, stats in self.grown:
            parts.append(Part(node, first, ints, reals, stats))
            first += len(ints) - 1
        return parts

    def _report(self) -> None:
        self.state[0] = sum(float(each.finished[0]) for each in self.scratch) / self.parameters.root_weight

    def _split_largest(self, root: _Job) -> list[_Job]:
        """Split the largest nodes one by one, each with all threads. Return jobs for the other nodes."""
        pending, rest = [root], []
        while pending and not self.state[1]:
            job = pending.pop()
            if self.n_threads == 1 or self._is_grown_whole(job) or job.n_rows * 2 * self.n_threads <= self.n_rows:
                rest.append(job)
            else:
                pending += self._split(job, range(self.n_threads))
        return rest

    def _is_grown_whole(self, job: _Job) -> bool:
        enough = min(MIN_JOB_ROWS, MIN_JOB_SORTED_CELLS // max(1, self.data.n_sorted))
        least = max(enough, self.n_rows // (JOBS_PER_THREAD * self.n_threads))
        is_full = self.n_nodes + 2 * self.n_threads > len(self.ints)
        return self.n_rows < MIN_ROWS_TO_SHARE or job.n_rows < least or is_full

    def _advance(self, job: _Job, thread: int) -> list[_Job]:
        if not self._is_grown_whole(job):
            return self._split(job, [thread])
        self._grow_whole(job, self.scratch[thread])
        return []

    def _split(self, job: _Job, threads: Sequence[int]) -> list[_Job]:
        scratch, n_attributes = self.scratch[threads[0]], len(job.constant)
        gains, places = np.full(n_attributes, np.nan), np.zeros(n_attributes, np.int64)
        search = self._find_splits(job, gains, places, len(threads))
        attribute = binary_nodes.best_attribute(self.parameters, search)
        if attribute < 0 or self.state[1]:
            scratch.finished[0] += search.weight
            return []
        with self.numbering:
            first_child = self.n_nodes
            self.n_nodes += 2
        middle, *is_open = binary_tree.split_node(
            self.parameters, self.data, self.nodes, search, scratch, job.node, first_child, attribute, job.start,
            job.stop, job.depth + 1,
        )  # fmt: skip
        if any(is_open):
            self._partition(job, search, self.data.sorted_column[attribute], is_open, threads)
        jobs = []
        for side, (start, stop) in enumerate(((job.start, middle), (middle, job.stop))):
            if is_open[side]:
                jobs.append(_Job(first_child + side, job.depth + 1, start, stop, job.constant.copy()))
            else:
                scratch.finished[0] += self.reals[first_child + side, b.WEIGHT]
        return jobs

    def _find_splits(self, job: _Job, gains: Array, places: Array, n_threads: int) -> Any:
        """Write each attribute's best split to `gains` and `places`; see `NodeSearch`. Return the node's search."""
        data, counts = self.data, np.empty((1, self.data.n_counts))

        def find(low: int, high: int, coded_low: int, coded_high: int) -> Any:
            search = NodeSearch(data, counts, gains, places, job.constant, self.state)
            binary_nodes.begin_search(self.parameters, data, self.nodes, job.node, search)
            binary_nodes.best_splits(data, search, job.start, job.stop, low, high, coded_low, coded_high)
            return search

        if n_threads == 1:
            return find(0, data.n_sorted, 0, data.n_coded)
        # Two parts of sorted columns per thread, because columns differ in how many comparisons they need.
        parts = [(low, high, 0, 0) for low, high in _even_parts(data.n_sorted, 2 * n_threads)]
        parts += [(0, 0, low, high) for low, high in _even_parts(data.n_coded, n_threads)]
        return _run(self.pool, find, parts)[0]

    def _partition(self, job: _Job, search: Any, divided: int, is_open: Sequence[bool], threads: Sequence[int]) -> None:
        """Partition the orders of sorted columns, except constant columns and the tested one (`divided`)."""

        def partition(thread: int, low: int, high: int) -> None:
            scratch = self._scratch(thread, threads[0])
            binary_partition.partition_columns(
                self.data, search, scratch, low, high, divided, job.start, job.stop, *is_open
            )

        shares = zip(threads, _even_parts(self.data.n_sorted, len(threads)), strict=False)
        _run(self.pool, partition, [(thread, *share) for thread, share in shares])

    def _grow_whole(self, job: _Job, scratch: Scratch) -> None:
        node = job.node
        ints, reals, stats = (_begun(top[node], 2 * job.n_rows) for top in (self.ints, self.reals, self.stats))
        n_nodes = binary_tree.grow_subtree(
            self.parameters, self.data, BinaryNodes(ints, reals, stats), scratch, job.constant, job.start, job.stop,
            job.depth,
        )  # fmt: skip
        self.grown.append((node, ints[:n_nodes].copy(), reals[:n_nodes].copy(), stats[:n_nodes].copy()))


def _begun(root: Array, n_nodes: int) -> Array:
    table = np.empty((n_nodes, len(root)), root.dtype)
    table[0] = root
    return table


def _even_parts(count: int, n_parts: int) -> list[tuple[int, int]]:
    n_parts = max(1, min(n_parts, count))
    ends = [place * count // n_parts for place in range(n_parts + 1)]
    return [(low, high) for low, high in itertools.pairwise(ends) if high > low]


def _run(pool: ThreadPoolExecutor, work: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run `work` for all parts on the pool. A single part runs in the calling thread, which may be one of the pool."""
    if len(parts) == 1:
        return [work(*parts[0])]
    return [future.result() for future in [pool.submit(work, *part) for part in parts]]
