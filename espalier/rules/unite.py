"""Simplify a disjunction of conjunctions by uniting conjunctions that differ in only one attribute.

For rows without missing values, the union has the same meaning::

    (x ≤ 3 ∧ y is a) ∨ (x > 3 ∧ y is a)        →   (y is a)
    (x is a ∧ y > 1) ∨ (x is b ∧ y > 1)        →   (x is a or b ∧ y > 1)
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from espalier.data.schema import Feature
from espalier.model.rules import Condition

Conjunction = tuple[Condition, ...]


def simplified(conjunctions: Sequence[Conjunction]) -> tuple[Conjunction, ...]:
    """Unite conjunctions that differ in one attribute only, until none can be united with another.

    Each conjunction has at most one condition per attribute. A union replaces the first of its conjunctions, and
    lists attributes in the same order. An empty conjunction holds for every row, and an empty disjunction for none.
    """
    attributes = {condition.attribute.name: condition.attribute for each in conjunctions for condition in each}
    listed = [_summed({condition.attribute.name: _literal(condition) for condition in each}) for each in conjunctions]
    before = -1
    while len(listed) != before:
        before = len(listed)
        for name, feature in attributes.items():
            listed = _united(listed, name, feature)
    return tuple(tuple(_condition(attributes[name], literal) for name, literal in each.items()) for each, _ in listed)


class Literal(NamedTuple):
    """A hashable condition on an attribute: an interval, a set of category codes, or whether the value is known."""

    above: float = -math.inf
    at_most: float = math.inf
    codes: frozenset[int] | None = None
    known: bool | None = None


ANYTHING: Final = Literal()
Summed = tuple[dict[str, Literal], int]
"""A conjunction and the sum of the hashes of its items, from which the hash of any one item can be subtracted."""


def _summed(literals: dict[str, Literal]) -> Summed:
    return literals, sum(map(hash, literals.items()))


def _literal(condition: Condition) -> Literal:
    codes = None if condition.categories is None else frozenset(condition.codes)
    bounded = codes is not None or condition.above > -math.inf or condition.at_most < math.inf
    # Bounds or categories imply that the value is known.
    return Literal(condition.above, condition.at_most, codes, None if bounded else condition.known)


def _condition(feature: Feature, literal: Literal) -> Condition:
    codes = literal.codes
    labels = None if codes is None else tuple(feature.categories[code] for code in sorted(codes))
    return Condition(feature, literal.above, literal.at_most, labels, literal.known)


def _united(conjunctions: list[Summed], name: str, feature: Feature) -> list[Summed]:
    by_sum: dict[int, list[int]] = {}
    for place, (each, total) in enumerate(conjunctions):
        by_sum.setdefault(total - hash((name, each[name])) if name in each else total, []).append(place)
    # Equal sums are rare, so only few conjunctions are compared themselves, by their conditions on other attributes.
    groups: dict[frozenset[tuple[str, Literal]], list[int]] = {}
    for place in (place for places in by_sum.values() if len(places) > 1 for place in places):
        rest = frozenset(item for item in conjunctions[place][0].items() if item[0] != name)
        groups.setdefault(rest, []).append(place)
    united = dict(enumerate(conjunctions))
    for places in groups.values():
        given = [(place, united.pop(place)[0].get(name, ANYTHING)) for place in places]
        for place, literal in _union(given, feature):
            changed = {**conjunctions[place][0], name: literal}
            united[place] = _summed({key: value for key, value in changed.items() if value != ANYTHING})
    return [united[place] for place in sorted(united)] if len(united) < len(conjunctions) else conjunctions


def _union(literals: list[tuple[int, Literal]], feature: Feature) -> list[tuple[int, Literal]]:
    """Unite conditions on one attribute. Each comes with the index of its conjunction, in ascending order.

    A union gets the smallest index of its conditions.
    """
    if len(literals) == 1:
        return literals
    on_known = [item for item in literals if item[1].known is not None]
    on_values = [item for item in literals if item[1].known is None]
    if any(literal == ANYTHING for _, literal in on_values) or len({literal for _, literal in on_known}) == 2:
        return [(literals[0][0], ANYTHING)]
    united = _union_of_codes(on_values, feature) if feature.unordered else _union_of_intervals(on_values)
    return [*united, *on_known[:1]]


def _union_of_codes(literals: list[tuple[int, Literal]], feature: Feature) -> list[tuple[int, Literal]]:
    if not literals:
        return []
    codes = frozenset(code for _, literal in literals for code in literal.codes or ())
    whole = len(codes) == len(feature.categories)
    return [(literals[0][0], ANYTHING if whole else Literal(codes=codes))]


def _union_of_intervals(literals: list[tuple[int, Literal]]) -> list[tuple[int, Literal]]:
    joined: list[tuple[int, Literal]] = []
    for place, literal in sorted(literals, key=lambda item: (item[1].above, item[1].at_most)):
        if joined and literal.above <= joined[-1][1].at_most:
            earlier, left = joined[-1]
            joined[-1] = (min(place, earlier), Literal(left.above, max(left.at_most, literal.at_most)))
        else:
            joined.append((place, literal))
    return joined
