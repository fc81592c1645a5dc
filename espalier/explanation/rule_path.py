"""Explanations of a rule list: the rule that fired, and on request the rules before it that did not."""

from collections.abc import Iterator

from espalier.data.labels import label_text
from espalier.explanation.steps import DecisionStep, PassedOver, shown_value, step_reason
from espalier.model.model import Model
from espalier.model.rules import Condition
from espalier.model.texts import format_rule, shown_bound
from espalier.prediction.answers import Prediction, format_answer
from espalier.prediction.rule_predictor import RulePredictor, rule_predictor


def rule_sentence(model: Model, number: int) -> str:
    """Return rule `number` as a sentence; the default rule, number `n_rules`, is ``otherwise No`` or ``always No``."""
    rules, word = model.rules, format_answer(rule_predictor(model).answers[number])
    if number == rules.n_rules:
        return f"otherwise {word}" if rules.rules else f"always {word}"
    return format_rule(rules.rules[number].conditions, word)


def rule_steps(model: Model, prediction: Prediction) -> tuple[DecisionStep, ...]:
    """Return the conditions of the rule that fired as steps: two steps for an interval, none for the default rule.

    The node of a step is the rule's number. Weight, distribution and mean are those of the rows that the rule answers.
    """
    predictor, number = rule_predictor(model), prediction.leaf
    return tuple(
        step
        for condition in model.rules.answers[number].conditions
        for step in _steps(predictor, number, condition, _value(model, prediction, condition))
    )


def passed_over(model: Model, prediction: Prediction) -> tuple[PassedOver, ...]:
    """Return the rules before the one that fired, each with the first of its conditions that does not hold."""
    predictor, stood_in = rule_predictor(model), prediction.row.stood_in()
    rules_before = []
    for number in range(prediction.leaf):
        rule = model.rules.rules[number]
        failed = rule.conditions[predictor.failed(number, prediction.row.values)]
        value = _value(model, prediction, failed)
        absent = value != value or (failed.attribute.coded and value < 0)  # noqa: PLR0124 - NaN
        reason = step_reason(failed.attribute, value, absent=absent, known_here=True)
        shown, imputed = None if absent else shown_value(failed.attribute, value), None
        if failed.attribute.name in stood_in:
            shown, imputed, reason = None, shown, stood_in[failed.attribute.name]
        rules_before.append(PassedOver(number, rule_sentence(model, number), failed, shown, reason, imputed))
    return tuple(rules_before)


def looked_at(model: Model, prediction: Prediction) -> list[int]:
    """Return the indexes of the attributes that were read until a rule fired, in the order of reading, each once."""
    predictor, places = rule_predictor(model), dict[int, None]()
    for number in range(min(prediction.leaf + 1, model.rules.n_rules)):
        conditions, failed = model.rules.rules[number].conditions, predictor.failed(number, prediction.row.values)
        seen = conditions if failed < 0 else conditions[: failed + 1]
        places |= dict.fromkeys(predictor.place[condition.attribute.name] for condition in seen)
    return list(places)


def _value(model: Model, prediction: Prediction, condition: Condition) -> float:
    return prediction.row.values[rule_predictor(model).place[condition.attribute.name]]


def _steps(predictor: RulePredictor, number: int, condition: Condition, value: float) -> Iterator[DecisionStep]:
    feature, answer = condition.attribute, predictor.answers[number]
    absent = value != value or (value < 0 and feature.coded)  # noqa: PLR0124 - NaN

    def step(test: str, *, branch: str, threshold: float | None = None) -> DecisionStep:
        return DecisionStep(
            node=number,
            attribute=feature,
            test=test,
            threshold=None if threshold is None else shown_bound(feature, threshold),
            categories=condition.categories if test == "in" else None,
            value=None if absent else shown_value(feature, value),
            branch=branch,
            reason=step_reason(feature, value, absent=absent, known_here=True),
            margin=None if threshold is None else abs(value - threshold),
            weight=predictor.weight[number],
            distribution={label_text(label): share for label, share in answer.distribution}
            if predictor.classes
            else None,
            mean=None if predictor.classes else answer.mean,
        )

    if condition.categories is not None:
        yield step("in", branch="yes")
    if condition.above > -float("inf"):
        yield step("<=", branch="no", threshold=condition.above)
    if condition.at_most < float("inf"):
        yield step("<=", branch="yes", threshold=condition.at_most)
    if condition.known is not None:
        yield step("known", branch="yes" if condition.known else "no")
