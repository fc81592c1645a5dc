"""By how much an answer wins at least, whatever some attributes are: a lower bound, in one pass up the tree.

At a test that is settled the margins of the branches are added up by the row's shares; at any other the least of them
counts. That is exact where no attribute is asked for in two parts of the tree that both take a share of the row, and
never too high: what is forced by the bound is forced.
"""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.bulk_prediction import answer_table
from espalier.flow import Flow
from espalier.levels import levels_of
from espalier.model import Model
from espalier.prediction import Router
from espalier.strategies import STOP
from espalier.tree import LEAF, UNKNOWN

__all__ = ["Margins", "loudest"]

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

CELLS_AT_A_TIME: Final = 4_000_000
"""Nodes times classes that are in memory together."""
SLACK: Final = 1e-12
"""Margins closer to zero may be rounding; so may numbers that differ by so much of their size."""
LOST: Final = -2.0
"""Below any margin: a leaf of another answer whose shares speak for this one."""


class Margins:
    """The margins of one answer to one row."""

    def __init__(self, model: Model, way: Router, flow: Flow, *, answer: float) -> None:
        """Take the code of a class, or the number, as `answer`."""
        self.tree, self.flow, self.way, self.answer = model.tree, flow, way, answer
        self.levels = levels_of(model.tree)
        self.table = answer_table(model)
        self.n_classes = len(way.classes)
        self.stops = (model.tree.fallback == STOP) & (model.tree.test != UNKNOWN)

    def hold(self, kept: Collection[int]) -> bool:
        """Say whether the answer stands where these attributes are as they are, and the others whatever they may be."""
        settled = self._settled(kept)
        if not self.n_classes:
            numbers = np.stack((self.way.value, -self.way.value), axis=1).astype(np.float64)
            low, high = self._up(numbers, settled)
            slack = SLACK * max(1.0, abs(self.answer))
            return bool(low >= self.answer - slack and -high <= self.answer + slack)
        code = int(self.answer)
        rivals = np.array([other for other in range(self.n_classes) if other != code], dtype=np.int64)
        step = max(1, CELLS_AT_A_TIME // self.tree.n_nodes)
        return all(
            bool(np.all(self._up(self._margins(code, rivals[first : first + step]), settled) > SLACK))
            for first in range(0, len(rivals), step)
        )

    def _margins(self, code: int, rivals: Array) -> Floats:
        """Give by how much the class leads over others at each node: float64 (n, rivals)."""
        margins = self.table[:, [code]] - self.table[:, rivals]
        return np.where((self.way.value == code)[:, None], margins, LOST)

    def _settled(self, kept: Collection[int]) -> Mask:
        is_kept = np.zeros(int(self.tree.feature.max(initial=0)) + 2, np.bool_)
        is_kept[[place for place in kept if place < len(is_kept) - 1]] = True
        settled: Mask = is_kept[self.tree.feature]
        for node, places in self.flow.stand_ins.items():
            settled[node] &= all(place in kept for place in places)
        return settled

    def _up(self, values: Floats, settled: Mask) -> Floats:
        """Give the least values at the root, from those of the nodes as leaves (which are written over)."""
        flow = self.flow
        if self.levels.binary and self.levels.is_thin(values.shape[1]):
            return self._up_by_nodes(values, settled)
        for level in self.levels.upwards():
            tests, below = level.tests, values[level.children]
            own = values[tests]
            added = np.add.reduceat(below * flow.part[level.children][:, None], level.starts, axis=0)
            least = np.minimum.reduceat(below, level.starts, axis=0)
            added = np.where((flow.branch[tests] == STOP)[:, None], own, added)
            least = np.where(self.stops[tests][:, None], np.minimum(least, own), least)
            values[tests] = np.where(settled[tests][:, None], added, least)
        root: Floats = values[0]
        return root

    def _up_by_nodes(self, values: Floats, settled: Mask) -> Floats:
        """Do the same where levels are many and have few nodes; see `espalier.walks`."""
        tree, flow = self.tree, self.flow
        is_kept, ends, may_end = settled.tolist(), (flow.branch == STOP).tolist(), self.stops.tolist()
        parts, first = flow.part.tolist(), tree.child_start.tolist()
        children, tests = tree.child.tolist(), np.flatnonzero(tree.test != LEAF)[::-1].tolist()
        root = np.empty(values.shape[1])
        for column in range(values.shape[1]):
            own = values[:, column].tolist()
            for test in tests:
                left, right = children[first[test]], children[first[test] + 1]
                if not is_kept[test]:
                    least = min(own[left], own[right])
                    own[test] = min(least, own[test]) if may_end[test] else least
                elif not ends[test]:
                    own[test] = own[left] * parts[left] + own[right] * parts[right]
            root[column] = own[0]
        return root


def loudest(model: Model) -> npt.NDArray[np.int32]:
    """Give the class that the shares of each node speak for, the largest's or by the operating point: int32 (n)."""
    table, n_nodes = answer_table(model), model.tree.n_nodes
    found = np.empty(n_nodes, np.int32)
    step = max(1, CELLS_AT_A_TIME // max(1, len(model.schema.classes)))
    for first in range(0, n_nodes, step):
        shares, point = table[first : first + step], model.operating_point
        found[first : first + step] = shares.argmax(axis=1) if point is None else point.decide_each(shares)
    return found
