"""Rules of PMML in order: a RuleSetModel, or a TreeModel whose root has a child for each rule."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from espalier.data.schema import Feature
from espalier.importing.pmml_answers import Answer, read_answer
from espalier.importing.pmml_fields import OTHER, Field
from espalier.importing.pmml_predicates import Budget, Predicate, read_predicate
from espalier.importing.pmml_tree import STEPS_PER_VALUE, Domain, example, values_between
from espalier.importing.xml_elements import Element
from espalier.model.rules import Condition, Rule, RuleList

Drafted = tuple[tuple[tuple[Field, Domain, bool | None], ...], Answer]
"""A rule: its conditions and its answer. A condition is a field, the values that meet it, and `Condition.known`."""


def is_rule_list(model: Element, fields: Mapping[str, Field], budget: Budget) -> bool:
    """Return True for a RuleSetModel, or a depth-1 tree with an "and" of several fields and no missingValueStrategy."""
    if model.name == "RuleSetModel":
        return True
    root = model.first("Node")
    if root is None or (model.get("missingValueStrategy") or "none") != "none":
        return False
    nodes = list(root.all("Node"))
    predicates = [read_predicate(node, fields, budget) for node in nodes]
    joined = any(predicate.kind == "and" and len(predicate.fields()) > 1 for predicate in predicates)
    return joined and all(node.first("Node") is None for node in nodes)


def draft_rules(model: Element, fields: Mapping[str, Field], target: Field, budget: Budget) -> list[Drafted]:
    """Return the rules. The last one is the first that always holds, or the default.

    Raises:
        DocumentError: The rules are not tried in order, a rule cannot be imported, or a row would have no answer.
    """
    listed, default = _parts(model)
    drafts = list[Drafted]()
    for element in listed:
        predicate = read_predicate(element, fields, budget)
        answer = read_answer(element, target)
        if answer is None:
            raise element.refused("has no score")
        conditions = _conditions(predicate, budget)
        if conditions is not None:
            drafts.append((conditions, answer))
            if not conditions:
                return drafts
    answer = None if default is None else read_answer(default, target)
    if answer is None:
        raise model.refused("a row to which no rule applies would have no answer: a default score is needed")
    return [*drafts, ((), answer)]


def rule_list(drafts: Sequence[Drafted], attributes: Mapping[str, Feature], n_classes: int) -> RuleList:
    """Return drafted rules as a `RuleList`."""
    rules = [_rule(conditions, answer, attributes, n_classes) for conditions, answer in drafts]
    return RuleList(tuple(rules[:-1]), rules[-1], exclusive=False)


def _parts(model: Element) -> tuple[list[Element], Element | None]:
    """Return the elements of the rules, and the element with the default score, if there is one."""
    if model.name == "TreeModel":
        root = model.first("Node")
        nodes = [] if root is None else list(root.all("Node"))
        return nodes, root if model.get("noTrueChildStrategy") == "returnLastPrediction" else None
    rule_set = model.first("RuleSet")
    method = None if rule_set is None else rule_set.first("RuleSelectionMethod")
    if rule_set is None or method is None or method.get("criterion") != "firstHit":
        raise (rule_set or model).refused("only rules with the selection method firstHit can be imported")
    for compound in rule_set.all("CompoundRule"):
        raise compound.refused("rules within rules cannot be imported")
    score = rule_set.get("defaultScore")
    default = None if score is None else replace(rule_set, attributes={"score": score})
    return list(rule_set.all("SimpleRule")), default


def _conditions(predicate: Predicate, budget: Budget) -> tuple[tuple[Field, Domain, bool | None], ...] | None:
    """Return the condition on each field; None if the rule never holds."""
    by_field = dict[str, list[Predicate]]()
    for part in _conjuncts(predicate):
        names = list(part.fields())
        if len(names) > 1:
            raise part.element.refused("alternatives of several fields are no single rule; write a rule for each")
        if names:
            by_field.setdefault(names[0], []).append(part)
        elif part.truth(None) is not True:
            return None
    conditions = list[tuple[Field, Domain, bool | None]]()
    for parts in by_field.values():
        condition = _condition(parts, budget)
        if condition is None:
            return None
        conditions += condition
    return tuple(conditions)


def _conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    if predicate.kind == "and":
        for part in predicate.parts:
            yield from _conjuncts(part)
    else:
        yield predicate


def _condition(parts: Sequence[Predicate], budget: Budget) -> list[tuple[Field, Domain, bool | None]] | None:
    """Return the condition that predicates of one field make; empty if it always holds, None if it never holds."""
    field = next(iter(parts[0].fields().values()))
    place, name = parts[0].element, field.feature.name
    intervals = [] if field.is_category else values_between(field, Domain(), parts)
    codes = range(OTHER if field.is_open else 0, len(field.labels))
    values = list(codes) if field.is_category else [example(field, interval) for interval in intervals]
    budget.spend(place, STEPS_PER_VALUE * len(intervals))
    for part in parts:
        budget.evaluate(part, 1 + len(values))
    held = [at for at, value in enumerate(values) if all(part.truth(value) for part in parts)]
    if field.replacement is not None:
        absent = len(held) == len(values)  # a replaced missing value never reaches the rule
    else:
        absent = field.has_answer and all(part.truth(None) for part in parts)
    if len(held) == len(values) and absent:
        return []
    if not held:
        return [(field, Domain(), False)] if absent else None
    if absent:
        raise place.refused(
            f"holds for a missing value of {name!r} and for some known values, which a rule cannot express"
        )
    if field.is_category and any(values[at] == OTHER for at in held):
        raise place.refused(
            f"holds for categories of {name!r} that the document does not list, but for no missing value"
        )
    if len(held) == len(values):
        return [(field, Domain(), True)]
    if field.is_category:
        budget.spend(place, STEPS_PER_VALUE * len(held))  # each rule keeps a set of codes
        return [(field, Domain(codes=frozenset(codes[at] for at in held)), None)]
    if held != list(range(held[0], held[-1] + 1)):
        raise place.refused(f"holds for several intervals of {name!r}, which a rule cannot express")
    return [(field, Domain(intervals[held[0]].above, intervals[held[-1]].at_most), None)]


def _rule(
    conditions: Sequence[tuple[Field, Domain, bool | None]],
    answer: Answer,
    attributes: Mapping[str, Feature],
    n_classes: int,
) -> Rule:
    merged = []
    for field, domain, known in conditions:
        attribute = attributes[field.feature.name]
        labels = tuple(attribute.categories[code] for code in sorted(domain.codes))
        merged.append(Condition(attribute, domain.above, domain.at_most, labels or None, known))
    stats = answer.stats(n_classes)
    if not math.fsum(stats if n_classes else stats[:1]) > 0:
        stats[0] = 1.0
    value = int(answer.value) if n_classes else answer.value
    return Rule(tuple(merged), value, answer.weight, tuple(stats))
