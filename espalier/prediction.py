"""Answering rows: one row at a time in plain Python, over lists made once a model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.answers import LeafAnswer, LeafVisit, Prediction, answer_from, wilson
from espalier.linear_prediction import LinearAnswers, smoothed_constants
from espalier.model import Model
from espalier.rows import EncodedRow, RowEncoder, encode_rows
from espalier.rule_prediction import RuleRouter, firing_rules, rule_router
from espalier.rules import RuleList
from espalier.schema import Label
from espalier.tree import LEAF, NOMINAL, NUMERIC, UNKNOWN

__all__ = ["LeafVisit", "Prediction", "Router", "answerer", "answers_at", "leaves_of", "predict", "router"]


def predict(model: Model, rows: Sequence[Mapping[str, Any]]) -> list[Prediction]:
    """Answer each row.

    Raises:
        RowError: Every fault of every row, by ``/{row}/{attribute}``.
    """
    return answerer(model).predict(rows)


def leaves_of(model: Model, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Route many rows at once, a level of the tree at a time.

    Args:
        model: The model.
        values: Encoded attributes, float64 (attributes, rows), as in `EncodedRow`.

    Returns:
        The leaf of each row, int32 (rows); -1 for a row that several leaves answer. For a list of rules, the number of
        the rule that answers.
    """
    if isinstance(model.body, RuleList):
        return firing_rules(model.schema, model.body, values)
    tree = model.tree
    coded = np.array([feature.coded for feature in model.schema.attributes], dtype=np.bool_)
    at = np.zeros(values.shape[1], dtype=np.int32)
    moving = np.flatnonzero(tree.test[at] != LEAF)
    while len(moving):
        node = at[moving]
        feature = tree.feature[node]
        value = values[feature, moving]
        absent = np.isnan(value) | (coded[feature] & (value < 0))
        branch = np.where(value <= tree.threshold[node], 0, 1)
        nominal = np.flatnonzero((tree.test[node] == NOMINAL) & ~absent)
        if len(nominal):
            start = tree.code_start[node[nominal]]
            code = value[nominal].astype(np.int64)
            listed = code < tree.code_start[node[nominal] + 1] - start
            taken = tree.code_branch[np.where(listed, start + code, 0)]
            branch[nominal] = np.where(listed & (taken >= 0), taken, tree.fallback[node[nominal]])
        branch = np.where(absent, tree.fallback[node], branch)
        branch = np.where(tree.test[node] == UNKNOWN, absent, branch)
        stuck = branch < 0
        at[moving] = np.where(stuck, -1, tree.child[tree.child_start[node] + np.maximum(branch, 0)])
        moving = moving[~stuck]
        moving = moving[tree.test[at[moving]] != LEAF]
    return at


def answerer(model: Model) -> "Router | RuleRouter":
    """Give the compact form of a tree or a list of rules: either answers rows and says what each leaf or rule gives."""
    return rule_router(model) if isinstance(model.body, RuleList) else router(model)


def answers_at(
    way: "Router | RuleRouter", leaves: npt.NDArray[np.int32], values: npt.NDArray[np.float64]
) -> npt.NDArray[Any]:
    """Give codes or numbers, (rows), for rows that ended at `leaves`: encoded attributes (attributes, rows).

    Where a leaf is -1, which several leaves answer, what is given means nothing.
    """
    if isinstance(way, Router) and way.linear is not None:
        return way.linear.many(leaves, values)
    return np.asarray(way.value[leaves])


def router(model: Model) -> "Router":
    """Give a tree's compact form, made on first use and kept as long as the model.

    Raises:
        NotApplicable: The model is a list of rules.
    """
    found = _ROUTERS.get(model)
    if found is None:
        found = _ROUTERS[model] = Router(model)
    return found


class Router:
    """A tree as plain lists: what one row needs on its way from the root to a leaf.

    Attributes:
        answers: What each node answers if it is a leaf.
        value: The same as codes or numbers, int32 or float64 (nodes).
        linear: What answers instead where leaves are linear models; None where they are constants.
        smoothing: How a leaf's answer comes about where it is linear or smoothed; None where the leaf answers alone.
    """

    def __init__(self, model: Model) -> None:
        tree = model.tree
        constant = model.config.smoothing
        smoothed = constant is not None and not model.schema.classes
        self.value = smoothed_constants(tree, constant) if constant is not None and smoothed else tree.value
        self.smoothing = LinearAnswers(tree, tree.linear, constant) if smoothed or tree.linear is not None else None
        self.linear = self.smoothing if tree.linear is not None else None
        self.classes = model.schema.classes
        self.encode = RowEncoder(model.schema, model.preparation.imputed)
        self.is_number = self.encode.is_number
        self.test: list[int] = tree.test.tolist()
        self.feature: list[int] = tree.feature.tolist()
        self.threshold: list[float] = tree.threshold.tolist()
        self.fallback: list[int] = tree.fallback.tolist()
        self.weight: list[float] = tree.weight.tolist()
        starts = tree.child_start.tolist()
        child, share = tree.child.tolist(), tree.branch_weight.tolist()
        self.children = [child[low:high] for low, high in pairwise(starts)]
        self.shares = [share[low:high] for low, high in pairwise(starts)]
        codes, branches = tree.code_start.tolist(), tree.code_branch.tolist()
        self.codes = [branches[low:high] for low, high in pairwise(codes)]
        self.answers = [_leaf_answer(model, node, self.value[node].item()) for node in range(tree.n_nodes)]

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """Answer each row; see `predict`."""
        return [self.answer(row) for row in encode_rows(self.encode, rows)]

    def answer(self, row: EncodedRow) -> Prediction:
        """Answer one encoded row."""
        visits = self.visits(row.values)
        if len(visits) == 1:
            return self._leaf_prediction(visits, row)
        return self._mixed_prediction(visits, row)

    def branch(self, node: int, value: float) -> int:
        """Give the branch that `value` takes at `node`, -1 where it is missing or was never seen there."""
        test = self.test[node]
        # NaN is the only number that differs from itself; a negative code is no category.
        absent = value != value or (value < 0 and not self.is_number[self.feature[node]])  # noqa: PLR0124
        if test == UNKNOWN:
            return 1 if absent else 0
        if absent:
            return self.fallback[node]
        if test == NUMERIC:
            return 0 if value <= self.threshold[node] else 1
        codes = self.codes[node]
        branch = codes[int(value)] if value < len(codes) else -1
        return branch if branch >= 0 else self.fallback[node]

    def branch_is_known(self, node: int, value: float) -> bool:
        """Say whether training rows with this very category reached `node`; true for numbers."""
        codes = self.codes[node]
        return not codes or (0 <= value < len(codes) and codes[int(value)] >= 0)

    def visits(self, values: Sequence[float]) -> tuple[LeafVisit, ...]:
        """Follow every branch that the row takes, heaviest way first (ties: the earlier leaf)."""
        test, feature, children = self.test, self.feature, self.children
        done: list[LeafVisit] = []
        stack: list[tuple[int, float, list[int]]] = [(0, 1.0, [])]
        while stack:
            node, weight, path = stack.pop()
            path.append(node)
            while test[node] != LEAF:
                branch = self.branch(node, values[feature[node]])
                if branch < 0:
                    break
                node = children[node][branch]
                path.append(node)
            if test[node] == LEAF:
                done.append(LeafVisit(weight, tuple(path)))
                continue
            for child, share in zip(children[node], self.shares[node], strict=True):
                if share > 0:
                    stack.append((child, weight * share, list(path)))
        return tuple(sorted(done, key=lambda visit: (-visit.weight, visit.leaf))) if len(done) > 1 else tuple(done)

    def _leaf_prediction(self, visits: tuple[LeafVisit, ...], row: EncodedRow) -> Prediction:
        nodes = visits[0].nodes
        answer = self.answers[nodes[-1]]
        value = answer.value if self.linear is None else self.linear.value(nodes, row.values)
        return Prediction(
            label=answer.label,
            code=answer.code,
            value=value,
            distribution=answer.distribution,
            confidence=answer.confidence,
            std=answer.std,
            support=self.weight[nodes[-1]],
            leaf=nodes[-1],
            nodes=nodes,
            visits=visits,
            row=row,
        )

    def _mixed_prediction(self, visits: tuple[LeafVisit, ...], row: EncodedRow) -> Prediction:
        """Add up the leaves by the share of the row that reached each (Quinlan 1993, chapter 3)."""
        answers = [(visit.weight, self.answers[visit.leaf]) for visit in visits]
        support = math.fsum(visit.weight * self.weight[visit.leaf] for visit in visits)
        label, value, confidence, std, best = None, None, None, None, -1
        distribution: tuple[tuple[Label, float], ...] = ()
        if self.classes:
            shares = [
                math.fsum(weight * answer.distribution[place][1] for weight, answer in answers)
                for place in range(len(self.classes))
            ]
            best = max(range(len(shares)), key=lambda place: shares[place])
            label, confidence = self.classes[best], wilson(shares[best], support)
            distribution = tuple(zip(self.classes, shares, strict=True))
        else:
            value = math.fsum(weight * (answer.value or 0.0) for weight, answer in answers)
            spread = ((answer.std or 0.0) ** 2 + ((answer.value or 0.0) - value) ** 2 for _, answer in answers)
            weights = (weight for weight, _ in answers)
            std = math.sqrt(math.fsum(weight * square for weight, square in zip(weights, spread, strict=True)))
        return Prediction(
            label=label,
            code=best,
            value=value,
            distribution=distribution,
            confidence=confidence,
            std=std,
            support=support,
            leaf=visits[0].leaf,
            nodes=visits[0].nodes,
            visits=visits,
            row=row,
        )


_ROUTERS: WeakKeyDictionary[Model, Router] = WeakKeyDictionary()


def _leaf_answer(model: Model, node: int, value: float) -> LeafAnswer:
    tree = model.tree
    # A branch that no training row took answers with the distribution of the nearest node above that has rows.
    seen = node
    while tree.weight[seen] <= 0 and seen > 0:
        seen = int(tree.parent[seen])
    answer = answer_from(model, value, tree.stats[seen].tolist(), float(tree.weight[node]))
    if tree.linear is None or tree.weight[node] <= 0:
        return answer
    # Around the leaf's own linear model the training rows scatter less than around their mean.
    return replace(answer, std=math.sqrt(float(tree.linear.squares[node]) / float(tree.weight[node])))
