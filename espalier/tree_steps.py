"""The steps of a row through a tree, what they come to as conditions, and the sentence that these make."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.answers import LeafVisit, Prediction, answer_word
from espalier.linear_explanation import equation_text
from espalier.model import Model
from espalier.prediction import Router, Substitutes
from espalier.rules import Condition, sentence, shown_bound
from espalier.schema import Feature, FeatureKind, Label, label_text
from espalier.steps import DecisionStep, StandIn, shown_value, step_reason
from espalier.tree import NOMINAL, NUMERIC, Tree

__all__ = ["Told", "conditions_of", "rule_of_tree", "told", "tree_steps"]

MOST_KEPT: Final = 10_000
"""Of how many leaves, and of how many tests, the words are kept with a model."""


def conditions_of(model: Model, nodes: Sequence[int]) -> tuple[Condition, ...]:
    """Merge the tests on the way `nodes` (root first) into one condition an attribute."""
    merged: dict[int, _Merged] = {}
    for node, child in pairwise(nodes):
        feature = int(model.tree.feature[node])
        found = merged.get(feature)
        if found is None:
            found = merged[feature] = _Merged()
        found.narrow(model.tree, node, int(model.tree.branches[child]))
    return tuple(found.condition(model.schema.attributes[feature]) for feature, found in merged.items())


class _Merged:
    """What the tests on a way say together of one attribute; see `Condition`, of which it has the codes."""

    __slots__ = ("above", "at_most", "codes", "known")

    def __init__(self) -> None:
        self.above, self.at_most = -math.inf, math.inf
        self.codes: npt.NDArray[np.intp] | None = None
        self.known: bool | None = None

    def narrow(self, tree: Tree, node: int, branch: int) -> None:
        """Take in a test whose branch was taken."""
        if tree.test[node] == NUMERIC:
            threshold = float(tree.threshold[node])
            if branch == 0:
                self.at_most = min(self.at_most, threshold)
            else:
                self.above = max(self.above, threshold)
        elif tree.test[node] == NOMINAL:
            taken = tree.codes(node) == branch
            self.codes = np.flatnonzero(taken) if self.codes is None else self.codes[taken[self.codes]]
        else:
            self.known = branch == 0

    def condition(self, feature: Feature) -> Condition:
        """Give the condition."""
        listed = None if self.codes is None else _labels(feature, self.codes)
        return Condition(feature, self.above, self.at_most, listed, self.known)


def _labels(feature: Feature, codes: npt.NDArray[np.intp]) -> tuple[Label, ...]:
    categories = feature.categories
    return tuple([categories[code] for code in codes.tolist()])


def _branch_categories(model: Model, node: int, branch: int) -> tuple[Label, ...]:
    feature = model.schema.attributes[int(model.tree.feature[node])]
    return _labels(feature, np.flatnonzero(model.tree.codes(node) == branch))


class _Edge(NamedTuple):
    """What is the same for every row that goes from a node to one of its children.

    Attributes:
        place: Of the attribute among a row's values.
        cut: The threshold as it is compared; NaN without one.
        plain: Whether a number is cut, which is shown as it is.
        step: The fields of a `DecisionStep` whose value is known and decides; those of the row are to be filled in.
    """

    place: int
    cut: float
    plain: bool
    step: list[Any]


VALUE: Final = DecisionStep._fields.index("value")
MARGIN: Final = DecisionStep._fields.index("margin")

_step_of: Callable[[list[Any]], DecisionStep] = partial(tuple.__new__, DecisionStep)
"""Makes a step of its fields in half the time of a call with as many arguments: a path has one a level."""


class Told:
    """What was said of a model before.

    Attributes:
        edges: By the child that an edge leads to.
        paths: By leaf: all edges on the way to it.
        rules: By leaf: conditions and sentence.
    """

    def __init__(self) -> None:
        self.edges: dict[int, _Edge] = {}
        self.paths: dict[int, tuple[_Edge, ...]] = {}
        self.rules: dict[int, tuple[tuple[Condition, ...], str]] = {}


_TOLD: WeakKeyDictionary[Model, Told] = WeakKeyDictionary()


def told(model: Model) -> Told:
    """Give what was said of a model before; begun anew where that has grown too large."""
    found = _TOLD.get(model)
    if found is None:
        found = _TOLD[model] = Told()
    if max(len(found.edges), len(found.paths), len(found.rules)) > MOST_KEPT:
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
    edges = said.paths.get(visit.nodes[-1])
    if edges is None:
        edges = said.paths[visit.nodes[-1]] = tuple(_edges(model, way, visit.nodes, said))
    steps = []
    for edge in edges:
        place, cut, plain, step = edge
        value = values[place]
        if plain and value == value:  # noqa: PLR0124 - not NaN
            filled = step.copy()
            filled[VALUE], filled[MARGIN] = value, abs(value - cut)
            steps.append(_step_of(filled))
        else:
            steps.append(_worded_step(model, way, values, edge))
    return tuple(steps)


def _edges(model: Model, way: Router, nodes: Sequence[int], said: Told) -> Iterator[_Edge]:
    for node, child in pairwise(nodes):
        edge = said.edges.get(child)
        if edge is None:
            edge = said.edges[child] = _edge(model, way, node, child)
        yield edge


def _edge(model: Model, way: Router, node: int, child: int) -> _Edge:
    place, test, branch = way.feature[node], way.test[node], way.branch_to(child, node)
    feature, at_node = model.schema.attributes[place], way.answers[node]
    cut = way.threshold[node] if test == NUMERIC else math.nan
    step = DecisionStep(
        node=node,
        attribute=feature,
        test={NUMERIC: "<=", NOMINAL: "in"}.get(test, "known"),
        threshold=shown_bound(feature, cut) if test == NUMERIC else None,
        categories=_branch_categories(model, node, branch) if test == NOMINAL else None,
        value=None,
        branch="yes" if branch == 0 or test == NOMINAL else "no",
        reason="value",
        margin=None,
        weight=way.weight[node],
        distribution={label_text(label): share for label, share in at_node.distribution} if way.classes else None,
        mean=None if way.classes else at_node.mean,
    )
    return _Edge(place, cut, feature.kind is FeatureKind.NUMERIC and test == NUMERIC, list(step))


def _worded_step(model: Model, way: Router, values: Sequence[float], edge: _Edge) -> DecisionStep:
    """Give a step whose value is missing, or is shown otherwise than it is compared."""
    step = _step_of(edge.step)
    feature, value = step.attribute, values[edge.place]
    absent = math.isnan(value) or (value < 0 and feature.coded)
    shown = None if absent else shown_value(feature, value)
    known_here = way.branch_is_known(step.node, value)
    reason = step_reason(feature, value, absent=absent, known_here=known_here)
    margin = None if absent or math.isnan(edge.cut) else abs(value - edge.cut)
    decided = _stand_in(model, way.substitutes, step.node, values) if reason != "value" and way.substitutes else None
    return step._replace(value=shown, reason=reason, margin=margin, surrogate=decided)


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
