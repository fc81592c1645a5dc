"""The profile of a data set: how informative each attribute is about the target, with small pictures."""

from dataclasses import dataclass
from typing import Any

from flask import Response, request
from markupsafe import Markup

import espalier
from service.api.context import current_service
from service.database.engine import read_session
from service.database.tables import Scope
from service.repositories.datasets import find_data_set, load_sample
from service.web.charts import N_COLOURS, Column, histogram, histogram_columns
from service.web.forms import whole_number
from service.web.pages import pages, render

ATTRIBUTES_A_PAGE = 40
MAX_CELLS = 300_000  # cells that are read for a page; the API reads more


@dataclass(frozen=True, slots=True)
class ProfiledAttribute:
    """An attribute with its figures, its histogram as a picture, and the columns of the histogram.

    `worth` is the gain or variance decrease. `strength` is `worth` divided by the largest `worth` of all attributes.
    """

    figures: Any
    worth: float | None
    strength: float
    picture: Markup
    columns: tuple[Column, ...]


@pages.page("/datasets/<id:data_set_id>/profile", Scope.READ)
def profile(data_set_id: str) -> Response:
    """Show the profile, as a part of the page of the data set."""
    first = whole_number(request.args.get("first", "")) or 0
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
    items = [_profiled(table, places[each.name], each, worth=getattr(each, measure), most=most) for each in shown]
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


def _profiled(
    table: espalier.Dataset, place: int, figures: Any, *, worth: float | None, most: float
) -> ProfiledAttribute:
    columns = histogram_columns(table, place)
    return ProfiledAttribute(figures, worth, max(0.0, (worth or 0.0) / most), histogram(columns), columns)
