"""The equation of a linear leaf, the terms of one row, and the smoothing by the nodes above."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from espalier.data.labels import Label
from espalier.data.schema import Feature, FeatureKind
from espalier.explanation.steps import shown_value
from espalier.model.linear import LeafModel
from espalier.model.model import Model
from espalier.model.rules import Condition, condition_text, number_text, one_line
from espalier.prediction.answers import Prediction
from espalier.prediction.linear_leaves import LinearAnswers, SmoothingStep

COLUMN_WORDS: Final[Mapping[FeatureKind, str]] = {FeatureKind.ORDINAL: "place of ", FeatureKind.DATETIME: "seconds of "}
"""What stands before the name of an attribute that is not a number by itself."""


@dataclass(frozen=True, slots=True)
class LinearTerm:
    """One term of the leaf's equation, for one row.

    Attributes:
        attribute: The attribute.
        categories: For a nominal attribute: the term counts if the category is one of these.
        value: The row's value; None if it is missing or unseen.
        column: The number that is multiplied: the value, the place of an ordinal one, or 1 or 0.
        coefficient: After smoothing.
        contribution: coefficient × column.
        reason: ``value``, or why there is none: ``missing``, ``unseen``.
        imputed: The value that replaced the row's; None otherwise.
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
    """The sum behind a number: intercept + the contributions of the terms.

    Attributes:
        intercept: After smoothing.
        terms: After smoothing; empty if leaves are constants.
        constant: k of the smoothing; None without smoothing.
        smoothing: The leaf and the nodes above it, leaf first; the last one's ``smoothed`` is the answer.
    """

    intercept: float
    terms: tuple[LinearTerm, ...]
    constant: float | None
    smoothing: tuple[SmoothingStep, ...]

    def contributions(self) -> dict[str, float]:
        """Add up the terms of each attribute."""
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
    """Return the sum behind the number of a row; None if a leaf answers with its constant.

    Args:
        model: The model.
        answers: Of the model's predictor.
        prediction: Of the row; one that several leaves answer has no single equation.
    """
    if answers is None or len(prediction.visits) > 1:
        return None
    leaf, stood_in = answers.leaf_model(prediction.nodes), prediction.row.stood_in()
    terms = []
    for feature, cut, coefficient in leaf.terms:
        attribute = model.schema.attributes[feature]
        column = answers.column_value(feature, cut, prediction.row.values)
        value = shown_value(attribute, prediction.row.values[feature])
        categories = _categories(answers, attribute, feature, cut) if cut else None
        term = LinearTerm(attribute, categories, value, column, coefficient, coefficient * column)
        if reason := stood_in.get(attribute.name):
            term = dataclasses.replace(term, value=None, reason=reason, imputed=value)
        terms.append(term)
    smoothing = answers.smoothing(prediction.nodes, prediction.row.values) if answers.constant is not None else ()
    return LinearAnswer(leaf.intercept, tuple(terms), answers.constant, smoothing)


def equation_text(model: Model, answers: LinearAnswers, leaf: LeafModel) -> str:
    """Return a leaf's equation on one line, six significant digits a number: ``class = 11.0971 - 0.00551 × MYCT``."""
    target = one_line(model.schema.target.name) if model.schema.target is not None else ""
    parts = [f"{target} = {leaf.intercept:.6g}"]
    for feature, cut, coefficient in leaf.terms:
        attribute = model.schema.attributes[feature]
        categories = _categories(answers, attribute, feature, cut) if cut else None
        sign = "-" if coefficient < 0 else "+"
        parts.append(f"{sign} {abs(coefficient):.6g} × {_column_text(attribute, categories)}")
    return " ".join(parts)


def linear_lines(answer: LinearAnswer) -> list[str]:
    """Return the sum as text, a line a term, with the smoothing by the nodes above the leaf."""
    lines = [f"sum: {answer.intercept:.6g}"] if answer.terms else []
    for term in answer.terms:
        sign, size = "-" if term.contribution < 0 else "+", abs(term.contribution)
        column = f"{number_text(term.column)} ({_column_text(term.attribute, term.categories)})"
        column += "" if term.imputed is None else f"  (the value is {term.reason}; another stands in its place)"
        lines.append(f"  {sign} {size:.6g} = {term.coefficient:.6g} × {column}")
    for place, step in enumerate(answer.smoothing):
        node = f"node {step.node} (weight {step.weight:g}) says {step.value:.6g}"
        share = f"{step.share:.1%} of the answer"
        lines.append(f"smoothing: {node}, {share}" if place == 0 else f"  then {node}, {share}: {step.smoothed:.6g}")
    return lines


def _categories(answers: LinearAnswers, attribute: Feature, feature: int, cut: int) -> tuple[Label, ...]:
    ranks = answers.models.ranks(feature).tolist() if answers.models is not None else []
    return tuple(label for label, rank in zip(attribute.categories, ranks, strict=True) if rank >= cut)


def _column_text(attribute: Feature, categories: tuple[Label, ...] | None) -> str:
    if categories is not None:
        return f"[{condition_text(Condition(attribute, categories=categories))}]"
    return f"{COLUMN_WORDS.get(attribute.kind, '')}{one_line(attribute.name)}"
