"""Exact path-dependent Shapley values of one prediction, in polynomial time.

Lundberg, Erion and Lee (2018), *Consistent individualized feature attribution for tree ensembles*, define a game v(S)
for a tree and a set S of attributes. At a test of an attribute in S, the row takes the branch of its value; other
tests divide the row among the branches by their training weights. An attribute's contribution is its Shapley value.

The weight of a leaf in v is a product with one factor for each attribute A that the path to the leaf tests. If A is in
S, the factor is ``one[A]``, the product of the row's own shares at the tests of A. Otherwise, it is ``zero[A]``, the
product of the covers (shares of the training weight) at these tests. The Shapley value of A for one leaf, whose answer
is ``value``, is an integral (Owen 1972)::

    phi[A] = value · ∫ (one[A] − zero[A]) · Π over B ≠ A of (zero[B]·(1 − t) + one[B]·t) dt,   t from 0 to 1

The integrand is a polynomial of degree below the number of attributes on the path, so Gauss-Legendre quadrature with
half as many points is exact. Tests may have any number of branches, and shares may be any numbers from 0 to 1, so
nominal tests and missing values are no special case. The time is proportional to nodes times points. The memory is a
few arrays of max(nodes, `MAX_CELLS`) numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from espalier.arrays import Array, Floats
from espalier.explanation.row_flow import RowFlow
from espalier.explanation.tree_levels import TreeLevels, path_products, tree_levels
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree, cached_on_owner
from espalier.prediction.leaf_values import answer_table
from espalier.prediction.missing_strategies import STOP
from espalier.prediction.tree_predictor import TreePredictor

MAX_CELLS: Final = 2_000_000
"""Maximum number of cells (nodes times points of the quadrature) that are in memory at a time."""


@dataclass(frozen=True, slots=True)
class ShapleyValues:
    """Shapley values of the label's share, or of the number: baseline + contributions = the share or number.

    Attributes:
        baseline: The value if no attribute is known: the mean over the leaves, weighted by their training weight.
        contributions: The Shapley value of each attribute that the tree tests, in the schema's order.
    """

    baseline: float
    contributions: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"baseline": self.baseline, "contributions": dict(self.contributions)}


def shapley_values(model: Model, predictor: TreePredictor, flow: RowFlow, *, place: int | None) -> ShapleyValues | None:
    """Return the exact path-dependent Shapley values of one row; None for linear leaves.

    `place`: the code of the explained class; None for a regression. A test that a surrogate decides counts for the
    attribute of the test, not of the surrogate.
    """
    if predictor.linear is not None:
        return None
    value = predictor.value if place is None else answer_table(model)[:, place]
    # Dividing by a power of two above all values keeps sums finite and does not change rounding.
    scale = 2.0 ** max(-1000, min(1000, int(np.frexp(np.max(np.abs(value)))[1])))
    game = _Game(model, flow, value / scale)
    added = game.integrals() * scale
    tested = model.tree.tested()
    names = [feature.name for feature in model.schema.attributes]
    return ShapleyValues(game.baseline() * scale, {names[feature]: float(added[feature]) for feature in tested})


class _Covers(NamedTuple):
    """The part of the game that is the same for every row; n nodes.

    Attributes:
        zero: float64 (n); at a child of a test of A, the product of the covers at the tests of A on the path; root: 1.
        total: float64 (n); the share of the training weight that reached each node.
    """

    zero: Floats
    total: Floats


@cached_on_owner
def _covers_of(tree: Tree) -> _Covers:
    levels = tree_levels(tree)
    return _Covers(*(path_products(levels, levels.cover, above) for above in (levels.before, tree.parent)))


class _Game:
    """The products of one row; n nodes.

    Attributes:
        one: float64 (n); at a node whose parent tests A, the product of the row's shares at the tests of A on the path.
        zero: float64 (n); see `_Covers`.
    """

    def __init__(self, model: Model, flow: RowFlow, value: Floats) -> None:
        self.tree, self.flow, self.value = model.tree, flow, value
        self.levels: TreeLevels = tree_levels(model.tree)
        self.n_attributes = len(model.schema.attributes)
        self.covers = _covers_of(model.tree)
        self.one, self.zero = path_products(self.levels, flow.share, self.levels.before), self.covers.zero

    def baseline(self) -> float:
        leaves = self.tree.test == LEAF
        return float(np.dot(self.covers.total[leaves], self.value[leaves]))

    def integrals(self) -> Floats:
        added = np.zeros(self.n_attributes)
        points, weights = _quadrature((self.levels.max_attributes + 1) // 2)
        step = max(1, MAX_CELLS // self.tree.n_nodes)
        for first in range(0, len(points), step):
            self._add(added, points[first : first + step], weights[first : first + step])
        return added

    def _add(self, added: Floats, points: Floats, weights: Floats) -> None:
        """Add the integrals over some `points` to `added`: multiply down the tree, then sum the leaves' answers."""
        levels, before_each = self.levels, self.levels.before
        products = np.ones((self.tree.n_nodes, len(points)))
        for level in levels.levels:
            before = before_each[level.children]
            above = products[self.tree.parent[level.children]]
            rest = np.where((before >= 0)[:, None], _quotient(above, self._factor(before, points)), above)
            products[level.children] = rest * self._factor(level.children, points)
        sums = products * np.where(self.tree.test == LEAF, self.value, 0.0)[:, None]
        self._add_ends(added, products, sums, points, weights)
        for level in reversed(levels.levels):
            below = sums[level.children]
            sums[level.tests] += np.add.reduceat(below, level.starts, axis=0)
            # Only the last of several tests of an attribute counts, so each one subtracts the previous test's term.
            slope = self._slope(level.children, points) - self._slope(before_each[level.children], points)
            np.add.at(added, self.tree.feature[self.tree.parent[level.children]], (slope * below) @ weights)

    def _add_ends(self, added: Floats, products: Floats, sums: Floats, points: Floats, weights: Floats) -> None:
        """Add the answers of tests at which the row ends. Each such test counts as a further leaf: share 1, cover 0."""
        ends = np.flatnonzero(self.flow.branch == STOP)
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
        """Return (one − zero) / factor for each node; 0 for node -1, and where the factor is 0."""
        change = np.where(nodes >= 0, self.one[nodes] - self.zero[nodes], 0.0)[:, None]
        return _quotient(np.broadcast_to(change, (len(nodes), len(points))), self._factor(nodes, points))


def _quotient(above: Floats, below: Floats) -> Floats:
    """Return above / below, or 0 where `below` is 0: nothing reaches the node there."""
    quotient: Floats = np.divide(above, below, out=np.zeros(below.shape), where=below > 0)
    return quotient


@lru_cache(maxsize=64)
def _quadrature(n_points: int) -> tuple[Floats, Floats]:
    """Return points in (0, 1) and weights that integrate polynomials of degree below 2·n_points exactly."""
    if n_points == 0:
        return np.zeros(0), np.zeros(0)
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return (points + 1) / 2, weights / 2
