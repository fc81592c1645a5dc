"""Small pictures as SVG: columns of a histogram, a line with steps; colours are in the style sheet."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

N_COLOURS = 8
WIDTH, HEIGHT = 240.0, 64.0
LINE_WIDTH, LINE_HEIGHT, PAD = 560.0, 200.0, 34.0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a histogram: its name, and a count of each class (one of them without classes)."""

    name: str
    counts: tuple[float, ...]


def histogram(columns: Sequence[Column]) -> Markup:
    """Draw columns of counts, each divided among the classes; the page also lists the figures."""
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
    """Return the position of a step of a line."""
    return round(PAD + place / max(1, n_places - 1) * (LINE_WIDTH - 2 * PAD), 1)


def step_line(values: Sequence[float], *, line_id: str) -> Markup:
    """Return values as a line with steps, and an upright line that a slider moves."""
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
