"""The answers of nodes and rules in PMML: a class with the weights of all classes, or a number."""

import math
from dataclasses import dataclass
from typing import Final

from espalier.data.number_parsing import number_from_text
from espalier.importing.pmml_fields import Field
from espalier.importing.xml_elements import Element
from espalier.model.linear import MAX_VALUE
from espalier.model.tree import MAX_AMOUNT

SAME_SHARE: Final = 1e-15
"""A probability agrees with a count if it differs from the count's share of all counts by at most this."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a node or rule.

    Attributes:
        value: The code of a class, or a number.
        weights: Weight of each class that has a weight, keyed by the class code; empty for a number. If only a class is
            given, its weight is the count of rows, or 1 if the count is absent or 0. The class has the whole share.
        weight: Weight of all rows together.
        has_shares: False if the document gives only a class, without the shares of the classes.
    """

    value: float
    weights: dict[int, float]
    weight: float
    has_shares: bool = True

    def stats(self, n_classes: int) -> list[float]:
        """Return the row of statistics: the weight of each class, or for a regression (weight, value, 0)."""
        if not n_classes:
            return [self.weight, self.value, 0.0]
        return [self.weights.get(code, 0.0) for code in range(n_classes)]


def read_answer(element: Element, target: Field) -> Answer | None:
    """Return the answer of a node or rule; None if it has no score and gives no class a weight.

    Raises:
        DocumentError: A score, a count or a probability is not legal.
    """
    score, weight = element.get("score"), _amount(element, "recordCount")
    if not target.is_category:
        if score is None:
            return None
        value = target.number(score, element)
        if abs(value) > MAX_VALUE:
            raise element.refused(f"a score must be between ±{MAX_VALUE:g}")
        return Answer(value, {}, 1.0 if weight is None else weight)
    weights = _weights(element, target, weight)
    if score is None and not weights:
        return None
    code = max(weights, key=lambda each: weights[each]) if score is None else target.code(score, element)
    if weights:
        return Answer(code, weights, math.fsum(weights.values()))
    amount = weight or 1.0  # without any weight, the leaf would have the shares of a node above it
    return Answer(code, {code: amount}, amount, has_shares=False)


def _weights(element: Element, target: Field, weight: float | None) -> dict[int, float]:
    """Return the weight of each class, by code; empty if the element gives no class a weight.

    The weight is the class's recordCount. If there are probabilities and the counts are absent or contradict them, the
    weight is the class's probability times the sum of the counts. A sum of 0 becomes `weight` if above 0, else 1.
    """
    listed = list(element.all("ScoreDistribution"))
    codes = [target.code(each.get("value") or "", each) for each in listed]
    counts = [_amount(each, "recordCount") or 0.0 for each in listed]
    shares = [_amount(each, "probability") for each in listed]
    if len(set(codes)) < len(codes):
        raise element.refused("lists a class twice")
    total = math.fsum(counts)
    given = [share for share in shares if share is not None]
    if given and len(given) < len(listed):
        raise element.refused("gives the probability of some classes only")
    same = total > 0 and all(
        abs(share - count / total) <= SAME_SHARE for share, count in zip(given, counts, strict=False)
    )
    if given and not same:
        if not math.fsum(given) > 0:
            raise element.refused("the probabilities must not all be 0")
        counts = [share * (total or weight or 1.0) for share in given]
    return dict(zip(codes, counts, strict=True)) if math.fsum(counts) > 0 else {}


def _amount(element: Element, name: str) -> float | None:
    text = element.get(name)
    if text is None:
        return None
    value = number_from_text(text)
    if value is None or not 0 <= value <= MAX_AMOUNT:
        raise element.refused(f"{name} must be a number from 0 to {MAX_AMOUNT:g}")
    return value
