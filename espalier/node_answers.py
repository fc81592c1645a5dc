"""What each node of a tree answers if it is a leaf: one by one when it is asked for, or many at once as arrays."""

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.answers import LeafAnswer, answer_from
from espalier.model import Model
from espalier.tree import Tree

__all__ = ["NodeAnswers", "nodes_with_rows", "shares_at"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]

MOST_KEPT: Final = 10_000
"""Of how many nodes the answers are kept with a model."""
LARGEST_EXACT: Final = 2.0**53
PLAIN_SUMS: Final = 2
"""The sum of so many numbers is the nearest one to the true sum in any order."""


class NodeAnswers(dict[int, LeafAnswer]):
    """What each node answers if it is a leaf, worked out when it is first asked for."""

    def __init__(self, model: Model, value: npt.NDArray[Any]) -> None:
        super().__init__()
        # Not the model itself, which would then live as long as what is kept for it.
        self._tree, self._value, self._classes = model.tree, value, model.schema.classes
        self._laplace = model.config.leaf_probability == "laplace"

    def __missing__(self, node: int) -> LeafAnswer:
        tree = self._tree
        # A branch that no training row took answers with the distribution of the nearest node above that has rows.
        seen = node
        while tree.weight[seen] <= 0 and seen > 0:
            seen = int(tree.parent[seen])
        value, weight = self._value[node].item(), float(tree.weight[node])
        stats = tree.stats[seen].tolist()
        answer = answer_from(value, stats, weight, classes=self._classes, laplace=self._laplace)
        if tree.linear is not None and weight > 0:
            # Around the leaf's own linear model the training rows scatter less than around their mean.
            answer = replace(answer, std=math.sqrt(float(tree.linear.squares[node]) / weight))
        if len(self) >= MOST_KEPT:
            self.clear()
        self[node] = answer
        return answer

    def shares(self, nodes: Ints) -> Floats:
        """Give the distributions of many nodes: float64 (nodes, classes)."""
        return shares_at(self._tree, nodes, laplace=self._laplace)

    def numbers(self, nodes: Ints) -> tuple[list[float], list[float]]:
        """Give the numbers of many nodes of a tree without linear models, and their standard deviations."""
        stats = self._tree.stats[nodes_with_rows(self._tree)[nodes]]
        weight, squares = stats[:, 0], stats[:, 2]
        variance = np.divide(squares, weight, out=np.zeros(len(stats)), where=weight > 0)
        return self._value[nodes].astype(np.float64).tolist(), np.sqrt(variance).tolist()


def shares_at(tree: Tree, nodes: Ints, *, laplace: bool) -> Floats:
    """Give the share of each class that nodes answer with: float64 (nodes, classes)."""
    table: Floats = tree.stats[nodes_with_rows(tree)[nodes]]
    extra = 1.0 if laplace else 0.0
    totals = _totals(table) + extra * table.shape[1]
    table += extra
    table /= totals[:, None]
    return table


def nodes_with_rows(tree: Tree) -> Ints:
    """Give for each node itself, or the nearest node above that training rows reached: int64 (n)."""
    seen = np.where(tree.weight > 0, np.arange(tree.n_nodes), tree.parent)
    seen[0] = 0
    while bool(np.any(seen[seen] != seen)):
        seen = seen[seen]
    return seen


def _totals(stats: Floats) -> Floats:
    """Add up each node's class weights, rounded once: as `math.fsum` does."""
    totals: Floats = stats.sum(axis=1)
    whole = bool(np.all(stats == np.rint(stats))) and float(totals.max()) < LARGEST_EXACT
    if whole or stats.shape[1] <= PLAIN_SUMS:
        return totals
    return np.array([math.fsum(node) for node in stats.tolist()])
