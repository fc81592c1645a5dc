"""Conditions and rules as text for people."""

import math
from typing import TYPE_CHECKING

from espalier.model.name_texts import category_text, name_text
from espalier.model.number_texts import bound_text

if TYPE_CHECKING:
    from espalier.model.rules import Condition


def condition_text(condition: "Condition", most: int | None = None) -> str:
    """Return a condition as text: ``2.45 < petal length ≤ 4.95``, ``Outlook is Sunny or Rain``.

    If there are more than `most` categories, the text names the first `most` and counts the others.
    """
    name = name_text(condition.attribute)
    if condition.known is False:
        return f"{name} is missing"
    if condition.categories is not None:
        n_more = 0 if most is None else len(condition.categories) - most
        others = [f"one of {n_more:,} more"] if n_more > 0 else []
        return f"{name} is {' or '.join([*map(category_text, condition.categories[:most]), *others])}"
    low = bound_text(condition.attribute, condition.above) if condition.above > -math.inf else ""
    high = bound_text(condition.attribute, condition.at_most) if condition.at_most < math.inf else ""
    if low and high:
        return f"{low} < {name} ≤ {high}"
    if high:
        return f"{name} ≤ {high}"
    return f"{name} > {low}" if low else f"{name} is known"


def format_rule(conditions: tuple["Condition", ...], answer: str) -> str:
    """Return a rule as text: ``if Outlook is Sunny and Humidity is High then No``; ``always No`` without conditions."""
    if not conditions:
        return f"always {answer}"
    return f"if {' and '.join(condition_text(condition) for condition in conditions)} then {answer}"
