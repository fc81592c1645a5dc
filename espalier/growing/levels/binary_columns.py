"""Columns of the binary grower: their candidates, marks (see `grow_levels`) and partitions. See also `general_columns`.

A sorted column is stored in two files: its codes and its order, in the format of `BinaryColumns.orders`. Its file of
values is empty. A coded column is stored in one file of bytes. The rows of a node are a range of each order::

    level 0   | all rows                                   |
    level 1   | right branch         | left branch         |      the last child first; leaves have no rows
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from espalier.arrays import Array
from espalier.growing.binary_data import RowData, binary_table, code_column, numbered_rows
from espalier.growing.kernels import levels as kernel
from espalier.growing.kernels.binary import (
    constants as b,
    nodes as binary_nodes,
    partition as binary_partition,
    tree as binary_tree,
)
from espalier.growing.kernels.binary.arguments import BinaryNodes, NodeSearch, Scratch
from espalier.growing.kernels.growth import NodeTables
from espalier.growing.levels.grow_levels import ColumnWorker, ScanResult, rows_of
from espalier.growing.levels.marks import BranchVector, Level, Mark, OpenNode, Split
from espalier.growing.levels.sort_column import sort_column
from espalier.growing.levels.work_files import ArrayStore, store_array
from espalier.growing.training_data import TrainingData
from espalier.progress import Progress

MASTER: Final = "rows"


@dataclass(frozen=True, slots=True, eq=False)
class CopiedBinaryRows:
    """The rows of a node, numbered from 0, with some columns.

    Attributes:
        home: uint32 (rows), the number of each row in the whole table.
        master: uint32 (rows), the order 0, 1, … of the rows themselves; see `orders` of `BinaryColumns`.
        orders, codes: The order and the codes of each sorted attribute, uint32 (rows), keyed by attribute.
        cells: The codes of each coded attribute, uint8 (rows), and its number of codes, keyed by attribute.
    """

    home: Array
    master: Array
    orders: dict[int, Array]
    codes: dict[int, Array]
    cells: dict[int, tuple[Array, int]]


def prepare_binary_columns(
    data: TrainingData, store: ArrayStore, progress: Progress, *, max_rows: int
) -> tuple[int | None, ...]:
    """Write each column to the store. Return each column's number of codes, or None if the column is sorted.

    At most `max_rows` rows of a column are sorted at a time.
    """
    master = numbered_rows(data)
    store_array(store, f"{MASTER}-0", master)
    n_codes: list[int | None] = []
    for place, feature in enumerate(data.attributes):
        progress.check()
        column = data.columns[place]
        coded = code_column(column, len(feature.categories))
        if coded is not None:
            store_array(store, f"cells-{place}", coded[0])
            n_codes.append(coded[1])
        else:
            sort_column(column, place, store, max_rows=max_rows, pack=lambda rows: master[rows], has_values=False)
            n_codes.append(None)
        progress.state[0] = (place + 1) / len(data.attributes)
    return tuple(n_codes)


class BinaryWorker(ColumnWorker):
    """A worker with some prepared columns, the targets and weights of all rows, and the nodes of the tree so far.

    Args:
        name: Distinguishes this worker's files of the open nodes' rows from the files of other workers.
    """

    first_child_column: ClassVar = b.FIRST_CHILD

    def __init__(
        self,
        parameters: Any,
        rows: RowData,
        n_codes: Mapping[int, int | None],
        store: ArrayStore,
        *,
        name: str,
        progress: Progress,
    ) -> None:
        self.attributes = tuple(n_codes)
        self._parameters, self._rows, self._n_codes, self._store = parameters, rows, n_codes, store
        self._sorted = [each for each, count in n_codes.items() if count is None]
        self._name, self._progress = name, progress
        spare = np.empty(rows.n_rows, np.uint32)
        is_right = np.zeros(rows.n_rows // 32 + 1, np.uint32)
        self._scratch = Scratch(is_right, spare, np.zeros(1, np.int32), progress.state)
        self._begin()

    def scan(self, levels: Sequence[Level], places: Sequence[int]) -> ScanResult:
        """Return the candidates of this worker's columns at the open nodes with these places."""
        self._advance(levels)
        shape = len(places), len(self.attributes), 1
        ints, reals = np.zeros(shape, np.int64), np.full(shape, np.nan)
        for at, attribute in enumerate(self.attributes):
            column = self._load(attribute)
            for i, place in enumerate(places):
                if self._progress.state[1]:
                    break
                search = self._searched(self._open[place], attribute, column)
                ints[i, at, 0], reals[i, at, 0] = search.places[attribute], search.gains[attribute]
        return ScanResult(self.attributes, ints, reals, np.zeros(len(places)))

    def copy_rows(self, levels: Sequence[Level], places: Sequence[int]) -> list[CopiedBinaryRows]:
        """Copy the rows of the open nodes with these places. Return a copy per node, with this worker's columns."""
        self._advance(levels)
        nodes = [self._open[place] for place in places]
        master = self._master()
        copies = []
        for node in nodes:
            entries = master[node.start : node.stop]
            home = self._rows.rows_of(entries)
            copies.append(CopiedBinaryRows(home, entries - home + np.arange(node.n_rows, dtype=np.uint32), {}, {}, {}))
        number = np.empty(self._rows.n_rows if self._sorted else 0, np.uint32)
        for attribute in self.attributes:
            cells, order = self._load(attribute)
            n_codes = self._n_codes[attribute]
            for node, copied in zip(nodes, copies, strict=True):
                if n_codes is not None:
                    copied.cells[attribute] = cells[copied.home], n_codes
                    continue
                number[copied.home] = np.arange(node.n_rows, dtype=np.uint32)
                entries = order[node.start : node.stop]
                own = self._rows.rows_of(entries)
                copied.orders[attribute] = entries - own + number[own]
                copied.codes[attribute] = cells[copied.home]
        return copies

    def _begin(self) -> None:
        rows, store = self._rows, self._store
        self._names = dict.fromkeys(self._sorted, "order-0")
        self._master_name = f"{MASTER}-0"
        table = binary_table(rows, store.read(self._master_name, np.uint32)[None])
        self._nodes = NodeTables(self._parameters.n_classes or 4, b.N_INTS, b.N_REALS)
        self._nodes.n = 1
        is_leaf = binary_nodes.sum_root(self._parameters, table, self._binary_nodes())
        self._open = [] if is_leaf else [OpenNode(0, 0, 0, rows.n_rows)]
        self._levels = []

    def _binary_nodes(self) -> Any:
        return BinaryNodes(self._nodes.ints, self._nodes.reals, self._nodes.stats)

    def _master(self) -> Array:
        return self._store.read(self._master_name, np.uint32)

    def _load(self, attribute: int) -> tuple[Array, Array]:
        """Return the codes of an attribute, and the order that its split search reads.

        Within a node, rows are ordered by value if the attribute is sorted, and by row number if it is coded.
        """
        if self._n_codes[attribute] is not None:
            return self._store.read(f"cells-{attribute}", np.uint8), self._master()
        order = self._store.read(f"{self._names[attribute]}-{attribute}", np.uint32)
        return self._store.read(f"codes-{attribute}", np.uint32), order

    def _table(self, attribute: int, cells: Array, orders: Array) -> Any:
        n_codes = self._n_codes[attribute]
        if n_codes is None:
            return binary_table(self._rows, orders, codes=cells[None], sorted_attributes=[attribute])
        return binary_table(self._rows, orders, cells=cells[:, None], n_codes={attribute: n_codes})

    def _search(self, table: Any, attribute: int) -> Any:
        gains, places = np.full(attribute + 1, np.nan), np.zeros(attribute + 1, np.int64)
        return NodeSearch(
            table, np.empty((1, table.n_counts)), gains, places, np.zeros(1, np.uint8), self._progress.state
        )

    def _searched(self, node: OpenNode, attribute: int, column: tuple[Array, Array]) -> Any:
        cells, order = column
        table = self._table(attribute, cells, order[None, node.start : node.stop])
        search = self._search(table, attribute)
        binary_nodes.begin_search(self._parameters, table, self._binary_nodes(), node.node, search)
        binary_nodes.best_splits(table, search, 0, node.n_rows, 0, table.n_sorted, 0, table.n_coded)
        return search

    def _marked(self, place: int, split: Split, column: Any) -> Mark:
        node, attribute, (cells, order) = self._open[place], split.attribute, column
        entries = self._master()[node.start : node.stop]
        sequences = [entries] if self._n_codes[attribute] is not None else [order[node.start : node.stop], entries]
        table = self._table(attribute, cells, np.stack(sequences))
        search = self._search(table, attribute)
        search.gains[attribute], search.places[attribute] = split.reals[0], split.ints[0]
        first = self._nodes.n
        kernel.reserve(self._nodes, first + 2, 0)
        middle, *is_open = binary_tree.split_node(
            self._parameters, table, self._binary_nodes(), search, self._scratch, node.node, first, attribute, 0,
            node.n_rows, node.depth + 1,
        )  # fmt: skip
        n_rows = np.array([middle, node.n_rows - middle])
        ints, reals, _ = rows_of(self._nodes, node.node, node.node + 1)
        return Mark(
            node=(ints[0], reals[0]),
            children=rows_of(self._nodes, first, first + 2),
            codes=np.zeros(0, np.int32),
            weights=np.zeros(0),
            known_weight=0.0,
            n_rows=np.where(is_open, n_rows, -1),
            vector=BranchVector.of(self._branches(entries), 2),
        )

    def _branches(self, entries: Array) -> Array:
        bits = np.unpackbits(np.asarray(self._scratch.is_right).view(np.uint8), bitorder="little")
        branches: Array = bits[self._rows.rows_of(entries)]
        return branches

    def _partition(self, level: Level) -> None:
        """Write every order for the next level's open nodes, one order after the other."""
        number = len(self._levels) + 1
        master_name = f"{MASTER}-{self._name}-{number}"
        self._mark_rows(level)
        for each in self._sorted:
            old = f"{self._names[each]}-{each}"
            self._write_moved(level, old, f"order-{number}-{each}")
        self._write_moved(level, self._master_name, master_name)
        self._names, self._master_name = dict.fromkeys(self._sorted, f"order-{number}"), master_name

    def _write_moved(self, level: Level, old: str, new: str) -> None:
        """Write an order for the next level: the rows of each node's open children, the right child's first."""
        order = self._store.read(old, np.uint32)
        with self._store.writer(new) as write:
            for place, mark in level.marks.items():
                node = self._open[place]
                left_is_open, right_is_open = (bool(each > 0) for each in mark.n_rows)
                if not (left_is_open or right_is_open):
                    continue
                buffer = order[node.start : node.stop].copy()
                table = binary_table(self._rows, buffer[None], codes=buffer[None], sorted_attributes=[0])
                binary_partition.partition_columns(
                    table, self._search(table, 0), self._scratch, 0, 1, -1, 0, node.n_rows, left_is_open, right_is_open
                )
                n_left = int(mark.n_rows[0]) if left_is_open else node.n_rows - int(mark.n_rows[1])
                if right_is_open:
                    write(buffer[n_left:])
                if left_is_open:
                    write(buffer[:n_left])
        if self._levels:  # the orders of the root stay: a worker may begin again
            self._store.remove(old)

    def _mark_rows(self, level: Level) -> None:
        """Set the branch bit of each row of each split node. No row is in two nodes."""
        is_right, master = np.asarray(self._scratch.is_right), self._master()
        bits = np.unpackbits(is_right.view(np.uint8), bitorder="little")
        for place, mark in level.marks.items():
            node = self._open[place]
            bits[self._rows.rows_of(master[node.start : node.stop])] = mark.vector.branches()
        is_right[:] = np.packbits(bits, bitorder="little").view(np.uint32)
