"""A TreeModel of PMML as nodes that each test one attribute.

PMML tries the children of a node in order, and each child has a separate predicate. Here, consecutive children that
test the same field become one test; rows that match none of these children go on to the next children::

    x ≤ 1 → a      x ≤ 1 ┬ a         Along a path, the values that a field can still have are known.
    x > 1 → b            └ b         ``x > 1`` is not tested, because it holds for all values left.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field, replace
from itertools import pairwise
from typing import Final

from espalier.importing.pmml_fields import OTHER, Field
from espalier.importing.pmml_predicates import Budget, Predicate, Value, read_predicate
from espalier.importing.xml_elements import Element
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC, UNKNOWN

STEPS_PER_VALUE: Final = 10
"""Steps that the budget counts for each interval or category which a test distinguishes."""
MAX_DRAFTS: Final = 2_000_000
HEAVIEST: Final = -2
"""Stands for the heaviest branch as a fallback."""
MISSING_STRATEGIES: Final = ("none", "defaultChild", "lastPrediction", "nullPrediction")
Target = tuple[str, int]
"""Where a branch leads: to the child at a place (``child``), to the first match among the children from a place on
(``rest``), or to one of the three targets below."""
STOP: Final[Target] = ("stop", 0)
"""The node itself answers."""
NO_ANSWER: Final[Target] = ("no answer", 0)
HEAVIEST_BRANCH: Final[Target] = ("heaviest", 0)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a field can have at a node.

    Attributes:
        above: Lower bound of a number, not included.
        at_most: Upper bound of a number, included.
        codes: Codes of categories; OTHER stands for those that the field does not list.
        absent: Whether the value may be missing.
    """

    above: float = -math.inf
    at_most: float = math.inf
    codes: frozenset[int] = frozenset()
    absent: bool = False


ABSENT_ONLY: Final = Domain(math.inf, -math.inf, absent=True)


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A test for rows in which the node's own field is missing: a threshold and the branch below it, or categories.

    Attributes:
        field: The tested field.
        threshold: Threshold of numbers; NaN for categories.
        below: The branch of numbers up to the threshold; 0 for categories.
        branches: Branch of each category, by its code; empty for numbers.
    """

    field: Field
    threshold: float
    below: int
    branches: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Split:
    """A test of one field.

    Attributes:
        field: The tested field.
        values: Intervals in ascending order, or sets of categories, with the target of each.
        absent: The target of a row without the value; None if there is no such row.
        other: Whether categories that the field does not list are known values, and go to `absent`, too.
        surrogates: Tests for rows without the value.
    """

    field: Field
    values: tuple[tuple[Domain, Target], ...]
    absent: Target | None
    other: bool = False
    surrogates: tuple[Surrogate, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A part of the PMML tree that has no draft yet.

    Attributes:
        node: The element.
        place: The first child whose predicate is still to be tested.
        domains: The values that fields can have here, by column; other fields can have any value.
        stops: Whether the node itself answers.
        split: The rest of a test that takes more than one node of the new tree.
    """

    node: Element
    place: int
    domains: Mapping[str, Domain]
    stops: bool = False
    split: Split | None = None


@dataclass(slots=True)
class Draft:
    """A node of the new tree.

    Attributes:
        source: The element that the node comes from.
        own: Whether the node takes the answer of `source`, if there is one. Otherwise, the children give the answer.
        kind: LEAF, NUMERIC, NOMINAL or UNKNOWN.
        field: The field that the node tests.
        threshold: Threshold of a NUMERIC test.
        branches: Branch of each code, of a NOMINAL test.
        fallback: The branch of a missing value, or HEAVIEST.
        children: Indexes of the children among all drafts, in branch order.
        surrogates: Tests for rows in which `field` is missing.
    """

    source: Element
    own: bool
    kind: int = LEAF
    field: Field | None = None
    threshold: float = math.nan
    branches: Mapping[int, int] = dataclass_field(default_factory=dict)
    fallback: int = HEAVIEST
    children: list[int] = dataclass_field(default_factory=list)
    surrogates: tuple[Surrogate, ...] = ()


class TreeCompiler:
    """Drafts the nodes of a TreeModel."""

    def __init__(self, model: Element, fields: Mapping[str, Field], budget: Budget, *, extend: bool) -> None:
        self.model, self.fields, self.extend = model, fields, extend
        self.strategy = model.get("missingValueStrategy") or "none"
        if self.strategy not in MISSING_STRATEGIES:
            legal = ", ".join(MISSING_STRATEGIES)
            raise model.refused(f"missingValueStrategy {self.strategy} cannot be imported; {legal} can")
        self.stops = model.get("noTrueChildStrategy") == "returnLastPrediction"
        self.children = dict[int, list[tuple[Element, Predicate]]]()
        self.budget = budget

    def compile(self, root: Element) -> list[Draft]:
        """Return the drafted nodes of the tree below `root`, in preorder."""
        self._read_predicates(root)
        drafts = list[Draft]()
        stack: list[tuple[State, Draft | None, int]] = [(State(root, 0, {}), None, 0)]
        while stack:
            state, parent, branch = stack.pop()
            draft, below = self._draft(state)
            if parent is not None:
                parent.children[branch] = len(drafts)
            drafts.append(draft)
            if len(drafts) > MAX_DRAFTS:
                raise self.model.refused(f"would have more than {MAX_DRAFTS} nodes")
            draft.children = [-1] * len(below)
            stack += [(each, draft, place) for place, each in reversed(list(enumerate(below)))]
        return drafts

    def _read_predicates(self, root: Element) -> None:
        """Read all predicates first, because they may name categories that a field does not list."""
        if read_predicate(root, self.fields, self.budget).kind != "constant" or root.first("True") is None:
            raise root.refused("the predicate of the root must be True: other rows would have no answer")
        stack = [root]
        while stack:
            node = stack.pop()
            below = list(node.all("Node"))
            self.children[id(node)] = [(each, read_predicate(each, self.fields, self.budget)) for each in below]
            stack += below

    def _draft(self, state: State) -> tuple[Draft, list[State]]:
        while True:
            children = self.children[id(state.node)]
            if state.split is not None:
                return self._test(state, state.split)
            if state.stops or state.place == len(children):
                if not state.stops and children and not self.stops:
                    raise state.node.refused("has no answer for rows that match no child (noTrueChildStrategy)")
                return Draft(state.node, own=True), []
            following = self._following(state, children)
            if isinstance(following, Split):
                return self._test(state, following)
            state = following

    def _following(self, state: State, children: Sequence[tuple[Element, Predicate]]) -> Split | State:
        """Return the test of one field that the next children make, or the next state if they test nothing."""
        node, first = children[state.place]
        self.budget.evaluate(first)
        names = list(first.fields())
        if not names:
            return State(node, 0, state.domains) if first.truth(None) else replace(state, place=state.place + 1)
        if first.kind == "surrogate":
            return self._with_surrogates(state, children)
        if len(names) > 1:
            raise first.element.refused("tests several fields at once, which a tree node cannot do")
        end = state.place
        while end < len(children) and children[end][1].fields().keys() <= set(names):
            self.budget.evaluate(children[end][1])
            end += 1
        predicates = [predicate for _, predicate in children[state.place : end]]
        tested = next(iter(first.fields().values()))
        return self._simplified(state, self._outcomes(state, tested, predicates))

    def _simplified(self, state: State, split: Split) -> Split | State:
        targets = {target for _, target in split.values} | {split.absent} - {None}
        if len(targets) > 1 and targets != {HEAVIEST_BRANCH, split.values[0][1]}:
            return split
        target = split.values[0][1] if split.values else split.absent
        return self._next(state, STOP if target in (None, HEAVIEST_BRANCH) else target, state.domains)

    def _outcomes(self, state: State, tested: Field, predicates: Sequence[Predicate]) -> Split:
        domain = self._domain(state, tested)
        rest = ("rest", state.place + len(predicates))
        known = values_between(tested, domain, predicates)
        self.budget.spend(predicates[0].element, STEPS_PER_VALUE * len(known))
        targets = [rest] * len(known)
        by_value = {
            example(tested, value): at for at, value in enumerate(known)
        }  # values for which no predicate holds yet
        for place, predicate in enumerate(predicates, start=state.place):
            candidates: Iterable[Value] = list(by_value)
            if predicate.kind == "category" and predicate.holds:
                candidates = predicate.codes & by_value.keys()
            else:
                self.budget.evaluate(predicate, len(by_value))
            for value in candidates:
                if predicate.truth(value):
                    targets[by_value.pop(value)] = ("child", place)
        absent = self._absent(state, tested, predicates) if domain.absent else None
        return self._reconciled(state, tested, list(zip(known, targets, strict=True)), absent)

    def _absent(self, state: State, tested: Field, predicates: Sequence[Predicate]) -> Target:
        if not tested.has_answer:
            return NO_ANSWER
        value: Value = tested.replacement
        for place, predicate in enumerate(predicates, start=state.place):
            self.budget.evaluate(predicate)
            truth = predicate.truth(value)
            if truth:
                return ("child", place)
            if truth is None and self.strategy != "none":
                return self._unknown(state.node)
        return ("rest", state.place + len(predicates))

    def _unknown(self, node: Element) -> Target:
        """Return the target of rows for which a predicate is unknown."""
        if self.strategy == "lastPrediction":
            return STOP
        default = node.get("defaultChild") if self.strategy == "defaultChild" else None
        places = [at for at, (each, _) in enumerate(self.children[id(node)]) if each.get("id") == default]
        return NO_ANSWER if default is None or len(places) != 1 else ("child", places[0])

    def _reconciled(
        self, state: State, tested: Field, values: list[tuple[Domain, Target]], absent: Target | None
    ) -> Split:
        """Return the test, with one target for both missing values and categories that the field does not list."""
        children = self.children[id(state.node)]
        after_all = {("rest", len(children)): STOP if self.stops else NO_ANSWER}
        values = [(domain, after_all.get(target, target)) for domain, target in values]
        absent = None if absent is None else after_all.get(absent, absent)
        others = [target for domain, target in values if OTHER in domain.codes and target != NO_ANSWER]
        values = [(domain, target) for domain, target in values if OTHER not in domain.codes]
        place, name = children[state.place][1].element, tested.feature.name
        if any(target == NO_ANSWER for _, target in values):
            raise place.refused(f"some values of {name!r} match no child and get no answer (noTrueChildStrategy)")
        if absent == NO_ANSWER:
            if not self.extend:
                raise place.refused(
                    f"a missing value of {name!r} has no answer here; import with missing='majority', by which it goes "
                    "down the heaviest branch"
                )
            absent = HEAVIEST_BRANCH
        if others:
            if absent not in (None, HEAVIEST_BRANCH, others[0]):
                raise place.refused(f"a missing value of {name!r} and an unlisted category must go to the same branch")
            absent = others[0]
        return Split(tested, tuple(_merged(values)), absent, bool(others))

    def _test(self, state: State, split: Split) -> tuple[Draft, list[State]]:
        own = state.place == 0 and state.split is None
        targets = [target for _, target in split.values]
        if split.absent is not None and split.absent not in (HEAVIEST_BRANCH, *targets):
            domain = replace(ABSENT_ONLY, codes=frozenset({OTHER} if split.other else ()))
            below = self._branch(state, replace(split, absent=None, other=False), split.values)
            absent = self._next(state, split.absent, {**state.domains, split.field.feature.name: domain})
            return Draft(state.node, own, UNKNOWN, split.field, fallback=0), [below, absent]
        if split.field.is_category:
            parts: list[tuple[tuple[Domain, Target], ...]] = [(value,) for value in split.values]
        else:
            middle = len(split.values) // 2
            parts = [split.values[:middle], split.values[middle:]]
        fallback = HEAVIEST
        if split.absent in targets:
            fallback = next(at for at, part in enumerate(parts) if split.absent in [target for _, target in part])
        below_each = [
            self._branch(state, split if fallback in (HEAVIEST, at) else replace(split, absent=None, other=False), part)
            for at, part in enumerate(parts)
        ]
        draft = Draft(state.node, own, field=split.field, fallback=fallback, surrogates=split.surrogates)
        if split.field.is_category:
            draft.kind = NOMINAL
            self.budget.spend(state.node, len(split.field.labels))
            draft.branches = {code: at for at, (domain, _) in enumerate(split.values) for code in domain.codes}
        else:
            draft.kind, draft.threshold = NUMERIC, parts[0][-1][0].at_most
        return draft, below_each

    def _branch(self, state: State, split: Split, values: Sequence[tuple[Domain, Target]]) -> State:
        """Return the state below the branch that takes `values` and, if `split` covers them, missing values."""
        if len(values) > 1:
            return replace(state, split=replace(split, values=tuple(values), surrogates=()))
        [(domain, target)] = values
        codes = domain.codes | {OTHER} if split.other else domain.codes
        absent = split.absent is not None or bool(split.surrogates)
        narrow = replace(domain, codes=codes, absent=absent)
        return self._next(state, target, {**state.domains, split.field.feature.name: narrow})

    def _next(self, state: State, target: Target, domains: Mapping[str, Domain]) -> State:
        self.budget.spend(state.node, len(domains))
        kind, place = target
        if kind == "child":
            return State(self.children[id(state.node)][place][0], 0, domains)
        return State(state.node, place, domains, stops=target == STOP)

    def _domain(self, state: State, tested: Field) -> Domain:
        domain = state.domains.get(tested.feature.name)
        if domain is not None:
            return domain
        codes = range(OTHER if tested.is_open else 0, len(tested.labels))
        return Domain(codes=frozenset(codes if tested.is_category else ()), absent=True)

    def _with_surrogates(self, state: State, children: Sequence[tuple[Element, Predicate]]) -> Split | State:
        """Return the next test, with surrogates if its own field may be missing here."""
        place = children[state.place][1].element
        for _, predicate in children:
            self.budget.evaluate(predicate)
        parts = [predicate.parts for _, predicate in children]
        names = [[tuple(each.fields()) for each in part] for part in parts]
        alike = len(children) == 2 and names[0] == names[1] and all(each.kind == "surrogate" for _, each in children)
        if not alike or any(len(each) != 1 for each in names[0]):
            raise place.refused("surrogates need a node that has two children with the same fields in order")
        tested, *further = (next(iter(each.fields().values())) for each in parts[0])
        primary = [each[0] for each in parts]
        if tested.replacement is not None or not self._domain(state, tested).absent:
            return self._simplified(state, self._outcomes(state, tested, primary))
        known = replace(self._domain(state, tested), absent=False)
        inner = replace(state, domains={**state.domains, tested.feature.name: known})
        split = self._outcomes(inner, tested, primary)
        targets = {target for _, target in split.values}
        absent = self._unknown(state.node)
        if absent == NO_ANSWER and self.extend:
            absent = HEAVIEST_BRANCH
        if targets != {("child", 0), ("child", 1)} or len(split.values) != 2 or split.other:
            raise place.refused("the values of a test with surrogates must go to its two children")
        if absent not in (HEAVIEST_BRANCH, *targets):
            raise place.refused("rows that lack all tested values must go to a child, by defaultChild")
        surrogates = [
            self._surrogate(state, each, [part[at] for part in parts], split)
            for at, each in enumerate(further, start=1)
        ]
        return replace(split, absent=absent, surrogates=tuple(surrogates))

    def _surrogate(self, state: State, tested: Field, predicates: Sequence[Predicate], split: Split) -> Surrogate:
        element, name = predicates[0].element, tested.feature.name
        if tested.replacement is not None or not tested.has_answer:
            raise element.refused(f"a missing value of surrogate {name!r} is replaced or refused: cannot be imported")
        codes = self._domain(state, tested).codes
        known = values_between(tested, Domain(codes=codes), predicates)
        self.budget.spend(element, len(known) + len(tested.labels))
        branch = {target[1]: at for at, (_, target) in enumerate(split.values)}
        branch_of_value = dict[int, int]()
        for at, value in enumerate(known):
            for predicate in predicates:
                self.budget.evaluate(predicate)
            holds = [place for place, each in enumerate(predicates) if each.truth(example(tested, value))]
            if not holds or OTHER in value.codes:
                raise element.refused(f"some values of the surrogate {name!r} take no branch")
            branch_of_value[at] = branch[holds[0]]
        if tested.is_category:
            branches = {next(iter(value.codes)): branch_of_value[at] for at, value in enumerate(known)}
            return Surrogate(tested, math.nan, 0, branches)
        if len(known) != 2 or branch_of_value[0] == branch_of_value[1]:
            raise element.refused(f"the surrogate {name!r} must have one threshold")
        return Surrogate(tested, known[0].at_most, branch_of_value[0], {})


def values_between(tested: Field, domain: Domain, predicates: Sequence[Predicate]) -> list[Domain]:
    """Divide the domain into single categories, or into intervals within which no predicate changes its result.

    An empty domain has no parts.
    """
    if tested.is_category:
        return [Domain(codes=frozenset({code})) for code in sorted(domain.codes)]
    if domain.above >= domain.at_most:
        return []
    bounds = {bound for each in predicates for test in each.tests() for bound in (test.above, test.at_most)}
    cuts = sorted(bound for bound in bounds if domain.above < bound < domain.at_most)
    ends = [domain.above, *cuts, domain.at_most]
    return [Domain(low, high) for low, high in pairwise(ends)]


def example(tested: Field, domain: Domain) -> Value:
    """Return a value of a domain whose values no predicate distinguishes."""
    if tested.is_category:
        return next(iter(domain.codes))
    if domain.at_most < math.inf:
        return domain.at_most
    return math.nextafter(domain.above, math.inf) if domain.above > -math.inf else 0.0


def _merged(values: Sequence[tuple[Domain, Target]]) -> list[tuple[Domain, Target]]:
    """Merge neighbouring intervals with the same target. Categories are merged by target, and sorted by it."""
    merged = list[tuple[Domain, Target]]()
    if values and values[0][0].codes:
        codes = dict[Target, set[int]]()
        for domain, target in values:
            codes.setdefault(target, set()).update(domain.codes)
        return [(Domain(codes=frozenset(codes[target])), target) for target in sorted(codes)]
    for domain, target in values:
        if merged and merged[-1][1] == target:
            merged[-1] = (replace(merged[-1][0], at_most=domain.at_most), target)
        else:
            merged.append((domain, target))
    return merged
