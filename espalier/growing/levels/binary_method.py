"""The binary grower, level by level: compare candidates, grow small subtrees, join the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from espalier.growing import binary_grower
from espalier.growing.binary_data import NO_CELLS, NO_CODES, RowData, binary_table
from espalier.growing.finalize import Nodes, Part
from espalier.growing.kernels.binary import constants as b, nodes as binary_nodes, tree as binary_tree
from espalier.growing.kernels.binary.arguments import BinaryNodes, NodeSearch, Scratch
from espalier.growing.kernels.growth import NodeTables
from espalier.growing.levels.binary_columns import CopiedBinaryRows
from espalier.growing.levels.grow_levels import ScanResult, rows_of
from espalier.growing.levels.marks import OpenNode, Split, Subtree
from espalier.growing.training_data import TrainingData
from espalier.progress import Progress
from espalier.threads import n_threads, thread_pool


@dataclass(frozen=True, slots=True, eq=False)
class BinaryMethod:
    """The steps of the binary grower; see `Method`."""

    weight_column: ClassVar = b.WEIGHT
    first_child_column: ClassVar = b.FIRST_CHILD
    parameters: Any
    rows: RowData
    data: TrainingData
    progress: Progress

    @property
    def may_copy(self) -> bool:
        """Return whether a node can be grown from its rows alone."""
        return True

    def choose(self, tables: NodeTables, node: int, scan: ScanResult) -> Split | None:
        """Return the best split of a node by the binary grower's comparison; None for a leaf."""
        table = binary_table(self.rows, np.zeros((1, 1), np.uint32))
        gains, places = scan.reals[:, 0].copy(), scan.ints[:, 0].copy()
        search = NodeSearch(table, np.empty((1, 1)), gains, places, np.zeros(1, np.uint8), self.progress.state)
        nodes = BinaryNodes(tables.ints, tables.reals, tables.stats)
        binary_nodes.begin_search(self.parameters, table, nodes, node, search)
        best = binary_nodes.best_attribute(self.parameters, search)
        return None if best < 0 else Split(best, scan.ints[best], scan.reals[best])

    def grow_copied(self, tables: NodeTables, node: OpenNode, copies: Sequence[CopiedBinaryRows]) -> Subtree:
        """Grow the subtree of a node from `copies` of its rows: one per worker, ordered by the workers' attributes."""
        home, n_rows = copies[0].home, node.n_rows
        orders = [order for copied in copies for order in copied.orders.values()]
        columns = {attribute: codes for copied in copies for attribute, codes in copied.codes.items()}
        coded = {attribute: item for copied in copies for attribute, item in copied.cells.items()}
        cells = np.ascontiguousarray(np.stack([cells for cells, _ in coded.values()], axis=1)) if coded else NO_CELLS
        table = binary_table(
            self.rows.take(home),
            np.stack([*orders, copies[0].master]),
            codes=np.stack(list(columns.values())) if columns else NO_CODES,
            sorted_attributes=list(columns),
            cells=cells,
            n_codes={attribute: count for attribute, (_, count) in coded.items()},
        )
        state = np.array([0.0, self.progress.state[1]])
        scratch = Scratch(
            np.zeros(n_rows // 32 + 1, np.uint32), np.empty(n_rows, np.uint32), np.empty(n_rows, np.int32), state
        )
        ints, reals, stats = (np.repeat(row, 2 * n_rows, axis=0) for row in rows_of(tables, node.node, node.node + 1))
        constant = np.zeros(len(columns) + len(coded), np.uint8)
        n_nodes = binary_tree.grow_subtree(
            self.parameters, table, BinaryNodes(ints, reals, stats), scratch, constant, 0, n_rows, node.depth
        )
        ints = ints[:n_nodes].copy()
        beside = ints[:, b.LAST_LEFT : b.FIRST_RIGHT + 1]
        beside[:] = np.where(beside >= 0, home[np.maximum(beside, 0)].astype(np.int32), -1)
        return Subtree(ints, reals[:n_nodes].copy(), stats[:n_nodes].copy(), np.zeros(0, np.int32))

    def finish(self, tables: NodeTables, subtrees: dict[int, Subtree]) -> tuple[Nodes, None]:
        """Return the whole tree's nodes, and None: two categories have one split, so no better subset can exist."""
        parts, n_nodes = [Part(0, 1, *rows_of(tables, 0, tables.n))], tables.n
        for node, subtree in subtrees.items():
            parts.append(Part(node, n_nodes, subtree.ints, subtree.reals, subtree.stats))
            n_nodes += len(subtree.ints) - 1
        with thread_pool(n_threads()) as pool:
            return binary_grower.nodes_of(self.parameters, parts, self.data, pool), None
