"""Predict rows with a rule list: the answer is that of the first rule whose conditions all hold."""

from collections.abc import Collection, Sequence

import numpy as np

from espalier.arrays import Floats, Ints, Mask
from espalier.data.schema import Schema
from espalier.model.model import Model
from espalier.model.rules import Condition, RuleList
from espalier.model.tree import cached_on_owner
from espalier.prediction.answers import Prediction, prediction_of_leaf
from espalier.prediction.encode_rows import EncodedRow, RowEncoder
from espalier.prediction.leaf_values import node_values, rule_answers


def firing_rules(schema: Schema, rules: RuleList, values: Floats) -> Ints:
    """Return the number of the rule that answers each row, int32 (rows); `values` are encoded, (attributes, rows)."""
    place = {feature.name: number for number, feature in enumerate(schema.attributes)}
    fired = np.full(values.shape[1], rules.n_rules, dtype=np.int32)
    left = np.arange(values.shape[1])
    for number, rule in enumerate(rules.rules):
        if not len(left):
            break
        holds = left
        for condition in rule.conditions:
            holds = holds[condition_mask(condition, values[place[condition.attribute.name], holds])]
        fired[holds] = number
        left = left[fired[left] == rules.n_rules]
    return fired


def condition_mask(condition: Condition, column: Floats) -> Mask:
    """Return for which encoded values in `column` the condition holds: bool, one per value; see `Rule.conditions`."""
    coded = condition.attribute.coded
    absent = column < 0 if coded else np.isnan(column)
    if condition.known is False:
        return absent
    holds = ~absent & (column > condition.above) & (column <= condition.at_most)
    if condition.categories is not None:
        listed = np.zeros(len(condition.attribute.categories) + 1, dtype=np.bool_)
        listed[condition.codes] = True
        holds &= listed[np.where(absent, -1, column).astype(np.intp)]
    return holds


@cached_on_owner
def rule_predictor(model: Model) -> "RulePredictor":
    """Return the predictor of a rule list, for single rows."""
    return RulePredictor(model)


class RulePredictor:
    """Predict single rows with a rule list.

    Attributes:
        answers: Answer of each rule, the default last.
        value: These answers as codes or numbers, int32 or float64 (rules + 1).
        weight: Training weight of the rows that each rule answers.
        place: The index of each attribute, by name, among the encoded values.
    """

    def __init__(self, model: Model) -> None:
        rules = model.rules
        self.classes = model.schema.classes
        self.encode = RowEncoder(model.schema, model.preparation.imputed)
        self.weight = [rule.weight for rule in rules.answers]
        self.answers, self.value = rule_answers(model), node_values(model)
        self.place = {feature.name: number for number, feature in enumerate(model.schema.attributes)}
        self._tests = [
            [(self.place[condition.attribute.name], _Test(condition)) for condition in rule.conditions]
            for rule in rules.answers
        ]

    def answer(self, row: EncodedRow) -> Prediction:
        """Predict one encoded row. The prediction's `leaf` and its only node are the number of the rule that fired."""
        number = next(place for place in range(len(self._tests)) if self.failed(place, row.values) < 0)
        answer = self.answers[number]
        return prediction_of_leaf(answer, answer.value, self.weight[number], (number,), row)

    def failed(self, number: int, values: Sequence[float], among: Collection[int] | None = None) -> int:
        """Return the index of a rule's first condition that does not hold; -1 if all conditions hold.

        `among`: indexes of attributes; only conditions on these are tested.
        """
        for place, (attribute, test) in enumerate(self._tests[number]):
            if (among is None or attribute in among) and not test.holds(values[attribute]):
                return place
        return -1


class _Test:
    __slots__ = ("above", "at_most", "coded", "codes", "wants_absent")

    def __init__(self, condition: Condition) -> None:
        self.coded = condition.attribute.coded
        self.above, self.at_most = condition.above, condition.at_most
        self.codes = None if condition.categories is None else frozenset(condition.codes)
        self.wants_absent = condition.known is False

    def holds(self, value: float) -> bool:
        if value != value or (value < 0 and self.coded):  # noqa: PLR0124 - NaN
            return self.wants_absent
        if self.wants_absent or not self.above < value <= self.at_most:
            return False
        return self.codes is None or int(value) in self.codes
