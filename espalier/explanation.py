"""Why did it decide that: the ordered path, the same merged a line an attribute, and the rule as a sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final
from weakref import WeakKeyDictionary

from espalier.answers import answer_word
from espalier.errors import ConfigError, Fault
from espalier.linear_explanation import LinearAnswer, equation_text, linear_answer, linear_lines
from espalier.model import Model
from espalier.prediction import LeafVisit, Prediction, Router, router
from espalier.rule_explanation import passed_over, rule_sentence, rule_steps
from espalier.rule_prediction import rule_router
from espalier.rules import Condition, RuleList, label_line, number_text, one_line, sentence, shown_bound
from espalier.schema import Feature, FeatureKind, Label, label_text
from espalier.steps import DecisionStep, PassedOver, passed_over_text, shown_value, step_reason, step_text
from espalier.tree import NOMINAL, NUMERIC

__all__ = ["DecisionStep", "Explanation", "conditions_of", "explain", "render_explanation"]

DETAILS: Final = ("path", "full")
MOST_KEPT: Final = 10_000
"""Of how many leaves, and of how many tests, the words are kept with a model."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer with what led to it.

    Attributes:
        prediction: The answer.
        paths: The steps of each way taken, in the order of ``prediction.visits``; one unless the answer is fractional.
        conditions: The heaviest way's tests merged, one an attribute, in the order in which they were first asked.
        rule: The same as a sentence.
        contributions: What each attribute added to the label's share (or to the number) on the way from the root to
            the leaf (Saabas 2014); None unless asked for with ``full``.
        baseline: The label's share (or the mean) at the root: baseline + contributions = the leaf's.
        passed_over: Of a list of rules, and only with ``full``: the rules before the one that fired, in order, each
            with the first of its conditions that does not hold.
        linear: Where the leaf answers with a linear model, or is smoothed by the nodes above it: the sum that the
            number is. The baseline is then the intercept, and the contributions are those of its terms.
    """

    prediction: Prediction
    paths: tuple[tuple[DecisionStep, ...], ...]
    conditions: tuple[Condition, ...]
    rule: str
    contributions: Mapping[str, float] | None = None
    baseline: float | None = None
    passed_over: tuple[PassedOver, ...] | None = None
    linear: LinearAnswer | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        document = self.prediction.to_dict()
        document["path"] = [step.to_dict() for step in self.paths[0]]
        if len(self.paths) > 1:
            document["paths"] = [
                {"weight": visit.weight, "leaf": visit.leaf, "path": [step.to_dict() for step in path]}
                for visit, path in zip(self.prediction.visits, self.paths, strict=True)
            ]
        document["conditions"] = [condition.to_dict() for condition in self.conditions]
        document["rule"] = self.rule
        if self.contributions is not None:
            document |= {"baseline": self.baseline, "contributions": dict(self.contributions)}
        if self.linear is not None:
            document["linear"] = self.linear.to_dict()
        if self.passed_over is not None:
            document["passed_over"] = [rule.to_dict() for rule in self.passed_over]
        return document


def explain(model: Model, rows: Sequence[Mapping[str, Any]], *, detail: str = "path") -> list[Explanation]:
    """Answer each row and say what led to the answer.

    Args:
        model: The model.
        rows: Objects of attribute names and JSON values.
        detail: ``path``, or ``full`` for the attributes' contributions besides; of a list of rules, for the rules that
            did not fire.

    Raises:
        RowError: Every fault of every row, by ``/{row}/{attribute}``.
        ConfigError: An unknown `detail`.
    """
    if detail not in DETAILS:
        raise ConfigError([Fault("/detail", "unknown_value", f"must be one of {', '.join(DETAILS)}")])
    if isinstance(model.body, RuleList):
        return [_by_rule(model, prediction, detail) for prediction in rule_router(model).predict(rows)]
    way = router(model)
    return [_explanation(model, way, prediction, detail) for prediction in way.predict(rows)]


def render_explanation(explanation: Explanation) -> str:
    """Write an explanation for a person, a line a test."""
    prediction = explanation.prediction
    lines = []
    for visit, path in zip(prediction.visits, explanation.paths, strict=True):
        if len(explanation.paths) > 1:
            lines.append(f"with weight {visit.weight:.4g}:")
        lines += [f"  {step_text(step)}" for step in path]
        if not path:
            by_default = explanation.rule.startswith("otherwise ")
            lines.append("  no rule holds" if by_default else "  nothing is tested: one leaf, or a rule for every row")
    lines += [f"  not {passed_over_text(rule)}" for rule in explanation.passed_over or ()]
    lines.append(f"answer: {_answer_text(prediction)}")
    lines.append(f"because: {explanation.rule}")
    lines += linear_lines(explanation.linear) if explanation.linear is not None else []
    for name, flagged in (("missing", prediction.row.missing), ("never seen in training", prediction.row.unseen)):
        if flagged:
            lines.append(f"{name}: {', '.join(map(one_line, flagged))}")
    return "\n".join(lines) + "\n"


def conditions_of(model: Model, nodes: Sequence[int]) -> tuple[Condition, ...]:
    """Merge the tests on the way `nodes` (root first) into one condition an attribute."""
    merged: dict[int, Condition] = {}
    for node, child in pairwise(nodes):
        feature = int(model.tree.feature[node])
        branch = int(model.tree.branches[child])
        before = merged.get(feature, Condition(model.schema.attributes[feature]))
        merged[feature] = _narrowed(model, node, branch, before)
    return tuple(merged.values())


def _narrowed(model: Model, node: int, branch: int, before: Condition) -> Condition:
    tree = model.tree
    if tree.test[node] == NUMERIC:
        threshold = float(tree.threshold[node])
        if branch == 0:
            return replace(before, at_most=min(before.at_most, threshold))
        return replace(before, above=max(before.above, threshold))
    if tree.test[node] == NOMINAL:
        taken = _branch_categories(model, node, branch)
        kept = taken if before.categories is None else tuple(label for label in before.categories if label in taken)
        return replace(before, categories=kept)
    return replace(before, known=branch == 0)


def _branch_categories(model: Model, node: int, branch: int) -> tuple[Label, ...]:
    categories = model.schema.attributes[int(model.tree.feature[node])].categories
    codes = model.tree.codes(node).tolist()
    return tuple(label for label, taken in zip(categories, codes, strict=True) if taken == branch)


@dataclass(frozen=True, slots=True)
class _Edge:
    """What is the same for every row that goes from a node to one of its children; names as in `DecisionStep`.

    `place` is that of the attribute among a row's values, `cut` the threshold as it is compared, None without one.
    """

    node: int
    place: int
    attribute: Feature
    plain: bool
    test: str
    cut: float | None
    threshold: Label | None
    categories: tuple[Label, ...] | None
    branch: str
    weight: float
    distribution: dict[str, float] | None
    mean: float | None


class _Told:
    """What was said of a model before, by the child that an edge leads to, and by leaf: conditions and sentence."""

    def __init__(self) -> None:
        self.edges: dict[int, _Edge] = {}
        self.rules: dict[int, tuple[tuple[Condition, ...], str]] = {}


_TOLD: WeakKeyDictionary[Model, _Told] = WeakKeyDictionary()


def _told(model: Model) -> _Told:
    found = _TOLD.get(model)
    if found is None:
        found = _TOLD[model] = _Told()
    if len(found.edges) > MOST_KEPT or len(found.rules) > MOST_KEPT:
        found = _TOLD[model] = _Told()
    return found


def _explanation(model: Model, way: Router, prediction: Prediction, detail: str) -> Explanation:
    told = _told(model)
    conditions, rule = _rule(model, way, prediction, told)
    linear = None if way.smoothing is None else linear_answer(model, way.smoothing, prediction)
    contributions, baseline = _contributions(model, way, prediction, linear) if detail == "full" else (None, None)
    return Explanation(
        prediction=prediction,
        paths=tuple(_steps(model, way, prediction.row.values, visit, told) for visit in prediction.visits),
        conditions=conditions,
        rule=rule,
        contributions=contributions,
        baseline=baseline,
        linear=linear,
    )


def _rule(model: Model, way: Router, prediction: Prediction, told: _Told) -> tuple[tuple[Condition, ...], str]:
    """Give the merged conditions and the sentence: a leaf's own, unless several leaves answer together."""
    found = told.rules.get(prediction.leaf) if len(prediction.visits) == 1 else None
    if found is None:
        conditions = conditions_of(model, prediction.nodes)
        found = conditions, sentence(conditions, _answer_of_rule(model, way, prediction))
        if len(prediction.visits) == 1:
            told.rules[prediction.leaf] = found
    return found


def _answer_of_rule(model: Model, way: Router, prediction: Prediction) -> str:
    if way.linear is None:
        return answer_word(prediction)
    return equation_text(model, way.linear, way.linear.leaf_model(prediction.nodes))


def _by_rule(model: Model, prediction: Prediction, detail: str) -> Explanation:
    return Explanation(
        prediction=prediction,
        paths=(rule_steps(model, prediction),),
        conditions=model.rules.answers[prediction.leaf].conditions,
        rule=rule_sentence(model, prediction.leaf),
        passed_over=passed_over(model, prediction) if detail == "full" else None,
    )


def _steps(
    model: Model, way: Router, values: Sequence[float], visit: LeafVisit, told: _Told
) -> tuple[DecisionStep, ...]:
    edges, steps = told.edges, []
    for node, child in pairwise(visit.nodes):
        edge = edges.get(child)
        if edge is None:
            edge = edges[child] = _edge(model, way, node, child)
        steps.append(_step(way, values[edge.place], edge))
    return tuple(steps)


def _edge(model: Model, way: Router, node: int, child: int) -> _Edge:
    place, test, branch = way.feature[node], way.test[node], way.branch_to(child, node)
    feature, at_node = model.schema.attributes[place], way.answers[node]
    cut = way.threshold[node] if test == NUMERIC else None
    return _Edge(
        node=node,
        place=place,
        attribute=feature,
        plain=feature.kind is FeatureKind.NUMERIC and test == NUMERIC,
        test={NUMERIC: "<=", NOMINAL: "in"}.get(test, "known"),
        cut=cut,
        threshold=None if cut is None else shown_bound(feature, cut),
        categories=_branch_categories(model, node, branch) if test == NOMINAL else None,
        branch="yes" if branch == 0 or test == NOMINAL else "no",
        weight=way.weight[node],
        distribution={label_text(label): share for label, share in at_node.distribution} if way.classes else None,
        mean=None if way.classes else at_node.mean,
    )


def _step(way: Router, value: float, edge: _Edge) -> DecisionStep:
    feature, cut = edge.attribute, edge.cut
    shown: Label | None = value
    reason = "value"
    absent = value != value or (value < 0 and feature.coded)  # noqa: PLR0124 - NaN
    if absent or not edge.plain:
        shown = None if absent else shown_value(feature, value)
        reason = step_reason(feature, value, absent=absent, known_here=way.branch_is_known(edge.node, value))
    return DecisionStep(
        edge.node,
        feature,
        edge.test,
        edge.threshold,
        edge.categories,
        shown,
        edge.branch,
        reason,
        None if absent or cut is None else abs(value - cut),
        edge.weight,
        edge.distribution,
        edge.mean,
    )


def _contributions(
    model: Model, way: Router, prediction: Prediction, linear: LinearAnswer | None
) -> tuple[dict[str, float], float]:
    """Give each attribute the change of the label's share (or mean) over its tests, weighted over the ways taken.

    Where a linear model answers, give each attribute its terms; where smoothed constants do, the change of those.
    """
    if linear is not None and way.linear is not None:
        return linear.contributions(), linear.intercept
    place = prediction.code if way.classes else None

    def level(node: int) -> float:
        answer = way.answers[node]
        if place is not None:
            return answer.distribution[place][1]
        return answer.mean if way.smoothing is None or answer.value is None else answer.value

    added: dict[str, list[float]] = {}
    for visit in prediction.visits:
        for node, child in pairwise(visit.nodes):
            name = model.schema.attributes[way.feature[node]].name
            added.setdefault(name, []).append(visit.weight * (level(child) - level(node)))
    return {name: math.fsum(changes) for name, changes in added.items()}, level(0)


def _answer_text(prediction: Prediction) -> str:
    if prediction.value is not None:
        return f"{number_text(prediction.value)} ± {prediction.std:.4g} (from training weight {prediction.support:g})"
    shares = ", ".join(f"{label_line(label)} {share:.4g}" for label, share in prediction.distribution)
    return f"{answer_word(prediction)} ({shares}; from training weight {prediction.support:g})"
