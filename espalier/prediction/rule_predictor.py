"""Predict rows with a rule list: the first rule whose conditions all hold answers."""

from collections.abc import Collection, Sequence

import numpy as np

from espalier.arrays import Floats, Ints, Mask
from espalier.data.schema import Schema
from espalier.model.model import Model
from espalier.model.rules import Condition, LabelCodes, RuleList
from espalier.model.tree import cached_on_owner
from espalier.prediction.answers import Prediction, prediction_of_leaf
from espalier.prediction.encode_rows import EncodedRow, RowEncoder
from espalier.prediction.kernels.fire import fire
from espalier.prediction.leaf_values import node_values, rule_answers


def firing_rules(schema: Schema, rules: RuleList, values: Floats) -> Ints:
    """Return the number of the rule that answers each row, int32 (rows), for encoded attributes (attributes, rows)."""
    place = {feature.name: number for number, feature in enumerate(schema.attributes)}
    conditions = [condition for rule in rules.rules for condition in rule.conditions]
    codes = LabelCodes()
    flags: list[bool] = []
    flags_start = []
    for condition in conditions:
        flags_start.append(-1 if condition.categories is None else len(flags))
        if condition.categories is not None:
            listed = set(codes.listed(condition))
            flags += [code in listed for code in range(len(condition.attribute.categories))]
    fired = np.empty(values.shape[1], dtype=np.int32)
    fire(
        np.ascontiguousarray(values),
        np.array([feature.coded for feature in schema.attributes], dtype=np.uint8),
        np.cumsum([0, *(len(rule.conditions) for rule in rules.rules)], dtype=np.int32),
        np.array([place[condition.attribute.name] for condition in conditions], dtype=np.int32),
        np.array([condition.above for condition in conditions], dtype=np.float64),
        np.array([condition.at_most for condition in conditions], dtype=np.float64),
        np.array(flags_start, dtype=np.int32),
        np.array(flags, dtype=np.uint8),
        np.array([condition.known is False for condition in conditions], dtype=np.uint8),
        fired,
    )
    return fired


def condition_mask(condition: Condition, column: Floats, codes: LabelCodes) -> Mask:
    """Return for each encoded value of the attribute whether the condition holds: bool; see `Rule.conditions`."""
    coded = condition.attribute.coded
    absent = column < 0 if coded else np.isnan(column)
    if condition.known is False:
        return absent
    holds = ~absent & (column > condition.above) & (column <= condition.at_most)
    if condition.categories is not None:
        listed = np.zeros(len(condition.attribute.categories) + 1, dtype=np.bool_)
        listed[codes.listed(condition)] = True
        holds &= listed[np.where(absent, -1, column).astype(np.intp)]
    return holds


@cached_on_owner
def rule_predictor(model: Model) -> "RulePredictor":
    """Return the predictor of single rows of a rule list."""
    return RulePredictor(model)


class RulePredictor:
    """Predict single rows with a rule list.

    Attributes:
        answers: What each rule answers, the default last.
        value: The same as codes or numbers, int32 or float64 (rules + 1).
        weight: Training weight of the rows that each answers.
        place: The place of each attribute, by name, among the encoded values.
    """

    def __init__(self, model: Model) -> None:
        rules = model.rules
        self.classes = model.schema.classes
        self.encode = RowEncoder(model.schema, model.preparation.imputed)
        self.weight = [rule.weight for rule in rules.answers]
        self.answers, self.value = rule_answers(model), node_values(model)
        self.place = {feature.name: number for number, feature in enumerate(model.schema.attributes)}
        codes = LabelCodes()
        self._tests = [
            [(self.place[condition.attribute.name], _Test(condition, codes)) for condition in rule.conditions]
            for rule in rules.answers
        ]

    def answer(self, row: EncodedRow) -> Prediction:
        """Predict one encoded row; its leaf, and its only node, is the number of the rule that fired."""
        number = next(place for place in range(len(self._tests)) if self.failed(place, row.values) < 0)
        answer = self.answers[number]
        return prediction_of_leaf(answer, answer.value, self.weight[number], (number,), row)

    def failed(self, number: int, values: Sequence[float], among: Collection[int] | None = None) -> int:
        """Return the place of the first condition of a rule that does not hold; -1 if all do.

        `among`: only conditions on attributes at these places are looked at.
        """
        for place, (attribute, test) in enumerate(self._tests[number]):
            if (among is None or attribute in among) and not test.holds(values[attribute]):
                return place
        return -1


class _Test:
    __slots__ = ("above", "at_most", "coded", "codes", "wants_absent")

    def __init__(self, condition: Condition, codes: LabelCodes) -> None:
        self.coded = condition.attribute.coded
        self.above, self.at_most = condition.above, condition.at_most
        listed = condition.categories
        self.codes = None if listed is None else frozenset(codes.listed(condition))
        self.wants_absent = condition.known is False

    def holds(self, value: float) -> bool:
        if value != value or (value < 0 and self.coded):  # noqa: PLR0124 - NaN
            return self.wants_absent
        if self.wants_absent or not self.above < value <= self.at_most:
            return False
        return self.codes is None or int(value) in self.codes
