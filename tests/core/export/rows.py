"""Rows that tell an export from its model: at each threshold and beside it, missing cells, unseen categories."""

import math
import random
from typing import Any

import numpy as np

from espalier import FeatureKind, Model
from espalier.data.instants import instant_text
from espalier.model.node_tests import NUMERIC
from espalier.model.rules import RuleList

UNSEEN = "a category that nobody has seen"


def thresholds_of(model: Model, place: int) -> list[float]:
    """Return the thresholds at which the model compares an attribute."""
    if isinstance(model.body, RuleList):
        name = model.schema.attributes[place].name
        conditions = [each for rule in model.body.rules for each in rule.conditions if each.attribute.name == name]
        bounds = {bound for each in conditions for bound in (each.above, each.at_most)}
        return sorted(bound for bound in bounds if math.isfinite(bound))
    tree = model.body
    found = set(tree.threshold[(tree.test == NUMERIC) & (tree.feature == place)].tolist())
    if tree.surrogates is not None:
        extra = tree.surrogates
        found |= set(extra.threshold[(extra.test == NUMERIC) & (extra.feature == place)].tolist())
    return sorted(found)


def cells_of(model: Model, place: int) -> list[Any]:
    """Return cells of an attribute between which the model can tell, a missing and an unseen one included."""
    feature = model.schema.attributes[place]
    if feature.coded:
        unseen = UNSEEN if any(isinstance(label, str) for label in feature.categories) else None
        return [None, unseen, *feature.categories]
    cuts = thresholds_of(model, place)[:300]
    beside = (np.nextafter(cut, end).item() for cut in cuts for end in (-math.inf, math.inf))
    return [None, *cuts, *beside, 0.0, -1e6, 1e6]


def boundary_rows(model: Model, *, n_rows: int = 150, seed: int = 0) -> list[dict[str, Any]]:
    """Return rows drawn so that each cell of `cells_of` is in one at least; a tenth of the others is missing."""
    draw = random.Random(seed)
    columns = [cells_of(model, place) for place in range(len(model.schema.attributes))]
    n_rows = max(n_rows, *map(len, columns)) if columns else 1
    rows = []
    for number in range(n_rows):
        at = number % max(len(columns), 1)
        row = {}
        for place, (feature, cells) in enumerate(zip(model.schema.attributes, columns, strict=True)):
            cell = cells[number // len(columns) % len(cells)] if place == at else draw.choice(cells)
            if place != at and draw.random() < 0.1:
                cell = None
            row[feature.name] = cell
        rows.append(row)
    for place, cells in enumerate(columns):  # what the turns above leave out of a long column
        for cell in cells[n_rows // len(columns) :]:
            rows.append({**rows[draw.randrange(n_rows)], model.schema.attributes[place].name: cell})
    return rows


def predicted_rows(model: Model, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows as `espalier.predict` takes them: dates as text; exports take them as seconds."""
    dates = [feature.name for feature in model.schema.attributes if feature.kind is FeatureKind.DATETIME]
    return [
        {name: instant_text(cell) if name in dates and cell is not None else cell for name, cell in row.items()}
        for row in rows
    ]
