"""Steps of an explanation: one test each, with the row's own value, and how it reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from espalier.data.labels import Label, instant_text
from espalier.data.schema import Feature, FeatureKind
from espalier.model.rules import Condition, condition_text, label_line, name_text, number_text
from espalier.prediction.encode_rows import EncodedRow


@dataclass(frozen=True, slots=True)
class StandIn:
    """A surrogate test that took the place of a node's own (Breiman et al. 1984, chapter 5).

    Attributes:
        attribute: What it looks at.
        test: ``<=`` or ``in``.
        threshold: Of a ``<=`` test, as it is shown; None otherwise.
        categories: Of an ``in`` test: those that go the way that was taken; None otherwise.
        value: The row's own value.
        branch: Whether the test held: ``yes`` or ``no``. An ``in`` test is worded so that it held.
    """

    attribute: Feature
    test: str
    threshold: Label | None
    categories: tuple[Label, ...] | None
    value: Label
    branch: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        bounds = {"threshold": self.threshold} if self.categories is None else {"set": list(self.categories)}
        named = {"attribute": self.attribute.name, "test": self.test}
        return {**named, **bounds, "value": self.value, "branch": self.branch}


class DecisionStep(NamedTuple):
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
        surrogate: The test that decided where the row's own value could not; None where none did.
        imputed: The value that stood in for the row's own, by ``missing="imputed"``; None where none did.
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
    surrogate: StandIn | None = None
    imputed: Label | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        document: dict[str, Any] = {"node": self.node, "attribute": self.attribute.name, "test": self.test}
        if self.categories is not None:
            document["set"] = list(self.categories)
        if self.threshold is not None:
            document["threshold"] = self.threshold
        document |= {"value": self.value, "branch": self.branch}
        if self.reason != "value":
            document["reason"] = self.reason
        if self.surrogate is not None:
            document["surrogate"] = self.surrogate.to_dict()
        if self.imputed is not None:
            document["imputed"] = self.imputed
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
        imputed: The value that stood in for the row's own and does not fit; None where none did.
    """

    number: int
    rule: str
    failed: Condition
    value: Label | None
    reason: str
    imputed: Label | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        document = {"number": self.number, "rule": self.rule, "failed": self.failed.to_dict(), "value": self.value}
        stood_in = {} if self.imputed is None else {"imputed": self.imputed}
        return document if self.reason == "value" else {**document, "reason": self.reason, **stood_in}


def step_text(step: DecisionStep) -> str:
    """Write a step as a person would, with the row's value."""
    test = _test_text(step)
    if step.surrogate is not None:
        other = _test_text(step.surrogate)
        return f"{test}  (the value is {step.reason}; in its place {other}: it is {_label_text(step.surrogate.value)})"
    if step.imputed is not None:
        return f"{test}  (the value is {step.reason}; in its place stands {_label_text(step.imputed)})"
    if step.reason != "value":
        return f"{test}  (taken because the value is {step.reason})"
    return f"{test}  ({value_text(step)})"


def value_text(step: DecisionStep) -> str:
    """Say what the row has: ``it is 85``, ``it is missing``."""
    return f"it is {_label_text(step.value) if step.reason == 'value' else step.reason}"


def _test_text(step: DecisionStep | StandIn) -> str:
    if step.test == "<=" and step.threshold is not None:
        sign = "≤" if step.branch == "yes" else ">"
        return f"{name_text(step.attribute)} {sign} {_label_text(step.threshold)}"
    if step.categories is not None:
        return condition_text(Condition(step.attribute, categories=step.categories))
    return f"{name_text(step.attribute)} is {'known' if step.branch == 'yes' else 'missing'}"


def _label_text(value: Label | None) -> str:
    return number_text(value) if isinstance(value, float) else label_line(value if value is not None else "")


def passed_over_text(rule: PassedOver) -> str:
    """Write why a rule did not fire: ``rule 2, if … (it is 3.5, which is not: length ≤ 1.5)``."""
    found = f"it is {_label_text(rule.value)}" if rule.reason == "value" else f"it is {rule.reason}"
    if rule.imputed is not None:
        found += f"; in its place stands {_label_text(rule.imputed)}"
    return f"rule {rule.number}, {rule.rule}: {condition_text(rule.failed)} does not hold ({found})"


def step_reason(feature: Feature, value: float, *, absent: bool, known_here: bool) -> str:
    """Say why a branch was taken: by the value, or without one."""
    if absent:
        return "unseen" if feature.coded and value < -1 else "missing"
    return "value" if known_here else "unseen"


def own_values(steps: tuple[DecisionStep, ...], row: EncodedRow) -> tuple[DecisionStep, ...]:
    """Tell the row's own values from those that stood in for them (``missing="imputed"``): a row holds both alike."""
    if not row.missing and not row.unseen:
        return steps
    reason = row.stood_in()
    return tuple(
        step._replace(value=None, imputed=step.value, reason=reason[step.attribute.name], margin=None)
        if step.attribute.name in reason and step.value is not None
        else step
        for step in steps
    )


def shown_value(feature: Feature, value: float) -> Label:
    """Return a known value as people write it: a category, a number or a date."""
    if feature.coded:
        return feature.categories[int(value)]
    return instant_text(value) if feature.kind is FeatureKind.DATETIME else value
