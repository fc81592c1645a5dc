"""Whether the fast lane can take a task, and how it is shared out over threads.

The top of the tree is grown node by node, columns shared out; below, every subtree is one job of its own. Both use the
same scans, so the tree does not depend on the number of threads.
"""

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.kernels import codes as c
from espalier.kernels import encode, grow_binary
from espalier.kernels.grow import FALLBACK, FIRST_CHILD, N_CHILDREN, N_NODE_INTS, N_NODE_REALS, PARENT, WEIGHT

__all__ = ["FastTable", "fast_table", "grow_fast"]

Array = npt.NDArray[Any]

CRITERIA: Final = frozenset({c.GINI, c.SQUARED_ERROR})
LEAST_ROWS_OF_A_JOB: Final = 10_000
JOBS_A_THREAD: Final = 4
LEAST_ROWS_TO_SHARE: Final = 20_000
MOST_POOL_BYTES: Final = 64_000_000
WATCH_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class FastTable:
    """Everything about the columns that the fast lane's kernels take.

    Attributes:
        kind: What a row adds (grow_binary.TWO_CLASSES …). numeric: 1 where the target is a number.
        orders: uint32 (sorted columns + 1, n). codes: int32 (sorted columns, n).
        cells: uint8 (n, coded columns); first, n_codes: int64 (coded columns), where their counts begin, how many.
        value_start: int64 (F), value: float64: the values of each attribute's ranks.
        nominal: int64 (F): 1 where a code stands for a category.
        sorted_attribute, coded_attribute: int64, attribute of a column; sorted_column, coded_column: int64 (F), -1.
        rows_of: (class uint8 (n), value float64 (n), weight float64 (n)), each one entry where it is not looked at.
        target: float64 (n), for numbers.
    """

    kind: int
    numeric: int
    orders: Array
    codes: Array
    cells: Array
    first: Array
    n_codes: Array
    value_start: Array
    value: Array
    nominal: Array
    sorted_attribute: Array
    coded_attribute: Array
    sorted_column: Array
    coded_column: Array
    rows_of: tuple[Array, Array, Array]
    target: Array


def can_grow_fast(rules: Any, table_columns: Sequence[Array], n_categories: Sequence[int], weight: Array) -> bool:
    """Whether the fast lane grows the same tree as the general one: every split is a cut in two on complete columns.

    n_categories: of the unordered attributes, 0 for the others.
    """
    return (
        rules.criterion in CRITERIA
        and rules.numeric == c.BEST
        and rules.window == rules.mdl_correction == rules.average_gain_guard == rules.leaf_weight_of_winner == 0
        and rules.cost_function == c.NO_COSTS
        and rules.max_leaf_nodes < 0
        and np.isnan(rules.chi_square_alpha)
        and rules.missing != c.SURROGATE
        and rules.n_classes <= grow_binary.MOST_CLASSES
        and len(weight) <= grow_binary.MOST_ROWS
        and max(n_categories, default=0) <= 2
        and all(
            not bool(np.any(column < 0)) if column.dtype == np.int32 else not bool(np.any(np.isnan(column)))
            for column in table_columns
        )
    )


def n_threads() -> int:
    """Give the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fast_table(
    rules: Any, columns: Sequence[Array], n_categories: Sequence[int], nominal: Sequence[bool], target: Array,
    weight: Array,
) -> FastTable:  # fmt: skip
    """Code each column with few values, sort the others.

    columns: float64 or int32 codes; n_categories: of the coded ones, else 0.
    """
    n_rows, n_attributes = len(weight), len(columns)
    unit = bool(np.all(weight == 1.0))
    numeric = int(rules.n_classes == 0)
    kind = _kind(rules.n_classes, unit=unit)
    row_class = np.zeros(1, np.uint8) if numeric else target.astype(np.uint8)
    with ThreadPoolExecutor(n_threads()) as pool:
        coded = list(pool.map(lambda each: _coded(*each), zip(columns, n_categories, strict=True)))
        places = [place for place, item in enumerate(coded) if item is None]
        orders = np.empty((len(places) + 1, n_rows), np.uint32)
        codes = np.empty((len(places), n_rows), np.int32)
        class_bits = int(kind <= grow_binary.CLASSES)

        def sort(at: int) -> Array:
            return _sorted_column(columns[places[at]], n_categories[places[at]], orders[at], codes[at],
                                  row_class, class_bits)  # fmt: skip

        values_of_sorted = list(pool.map(sort, range(len(places))))
    encode.pack_order(np.arange(n_rows, dtype=np.int32), row_class, class_bits, orders[-1])
    others = [place for place, item in enumerate(coded) if item is not None]
    cells = np.empty((n_rows, len(others)), np.uint8)
    kept = [item for item in coded if item is not None]
    if kept:
        encode.spread_cells(np.stack([item[0] for item in kept]), cells)
    values: list[Array] = [np.zeros(0)] * n_attributes
    for place, value in zip(places, values_of_sorted, strict=True):
        values[place] = value
    for place, item in zip(others, kept, strict=True):
        values[place] = item[1]
    sizes = np.array([len(value) for value in values], np.int64)
    n_codes = sizes[others] if others else np.zeros(0, np.int64)
    width = 2 if numeric or kind == grow_binary.WEIGHTED_PAIR else rules.n_classes
    return FastTable(
        kind=kind,
        numeric=numeric,
        orders=orders,
        codes=codes,
        cells=cells,
        first=(np.cumsum(n_codes) - n_codes) * width,
        n_codes=n_codes,
        value_start=np.cumsum(sizes) - sizes,
        value=np.concatenate([*values, np.zeros(0)]),
        nominal=np.array(nominal, np.int64),
        sorted_attribute=np.array(places, np.int64),
        coded_attribute=np.array(others, np.int64),
        sorted_column=_inverse(places, n_attributes),
        coded_column=_inverse(others, n_attributes),
        rows_of=_rows_of(kind, row_class, target, weight),
        target=target.astype(np.float64) if numeric else np.zeros(1),
    )


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
        self.totals = np.empty(2 if table.numeric or table.kind == grow_binary.WEIGHTED_PAIR else width)
        self.side = np.empty(self.n_rows, np.uint8)
        self.n_nodes = 1
        self.settled_at_top = 0.0

    def grow(self) -> tuple[int, int, Array, Array, Array]:
        table, state = self.table, self.state
        grow_binary.sum_root(table.numeric, table.kind, table.orders, table.rows_of, table.target, self.ints,
                             self.reals, self.stats, self.totals)  # fmt: skip
        if self._is_leaf():
            state[0] = 1.0
            return c.DONE, 1, self.ints[:1], self.reals[:1], self.stats[:1]
        root = _Job(0, 0, self.n_rows, np.zeros(self.n_columns + 1, np.uint8))
        with ThreadPoolExecutor(self.threads) as pool:
            jobs = self._grow_top(root, pool) if self.threads > 1 else [root]
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

        parts = [(at, at + 1, 0, 0) for at in range(n_sorted)]
        parts += [(0, 0, low, high) for low, high in _even_parts(n_coded, self.threads)]
        _run(pool, scan, parts)
        attribute = grow_binary.choose(rules, table.numeric, table.kind, gains, self.stats, self.reals, node)
        if attribute < 0 or self.state[1]:
            self.settled_at_top += float(self.reals[node, WEIGHT])
            return []
        first_child = self.n_nodes
        self.n_nodes += 2
        middle = grow_binary.split_node(
            rules, table.numeric, table.kind, table.orders, table.codes, table.cells, table.value_start, table.value,
            table.nominal, table.sorted_column, table.coded_column, table.rows_of, table.target, self.side, start,
            stop, attribute, places[attribute], gains[attribute], self.ints, self.reals, self.stats, node, first_child,
        )  # fmt: skip
        spare = np.empty((self.threads, stop - start), np.uint32)

        def deal(low: int, high: int, left: int, right: int, place: int) -> None:
            grow_binary.deal_columns(
                table.orders, low, high, start, stop, self.side, job.flat, spare[place], left, right, middle
            )

        deal(n_sorted, n_sorted + 1, 1, 1, 0)
        lives = grow_binary.finish_children(
            rules, table.numeric, table.kind, table.orders, table.rows_of, table.target, start, middle, stop,
            self.ints, self.reals, self.stats, node, first_child, self.totals,
        )  # fmt: skip
        if any(lives):
            shares = enumerate(_even_parts(n_sorted, self.threads))
            _run(pool, deal, [(low, high, *lives, place) for place, (low, high) in shares])
        ends = ((first_child, start, middle), (first_child + 1, middle, stop))
        for alive, (child, _, _) in zip(lives, ends, strict=True):
            self.settled_at_top += 0.0 if alive else float(self.reals[child, WEIGHT])
        return [_Job(*end, job.flat.copy()) for alive, end in zip(lives, ends, strict=True) if alive]

    def _grow_job(self, job: _Job, settled: Array) -> tuple[int, Array, Array, Array]:
        table, node = self.table, job.node
        n_counts = int(table.first[-1] + table.n_codes[-1] * len(self.totals)) if len(table.coded_attribute) else 1
        slots = max(3, min(64, MOST_POOL_BYTES // (8 * n_counts)))
        answer: tuple[int, Array, Array, Array] = grow_binary.grow_subtree(
            self.rules, table.numeric, table.kind, table.orders, table.codes, table.cells, table.first, table.n_codes,
            table.value_start, table.value, table.nominal, table.sorted_attribute, table.coded_attribute,
            table.sorted_column, table.coded_column, table.rows_of, table.target, self.side, job.flat,
            self.ints[node : node + 1], self.reals[node : node + 1], self.stats[node : node + 1], job.start, job.stop,
            slots, settled, self.state,
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
        self, jobs: Sequence[_Job], grown: Sequence[tuple[int, Array, Array, Array]]
    ) -> tuple[int, int, Array, Array, Array]:
        """Put the jobs' nodes behind those of the top, numbers shifted."""
        ints, reals, stats = [self.ints[: self.n_nodes]], [self.reals[: self.n_nodes]], [self.stats[: self.n_nodes]]
        offset = self.n_nodes
        for job, (n_nodes, own_ints, own_reals, own_stats) in zip(jobs, grown, strict=True):
            made = own_ints[:n_nodes]
            shift = offset - 1
            made[:, FIRST_CHILD] += np.where(made[:, N_CHILDREN] > 0, shift, 0).astype(np.int32)
            below = made[1:, PARENT]
            made[1:, PARENT] = np.where(below == 0, job.node, below + shift)
            parent = self.ints[job.node, PARENT]
            self.ints[job.node] = made[0]
            self.ints[job.node, PARENT] = parent
            self.reals[job.node] = own_reals[0]
            ints.append(made[1:])
            reals.append(own_reals[1:n_nodes])
            stats.append(own_stats[1:n_nodes])
            offset += n_nodes - 1
        joined = np.concatenate(ints)
        if self.rules.missing in (c.FRACTIONAL, c.SPREAD):
            joined[:, FALLBACK] = -1
        return c.DONE, offset, joined, np.concatenate(reals), np.concatenate(stats)


def _kind(n_classes: int, *, unit: bool) -> int:
    if n_classes == 0:
        return grow_binary.NUMBERS if unit else grow_binary.WEIGHTED_PAIR
    if n_classes == 2:
        return grow_binary.TWO_CLASSES if unit else grow_binary.WEIGHTED_PAIR
    return grow_binary.CLASSES if unit else grow_binary.WEIGHTED_CLASSES


def _rows_of(kind: int, row_class: Array, target: Array, weight: Array) -> tuple[Array, Array, Array]:
    nothing = np.zeros(1)
    values = target.astype(np.float64) if kind in (grow_binary.NUMBERS, grow_binary.WEIGHTED_PAIR) else nothing
    weights = np.array(weight) if kind >= grow_binary.WEIGHTED_PAIR else nothing
    return row_class, values, weights


def _coded(column: Array, n_categories: int) -> tuple[Array, Array] | None:
    """Give (ranks as bytes, distinct values) of a column with few values; None where there are more."""
    if column.dtype == np.int32:
        if n_categories > grow_binary.MOST_CODES:
            return None
        return column.astype(np.uint8), np.arange(n_categories, dtype=np.float64)
    cells, distinct = np.empty(len(column), np.uint8), np.empty(grow_binary.MOST_CODES)
    n_distinct = encode.code_column(np.array(column), cells, distinct, grow_binary.MOST_CODES)
    return None if n_distinct < 0 else (cells, distinct[:n_distinct].copy())


def _sorted_column(
    column: Array, n_categories: int, packed: Array, codes: Array, row_class: Array, class_bits: int
) -> Array:
    """Sort one column into `packed` and rank it into `codes`; gives its distinct values."""
    n_rows = len(column)
    order = np.empty(n_rows, np.int32)
    if column.dtype == np.int32:
        codes[:] = column
        encode.sort_codes(codes, n_categories, order)
        value = np.arange(n_categories, dtype=np.float64)
    else:
        cells = np.array(column)
        keys, other_keys = np.empty(n_rows, np.uint64), np.empty(n_rows, np.uint64)
        n_known = encode.sort_column(cells, order, keys, other_keys, np.empty(n_rows, np.int32))
        distinct = keys.view(np.float64)
        value = distinct[: encode.rank_column(cells, order, n_known, codes, distinct)].copy()
    encode.pack_order(order, row_class, class_bits, packed)
    return value


def _inverse(places: Sequence[int], n_attributes: int) -> Array:
    inverse = np.full(n_attributes, -1, np.int64)
    inverse[list(places)] = np.arange(len(places))
    return inverse


def _even_parts(count: int, n_parts: int) -> list[tuple[int, int]]:
    """Cut range(count) into at most n_parts stretches of like length."""
    n_parts = max(1, min(n_parts, count))
    ends = [place * count // n_parts for place in range(n_parts + 1)]
    return [(low, high) for low, high in itertools.pairwise(ends) if high > low]


def _run(pool: ThreadPoolExecutor, work: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> None:
    """Do all parts, on all threads, and wait."""
    for future in [pool.submit(work, *part) for part in parts]:
        future.result()
