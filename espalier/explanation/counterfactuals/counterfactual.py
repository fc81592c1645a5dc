"""Counterfactuals: the nearest changes of a row that lead to another answer.

Wachter, Mittelstadt and Russell (2017), *Counterfactual explanations without opening the black box*. A leaf is a box:
an interval or a set of categories for each attribute. The cost of reaching a box is a sum over attributes, so the
nearest point of the box is found attribute by attribute. Except for small margins at thresholds, no further test lowers
the cost. The search follows the cheapest path first, so the first leaf with a wanted answer is the nearest one.

If a missing value divides the row, or a surrogate decides, the search tries both choices: the value stays missing, or
it becomes known. A changed row is proposed only if the model predicts a wanted answer for this row.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from espalier.data.labels import Label
from espalier.data.schema import Feature
from espalier.errors import NotApplicable
from espalier.explanation.counterfactuals.request import CounterfactualRequest
from espalier.explanation.counterfactuals.search import BestFirstSearch, Graph, RuleGraph, TreeGraph
from espalier.explanation.counterfactuals.value_domains import value_domains
from espalier.explanation.steps import shown_text
from espalier.model.model import Model
from espalier.model.texts import name_text
from espalier.prediction.answers import Prediction, format_answer
from espalier.prediction.encode_rows import python_cell
from espalier.prediction.missing_strategies import with_missing_strategy
from espalier.prediction.predict import predictor_for
from espalier.prediction.rule_predictor import RulePredictor
from espalier.prediction.tree_predictor import TreePredictor

MAX_VISITED: Final = 100_000
"""The search ends when predictions of changed rows have visited this many leaves; that takes one or two seconds."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed value of one attribute.

    Attributes:
        attribute: The attribute.
        before: The row's own value in JSON, which may be a category that training did not see; None if it is missing.
        after: The proposed value.
        distance: Distance between `before` and `after`; see `espalier.explanation.counterfactuals.value_domains`.
        cost: The distance times the attribute's cost.
    """

    attribute: Feature
    before: Label | None
    after: Label
    distance: float
    cost: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "attribute": self.attribute.name,
            "from": self.before,
            "to": self.after,
            "distance": self.distance,
            "cost": self.cost,
        }


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The nearest changed row to which one leaf, or one rule, gives a wanted answer.

    Attributes:
        changes: The changes in the order of the schema's attributes. All other values stay, even missing ones.
        distance: The sum of the changes' distances.
        cost: The sum of the changes' costs, by which proposals are ordered.
        prediction: The model's answer to the changed row.
        text: The changes and the prediction as a sentence.
    """

    changes: tuple[Change, ...]
    distance: float
    cost: float
    prediction: Prediction
    text: str

    @property
    def leaf(self) -> int:
        """The leaf, or the number of the rule, that answers the changed row."""
        return self.prediction.leaf

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "distance": self.distance,
            "cost": self.cost,
            "leaf": self.leaf,
            "answer": self.prediction.to_dict(),
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Counterfactuals:
    """Proposals for one row, nearest first.

    Attributes:
        prediction: The answer to the row itself.
        proposals: At most one per leaf (or rule); empty if no legal change leads to a wanted answer.
        complete: True if the search found every counterfactual, or as many as requested. Otherwise, more may exist,
            even nearer ones: the search stopped early in a very large model; or a missing value or a category unseen at
            a test may divide the row or make a surrogate decide.
    """

    prediction: Prediction
    proposals: tuple[Counterfactual, ...]
    complete: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "answer": self.prediction.to_dict(),
            "counterfactuals": [proposal.to_dict() for proposal in self.proposals],
            "complete": self.complete,
        }


def counterfactuals(
    model: Model,
    row: Mapping[str, Any],
    *,
    label: Label | None = None,
    value_range: Sequence[float | None] | None = None,
    immutable: Collection[str] = (),
    costs: Mapping[str, float] | None = None,
    spans: Mapping[str, float] | None = None,
    missing: str | None = None,
    most: int = 5,
) -> Counterfactuals:
    """Return the nearest changes of a row that lead to another answer.

    Args:
        model: A tree or a list of rules; not a tree whose leaves are linear models.
        row: An object of attribute names and JSON values.
        label: The wanted class; None for any class but the predicted one.
        value_range: Required for a regression: the least and the greatest wanted number; one may be None (no limit).
        immutable: Names of attributes that must not change.
        costs: By attribute name, a factor of at least 0 for distances; by default the model's `attribute_costs`, or 1.
        spans: By name of a numeric or date attribute, the difference that counts as 1 (default: the training range).
        missing: The strategy for missing values, as in `espalier.predict`.
        most: Maximum number of proposals, 1 to 100.

    Raises:
        RowError: The row is no object (path ""), or has faults, each with a path ``/{attribute}``.
        ConfigError: An argument is not legal, or the row has the wanted answer already.
        NotApplicable: The leaves are linear models.

    >>> from espalier import dataset_from_rows, train
    >>> rows = [{"age": age, "buys": "no" if age < 30 else "yes"} for age in range(20, 40)]
    >>> found = counterfactuals(train(dataset_from_rows(rows, target="buys"), "cart"), {"age": 25})
    >>> found.proposals[0].text
    'if age were 30 instead of 25 then yes'
    """
    request = CounterfactualRequest(
        model,
        label=label,
        value_range=value_range,
        immutable=immutable,
        costs={} if costs is None else costs,
        spans={} if spans is None else spans,
        most=most,
    )
    model = with_missing_strategy(model, missing)
    predictor = predictor_for(model)
    if isinstance(predictor, TreePredictor) and predictor.linear is not None:
        raise NotApplicable(
            "the leaves are linear models: every value changes the answer a little. Train with leaf=constant"
        )
    encoded = predictor.encode(row)
    own = predictor.answer(encoded)
    request.check_against(own)
    given = [name not in encoded.missing and name not in encoded.unseen for name in predictor.encode.names]
    domains = value_domains(model, encoded.values, given, spans=request.spans)
    is_wanted = request.are_wanted(predictor.value, own)
    graph: Graph = (
        TreeGraph(model, encoded.values, is_wanted, request.fixed)
        if isinstance(predictor, TreePredictor)
        else RuleGraph(model, predictor, encoded.values, is_wanted)
    )
    search = BestFirstSearch(graph, domains, request.costs, request.fixed)
    return _nearest(request, predictor, search, row, own)


def _nearest(
    request: CounterfactualRequest,
    predictor: TreePredictor | RulePredictor,
    search: BestFirstSearch,
    row: Mapping[str, Any],
    own: Prediction,
) -> Counterfactuals:
    """Return the first proposals of a search, one per leaf; `own` is the answer to the row itself."""
    proposals: dict[int, Counterfactual] = {}
    answered = {frozenset[tuple[int, float]]()}  # the unchanged row has its own answer
    n_visited = 0
    for values in search.answers():
        if (changed := frozenset(values.items())) in answered:
            continue
        answered.add(changed)
        domains = ((search.domains[place], value) for place, value in changed)
        others = {domain.feature.name: domain.label(value) for domain, value in domains}
        answer = predictor.answer(predictor.encode({**row, **others}))
        number = answer.code if answer.value is None else answer.value
        if request.are_wanted(np.array([number]), own)[0]:
            proposals.setdefault(answer.leaf, _proposal(search, row, own, values, answer))
        n_visited += answer.n_visits
        if len(proposals) == request.most or n_visited >= MAX_VISITED:
            complete = len(proposals) == request.most
            break
    else:
        complete = search.graph.is_exact and not search.stopped
    # The search adds up the costs before later tests move a number a little nearer to its threshold.
    return Counterfactuals(own, tuple(sorted(proposals.values(), key=lambda each: each.cost)), complete)


def _proposal(
    search: BestFirstSearch, row: Mapping[str, Any], own: Prediction, values: dict[int, float], answer: Prediction
) -> Counterfactual:
    changes = []
    for place, value in sorted(values.items()):
        domain = search.domains[place]
        before = domain.label(domain.own) if domain.given else None
        if domain.feature.name in own.row.unseen:
            before = python_cell(row[domain.feature.name], is_number=False)
        cost = search.cost(place, value)
        changes.append(Change(domain.feature, before, domain.label(value), domain.distance(value), cost))
    distance = min(sum(change.distance for change in changes), sys.float_info.max)
    whole_cost = min(sum(change.cost for change in changes), sys.float_info.max)
    return Counterfactual(tuple(changes), distance, whole_cost, answer, _text(changes, answer))


def _text(changes: Sequence[Change], answer: Prediction) -> str:
    parts = []
    for change in changes:
        instead = "" if change.before is None else f" instead of {shown_text(change.before)}"
        parts.append(f"{name_text(change.attribute)} were {shown_text(change.after)}{instead}")
    return f"if {' and '.join(parts)} then {format_answer(answer)}" if parts else f"already {format_answer(answer)}"
