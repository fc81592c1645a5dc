"""The equation of a linear leaf as text."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from espalier.data.instants import instant_text
from espalier.data.labels import Label
from espalier.data.schema import Feature, FeatureKind
from espalier.explanation.linear_terms import categories_of
from espalier.model.linear import MAX_VALUE
from espalier.model.model import Model
from espalier.model.rules import Condition
from espalier.model.texts import condition_text, number_text, one_line
from espalier.prediction.linear_leaves import LinearAnswers

COLUMN_WORDS: Final[Mapping[FeatureKind, str]] = {FeatureKind.ORDINAL: "place of ", FeatureKind.DATETIME: "seconds of "}
"""Words before the name of an attribute whose values are not numbers."""
MIN_DIGITS: Final = 6
RELATIVE_ERROR: Final = 1e-6
"""Largest error that the rounding of printed numbers may cause, relative to the sum of the terms' ranges."""
MAX_RATIO: Final = 1e3
"""An attribute is centred if its largest absolute value may exceed its range multiplied by this."""
TINY: Final = 1e-300


def equation_text(model: Model, answers: LinearAnswers, node: int) -> str:
    """Return a leaf's equation on one line: ``class = 11.0971 - 0.00551 × MYCT``.

    The numbers are rounded. Within the range of the training values, rounding changes the result by at most about a
    millionth of the sum of the terms' ranges. Without terms, the limit is a millionth of the constant. An attribute is
    centred if its values are far from 0 compared with their range: ``× (time - 1.7e+09)``.
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
        column: The printed text of (column - centre).
        centre: The number subtracted from the column; 0 if there is none.
        span: Approximate range of the column in training; 0 if unknown.
        reach: The training values of the column are at most this far from the centre; inf if unknown.
    """

    coefficient: float
    column: str
    centre: float
    span: float
    reach: float


def _printed_term(model: Model, answers: LinearAnswers, feature: int, cut: int, coefficient: float) -> _PrintedTerm:
    attribute = model.schema.attributes[feature]
    categories = categories_of(answers, attribute, feature, cut) if cut else None
    column = column_text(attribute, categories)
    if categories is not None:
        return _PrintedTerm(coefficient, column, 0.0, 1.0, 1.0)
    if attribute.kind is FeatureKind.ORDINAL:
        n_places = float(len(attribute.categories))
        return _PrintedTerm(coefficient, column, 0.0, n_places, n_places)
    scales = model.preparation.scales
    scale = None if scales is None else scales[feature]
    farthest = math.inf if scale is None else abs(scale.middle) + scale.span
    if scale is None or farthest > MAX_VALUE:  # the leaf clips the values, so a centre would be wrong
        return _PrintedTerm(coefficient, column, 0.0, 0.0, math.inf)
    if farthest <= MAX_RATIO * scale.span:
        return _PrintedTerm(coefficient, column, 0.0, scale.span, farthest)
    if attribute.kind is FeatureKind.DATETIME:
        column = f"(seconds from {instant_text(scale.middle)} to {one_line(attribute.name)})"
    else:
        column = f"({column} {'-' if scale.middle > 0 else '+'} {number_text(abs(scale.middle))})"
    return _PrintedTerm(coefficient, column, scale.middle, scale.span, scale.span)


def _rounded(value: float, tolerance: float) -> str:
    for digits in range(MIN_DIGITS, 17):
        text = f"{value:.{digits}g}"
        if abs(float(text) - value) <= tolerance:
            return text
    return number_text(value)


def column_text(attribute: Feature, categories: tuple[Label, ...] | None) -> str:
    """Return the text of a term's column: the attribute, or the condition that its category is in `categories`."""
    if categories is not None:
        return f"[{condition_text(Condition(attribute, categories=categories))}]"
    return f"{COLUMN_WORDS.get(attribute.kind, '')}{one_line(attribute.name)}"
