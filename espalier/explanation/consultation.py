"""Consultation: the next attribute to ask for, and the answer as soon as no further value can change it.

Each call gets all known values, so nothing is stored between two questions. An attribute that the row does not contain
has not been requested yet. An attribute that is null has been requested, but its value is unknown: the strategy for
missing values handles it, and may need other attributes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.arrays import Array
from espalier.data.labels import Label
from espalier.data.schema import Feature
from espalier.explanation.costs import PathCost, attribute_costs, cost_of
from espalier.explanation.margins import top_class
from espalier.explanation.row_flow import ALL, attributes_read, row_flow
from espalier.model.model import Model
from espalier.model.node_tests import LEAF, UNKNOWN
from espalier.prediction.answers import Prediction
from espalier.prediction.missing_strategies import STOP, with_missing_strategy
from espalier.prediction.predict import predictor_for
from espalier.prediction.rule_predictor import RulePredictor
from espalier.prediction.tree_predictor import TreePredictor


@dataclass(frozen=True, slots=True)
class Question:
    """The next attribute to ask for.

    Attributes:
        attribute: The attribute; if its value is unknown, null is a legal reply.
        cost: The cost of the attribute in `attribute_costs` of the configuration; 1 by default.
        node: Number of the node, or of the rule, that needs the attribute.
    """

    attribute: Feature
    cost: float
    node: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the categories, if there are any."""
        document = {
            "attribute": self.attribute.name,
            "kind": str(self.attribute.kind),
            "cost": self.cost,
            "node": self.node,
        }
        return {**document, "categories": list(self.attribute.categories)} if self.attribute.coded else document


@dataclass(frozen=True, slots=True)
class Consultation:
    """The state of a consultation.

    Attributes:
        question: The next question; None once the answer is final, that is, once no further value can change it.
        label: The final class; None until it is final, and for a regression.
        value: The final number; None until it is final, and for a classification.
        possible: The classes that reachable leaves or rules predict, in the schema's order, each with the training
            weight of the leaves or rules that predict it. If leaves are averaged, the final class may be an unlisted
            one. Once there is a `prediction`, only its class is listed, with its support. Empty for a regression.
        value_range: The least and the greatest number that are still possible. None for a classification, and for
            linear leaves until there is a `prediction`.
        prediction: The full prediction; None as long as the model would read further attributes.
        cost: The cost of the attributes that were read so far.
    """

    question: Question | None
    label: Label | None
    value: float | None
    possible: tuple[tuple[Label, float], ...]
    value_range: tuple[float, float] | None
    prediction: Prediction | None
    cost: PathCost

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        document = {
            "settled": self.question is None,
            "next": None if self.question is None else self.question.to_dict(),
            "possible": [{"label": label, "weight": weight} for label, weight in self.possible] or None,
            "range": None if self.value_range is None else list(self.value_range),
            "label": self.label,
            "value": self.value,
            "answer": None if self.prediction is None else self.prediction.to_dict(),
            "cost": self.cost.to_dict(),
        }
        return {name: member for name, member in document.items() if member is not None}


def consult(model: Model, row: Mapping[str, Any], *, missing: str | None = None) -> Consultation:
    """Return the next attribute to ask for, or the final answer.

    Args:
        model: A tree or a list of rules.
        row: The known values by attribute; None for a requested attribute whose value is unknown.
        missing: The strategy for unknown values, as in `espalier.predict`.

    Raises:
        RowError: The row is no object (path ""), or has faults, each with a path ``/{attribute}``.
        ConfigError: There is no such strategy, or the model cannot use it.

    >>> from espalier import dataset_from_rows, train
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> model = train(dataset_from_rows(rows, target="play"), "id3")
    >>> consult(model, {}).question.attribute.name, consult(model, {"wind": "weak"}).label
    ('wind', 'yes')
    """
    model = with_missing_strategy(model, missing)
    predictor = predictor_for(model)
    encoded = predictor.encode(row)
    given = frozenset(place for place, name in enumerate(predictor.encode.names) if name in row)
    state = (
        _RuleState(model, predictor, encoded.values, given)
        if isinstance(predictor, RulePredictor)
        else _TreeState(model, predictor, encoded.values, given)
    )
    prediction = predictor.answer(encoded) if state.next is None else None
    answers = predictor.value[state.answers]
    is_final = prediction is not None or (state.agree and bool(np.all(answers == answers[0])))
    question = None
    if state.next is not None and not is_final:
        place, node = state.next
        question = Question(model.schema.attributes[place], attribute_costs(model)[place], node)
    code = prediction.code if prediction is not None else int(answers[0])
    value = prediction.value if prediction is not None else float(answers[0])
    return Consultation(
        question=question,
        label=predictor.classes[code] if is_final and predictor.classes else None,
        value=value if is_final and not predictor.classes else None,
        possible=_possible(predictor, state.answers, answers, prediction),
        value_range=None if predictor.classes else _range(answers, prediction, is_bounded=state.is_bounded),
        prediction=prediction,
        cost=cost_of(model, state.used),
    )


def _possible(
    predictor: TreePredictor | RulePredictor, numbers: Array, codes: Array, prediction: Prediction | None
) -> tuple[tuple[Label, float], ...]:
    if not predictor.classes:
        return ()
    if prediction is not None:
        return ((predictor.classes[prediction.code], prediction.support),)
    weights = np.bincount(codes, weights=np.asarray(predictor.weight)[numbers], minlength=len(predictor.classes))
    return tuple((predictor.classes[code], float(weights[code])) for code in np.unique(codes).tolist())


def _range(answers: Array, prediction: Prediction | None, *, is_bounded: bool) -> tuple[float, float] | None:
    if prediction is not None and prediction.value is not None:
        return prediction.value, prediction.value
    return (float(answers.min()), float(answers.max())) if is_bounded else None


class _TreeState:
    """The state of a consultation of a tree.

    Attributes:
        next: Index of the attribute to ask for, and the node that needs it; None if nothing is left to ask for.
        answers: The nodes that may still answer.
        agree: Whether the answer is final as soon as all nodes in `answers` give the same answer.
        is_bounded: Whether all possible numbers lie between the least and the greatest number of `answers`.
        used: Indexes of the attributes that were read so far.
    """

    def __init__(self, model: Model, predictor: TreePredictor, values: Sequence[float], given: Collection[int]) -> None:
        tree, flow = model.tree, row_flow(model, predictor, values)
        decided = flow.decided_by(tree, given)
        goes, parent_is_decided = flow.share > 0, np.append(True, decided[tree.parent[1:]])
        arrives = tree.outside(np.flatnonzero(~(goes & parent_is_decided)))
        reach = tree.outside(np.flatnonzero(~goes & parent_is_decided))
        is_test = tree.test != LEAF
        may_end = np.where(decided, flow.branch == STOP, (tree.fallback == STOP) & (tree.test != UNKNOWN))
        self.answers = np.flatnonzero(reach & (~is_test | may_end))
        self.next: tuple[int, int] | None = None
        for node in np.flatnonzero(arrives & is_test & ~decided)[:1].tolist():
            read = (int(tree.feature[node]), *flow.surrogates_used.get(node, ()))
            self.next = next(place for place in read if place not in given), node
        used = dict.fromkeys(attributes_read(tree, flow, arrives & decided))
        self.is_bounded = self.agree = predictor.linear is None
        if predictor.linear is not None and self.next is None:
            for leaf in self.answers[arrives[self.answers]].tolist():
                needed = predictor.linear.attributes_read(leaf)
                used |= {place: None for place in needed if place in given}
                self.next = next(((place, leaf) for place in needed if place not in given), None)
        elif predictor.classes and bool(np.any((tree.fallback == ALL) & is_test & (tree.test != UNKNOWN))):
            # Leaves that answer together are averaged, so a common label is certain only if all their shares favour it.
            self.agree = bool(np.all(top_class(model)[self.answers] == predictor.value[self.answers]))
        self.used = list(used)


class _RuleState:
    """The state of a consultation of a list of rules; see `_TreeState`."""

    def __init__(self, model: Model, predictor: RulePredictor, values: Sequence[float], given: Collection[int]) -> None:
        self.next: tuple[int, int] | None = None
        self.agree = self.is_bounded = True
        possible, used = [], dict[int, None]()
        for number, rule in enumerate(model.rules.answers):
            places = [predictor.place[condition.attribute.name] for condition in rule.conditions]
            failed = predictor.failed(number, values, given)
            open_places = [place for place in places if place not in given]
            if self.next is None:
                # Rules are read in order, up to the first that needs a further attribute.
                read = places if failed < 0 else places[: failed + 1]
                used |= dict.fromkeys(place for place in read if place in given)
            if failed >= 0:
                continue
            possible.append(number)
            if not open_places:
                break
            if self.next is None:
                self.next = open_places[0], number
        imputed = model.preparation.imputed
        if model.rules.exclusive and imputed is not None and not np.isnan(imputed).any() and len(possible) > 1:
            # No value stays missing, so every row takes one of the tree's paths, and the default never answers.
            possible = [number for number in possible if number < model.rules.n_rules]
        self.answers = np.array(possible, dtype=np.int64)
        self.used = list(used)
