"""The terms of a linear leaf for one row, and the smoothing by the nodes above the leaf."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from espalier.data.labels import Label
from espalier.data.schema import Feature
from espalier.explanation.steps import shown_value
from espalier.model.model import Model
from espalier.prediction.answers import Prediction
from espalier.prediction.linear_leaves import LinearAnswers, SmoothingStep


@dataclass(frozen=True, slots=True)
class LinearTerm:
    """One term of the leaf's equation, for one row.

    Attributes:
        categories: For a nominal attribute: the categories for which `column` is 1; None otherwise.
        value: The row's value; None if it is missing or unseen.
        column: The coefficient's factor: the value clipped to ±1e150, an ordinal's code, or 1 or 0 for `categories`.
        coefficient, contribution: The coefficient after smoothing, and its product with `column`.
        reason: ``value``, or why the row has no value: ``missing`` or ``unseen``.
        imputed: The value that replaced a missing or unseen one; None otherwise.
    """

    attribute: Feature
    categories: tuple[Label, ...] | None
    value: Label | None
    column: float
    coefficient: float
    contribution: float
    reason: str = "value"
    imputed: Label | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "attribute": self.attribute.name,
            **({} if self.categories is None else {"in": list(self.categories)}),
            "value": self.value,
            **({} if self.imputed is None else {"reason": self.reason, "imputed": self.imputed}),
            "column": self.column,
            "coefficient": self.coefficient,
            "contribution": self.contribution,
        }


@dataclass(frozen=True, slots=True)
class LinearAnswer:
    """The sum that gives a number, before it is limited to ±1e150: intercept + the contributions of the terms.

    Attributes:
        intercept: The intercept after smoothing.
        terms: The terms after smoothing; empty if leaves are constants.
        constant: The constant k of the smoothing; None without smoothing.
        smoothing: One step per node from the leaf up (empty: no smoothing). The last one has the answer.
    """

    intercept: float
    terms: tuple[LinearTerm, ...]
    constant: float | None
    smoothing: tuple[SmoothingStep, ...]

    def contributions(self) -> dict[str, float]:
        """Return the sum of each attribute's terms, by the attribute's name."""
        added: dict[str, list[float]] = {}
        for term in self.terms:
            added.setdefault(term.attribute.name, []).append(term.contribution)
        return {name: math.fsum(parts) for name, parts in added.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        document: dict[str, Any] = {"intercept": self.intercept, "terms": [term.to_dict() for term in self.terms]}
        if self.constant is not None:
            steps = [step.to_dict() for step in self.smoothing]
            document["smoothing"] = {"constant": self.constant, "nodes": steps}
        return document


def linear_answer(model: Model, answers: LinearAnswers | None, prediction: Prediction) -> LinearAnswer | None:
    """Return the sum that gives a row's number; None if leaves are unsmoothed constants, or several leaves answer."""
    if answers is None or len(prediction.visits) > 1:
        return None
    leaf, stood_in = answers.leaf_model(prediction.leaf), prediction.row.stood_in()
    terms = []
    for feature, cut, coefficient in leaf.terms:
        attribute = model.schema.attributes[feature]
        column = answers.column_value(feature, cut, prediction.row.values)
        value = shown_value(attribute, prediction.row.values[feature])
        categories = categories_of(answers, attribute, feature, cut) if cut else None
        term = LinearTerm(attribute, categories, value, column, coefficient, coefficient * column)
        if reason := stood_in.get(attribute.name):
            term = dataclasses.replace(term, value=None, reason=reason, imputed=value)
        terms.append(term)
    smoothing = answers.smoothing(prediction.nodes, prediction.row.values) if answers.constant is not None else ()
    return LinearAnswer(leaf.intercept, tuple(terms), answers.constant, smoothing)


def categories_of(answers: LinearAnswers, attribute: Feature, feature: int, cut: int) -> tuple[Label, ...]:
    """Return a nominal attribute's categories of rank `cut` or higher, for which the term's column is 1."""
    ranks = answers.models.ranks(feature).tolist() if answers.models is not None else []
    return tuple(label for label, rank in zip(attribute.categories, ranks, strict=True) if rank >= cut)
