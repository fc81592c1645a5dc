"""The answers and class shares of a tree's nodes or of rules, one at a time or as arrays.

An operating point changes only predicted classes and their confidence; `with_operating_point` copies only the classes.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Floats
from espalier.data.labels import Label, legal_classes
from espalier.data.number_parsing import is_number
from espalier.errors import ConfigError, Fault
from espalier.model.linear import MAX_VALUE
from espalier.model.model import Model
from espalier.model.operating_point import OperatingPoint
from espalier.model.rules import RuleList
from espalier.model.tree import Tree, cached_on_owner
from espalier.prediction.answers import LeafValue, wilson_lower_bound
from espalier.prediction.path_smoothing import smoothed_models

MAX_CACHED: Final = 10_000
"""Maximum number of nodes whose answers are cached with a model."""
MAX_POINTS_CACHED: Final = 8
"""Maximum number of operating points whose models are cached with a model."""


class LeafValues(dict[int, LeafValue]):
    """The answer of each node as a leaf, by number of the node; each is computed on first access."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        # Not the model itself: the model caches this object, and a cycle would delay its release.
        self._tree, self._value, self._classes = model.tree, node_values(model), model.schema.classes
        self.laplace = model.config.leaf_probability == "laplace"

    def __missing__(self, node: int) -> LeafValue:
        tree = self._tree
        value, weight = self._value[node].item(), float(tree.weight[node])
        # A node without training rows answers with the statistics of the nearest ancestor that has some.
        stats = tree.stats[_nodes_with_rows(tree)[node]].tolist()
        answer = _leaf_value(value, stats, weight, classes=self._classes, laplace=self.laplace)
        if tree.linear is not None and weight > 0:
            # Around the leaf's own linear model the training rows scatter less than around their mean.
            answer = replace(answer, std=math.sqrt(min(float(tree.linear.squares[node]) / weight, MAX_VALUE**2)))
        if len(self) >= MAX_CACHED:
            self.clear()
        self[node] = answer
        return answer

    def shares(self, nodes: Array, *, laplace: bool) -> Floats:
        """Return the class distributions of many nodes: float64 (nodes, classes)."""
        return _class_shares(self._tree, nodes, laplace=laplace)

    def numbers(self, nodes: Array) -> tuple[list[float], list[float]]:
        """Return the values of many nodes, as in `node_values`, and their standard deviations; see `Prediction`."""
        stats = self._tree.stats[_nodes_with_rows(self._tree)[nodes]]
        weight, squares = stats[:, 0], stats[:, 2]
        if self._tree.linear is not None:
            squares = np.where(self._tree.weight[nodes] > 0, self._tree.linear.squares[nodes], squares)
        with np.errstate(over="ignore"):
            variance = np.divide(squares, weight, out=np.zeros(len(stats)), where=weight > 0)
        return self._value[nodes].astype(np.float64).tolist(), np.sqrt(np.minimum(variance, MAX_VALUE**2)).tolist()


@cached_on_owner
def node_values(model: Model) -> Array:
    """Return the answer of each node, or of each rule and the default: int32 class codes or float64 numbers (nodes).

    With ``smoothing``, the numbers are smoothed. For a linear leaf, the number is its constant, not its prediction.
    """
    if isinstance(model.body, RuleList):
        dtype = np.int32 if model.schema.classes else np.float64
        return np.array([rule.value for rule in model.body.answers], dtype=dtype)
    constant = model.config.smoothing
    if constant is None or model.schema.classes:
        return model.tree.value
    return np.array([leaf.intercept for leaf in smoothed_models(model.tree, None, constant, range(model.tree.n_nodes))])


@cached_on_owner
def rule_answers(model: Model) -> tuple[LeafValue, ...]:
    """Return the answer of each rule, the default last."""
    classes, laplace = model.schema.classes, model.config.leaf_probability == "laplace"
    return tuple(
        _leaf_value(rule.value, rule.stats, rule.weight, classes=classes, laplace=laplace)
        for rule in model.rules.answers
    )


@cached_on_owner
def answer_table(model: Model) -> Floats:
    """Return the class shares of nodes or rules, float64 (nodes, classes); in a regression the values, (nodes, 1).

    A node without training rows has the class shares of the nearest ancestor that has some.
    """
    if not model.schema.classes:
        # A view, so that the tree's own values are not copied.
        table: Floats = np.asarray(node_values(model), dtype=np.float64).view()[:, None]
    elif isinstance(model.body, RuleList):
        table = np.array([[share for _, share in answer.distribution] for answer in rule_answers(model)])
    else:
        laplace = model.config.leaf_probability == "laplace"
        table = _class_shares(model.tree, np.arange(model.tree.n_nodes), laplace=laplace)
    table.flags.writeable = False
    return table


def with_operating_point(model: Model, point: OperatingPoint | None) -> Model:
    r"""Return a model that predicts a label if the label's share reaches a probability.

    Otherwise, the model predicts the most probable other class, the first of equals. Shares and paths are the same.

    Args:
        model: The model.
        point: The label and the probability; None for the point of `model`, if it has one.

    Returns:
        `model` itself if `point` is None; otherwise a model that is cached with `model`.

    Raises:
        ConfigError: The model has no such class, or the probability is not from 0 to 1.

    >>> import espalier
    >>> rows = "wind,play\nweak,yes\nweak,no\nweak,no\nstrong,no\nstrong,no\n"
    >>> model = espalier.train(espalier.dataset_from_csv(rows, target="play"), "id3")
    >>> point = espalier.operating_point_from_dict({"label": "yes", "probability": 0.3}, model.schema.classes)
    >>> [espalier.predict(each, [{"wind": "weak"}])[0].label for each in (model, with_operating_point(model, point))]
    ['no', 'yes']
    """
    if point is None:
        return model
    if type(point.code) is not int or not 0 <= point.code < len(model.schema.classes):
        raise ConfigError([Fault("/operating_point/label", "unknown_value", legal_classes(model.schema.classes))])
    if not is_number(point.probability) or not 0 <= point.probability <= 1:
        raise ConfigError([Fault("/operating_point/probability", "not_legal", "must be a number from 0 to 1")])
    cached = _by_point(model)
    with_point = cached.get(point)
    if with_point is None:
        if len(cached) >= MAX_POINTS_CACHED:
            cached.clear()
        with_point = cached[point] = _with_point(model, point)
    return with_point


@cached_on_owner
def _by_point(model: Model) -> dict[OperatingPoint, Model]:
    return {}


def _with_point(model: Model, point: OperatingPoint) -> Model:
    codes = point.decide_each(answer_table(model))
    # A copy of the model, which shares its arrays: a reference to the owner of this cache would delay its release.
    changed: dict[str, Any] = {"operating_point": point, "trained": model.trained or replace(model)}
    if isinstance(model.body, RuleList):
        *rules, default = (
            replace(rule, value=code) for rule, code in zip(model.body.answers, codes.tolist(), strict=True)
        )
        return replace(model, body=replace(model.body, rules=tuple(rules), default=default), **changed)
    codes.flags.writeable = False
    return replace(model, body=replace(model.body, value=codes), **changed)


def _leaf_value(
    value: float, stats: Sequence[float], weight: float, *, classes: Sequence[Label], laplace: bool
) -> LeafValue:
    """Return an answer; `value` is a class code or a number. `laplace` adds 1 to each class weight for the shares."""
    if not classes:
        std = math.sqrt(min(stats[2] / stats[0], MAX_VALUE**2)) if stats[0] > 0 else 0.0
        return LeafValue(None, -1, float(value), (), None, std, stats[1])
    total = math.fsum(stats)
    extra = 1.0 if laplace else 0.0
    shares = [(part + extra) / (total + extra * len(stats)) for part in stats]
    code = int(value)
    distribution = tuple(zip(classes, shares, strict=True))
    confidence = wilson_lower_bound(stats[code] / total if total > 0 else 0.0, weight)
    return LeafValue(classes[code], code, None, distribution, confidence, None, math.nan)


def _class_shares(tree: Tree, nodes: Array, *, laplace: bool) -> Floats:
    table: Floats = tree.stats[_nodes_with_rows(tree)[nodes]]
    extra = 1.0 if laplace else 0.0
    # Row by row, so that the Python floats of only one node are in memory.
    totals = np.fromiter((math.fsum(row.tolist()) for row in table), np.float64, len(table)) + extra * table.shape[1]
    table += extra
    table /= totals[:, None]
    return table


@cached_on_owner
def _nodes_with_rows(tree: Tree) -> Array:
    """Return for each node the nearest node with training rows: itself or an ancestor. int64 (n)."""
    seen = np.where(tree.weight > 0, np.arange(tree.n_nodes), tree.parent)
    seen[0] = 0
    while bool(np.any(seen[seen] != seen)):
        seen = seen[seen]
    return seen
