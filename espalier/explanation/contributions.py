"""Contributions of attributes to an answer along the path from the root to the leaf (Saabas 2014)."""

import math
from array import array

from espalier.arrays import Floats
from espalier.explanation.linear_terms import LinearAnswer
from espalier.model.model import Model
from espalier.prediction.answers import Prediction
from espalier.prediction.leaf_values import answer_table, node_means
from espalier.prediction.tree_predictor import TreePredictor


def contributions_of(
    model: Model, predictor: TreePredictor, prediction: Prediction, linear: LinearAnswer | None
) -> tuple[dict[str, float], float]:
    """Return each attribute's contribution, and the baseline: the root's value, or the intercept of a linear model.

    Each test of the attribute changes the label's share, the mean or the smoothed constant. The contribution is the sum
    of these changes, each multiplied by the share of the row that takes the branch. If a linear model answers, the
    contribution is the sum of the attribute's terms.
    """
    if linear is not None and predictor.linear is not None:
        return linear.contributions(), linear.intercept
    level = _levels(model, predictor, prediction).item  # returns a Python float
    added: dict[str, array[float]] = {}
    for node, child, weight in predictor.edges(prediction.row.values):
        name = model.schema.attributes[predictor.feature[node]].name
        added.setdefault(name, array("d")).append(weight * (level(child) - level(node)))
    return {name: math.fsum(changes) for name, changes in added.items()}, level(0)


def _levels(model: Model, predictor: TreePredictor, prediction: Prediction) -> Floats:
    """Return the label's share, the mean or the smoothed constant of each node: float64 (nodes)."""
    if predictor.classes:
        return answer_table(model)[:, prediction.code]
    return node_means(model.tree) if predictor.smoothing is None else predictor.value
