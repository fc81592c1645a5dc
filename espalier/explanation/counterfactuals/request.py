"""A validated request for counterfactuals: label or range, immutable attributes, costs and spans."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from espalier.arrays import Array, Mask
from espalier.data.labels import class_code, legal_classes
from espalier.data.number_parsing import is_number
from espalier.data.schema import Feature
from espalier.errors import ConfigError, Fault, pointer
from espalier.explanation.costs import attribute_costs
from espalier.model.model import Model
from espalier.prediction.answers import Prediction
from espalier.prediction.encode_rows import unknown_attribute

MOST_COUNTERFACTUALS: Final = 100
"""Maximum number of proposals in one request."""
RANGE: Final = "must be [least, greatest], each a number, or null where that end is open (not both)"
LEAST: Final = {"costs": "at least 0", "spans": "above 0"}


class CounterfactualRequest:
    """Validates the arguments of `espalier.counterfactuals`.

    Attributes:
        code: Code of the wanted class; -1 if every other class than the predicted one is wanted, or for a regression.
        low, high: The least and the greatest wanted number; infinite without a limit.
        fixed: Indexes of the attributes that must not change.
        costs: For each attribute, in the schema's order, the factor of its distances.
        spans: The given spans, by attribute name.
        most: Maximum number of proposals.

    Raises:
        ConfigError: Arguments are not legal; each fault has a path, such as ``/range``.
    """

    def __init__(
        self, model: Model, *, label: Any, value_range: Any, immutable: Any, costs: Any, spans: Any, most: Any
    ) -> None:
        self.features = model.schema.attributes
        self.names = [feature.name for feature in self.features]
        self.classes = model.schema.classes
        faults: list[Fault] = []
        self.code, self.low, self.high = -1, -math.inf, math.inf
        if self.classes:
            faults += self._read_label(label, value_range)
        else:
            faults += self._read_range(label, value_range)
        faults += self._faults_of_immutable(immutable)
        faults += self._faults_of_numbers("costs", costs)
        faults += self._faults_of_numbers("spans", spans)
        if type(most) is not int or not 1 <= most <= MOST_COUNTERFACTUALS:
            faults.append(Fault("/max", "not_legal", f"must be a whole number from 1 to {MOST_COUNTERFACTUALS}"))
        ConfigError.raise_for(faults)
        self.spans, self.most = spans, most
        unchanged = frozenset(immutable)
        self.fixed = frozenset(place for place, name in enumerate(self.names) if name in unchanged)
        pairs = zip(self.names, attribute_costs(model), strict=True)
        self.costs = [float(costs.get(name, cost)) for name, cost in pairs]

    def check_against(self, own: Prediction) -> None:
        """Check that the row does not have the wanted answer already.

        Raises:
            ConfigError: The row has the wanted answer.
        """
        if own.value is not None and self.low <= own.value <= self.high:
            raise ConfigError([Fault("/range", "not_legal", "contains the row's own answer already")])
        if own.value is None and own.code == self.code:
            raise ConfigError([Fault("/label", "not_legal", "is already the answer for the row")])

    def are_wanted(self, answers: Array, own: Prediction) -> Mask:
        """Return for each of `answers` (class codes or numbers) whether it is wanted: bool.

        If no label was given, every class is wanted except that of `own`, the prediction of the unchanged row.
        """
        if not self.classes:
            return (answers >= self.low) & (answers <= self.high)
        wanted: Mask = answers != own.code if self.code < 0 else answers == self.code
        return wanted

    def _read_label(self, label: Any, value_range: Any) -> Iterator[Fault]:
        if value_range is not None:
            yield Fault("/range", "not_legal", "the model answers with classes: give a label")
        if label is None:
            return
        code = class_code(self.classes, label)
        if code is None:
            yield Fault("/label", "unknown_value", legal_classes(self.classes))
        else:
            self.code = code

    def _read_range(self, label: Any, value_range: Any) -> Iterator[Fault]:
        if label is not None:
            yield Fault("/label", "not_legal", "the model answers with numbers: give a range")
        if value_range is None:
            yield Fault("/range", "required", f"the model answers with numbers: give a range, which {RANGE}")
            return
        ends = list(value_range) if isinstance(value_range, list | tuple) else []
        if len(ends) != 2 or ends == [None, None] or not all(end is None or is_number(end) for end in ends):
            yield Fault("/range", "wrong_type", RANGE)
            return
        self.low = -math.inf if ends[0] is None else _as_float(ends[0])
        self.high = math.inf if ends[1] is None else _as_float(ends[1])
        if not self.low <= self.high:
            yield Fault("/range", "not_legal", "the least number must not be above the greatest")

    def _faults_of_immutable(self, names: Any) -> Iterator[Fault]:
        if isinstance(names, str) or not isinstance(names, Collection):
            yield Fault("/immutable", "wrong_type", "must be a list of names of attributes")
            return
        known = frozenset(self.names)
        for place, name in enumerate(names):
            if not isinstance(name, str) or name not in known:
                yield unknown_attribute(pointer("immutable", place), self.names)

    def _faults_of_numbers(self, what: str, numbers: Any) -> Iterator[Fault]:
        if not isinstance(numbers, Mapping):
            yield Fault(f"/{what}", "wrong_type", "must be an object of attribute names and numbers")
            return
        features: dict[object, Feature] = {feature.name: feature for feature in self.features}
        for name, number in numbers.items():
            value = _as_float(number) if is_number(number) else math.nan
            if name not in features:
                yield unknown_attribute(pointer(what, str(name)), self.names)
            elif not 0 <= value < math.inf or (what == "spans" and value == 0):
                yield Fault(pointer(what, name), "not_legal", f"must be a finite number, {LEAST[what]}")
            elif what == "spans" and features[name].coded:
                yield Fault(pointer(what, name), "not_legal", "an attribute of categories has no span: give a cost")


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.nan
