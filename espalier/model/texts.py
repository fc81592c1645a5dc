"""Names, labels, numbers, conditions and rules as text for people."""

import math
import re
from typing import TYPE_CHECKING, Final
from unicodedata import category

from espalier.data.instants import latest_instant_text
from espalier.data.labels import Label, label_text
from espalier.data.schema import Feature, FeatureKind

if TYPE_CHECKING:
    from espalier.model.rules import Condition

LINE_BREAKERS: Final = frozenset({"Cc", "Zl", "Zp"})
"""Unicode categories of line ends and of control characters."""
TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the writing direction of the rest of a line."""
PARTING: Final = re.compile(r'^$|^[\s"]|\s$| (?:or|and|then|is|<|≤|>|=) |[∧∨¬⇔→∈{}]')
"""Matches a name or category that needs quotes. Without quotes, a reader could not see where it ends in a sentence."""


def one_line(text: str) -> str:
    r"""Return text with escapes for control characters, line ends, and changes of the writing direction.

    >>> print(one_line("cost\nif always then yes"))
    cost\nif always then yes
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if category(character) in LINE_BREAKERS or character in TURNING
        else character
        for character in text
    )


def label_line(label: Label) -> str:
    """Return a label on one line; see `one_line`."""
    return one_line(label_text(label))


def name_text(feature: Feature) -> str:
    """Return the name of an attribute for a sentence, in quotes if its end would not be clear."""
    return _set_apart(one_line(feature.name))


def category_text(label: Label) -> str:
    """Return a category for a sentence, in quotes if its end would not be clear.

    >>> print(category_text("Sunny"), category_text("Sunny or Rain"), category_text(""))
    Sunny "Sunny or Rain" ""
    """
    return _set_apart(label_line(label))


def _set_apart(text: str) -> str:
    return text if PARTING.search(text) is None else '"' + text.replace('"', '\\"') + '"'


def number_text(value: float) -> str:
    """Return the shortest text that is parsed as exactly this number, so that printed rules are exact.

    >>> number_text(14.6155), number_text(3.0), number_text(14.838999999999999)
    ('14.6155', '3', '14.838999999999999')
    """
    return repr(float(value)).removesuffix(".0")


def weight_text(weight: float) -> str:
    """Return a weight with at most four decimals, or with four significant digits if it would be rounded to 0."""
    text = f"{weight:.4f}".rstrip("0").rstrip(".")
    return text if text != "0" else f"{weight:.4g}"


def share_text(share: float) -> str:
    """Return a share with four significant digits, or with as many as distinguish it from 1.

    >>> share_text(2 / 3), share_text(1.0), share_text(0.99996)
    ('0.6667', '1', '0.99996')
    """
    digits = 4
    while (text := f"{share:.{digits}g}") == "1" and share != 1.0:
        digits += 1
    return text


def shown_bound(feature: Feature, bound: float) -> Label:
    """Return a threshold as shown to people: a number, the last category at or below it, or a date."""
    if feature.kind is FeatureKind.ORDINAL:
        return feature.categories[max(0, min(math.floor(bound), len(feature.categories) - 1))]
    if feature.kind is FeatureKind.DATETIME:
        return latest_instant_text(bound)
    return bound


def bound_text(feature: Feature, bound: float) -> str:
    """Return a threshold as text."""
    shown = shown_bound(feature, bound)
    return number_text(shown) if isinstance(shown, float) else category_text(shown)


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
