"""Conditions on one attribute, and rules made of them.

The tests on a path through a tree can be merged into one condition per attribute: an interval, a set of categories, or
whether the value is known. A rule is a conjunction of conditions with an answer. In a list, the first that holds wins.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from espalier.data.labels import Label, label_key
from espalier.data.schema import Feature
from espalier.model.texts import condition_text, shown_bound


@dataclass(frozen=True)
class Condition:
    """A condition on one attribute.

    Attributes:
        attribute: The attribute.
        above: The value is greater than this number; -inf if there is no lower bound.
        at_most: The value is at most this number; inf if there is no upper bound.
        categories: The value is one of these, in the schema's order; None if the condition does not list categories.
        known: True if the value must be known. False if it must be missing, or a category that the schema does not
            list. None if only the other fields matter.
    """

    attribute: Feature
    above: float = -math.inf
    at_most: float = math.inf
    categories: tuple[Label, ...] | None = None
    known: bool | None = None

    @cached_property
    def text(self) -> str:
        """The condition as text, with all categories."""
        return condition_text(self)

    @property
    def codes(self) -> list[int]:
        """Codes of the categories; an empty list if the condition lists none."""
        table = self.attribute.codes
        return [table[label_key(label)] for label in self.categories or ()]

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Return the JSON form. Bounds are categories for an ordinal attribute, and dates for a datetime attribute.

        If there are more than `most` categories, the first `most` are listed, and ``n_more`` counts the others.
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
        is_whole = most is None or len(self.categories or ()) <= most
        return {**document, "text": self.text if is_whole else condition_text(self, most)}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: if all its conditions hold, its value is the answer.

    Attributes:
        conditions: At most one per attribute; a rule without conditions holds for every row. If the value is missing,
            or a category that the schema does not list, only a condition with ``known=False`` holds.
        value: The answer: code of a class (int) or number (float).
        weight: Training weight of the rows that this rule answers.
        stats: Statistics of the training rows that this rule answers: weight of each class, or (weight, mean, sum of
            squared deviations). If the rule answers no rows, the rows for which it holds count instead. If the rule
            holds for no rows, these are the statistics of the leaf from which it was made.
        estimate: Estimated accuracy, or mean squared error of a regression. None for a path of a tree, for the default
            rule, for a rule from PMML, or if the error is infinite.
    """

    conditions: tuple[Condition, ...]
    value: int | float
    weight: float
    stats: tuple[float, ...]
    estimate: float | None = None


@dataclass(frozen=True, slots=True)
class RuleList:
    """Rules in order: the first rule that holds gives the answer, or the default if none holds.

    Attributes:
        rules: The rules; a rule's number is its index.
        default: The rule that answers if no other rule holds. It has no conditions, and its number is ``len(rules)``.
        exclusive: Whether at most one rule holds for any row, as for paths of a tree, so that the order is irrelevant.
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
        """The rules, followed by the default. The number of a rule is its index in this tuple."""
        return (*self.rules, self.default)


@dataclass(frozen=True, slots=True)
class ClassDescription:
    """The description of a class by conditions on rows without missing values.

    Attributes:
        label: The class.
        conjunctions: A row is of the class if all conditions of at least one conjunction hold.
        excluded: The conjunctions of all other classes. A row is of the class if none of these conjunctions holds.
    """

    label: Label
    conjunctions: tuple[tuple[Condition, ...], ...]
    excluded: tuple[tuple[Condition, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: the class, and two lists of lists of conditions."""
        return {
            "class": self.label,
            "any_of": [[condition.to_dict() for condition in each] for each in self.conjunctions],
            "none_of": [[condition.to_dict() for condition in each] for each in self.excluded],
        }


def listed_categories(member: str, categories: tuple[Label, ...], most: int | None) -> dict[str, Any]:
    """Return a JSON object that lists the first `most` categories (None: all) as `member`; ``n_more`` counts others."""
    n_more = 0 if most is None else max(0, len(categories) - most)
    return {member: list(categories[:most]), **({"n_more": n_more} if n_more else {})}
