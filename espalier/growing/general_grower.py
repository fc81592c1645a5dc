"""The general grower: grows the tree of any configuration.

Each job calls `grow_tree` for one node. A node of few rows is grown to its leaves. A node of many rows is only split,
and its children become further jobs. If a child has as many rows as the node, the same job splits the child, too.
Before a node below the root is grown, its rows are numbered from 0, and their codes, targets and orders are copied to
separate tables. The rows of a node and their order do not depend on the number of threads, so neither does the tree.
"""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from espalier.arrays import Array
from espalier.data.schema import Feature
from espalier.errors import Cancelled, DataError, Fault
from espalier.growing.finalize import Nodes, Part, SurrogateTable, joined
from espalier.growing.kernels import constants as c, node_columns as n
from espalier.growing.kernels.arguments import Targets
from espalier.growing.kernels.general_tree import grow_tree
from espalier.growing.kernels.growth import Growth
from espalier.growing.kernels.partition import copy_rows
from espalier.growing.parallel import Job, run_jobs
from espalier.growing.workspace import new_categories, workspace_for_rows
from espalier.model.tree import MAX_NODES
from espalier.progress import Progress

MAX_CODE_ENTRIES: Final = 50_000_000
MIN_ROWS_TO_SHARE: Final = 10_000
"""The tree of a table with fewer rows is grown in one call."""
MIN_PARTS: Final = 4
"""A node is grown in one call if its share of the rows is at most 1 / max(this, 2 · threads)."""


@dataclass(frozen=True, slots=True)
class Task:
    """A table from which a tree is grown: its workspace and its presorted orders; see `Growth`.

    `is_grown_whole`: whether one call must grow the whole tree; see `looks_beyond_node`.
    """

    work: Any
    orders: Array
    is_grown_whole: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.work.targets.weight)


def grow_general(
    task: Task, attributes: tuple[Feature, ...], progress: Progress, pool: ThreadPoolExecutor, n_threads: int
) -> tuple[Nodes, Array]:
    """Grow the tree. Return its nodes, and a mask of the nodes whose subset of categories may not be the best."""
    state = progress.state
    progress.begin("growing")
    grower = _GeneralGrower(task, state, n_threads)
    if task.is_grown_whole or task.n_rows < MIN_ROWS_TO_SHARE:
        grower.grow_subtree(task, 0, 0, state, 0)
    else:
        root = _Job(0, 0, 0, task.n_rows, task, np.zeros(0, np.int32), np.zeros(0), task.orders)
        run_jobs([root], grower.advance, grower.report, state=state, pool=pool, n_threads=n_threads)
    raise_for(grower.status(), attributes)
    has_surrogates = task.work.parameters.missing == c.SURROGATE
    return nodes_of(grower.parts, grower.code_tables, grower.surrogates if has_surrogates else None)


def nodes_of(
    parts: Sequence[Part], code_tables: Sequence[Array], surrogates: tuple[Array, Array, Array] | None = None
) -> tuple[Nodes, Array]:
    """Join the parts of a tree. Return its nodes, and a mask of those whose subset of categories may not be best."""

    def ints(k: int) -> Array:
        return joined(parts, lambda part: part.ints[:, k])

    def reals(k: int, *, keeps_root: bool = False) -> Array:
        return joined(parts, lambda part: part.reals[:, k], keeps_root=keeps_root)

    nodes = Nodes(
        first_child=joined(parts, lambda part: part.numbers(part.ints[:, n.FIRST_CHILD])),
        n_children=ints(n.N_CHILDREN),
        feature=ints(n.FEATURE),
        test=ints(n.TEST).astype(np.int8),
        threshold=reals(n.THRESHOLD),
        fallback=ints(n.FALLBACK),
        share=reals(n.SHARE, keeps_root=True),
        weight=reals(n.WEIGHT),
        gain=reals(n.GAIN),
        value=reals(n.VALUE),
        stats=joined(parts, lambda part: part.stats),
        first_code=joined(parts, lambda part: part.ints[:, n.CODE_START] + np.int32(part.first_code)),
        code_table=np.concatenate(code_tables),
    )
    if surrogates is not None:
        nodes.surrogates = SurrogateTable(ints(n.FIRST_SURROGATE), ints(n.N_SURROGATES), *surrogates)
    return nodes, ints(n.HEURISTIC) == 1


TOO_LARGE: Final[Mapping[int, str]] = {
    c.TOO_MANY_NODES: f"the tree would have more than {MAX_NODES:,} nodes: set max_depth or min_weight_leaf, or "
    "another nominal split",
    c.TOO_MANY_CATEGORIES: f"the tables of all tests of categories would have more than {MAX_CODE_ENTRIES:,} entries "
    "({most}): set max_depth or min_weight_leaf, or ignore that column",
}


def raise_for(status: int, attributes: tuple[Feature, ...]) -> None:
    """Raise the error of a status other than `DONE`."""
    if status == c.STOPPED:
        raise Cancelled("stopped on request")
    if status != c.DONE:
        largest = max(attributes, key=lambda attribute: len(attribute.categories))
        most = f"{largest.name!r} has {len(largest.categories):,} categories"
        raise DataError([Fault("", "too_large", TOO_LARGE[status].format(most=most))])


@dataclass(frozen=True, slots=True, eq=False)
class _Job(Job):
    """A node, the table of its rows, and the table's row sequences. The node's rows are a range of each sequence."""

    task: Task
    master: Array
    master_weight: Array
    orders: Array


class _GeneralGrower:
    def __init__(self, task: Task, state: Array, n_threads: int) -> None:
        self.task, self.state = task, state
        self.max_rows = task.n_rows // max(MIN_PARTS, 2 * n_threads)
        self.states: list[Array] = []
        self.statuses: list[int] = []
        self.parts: list[Part] = []
        self.code_tables: list[Array] = []
        self.surrogates: tuple[Array, Array, Array]  # of a tree that is grown in one call
        self.n_nodes, self.n_codes = 1, 0
        self.numbering = threading.Lock()
        self.scratch = threading.local()

    def advance(self, job: _Job, _thread: int) -> list[_Job]:
        if self._limit_passed() != c.DONE:
            return []
        task = self.task if job.task is self.task and job.node == 0 else self._copied_task(job)
        state = np.array([0.0, self.state[1]])
        self.states.append(state)
        max_rows_to_delegate = task.n_rows - 1 if task.n_rows > self.max_rows else 0
        return self.grow_subtree(task, job.node, job.depth, state, max_rows_to_delegate)

    def grow_subtree(self, task: Task, node: int, depth: int, state: Array, max_rows_to_delegate: int) -> list[_Job]:
        """Grow a subtree except its nodes of at most `max_rows_to_delegate` rows. Return jobs for these nodes."""
        growth = Growth(task.work, task.orders, state)
        grow_tree(growth, depth, max_rows_to_delegate, MAX_NODES, MAX_CODE_ENTRIES)
        nodes, surrogates, rows = growth.nodes, growth.surrogates, growth.rows
        ints, reals, stats = (np.asarray(table)[: nodes.n] for table in (nodes.ints, nodes.reals, nodes.stats))
        delegated = np.asarray(growth.delegated)[: growth.n_delegated]
        self.surrogates = (
            np.asarray(surrogates.ints)[: surrogates.n],
            np.asarray(surrogates.reals)[: surrogates.n],
            np.asarray(surrogates.codes)[: surrogates.n_codes],
        )
        with self.numbering:
            part = Part(node, self.n_nodes, ints, reals, stats, self.n_codes)
            self.statuses.append(growth.status)
            self.parts.append(part)
            self.code_tables.append(np.asarray(nodes.codes)[: nodes.n_codes])
            self.n_nodes += nodes.n - 1
            self.n_codes += nodes.n_codes
        master, weight, orders = (np.asarray(sequence) for sequence in (rows.master, rows.weight, rows.orders))
        numbers, depths = part.numbers(delegated[:, 0]).tolist(), ints[delegated[:, 0], n.DEPTH].tolist()
        return [
            _Job(number, below, start, stop, task, master, weight, orders)
            for number, below, (_, start, stop) in zip(numbers, depths, delegated.tolist(), strict=True)
        ]

    def report(self) -> None:
        """Write the share of finished weight. Stop all threads if a stop was requested or the tree exceeds a limit."""
        states = self.states.copy()
        for each in states:
            each[1] = self.state[1] or self._limit_passed() != c.DONE
        self.state[0] = sum(float(each[0]) for each in states)

    def status(self) -> int:
        return c.STOPPED if self.state[1] else max(self._limit_passed(), *self.statuses)

    def _limit_passed(self) -> int:
        """Return the status of the limit that all parts together exceed; DONE if they exceed none."""
        if self.n_nodes > MAX_NODES:
            return c.TOO_MANY_NODES
        return c.TOO_MANY_CATEGORIES if self.n_codes > MAX_CODE_ENTRIES else c.DONE

    def _copied_task(self, job: _Job) -> Task:
        task, n_rows, own = job.task, job.n_rows, self.scratch
        if not hasattr(own, "number"):
            categories = self.task.work.categories
            own.number = np.empty(self.task.n_rows, np.int32)
            own.categories = new_categories(
                len(categories.present), len(categories.slot), task.work.parameters.n_classes
            )
        columns, targets = task.work.columns, task.work.targets
        codes = np.empty((len(columns.kind), n_rows), np.int32)
        target_class, target = np.empty(n_rows, np.int32), np.empty(n_rows)
        orders = np.empty((len(job.orders), n_rows), np.int32)
        copy_rows(
            columns.codes, targets.target_class, targets.target, job.orders, job.master, job.start,
            job.stop, own.number, codes, target_class, target, orders,
        )  # fmt: skip
        weight = job.master_weight[job.start : job.stop].copy()
        work = workspace_for_rows(
            self.task.work,
            self.task.work.columns.replaced(codes=codes),  # the root's: copies of copies would nest memory views
            Targets(target_class=target_class, target=target, weight=weight),
            own.categories,
        )
        return replace(task, work=work, orders=orders)
