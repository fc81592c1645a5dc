"""Answering rows: one row at a time in plain Python, over lists made once a model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.answers import LeafAnswer, LeafVisit, Prediction, answer_from, wilson
from espalier.linear_prediction import LinearAnswers, smoothed_constants
from espalier.model import Model
from espalier.rows import EncodedRow, RowEncoder, encode_rows
from espalier.rule_prediction import RuleRouter, rule_router
from espalier.rules import RuleList
from espalier.schema import Label
from espalier.surrogates import Surrogates
from espalier.tree import NUMERIC, UNKNOWN

__all__ = ["LeafVisit", "Prediction", "Router", "answerer", "predict", "router"]


def predict(model: Model, rows: Sequence[Mapping[str, Any]]) -> list[Prediction]:
    """Answer each row.

    Raises:
        RowError: Every fault of every row, by ``/{row}/{attribute}``.
    """
    return answerer(model).predict(rows)


def answerer(model: Model) -> "Router | RuleRouter":
    """Give the compact form of a tree or a list of rules: either answers rows and says what each leaf or rule gives."""
    return rule_router(model) if isinstance(model.body, RuleList) else router(model)


def router(model: Model) -> "Router":
    """Give a tree's compact form, made on first use and kept as long as the model.

    Raises:
        NotApplicable: The model is a list of rules.
    """
    found = _ROUTERS.get(model)
    if found is None:
        found = _ROUTERS[model] = Router(model)
    return found


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
        self[node] = answer
        return answer


class Router:
    """A tree as plain lists: what one row needs on its way from the root to a leaf.

    The first child of a node is the node after it.

    Attributes:
        answers: What each node answers if it is a leaf.
        value: The same as codes or numbers, int32 or float64 (nodes).
        linear: What answers instead where leaves are linear models; None where they are constants.
        smoothing: How a leaf's answer comes about where it is linear or smoothed; None where the leaf answers alone.
        cut: The threshold of a numeric test of a number; NaN at all other nodes.
        second: The second child of a node with two or more.
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
        self.child_start: list[int] = tree.child_start.tolist()
        self.child: list[int] = tree.child.tolist()
        self.share: list[float] = tree.branch_weight.tolist()
        self.code_start: list[int] = tree.code_start.tolist()
        self.code_branch: list[int] = tree.code_branch.tolist()
        is_number = np.array([*self.is_number, False], dtype=np.bool_)
        self.cut: list[float] = np.where(is_number[tree.feature], tree.threshold, math.nan).tolist()
        self.second: list[int] = np.append(tree.child, 0)[
            np.minimum(tree.child_start[:-1] + 1, len(tree.child))
        ].tolist()
        self.substitutes = _Substitutes(tree.surrogates, self.is_number) if tree.surrogates is not None else None
        self.answers = NodeAnswers(model, self.value)

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """Answer each row; see `predict`."""
        return [self.answer(row) for row in encode_rows(self.encode, rows)]

    def answer(self, row: EncodedRow) -> Prediction:
        """Answer one encoded row."""
        visits = self.visits(row.values)
        if len(visits) == 1:
            return self._leaf_prediction(visits, row)
        return self._mixed_prediction(visits, row)

    def branch(self, node: int, values: Sequence[float]) -> int:
        """Give the branch that an encoded row takes at `node`, -1 for all of them."""
        test, feature = self.test[node], self.feature[node]
        value = values[feature]
        # NaN is the only number that differs from itself; a negative code is no category.
        absent = value != value or (value < 0 and not self.is_number[feature])  # noqa: PLR0124
        if test == UNKNOWN:
            return 1 if absent else 0
        branch = -1
        if not absent:
            if test == NUMERIC:
                return 0 if value <= self.threshold[node] else 1
            place = self.code_start[node] + int(value)
            branch = self.code_branch[place] if place < self.code_start[node + 1] else -1
        if branch < 0 and self.substitutes is not None:
            branch = self.substitutes.branch(node, values)
        return branch if branch >= 0 else self.fallback[node]

    def branch_is_known(self, node: int, value: float) -> bool:
        """Say whether training rows with this very category reached `node`; true for numbers."""
        first, stop = self.code_start[node], self.code_start[node + 1]
        return first == stop or (0 <= value < stop - first and self.code_branch[first + int(value)] >= 0)

    def branch_to(self, child: int, node: int) -> int:
        """Give the branch of `node` that leads to `child`."""
        start = self.child_start[node]
        return self.child.index(child, start, self.child_start[node + 1]) - start

    def visits(self, values: Sequence[float]) -> tuple[LeafVisit, ...]:
        """Follow every branch that the row takes, heaviest way first (ties: the earlier leaf)."""
        path = [0]
        if self._follow(path, values):
            return (LeafVisit(1.0, tuple(path)),)
        done: list[LeafVisit] = []
        stack = [(1.0, path)]
        while stack:
            weight, path = stack.pop()
            if self._follow(path, values):
                done.append(LeafVisit(weight, tuple(path)))
                continue
            for place in range(self.child_start[path[-1]], self.child_start[path[-1] + 1]):
                if self.share[place] > 0:
                    stack.append((weight * self.share[place], [*path, self.child[place]]))
        return tuple(sorted(done, key=lambda visit: (-visit.weight, visit.leaf)))

    def _follow(self, path: list[int], values: Sequence[float]) -> bool:
        """Go on from the last node of `path` as far as one branch is taken; say whether that is to a leaf."""
        feature, cut, second = self.feature, self.cut, self.second
        node = path[-1]
        while (asked := feature[node]) >= 0:
            value = values[asked]
            if value <= cut[node]:
                node += 1
            elif value > cut[node]:
                node = second[node]
            else:  # the value is missing, or the test is another one
                branch = self.branch(node, values)
                if branch < 0:
                    return False
                node = self.child[self.child_start[node] + branch]
            path.append(node)
        return True

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


class _Substitutes:
    """Surrogate tests as plain lists; see `espalier.surrogates.Surrogates`."""

    def __init__(self, surrogates: Surrogates, is_number: Sequence[bool]) -> None:
        self.is_number = is_number
        self.start: list[int] = surrogates.start.tolist()
        self.feature: list[int] = surrogates.feature.tolist()
        self.test: list[int] = surrogates.test.tolist()
        self.threshold: list[float] = surrogates.threshold.tolist()
        self.below: list[int] = surrogates.below.tolist()
        self.code_start: list[int] = surrogates.code_start.tolist()
        self.code_branch: list[int] = surrogates.code_branch.tolist()

    def branch(self, node: int, values: Sequence[float]) -> int:
        """Give the branch that the first surrogate of `node` takes that can tell; -1 where none can."""
        for other in range(self.start[node], self.start[node + 1]):
            value = values[self.feature[other]]
            if value != value or (value < 0 and not self.is_number[self.feature[other]]):  # noqa: PLR0124
                continue
            if self.test[other] == NUMERIC:
                return self.below[other] if value <= self.threshold[other] else 1 - self.below[other]
            place = self.code_start[other] + int(value)
            if place < self.code_start[other + 1] and self.code_branch[place] >= 0:
                return self.code_branch[place]
        return -1
