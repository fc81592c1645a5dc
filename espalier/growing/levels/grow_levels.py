"""Grow a tree level by level, from columns that are divided among any number of workers.

At each level, the workers compute the candidates of the *open* nodes, which may still be split. The best candidate of a
node is chosen as in the in-memory grower. The worker that holds the candidate's column splits the node, and all workers
get the *mark*: the new nodes and each row's branch. If a node has few cells (rows times columns) and `Method.may_copy`
is true, its rows are copied instead, and its subtree is grown in memory. The tree equals that of the in-memory grower
to the last bit, since the same kernels see the same rows in the same order.

The *place* of an open node is its index in the list of the open nodes of its level.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from espalier.arrays import Array
from espalier.growing.finalize import Nodes
from espalier.growing.kernels import levels as kernel, node_columns
from espalier.growing.kernels.growth import NodeTables
from espalier.growing.levels.marks import Level, Mark, OpenNode, Split, Subtree, next_open
from espalier.progress import Progress

BATCH_SIZE: Final = 2
"""Nodes are copied in batches of at most this number times `Growing.max_cells` cells.

Larger batches need fewer requests but more memory: up to 20 bytes per cell, or 64 while the cell's node is grown.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ScanResult:
    """The candidates of some attributes at some open nodes.

    Attributes:
        attributes: Numbers of the attributes.
        ints, reals: The rows of the grower's two tables of candidates, (nodes, attributes, columns of the table).
            `ints` is int32 or int64, `reals` is float64.
        impurity: float64 (nodes), the impurity of each node; 0 for the binary grower.

    `Method.choose` gets the candidates of a single node, in which these arrays lack the first axis.
    """

    attributes: tuple[int, ...]
    ints: Array
    reals: Array
    impurity: Array


class Worker(Protocol):
    """A worker holds some columns, the target and the weights. Its results depend only on these and the arguments."""

    @property
    def attributes(self) -> tuple[int, ...]:
        """Numbers of the attributes whose columns this worker searches."""

    def root(self) -> tuple[tuple[Array, Array, Array], list[OpenNode]]:
        """Return the root's row of each node table, and the open nodes: the root, or none if it is a leaf."""

    def scan(self, levels: Sequence[Level], places: Sequence[int]) -> ScanResult:
        """Return the candidates of this worker's columns at the open nodes with these places."""

    def mark(self, levels: Sequence[Level], splits: Mapping[int, Split]) -> dict[int, Mark]:
        """Return the marks of the nodes that split on this worker's columns, keyed by place. A leaf has no mark."""

    def copy_rows(self, levels: Sequence[Level], places: Sequence[int]) -> list[Any]:
        """Copy the rows of the open nodes with these places. Return a copy per node, with this worker's columns."""


class ColumnWorker:
    """A worker in this process. `_levels` are the levels that its state includes, `_open` the open nodes after them."""

    first_child_column: ClassVar[int]
    attributes: tuple[int, ...]
    _nodes: NodeTables
    _open: list[OpenNode]
    _levels: list[Level]

    def root(self) -> tuple[tuple[Array, Array, Array], list[OpenNode]]:
        """Return the root's row of each node table, and the open nodes: the root, or none if it is a leaf."""
        self._advance([])
        return rows_of(self._nodes, 0, 1), list(self._open)

    def mark(self, levels: Sequence[Level], splits: Mapping[int, Split]) -> dict[int, Mark]:
        """Return the marks of the nodes that split on this worker's columns, keyed by place. A leaf has no mark."""
        self._advance(levels)
        marks = {}
        for attribute in self.attributes:
            own = [place for place, split in splits.items() if split.attribute == attribute]
            column = self._load(attribute) if own else None
            for place in own:
                if (mark := self._marked(place, splits[place], column)) is not None:
                    marks[place] = mark
        return marks

    def _advance(self, levels: Sequence[Level]) -> None:
        """Append the missing `levels` to the state. If the state includes other levels, begin again at the root."""
        n_known = len(self._levels)
        if n_known > len(levels) or any(mine is not level for mine, level in zip(self._levels, levels, strict=False)):
            self._begin()
        for level in levels[len(self._levels) :]:
            first_child = append_level(self._nodes, self._open, level, self.first_child_column)
            self._partition(level)
            self._open = next_open(self._open, level, first_child)
            self._levels.append(level)

    def _begin(self) -> None:
        raise NotImplementedError

    def _partition(self, level: Level) -> None:
        raise NotImplementedError

    def _load(self, attribute: int) -> Any:
        raise NotImplementedError

    def _marked(self, place: int, split: Split, column: Any) -> Mark | None:
        raise NotImplementedError


class Method(Protocol):
    """The steps of growing that the binary and the general grower implement differently."""

    weight_column: ClassVar[int]
    first_child_column: ClassVar[int]

    @property
    def may_copy(self) -> bool:
        """Return whether a node of few cells can be grown from its rows alone."""

    def choose(self, tables: NodeTables, node: int, scan: ScanResult) -> Split | None:
        """Return the best of the candidates of all attributes at a node; None for a leaf."""

    def grow_copied(self, tables: NodeTables, node: OpenNode, copies: Sequence[Any]) -> Subtree:
        """Grow the subtree of a node from `copies` of its rows: one per worker, ordered by the workers' attributes."""

    def finish(self, tables: NodeTables, subtrees: dict[int, Subtree]) -> tuple[Nodes, Array | None]:
        """Return the nodes of the whole tree, and a mask of those whose subset of categories may not be the best.

        None means that there are no such nodes. `subtrees` are keyed by their root's number.
        """


Ask = Callable[[Callable[[Worker], Any], Sequence[Worker]], Iterable[tuple[Worker, Any]]]


def ask_in_turn(question: Callable[[Worker], Any], workers: Sequence[Worker]) -> Iterable[tuple[Worker, Any]]:
    """Yield each worker with its answer, one after the other."""
    return ((worker, question(worker)) for worker in workers)


@dataclass(slots=True)
class Growing:
    """A tree that is grown level by level.

    Attributes:
        workers: Each holds the columns of consecutive attributes, and together they hold every column once.
        max_cells: Nodes of at most this number of cells (rows times columns) are grown in memory, if `Method.may_copy`.
            At most `BATCH_SIZE` times this number of cells is copied at a time.
        save: Called with each new level. It may store the level, so that an interrupted training can continue.
        ask: Sends a request to all workers; the answers may come in any order.
        levels: The levels so far; `grow` continues after them.
        tables, subtrees: The node tables, and the subtrees that were grown in memory, keyed by their root's number.
    """

    method: Method
    workers: Sequence[Worker]
    progress: Progress
    max_cells: int
    save: Callable[[Level], None] = lambda _level: None
    ask: Ask = ask_in_turn
    levels: list[Level] = field(default_factory=list)
    tables: Any = None
    subtrees: dict[int, Subtree] = field(default_factory=dict)

    def grow(self) -> None:
        """Grow to the leaves.

        Raises:
            Cancelled: The progress was stopped.
            DataError: The tree is too large, or the work folder cannot be written to.
        """
        self.progress.begin("growing")
        root, open_nodes = self.workers[0].root()
        self.tables = node_tables(root)
        whole = self._weight(0)
        for level in self.levels:
            open_nodes = self._append(open_nodes, level)
        while open_nodes:
            rest = sum(self._weight(node.node) for node in open_nodes)
            self.progress.state[0] = max(self.progress.state[0], 1.0 - rest / whole)
            self.progress.check()
            level = self._grow_level(open_nodes)
            self.save(level)
            self.levels.append(level)
            open_nodes = self._append(open_nodes, level)

    def _weight(self, node: int) -> float:
        return float(self.tables.reals[node, self.method.weight_column])

    def _append(self, open_nodes: list[OpenNode], level: Level) -> list[OpenNode]:
        self.subtrees |= {open_nodes[place].node: subtree for place, subtree in level.subtrees.items()}
        first_child = append_level(self.tables, open_nodes, level, self.method.first_child_column)
        return next_open(open_nodes, level, first_child)

    def _grow_level(self, open_nodes: list[OpenNode]) -> Level:
        n_columns = sum(len(worker.attributes) for worker in self.workers)
        most_rows = self.max_cells // max(1, n_columns) if self.method.may_copy else 0
        small = [place for place, node in enumerate(open_nodes) if node.n_rows <= most_rows]
        subtrees = self._grow_copied(open_nodes, small, BATCH_SIZE * most_rows)
        large = [place for place, node in enumerate(open_nodes) if node.n_rows > most_rows]
        if not large:
            return Level({}, subtrees)
        splits = self._choose(open_nodes, large)
        marks: dict[int, Mark] = {}
        for _, answer in self.ask(lambda worker: worker.mark(self.levels, splits), self.workers):
            marks |= answer
        self.progress.check()
        return Level(dict(sorted(marks.items())), subtrees)

    def _choose(self, open_nodes: list[OpenNode], places: Sequence[int]) -> dict[int, Split]:
        answers = self.ask(lambda worker: worker.scan(self.levels, places), self.workers)
        scans = sorted((scan for _, scan in answers if scan.attributes), key=lambda each: each.attributes)
        self.progress.check()
        if not scans:
            return {}
        splits = {}
        for i, place in enumerate(places):
            ints, reals = (np.concatenate([getattr(each, name)[i] for each in scans]) for name in ("ints", "reals"))
            whole = ScanResult(tuple(range(len(ints))), ints, reals, scans[0].impurity[i])
            if (split := self.method.choose(self.tables, open_nodes[place].node, whole)) is not None:
                splits[place] = split
        return splits

    def _grow_copied(self, open_nodes: list[OpenNode], places: list[int], most_rows: int) -> dict[int, Subtree]:
        subtrees: dict[int, Subtree] = {}
        while places:
            n_taken, n_rows = 0, 0
            while n_taken < len(places) and n_rows + open_nodes[places[n_taken]].n_rows <= most_rows:
                n_rows += open_nodes[places[n_taken]].n_rows
                n_taken += 1
            taken, places = places[:n_taken], places[n_taken:]
            answers = self.ask(lambda worker, taken=taken: worker.copy_rows(self.levels, taken), self.workers)  # type: ignore[misc]
            parts = [copies for _, copies in sorted(answers, key=lambda answer: answer[0].attributes)]
            for place, copies in zip(taken, zip(*parts, strict=True), strict=True):
                self.progress.check()
                subtrees[place] = self.method.grow_copied(self.tables, open_nodes[place], copies)
        return subtrees


def node_tables(root: tuple[Array, Array, Array]) -> NodeTables:
    """Return node tables that contain the root, given its row of each table."""
    ints, reals, stats = root
    tables = NodeTables(stats.shape[1], ints.shape[1], reals.shape[1])
    for table, row in zip((tables.ints, tables.reals, tables.stats), root, strict=True):
        np.asarray(table)[:1] = row
    tables.n = 1
    return tables


def rows_of(nodes: NodeTables, first: int, last: int) -> tuple[Array, Array, Array]:
    """Return copies of the rows first:last of ints, reals and stats."""
    ints, reals, stats = (np.asarray(table)[first:last].copy() for table in (nodes.ints, nodes.reals, nodes.stats))
    return ints, reals, stats


def append_level(
    nodes: NodeTables, open_nodes: Sequence[OpenNode], level: Level, first_child_column: int
) -> dict[int, int]:
    """Write a level's splits. Return each split node's first child, keyed by the node's place in `open_nodes`."""
    first_child = {}
    for place, mark in level.marks.items():
        node, first = open_nodes[place].node, nodes.n
        count = len(mark.n_rows)
        kernel.reserve(nodes, first + count, nodes.n_codes + len(mark.codes))
        ints, reals, stats, codes = map(np.asarray, (nodes.ints, nodes.reals, nodes.stats, nodes.codes))
        ints[node], reals[node] = mark.node
        ints[node, first_child_column] = first
        if len(mark.codes):
            ints[node, node_columns.CODE_START] = nodes.n_codes
        for table, rows in zip((ints, reals, stats), mark.children, strict=True):
            table[first : first + count] = rows
        codes[nodes.n_codes : nodes.n_codes + len(mark.codes)] = mark.codes
        first_child[place] = first
        nodes.n, nodes.n_codes = first + count, nodes.n_codes + len(mark.codes)
    return first_child
