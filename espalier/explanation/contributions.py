"""Contributions of attributes to an answer along the path from the root to the leaf (Saabas 2014)."""

import math
from array import array

from espalier.explanation.linear_terms import LinearAnswer
from espalier.model.model import Model
from espalier.prediction.answers import Prediction
from espalier.prediction.leaf_values import answer_table
from espalier.prediction.tree_predictor import TreePredictor


def contributions_of(
    model: Model, predictor: TreePredictor, prediction: Prediction, linear: LinearAnswer | None
) -> tuple[dict[str, float], float]:
    """Return each attribute's contribution, and the baseline: the root's value, or the intercept of a linear model.

    From a test to its branch, the share of the predicted class changes or, in a regression, the number that the node
    would answer as a leaf. These changes are added up for each attribute. If a row is divided, a change counts by the
    part of the row that takes the branch. If a linear model answers, the contribution is the sum of the terms.
    """
    if linear is not None and predictor.linear is not None:
        return linear.contributions(), linear.intercept
    # The code of a regression is -1, which is its only column.
    level = answer_table(model)[:, prediction.code].item  # returns a Python float
    added: dict[str, array[float]] = {}
    for node, child, weight in predictor.edges(prediction.row.values):
        name = model.schema.attributes[predictor.feature[node]].name
        added.setdefault(name, array("d")).append(weight * (level(child) - level(node)))
    return {name: math.fsum(changes) for name, changes in added.items()}, level(0)
