"""The predicates of a PMML document. A predicate is true, false or unknown for the value of a field."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from espalier.data.labels import Label
from espalier.importing.pmml_fields import OTHER, Field
from espalier.importing.xml_elements import Element

MAX_NESTING: Final = 20
MAX_STEPS: Final = 10_000_000
"""Maximum number of predicate results and tested categories for a document; computing them takes some seconds."""
NAMES: Final = ("SimplePredicate", "SimpleSetPredicate", "CompoundPredicate", "True", "False")
LISTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)', re.DOTALL)
"""An item of an Array: text in quotes, in which a backslash precedes each quote, or text without blanks."""
Value = float | int | None
"""A number, the code of a category, or None for a missing value."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate.

    Attributes:
        element: The element of the predicate, for messages.
        kind: ``constant``, ``presence``, ``number``, ``category``, or the operator of a compound one.
        field: The field that it tests; None for a constant and a compound.
        holds: For a constant, its value. For a test of an interval or a set, the result for a value in the interval or
            set. For a presence test, the result for a known value.
        above: Lower bound of the interval of a number, not included.
        at_most: Upper bound of the interval, included.
        codes: Codes of the set of categories.
        parts: The predicates of a compound.
        size: Number of predicates in this predicate, itself included.
    """

    element: Element
    kind: str
    field: Field | None = None
    holds: bool = True
    above: float = -math.inf
    at_most: float = math.inf
    codes: frozenset[int] = frozenset()
    parts: tuple["Predicate", ...] = ()
    size: int = 1

    def truth(self, value: Value) -> bool | None:
        """Return whether the predicate holds for a value of its only field; None if the result is unknown."""
        if self.kind == "constant":
            return self.holds
        if self.kind == "presence":
            return (value is not None) == self.holds
        if self.kind == "number":
            return None if value is None else (self.above < value <= self.at_most) == self.holds
        if self.kind == "category":
            return None if value is None else (value in self.codes) == self.holds
        return OPERATORS[self.kind]([part.truth(value) for part in self.parts])

    def tests(self) -> Iterator["Predicate"]:
        """Yield the predicates that test a field: this predicate, or the tests of its parts."""
        if self.field is not None:
            yield self
        for part in self.parts:
            yield from part.tests()

    def fields(self) -> dict[str, Field]:
        """Return the fields that the predicate tests, keyed by the name of their column."""
        return {test.field.feature.name: test.field for test in self.tests() if test.field is not None}


class Budget:
    """Counts the steps that reading a document takes, and refuses a document of more than `MAX_STEPS`."""

    def __init__(self) -> None:
        self.steps = 0

    def spend(self, element: Element, n_steps: int) -> None:
        """Add to the count the steps that `element` takes.

        Raises:
            DocumentError: The count exceeds `MAX_STEPS`.
        """
        self.steps += n_steps
        if self.steps > MAX_STEPS:
            raise element.refused("is one of too many tests of the same field, or of fields with too many categories")

    def evaluate(self, predicate: Predicate, n_values: int = 1) -> None:
        """Count the steps of evaluating a predicate for `n_values` values."""
        self.spend(predicate.element, n_values * predicate.size)


def _and(truths: Sequence[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _or(truths: Sequence[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def _xor(truths: Sequence[bool | None]) -> bool | None:
    return None if None in truths else sum(map(bool, truths)) % 2 == 1


def _surrogate(truths: Sequence[bool | None]) -> bool | None:
    return next((truth for truth in truths if truth is not None), None)


OPERATORS: Final = {"and": _and, "or": _or, "xor": _xor, "surrogate": _surrogate}
COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "lessThan": operator.lt,
    "lessOrEqual": operator.le,
    "greaterThan": operator.gt,
    "greaterOrEqual": operator.ge,
}
EQUALITIES: Final = {"equal": True, "notEqual": False}
PRESENCES: Final = {"isNotMissing": True, "isMissing": False}
SETS: Final = {"isIn": True, "isNotIn": False}


def read_predicate(parent: Element, fields: Mapping[str, Field], budget: Budget) -> Predicate:
    """Return the predicate of a node or rule.

    Raises:
        DocumentError: There is not exactly one predicate, or it cannot be imported exactly.
    """
    predicates = list(parent.all(*NAMES))
    if len(predicates) != 1:
        raise parent.refused(f"needs one predicate: {', '.join(NAMES)}")
    return _read(predicates[0], fields, budget, 0)


def _read(element: Element, fields: Mapping[str, Field], budget: Budget, depth: int) -> Predicate:
    if element.name in ("True", "False"):
        return Predicate(element, "constant", holds=element.name == "True")
    if element.name == "CompoundPredicate":
        return _compound(element, fields, budget, depth)
    field = fields.get(element.get("field") or "")
    if field is None:
        raise element.refused(f"tests {element.get('field')!r}, which is not an active field")
    if field.obstacle is not None:
        raise element.refused(f"tests {field.feature.name!r}: {field.obstacle}")
    return _set(element, field) if element.name == "SimpleSetPredicate" else _simple(element, field, budget)


def _compound(element: Element, fields: Mapping[str, Field], budget: Budget, depth: int) -> Predicate:
    name = element.get("booleanOperator") or ""
    if name not in OPERATORS:
        raise element.refused(f"booleanOperator must be one of {', '.join(OPERATORS)}")
    if depth >= MAX_NESTING:
        raise element.refused(f"is nested deeper than {MAX_NESTING}")
    parts = tuple(_read(part, fields, budget, depth + 1) for part in element.all(*NAMES))
    if not parts:
        raise element.refused("needs predicates")
    # "Equal to one of" and "equal to none of" become one set, since a node may list thousands of categories.
    holds = {"or": True, "and": False}.get(name)
    tested = {(part.kind, id(part.field), part.holds) for part in parts}
    if tested == {("category", id(parts[0].field), holds)}:
        return replace(parts[0], element=element, codes=frozenset(code for part in parts for code in part.codes))
    return parts[0] if len(parts) == 1 else _joined(element, name, parts)


def _simple(element: Element, field: Field, budget: Budget) -> Predicate:
    name, text = element.get("operator") or "", element.get("value")
    if name in PRESENCES:
        return Predicate(element, "presence", field, PRESENCES[name])
    if name not in (*EQUALITIES, *COMPARISONS) or text is None:
        legal = ", ".join((*EQUALITIES, *COMPARISONS, *PRESENCES))
        raise element.refused(f"needs a value and an operator, one of {legal}")
    if field.is_category:
        if name in EQUALITIES:
            codes = frozenset({field.code(text, element)} - {OTHER})
            return Predicate(element, "category", field, EQUALITIES[name], codes=codes)
        budget.spend(element, len(field.labels))
        return Predicate(element, "category", field, codes=_compared(element, field, name, text))
    low = field.at_most(text, element, strictly=True)
    high = field.at_most(text, element, strictly=False)
    if name in EQUALITIES:
        return Predicate(element, "number", field, EQUALITIES[name], low, high)
    cut = high if name in ("lessOrEqual", "greaterThan") else low
    return Predicate(element, "number", field, name.startswith("less"), at_most=cut)


def _compared(element: Element, field: Field, name: str, text: str) -> frozenset[int]:
    """Return the codes of the categories for which the comparison `name` with `text` holds."""
    if field.is_open or not (field.is_ordered or field.data_type in ("integer", "double")):
        raise element.refused(f"compares {field.feature.name!r}, whose categories have no order")
    label, code = field.label(text, element), field.code(text, element)
    if field.is_ordered and code == OTHER:
        raise element.refused("compares with a category that the field does not list")
    compare = COMPARISONS[name]
    if field.is_ordered:
        return frozenset(each for each in range(len(field.labels)) if compare(each, code))
    pivot = _number(label)
    return frozenset(each for each, other in enumerate(field.labels) if compare(_number(other), pivot))


def _number(label: Label) -> float:
    """Return the number of a category. An integer that is stored as text (see `Field.label`) keeps all its digits."""
    return int(label) if isinstance(label, str) else label


def _set(element: Element, field: Field) -> Predicate:
    name, array = element.get("booleanOperator") or "", element.first("Array")
    if name not in SETS or array is None:
        raise element.refused(f"needs an Array and a booleanOperator, one of {', '.join(SETS)}")
    texts = list(_items(array))
    if array.get("n") is not None and array.get("n") != str(len(texts)):
        raise array.refused(f"has {len(texts)} items, and says that it has {array.get('n')}")
    if field.is_category:
        codes = frozenset(field.code(text, array) for text in texts) - {OTHER}
        return Predicate(element, "category", field, SETS[name], codes=codes)
    if not texts:
        raise array.refused("has no items")
    bounds = [[field.at_most(text, array, strictly=strictly) for strictly in (True, False)] for text in texts]
    parts = [Predicate(element, "number", field, SETS[name], low, high) for low, high in bounds]
    return _joined(element, "or" if SETS[name] else "and", tuple(parts))


def _joined(element: Element, kind: str, parts: tuple[Predicate, ...]) -> Predicate:
    return Predicate(element, kind, parts=parts, size=1 + sum(part.size for part in parts))


def _items(array: Element) -> Iterable[str]:
    for quoted, plain in LISTED.findall("".join(array.texts)):
        yield plain or re.sub(r'\\(["\\])', r"\1", quoted)
