"""What each attribute added to an answer, by Shapley: exact, path-dependent, in polynomial time.

Lundberg, Erion and Lee (2018), *Consistent individualized feature attribution for tree ensembles*, define the game: of
a set S of attributes a tree says v(S), where a test of an attribute in S sends the row where it goes, and any other
test shares it out over the branches as the training weight was. The attribute's value is its Shapley value (1953) in v.

A leaf's part in v is a product over the attributes A asked on its way: ``one[A]`` if A is in S, the product of the
row's own shares at the tests of A, else ``zero[A]``, that of the covers. For a product the Shapley value is an integral
(Owen 1972, multilinear extension)::

    phi[A] = value · ∫ (one[A] − zero[A]) · Π over B ≠ A of (zero[B]·(1 − t) + one[B]·t) dt,   t from 0 to 1

The integrand is a polynomial of degree below the number of attributes on the way, so Gauss and Legendre's quadrature
with half as many points is exact. Nothing here asks for two branches, nor for shares of 0 or 1: nominal tests and rows
with missing values are no special case. Cost: nodes times points; memory: that of some columns of the tree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.bulk_prediction import answer_table
from espalier.flow import Flow
from espalier.levels import Levels, levels_of
from espalier.model import Model
from espalier.prediction import Router
from espalier.tree import LEAF, Tree
from espalier.walks import added_up, divided_and_multiplied, multiplied

__all__ = ["ShapleyValues", "shapley_values"]

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

CELLS_AT_A_TIME: Final = 2_000_000
"""Nodes times points of the quadrature that are in memory together."""


@dataclass(frozen=True, slots=True)
class ShapleyValues:
    """What each attribute added to the label's share, or to the number: baseline + contributions = the answer.

    Attributes:
        baseline: What the tree says where nothing is known: the mean over the training weight.
        contributions: By attribute, of those that the tree tests, in the schema's order.
    """

    baseline: float
    contributions: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {"baseline": self.baseline, "contributions": dict(self.contributions)}


def shapley_values(model: Model, way: Router, flow: Flow, *, place: int | None) -> ShapleyValues | None:
    """Give the exact path-dependent Shapley values of one row.

    A test that a surrogate decides counts for the attribute that it asks for.

    Args:
        model: A tree.
        way: Its router.
        flow: Where the row goes.
        place: Of the class among the schema's classes whose share is explained; None: the number is.

    Returns:
        None where leaves are linear models, for which the game is not defined.
    """
    if way.linear is not None:
        return None
    value = way.value if place is None else answer_table(model)[:, place]
    # A power of two above all values: sums stay finite, and no digit is lost.
    scale = 2.0 ** max(-1000, min(1000, int(np.frexp(np.max(np.abs(value)))[1])))
    game = _Game(model, flow, value / scale)
    added = game.integrals() * scale
    tested = model.tree.tested()
    names = [feature.name for feature in model.schema.attributes]
    return ShapleyValues(game.baseline() * scale, {names[feature]: float(added[feature]) for feature in tested})


class _Covers(NamedTuple):
    """What the game is for every row, n nodes.

    Attributes:
        zero: float64 (n); of the attribute asked at each node's parent, the product of the covers so far.
        whole: float64 (n); the part of the training weight that reached each node.
    """

    zero: Floats
    whole: Floats


_COVERS: WeakKeyDictionary[Tree, _Covers] = WeakKeyDictionary()


def _covers_of(tree: Tree) -> _Covers:
    """Give the covers of a tree, made on first use and kept as long as the tree."""
    found = _COVERS.get(tree)
    if found is None:
        levels = levels_of(tree)
        found = _Covers(*(multiplied(levels, levels.cover, place) for place in (levels.before, tree.parent)))
        _COVERS[tree] = found
    return found


class _Game:
    """The products of one row, n nodes.

    Attributes:
        one: float64 (n); of the attribute asked at each node's parent, the product of the row's shares so far.
        zero: float64 (n); the same of the covers.
    """

    def __init__(self, model: Model, flow: Flow, value: Floats) -> None:
        self.tree, self.flow, self.value = model.tree, flow, value
        self.levels: Levels = levels_of(model.tree)
        self.n_attributes = len(model.schema.attributes)
        self.covers = _covers_of(model.tree)
        self.one, self.zero = multiplied(self.levels, flow.part, self.levels.before), self.covers.zero

    def baseline(self) -> float:
        """Give what the tree says of the empty set."""
        leaves = self.tree.test == LEAF
        return float(np.dot(self.covers.whole[leaves], self.value[leaves]))

    def integrals(self) -> Floats:
        """Give the Shapley value of each attribute: float64 (attributes)."""
        added = np.zeros(self.n_attributes)
        points, weights = _quadrature((self.levels.most_asked + 1) // 2)
        step = max(1, CELLS_AT_A_TIME // self.tree.n_nodes)
        for first in range(0, len(points), step):
            self._add(added, points[first : first + step], weights[first : first + step])
        return added

    def _add(self, added: Floats, points: Floats, weights: Floats) -> None:
        """Add the integrand at some points: down the tree the products, up the tree the sums of what leaves answer."""
        if self.levels.binary and self.levels.is_thin(len(points)):
            self._add_by_nodes(added, points, weights)
            return
        levels, before_each = self.levels, self.levels.before
        products = np.ones((self.tree.n_nodes, len(points)))
        for level in levels.downwards():
            before = before_each[level.children]
            above = products[level.tests[level.owner]]
            rest = np.where((before >= 0)[:, None], _quotient(above, self._factor(before, points)), above)
            products[level.children] = rest * self._factor(level.children, points)
        sums = products * np.where(self.tree.test == LEAF, self.value, 0.0)[:, None]
        self._add_ends(added, products, sums, points, weights)
        for level in levels.upwards():
            below = sums[level.children]
            sums[level.tests] += np.add.reduceat(below, level.starts, axis=0)
            # Of several tests of one attribute the last one counts: each takes back what the one before it has said.
            slope = self._slope(level.children, points) - self._slope(before_each[level.children], points)
            np.add.at(added, self.tree.feature[level.tests[level.owner]], (slope * below) @ weights)

    def _add_by_nodes(self, added: Floats, points: Floats, weights: Floats) -> None:
        """Do the same, to the last digit, where levels are many and have few nodes."""
        levels, nodes = self.levels, np.arange(self.tree.n_nodes)
        factor = self._factor(nodes, points)
        divisor = np.where((levels.before >= 0)[:, None], factor[levels.before], 1.0)
        products = divided_and_multiplied(self.tree.parent, divisor, factor)
        sums = products * np.where(self.tree.test == LEAF, self.value, 0.0)[:, None]
        self._add_ends(added, products, sums, points, weights)
        sums = added_up(self.tree.parent, sums)
        changes = ((self._slope(nodes, points) - self._slope(levels.before, points)) * sums)[levels.deepest_first]
        if len(points) > 1:
            # Level by level as above: the last digit of a product of matrices depends on how many rows there are.
            ends = np.cumsum([last - first for _, _, first, last in reversed(levels.bounds)])[:-1]
            changes = np.concatenate([part @ weights for part in np.split(changes, ends)])
        else:
            changes = changes[:, 0] * weights[0]
        np.add.at(added, self.tree.feature[self.tree.parent[levels.deepest_first]], changes)

    def _add_ends(self, added: Floats, products: Floats, sums: Floats, points: Floats, weights: Floats) -> None:
        """Add the answers of tests at which the row ends: each a leaf more, of share 1, and of cover 0."""
        ends = self.flow.ends
        if not len(ends):
            return
        before = self.levels.previous[ends]
        again = (before >= 0)[:, None]
        rest = np.where(again, _quotient(products[ends], self._factor(before, points)), products[ends])
        one = np.where(before >= 0, self.one[before], 1.0)
        answered = rest * one[:, None] * points * self.value[ends][:, None]
        sums[ends] += answered
        slope = np.where(one > 0, 1.0, 0.0)[:, None] / points - self._slope(before, points)
        np.add.at(added, self.tree.feature[ends], (slope * answered) @ weights)

    def _factor(self, nodes: Array, points: Floats) -> Floats:
        factor: Floats = self.zero[nodes][:, None] * (1 - points) + self.one[nodes][:, None] * points
        return factor

    def _slope(self, nodes: Array, points: Floats) -> Floats:
        """Give (one − zero) by the factor; nothing where there is no node, and where no row ever comes."""
        change = np.where(nodes >= 0, self.one[nodes] - self.zero[nodes], 0.0)[:, None]
        return _quotient(np.broadcast_to(change, (len(nodes), len(points))), self._factor(nodes, points))


def _quotient(above: Floats, below: Floats) -> Floats:
    """Divide; 0 by 0 is 0, the part of a leaf that nothing reaches."""
    quotient: Floats = np.divide(above, below, out=np.zeros(below.shape), where=below > 0)
    return quotient


@lru_cache(maxsize=64)
def _quadrature(n_points: int) -> tuple[Floats, Floats]:
    """Give points in (0, 1) and weights that integrate polynomials of degree below 2·n_points exactly."""
    if n_points == 0:
        return np.zeros(0), np.zeros(0)
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return (points + 1) / 2, weights / 2
