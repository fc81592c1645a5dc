"""Ways through a model for a row some of whose values may be changed: from test to test, each a part of what is legal.

Both kinds of models look alike from here: places that test something, counted from 0, and answers, written as
``~number`` of the leaf or rule. A list of rules is a tree as well: a condition that holds leads to the next one, one
that does not to the next rule.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from espalier.legal_values import EVERYTHING, Box
from espalier.model import Model
from espalier.prediction import Router
from espalier.rule_prediction import RuleRouter
from espalier.rules import Condition, LabelCodes
from espalier.strategies import STOP
from espalier.tree import LEAF, NUMERIC, UNKNOWN

__all__ = ["Going", "RuleWays", "TreeWays", "Ways"]

Mask = npt.NDArray[np.bool_]
ALL: Final = -1


@dataclass(frozen=True, slots=True)
class Going:
    """What goes one way at a test.

    Attributes:
        to: The next place, or ``~number`` of the answer.
        own: Whether the row's own value, or its lack, goes there as a whole.
        partly: Whether it goes there in part, or may do so: the row is shared out, or another attribute decides.
        known: The known values that go there as a whole; None where none does.
    """

    to: int
    own: bool
    partly: bool
    known: Box | None


class Ways(Protocol):
    """Where the tests of a model lead."""

    start: int

    def attribute(self, place: int) -> int:
        """Give the place of the attribute that is asked for."""
        ...

    def promises(self, place: int) -> bool:
        """Say whether an answer that is wanted stands at or below a place."""
        ...

    def going(self, place: int) -> Iterator[Going]:
        """Give the ways on."""
        ...


class TreeWays:
    """The ways through a tree."""

    def __init__(self, model: Model, way: Router, values: Sequence[float], wanted: Mask) -> None:
        """Take which nodes give a wanted answer as `wanted`: bool (n)."""
        self.model, self.way, self.values = model, way, values
        tree = model.tree
        answers = wanted & ((tree.test == LEAF) | (tree.fallback == STOP))
        so_far = np.concatenate(([0], np.cumsum(answers)))
        self._below = (so_far[np.arange(tree.n_nodes) + tree.size] - so_far[:-1] > 0).tolist()
        self._stands_in = [False] * tree.n_nodes
        if tree.surrogates is not None:
            self._stands_in = (np.diff(tree.surrogates.start) > 0).tolist()
        self.start = self._place(0)

    def attribute(self, place: int) -> int:
        """Give the place of the attribute that is asked for."""
        return self.way.feature[place]

    def promises(self, place: int) -> bool:
        """Say whether an answer that is wanted stands at or below a place."""
        return bool(self._below[place if place >= 0 else ~place])

    def going(self, place: int) -> Iterator[Going]:
        """Give the ways on; where the row ends at the test for want of a value, that is one of them."""
        way = self.way
        own = self._own_branch(place)
        if own == STOP:
            yield Going(~place, own=True, partly=False, known=None)
        first, stop = way.child_start[place], way.child_start[place + 1]
        for branch in range(stop - first):
            partly = own == ALL and (self._stands_in[place] or way.share[first + branch] > 0)
            child = self._place(way.child[first + branch])
            yield Going(child, own=own == branch, partly=partly, known=self._known(place, branch))

    def _place(self, node: int) -> int:
        return node if self.way.feature[node] >= 0 else ~node

    def _own_branch(self, node: int) -> int:
        """Give the branch of the row's own value; `ALL` for a part down each, or where another attribute decides."""
        way, feature = self.way, self.way.feature[node]
        if self._stands_in[node] and way.test[node] != UNKNOWN:
            value = self.values[feature]
            absent = math.isnan(value) or (value < 0 and not way.is_number[feature])
            if absent or not way.branch_is_known(node, value):
                return ALL
        return way.branch(node, self.values)

    def _known(self, node: int, branch: int) -> Box | None:
        """Give the known values that take a branch."""
        way = self.way
        if way.test[node] == UNKNOWN:
            return EVERYTHING if branch == 0 else None
        if way.test[node] == NUMERIC:
            threshold = way.threshold[node]
            feature = self.model.schema.attributes[way.feature[node]]
            if feature.coded:
                return _codes_up_to(threshold, len(feature.categories), below=branch == 0)
            return Box(at_most=threshold) if branch == 0 else Box(above=threshold)
        fallback = ALL if self._stands_in[node] else way.fallback[node]
        codes = self.model.tree.codes(node)
        takes = (codes == branch) | ((codes < 0) & (fallback == branch))
        return Box(codes=_bits(np.flatnonzero(takes).tolist()))


class RuleWays:
    """The ways through a list of rules."""

    def __init__(self, model: Model, way: RuleRouter, values: Sequence[float], wanted: Mask) -> None:
        """Take which rules, the default last, give a wanted answer as `wanted`: bool (rules + 1)."""
        self.way, self.values, self.n_rules = way, values, model.rules.n_rules
        self._rule: list[int] = []
        self._conditions: list[Condition] = []
        self._codes = LabelCodes()
        self._first: list[int] = []
        for number, rule in enumerate(model.rules.rules):
            self._first.append(len(self._conditions))
            self._conditions += rule.conditions
            self._rule += [number] * len(rule.conditions)
        last = np.flatnonzero(wanted)
        self._last_wanted = int(last[-1]) if len(last) else -1
        self._wanted = wanted
        self.start = self._begin(0)

    def attribute(self, place: int) -> int:
        """Give the place of the attribute that is asked for."""
        return self.way.place[self._conditions[place].attribute.name]

    def promises(self, place: int) -> bool:
        """Say whether an answer that is wanted stands at or below a place."""
        return bool(self._wanted[~place]) if place < 0 else self._rule[place] <= self._last_wanted

    def going(self, place: int) -> Iterator[Going]:
        """Give the ways on: the condition holds, or it does not."""
        condition, rule = self._conditions[place], self._rule[place]
        feature = condition.attribute
        value = self.values[self.attribute(place)]
        absent = math.isnan(value) or (value < 0 and feature.coded)
        last = place + 1 == len(self._conditions) or self._rule[place + 1] != rule
        holds, fails = (~rule if last else place + 1), self._begin(rule + 1)
        if condition.known is False:
            yield Going(holds, own=absent, partly=False, known=None)
            yield Going(fails, own=not absent, partly=False, known=EVERYTHING)
            return
        box = _box_of(condition, self._codes)
        own = not absent and _holds(box, value, coded=feature.coded)
        yield Going(holds, own=own, partly=False, known=box)
        if feature.coded:
            yield Going(fails, own=not own, partly=False, known=Box(codes=~box.codes))
            return
        # What is outside of an interval are two of them.
        sides = [Box(at_most=box.above), Box(above=box.at_most)]
        for side in sides:
            if side.above < math.inf and side.at_most > -math.inf:
                own = not absent and _holds(side, value, coded=False)
                yield Going(fails, own=own, partly=False, known=side)
        if absent:
            yield Going(fails, own=True, partly=False, known=None)

    def _begin(self, rule: int) -> int:
        """Give the first test of a rule, or its answer where it has none."""
        if rule == self.n_rules:
            return ~rule
        first = self._first[rule]
        return first if first < len(self._rule) and self._rule[first] == rule else ~rule


def _box_of(condition: Condition, listed: LabelCodes) -> Box:
    if not condition.attribute.coded:
        return Box(condition.above, condition.at_most)
    n_categories, codes = len(condition.attribute.categories), -1
    if condition.categories is not None:
        codes = _bits(listed.listed(condition))
    if condition.above > -math.inf:
        codes &= _codes_up_to(condition.above, n_categories, below=False).codes
    if condition.at_most < math.inf:
        codes &= _codes_up_to(condition.at_most, n_categories, below=True).codes
    return Box(codes=codes)


def _holds(box: Box, value: float, *, coded: bool) -> bool:
    return bool(box.codes >> int(value) & 1) if coded else box.above < value <= box.at_most


def _codes_up_to(threshold: float, n_categories: int, *, below: bool) -> Box:
    """Give the ordered categories at or below a threshold, or those above it."""
    n_below = math.floor(min(max(threshold, -1.0), n_categories - 1.0)) + 1
    codes = (1 << n_below) - 1
    return Box(codes=codes if below else ~codes)


def _bits(codes: Collection[int] | Iterator[int]) -> int:
    found = 0
    for code in codes:
        found |= 1 << code
    return found
