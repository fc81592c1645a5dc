"""Lower bound of the margin by which an answer wins if some attributes are fixed and all others may change.

The bound is computed in one pass up the tree. At a test of a fixed attribute, the margins of the branches are added up,
weighted by the row's shares. At any other test, the smallest margin counts. The bound is never too high, so a positive
bound proves that the answer is forced. It may be too low if several branches take a share of the row and test the same
attribute. A margin is the share of the answer's class minus that of another class; a number is bounded on both sides.
"""

from collections.abc import Collection
from typing import Final

import numpy as np

from espalier.arrays import Floats, Ints, Mask
from espalier.explanation.row_flow import RowFlow
from espalier.explanation.tree_levels import tree_levels
from espalier.model.model import Model
from espalier.model.node_tests import UNKNOWN
from espalier.prediction.leaf_values import answer_table
from espalier.prediction.missing_strategies import STOP
from espalier.prediction.tree_predictor import TreePredictor

MAX_CELLS: Final = 4_000_000
"""Maximum number of margins (nodes times classes) that are in memory at a time."""
SLACK: Final = 1e-12
"""Smaller margins, and smaller relative differences of numbers, may be rounding errors."""
LOST: Final = -2.0
"""The margin of every node with another answer, whatever the node's shares are; less than any other margin."""


class MarginBounds:
    """Margin bounds of one answer to one row."""

    def __init__(self, model: Model, predictor: TreePredictor, flow: RowFlow, *, answer: float) -> None:
        """Prepare the bounds of `answer`, which is a class code or a number."""
        self.tree, self.flow, self.value, self.answer = model.tree, flow, predictor.value, answer
        self.table = answer_table(model)
        self.n_classes = len(predictor.classes)
        self.may_end = (model.tree.fallback == STOP) & (model.tree.test != UNKNOWN)

    def is_forced(self, fixed: Collection[int]) -> bool:
        """Return whether the bound proves that the values of the attributes `fixed` (indexes) force the answer."""
        decided = self.flow.decided_by(self.tree, fixed)
        if not self.n_classes:
            numbers = np.stack((self.value, -self.value), axis=1).astype(np.float64)
            low, high = self._smallest(numbers, decided)
            slack = SLACK * max(1.0, abs(self.answer))
            return bool(low >= self.answer - slack and -high <= self.answer + slack)
        code = int(self.answer)
        rivals = np.array([other for other in range(self.n_classes) if other != code], dtype=np.int64)
        step = max(1, MAX_CELLS // self.tree.n_nodes)
        for first in range(0, len(rivals), step):
            margins = self.table[:, [code]] - self.table[:, rivals[first : first + step]]
            margins = np.where((self.value == code)[:, None], margins, LOST)
            if not np.all(self._smallest(margins, decided) > SLACK):
                return False
        return True

    def _smallest(self, values: Floats, decided: Mask) -> Floats:
        """Return the root's bounds. Overwrite `values`, float64 (nodes, bounds): a node's margins if it were a leaf."""
        flow = self.flow
        for level in reversed(tree_levels(self.tree).levels):
            tests, below = level.tests, values[level.children]
            own = values[tests]
            added = np.add.reduceat(below * flow.share[level.children][:, None], level.starts, axis=0)
            added = np.where((flow.branch[tests] == STOP)[:, None], own, added)
            least = np.minimum.reduceat(below, level.starts, axis=0)
            least = np.where(self.may_end[tests][:, None], np.minimum(least, own), least)
            values[tests] = np.where(decided[tests][:, None], added, least)
        root: Floats = values[0]
        return root


def top_class(model: Model) -> Ints:
    """Return each node's class by its shares and the operating point, if there is one: int32 (nodes)."""
    shares, point = answer_table(model), model.operating_point
    return (shares.argmax(axis=1) if point is None else point.decide_each(shares)).astype(np.int32)
