"""The JSON form of a list of rules; every member is checked when it is read.

``{"exclusive": false, "rules": [{"conditions": [{"attribute": 0, "at_most": 2.5}], "value": 1, "weight": 4.0,
"stats": [0.0, 4.0], "estimate": 0.9}], "default": {"value": 0, "weight": 1.0, "stats": [1.0, 0.0]}}``. Attributes,
categories and classes are given by their indexes, counted from 0, not by their names.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from espalier.data.instants import EARLIEST_INSTANT, LATEST_INSTANT
from espalier.data.schema import Feature, FeatureKind, Schema
from espalier.errors import DocumentError, Fault, pointer
from espalier.model.linear import MAX_VALUE
from espalier.model.rules import Condition, Rule, RuleList
from espalier.model.tree import MAX_AMOUNT

MAX_RULES: Final = 5_000_000
BOUNDS: Final = ("above", "at_most")
KEYS: Final = ("attribute", "above", "at_most", "categories", "known")


def rules_document(rules: RuleList, schema: Schema) -> dict[str, Any]:
    """Return a list of rules as JSON values."""
    place = {feature.name: number for number, feature in enumerate(schema.attributes)}
    return {
        "exclusive": rules.exclusive,
        "rules": [
            {
                "conditions": [_condition_document(condition, place) for condition in rule.conditions],
                **_answer_document(rule),
                "estimate": rule.estimate,
            }
            for rule in rules.rules
        ],
        "default": _answer_document(rules.default),
    }


def read_rules(given: Mapping[str, Any], schema: Schema) -> RuleList:
    """Read the form that `rules_document` returns.

    Raises:
        DocumentError: A member is not legal. Each fault has its path below ``/rules``.
    """
    exclusive, listed, default = given.get("exclusive"), given.get("rules"), given.get("default")
    faults = []
    if not isinstance(exclusive, bool):
        faults.append(Fault("/rules/exclusive", "wrong_type", "must be true or false"))
    if not isinstance(listed, list) or len(listed) > MAX_RULES:
        faults.append(Fault("/rules/rules", "wrong_type", f"must be a list of at most {MAX_RULES} rules"))
        listed = []
    faults += _faults_of_answer(default, "/rules/default", schema)
    for number, rule in enumerate(listed):
        path = pointer("rules", "rules", number)
        faults += _faults_of_answer(rule, path, schema)
        faults += _faults_of_conditions(rule, path, schema)
    DocumentError.raise_for(faults)
    rules = tuple(_rule(rule, schema) for rule in listed)
    return RuleList(rules, _rule({**dict(default or {}), "conditions": []}, schema), exclusive=bool(exclusive))


def _condition_document(condition: Condition, place: Mapping[str, int]) -> dict[str, Any]:
    document: dict[str, Any] = {"attribute": place[condition.attribute.name]}
    if condition.above > -math.inf:
        document["above"] = condition.above
    if condition.at_most < math.inf:
        document["at_most"] = condition.at_most
    if condition.categories is not None:
        document["categories"] = condition.codes
    if condition.known is not None:
        document["known"] = condition.known
    return document


def _answer_document(rule: Rule) -> dict[str, Any]:
    return {"value": rule.value, "weight": rule.weight, "stats": list(rule.stats)}


def _rule(given: Mapping[str, Any], schema: Schema) -> Rule:
    value = int(given["value"]) if schema.classes else float(given["value"])
    stats = tuple(float(part) for part in given["stats"])
    conditions = tuple(_condition(condition, schema) for condition in given["conditions"])
    estimate = given.get("estimate")
    return Rule(conditions, value, float(given["weight"]), stats, None if estimate is None else float(estimate))


def _condition(given: Mapping[str, Any], schema: Schema) -> Condition:
    feature = schema.attributes[given["attribute"]]
    codes = given.get("categories")
    return Condition(
        feature,
        above=float(given.get("above", -math.inf)),
        at_most=float(given.get("at_most", math.inf)),
        categories=None if codes is None else tuple(feature.categories[code] for code in codes),
        known=given.get("known"),
    )


def _faults_of_answer(given: Any, path: str, schema: Schema) -> Iterator[Fault]:
    if not isinstance(given, dict):
        yield Fault(path, "wrong_type", "must be an object")
        return
    value: Any = given.get("value")
    width = len(schema.classes)
    if width and not (type(value) is int and 0 <= value < width):
        yield Fault(f"{path}/value", "not_legal", f"must be the code of one of the {width} classes")
    if not width and not (_is_number(value) and abs(value) <= MAX_VALUE):
        yield Fault(f"{path}/value", "not_legal", f"must be a number between ±{MAX_VALUE:g}")
    if not (_is_number(given.get("weight")) and 0 <= given["weight"] <= MAX_AMOUNT):
        yield Fault(f"{path}/weight", "not_legal", f"must be a number from 0 to {MAX_AMOUNT:g}")
    if given.get("estimate") is not None and not _is_number(given["estimate"]):
        yield Fault(f"{path}/estimate", "not_legal", "must be a number, or null")
    yield from _faults_of_stats(given.get("stats"), f"{path}/stats", width)


def _faults_of_stats(stats: Any, path: str, n_classes: int) -> Iterator[Fault]:
    width = n_classes or 3
    if not isinstance(stats, list) or len(stats) != width or not all(_is_number(part) for part in stats):
        yield Fault(path, "wrong_type", f"must be a list of {width} numbers")
        return
    weights = stats if n_classes else [stats[0], stats[2]]
    if min(weights) < 0 or max(weights) > MAX_AMOUNT or math.fsum(weights if n_classes else stats[:1]) <= 0:
        yield Fault(path, "not_legal", "weights and sums of squares must be at least 0, and some weight above 0")
    if not n_classes and abs(stats[1]) > MAX_VALUE:
        yield Fault(path, "not_legal", f"the mean must be between ±{MAX_VALUE:g}")


def _faults_of_conditions(rule: Any, path: str, schema: Schema) -> Iterator[Fault]:
    conditions = rule.get("conditions") if isinstance(rule, dict) else []
    if not isinstance(conditions, list):
        yield Fault(f"{path}/conditions", "wrong_type", "must be a list of conditions")
        return
    seen = set()
    for number, condition in enumerate(conditions):
        where = f"{path}/conditions/{number}"
        attribute = condition.get("attribute") if isinstance(condition, dict) else None
        if type(attribute) is not int or not 0 <= attribute < len(schema.attributes):
            legal = f"must be an object with the index of one of the {len(schema.attributes)} attributes"
            yield Fault(f"{where}/attribute", "not_legal", legal)
            continue
        if attribute in seen:
            yield Fault(f"{where}/attribute", "duplicate", "there is another condition on this attribute")
        seen.add(attribute)
        yield from _faults_of_condition(condition, where, schema.attributes[attribute])


def _faults_of_condition(given: Mapping[str, Any], path: str, feature: Feature) -> Iterator[Fault]:
    bounds = [name for name in BOUNDS if name in given]
    codes, known = given.get("categories"), given.get("known")
    if any(name not in KEYS for name in given):
        yield Fault(path, "unknown_field", f"a condition may only have the fields {', '.join(KEYS)}")
    if "known" in given and not isinstance(known, bool):
        yield Fault(f"{path}/known", "wrong_type", "must be true or false")
    if not bounds and "categories" not in given and "known" not in given:
        yield Fault(path, "required", "must have a bound, categories or known")
    if (bounds or "categories" in given) and known is False:
        yield Fault(f"{path}/known", "combination", "a missing value has no bounds and no category")
    if bounds and feature.unordered:
        yield Fault(path, "kind", f"a {feature.kind} attribute has no bounds")
    elif bounds:
        yield from _faults_of_bounds([given[name] for name in bounds], path, feature)
    if "categories" in given:
        yield from _faults_of_codes(codes, f"{path}/categories", feature)


def _faults_of_bounds(bounds: list[Any], path: str, feature: Feature) -> Iterator[Fault]:
    if not all(_is_number(bound) for bound in bounds):
        yield Fault(path, "wrong_type", "bounds must be numbers")
    elif len(bounds) == 2 and bounds[0] >= bounds[1]:
        yield Fault(path, "not_legal", "above must be less than at_most")
    elif feature.kind is FeatureKind.DATETIME and not all(
        EARLIEST_INSTANT <= bound <= LATEST_INSTANT for bound in bounds
    ):
        yield Fault(path, "not_legal", "bounds must be seconds within the years 1 to 9999 for a datetime attribute")


def _faults_of_codes(codes: Any, path: str, feature: Feature) -> Iterator[Fault]:
    if not feature.unordered:
        yield Fault(path, "kind", f"a {feature.kind} attribute has bounds, not categories")
    elif not isinstance(codes, list) or not codes or not all(type(code) is int for code in codes):
        yield Fault(path, "wrong_type", "must be a list of codes, at least one")
    elif not all(0 <= code < len(feature.categories) for code in codes) or len(set(codes)) != len(codes):
        yield Fault(path, "not_legal", f"must be different codes of the {len(feature.categories)} categories")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
