"""Conditions on one attribute, and how they read.

A path through a tree is a list of tests; merged, it is one condition an attribute: an interval, a set of categories, or
known against missing.
"""

import math
from dataclasses import dataclass
from typing import Any, Final
from unicodedata import category

from espalier.schema import Feature, FeatureKind, Label, instant_text, label_text

__all__ = ["Condition", "number_text", "sentence"]

LINE_BREAKERS: Final = frozenset({"Cc", "Zl", "Zp"})
"""Unicode categories of what ends a line or drives a terminal."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of one attribute.

    Attributes:
        attribute: Its name.
        above: The value is greater than this; -inf where there is no lower bound.
        at_most: The value is at most this; inf where there is no upper bound.
        categories: The legal categories in the schema's order; None for an attribute that is cut.
        known: True: the value must be known; False: it must be missing; None: nothing is said.
    """

    attribute: Feature
    above: float = -math.inf
    at_most: float = math.inf
    categories: tuple[Label, ...] | None = None
    known: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form; bounds of an ordinal attribute are categories, those of a datetime dates."""
        document: dict[str, Any] = {"attribute": self.attribute.name}
        if self.categories is not None:
            document["in"] = list(self.categories)
        if self.above > -math.inf:
            document["above"] = shown_bound(self.attribute, self.above)
        if self.at_most < math.inf:
            document["at_most"] = shown_bound(self.attribute, self.at_most)
        if self.known is not None:
            document["known"] = self.known
        return {**document, "text": condition_text(self)}


def condition_text(condition: Condition) -> str:
    """Write a condition as a person would: ``2.45 < petal length ≤ 4.95``, ``Outlook is Sunny or Rain``."""
    name = one_line(condition.attribute.name)
    if condition.known is False:
        return f"{name} is missing"
    if condition.categories is not None:
        return f"{name} is {' or '.join(label_line(label) for label in condition.categories)}"
    low = bound_text(condition.attribute, condition.above) if condition.above > -math.inf else ""
    high = bound_text(condition.attribute, condition.at_most) if condition.at_most < math.inf else ""
    if low and high:
        return f"{low} < {name} ≤ {high}"
    if high:
        return f"{name} ≤ {high}"
    return f"{name} > {low}" if low else f"{name} is known"


def sentence(conditions: tuple[Condition, ...], answer: str) -> str:
    """Write a rule: ``if Outlook is Sunny and Humidity is High then No``."""
    if not conditions:
        return f"always {answer}"
    return f"if {' and '.join(condition_text(condition) for condition in conditions)} then {answer}"


def one_line(text: str) -> str:
    r"""Write control characters and line ends as escapes: a name must not begin a line of its own.

    >>> print(one_line("cost\nif always then yes"))
    cost\nif always then yes
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode() if category(character) in LINE_BREAKERS else character
        for character in text
    )


def label_line(label: Label) -> str:
    """Write a label on one line; see `one_line`."""
    return one_line(label_text(label))


def number_text(value: float) -> str:
    """Write a number for a person, at most ten significant digits; JSON carries the exact one.

    >>> number_text(14.6155), number_text(3.0), number_text(14.838999999999999)
    ('14.6155', '3', '14.839')
    """
    return f"{value:.10g}"


def shown_bound(feature: Feature, bound: float) -> Label:
    """Give a threshold as it is shown: a number, the last category at or below it, or a date."""
    if feature.kind is FeatureKind.ORDINAL:
        return feature.categories[max(0, min(math.floor(bound), len(feature.categories) - 1))]
    if feature.kind is FeatureKind.DATETIME:
        return instant_text(bound)
    return bound


def bound_text(feature: Feature, bound: float) -> str:
    """Write a threshold as it is shown."""
    shown = shown_bound(feature, bound)
    return number_text(shown) if isinstance(shown, float) else label_line(shown)
