"""Predict rows by the linear models, or the smoothed constants, of the leaves of a regression tree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from espalier.arrays import Floats, Ints, Longs
from espalier.model.linear import MAX_VALUE, LeafModel, LinearModels, Term
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree
from espalier.prediction.path_smoothing import smoothed_models, smoothing_share, smoothing_shares


@dataclass(frozen=True, slots=True)
class SmoothingStep:
    """One node on the path from a leaf back to the root.

    Attributes:
        node: Number of the node.
        weight: Weight of the node's training rows.
        value: Prediction of the node's own model, unsmoothed, for the row.
        share: Share of `value` in the tree's prediction; the shares of a path add up to 1.
        smoothed: Prediction smoothed from the leaf up to this node.
    """

    node: int
    weight: float
    value: float
    share: float
    smoothed: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in ("node", "weight", "value", "share", "smoothed")}


@dataclass(frozen=True, slots=True)
class LeafTable:
    """The smoothed model of each node as a leaf, in arrays like those of `LinearModels`."""

    start: Longs
    feature: Ints
    cut: Ints
    coefficient: Floats
    intercept: Floats


class LinearAnswers:
    """Predictions of the linear leaves, or of the smoothed constant leaves, of one tree.

    Attributes:
        tree: The tree.
        models: The linear models of its nodes; None if all nodes predict constants.
        constant: The constant k of the smoothing; None without smoothing.
    """

    def __init__(self, tree: Tree, models: LinearModels | None, constant: float | None) -> None:
        self.tree = tree
        self.models = models
        self.constant = constant
        self._leaves: dict[int, LeafModel] = {}

    def leaf_model(self, node: int) -> LeafModel:
        """Return the smoothed model of a node as a leaf, computed on first use."""
        if node not in self._leaves:
            path = [node]
            while path[-1]:
                path.append(int(self.tree.parent[path[-1]]))
            *_, self._leaves[node] = smoothed_models(self.tree, self.models, self.constant, path[::-1])
        return self._leaves[node]

    def value(self, leaf: int, values: Sequence[float]) -> float:
        """Return the prediction for one encoded row by a leaf."""
        model = self.leaf_model(leaf)
        answer = self._sum(model.intercept, model.terms, values)
        return min(max(answer, -MAX_VALUE), MAX_VALUE)  # so that its square is finite

    def attributes_read(self, leaf: int) -> list[int]:
        """Return the indexes of the attributes that can change a leaf's prediction, each once."""
        return list(dict.fromkeys(feature for feature, _, coefficient in self.leaf_model(leaf).terms if coefficient))

    def column_value(self, feature: int, cut: int, values: Sequence[float]) -> float:
        """Return the number that a term's coefficient multiplies, for an encoded row; 0 if leaves are constants."""
        return 0.0 if self.models is None else self.models.column_value(feature, cut, values[feature])

    def smoothing(self, path: Sequence[int], values: Sequence[float]) -> tuple[SmoothingStep, ...]:
        """Return the smoothing steps of an encoded row, from the leaf at the end of `path` back to the root."""
        weight = self.tree.weight
        shares = smoothing_shares(weight, path, self.constant)
        steps: list[SmoothingStep] = []
        smoothed = 0.0
        for place in reversed(range(len(path))):
            own = self._own_value(path[place], values)
            own_share = smoothing_share(float(weight[path[place + 1]]), self.constant) if steps else 0.0
            smoothed = own_share * smoothed + (1 - own_share) * own
            steps.append(SmoothingStep(path[place], float(weight[path[place]]), own, shares[place], smoothed))
        return tuple(steps)

    def many(self, leaves: Ints, values: Floats) -> Floats:
        """Return the predictions of encoded rows by their `leaves`: float64 (rows).

        `values` is (attributes, rows). If it has only one row, this row is used for every leaf.
        """
        table, models = self.table, self.models
        answers = table.intercept[leaves]
        columns = values if models is None else _ranked(models, table, values)
        if columns.shape[1] == 1:
            columns = np.broadcast_to(columns, (len(columns), len(leaves)))
        first, count = table.start[leaves], np.diff(table.start)[leaves]
        rows = np.flatnonzero(count > 0)
        step = 0
        while len(rows):
            place = first[rows] + step
            cell = columns[table.feature[place], rows]
            cut = table.cut[place]
            column = np.where(cut > 0, cell >= cut, np.clip(cell, -MAX_VALUE, MAX_VALUE))
            answers[rows] += table.coefficient[place] * column
            step += 1
            rows = rows[count[rows] > step]
        return np.clip(answers, -MAX_VALUE, MAX_VALUE)

    @cached_property
    def numbers(self) -> list[int]:
        """Number of each leaf, from 1 in preorder; an inner node has the number of the last leaf before it, or 0."""
        numbers: list[int] = np.cumsum(self.tree.test == LEAF).tolist()
        return numbers

    @cached_property
    def table(self) -> LeafTable:
        """The smoothed models of all nodes as arrays."""
        leaves = list(smoothed_models(self.tree, self.models, self.constant, range(self.tree.n_nodes)))
        terms = [term for leaf in leaves for term in leaf.terms]
        return LeafTable(
            start=np.concatenate(([0], np.cumsum([len(leaf.terms) for leaf in leaves]))).astype(np.int64),
            feature=np.array([feature for feature, _, _ in terms], dtype=np.int32),
            cut=np.array([cut for _, cut, _ in terms], dtype=np.int32),
            coefficient=np.array([coefficient for _, _, coefficient in terms], dtype=np.float64),
            intercept=np.array([leaf.intercept for leaf in leaves]),
        )

    def _own_value(self, node: int, values: Sequence[float]) -> float:
        if self.models is None:
            return float(self.tree.value[node])
        return self._sum(float(self.models.intercept[node]), self.models.terms(node), values)

    def _sum(self, intercept: float, terms: Iterable[Term], values: Sequence[float]) -> float:
        for feature, cut, coefficient in terms:
            intercept += coefficient * self.column_value(feature, cut, values)
        return intercept


def _ranked(models: LinearModels, table: LeafTable, values: Floats) -> Floats:
    nominal = np.unique(table.feature[table.cut > 0])
    if not len(nominal):
        return values
    columns = values.copy()
    for place in nominal.tolist():
        columns[place] = models.ranks(place)[values[place].astype(np.intp)]
    return columns
