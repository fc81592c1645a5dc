"""Operating points of models in their JSON form, put to use on versions: those without the class answer as trained."""

from collections.abc import Mapping
from typing import Any

import espalier

Said = Mapping[str, Any]
"""``{"label": …, "probability": …}``."""


def applied(model: espalier.Model, said: Said | None) -> Said | None:
    """Give what is said where the model has such a class, else None: another version may have had it."""
    return None if _point(model, said) is None else said


def at_point(model: espalier.Model, said: Said | None) -> espalier.Model:
    """Give the model as it answers by what is said, where that applies."""
    return espalier.answering_at(model, _point(model, said))


def _point(model: espalier.Model, said: Said | None) -> espalier.OperatingPoint | None:
    if said is None:
        return None
    try:
        return espalier.operating_point_from_dict(dict(said), model.schema.classes)
    except espalier.ConfigError:
        return None
