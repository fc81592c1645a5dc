"""The steps of a row through a tree, what they come to as conditions, and the sentence that these make."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from espalier.answers import LeafVisit, Prediction, answer_word
from espalier.linear_explanation import equation_text
from espalier.model import Model
from espalier.prediction import Router, Substitutes
from espalier.rules import Condition, sentence, shown_bound
from espalier.schema import Feature, FeatureKind, Label, label_text
from espalier.steps import DecisionStep, StandIn, shown_value, step_reason
from espalier.tree import NOMINAL, NUMERIC

__all__ = ["Told", "conditions_of", "rule_of_tree", "told", "tree_steps"]

MOST_KEPT: Final = 10_000
"""Of how many leaves, and of how many tests, the words are kept with a model."""


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


class _Edge(NamedTuple):
    """What is the same for every row that goes from a node to one of its children.

    Attributes:
        place: Of the attribute among a row's values.
        attribute: What is tested.
        plain: Whether a number is cut, which is shown as it is.
        cut: The threshold as it is compared; None without one.
        asked: ``node, attribute, test, threshold, categories`` of a `DecisionStep`.
        branch: As in a `DecisionStep`.
        seen: ``weight, distribution, mean`` of a `DecisionStep`.
    """

    place: int
    attribute: Feature
    plain: bool
    cut: float | None
    asked: tuple[int, Feature, str, Label | None, tuple[Label, ...] | None]
    branch: str
    seen: tuple[float, dict[str, float] | None, float | None]


class Told:
    """What was said of a model before, by the child that an edge leads to, and by leaf: conditions and sentence."""

    def __init__(self) -> None:
        self.edges: dict[int, _Edge] = {}
        self.rules: dict[int, tuple[tuple[Condition, ...], str]] = {}


_TOLD: WeakKeyDictionary[Model, Told] = WeakKeyDictionary()


def told(model: Model) -> Told:
    """Give what was said of a model before; begun anew where that has grown too large."""
    found = _TOLD.get(model)
    if found is None:
        found = _TOLD[model] = Told()
    if len(found.edges) > MOST_KEPT or len(found.rules) > MOST_KEPT:
        found = _TOLD[model] = Told()
    return found


def rule_of_tree(model: Model, way: Router, prediction: Prediction, said: Told) -> tuple[tuple[Condition, ...], str]:
    """Give the merged conditions and the sentence: a leaf's own, unless several leaves answer together."""
    found = said.rules.get(prediction.leaf) if len(prediction.visits) == 1 else None
    if found is None:
        conditions = conditions_of(model, prediction.nodes)
        found = conditions, sentence(conditions, _answer_of_rule(model, way, prediction))
        if len(prediction.visits) == 1:
            said.rules[prediction.leaf] = found
    return found


def _answer_of_rule(model: Model, way: Router, prediction: Prediction) -> str:
    if way.linear is None:
        return answer_word(prediction)
    return equation_text(model, way.linear, way.linear.leaf_model(prediction.nodes))


def tree_steps(
    model: Model, way: Router, values: Sequence[float], visit: LeafVisit, said: Told
) -> tuple[DecisionStep, ...]:
    """Give the steps of one way of an encoded row."""
    edges, steps = said.edges, []
    for node, child in pairwise(visit.nodes):
        edge = edges.get(child)
        if edge is None:
            edge = edges[child] = _edge(model, way, node, child)
        value, cut = values[edge.place], edge.cut
        shown: Label | None = value
        reason = "value"
        absent = value != value or (value < 0 and edge.attribute.coded)  # noqa: PLR0124 - NaN
        if absent or not edge.plain:
            shown = None if absent else shown_value(edge.attribute, value)
            known_here = way.branch_is_known(node, value)
            reason = step_reason(edge.attribute, value, absent=absent, known_here=known_here)
        margin = None if absent or cut is None else abs(value - cut)
        step = DecisionStep(*edge.asked, shown, edge.branch, reason, margin, *edge.seen)
        if reason != "value" and way.substitutes is not None:
            step = step._replace(surrogate=_stand_in(model, way.substitutes, node, values))
        steps.append(step)
    return tuple(steps)


def _edge(model: Model, way: Router, node: int, child: int) -> _Edge:
    place, test, branch = way.feature[node], way.test[node], way.branch_to(child, node)
    feature, at_node = model.schema.attributes[place], way.answers[node]
    cut = way.threshold[node] if test == NUMERIC else None
    threshold = None if cut is None else shown_bound(feature, cut)
    categories = _branch_categories(model, node, branch) if test == NOMINAL else None
    shares = {label_text(label): share for label, share in at_node.distribution} if way.classes else None
    return _Edge(
        place=place,
        attribute=feature,
        plain=feature.kind is FeatureKind.NUMERIC and test == NUMERIC,
        cut=cut,
        asked=(node, feature, {NUMERIC: "<=", NOMINAL: "in"}.get(test, "known"), threshold, categories),
        branch="yes" if branch == 0 or test == NOMINAL else "no",
        seen=(way.weight[node], shares, None if way.classes else at_node.mean),
    )


def _stand_in(model: Model, substitutes: Substitutes, node: int, values: Sequence[float]) -> StandIn | None:
    """Give the surrogate that decided at `node`; None where none could tell."""
    other = substitutes.deciding(node, values)
    if other < 0:
        return None
    place, threshold = substitutes.feature[other], substitutes.threshold[other]
    feature, value = model.schema.attributes[place], values[place]
    shown = shown_value(feature, value)
    if substitutes.test[other] == NUMERIC:
        branch = "yes" if value <= threshold else "no"
        return StandIn(feature, "<=", shown_bound(feature, threshold), None, shown, branch)
    taken = substitutes.taken(other, value)
    alike = (code for code in range(len(feature.categories)) if substitutes.taken(other, code) == taken)
    return StandIn(feature, "in", None, tuple(feature.categories[code] for code in alike), shown, "yes")
