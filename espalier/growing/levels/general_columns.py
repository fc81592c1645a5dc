"""Columns of the general grower: their candidates, marks (see `grow_levels`) and partitions. See also `binary_columns`.

The results of a worker depend only on the training data, the configuration and the caller's arguments. Each public
method first updates the state (which rows belong to which open node) to the given levels, from the root if necessary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from espalier.arrays import Array
from espalier.config.training_parameters import TrainingConfig
from espalier.growing import encode
from espalier.growing.encode import ColumnShape, column_table
from espalier.growing.general_grower import MAX_CODE_ENTRIES, raise_for
from espalier.growing.kernels import constants as c, levels as kernel, node_columns as n
from espalier.growing.kernels.arguments import Targets
from espalier.growing.kernels.growth import Branches, Candidates, Growth, NodeTables, RowSequences, SurrogateTables
from espalier.growing.levels.grow_levels import ColumnWorker, ScanResult, rows_of
from espalier.growing.levels.marks import BranchVector, Level, Mark, OpenNode, Split
from espalier.growing.levels.sort_column import sort_column
from espalier.growing.levels.work_files import ArrayStore, store_array
from espalier.growing.training_data import TrainingData
from espalier.model.tree import MAX_NODES
from espalier.progress import Progress

NO_WEIGHT: Final = np.zeros(0)
NO_ORDER: Final = np.zeros((1, 1), np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class CopiedRows:
    """The rows of a node, numbered from 0, with some columns.

    Attributes:
        targets: The arrays of `Targets`, by name.
        codes, values: `codes` and `value` of each column, int32 and float64; see `EncodedColumns`.
        orders: The presorted order of each column that is not of NOMINAL_KIND, int32 (rows).
    """

    targets: dict[str, Array]
    codes: list[Array]
    orders: list[Array]
    values: list[Array]


def prepare_columns(
    data: TrainingData, config: TrainingConfig, store: ArrayStore, progress: Progress, *, max_rows: int
) -> tuple[ColumnShape, ...]:
    """Write each attribute's codes, values and order to the store. Return the shapes of the columns.

    A column of NOMINAL_KIND has no order. At most `max_rows` rows of a column of numbers or dates are sorted at a time.
    """
    recodes = []
    for place, feature in enumerate(data.attributes):
        progress.check()
        if feature.coded:
            recodes.append(_store_categories(data, encode.kind_of(feature, config), place, store))
        else:
            sort_column(data.columns[place], place, store, max_rows=max_rows)
            recodes.append(encode.NO_CODES)
        progress.state[0] = (place + 1) / len(data.attributes)
    return encode.column_shapes(data, config, recodes)


def _store_categories(data: TrainingData, kind: int, place: int, store: ArrayStore) -> Array:
    """Write the arrays of an attribute with categories. Return its `recode` table; see `EncodedColumns`."""
    coded = np.empty(data.n_rows, np.int32)
    order = np.empty(data.n_rows, np.int32) if kind != c.NOMINAL_KIND else None
    value, recode = encode.encode_column(data, kind, place, coded, order)
    arrays: dict[str, Array] = {"codes": coded, "value": value}
    if order is not None:
        arrays["order-0"] = order
    for name, array in arrays.items():
        store_array(store, f"{name}-{place}", array)
    return recode


def _targets(data: TrainingData) -> Any:
    """Return targets and weights. The target array that is not used has one entry. Arrays on disk are not copied."""
    is_regression = data.n_classes == 0
    return Targets(
        target_class=np.zeros(1, np.int32) if is_regression else np.ascontiguousarray(data.target, np.int32),
        target=np.ascontiguousarray(data.target, np.float64) if is_regression else np.zeros(1),
        weight=np.ascontiguousarray(data.weight, np.float64),
    )


class GeneralWorker(ColumnWorker):
    """A worker with some prepared columns, the target and weights of all rows, and the nodes of the tree so far."""

    first_child_column: ClassVar = n.FIRST_CHILD

    def __init__(
        self, data: TrainingData, shapes: Mapping[int, ColumnShape], store: ArrayStore, *, work: Any, progress: Progress
    ) -> None:
        self.attributes = tuple(shapes)
        self._data, self._shapes, self._store = data, shapes, store
        self._growth = growth = Growth.__new__(Growth)
        n_categories = max([1, *(len(each.categories) for each in data.attributes if each.unordered)])
        growth.work, growth.progress = work, progress.state
        growth.surrogates, growth.validation = SurrogateTables(1, 1), RowSequences(0, NO_ORDER)
        growth.rows, growth.candidates = RowSequences(0, NO_ORDER), Candidates(1)
        growth.branches = Branches(data.n_rows, n_categories, max(2, n_categories))
        self._begin()

    def scan(self, levels: Sequence[Level], places: Sequence[int]) -> ScanResult:
        """Return the candidates of this worker's columns at the open nodes with these places."""
        self._advance(levels)
        growth, shape = self._growth, (len(places), len(self.attributes))
        ints, reals = np.zeros((*shape, c.N_INTS), np.int32), np.zeros((*shape, c.N_REALS))
        impurity = np.zeros(len(places))
        for at, attribute in enumerate(self.attributes):
            order = self._load(attribute)
            for i, place in enumerate(places):
                self._set_node(place, order)
                kernel.scan_column(growth, self._open[place].node)
                if growth.progress[1]:
                    return ScanResult(self.attributes, ints, reals, impurity)
                ints[i, at], reals[i, at] = growth.candidates.ints[0], growth.candidates.reals[0]
                impurity[i] = growth.work.context.impurity
            del order  # unmapped before the next one is mapped
        return ScanResult(self.attributes, ints, reals, impurity)

    def copy_rows(self, levels: Sequence[Level], places: Sequence[int]) -> list[CopiedRows]:
        """Copy the rows of the open nodes with these places. Return a copy per node, with this worker's columns."""
        self._advance(levels)
        number = np.empty(self._data.n_rows, np.int32)
        copies = [CopiedRows(self._targets_of(self._open[place]), [], [], []) for place in places]
        for attribute in self.attributes:
            order = self._load(attribute)
            for place, copied in zip(places, copies, strict=True):
                self._copy_column(self._open[place], order, number, copied)
        return copies

    def _begin(self) -> None:
        growth, n_rows = self._growth, self._data.n_rows
        growth.work.targets = _targets(self._data)
        self._master, self._weight = np.empty(n_rows, np.int32), np.empty(n_rows)
        growth.nodes = self._nodes = NodeTables(growth.work.parameters.n_classes or 3)
        growth.status = c.DONE
        growth.rows.master, growth.rows.weight = self._master, self._weight
        self._open = [OpenNode(0, 0, 0, n_rows)] if kernel.begin_root(growth) else []
        growth.work.targets = growth.work.targets.replaced(weight=NO_WEIGHT)  # `_weight` has the weights now
        self._levels = []
        self._order_names = dict.fromkeys(self.attributes, "order-0")
        self._current = -1

    def _load(self, attribute: int) -> Array | None:
        """Make an attribute the only column of the workspace. Return its order, or None if it is of NOMINAL_KIND."""
        shape, read = self._shapes[attribute], self._store.read
        self._unload()
        codes, value = read(f"codes-{attribute}", np.int32), read(f"value-{attribute}", np.float64)
        self._growth.work.columns = column_table([shape], codes[None], [value], first_attribute=attribute)
        if shape.kind == c.NOMINAL_KIND:
            return None
        return read(f"{self._order_names[attribute]}-{attribute}", np.int32)

    def _unload(self) -> None:
        self._growth.work.columns, self._growth.rows.orders = column_table([], NO_ORDER, []), NO_ORDER

    def _set_node(self, place: int, order: Array | None) -> None:
        node, rows, sums = self._open[place], self._growth.rows, self._growth.work.sums
        if not len(sums.weight):
            sums.weight = np.empty(self._data.n_rows)
        rows.orders = NO_ORDER if order is None else order[None, node.start : node.stop]
        if self._current != place:
            self._load_rows(node)
            kernel.set_node(self._growth, node.node, node.n_rows)
            self._current = place

    def _load_rows(self, node: OpenNode) -> None:
        rows = self._growth.rows
        rows.master, rows.weight = self._master[node.start : node.stop], self._weight[node.start : node.stop]

    def _marked(self, place: int, split: Split, order: Array | None) -> Mark | None:
        growth, node = self._growth, self._open[place]
        nodes, branches = self._nodes, growth.branches
        self._set_node(place, order)
        np.asarray(growth.candidates.chosen_ints)[:] = split.ints
        np.asarray(growth.candidates.chosen_reals)[:] = split.reals
        n_codes = nodes.n_codes
        n_branches = kernel.split_node(growth, node.node, node.n_rows, MAX_NODES, MAX_CODE_ENTRIES)
        self._current = -1
        raise_for(growth.status, self._data.attributes)
        if not n_branches:
            return None
        codes = np.asarray(nodes.codes)[n_codes : nodes.n_codes].copy()
        nodes.n_codes = n_codes
        vector = np.asarray(branches.of_row)[self._master[node.start : node.stop]]
        ints, reals, _ = rows_of(nodes, node.node, node.node + 1)
        return Mark(
            node=(ints[0], reals[0]),
            children=rows_of(nodes, nodes.n, nodes.n + n_branches),
            codes=codes,
            weights=np.asarray(branches.weight)[:n_branches].copy(),
            known_weight=branches.known_weight,
            n_rows=np.asarray(branches.n_rows)[:n_branches].copy(),
            vector=BranchVector.of(vector, n_branches),
        )

    def _targets_of(self, node: OpenNode) -> dict[str, Array]:
        targets, master = self._growth.work.targets, self._master[node.start : node.stop]
        is_regression = self._growth.work.parameters.n_classes == 0
        none = np.zeros(node.n_rows)
        return {
            "target_class": none.astype(np.int32) if is_regression else np.asarray(targets.target_class)[master],
            "target": np.asarray(targets.target)[master] if is_regression else none,
            "weight": self._weight[node.start : node.stop].copy(),
        }

    def _copy_column(self, node: OpenNode, order: Array | None, number: Array, copied: CopiedRows) -> None:
        """Copy a node's rows of the loaded column. The values of an ordered column are ranked anew among these rows."""
        columns, master = self._growth.work.columns, self._master[node.start : node.stop]
        codes, value = np.asarray(columns.codes)[0], np.asarray(columns.value)
        own = codes[master]
        if order is not None:
            number[master] = np.arange(node.n_rows, dtype=np.int32)
            ascending = order[node.start : node.stop]
            copied.orders.append(number[ascending])
            if columns.kind[0] == c.ORDERED_KIND:
                known = ascending[: np.count_nonzero(own >= 0)]
                own[number[known]], distinct = encode.rank_sorted(codes[known])
                value = value[distinct]
        copied.codes.append(own)
        copied.values.append(value)

    def _partition(self, level: Level) -> None:
        """Partition each order for the next level and write it to a file. Then partition the master sequence."""
        name = f"order-{len(self._levels) + 1}"
        nodes = [(self._open[place], mark) for place, mark in level.marks.items() if mark.n_needed]
        rows = self._growth.rows
        self._growth.work.sums.weight = NO_WEIGHT  # frees the memory
        self._unload()
        for attribute in self.attributes:
            if self._shapes[attribute].kind == c.NOMINAL_KIND:
                continue
            old = f"{self._order_names[attribute]}-{attribute}"
            order = self._store.read(old, np.int32)
            with self._store.writer(f"{name}-{attribute}") as write:
                for node, mark in nodes:
                    capacity = self._load_branches(node, mark)
                    buffer = np.empty((1, capacity), np.int32)
                    buffer[0, : node.n_rows] = order[node.start : node.stop]
                    rows.orders = buffer
                    kernel.partition_column(rows, self._growth.branches, node.n_rows, mark.n_needed)
                    write(buffer[0, : mark.n_needed])
            if self._levels:  # the order of the root stays: a worker may begin again
                self._store.remove(old)
            self._order_names[attribute] = name
        self._partition_rows(nodes)
        rows.orders, rows.spare, rows.spare_weight = NO_ORDER, np.zeros(1, np.int32), np.zeros(1)
        self._current = -1

    def _partition_rows(self, nodes: Sequence[tuple[OpenNode, Mark]]) -> None:
        """Partition the master sequence, in place unless the children of a node have more rows than the node."""
        rows = self._growth.rows
        is_longer = any(mark.n_needed > node.n_rows for node, mark in nodes)
        n_rows, at = sum(mark.n_needed for _, mark in nodes), 0
        master = np.empty(n_rows, np.int32) if is_longer else self._master
        weight = np.empty(n_rows) if is_longer else self._weight
        for node, mark in nodes:
            capacity = self._load_branches(node, mark)
            self._load_rows(node)
            if is_longer:
                own, own_weight = np.empty(capacity, np.int32), np.empty(capacity)
                own[: node.n_rows], own_weight[: node.n_rows] = rows.master, rows.weight
                rows.master, rows.weight = own, own_weight
            kernel.partition_node(rows, self._growth.branches, node.n_rows, mark.n_needed)
            master[at : at + mark.n_needed] = rows.master[: mark.n_needed]
            weight[at : at + mark.n_needed] = rows.weight[: mark.n_needed]
            at += mark.n_needed
        self._master, self._weight = master[:n_rows], weight[:n_rows]

    def _load_branches(self, node: OpenNode, mark: Mark) -> int:
        """Write the branches of a node's rows for the kernels. Return the buffer size for moving the rows."""
        rows, branches, n_branches = self._growth.rows, self._growth.branches, len(mark.n_rows)
        capacity = max(node.n_rows, mark.n_needed)
        np.asarray(branches.of_row)[self._master[node.start : node.stop]] = mark.vector.branches()
        branches.n, branches.known_weight = n_branches, mark.known_weight
        np.asarray(branches.weight)[:n_branches] = mark.weights
        np.asarray(branches.n_rows)[:n_branches] = mark.n_rows
        if len(rows.spare) <= capacity:
            rows.spare, rows.spare_weight = np.empty(capacity + 1, np.int32), np.empty(capacity + 1)
        return capacity
