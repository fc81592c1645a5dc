"""Conditions on one attribute, rules made of them, and their text.

A path through a tree is a list of tests; merged, it is one condition per attribute: an interval, a set of categories,
or known against missing. A rule is a conjunction of such conditions with an answer; the first rule of a list that fires
answers.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from unicodedata import category

from espalier.data.instants import latest_instant_text
from espalier.data.labels import Label, label_key, label_text
from espalier.data.schema import Feature, FeatureKind

LINE_BREAKERS: Final = frozenset({"Cc", "Zl", "Zp"})
"""Unicode categories of line ends and of control characters."""
TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the rest of a line."""
PARTING: Final = re.compile(r'^$|^[\s"]|\s$| (?:or|and|then|is|<|≤|>|=) |[∧∨¬⇔→∈{}]')
"""Parts of a sentence that a name or a category must not be mistaken for."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one attribute.

    Attributes:
        attribute: Its name.
        above: The value is greater than this; -inf where there is no lower bound.
        at_most: The value is at most this; inf where there is no upper bound.
        categories: The legal categories in the schema's order; None for an attribute with thresholds.
        known: True: the value must be known; False: it must be missing; None: it may be missing or known.
    """

    attribute: Feature
    above: float = -math.inf
    at_most: float = math.inf
    categories: tuple[Label, ...] | None = None
    known: bool | None = None

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Return the JSON form; bounds of an ordinal attribute are categories, those of a datetime dates.

        `most`: limit on the categories that are listed; ``n_more`` counts the others.
        """
        document: dict[str, Any] = {"attribute": self.attribute.name}
        if self.categories is not None:
            document |= listed_categories("in", self.categories, most)
        if self.above > -math.inf:
            document["above"] = shown_bound(self.attribute, self.above)
        if self.at_most < math.inf:
            document["at_most"] = shown_bound(self.attribute, self.at_most)
        if self.known is not None:
            document["known"] = self.known
        return {**document, "text": condition_text(self, most)}


class LabelCodes:
    """The codes of categories, for many conditions; the table of each attribute is made on first use.

    >>> colour = Feature("colour", FeatureKind.NOMINAL, categories=("red", "green", 1))
    >>> LabelCodes().listed(Condition(colour, categories=(1, "red")))
    [2, 0]
    """

    def __init__(self) -> None:
        self._tables: dict[str, Mapping[tuple[str, Label], int]] = {}

    def listed(self, condition: Condition) -> list[int]:
        """Return the codes of a condition's categories; none where it has no set of them."""
        if not condition.categories:
            return []
        codes = self.of(condition.attribute)
        return [codes[label_key(label)] for label in condition.categories]

    def of(self, feature: Feature) -> Mapping[tuple[str, Label], int]:
        """Return the code of each category of an attribute, by `label_key`; attributes are known by their names."""
        if feature.name not in self._tables:
            self._tables[feature.name] = {label_key(label): code for code, label in enumerate(feature.categories)}
        return self._tables[feature.name]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: if all conditions hold, the answer is the value.

    Attributes:
        conditions: At most one per attribute; without any it holds for every row. A condition on a missing value,
            or on a category that the schema does not list, holds only if it is a condition on missing values.
        value: The answer: code of a class (int) or number (float).
        weight: Training weight of the rows that this rule answers.
        stats: Statistics of those rows: weight of each class, or (weight, mean, sum of squared deviations). If there
            are no such rows, those of the rows that it holds for; if there are none either, those of its leaf.
        estimate: The estimate that its place in the list depends on; None for a path of a tree.
    """

    conditions: tuple[Condition, ...]
    value: int | float
    weight: float
    stats: tuple[float, ...]
    estimate: float | None = None


@dataclass(frozen=True, slots=True)
class RuleList:
    """Rules in order: the first rule that holds answers, or the default if none does.

    Attributes:
        rules: The rules; a rule's number is its place.
        default: The answer where no rule holds; it has no conditions, and its number is ``len(rules)``.
        exclusive: Whether at most one rule holds for any row, as with the paths of a tree; then their order does not
            matter.
    """

    rules: tuple[Rule, ...]
    default: Rule
    exclusive: bool

    @property
    def n_rules(self) -> int:
        """Number of rules, the default not counted."""
        return len(self.rules)

    @property
    def n_conditions(self) -> int:
        """Number of conditions of all rules together."""
        return sum(len(rule.conditions) for rule in self.rules)

    @property
    def answers(self) -> tuple[Rule, ...]:
        """The rules and, last, the default: each at its number."""
        return (*self.rules, self.default)


@dataclass(frozen=True, slots=True)
class ClassDescription:
    """The description of a class, as conditions on rows without missing values.

    Attributes:
        label: The class.
        conjunctions: It is of the class where all conditions of any of these hold.
        excluded: The same of all other classes together: it is of the class where none of these holds.
    """

    label: Label
    conjunctions: tuple[tuple[Condition, ...], ...]
    excluded: tuple[tuple[Condition, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: lists of lists of conditions."""
        return {
            "class": self.label,
            "any_of": [[condition.to_dict() for condition in each] for each in self.conjunctions],
            "none_of": [[condition.to_dict() for condition in each] for each in self.excluded],
        }


def listed_categories(member: str, categories: tuple[Label, ...], most: int | None) -> dict[str, Any]:
    """Return at most `most` categories as a member of a JSON object, and how many more there are as ``n_more``."""
    n_more = 0 if most is None else max(0, len(categories) - most)
    return {member: list(categories[:most]), **({"n_more": n_more} if n_more else {})}


def condition_text(condition: Condition, most: int | None = None) -> str:
    """Return a condition as text: ``2.45 < petal length ≤ 4.95``, ``Outlook is Sunny or Rain``.

    `most`: limit on the categories that are named; the text counts the others.
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


def format_rule(conditions: tuple[Condition, ...], answer: str) -> str:
    """Return a rule as text: ``if Outlook is Sunny and Humidity is High then No``."""
    if not conditions:
        return f"always {answer}"
    return f"if {' and '.join(condition_text(condition) for condition in conditions)} then {answer}"


def one_line(text: str) -> str:
    r"""Return text with control characters and line ends as escapes: it must not start a line or turn the direction.

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
    """Return the name of an attribute for a sentence; see `category_text`."""
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
    """Return the shortest text that means exactly this number, so that the printed rule is the rule that is applied.

    >>> number_text(14.6155), number_text(3.0), number_text(14.838999999999999)
    ('14.6155', '3', '14.838999999999999')
    """
    return repr(float(value)).removesuffix(".0")


def share_text(share: float) -> str:
    """Return a share with four significant digits, or as many as distinguish it from 0 and 1.

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
    return number_text(shown) if isinstance(shown, float) else label_line(shown)
