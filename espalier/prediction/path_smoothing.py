"""Smoothing of the answers of a regression or model tree along the path from a leaf to the root (M5).

Quinlan (1992), *Learning with continuous classes*; Wang and Witten (1997), *Inducing model trees for continuous
classes*. The constant k is `TrainingConfig.smoothing`.
"""

from collections.abc import Iterator, Sequence

from espalier.arrays import Floats
from espalier.model.linear import LeafModel, LinearModels
from espalier.model.tree import Tree

Terms = dict[tuple[int, int], float]
"""By attribute and cut: the sum of the coefficients of the nodes' models, each multiplied by the share of its node."""


def smoothed_models(
    tree: Tree, models: LinearModels | None, constant: float | None, nodes: Sequence[int]
) -> Iterator[LeafModel]:
    """Yield the smoothed model of each of `nodes` as a leaf; see `smoothing_shares`.

    `nodes` are all nodes, or a path from the root. `models` are the unsmoothed models; if None, the constants of the
    nodes are used. `constant` is k; if None, models are not smoothed.
    """

    def with_model(above: tuple[float, Terms], node: int, share: float) -> tuple[float, Terms]:
        """Return the sum `above` of models plus `share` times the model of `node`."""
        intercept, terms = above
        if models is None:
            return intercept + share * float(tree.value[node]), terms
        terms = dict(terms)
        for feature, cut, coefficient in models.terms(node):
            terms[feature, cut] = terms.get((feature, cut), 0.0) + share * coefficient
        return intercept + share * float(models.intercept[node]), terms

    # The path to the node: each node, the share of the answer that is left for it, and the sum of the models above.
    path: list[tuple[int, float, tuple[float, Terms]]] = []
    for node in nodes:
        parent = int(tree.parent[node])
        while path and path[-1][0] != parent:
            path.pop()
        left = 1.0
        above: tuple[float, Terms] = 0.0, {}
        if path and constant is not None:
            _, left_above, above = path[-1]
            own_share = smoothing_share(float(tree.weight[node]), constant)
            left, above = left_above * own_share, with_model(above, parent, left_above * (1 - own_share))
        path.append((node, left, above))
        intercept, terms = with_model(above, node, left)
        yield LeafModel(intercept, tuple((*column, terms[column]) for column in sorted(terms)))


def smoothing_shares(weight: Sequence[float] | Floats, path: Sequence[int], constant: float | None) -> list[float]:
    """Return the share of each node of a path (root first) in the leaf's smoothed answer; the shares add up to 1.

    Each step from a child to its parent computes p' = (n·p + k·q)/(n + k): n is the weight of the child, p is its
    smoothed answer, and q is the answer of the parent's own model (Wang and Witten 1997). So the leaf's share is the
    product of n/(n + k) over all nodes of the path but the root. The share of a node above the leaf is the product of
    these factors from below the root down to this node, times k/(n + k) for the node's child on the path.
    """
    shares, left = [], 1.0
    for child in path[1:]:
        own_share = smoothing_share(float(weight[child]), constant)
        shares.append(left * (1 - own_share))
        left *= own_share
    return [*shares, left]


def smoothing_share(weight: float, constant: float | None) -> float:
    """Return n/(n + k), the share of a child of weight n in its smoothed answer; 1 without smoothing."""
    if constant is None:
        return 1.0
    return weight / (weight + constant) if weight > 0 else 0.0
