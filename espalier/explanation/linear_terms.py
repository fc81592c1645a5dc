"""The equation of a linear leaf, the terms of one row, and the smoothing by the nodes above."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from espalier.data.instants import instant_text
from espalier.data.labels import Label
from espalier.data.schema import Feature, FeatureKind
from espalier.explanation.steps import shown_value
from espalier.model.condition_texts import condition_text
from espalier.model.model import Model
from espalier.model.name_texts import one_line
from espalier.model.number_texts import number_text
from espalier.model.rules import Condition
from espalier.prediction.answers import Prediction
from espalier.prediction.linear_leaves import LinearAnswers, SmoothingStep

COLUMN_WORDS: Final[Mapping[FeatureKind, str]] = {FeatureKind.ORDINAL: "place of ", FeatureKind.DATETIME: "seconds of "}
"""Words before the name of an attribute whose values are not numbers."""
MIN_DIGITS: Final = 6
RELATIVE_ERROR: Final = 1e-6
"""Largest error of an equation that is evaluated with its printed numbers, relative to the range of its terms."""
MAX_RATIO: Final = 1e3
"""An attribute is centred if its largest absolute value exceeds its range times this."""
TINY: Final = 1e-300


@dataclass(frozen=True, slots=True)
class LinearTerm:
    """One term of the leaf's equation, for one row.

    Attributes:
        categories: For a nominal attribute: the term counts if the category is one of these.
        value: The row's value; None if it is missing or unseen.
        column: The number that the coefficient multiplies: the value, an ordinal's code, or 1 or 0 for `categories`.
        coefficient: The coefficient after smoothing.
        reason: ``value``, or why the row has no value: ``missing``, ``unseen``.
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
    """The sum that gives a number: intercept + the contributions of the terms.

    Attributes:
        intercept: The intercept after smoothing.
        terms: The terms after smoothing; empty if leaves are constants.
        constant: The constant k of the smoothing; None without smoothing.
        smoothing: The leaf and the nodes above it, leaf first; the last ``smoothed`` is the answer. Empty without it.
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
    """Return the sum that gives the number of a row; None for unsmoothed constants, or if several leaves answer."""
    if answers is None or len(prediction.visits) > 1:
        return None
    leaf, stood_in = answers.leaf_model(prediction.leaf), prediction.row.stood_in()
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


def equation_text(model: Model, answers: LinearAnswers, node: int) -> str:
    """Return a leaf's equation on one line: ``class = 11.0971 - 0.00551 × MYCT``.

    Within the range of the training values, rounding the printed numbers changes the result by at most a millionth of
    the range of the terms. An attribute whose values are far from 0, compared with their range, is centred:
    ``× (time - 1.7e+09)``.
    """
    target = one_line(model.schema.target.name) if model.schema.target is not None else ""
    leaf = answers.leaf_model(node)
    terms = [_printed_term(model, answers, *term) for term in leaf.terms]
    constant = math.fsum([leaf.intercept, *(term.coefficient * term.centre for term in terms)])
    varies = math.fsum(abs(term.coefficient) * term.span for term in terms)
    tolerance = RELATIVE_ERROR * (varies if terms else abs(constant)) / (1 + len(terms))
    parts = [f"{target} = {_rounded(constant, tolerance)}"]
    for term in terms:
        sign = "-" if term.coefficient < 0 else "+"
        parts.append(f"{sign} {_rounded(abs(term.coefficient), tolerance / max(term.reach, TINY))} × {term.column}")
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class _PrintedTerm:
    """A term of an equation: coefficient × (column - centre).

    Attributes:
        column: The printed text of the column, with the centre.
        centre: The number subtracted from the column; 0 if there is none.
        span: Greatest minus least training value of the column; 0 if unknown.
        reach: Largest distance of a training value of the column from the centre.
    """

    coefficient: float
    column: str
    centre: float
    span: float
    reach: float


def _printed_term(model: Model, answers: LinearAnswers, feature: int, cut: int, coefficient: float) -> _PrintedTerm:
    attribute = model.schema.attributes[feature]
    categories = _categories(answers, attribute, feature, cut) if cut else None
    column = _column_text(attribute, categories)
    if categories is not None:
        return _PrintedTerm(coefficient, column, 0.0, 1.0, 1.0)
    if attribute.kind is FeatureKind.ORDINAL:
        n_places = float(len(attribute.categories))
        return _PrintedTerm(coefficient, column, 0.0, n_places, n_places)
    scales = model.preparation.scales
    scale = None if scales is None else scales[feature]
    if scale is None:
        return _PrintedTerm(coefficient, column, 0.0, 0.0, math.inf)
    farthest = abs(scale.middle) + scale.span
    if farthest <= MAX_RATIO * scale.span:
        return _PrintedTerm(coefficient, column, 0.0, scale.span, farthest)
    if attribute.kind is FeatureKind.DATETIME:
        column = f"(seconds from {instant_text(scale.middle)} to {one_line(attribute.name)})"
    else:
        column = f"({column} {'-' if scale.middle > 0 else '+'} {number_text(abs(scale.middle))})"
    return _PrintedTerm(coefficient, column, scale.middle, scale.span, scale.span)


def _rounded(value: float, tolerance: float) -> str:
    """Return a number with six significant digits, or with as many more as `tolerance` needs."""
    for digits in range(MIN_DIGITS, 17):
        text = f"{value:.{digits}g}"
        if abs(float(text) - value) <= tolerance:
            return text
    return number_text(value)


def linear_lines(answer: LinearAnswer) -> list[str]:
    """Return the sum as text: a line per term, then a line per node that smooths. Only percentages are rounded."""
    lines = [f"sum: {number_text(answer.intercept)}"] if answer.terms else []
    for term in answer.terms:
        sign, size = "-" if term.contribution < 0 else "+", number_text(abs(term.contribution))
        column = f"{number_text(term.column)} ({_column_text(term.attribute, term.categories)})"
        column += "" if term.imputed is None else f"  (the value is {term.reason}; another one replaces it)"
        lines.append(f"  {sign} {size} = {number_text(term.coefficient)} × {column}")
    for place, step in enumerate(answer.smoothing):
        node = f"node {step.node} (weight {number_text(step.weight)}) says {number_text(step.value)}"
        share = f"{step.share:.1%} of the answer"
        lines.append(
            f"smoothing: {node}, {share}" if place == 0 else f"  then {node}, {share}: {number_text(step.smoothed)}"
        )
    return lines


def _categories(answers: LinearAnswers, attribute: Feature, feature: int, cut: int) -> tuple[Label, ...]:
    ranks = answers.models.ranks(feature).tolist() if answers.models is not None else []
    return tuple(label for label, rank in zip(attribute.categories, ranks, strict=True) if rank >= cut)


def _column_text(attribute: Feature, categories: tuple[Label, ...] | None) -> str:
    if categories is not None:
        return f"[{condition_text(Condition(attribute, categories=categories))}]"
    return f"{COLUMN_WORDS.get(attribute.kind, '')}{one_line(attribute.name)}"
