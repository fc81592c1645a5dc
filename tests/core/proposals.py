"""Planted models with a span, and rows changed as was proposed."""

import dataclasses

from espalier.model.preparation import Preparation, Scale
from tests.core.planted import plant

SPAN = 8.0


WHOLE = {"length": 0, "colour": "red", "size": "large", "sold": True}


def measured(schema, root, step=0.0, **fields):
    """A planted model whose only number spans `SPAN`."""
    model = plant(schema, root, **fields)
    scales = (Scale(SPAN, 0.25, step), None, None, None)
    return dataclasses.replace(model, preparation=Preparation(None, scales))


def changed(row, proposal):
    return {**row, **{change.attribute.name: change.after for change in proposal.changes}}
