"""Smoothing of the answers of a model tree along the path from a leaf to the root (M5).

Quinlan (1992), *Learning with continuous classes*; Wang and Witten (1997), *Inducing model trees for continuous
classes*. The constant k is `TrainingConfig.smoothing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from espalier.arrays import Floats, Ints
from espalier.model.linear import LeafModel, LinearModels


@dataclass(frozen=True, slots=True)
class Smoothing:
    """The running sum of a leaf's smoothed model, from the root down; see `smoothed_leaf`.

    Attributes:
        share: Share of the answer that is left for the nodes below.
        intercept: Sum of the intercepts of the nodes so far, each times its share.
        terms: (attribute, cut) -> sum of the coefficients of the nodes so far, each times its share.
    """

    share: float
    intercept: float
    terms: dict[tuple[int, int], float]

    def below(self, models: LinearModels | None, node_value: float, node: int, own_share: float) -> "Smoothing":
        """Return the sum with the part of `node`, for a child whose own share of the rest is `own_share`."""
        return Smoothing(self.share * own_share, *self._with(models, node_value, node, self.share * (1 - own_share)))

    def leaf(self, models: LinearModels | None, node_value: float, node: int) -> LeafModel:
        """Return the model of a leaf: the sum with the part of the leaf."""
        intercept, terms = self._with(models, node_value, node, self.share)
        return LeafModel(intercept, tuple((*column, terms[column]) for column in sorted(terms)))

    def _with(
        self, models: LinearModels | None, node_value: float, node: int, share: float
    ) -> tuple[float, dict[tuple[int, int], float]]:
        if models is None:
            return self.intercept + share * node_value, self.terms
        terms = dict(self.terms)
        for feature, cut, coefficient in models.terms(node):
            terms[feature, cut] = terms.get((feature, cut), 0.0) + share * coefficient
        return self.intercept + share * float(models.intercept[node]), terms


NOTHING_YET: Final = Smoothing(1.0, 0.0, {})


def smoothing_shares(weight: Sequence[float] | Floats, path: Sequence[int], constant: float | None) -> list[float]:
    """Return the share of each node of a path (root first) in the leaf's smoothed answer; the shares add up to 1.

    From leaf to root p' = (n·p + k·q)/(n + k), n the weight of the child and q the answer of the parent's own model
    (Wang and Witten 1997): the leaf's share is the product of all n/(n + k), its parent's
    k/(n + k) times the product above.
    """
    shares, left = [], 1.0
    for child in path[1:]:
        own_share = smoothing_share(float(weight[child]), constant)
        shares.append(left * (1 - own_share))
        left *= own_share
    return [*shares, left]


def smoothed_leaf(
    weight: Floats, value: Floats | Ints, models: LinearModels | None, path: Sequence[int], constant: float | None
) -> LeafModel:
    """Return the smoothed model of the last node of a path (root first); see `smoothing_shares`.

    `path` begins at the root. `constant` is k; None returns the leaf's own model, unsmoothed.
    """
    so_far = NOTHING_YET
    if constant is not None:
        for node, child in pairwise(path):
            own_share = smoothing_share(float(weight[child]), constant)
            so_far = so_far.below(models, float(value[node]), node, own_share)
    return so_far.leaf(models, float(value[path[-1]]), path[-1])


def smoothing_share(weight: float, constant: float | None) -> float:
    """Return n/(n + k): the share of a child of weight n in its smoothed answer."""
    if constant is None:
        return 1.0
    return weight / (weight + constant) if weight > 0 else 0.0
