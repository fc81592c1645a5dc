"""The cost of an answer: the costs of all attributes that were read, each counted once."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from espalier.model.model import Model


@dataclass(frozen=True, slots=True)
class PathCost:
    """The cost of the attributes that were read for one prediction.

    Attributes:
        total: The sum of the costs in `attributes`, limited to the largest double.
        attributes: The cost of each attribute that was read, by name.
    """

    total: float
    attributes: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"total": self.total, "attributes": dict(self.attributes)}


def attribute_costs(model: Model) -> tuple[float, ...]:
    """Return each attribute's cost from the model's configuration, 1 by default, in the schema's order."""
    costs = dict(model.config.attribute_costs or ())
    return tuple(float(costs.get(feature.name, 1.0)) for feature in model.schema.attributes)


def cost_of(model: Model, places: Iterable[int]) -> PathCost:
    """Return the cost of the attributes with these indexes, each counted once."""
    costs = attribute_costs(model)
    names = {place: model.schema.attributes[place].name for place in places}
    total = min(sum(costs[place] for place in names), sys.float_info.max)
    return PathCost(total, {name: costs[place] for place, name in names.items()})
