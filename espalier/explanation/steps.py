"""Steps of an explanation and their texts. Each step is one test with the row's value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from espalier.data.instants import instant_text
from espalier.data.labels import Label
from espalier.data.schema import Feature, FeatureKind
from espalier.model.rules import Condition, listed_categories
from espalier.model.texts import category_text, condition_text, name_text, number_text
from espalier.prediction.encode_rows import MAX_FLOAT, EncodedRow


@dataclass(frozen=True, slots=True)
class StandIn:
    """A surrogate test that replaced a node's test (Breiman et al. 1984, chapter 5).

    Attributes:
        attribute: The tested attribute.
        test: ``<=`` or ``in``.
        threshold: Threshold of a ``<=`` test, as shown to people; None otherwise.
        categories: Categories of the branch that an ``in`` test took; None otherwise.
        value: The row's value.
        branch: Whether the test held: ``yes`` or ``no``; always ``yes`` for an ``in`` test.
    """

    attribute: Feature
    test: str
    threshold: Label | None
    categories: tuple[Label, ...] | None
    value: Label
    branch: str

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Return the JSON form; `most` as in `DecisionStep.to_dict`."""
        named = {"attribute": self.attribute.name, "test": self.test}
        if self.categories is None:
            bounds = {"threshold": self.threshold}
        else:
            bounds = listed_categories("set", self.categories, most)
        return {**named, **bounds, "value": self.value, "branch": self.branch}


class DecisionStep(NamedTuple):
    """One test on the path of a tree, or one condition of the rule that fired.

    Attributes:
        node: Number of the node with the test, or of the rule.
        attribute: The tested attribute.
        test: ``<=``, ``in`` or ``known``.
        threshold: Threshold of a ``<=`` test, as shown to people; None otherwise.
        categories: Categories of the branch that an ``in`` test took; None otherwise.
        value: The row's value; None if it is missing, or a category that the schema does not list.
        branch: Whether the test held: ``yes`` or ``no``; always ``yes`` for an ``in`` test.
        reason: ``value`` if the value decided; else ``missing``, or ``unseen`` if no training row had it at this test.
        margin: Distance of the value from the threshold, at least 0; None without a threshold or a known value.
        weight: Weight of the training rows at the node, or of those that the rule answers.
        distribution: Share of each class among these rows; None for a regression.
        mean: Mean target of these rows; None for a classification.
        surrogate: The surrogate test that decided in place of this test; None otherwise.
        imputed: The value that replaced a missing or unseen one (``missing="imputed"``); None otherwise.
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

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Return the JSON form, in which a margin is at most the largest double.

        `most` limits the listed categories of a test (None: no limit); ``n_more`` counts the others.
        """
        document: dict[str, Any] = {"node": self.node, "attribute": self.attribute.name, "test": self.test}
        if self.categories is not None:
            document |= listed_categories("set", self.categories, most)
        if self.threshold is not None:
            document["threshold"] = self.threshold
        document |= {"value": self.value, "branch": self.branch}
        if self.reason != "value":
            document["reason"] = self.reason
        if self.surrogate is not None:
            document["surrogate"] = self.surrogate.to_dict(most)
        if self.imputed is not None:
            document["imputed"] = self.imputed
        if self.margin is not None:
            document["margin"] = min(self.margin, MAX_FLOAT)
        document["weight"] = self.weight
        return {
            **document,
            **({"mean": self.mean} if self.distribution is None else {"distribution": dict(self.distribution)}),
        }


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A rule that does not hold for the row: its number, its text, and why it does not hold.

    Attributes:
        failed: The first of its conditions that does not hold.
        value: The row's value of the attribute of `failed`; None if it is missing or unseen.
        reason: ``value``, or why the row has no value: ``missing`` or ``unseen``.
        imputed: The value that replaced a missing or unseen one; None otherwise.
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
    """Return a step as a sentence, with the row's value."""
    test = _test_text(step)
    if step.surrogate is not None:
        other = _test_text(step.surrogate)
        return f"{test}  (the value is {step.reason}; in its place {other}: it is {shown_text(step.surrogate.value)})"
    if step.imputed is not None:
        return f"{test}  (the value is {step.reason}; replaced by {shown_text(step.imputed)})"
    if step.reason != "value":
        return f"{test}  (taken because the value is {step.reason})"
    return f"{test}  ({value_text(step)})"


def value_text(step: DecisionStep) -> str:
    """Return the row's value as a sentence: ``it is 85``, ``it is missing``."""
    return f"it is {shown_text(step.value) if step.reason == 'value' else step.reason}"


def _test_text(step: DecisionStep | StandIn) -> str:
    if step.test == "<=" and step.threshold is not None:
        sign = "≤" if step.branch == "yes" else ">"
        return f"{name_text(step.attribute)} {sign} {shown_text(step.threshold)}"
    if step.categories is not None:
        return condition_text(Condition(step.attribute, categories=step.categories))
    return f"{name_text(step.attribute)} is {'known' if step.branch == 'yes' else 'missing'}"


def shown_text(value: Label | None) -> str:
    """Return the text of a value of a row, on one line."""
    return number_text(value) if isinstance(value, float) else category_text(value if value is not None else "")


def passed_over_text(rule: PassedOver) -> str:
    """Return why a rule did not fire: ``rule 2, if …: length ≤ 1.5 does not hold (it is 3.5)``."""
    reason = f"it is {shown_text(rule.value)}" if rule.reason == "value" else f"it is {rule.reason}"
    if rule.imputed is not None:
        reason += f"; replaced by {shown_text(rule.imputed)}"
    return f"rule {rule.number}, {rule.rule}: {condition_text(rule.failed)} does not hold ({reason})"


def step_reason(feature: Feature, value: float, *, absent: bool, known_here: bool) -> str:
    """Return ``value`` if the value decides which branch is taken; else the reason, ``missing`` or ``unseen``.

    `absent`: whether there is no known value. `known_here`: whether training rows with this value reached the test.
    """
    if absent:
        return "unseen" if feature.coded and value < -1 else "missing"
    return "value" if known_here else "unseen"


def own_values(steps: tuple[DecisionStep, ...], row: EncodedRow) -> tuple[DecisionStep, ...]:
    """Return the steps, with imputed values moved from `value` to `imputed`.

    Only `row` shows which values are imputed. A step with an imputed value gets the reason ``missing`` or ``unseen``,
    and its margin becomes None.
    """
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
    """Return a known encoded value as shown to people: a category, a number or a date."""
    if feature.coded:
        return feature.categories[int(value)]
    return instant_text(value) if feature.kind is FeatureKind.DATETIME else value
