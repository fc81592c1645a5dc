"""The general grower, level by level: compare candidates, grow small subtrees, join the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from espalier.arrays import Array
from espalier.data.schema import Feature
from espalier.growing.encode import ColumnShape, column_table
from espalier.growing.finalize import Nodes, Part
from espalier.growing.general_grower import MAX_CODE_ENTRIES, nodes_of, raise_for
from espalier.growing.kernels import constants as c, node_columns as n
from espalier.growing.kernels.arguments import Targets
from espalier.growing.kernels.general_tree import grow_tree
from espalier.growing.kernels.growth import Candidates, Growth, NodeTables
from espalier.growing.kernels.splits.choose_split import best_candidate
from espalier.growing.levels.general_columns import CopiedRows
from espalier.growing.levels.grow_levels import ScanResult
from espalier.growing.levels.marks import OpenNode, Split, Subtree
from espalier.growing.levels.work_files import ArrayStore
from espalier.growing.workspace import new_categories, workspace_for_rows
from espalier.model.node_tests import NUMERIC
from espalier.model.tree import MAX_NODES
from espalier.progress import Progress


@dataclass(frozen=True, slots=True, eq=False)
class GeneralMethod:
    """The steps of the general grower; see `Method`.

    Attributes:
        shapes: The shape of each attribute's column.
    """

    weight_column: ClassVar = n.WEIGHT
    first_child_column: ClassVar = n.FIRST_CHILD
    shapes: tuple[ColumnShape, ...]
    attributes: tuple[Feature, ...]
    work: Any
    store: ArrayStore
    progress: Progress

    @property
    def may_copy(self) -> bool:
        """Return whether a node can be grown from its rows alone. With costs, its splits depend on the path above."""
        return bool(self.work.parameters.cost_function == c.NO_COSTS)

    def choose(self, tables: NodeTables, node: int, scan: ScanResult) -> Split | None:
        """Return the best candidate of a node by the general grower's comparison; None for a leaf."""
        candidates = Candidates(len(scan.ints))
        candidates.ints, candidates.reals = np.ascontiguousarray(scan.ints), np.ascontiguousarray(scan.reals)
        context = self.work.context
        context.weight, context.impurity = tables.reals[node, n.WEIGHT], scan.impurity
        best = best_candidate(self.work, candidates)
        return None if best < 0 else Split(best, scan.ints[best].copy(), scan.reals[best].copy())

    def grow_copied(self, _tables: NodeTables, node: OpenNode, copies: Sequence[CopiedRows]) -> Subtree:
        """Grow the subtree of a node from `copies` of its rows: one per worker, ordered by the workers' attributes."""
        targets, n_rows = Targets(**copies[0].targets), node.n_rows
        n_categories, n_classes = len(self.work.categories.slot), self.work.parameters.n_classes
        categories = new_categories(min(n_categories, n_rows) + 1, n_categories, n_classes)
        work = workspace_for_rows(self.work, self._columns(copies), targets, categories)
        # Copied rows lack some training values, so thresholds are midpoints until `finish` moves them, if configured.
        work.parameters = work.parameters.replaced(observed=0)
        orders = [order for copied in copies for order in copied.orders]
        order_table = np.stack(orders) if orders else np.zeros((0, n_rows), np.int32)
        state = np.array([0.0, self.progress.state[1]])
        growth = Growth(work, order_table, state)
        grow_tree(growth, node.depth, 0, MAX_NODES, MAX_CODE_ENTRIES)
        raise_for(growth.status, self.attributes)
        nodes = growth.nodes
        ints, reals, stats = (np.asarray(each)[: nodes.n].copy() for each in (nodes.ints, nodes.reals, nodes.stats))
        return Subtree(ints, reals, stats, np.asarray(nodes.codes)[: nodes.n_codes].copy())

    def finish(self, tables: NodeTables, subtrees: dict[int, Subtree]) -> tuple[Nodes, Array]:
        """Return the nodes of the whole tree, and a mask of those whose subset of categories may not be the best."""
        ints, reals, stats = (np.asarray(each)[: tables.n] for each in (tables.ints, tables.reals, tables.stats))
        parts, codes = [Part(0, 1, ints, reals, stats)], [np.asarray(tables.codes)[: tables.n_codes]]
        n_nodes, n_codes = tables.n, tables.n_codes
        for node, subtree in subtrees.items():
            parts.append(Part(node, n_nodes, subtree.ints, subtree.reals, subtree.stats, n_codes))
            codes.append(subtree.codes)
            n_nodes, n_codes = n_nodes + len(subtree.ints) - 1, n_codes + len(subtree.codes)
        too_many = c.TOO_MANY_NODES if n_nodes > MAX_NODES else c.DONE
        raise_for(c.TOO_MANY_CATEGORIES if n_codes > MAX_CODE_ENTRIES else too_many, self.attributes)
        if self.work.parameters.observed:
            self._observe(parts[1:])
        return nodes_of(parts, codes)

    def _observe(self, parts: Sequence[Part]) -> None:
        """Move each threshold of `parts` down to the largest training value that is not above it."""
        for attribute, shape in enumerate(self.shapes):
            places = [
                np.flatnonzero((part.ints[:, n.FEATURE] == attribute) & (part.ints[:, n.TEST] == NUMERIC))
                for part in parts
            ]
            if shape.kind == c.ORDERED_KIND and any(map(len, places)):
                values = self.store.read(f"value-{attribute}", np.float64)
                for part, own in zip(parts, places, strict=True):
                    below = np.searchsorted(values, part.reals[own, n.THRESHOLD], side="right") - 1
                    part.reals[own, n.THRESHOLD] = values[below]

    def _columns(self, copies: Sequence[CopiedRows]) -> Any:
        """Return the `EncodedColumns` of all attributes for a node's rows; each of `copies` has some of the columns."""
        codes = [column for copied in copies for column in copied.codes]
        values = [column for copied in copies for column in copied.values]
        table = np.stack(codes) if codes else np.zeros((0, 0), np.int32)
        return column_table(self.shapes, table, values)
