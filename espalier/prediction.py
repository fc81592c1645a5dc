"""Answering rows: one row at a time in plain Python, over lists made once a model."""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from espalier.answers import LeafVisit, Prediction, wilson
from espalier.errors import RowError
from espalier.forks import forked
from espalier.linear_prediction import LinearAnswers, smoothed_constants
from espalier.model import Model
from espalier.node_answers import NodeAnswers
from espalier.rows import EncodedRow, RowEncoder, encode_each, encode_rows
from espalier.rule_prediction import RuleRouter, rule_router
from espalier.rules import RuleList
from espalier.schema import Label
from espalier.strategies import STOP, answering_with
from espalier.surrogates import Surrogates
from espalier.tree import NUMERIC, UNKNOWN

__all__ = [
    "MOST_VISITS",
    "LeafVisit",
    "Prediction",
    "Router",
    "Substitutes",
    "answerer",
    "leaf_prediction",
    "predict",
    "predict_each",
    "router",
]

MOST_VISITS: Final = 100
"""Of how many ways of a fractional answer the nodes are given: a row without values goes every way of a tree."""
FEW_EDGES: Final = 2_000
EDGES_A_LEVEL: Final = 40
"""Edges of a row that goes many ways that are walked one by one before it is sent a level at a time."""
FEW_LEAVES: Final = 1_000
"""Leaves that are added up one by one."""


def predict(model: Model, rows: Sequence[Mapping[str, Any]], *, missing: str | None = None) -> list[Prediction]:
    """Answer each row.

    Args:
        model: The model.
        rows: Objects of attribute names and JSON values.
        missing: What is done where a value is missing, one of `PREDICTION_STRATEGIES`; None: as in training.

    Raises:
        RowError: Every fault of every row, by ``/{row}/{attribute}``.
        ConfigError: There is no such strategy, or the model has not what it needs.
    """
    return answerer(answering_with(model, missing)).predict(rows)


def predict_each(
    model: Model, rows: Sequence[Mapping[str, Any]], *, missing: str | None = None
) -> list[Prediction | RowError]:
    """Answer each row that can be answered; a row that cannot gives its `RowError`, with faults by ``/{attribute}``.

    Arguments as in `predict`.

    Raises:
        ConfigError: As in `predict`.
    """
    way = answerer(answering_with(model, missing))
    return [row if isinstance(row, RowError) else way.answer(row) for row in encode_each(way.encode, rows)]


def leaf_prediction(model: Model, leaf: int) -> Prediction:
    """Give what a row is answered that a leaf (or a rule) answers alone; it has no flags.

    Where the leaf is a linear model the number is the mean of its training rows: each row has its own.
    """
    way = answerer(model)
    nothing = EncodedRow((), (), ())
    if isinstance(way, RuleRouter):
        return way.answer_by(leaf, nothing)
    constant = way.answers[leaf]
    return way.answer_at(way.nodes_to(leaf), nothing, value=constant.value)


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
        self.point = model.operating_point
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
        self.substitutes = Substitutes(tree.surrogates, self.is_number) if tree.surrogates is not None else None
        self.parent, self.tree = tree.parent, tree
        self.answers = NodeAnswers(model, self.value)

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """Answer each row; see `predict`."""
        return [self.answer(row) for row in encode_rows(self.encode, rows)]

    def answer(self, row: EncodedRow) -> Prediction:
        """Answer one encoded row."""
        path = [0]
        if self.follow(path, row.values):
            return self._leaf_prediction(tuple(path), row)
        return self._mixed_prediction(row)

    def branch(self, node: int, values: Sequence[float]) -> int:
        """Give the branch that an encoded row takes at `node`; -1 for all of them, `STOP` where the row ends there."""
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

    def edges(self, values: Sequence[float]) -> Iterator[tuple[int, int, float]]:
        """Give (node, child, share of the row) for every edge that some of the row goes down, parents first."""
        stack = [(0, 1.0)]
        while stack:
            node, weight = stack.pop()
            while self.feature[node] >= 0:
                first, branch = self.child_start[node], self.branch(node, values)
                if branch == STOP:
                    break
                if branch < 0:
                    for place in range(first, self.child_start[node + 1]):
                        if self.share[place] > 0:
                            child, part = self.child[place], weight * self.share[place]
                            stack.append((child, part))
                            yield node, child, part
                    break
                yield node, self.child[first + branch], weight
                node = self.child[first + branch]

    def follow(self, path: list[int], values: Sequence[float]) -> bool:
        """Go on from the last node of `path` as far as one branch is taken; say whether the row ends there."""
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
                    return branch == STOP
                node = self.child[self.child_start[node] + branch]
            path.append(node)
        return True

    def _leaf_prediction(self, nodes: tuple[int, ...], row: EncodedRow) -> Prediction:
        value = self.answers[nodes[-1]].value if self.linear is None else self.linear.value(nodes, row.values)
        return self.answer_at(nodes, row, value=value)

    def answer_at(self, nodes: tuple[int, ...], row: EncodedRow, *, value: float | None) -> Prediction:
        """Give the answer of the leaf at the end of `nodes`, which is alone, with its number."""
        leaf = nodes[-1]
        answer = self.answers[leaf]
        # By place: by name it takes half as long again, and every answer comes by here.
        return Prediction(
            answer.label, answer.code, value, answer.distribution, answer.confidence, answer.std,
            self.weight[leaf], leaf, nodes, (LeafVisit(1.0, nodes),), 1, row,
        )  # fmt: skip

    def _mixed_prediction(self, row: EncodedRow) -> Prediction:
        """Add up the leaves by the share of the row that reached each (Quinlan 1993, chapter 3)."""
        leaves, weights = self._reached(row.values)
        support = math.fsum(weight * self.weight[leaf] for weight, leaf in zip(weights, leaves, strict=True))
        label, value, confidence, std, best = None, None, None, None, -1
        distribution: tuple[tuple[Label, float], ...] = ()
        if self.classes:
            shares = self._mixed_shares(leaves, weights)
            best = shares.index(max(shares)) if self.point is None else self.point.decide(shares)
            label, confidence = self.classes[best], wilson(shares[best], support)
            distribution = tuple(zip(self.classes, shares, strict=True))
        else:
            value, std = self._mixed_number(leaves, weights)
        visits = self._heaviest(leaves, weights)
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
            n_visits=len(leaves),
            row=row,
        )

    def _reached(self, values: Sequence[float]) -> tuple["array[int]", "array[float]"]:
        """Give the leaves that some of the row reaches, and how much of it."""
        # A row without values reaches every leaf of a tree: a few bytes for each, and the nodes of the heaviest ways.
        leaves, weights = array("i"), array("d")
        enough = FEW_EDGES
        for walked, (_, child, weight) in enumerate(self.edges(values)):
            if self.feature[child] < 0:
                leaves.append(child)
                weights.append(weight)
            if walked == enough and self.substitutes is None:
                enough = max(enough, EDGES_A_LEVEL * self.tree.depth)
                if walked == enough:
                    reached, shares = forked(self.tree, values, self.is_number)
                    return array("i", reached.tolist()), array("d", shares.tolist())
        return leaves, weights

    def _mixed_shares(self, leaves: Sequence[int], weights: Sequence[float]) -> list[float]:
        if len(leaves) > FEW_LEAVES:
            table = self.answers.shares(np.array(leaves)) * np.array(weights)[:, None]
            return [math.fsum(column) for column in table.T.tolist()]
        parts = [array("d") for _ in self.classes]
        for leaf, weight in zip(leaves, weights, strict=True):
            for part, (_, share) in zip(parts, self.answers[leaf].distribution, strict=True):
                part.append(weight * share)
        return [math.fsum(part) for part in parts]

    def _mixed_number(self, leaves: Sequence[int], weights: Sequence[float]) -> tuple[float, float]:
        """Give the mean of the leaves' numbers, and the deviation of their rows around it."""
        if len(leaves) > FEW_LEAVES and self.linear is None:
            numbers, stds = self.answers.numbers(np.array(leaves))
        else:
            answers = [self.answers[leaf] for leaf in leaves]
            numbers, stds = [answer.value or 0.0 for answer in answers], [answer.std or 0.0 for answer in answers]
        mean = math.fsum(weight * number for weight, number in zip(weights, numbers, strict=True))
        squares = (
            weight * (std**2 + (number - mean) ** 2) for weight, number, std in zip(weights, numbers, stds, strict=True)
        )
        return mean, math.sqrt(math.fsum(squares))

    def _heaviest(self, leaves: Sequence[int], weights: Sequence[float]) -> tuple[LeafVisit, ...]:
        """Give the `MOST_VISITS` heaviest ways, heaviest first (ties: the earlier leaf)."""
        if len(leaves) > FEW_LEAVES:
            first = np.lexsort((np.array(leaves), -np.array(weights)))[:MOST_VISITS].tolist()
        else:
            first = sorted(range(len(leaves)), key=lambda place: (-weights[place], leaves[place]))[:MOST_VISITS]
        return tuple(LeafVisit(weights[place], self.nodes_to(leaves[place])) for place in first)

    def nodes_to(self, leaf: int) -> tuple[int, ...]:
        """Give the nodes from the root to a leaf."""
        nodes = [leaf]
        while nodes[-1] > 0:
            nodes.append(int(self.parent[nodes[-1]]))
        return tuple(reversed(nodes))


_ROUTERS: WeakKeyDictionary[Model, Router] = WeakKeyDictionary()


class Substitutes:
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
        other = self.deciding(node, values)
        return -1 if other < 0 else self.taken(other, values[self.feature[other]])

    def deciding(self, node: int, values: Sequence[float]) -> int:
        """Give the first surrogate of `node` that can tell; -1 where none can."""
        for other in range(self.start[node], self.start[node + 1]):
            if self.taken(other, values[self.feature[other]]) >= 0:
                return other
        return -1

    def taken(self, other: int, value: float) -> int:
        """Give the branch that a surrogate takes for a value of its attribute; -1 where it cannot tell."""
        if value != value or (value < 0 and not self.is_number[self.feature[other]]):  # noqa: PLR0124
            return -1
        if self.test[other] == NUMERIC:
            return self.below[other] if value <= self.threshold[other] else 1 - self.below[other]
        place = self.code_start[other] + int(value)
        return self.code_branch[place] if place < self.code_start[other + 1] else -1
