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
    branch_boxes,
    codes_up_to,
    unseen_codes,
)
from espalier.explanation.row_flow import ALL, RowFlow, row_flow
from espalier.explanation.sufficient_reasons import reachable_nodes
from espalier.model.model import Model
from espalier.model.node_tests import LEAF, NOMINAL
from espalier.model.rules import Condition
from espalier.prediction.missing_strategies import STOP
from espalier.prediction.rule_predictor import RulePredictor
from espalier.prediction.tree_predictor import tree_predictor

MAX_EDGES: Final = 100_000
"""Maximum number of branches that the search follows before its last test; following that many takes seconds."""


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
    attribute: Sequence[int]  # the index of the attribute that each test reads
    is_exact: bool  # whether no value that the row has or may get divides it, or lets a surrogate decide

    def leads_to_wanted(self, place: int) -> bool:
        """Return whether a wanted answer is at or below a place."""

    def edges(self, place: int) -> Iterator[Edge]:
        """Yield the branches of a test; branches without a wanted answer may be left out."""


class TreeGraph:
    """The tests of a tree."""

    def __init__(self, model: Model, values: Sequence[float], is_wanted: Mask, fixed: Collection[int]) -> None:
        """Prepare the search; `is_wanted`, bool (n_nodes,), marks the nodes with a wanted answer."""
        tree, predictor = model.tree, tree_predictor(model)
        self._model, self._predictor, self._is_wanted = model, predictor, is_wanted
        self.attribute: Sequence[int] = predictor.feature
        answers = is_wanted & ((tree.test == LEAF) | (tree.fallback == STOP))
        so_far = np.concatenate(([0], np.cumsum(answers)))
        self._has_wanted = (so_far[np.arange(tree.n_nodes) + tree.size] - so_far[:-1] > 0).tolist()
        # The branch of the row's value at each test, or `STOP`; `ALL` if the row is divided, or a surrogate decides.
        flow = row_flow(model, predictor, values)
        flow.branch[list(flow.surrogates_used)] = ALL
        self._own_branch: list[int] = flow.branch.tolist()
        # If not, the search omits changes by which several leaves together, or a surrogate, give a wanted answer.
        self.is_exact = ALL not in self._own_branch and not _may_divide(model, flow, fixed)
        self.start = self._place(0)

    def leads_to_wanted(self, place: int) -> bool:
        """Return whether a wanted answer is at or below a place."""
        return bool(self._has_wanted[place] if place >= 0 else self._is_wanted[~place])

    def edges(self, place: int) -> Iterator[Edge]:
        """Yield the branches of a test, and the node's answer if a missing or unseen value makes the row end there."""
        tree, predictor = self._model.tree, self._predictor
        feature = self._model.schema.attributes[self.attribute[place]]
        own, unseen, has_surrogates = self._own_branch[place], unseen_codes(tree, place), tree.has_surrogates[place]
        fallback = ALL if has_surrogates else predictor.fallback[place]
        if own == STOP or (fallback == STOP and unseen):
            yield Edge(~place, own=own == STOP, partly=False, known=NOTHING.plus(unseen))
        first, stop = predictor.child_start[place : place + 2]
        branches = [at - first for at in range(first, stop) if self._has_wanted[predictor.child[at]]]
        for branch, box in zip(branches, branch_boxes(tree, feature, place, branches), strict=True):
            partly = own == ALL and bool(has_surrogates or predictor.share[first + branch] > 0)
            known = box.plus(unseen) if fallback == branch else box
            yield Edge(self._place(predictor.child[first + branch]), own=own == branch, partly=partly, known=known)

    def _place(self, node: int) -> int:
        return node if self.attribute[node] >= 0 else ~node


def _may_divide(model: Model, flow: RowFlow, fixed: Collection[int]) -> bool:
    """Return whether changes outside `fixed` may divide the row, by a category that a test has not seen."""
    tree = model.tree
    is_fixed = np.isin(tree.feature, list(fixed))
    tests = (tree.test == NOMINAL) & ((tree.fallback == ALL) | tree.has_surrogates) & ~is_fixed
    if not np.any(tests) or not np.any(tree.code_branch < 0):
        return False
    closed = np.flatnonzero(is_fixed[tree.parent] & (flow.share == 0))
    return bool(np.any(tests & tree.outside(closed) & reachable_nodes(model).divides_known))


class RuleGraph:
    """The conditions of a rule list."""

    is_exact = True

    def __init__(self, model: Model, predictor: RulePredictor, values: Sequence[float], is_wanted: Mask) -> None:
        """Prepare the search; `is_wanted`, bool (n_rules + 1,), marks rules with a wanted answer, the default last."""
        self.values = values
        self._rule: list[int] = []
        self._conditions: list[Condition] = []
        self._first: list[int] = []  # the place at which each rule begins: its first condition, or its answer
        for number, rule in enumerate(model.rules.answers):
            self._first.append(len(self._conditions) if rule.conditions else ~number)
            self._conditions += rule.conditions
            self._rule += [number] * len(rule.conditions)
        self.attribute: Sequence[int] = [predictor.place[condition.attribute.name] for condition in self._conditions]
        last = np.flatnonzero(is_wanted)
        self._last_wanted = int(last[-1]) if len(last) else -1
        self._wanted = is_wanted
        self.start = self._first[0]

    def leads_to_wanted(self, place: int) -> bool:
        """Return whether a wanted answer is at or below a place."""
        return bool(self._wanted[~place]) if place < 0 else self._rule[place] <= self._last_wanted

    def edges(self, place: int) -> Iterator[Edge]:
        """Yield the edges of a condition: one to take if it holds, the others if it fails."""
        condition, rule = self._conditions[place], self._rule[place]
        feature = condition.attribute
        value = self.values[self.attribute[place]]
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
        cost, distance: Those of `value`.
    """

    stays: bool = True
    box: Box = EVERYTHING
    value: float | None = None
    cost: float = 0.0
    distance: float = 0.0


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
        first = (self._key(choices), True, next(turn), graph.start, choices)
        heap = [first] if graph.leads_to_wanted(graph.start) else []
        n_edges = 0
        while heap:
            *_, place, choices = heapq.heappop(heap)
            if place < 0:
                yield {at: choice.value for at, choice in choices.items() if choice.value is not None}
                continue
            if n_edges >= MAX_EDGES:
                self.stopped = True
                return
            attribute = graph.attribute[place]
            before = choices.get(attribute, FIXED if attribute in self.fixed else FREE)
            for edge in graph.edges(place):
                n_edges += 1
                if graph.leads_to_wanted(edge.to):
                    for after in self._after(attribute, before, edge):
                        further = {**choices, attribute: after}
                        # Of equal keys, answers come before tests, in the order in which they were found.
                        heapq.heappush(heap, (self._key(further), edge.to >= 0, next(turn), edge.to, further))

    @staticmethod
    def _key(choices: Mapping[int, _Choice]) -> tuple[float, float, int]:
        changed = [choice for choice in choices.values() if choice.value is not None]
        # Always added in the same order, so that a longer path never has a smaller sum.
        return sum([choice.cost for choice in changed]), sum([choice.distance for choice in changed]), len(changed)

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
            distance = self.domains[attribute].distance(value)
            yield _Choice(stays=False, box=box, value=value, cost=self.cost(attribute, value), distance=distance)
