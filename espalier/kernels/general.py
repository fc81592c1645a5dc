"""How the growing of one tree in the general lane is shared out over threads.

The work is a list of nodes, from which each thread takes the largest. `grow_tree` splits one of many rows and leaves
its children to the list; one of few rows it grows to its leaves. Before that a node moves: its rows are numbered from
0, and their codes, targets and orders are copied into tables of its own, which are grown as if they were a whole
tree's. Each node sees the same rows in the same order either way, so the tree does not depend on the number of threads.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.kernels import codes as c
from espalier.kernels.grow import grow_tree
from espalier.kernels.jit import compiled, phase_of
from espalier.kernels.nodes import CODE_START, DEPTH, FIRST_CHILD, N_CHILDREN, PARENT, SHARE
from espalier.kernels.work_list import WorkList
from espalier.processors import n_threads, thread_pool

__all__ = ["Task", "grow_in_parts", "phase"]

Array = npt.NDArray[Any]

LEAST_ROWS_TO_SHARE: Final = 10_000
"""A table of fewer rows is grown in one go."""
LARGEST_SHARE: Final = 4
"""What is grown in one go has at most one part in this many of the rows, or in twice as many as there are threads."""
WATCH_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Task:
    """What `grow_tree` takes of one table: rules, columns and rows, scratch arrays, presorted orders."""

    rules: Any
    columns: Any
    rows: Any
    work: Any
    groups: Any
    subsets: Any
    rare: Any
    orders: Array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows.weight)


def phase(task: Task, state: Array, limits: tuple[int, int]) -> str:
    """Name the phase that `grow_in_parts` is, as `phase_of` does."""
    return phase_of(grow_tree, "growing", _arguments(task, state, 0, 0, limits))


def grow_in_parts(task: Task, state: Array, limits: tuple[int, int], threads: int | None = None) -> tuple[Any, ...]:
    """Grow the tree; returns what `grow_tree` does, without what it leaves.

    state: float64 (2), share settled (written) and stop flag (read). limits: most nodes, most entries of code tables.
    """
    # What is rare looks beyond its node: at the path above, at other nodes that wait, at rows that vote.
    if task.rare is not None or task.n_rows < LEAST_ROWS_TO_SHARE:
        answer: tuple[Any, ...] = grow_tree(*_arguments(task, state, 0, 0, limits))
        return answer[:-4]
    return _Grower(task, state, limits, threads or n_threads()).grown()


def _arguments(task: Task, state: Array, depth: int, hand_over: int, limits: tuple[int, int]) -> tuple[Any, ...]:
    return (
        task.rules, task.columns, task.rows, task.work, task.groups, task.subsets, task.rare, task.orders, state, depth,
        hand_over, *limits,
    )  # fmt: skip


@compiled
def move(  # type: ignore[no-untyped-def]
    codes, target_class, target, orders, master, start, stop, number, to_codes, to_class, to_target, to_orders
):
    """Copy the rows ``master[start:stop]`` into tables of their own, numbered from 0.

    number: int32 (rows of the whole), scratch. to_codes: int32 (attributes, rows); to_orders: int32 (orders, rows).
    """
    count = stop - start
    for at in range(count):
        row = master[start + at]
        number[row] = at
        to_class[at] = target_class[row]
        to_target[at] = target[row]
    for attribute in range(codes.shape[0]):
        for at in range(count):
            to_codes[attribute, at] = codes[attribute, master[start + at]]
    for order in range(orders.shape[0]):
        for at in range(count):
            to_orders[order, at] = number[orders[order, start + at]]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The nodes of one call of `grow_tree`; those that it has left stand among them as leaves.

    Attributes:
        status: How the call ended.
        tables: Of its nodes: whole numbers, reals, statistics.
        code_table: Of its tests of categories.
        node: Its root's number in the whole tree; first: that of its next node, and so on.
        first_code: Where its table of codes begins in the whole one.
    """

    status: int
    tables: tuple[Array, Array, Array]
    code_table: Array
    node: int
    first: int
    first_code: int

    def numbers(self, own: Array) -> Array:
        """Give the numbers in the whole tree of some of its nodes."""
        return np.where(own == 0, self.node, own + (self.first - 1)).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A node that is still to be grown: its number, and its stretch of the tables of the one above."""

    node: int
    depth: int
    task: Task
    master: Array
    master_weight: Array
    orders: Array
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


class _Grower:
    """One growing of one tree."""

    def __init__(self, task: Task, state: Array, limits: tuple[int, int], threads: int) -> None:
        self.task, self.state, self.limits, self.threads = task, state, limits, threads
        self.most_rows = task.n_rows // max(LARGEST_SHARE, 2 * threads)
        self.states: list[Array] = []
        self.parts: list[_Part] = []
        self.surrogates: tuple[Any, ...] = ()  # none: who asks for them is grown in one go
        self.n_nodes, self.n_codes = 1, 0
        self.numbering = threading.Lock()
        self.own = threading.local()

    def grown(self) -> tuple[Any, ...]:
        """Grow all, and give the whole tree."""
        work = WorkList(self._grow_top(), size=lambda job: job.n_rows)
        with thread_pool(self.threads) as pool:
            self._watch([pool.submit(work.work_off, self._grow_moved) for _ in range(self.threads)])
        return self._joined()

    def _grow_top(self) -> list[_Job]:
        return self._grow(self.task, 0, 0)

    def _grow_moved(self, job: _Job) -> list[_Job]:
        return [] if self._must_end() else self._grow(self._moved(job), job.node, job.depth)

    def _grow(self, task: Task, node: int, depth: int) -> list[_Job]:
        """Split a node of many rows, or grow all of one of few; gives what is left to do below it."""
        state = np.array([0.0, self.state[1]])
        self.states.append(state)
        hand_over = task.n_rows - 1 if task.n_rows > self.most_rows else 0
        answer = grow_tree(*_arguments(task, state, depth, hand_over, self.limits))
        status, n_nodes, ints, reals, stats, code_table, n_codes = answer[:7]
        self.surrogates, (left, master, master_weight, orders) = answer[7:-4], answer[-4:]
        tables = ints[:n_nodes], reals[:n_nodes], stats[:n_nodes]
        with self.numbering:
            part = _Part(status, tables, code_table[:n_codes], node, self.n_nodes, self.n_codes)
            self.parts.append(part)
            self.n_nodes += n_nodes - 1
            self.n_codes += n_codes
        numbers, depths = part.numbers(left[:, 0]).tolist(), ints[left[:, 0], DEPTH].tolist()
        return [
            _Job(number, below, task, master, master_weight, orders, start, stop)
            for number, below, (_, start, stop) in zip(numbers, depths, left.tolist(), strict=True)
        ]

    def _moved(self, job: _Job) -> Task:
        """Copy what a job needs into tables of its own."""
        task, n_rows = job.task, job.n_rows
        if not hasattr(self.own, "number"):
            self.own.number = np.empty(self.task.n_rows, np.int32)
            # The first task's own: nobody writes them any more. Those of the task above are another thread's.
            self.own.groups, self.own.subsets = _copied(self.task.groups), _copied(self.task.subsets)
        codes = np.empty((len(task.columns.codes), n_rows), np.int32)
        target_class, target = np.empty(n_rows, np.int32), np.empty(n_rows)
        orders = np.empty((len(job.orders), n_rows), np.int32)
        move(
            task.columns.codes, task.rows.target_class, task.rows.target, job.orders, job.master, job.start, job.stop,
            self.own.number, codes, target_class, target, orders,
        )  # fmt: skip
        weight = job.master_weight[job.start : job.stop].copy()
        work = self.task.work
        by_class = np.zeros((n_rows if len(work.by_class) else 0, 2))
        return replace(
            task,
            columns=task.columns._replace(codes=codes),
            rows=task.rows._replace(target_class=target_class, target=target, weight=weight),
            work=_copied(work._replace(weight=np.zeros(n_rows), by_class=by_class)),
            groups=self.own.groups,
            subsets=self.own.subsets,
            orders=orders,
        )

    def _watch(self, running: Sequence[Future[None]]) -> None:
        """Write the share that is settled, and stop the threads when all must stop or pass a limit together."""
        left: set[Future[None]] = set(running)
        while left:
            done, left = wait(left, timeout=WATCH_SECONDS)
            if any(each.exception() for each in done):
                self.state[1] = 1.0  # the others need not go on
            states = self.states.copy()
            for each in states:
                each[1] = self._must_end()
            self.state[0] = sum(float(each[0]) for each in states)
        for thread in running:
            thread.result()

    def _must_end(self) -> bool:
        return bool(self.state[1]) or self._limit_passed() != c.DONE

    def _limit_passed(self) -> int:
        """Say which limit the parts that are done pass together; DONE if none."""
        if self.n_nodes > self.limits[0]:
            return c.TOO_MANY_NODES
        return c.TOO_MANY_CATEGORIES if self.n_codes > self.limits[1] else c.DONE

    def _joined(self) -> tuple[Any, ...]:
        """Put the nodes of all parts into one table, a part's root where the part above has left it."""
        status = c.STOPPED if self.state[1] else max(self._limit_passed(), *(each.status for each in self.parts))
        tables = [np.empty((self.n_nodes, each.shape[1]), each.dtype) for each in self.parts[0].tables]
        ints, reals, _ = tables
        code_table = np.empty(self.n_codes, np.int32)
        for part in self.parts:
            own, own_reals, _ = part.tables
            own[:, FIRST_CHILD] = np.where(own[:, N_CHILDREN] > 0, part.numbers(own[:, FIRST_CHILD]), -1)
            own[:, CODE_START] += np.where(own[:, CODE_START] >= 0, part.first_code, 0).astype(np.int32)
            own[1:, PARENT] = part.numbers(own[1:, PARENT])
            if part.node != 0:
                own[0, PARENT], own_reals[0, SHARE] = ints[part.node, PARENT], reals[part.node, SHARE]
            for table, made in zip(tables, part.tables, strict=True):
                table[part.node] = made[0]
                table[part.first : part.first + len(made) - 1] = made[1:]
            code_table[part.first_code : part.first_code + len(part.code_table)] = part.code_table
        return status, self.n_nodes, *tables, code_table, self.n_codes, *self.surrogates


def _copied(arrays: Any) -> Any:
    """Copy a named tuple of arrays; None is None."""
    return None if arrays is None else type(arrays)(*(each.copy() for each in arrays))
