"""Which leaves of a tree any row can come to: on a way that asks for one attribute twice, answers may exclude others.

In trees as they are grown every leaf can be reached. Raised subtrees, trees that were written by hand, and tests of
whether a value is known can leave some that cannot; and some that only a part of a row can reach, one whose value is
missing.
"""

from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.levels import Levels, levels_of
from espalier.model import Model
from espalier.strategies import STOP
from espalier.tree import NOMINAL, NUMERIC, UNKNOWN, Tree

__all__ = ["Reach", "can_be_missing", "reach_of"]

Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
ALL: Final = -1


@dataclass(frozen=True, slots=True)
class Reach:
    """What can be reached, n nodes.

    Attributes:
        whole: bool (n); some row goes there as a whole.
        part: bool (n); some row goes there, if only by a share of it.
        end: bool (n); some row ends at this test, its value missing (`STOP`).
    """

    whole: Mask
    part: Mask
    end: Mask


def reach_of(model: Model) -> Reach:
    """Say which nodes of a tree can be reached, found on first use and kept as long as the model."""
    found = _REACHES.get(model)
    if found is None:
        found = _REACHES[model] = _Reaching(model).all()
    return found


def can_be_missing(model: Model) -> list[bool]:
    """Say of each attribute whether a row that lacks it comes to the tree without a value."""
    imputed = model.preparation.imputed
    if imputed is None:
        return [True] * len(model.schema.attributes)
    pairs = zip(model.schema.attributes, imputed, strict=True)
    return [bool(np.isnan(value)) or (feature.coded and value < 0) for feature, value in pairs]


_REACHES: WeakKeyDictionary[Model, Reach] = WeakKeyDictionary()


class _Reaching:
    """One walk down a tree. Per node, of the attribute that its parent asks for, as far as the way has settled it:

    `low` < value ≤ `high` of a number; `missing_whole`, `missing_part`: it may be missing, and the row, or some of it,
    still comes here.
    """

    def __init__(self, model: Model) -> None:
        tree = model.tree
        self.tree: Tree = tree
        self.levels: Levels = levels_of(tree)
        self.attributes = model.schema.attributes
        self.may_miss = np.array([*can_be_missing(model), False], dtype=np.bool_)
        self.low, self.high = np.full(tree.n_nodes, -np.inf), np.full(tree.n_nodes, np.inf)
        self.missing_whole, self.missing_part = np.ones(tree.n_nodes, np.bool_), np.ones(tree.n_nodes, np.bool_)
        self.stands_in = np.zeros(tree.n_nodes, np.bool_)
        if tree.surrogates is not None:
            self.stands_in = np.diff(tree.surrogates.start) > 0
        # Of a number: its first and its last value. Those of a coded attribute are whole.
        sizes = [len(feature.categories) if feature.coded else 0 for feature in self.attributes]
        self.coded = np.array([feature.coded for feature in self.attributes], dtype=np.bool_)
        self.last = np.where(self.coded, np.array(sizes, dtype=np.float64) - 1, np.finfo(np.float64).max)
        self.by_category = np.zeros(len(self.attributes) + 1, np.bool_)
        self.by_category[tree.feature[tree.test == NOMINAL]] = True
        self.allowed: dict[tuple[int, bool], Mask] = {}

    def all(self) -> Reach:
        """Walk down."""
        tree = self.tree
        whole, part = np.ones(tree.n_nodes, np.bool_), np.ones(tree.n_nodes, np.bool_)
        end = np.zeros(tree.n_nodes, np.bool_)
        for level in self.levels.downwards():
            before = self.levels.previous[level.tests]
            feature = tree.feature[level.tests]
            missing_whole = np.where(before >= 0, self.missing_whole[before], self.may_miss[feature])
            missing_part = np.where(before >= 0, self.missing_part[before], self.may_miss[feature])
            stops = (tree.fallback[level.tests] == STOP) & (tree.test[level.tests] != UNKNOWN)
            end[level.tests] = whole[level.tests] & stops & missing_whole
            owner, children = level.owner, level.children
            goes_whole, goes_part = self._without_value(level.tests[owner], children)
            asks = tree.test[level.tests[owner]] == UNKNOWN
            lacking = asks & (tree.branches[children] == 1)
            self.missing_whole[children] = missing_whole[owner] & np.where(asks, lacking, goes_whole)
            self.missing_part[children] = missing_part[owner] & np.where(asks, lacking, goes_part)
            known = self._narrow(before[owner], level.tests[owner], children) & ~lacking
            whole[children] = whole[level.tests[owner]] & (known | self.missing_whole[children])
            part[children] = part[level.tests[owner]] & (known | self.missing_part[children])
            self._look_at_categories(level.tests, whole, part, end)
        return Reach(whole, part, end)

    def _without_value(self, tests: Array, children: Array) -> tuple[Mask, Mask]:
        """Say whether a row without the value goes from each test to its child, as a whole, and at least in part."""
        fallback = self.tree.fallback[tests]
        whole = (fallback == self.tree.branches[children]) | self.stands_in[tests]
        return whole, whole | ((fallback == ALL) & (self.levels.share[children] > 0))

    def _narrow(self, before: Array, tests: Array, children: Array) -> Mask:
        """Cut the interval of a number; say whether some value is left. Categories are looked at elsewhere."""
        tree = self.tree
        low = np.where(before >= 0, self.low[before], -np.inf)
        high = np.where(before >= 0, self.high[before], np.inf)
        cuts, first = tree.test[tests] == NUMERIC, tree.branches[children] == 0
        threshold = tree.threshold[tests]
        low = np.where(cuts & ~first, np.maximum(low, threshold), low)
        high = np.where(cuts & first, np.minimum(high, threshold), high)
        empty = (tree.test[tests] == UNKNOWN) & ~first
        self.low[children] = np.where(empty, np.inf, low)
        self.high[children] = np.where(empty, -np.inf, high)
        last, coded = self.last[tree.feature[tests]], self.coded[tree.feature[tests]]
        top, bottom = np.minimum(high, last), np.where(coded, np.maximum(low, -1.0), low)
        return np.where(coded, np.floor(top) > np.floor(bottom), bottom < top)

    def _look_at_categories(self, tests: Array, whole: Mask, part: Mask, end: Mask) -> None:
        """Settle the nominal tests of a level. Asked once, each branch has a category: only the others need work."""
        again = self.by_category[self.tree.feature[tests]] & (self.levels.previous[tests] >= 0)
        for test in tests[again].tolist():
            for child in self.tree.children(test):
                for reached, is_whole in ((whole, True), (part, False)):
                    missing = self.missing_whole[child] if is_whole else self.missing_part[child]
                    some = bool(np.any(self._categories(child, is_whole=is_whole)))
                    reached[child] = reached[test] and (some or bool(missing))
        for test in tests[(self.tree.test[tests] == NOMINAL) & (self.tree.fallback[tests] == STOP)].tolist():
            unseen = self.tree.codes(test) == ALL
            before = int(self.levels.previous[test])
            some = unseen if before < 0 else unseen & self._categories(before, is_whole=True)
            end[test] |= whole[test] and bool(np.any(some))

    def _categories(self, child: int, *, is_whole: bool) -> Mask:
        """Say which categories the way to `child` leaves of the attribute that its parent asks for."""
        chain: list[int] = []
        node = child
        while node >= 0 and (node, is_whole) not in self.allowed:
            chain.append(node)
            node = int(self.levels.previous[self.tree.parent[node]])
        allowed = self.allowed.get((node, is_whole))
        for step in reversed(chain):
            taken = self._taken(step, is_whole=is_whole)
            allowed = taken if allowed is None else allowed & taken
            self.allowed[step, is_whole] = allowed
        return allowed if allowed is not None else np.ones(0, np.bool_)

    def _taken(self, child: int, *, is_whole: bool) -> Mask:
        """Say which categories go from the parent of `child` to it."""
        test, branch = int(self.tree.parent[child]), int(self.tree.branches[child])
        n_categories = len(self.attributes[int(self.tree.feature[test])].categories)
        if self.tree.test[test] == UNKNOWN:
            return np.full(n_categories, branch == 0)
        if self.tree.test[test] == NUMERIC:
            below: Mask = np.arange(n_categories) <= self.tree.threshold[test]
            return below if branch == 0 else ~below
        whole, part = self._without_value(np.array([test]), np.array([child]))
        unseen = bool(whole[0] if is_whole else part[0])
        codes = self.tree.codes(test)
        taken: Mask = (codes == branch) | ((codes == ALL) & unseen)
        return taken
