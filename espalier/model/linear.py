"""Linear models in the nodes of a tree (M5).

Quinlan (1992), *Learning with continuous classes*; Wang and Witten (1997), *Inducing model trees for continuous
classes*.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from espalier.arrays import Floats, Ints, Longs, Places
from espalier.model.surrogates import conditions_of_starts, is_within, ragged

MAX_VALUE: Final = 1e150
"""Numbers beyond ± this value are clipped, so that products with coefficients and squared predictions are finite."""

Term = tuple[int, int, float]
"""Index of the attribute, cut, and coefficient. If the cut is 0, the coefficient multiplies the attribute's value (or
an ordinal's code). If the cut is j > 0, it multiplies an indicator: 1 if the category's rank is at least j, else 0."""


@dataclass(frozen=True, slots=True)
class LinearModels:
    """One linear model for each of n nodes, with t terms in all. Every array is read-only.

    Attributes:
        start: int32 (n+1); node i has the terms ``start[i] : start[i+1]``, in ascending order of attribute and cut.
        feature: int32 (t); index of each term's attribute.
        cut: int32 (t); the cut of each term; see `Term`.
        coefficient: float64 (t); the coefficient of each term.
        intercept: float64 (n); the intercept of each model, in the unit of the target.
        squares: float64 (n); weighted sum of the squared residuals of the node's training rows, before smoothing.
        rank_start: int32 (attributes + 1); where the ranks of each attribute begin in `rank`.
        rank: int32; the rank of category c of attribute a is ``rank[rank_start[a] + c]``. Attributes that are not
            nominal or boolean have no entries.
    """

    start: Ints
    feature: Ints
    cut: Ints
    coefficient: Floats
    intercept: Floats
    squares: Floats
    rank_start: Ints
    rank: Ints

    def terms(self, node: int) -> Iterator[Term]:
        """Return the terms of a node's own model, before smoothing."""
        part = slice(int(self.start[node]), int(self.start[node + 1]))
        return zip(self.feature[part].tolist(), self.cut[part].tolist(), self.coefficient[part].tolist(), strict=True)

    def n_terms(self) -> Longs:
        """Return the number of terms of each node's model, int64 (n)."""
        return np.diff(self.start).astype(np.int64)

    def ranks(self, feature: int) -> Ints:
        """Return the rank of each category of an attribute: int32 (categories)."""
        return self.rank[self.rank_start[feature] : self.rank_start[feature + 1]]

    def column_value(self, feature: int, cut: int, value: float) -> float:
        """Return what the coefficient of a `Term` multiplies.

        If `cut` is 0, this is `value`, clipped to ±`MAX_VALUE`. Otherwise `value` is the code of a category, and the
        result is 1 if the rank of the category is at least `cut`, else 0.
        """
        if cut:
            return 1.0 if self.rank[self.rank_start[feature] + int(value)] >= cut else 0.0
        return min(max(value, -MAX_VALUE), MAX_VALUE)

    def selected(self, nodes: Places) -> "LinearModels":
        """Return the models of `nodes`. Model i of the result is that of node ``nodes[i]``."""
        start, places = ragged(self.start, nodes)
        return replace(
            self,
            start=start,
            feature=self.feature[places],
            cut=self.cut[places],
            coefficient=self.coefficient[places],
            intercept=self.intercept[nodes],
            squares=self.squares[nodes],
        )

    def conditions(self, *, n_nodes: int, n_attributes: int) -> Iterator[tuple[str, bool, str]]:
        """Yield conditions on the arrays (`espalier.model.tree.Condition`). Each assumes that the earlier ones hold."""
        n_terms = len(self.feature)
        yield from conditions_of_starts("linear/start", self.start, n_nodes, n_terms)
        yield from conditions_of_starts("linear/rank_start", self.rank_start, n_attributes, len(self.rank))
        for name, length in (("cut", n_terms), ("coefficient", n_terms), ("intercept", n_nodes), ("squares", n_nodes)):
            yield f"linear/{name}", len(getattr(self, name)) == length, f"must have {length} entries"
        inside = is_within(self.feature, 0, n_attributes - 1)
        yield "linear/feature", inside, f"must be at least 0 and below {n_attributes}, the number of attributes"
        yield "linear/cut", bool(np.all(self.cut >= 0)), "must be at least 0"
        yield "linear/rank", bool(np.all(self.rank >= 0)), "must be at least 0"
        for name in ("coefficient", "intercept"):
            bounded = is_within(getattr(self, name), -MAX_VALUE, MAX_VALUE)
            yield f"linear/{name}", bounded, f"must be numbers between ±{MAX_VALUE:g}"
        yield "linear/squares", is_within(self.squares, 0, MAX_VALUE**2), f"must be between 0 and {MAX_VALUE**2:g}"
        node = np.repeat(np.arange(n_nodes), np.diff(self.start))
        same = (node[1:] == node[:-1]) & (self.feature[1:] == self.feature[:-1])
        rises = (
            (node[1:] > node[:-1]) | (self.feature[1:] > self.feature[:-1]) | (same & (self.cut[1:] > self.cut[:-1]))
        )
        yield "linear/feature", bool(np.all(rises)), "terms of a node must ascend by attribute, then by cut"


@dataclass(frozen=True, slots=True)
class LeafModel:
    """The model of a leaf: the intercept, and the terms in ascending order of attribute and cut."""

    intercept: float
    terms: tuple[Term, ...] = ()
