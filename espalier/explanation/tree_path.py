"""The steps of a row through a tree, their merged conditions, and the rule sentence of the path."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

from espalier.data.labels import label_text
from espalier.data.schema import FeatureKind
from espalier.explanation.equation_text import equation_text
from espalier.explanation.steps import DecisionStep, StandIn, shown_value, step_reason
from espalier.model.model import Model
from espalier.model.node_tests import NOMINAL, NUMERIC
from espalier.model.rules import Condition
from espalier.model.texts import format_rule, shown_bound
from espalier.model.tree import cached_on_owner
from espalier.prediction.answers import LeafVisit, Prediction, format_answer
from espalier.prediction.tree_predictor import SurrogateTests, TreePredictor
from espalier.rules.extract import edge_condition, intersection

MAX_CACHED: Final = 10_000
"""Maximum number of edges, and of rules, that are cached with a model; a larger cache is cleared."""


def conditions_of(model: Model, nodes: Sequence[int]) -> tuple[Condition, ...]:
    """Return the tests of the path `nodes` (root first), merged into one condition per attribute."""
    merged: dict[str, Condition] = {}
    for child in nodes[1:]:
        condition = edge_condition(model, child, with_unseen=False)
        name = condition.attribute.name
        merged[name] = intersection(merged[name], condition) if name in merged else condition
    return tuple(merged.values())


class _Edge(NamedTuple):
    """The part of a step that is the same for all rows that go from a node to one of its children.

    Attributes:
        place: Index of the tested attribute.
        threshold: The threshold that the row's value is compared with; NaN if there is none.
        is_number: Whether the test compares a numeric attribute, whose encoded value is shown unchanged.
        step: The fields of a `DecisionStep`; value and margin are filled in for each row.
    """

    place: int
    threshold: float
    is_number: bool
    step: list[Any]


VALUE: Final = DecisionStep._fields.index("value")
MARGIN: Final = DecisionStep._fields.index("margin")

_step_of: Callable[[list[Any]], DecisionStep] = partial(tuple.__new__, DecisionStep)
"""Creates a step from its fields, in half the time of a call with keywords; a path has one step per level."""


@cached_on_owner
def _edges_of(model: Model) -> dict[int, _Edge]:
    """Return the edges that explanations of a model share, by number of the child node."""
    return {}


@cached_on_owner
def _rules_of(model: Model) -> dict[int, tuple[tuple[Condition, ...], str]]:
    """Return the merged conditions and the sentences that explanations of a model share, by leaf."""
    return {}


def rule_of_tree(model: Model, predictor: TreePredictor, prediction: Prediction) -> tuple[tuple[Condition, ...], str]:
    """Return the merged conditions and the sentence of a prediction; if one leaf answers, they are cached."""
    rules = _rules_of(model)
    for table in (_edges_of(model), rules):
        if len(table) > MAX_CACHED:
            table.clear()
    merged = rules.get(prediction.leaf) if len(prediction.visits) == 1 else None
    if merged is None:
        conditions, linear = conditions_of(model, prediction.nodes), predictor.linear
        answer = equation_text(model, linear, prediction.leaf) if linear else format_answer(prediction)
        merged = conditions, format_rule(conditions, answer)
        if len(prediction.visits) == 1:
            rules[prediction.leaf] = merged
    return merged


def tree_steps(
    model: Model, predictor: TreePredictor, values: Sequence[float], visit: LeafVisit
) -> tuple[DecisionStep, ...]:
    """Return the steps of one path of an encoded row."""
    edges, steps = _edges_of(model), []
    for node, child in pairwise(visit.nodes):
        try:
            edge = edges[child]
        except KeyError:  # another thread may clear the cache at any time
            edge = edges[child] = _edge(model, predictor, node, child)
        place, threshold, is_number, step = edge
        value = values[place]
        if is_number and value == value:  # noqa: PLR0124 - not NaN
            filled = step.copy()
            filled[VALUE], filled[MARGIN] = value, abs(value - threshold)
            steps.append(_step_of(filled))
        else:
            steps.append(_worded_step(model, predictor, values, edge))
    return tuple(steps)


def _edge(model: Model, predictor: TreePredictor, node: int, child: int) -> _Edge:
    place, test, branch = predictor.feature[node], predictor.test[node], int(model.tree.branches[child])
    feature, at_node = model.schema.attributes[place], predictor.answers[node]
    threshold = predictor.threshold[node] if test == NUMERIC else math.nan
    step = DecisionStep(
        node=node,
        attribute=feature,
        test={NUMERIC: "<=", NOMINAL: "in"}.get(test, "known"),
        threshold=shown_bound(feature, threshold) if test == NUMERIC else None,
        categories=edge_condition(model, child, with_unseen=False).categories,
        value=None,
        branch="yes" if branch == 0 or test == NOMINAL else "no",
        reason="value",
        margin=None,
        weight=predictor.weight[node],
        distribution={label_text(label): share for label, share in at_node.distribution} if predictor.classes else None,
        mean=None if predictor.classes else at_node.mean,
    )
    return _Edge(place, threshold, feature.kind is FeatureKind.NUMERIC and test == NUMERIC, list(step))


def _worded_step(model: Model, predictor: TreePredictor, values: Sequence[float], edge: _Edge) -> DecisionStep:
    """Return the step for a missing value, a category or a date, or for a test of whether the value is known."""
    step = _step_of(edge.step)
    feature, value = step.attribute, values[edge.place]
    absent = math.isnan(value) or (value < 0 and feature.coded)
    shown = None if absent else shown_value(feature, value)
    known_here = predictor.branch_is_known(step.node, value)
    reason = step_reason(feature, value, absent=absent, known_here=known_here)
    margin = None if absent or math.isnan(edge.threshold) else abs(value - edge.threshold)
    surrogate = None
    if reason != "value" and predictor.surrogates is not None:
        surrogate = _surrogate_used(model, predictor.surrogates, step.node, values)
    return step._replace(value=shown, reason=reason, margin=margin, surrogate=surrogate)


def _surrogate_used(model: Model, surrogates: SurrogateTests, node: int, values: Sequence[float]) -> StandIn | None:
    other = surrogates.deciding(node, values)
    if other < 0:
        return None
    place, threshold = surrogates.feature[other], surrogates.threshold[other]
    feature, value = model.schema.attributes[place], values[place]
    shown = shown_value(feature, value)
    if surrogates.test[other] == NUMERIC:
        branch = "yes" if value <= threshold else "no"
        return StandIn(feature, "<=", shown_bound(feature, threshold), None, shown, branch)
    own_branch = surrogates.taken(other, value)
    alike = (code for code in range(len(feature.categories)) if surrogates.taken(other, code) == own_branch)
    return StandIn(feature, "in", None, tuple(feature.categories[code] for code in alike), shown, "yes")
