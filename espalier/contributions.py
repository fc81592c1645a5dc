"""What each attribute added to an answer on the way from the root to the leaf."""

import math
from array import array

from espalier.linear_explanation import LinearAnswer
from espalier.model import Model
from espalier.prediction import Prediction, Router

__all__ = ["contributions_of"]


def contributions_of(
    model: Model, way: Router, prediction: Prediction, linear: LinearAnswer | None
) -> tuple[dict[str, float], float]:
    """Give each attribute the change of the label's share (or mean) over its tests, weighted over the ways taken.

    Where a linear model answers, give each attribute its terms; where smoothed constants do, the change of those.
    """
    if linear is not None and way.linear is not None:
        return linear.contributions(), linear.intercept
    place = prediction.code if way.classes else None

    def level(node: int) -> float:
        answer = way.answers[node]
        if place is not None:
            return answer.distribution[place][1]
        return answer.mean if way.smoothing is None or answer.value is None else answer.value

    added: dict[str, array[float]] = {}
    for node, child, weight in way.edges(prediction.row.values):
        name = model.schema.attributes[way.feature[node]].name
        added.setdefault(name, array("d")).append(weight * (level(child) - level(node)))
    return {name: math.fsum(changes) for name, changes in added.items()}, level(0)
