"""How the growing of one tree in the general lane is shared out over threads.

`grow_tree` grows the top and leaves every node of few rows as it is; each of these is one job, the largest first. A job
moves: its rows are numbered from 0, and their codes, targets and orders are copied into tables of its own, which fit
the cache. Then `grow_tree` grows it as if it were a whole tree. Each node sees the same rows in the same order either
way, so the tree does not depend on the number of threads.
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
from espalier.processors import n_threads, thread_pool

__all__ = ["Task", "grow_in_parts", "phase"]

Array = npt.NDArray[Any]

LEAST_ROWS_TO_SHARE: Final = 10_000
"""A table of fewer rows is grown in one go."""
LARGEST_SHARE: Final = 4
"""The largest job has at most one part in this many of the rows."""
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


def phase(task: Task, state: Array, limits: tuple[int, int]) -> str:
    """Name the phase that `grow_in_parts` is, as `phase_of` does."""
    return phase_of(grow_tree, "growing", _arguments(task, state, 0, 0, limits))


def grow_in_parts(task: Task, state: Array, limits: tuple[int, int], threads: int | None = None) -> tuple[Any, ...]:
    """Grow the tree; returns what `grow_tree` does, without what it leaves.

    state: float64 (2), share settled (written) and stop flag (read). limits: most nodes, most entries of code tables.
    """
    n_rows = len(task.rows.weight)
    # What is rare looks beyond its node: at the path above, at other nodes that wait, at rows that vote.
    hand_over = n_rows // LARGEST_SHARE if task.rare is None and n_rows >= LEAST_ROWS_TO_SHARE else 0
    top = grow_tree(*_arguments(task, state, 0, hand_over, limits))
    answer, (left, master, master_weight, orders) = top[:-4], top[-4:]
    if answer[0] != c.DONE or not len(left):
        return tuple(answer)
    return _Jobs(task, answer, (master, master_weight, orders), state, limits).grown(left, threads or n_threads())


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


class _Jobs:
    """The nodes that the top has left, and what becomes of them."""

    def __init__(
        self, task: Task, top: tuple[Any, ...], sequences: tuple[Array, Array, Array], state: Array,
        limits: tuple[int, int],
    ) -> None:  # fmt: skip
        self.task, self.top, self.state, self.limits = task, top, state, limits
        self.master, self.master_weight, self.orders = sequences
        self.own = threading.local()

    def grown(self, left: Array, threads: int) -> tuple[Any, ...]:
        """Grow all, and give the whole tree."""
        by_size = left[np.argsort(left[:, 1] - left[:, 2], kind="stable")]
        states = [np.zeros(2) for _ in by_size]
        with thread_pool(threads) as pool:
            running = [pool.submit(self._grow, *each) for each in zip(by_size.tolist(), states, strict=True)]
            self._watch(running, states)
        made = [each.result() for each in running]
        return self._joined(by_size[:, 0].tolist(), made)

    def _grow(self, left: tuple[int, int, int], state: Array) -> tuple[Any, ...]:
        node, start, stop = left
        task, n_rows = self.task, stop - start
        if not hasattr(self.own, "number"):
            self.own.number = np.empty(len(task.rows.weight), np.int32)
            self.own.groups, self.own.subsets = _copied(task.groups), _copied(task.subsets)
        codes = np.empty((len(task.columns.codes), n_rows), np.int32)
        target_class, target = np.empty(n_rows, np.int32), np.empty(n_rows)
        orders = np.empty((len(self.orders), n_rows), np.int32)
        move(
            task.columns.codes, task.rows.target_class, task.rows.target, self.orders, self.master, start, stop,
            self.own.number, codes, target_class, target, orders,
        )  # fmt: skip
        weight = self.master_weight[start:stop].copy()
        by_class = np.zeros((n_rows if len(task.work.by_class) else 0, 2))
        own = replace(
            task,
            columns=task.columns._replace(codes=codes),
            rows=task.rows._replace(target_class=target_class, target=target, weight=weight),
            work=_copied(task.work._replace(weight=np.zeros(n_rows), by_class=by_class)),
            groups=self.own.groups,
            subsets=self.own.subsets,
            orders=orders,
        )
        depth = int(self.top[2][node, DEPTH])
        answer: tuple[Any, ...] = grow_tree(*_arguments(own, state, depth, 0, self.limits))
        return answer[:-4]

    def _watch(self, running: Sequence[Future[Any]], states: Sequence[Array]) -> None:
        """Write the share that is settled, and stop the jobs when all must stop or they pass a limit together."""
        settled_at_top = self.state[0]
        unfinished: set[Future[Any]] = set(running)
        while unfinished:
            unfinished = wait(unfinished, timeout=WATCH_SECONDS).not_done
            passed = self._limit_passed([each.result() for each in running if each.done()])
            for each in states:
                each[1] = self.state[1] or passed != c.DONE
            self.state[0] = settled_at_top + sum(float(each[0]) for each in states)

    def _joined(self, nodes: Sequence[int], made: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Put the jobs' nodes behind those of the top, numbers shifted."""
        _, n_nodes, ints, reals, stats, code_table, n_codes, *surrogates = self.top
        status = max(self._limit_passed(made), *(each[0] for each in made))
        if self.state[1]:
            status = c.STOPPED
        tables = [[ints[:n_nodes]], [reals[:n_nodes]], [stats[:n_nodes]]]
        code_tables = [code_table[:n_codes]]
        for node, (_, count, own_ints, own_reals, own_stats, own_codes, own_n_codes, *_) in zip(
            nodes, made, strict=True
        ):
            shift = n_nodes - 1
            part = own_ints[:count]
            part[:, FIRST_CHILD] += np.where(part[:, N_CHILDREN] > 0, shift, 0).astype(np.int32)
            part[:, CODE_START] += np.where(part[:, CODE_START] >= 0, n_codes, 0).astype(np.int32)
            part[1:, PARENT] = np.where(part[1:, PARENT] == 0, node, part[1:, PARENT] + shift)
            part[0, PARENT], own_reals[0, SHARE] = ints[node, PARENT], reals[node, SHARE]
            for table, own in zip(tables, (part, own_reals[:count], own_stats[:count]), strict=True):
                table[0][node] = own[0]
                table.append(own[1:])
            code_tables.append(own_codes[:own_n_codes])
            n_nodes += count - 1
            n_codes += own_n_codes
        return (
            status, n_nodes, *(np.concatenate(table) for table in tables), np.concatenate(code_tables), n_codes,
            *surrogates,
        )  # fmt: skip

    def _limit_passed(self, made: Sequence[tuple[Any, ...]]) -> int:
        """Say which limit the top and the jobs that are done pass together; DONE if none."""
        n_nodes, n_codes = self.top[1], self.top[6]
        for each in made:
            n_nodes += each[1] - 1
            n_codes += each[6]
        if n_nodes > self.limits[0]:
            return c.TOO_MANY_NODES
        return c.TOO_MANY_CATEGORIES if n_codes > self.limits[1] else c.DONE


def _copied(arrays: Any) -> Any:
    """Copy a named tuple of arrays; None is None."""
    return None if arrays is None else type(arrays)(*(each.copy() for each in arrays))
