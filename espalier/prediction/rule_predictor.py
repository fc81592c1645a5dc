"""Predict rows with a rule list: the first rule whose conditions all hold answers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.data.schema import Schema
from espalier.model.model import Model
from espalier.model.rules import Condition, LabelCodes, RuleList
from espalier.model.tree import cached_on_owner
from espalier.prediction.answers import LeafVisit, Prediction
from espalier.prediction.encode_rows import EncodedRow, RowEncoder, encode_rows
from espalier.prediction.leaf_values import node_values, rule_answers

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MIN_CELLS_TO_COMPILE: Final = 5_000_000
"""Rows times rules from which loading compiled code pays off."""


def firing_rules(schema: Schema, rules: RuleList, values: Floats) -> npt.NDArray[np.int32]:
    """Return the number of the rule that answers each row, int32 (rows), for encoded attributes (attributes, rows)."""
    place = {feature.name: number for number, feature in enumerate(schema.attributes)}
    if values.shape[1] * rules.n_rules >= MIN_CELLS_TO_COMPILE:
        return _fired_by_kernel(schema, rules, values, place)
    fired, codes = np.full(values.shape[1], rules.n_rules, dtype=np.int32), LabelCodes()
    # Each rule sees only the rows that no rule before it has answered.
    open_rows = np.arange(values.shape[1])
    for number, rule in enumerate(rules.rules):
        holding = np.arange(len(open_rows))
        for condition in rule.conditions:
            column = values[place[condition.attribute.name], open_rows[holding]]
            holding = holding[condition_mask(condition, column, codes)]
        fired[open_rows[holding]] = number
        open_rows = np.delete(open_rows, holding)
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
            for rule in rules.rules
        ]

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """Predict each row.

        Raises:
            RowError: Every fault of every row, by ``/{row}/{attribute}``.
        """
        return [self.answer(row) for row in encode_rows(self.encode, rows)]

    def answer(self, row: EncodedRow) -> Prediction:
        """Predict one encoded row; its leaf, and its only node, is the number of the rule that fired."""
        number = next(
            (place for place in range(len(self._tests)) if self.failed(place, row.values) < 0), len(self._tests)
        )
        return self.answer_by(number, row)

    def answer_by(self, number: int, row: EncodedRow) -> Prediction:
        """Return the prediction of a row that rule `number` answers."""
        answer = self.answers[number]
        return Prediction(
            label=answer.label,
            code=answer.code,
            value=answer.value,
            distribution=answer.distribution,
            confidence=answer.confidence,
            std=answer.std,
            support=self.weight[number],
            leaf=number,
            nodes=(number,),
            visits=(LeafVisit(1.0, (number,)),),
            n_visits=1,
            row=row,
        )

    def failed(self, number: int, values: Sequence[float]) -> int:
        """Return the place of the first condition of rule `number` that does not hold; -1 if all hold."""
        for place, (attribute, test) in enumerate(self._tests[number]):
            if not test.holds(values[attribute]):
                return place
        return -1

    def failed_among(self, number: int, values: Sequence[float], places: Collection[int]) -> int:
        """Return the place of the first condition of rule `number` on some attributes that does not hold, or -1."""
        for place, (attribute, test) in enumerate(self._tests[number] if number < len(self._tests) else ()):
            if attribute in places and not test.holds(values[attribute]):
                return place
        return -1


def _fired_by_kernel(
    schema: Schema, rules: RuleList, values: Floats, place: Mapping[str, int]
) -> npt.NDArray[np.int32]:
    """Return the same as `firing_rules`, computed by compiled code."""
    from espalier.prediction.kernels import fire as kernel  # noqa: PLC0415 - numba is loaded by the first large batch

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
    kernel.fire(
        np.ascontiguousarray(values),
        np.array([feature.coded for feature in schema.attributes], dtype=np.bool_),
        np.cumsum([0, *(len(rule.conditions) for rule in rules.rules)], dtype=np.int32),
        np.array([place[condition.attribute.name] for condition in conditions], dtype=np.int32),
        np.array([condition.above for condition in conditions], dtype=np.float64),
        np.array([condition.at_most for condition in conditions], dtype=np.float64),
        np.array(flags_start, dtype=np.int32),
        np.array(flags, dtype=np.bool_),
        np.array([condition.known is False for condition in conditions], dtype=np.bool_),
        fired,
    )
    return fired


class _Test:
    """A condition over encoded values."""

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
