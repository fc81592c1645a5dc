"""Best-first search for the cheapest changes of a row that lead a model to a wanted answer (Dijkstra 1959).

Both trees and rule lists are graphs of places. A *place* is an integer. If it is 0 or more, it is a test: the number of
a node, or the index of a condition. Otherwise it is ``~number``, the answer of the node or rule ``number``. In a rule
list, a condition that holds leads to the rule's next condition or answer; one that fails leads to the next rule.
"""

import heapq
import math
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, Protocol

import numpy as np

from espalier.arrays import Mask
from espalier.explanation.counterfactuals.value_domains import (
    EVERYTHING,
    NOTHING,
    Box,
    ValueDomain,
    bits_of,
    branch_box,
    codes_up_to,
)
from espalier.explanation.row_flow import ALL, row_flow
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.rules import Condition
from espalier.prediction.missing_strategies import STOP
from espalier.prediction.rule_predictor import RulePredictor
from espalier.prediction.tree_predictor import TreePredictor

MAX_TESTS: Final = 100_000
"""Maximum number of tests whose branches the search follows; following that many takes some seconds."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One branch of a test.

    Attributes:
        to: The place to which the branch leads.
        own: Whether the row's own value, known or missing, sends the whole row down this branch.
        partly: Whether only a share of the row takes this branch, or a surrogate may send the row there.
        known: The known values that send a whole row down this branch.
    """

    to: int
    own: bool
    partly: bool
    known: Box


class Graph(Protocol):
    """The tests of a model, and the places to which their branches lead."""

    start: int
    is_exact: bool  # whether no value of the row divides it, or lets a surrogate decide

    def attribute(self, place: int) -> int:
        """Return the index of the tested attribute."""

    def leads_to_wanted(self, place: int) -> bool:
        """Return whether a wanted answer is at or below a place."""

    def edges(self, place: int) -> Iterator[Edge]:
        """Yield the branches of a test."""


class TreeGraph:
    """The tests of a tree."""

    def __init__(self, model: Model, predictor: TreePredictor, values: Sequence[float], is_wanted: Mask) -> None:
        """Prepare the search; `is_wanted`, bool (n_nodes,), marks the nodes with a wanted answer."""
        self.model, self.predictor = model, predictor
        tree = model.tree
        answers = is_wanted & ((tree.test == LEAF) | (tree.fallback == STOP))
        so_far = np.concatenate(([0], np.cumsum(answers)))
        self._has_wanted = (so_far[np.arange(tree.n_nodes) + tree.size] - so_far[:-1] > 0).tolist()
        self._has_surrogates = [False] * tree.n_nodes
        if tree.surrogates is not None:
            self._has_surrogates = (np.diff(tree.surrogates.start) > 0).tolist()
        # The branch of the row's value at each test, or `STOP`; `ALL` if the row is divided, or a surrogate decides.
        flow = row_flow(model, predictor, values)
        flow.branch[list(flow.surrogates_used)] = ALL
        self._own_branch: list[int] = flow.branch.tolist()
        # If not, the search omits changes by which several leaves together, or a surrogate, give a wanted answer.
        self.is_exact = ALL not in self._own_branch
        self.start = self._place(0)

    def attribute(self, place: int) -> int:
        """Return the index of the tested attribute."""
        return self.predictor.feature[place]

    def leads_to_wanted(self, place: int) -> bool:
        """Return whether a wanted answer is at or below a place."""
        return bool(self._has_wanted[max(place, ~place)])

    def edges(self, place: int) -> Iterator[Edge]:
        """Yield the branches of a test, and the node's answer if a missing or unseen value makes the row end there."""
        predictor = self.predictor
        feature = self.model.schema.attributes[predictor.feature[place]]
        own = self._own_branch[place]
        if own == STOP:
            yield Edge(~place, own=True, partly=False, known=NOTHING)
        unseen = ALL if self._has_surrogates[place] else predictor.fallback[place]
        first, stop = predictor.child_start[place], predictor.child_start[place + 1]
        for branch in range(stop - first):
            partly = own == ALL and (self._has_surrogates[place] or predictor.share[first + branch] > 0)
            known = branch_box(self.model.tree, feature, place, branch, with_unseen=unseen == branch)
            yield Edge(self._place(predictor.child[first + branch]), own=own == branch, partly=partly, known=known)

    def _place(self, node: int) -> int:
        return node if self.predictor.feature[node] >= 0 else ~node


class RuleGraph:
    """The conditions of a rule list."""

    is_exact = True

    def __init__(self, model: Model, predictor: RulePredictor, values: Sequence[float], is_wanted: Mask) -> None:
        """Prepare the search; `is_wanted`, bool (n_rules + 1,), marks rules with a wanted answer, the default last."""
        self.predictor, self.values = predictor, values
        self._rule: list[int] = []
        self._conditions: list[Condition] = []
        self._first: list[int] = []  # the place at which each rule begins: its first condition, or its answer
        for number, rule in enumerate(model.rules.answers):
            self._first.append(len(self._conditions) if rule.conditions else ~number)
            self._conditions += rule.conditions
            self._rule += [number] * len(rule.conditions)
        last = np.flatnonzero(is_wanted)
        self._last_wanted = int(last[-1]) if len(last) else -1
        self._wanted = is_wanted
        self.start = self._first[0]

    def attribute(self, place: int) -> int:
        """Return the index of the tested attribute."""
        return self.predictor.place[self._conditions[place].attribute.name]

    def leads_to_wanted(self, place: int) -> bool:
        """Return whether a wanted answer is at or below a place."""
        return bool(self._wanted[~place]) if place < 0 else self._rule[place] <= self._last_wanted

    def edges(self, place: int) -> Iterator[Edge]:
        """Yield the edges of a condition: one to take if it holds, the others if it fails."""
        condition, rule = self._conditions[place], self._rule[place]
        feature = condition.attribute
        value = self.values[self.attribute(place)]
        absent = math.isnan(value) or (value < 0 and feature.coded)
        is_last = place + 1 == len(self._conditions) or self._rule[place + 1] != rule
        holds, fails = (~rule if is_last else place + 1), self._first[rule + 1]
        if condition.known is False:
            yield Edge(holds, own=absent, partly=False, known=NOTHING)
            yield Edge(fails, own=not absent, partly=False, known=EVERYTHING)
            return
        box = _box_of(condition)
        own = not absent and _contains(box, value, coded=feature.coded)
        yield Edge(holds, own=own, partly=False, known=box)
        if feature.coded:
            yield Edge(fails, own=not own, partly=False, known=Box(codes=~box.codes))
            return
        # The complement of an interval is two intervals.
        for side in (Box(at_most=box.above), Box(above=box.at_most)):
            if side.above < math.inf and side.at_most > -math.inf:
                own = not absent and _contains(side, value, coded=False)
                yield Edge(fails, own=own, partly=False, known=side)
        if absent:
            yield Edge(fails, own=True, partly=False, known=NOTHING)


def _box_of(condition: Condition) -> Box:
    if not condition.attribute.coded:
        return Box(condition.above, condition.at_most)
    n_categories, codes = len(condition.attribute.categories), -1
    if condition.categories is not None:
        codes = bits_of(condition.codes)
    if condition.above > -math.inf:
        codes &= codes_up_to(condition.above, n_categories, below=False).codes
    if condition.at_most < math.inf:
        codes &= codes_up_to(condition.at_most, n_categories, below=True).codes
    return Box(codes=codes)


def _contains(box: Box, value: float, *, coded: bool) -> bool:
    return bool(box.codes >> int(value) & 1) if coded else box.above < value <= box.at_most


@dataclass(frozen=True, slots=True)
class _Choice:
    """The requirements of a path on one attribute.

    Attributes:
        stays: Whether the row's own value, known or missing, stays.
        box: The known values that send the whole row down this path; empty if the attribute must not change.
        value: The value in `box` that is nearest to the row's own; None if the own value stays.
    """

    stays: bool = True
    box: Box = EVERYTHING
    value: float | None = None


FREE: Final = _Choice()
FIXED: Final = _Choice(box=NOTHING)


class BestFirstSearch:
    """Search paths through a model, cheapest first: by cost, then distance, then the number of changed values."""

    def __init__(
        self, graph: Graph, domains: Sequence[ValueDomain], costs: Sequence[float], fixed: Collection[int]
    ) -> None:
        self.graph, self.domains, self.costs, self.fixed = graph, domains, costs, fixed
        self.stopped = False

    def cost(self, place: int, value: float) -> float:
        """Return the cost of changing the attribute with index `place` to `value`, limited to the largest double."""
        return min(self.domains[place].distance(value) * self.costs[place], sys.float_info.max)

    def answers(self) -> Iterator[dict[int, float]]:
        """Yield changes that lead to a wanted answer, cheapest first: the new encoded values, by attribute index."""
        graph, turn = self.graph, count()
        choices: dict[int, _Choice] = {}
        heap = [(self._key(choices), next(turn), graph.start, choices)] if graph.leads_to_wanted(graph.start) else []
        n_tests = 0
        while heap:
            _, _, place, choices = heapq.heappop(heap)
            if place < 0:
                yield {at: choice.value for at, choice in choices.items() if choice.value is not None}
                continue
            n_tests += 1
            if n_tests > MAX_TESTS:
                self.stopped = True
                return
            attribute = graph.attribute(place)
            before = choices.get(attribute, FIXED if attribute in self.fixed else FREE)
            for edge in graph.edges(place):
                if graph.leads_to_wanted(edge.to):
                    for after in self._after(attribute, before, edge):
                        further = {**choices, attribute: after}
                        heapq.heappush(heap, (self._key(further), next(turn), edge.to, further))

    def _key(self, choices: Mapping[int, _Choice]) -> tuple[float, float, int]:
        changed = [(at, choice.value) for at, choice in choices.items() if choice.value is not None]
        # Always added in the same order, so that a longer path never has a smaller sum.
        return (
            sum(self.cost(at, value) for at, value in changed),
            sum(self.domains[at].distance(value) for at, value in changed),
            len(changed),
        )

    def _after(self, attribute: int, before: _Choice, edge: Edge) -> Iterator[_Choice]:
        """Yield the choices for `attribute` that allow the path to take `edge`."""
        box = before.box.within(edge.known)
        if before.stays and edge.own:
            yield replace(before, box=box)
            return
        if before.stays and edge.partly:
            # The value stays: later tests of the attribute must not change it.
            yield _Choice(box=NOTHING)
        value = self.domains[attribute].nearest(box)
        if value is not None:
            yield _Choice(stays=False, box=box, value=value)
