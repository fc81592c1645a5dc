"""Small charts as SVG: histograms of columns, and lines with steps. The style sheet has their colours."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

import espalier
from service.web.filters import cell

N_COLOURS = 8
BINS = 12
MOST_CATEGORIES = 12
WIDTH, HEIGHT = 240.0, 64.0
LINE_WIDTH, LINE_HEIGHT, PAD = 560.0, 200.0, 34.0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a histogram: its name and its row counts, one per class (see `_counted`) or a single total."""

    name: str
    counts: tuple[float, ...]


def histogram_columns(table: espalier.Dataset, place: int) -> tuple[Column, ...]:
    """Return the histogram of feature `place` of a table: one `Column` per bin, with the row counts by class."""
    names, bins = _binned(table.schema.features[place], table.columns[place])
    return tuple(Column(name, counts) for name, counts in zip(names, _counted(table, bins, len(names)), strict=True))


def histogram(columns: Sequence[Column]) -> Markup:
    """Draw a histogram, its columns divided by class. Screen readers skip the picture: the page lists the counts."""
    most = max((sum(column.counts) for column in columns), default=0.0) or 1.0
    step = WIDTH / max(1, len(columns))
    parts = []
    for place, column in enumerate(columns):
        top = HEIGHT
        for colour, count in enumerate(column.counts):
            height = count / most * HEIGHT
            top -= height
            if height >= 0.05:
                parts.append(_rectangle(place * step + 1, top, step - 2, height, colour))
    axis = f'<path class="axis" d="M0 {HEIGHT:g}H{WIDTH:g}"/>'
    body = "".join(parts) + axis
    return Markup(  # noqa: S704 - numbers only
        f'<svg class="chart" width="{WIDTH:g}" height="{HEIGHT:g}" viewBox="0 0 {WIDTH:g} {HEIGHT + 1:g}" '
        f'aria-hidden="true">{body}</svg>'
    )


def place_of(place: int, n_places: int) -> float:
    """Return the x coordinate of value `place` (from 0) in a `step_line` of `n_places` values."""
    return round(PAD + place / max(1, n_places - 1) * (LINE_WIDTH - 2 * PAD), 1)


def step_line(values: Sequence[float], *, line_id: str) -> Markup:
    """Draw values as a line with steps, and a vertical line that a slider moves."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    points = []
    for place, value in enumerate(values):
        x = place_of(place, len(values))
        y = round(LINE_HEIGHT - PAD - (value - low) / span * (LINE_HEIGHT - 2 * PAD), 1)
        points.append(f"{x:g} {y:g}" if place == 0 else f"H{x:g}V{y:g}")
    base, right = LINE_HEIGHT - PAD, LINE_WIDTH - PAD
    return Markup(  # noqa: S704 - numbers, and a name of ours
        f'<svg class="chart" width="{LINE_WIDTH:g}" height="{LINE_HEIGHT:g}" viewBox="0 0 {LINE_WIDTH:g} '
        f'{LINE_HEIGHT:g}" aria-hidden="true"><path class="axis" fill="none" d="M{PAD:g} {PAD:g}V{base:g}H{right:g}"/>'
        f'<path class="line" d="M{"".join(points)}"/>'
        f'<line id="{line_id}" class="axis" x1="{PAD:g}" x2="{PAD:g}" y1="{PAD:g}" y2="{base:g}"/>'
        f'<text x="2" y="{PAD - 8:g}">{high:.4g}</text><text x="2" y="{base + 14:g}">{low:.4g}</text></svg>'
    )


def _rectangle(x: float, y: float, width: float, height: float, colour: int) -> str:
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}"'
    return f'<rect class="c{min(colour, N_COLOURS - 1)}" {shape}/>'


def _binned(feature: espalier.Feature, column: Any) -> tuple[Sequence[str], Any]:
    """Return the names of the bins of a column, and the bin of each row, or -1 for a missing or infinite value."""
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
        return [_bound(feature, low, 17)], np.where(np.isfinite(column), 0, -1)
    edges = 2 * np.linspace(low / 2, high / 2, BINS + 1)  # the halves, because high - low may be infinite
    bins = np.clip(np.searchsorted(edges, column, side="right") - 1, 0, BINS - 1)
    bounds = [_bound(feature, edge, _digits(low, high)) for edge in edges.tolist()]
    names = [f"{start} to {end}" for start, end in pairwise(bounds)]
    return names, np.where(np.isfinite(column), bins, -1)


def _bound(feature: espalier.Feature, value: float, digits: int) -> str:
    if feature.kind is espalier.FeatureKind.DATETIME:
        return str(np.datetime64(int(value), "s"))
    return cell(float(f"{value:.{digits}g}"))


def _digits(low: float, high: float) -> int:
    """Return how many significant digits show the edges of bins to a small part of the width of a bin."""
    width = max(high / BINS - low / BINS, 5e-324)  # the smallest float, if the difference is lost
    size = max(abs(low), abs(high))
    return min(17, max(4, 2 + math.floor(math.log10(size)) - math.floor(math.log10(width))))


def _counted(table: espalier.Dataset, bins: Any, n_bins: int) -> list[tuple[float, ...]]:
    """Return the number of rows per bin and class. The classes that share the last colour are one class here."""
    target = table.schema.target
    known = bins >= 0
    if target is None or not target.coded or table.target is None:
        return [(float(count),) for count in np.bincount(bins[known], minlength=n_bins)[:n_bins]]
    n_colours = min(len(target.categories), N_COLOURS)
    codes = np.minimum(np.asarray(table.target), n_colours - 1)
    known &= codes >= 0
    counts = np.bincount(bins[known] * n_colours + codes[known], minlength=n_bins * n_colours)
    return [tuple(map(float, row)) for row in counts.reshape(-1, n_colours)[:n_bins]]
