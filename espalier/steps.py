"""Steps of an explanation: one test each, with the row's own value, and how it reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from espalier.rules import Condition, condition_text, label_line, number_text, one_line
from espalier.schema import Feature, FeatureKind, Label, instant_text

__all__ = ["DecisionStep", "PassedOver", "passed_over_text", "shown_value", "step_reason", "step_text"]


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """One test on the way down.

    Attributes:
        node: Its number in the tree.
        attribute: What is tested.
        test: ``<=``, ``in`` or ``known``.
        threshold: Of a ``<=`` test, as it is shown; None otherwise.
        categories: Of an ``in`` test: the categories of the branch that was taken; None otherwise.
        value: The row's own value; None where it is missing.
        branch: Whether the test held: ``yes`` or ``no``. An ``in`` test is worded so that it held.
        reason: ``value``, or why the branch was taken without one: ``missing``, ``unseen``.
        margin: Distance of the value from the threshold, at least 0; None without both.
        weight: Training weight at the node.
        distribution: Share of each class among the training rows at the node; None for a regression.
        mean: Of the training rows at the node; None for a classification.
    """

    node: int
    attribute: Feature
    test: str
    threshold: Label | None
    categories: tuple[Label, ...] | None
    value: Label | None
    branch: str
    reason: str
    margin: float | None
    weight: float
    distribution: Mapping[str, float] | None
    mean: float | None

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        document: dict[str, Any] = {"node": self.node, "attribute": self.attribute.name, "test": self.test}
        if self.categories is not None:
            document["set"] = list(self.categories)
        if self.threshold is not None:
            document["threshold"] = self.threshold
        document |= {"value": self.value, "branch": self.branch}
        if self.reason != "value":
            document["reason"] = self.reason
        if self.margin is not None:
            document["margin"] = self.margin
        document["weight"] = self.weight
        return {
            **document,
            **({"mean": self.mean} if self.distribution is None else {"distribution": dict(self.distribution)}),
        }


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A rule that does not hold for the row.

    Attributes:
        number: Its place in the list.
        rule: The rule as a sentence.
        failed: The first of its conditions that does not hold.
        value: The row's own value of that attribute; None where it is missing.
        reason: ``value``, or why the condition does not hold without one: ``missing``, ``unseen``.
    """

    number: int
    rule: str
    failed: Condition
    value: Label | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        document = {"number": self.number, "rule": self.rule, "failed": self.failed.to_dict(), "value": self.value}
        return document if self.reason == "value" else {**document, "reason": self.reason}


def step_text(step: DecisionStep) -> str:
    """Write a step as a person would, with the row's value."""
    if step.test == "<=" and step.threshold is not None:
        bound = number_text(step.threshold) if isinstance(step.threshold, float) else label_line(step.threshold)
        test = f"{one_line(step.attribute.name)} {'≤' if step.branch == 'yes' else '>'} {bound}"
    elif step.categories is not None:
        test = condition_text(Condition(step.attribute, categories=step.categories))
    else:
        test = f"{one_line(step.attribute.name)} is {'known' if step.branch == 'yes' else 'missing'}"
    if step.reason != "value":
        return f"{test}  (taken because the value is {step.reason})"
    value = step.value
    shown = number_text(value) if isinstance(value, float) else label_line(value if value is not None else "")
    return f"{test}  (it is {shown})"


def passed_over_text(rule: PassedOver) -> str:
    """Write why a rule did not fire: ``rule 2, if … (it is 3.5, which is not: length ≤ 1.5)``."""
    number = rule.value
    shown = number_text(number) if isinstance(number, float) else label_line(number if number is not None else "")
    found = f"it is {shown}" if rule.reason == "value" else f"it is {rule.reason}"
    return f"rule {rule.number}, {rule.rule}: {condition_text(rule.failed)} does not hold ({found})"


def step_reason(feature: Feature, value: float, *, absent: bool, known_here: bool) -> str:
    """Say why a branch was taken: by the value, or without one."""
    if absent:
        return "unseen" if feature.coded and value < -1 else "missing"
    return "value" if known_here else "unseen"


def shown_value(feature: Feature, value: float) -> Label:
    """Give a known value as people write it: a category, a number or a date."""
    if feature.coded:
        return feature.categories[int(value)]
    return instant_text(value) if feature.kind is FeatureKind.DATETIME else value
