"""The profile of a data set: the information of each attribute about the target, with small pictures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from flask import Response, request
from markupsafe import Markup

import espalier
from service.api.context import current_service
from service.database.engine import read_session
from service.database.tables import Scope
from service.repositories.datasets import find_data_set, load_sample
from service.web.charts import N_COLOURS, Column, histogram
from service.web.pages import pages, render

ATTRIBUTES_A_PAGE = 40
MAX_CELLS = 300_000  # that are read for a page; the API reads more
BINS = 12
MOST_CATEGORIES = 12


@dataclass(frozen=True, slots=True)
class ProfiledAttribute:
    """An attribute with its figures, its picture, and the columns of the picture for a table."""

    figures: Any
    strength: float
    picture: Markup
    columns: tuple[Column, ...]


@pages.page("/datasets/<id:data_set_id>/profile", Scope.READ)
def profile(data_set_id: str) -> Response:
    """Show the profile, as a part of the page of the data set."""
    first = max(0, int(given)) if (given := request.args.get("first", "0")).isdecimal() and len(given) < 6 else 0
    with read_session(current_service().sessions) as session:
        row = find_data_set(session, data_set_id)
        table = load_sample(session, data_set_id, max_cells=MAX_CELLS) if row.task is not None else None
    if table is None:
        return render("_profile.html", row=row, profile=None)
    profile = espalier.profile(table)
    shown = profile.attributes[first : first + ATTRIBUTES_A_PAGE]
    measure = "gain" if profile.task == "classification" else "variance_decrease"
    most = max((getattr(attribute, measure) or 0.0 for attribute in profile.attributes), default=0.0) or 1.0
    places = {feature.name: place for place, feature in enumerate(table.schema.features)}
    items = [_profiled(table, places[each.name], each, (getattr(each, measure) or 0.0) / most) for each in shown]
    return render(
        "_profile.html",
        row=row,
        profile=profile,
        items=items,
        measure=measure.replace("_", " "),
        sample=None if table.n_rows == row.n_rows else table.n_rows,
        first=first,
        next=first + ATTRIBUTES_A_PAGE if first + ATTRIBUTES_A_PAGE < len(profile.attributes) else None,
        classes=table.schema.classes[:N_COLOURS],
        n_classes=len(table.schema.classes),
    )


def _profiled(table: espalier.Dataset, place: int, figures: Any, strength: float) -> ProfiledAttribute:
    feature, column = table.schema.features[place], table.columns[place]
    names, bins = _binned(feature, column)
    columns = tuple(Column(name, counts) for name, counts in zip(names, _counted(table, bins, len(names)), strict=True))
    return ProfiledAttribute(figures, max(0.0, strength), histogram(columns), columns)


def _binned(feature: espalier.Feature, column: Any) -> tuple[Sequence[str], Any]:
    """Return the names of the bins of a column, and the bin of each row, -1 where there is none."""
    if feature.coded:
        counts = Counter(column[column >= 0].tolist())
        shown = sorted(code for code, _ in counts.most_common(MOST_CATEGORIES))
        bins = np.full(len(feature.categories) + 1, len(shown))
        bins[shown] = np.arange(len(shown))
        bins[-1] = -1  # a missing value has the code -1
        others = [f"{len(counts) - len(shown)} others"] if len(counts) > len(shown) else []
        return [*(espalier.label_text(feature.categories[code]) for code in shown), *others], bins[column]
    known = column[np.isfinite(column)]
    if not len(known):
        return [], np.full(len(column), -1)
    low, high = float(known.min()), float(known.max())
    if low == high:
        return [_bound(feature, low)], np.where(np.isfinite(column), 0, -1)
    edges = np.linspace(low, high, BINS + 1)
    bins = np.clip(np.searchsorted(edges, column, side="right") - 1, 0, BINS - 1)
    names = [f"{_bound(feature, start)} to {_bound(feature, end)}" for start, end in pairwise(edges)]
    return names, np.where(np.isfinite(column), bins, -1)


def _bound(feature: espalier.Feature, value: float) -> str:
    if feature.kind is espalier.FeatureKind.DATETIME:
        return str(np.datetime64(int(value), "s"))
    return f"{value:.4g}"


def _counted(table: espalier.Dataset, bins: Any, n_bins: int) -> list[tuple[float, ...]]:
    """Return the number of rows per bin and class. Classes that share the last colour are added up."""
    target = table.schema.target
    known = bins >= 0
    if target is None or not target.coded or table.target is None:
        return [(float(count),) for count in np.bincount(bins[known], minlength=n_bins)[:n_bins]]
    n_colours = min(len(target.categories), N_COLOURS)
    codes = np.minimum(np.asarray(table.target), n_colours - 1)
    known &= codes >= 0
    counts = np.bincount(bins[known] * n_colours + codes[known], minlength=n_bins * n_colours)
    return [tuple(map(float, row)) for row in counts.reshape(-1, n_colours)[:n_bins]]
