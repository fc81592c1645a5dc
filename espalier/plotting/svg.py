"""A tree as a picture: SVG that is whole in itself, safe to embed, and read by screen readers.

Nothing of others gets into it but as escaped text; there is no script, no link, and no address but the name of SVG.
Each box clips what is in it, so that letters of an unknown width cannot run into another box.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from espalier.model.model import Model
from espalier.plotting.boxes import BAR, HEAD, NOTE, PAD, Face, faces
from espalier.plotting.captions import description, headline, lines_above, lines_below
from espalier.plotting.escape import xml_text
from espalier.plotting.layout import CURVE, Extent, Layout, Place, laid_out
from espalier.plotting.legend import Legend, legend_of
from espalier.plotting.lettering import LINE
from espalier.plotting.selection import Box, Drawing, Path, draw
from espalier.plotting.shapes import BOX, BOX_ON_THE_WAY, CANVAS, EDGE, INK, SVG_STYLE, WAY, number, rectangle, text

ENOUGH: Final = 100
ENOUGH_BESIDE_A_WAY: Final = 40
MOST_BOXES: Final = 4_000
MOST_BRANCHES: Final = 24
"""Of one node; the lightest of more share a box."""
MARGIN: Final = 20.0
NARROWEST: Final = 480.0
"""Room for the lines above and below a small tree."""
FADED: Final = "0.6"
"""What is off the way of a row."""
STROKE: Final = 1.5
THICK: Final = 4.0
ROUND: Final = 12.0
ANGULAR: Final = 3.0
RANGE: Final = 'fill="#0072b2" opacity="0.55"'
LEAST_SEGMENT: Final = 0.25


def svg_of(model: Model, *, node: int, depth: int | None, path: Path | None, caption: str) -> str:
    """Draw a tree, or a part of it; see `espalier.to_svg`."""
    drawing = draw(
        model,
        node=node,
        depth=depth,
        path=path,
        enough=ENOUGH if path is None else ENOUGH_BESIDE_A_WAY,
        most_boxes=MOST_BOXES,
        most_branches=MOST_BRANCHES,
    )
    legend = legend_of(model)
    shown = list(faces(drawing, legend))
    layout = laid_out(
        [box.parent for box in drawing.boxes],
        [box.level for box in drawing.boxes],
        [Extent(face.width, face.height, face.label_width, face.label_height) for face in shown],
    )
    width = max(layout.width, NARROWEST)
    above, below = lines_above(drawing, legend, caption, width=width), lines_below(drawing, width)
    marks = [
        *_moved(above.marks, MARGIN, MARGIN),
        *_moved([*_lines(drawing, layout), *_boxes(drawing, layout, shown, legend)], MARGIN, MARGIN + above.height),
        *_moved(below.marks, MARGIN, MARGIN + above.height + layout.height),
    ]
    height = 2 * MARGIN + above.height + layout.height + below.height
    told = headline(drawing), description(drawing, legend, caption)
    return _document(*told, "".join(marks), width=width + 2 * MARGIN, height=height)


def _document(title: str, told: str, content: str, *, width: float, height: float) -> str:
    """Put the marks into a document that says what it is."""
    # Two pictures in one page must not share an id, the same picture always has the same.
    name = f"espalier-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    size = f'width="{number(width)}" height="{number(height)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="espalier-tree" {size} '
        f'viewBox="0 0 {number(width)} {number(height)}" role="graphics-document document" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-desc" '
        "font-family=\"system-ui, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif\">"
        f'<title id="{name}-title">{xml_text(title)}</title>'
        f'<desc id="{name}-desc">{xml_text(told)}</desc>'
        f"<style>{SVG_STYLE}</style>"
        f"{rectangle(0, 0, width, height, CANVAS)}"
        f"{content}</svg>\n"
    )


def _moved(marks: Sequence[str], x: float, y: float) -> Iterator[str]:
    if marks:
        yield f'<g transform="translate({number(x)} {number(y)})">'
        yield from marks
        yield "</g>"


def _lines(drawing: Drawing, layout: Layout) -> Iterator[str]:
    """Draw the lines between boxes, those on the way of the row last, so that they lie on top."""
    boxes, places = drawing.boxes, layout.places
    for on_the_way in (False, True):
        for box, place in zip(boxes, places, strict=True):
            if box.parent < 0 or (box.share > 0) != on_the_way:
                continue
            start = places[box.parent]
            right, above, middle = start.left + start.width, number(start.middle), number(place.middle)
            bend = number(right + CURVE / 2)
            marks = f'{WAY} stroke-width="{number(_thickness(box))}"' if on_the_way else f'{EDGE} stroke-width="1.5"'
            yield (
                f'<path d="M{number(right)} {above}C{bend} {above} {bend} {middle} {number(right + CURVE)} {middle}'
                f'H{number(place.left)}" {marks}{_faded(drawing, box)}/>'
            )


def _thickness(box: Box) -> float:
    """Draw the way of a part of the row thinner."""
    return max(2.0, THICK * box.share) if box.share else STROKE


def _faded(drawing: Drawing, box: Box) -> str:
    return "" if drawing.explanation is None or box.share else f' opacity="{FADED}"'


def _boxes(drawing: Drawing, layout: Layout, shown: Sequence[Face], legend: Legend) -> Iterator[str]:
    """Draw each box and the label on the line to it, as one thing with a name."""
    scale = _scale(shown)
    for box, place, face in zip(drawing.boxes, layout.places, shown, strict=True):
        node = f' data-node="{box.node}"' if box.node >= 0 else ""
        if face.label:
            # Not in the box's own group: what is faded would let the line shine through.
            yield _ground(place, face)
        yield f'<g role="graphics-symbol img"{node}{_faded(drawing, box)}><title>{xml_text(face.told)}</title>'
        yield from _label(place, face)
        yield (
            f'<svg x="{number(place.left)}" y="{number(place.middle - face.height / 2)}" '
            f'width="{number(place.width)}" height="{number(face.height)}">'
        )
        yield _frame(box, place, face)
        yield from _texts(face)
        yield from _bar(face, legend, width=place.width - 2 * PAD)
        yield from _range(face, scale, width=place.width - 2 * PAD)
        yield "</svg></g>"


def _ground(place: Place, face: Face) -> str:
    """Clear the line to a box where its label stands."""
    top = place.middle - face.label_height / 2
    return rectangle(place.label_left - 3, top, face.label_width + 6, face.label_height, CANVAS)


def _label(place: Place, face: Face) -> Iterator[str]:
    """Write on the line to a box."""
    top = place.middle - face.label_height / 2
    for row, line in enumerate(face.label):
        yield text(line, place.label_left, top + NOTE * (0.95 + LINE * row), size=NOTE)


def _frame(box: Box, place: Place, face: Face) -> str:
    """Draw the edge: round at a leaf, dashed where something is folded, thick on the way of the row."""
    thickness = _thickness(box)
    return rectangle(
        thickness / 2,
        thickness / 2,
        place.width - thickness,
        face.height - thickness,
        BOX_ON_THE_WAY if box.share else BOX,
        f'rx="{number(ROUND if box.form == "leaf" else ANGULAR)}" stroke-width="{number(thickness)}"',
        *(['stroke-dasharray="5 4"'] if box.form in ("folded", "more") else []),
    )


def _texts(face: Face) -> Iterator[str]:
    y = PAD
    for line in face.head:
        yield text(line, PAD, y + HEAD * 0.95, size=HEAD, bold=True)
        y += HEAD * LINE
    for line in face.notes:
        yield text(line, PAD, y + NOTE * 0.95, size=NOTE)
        y += NOTE * LINE
    if face.value:
        yield text(face.value, PAD, y + NOTE * 0.95, size=NOTE, bold=True)


def _bar(face: Face, legend: Legend, *, width: float) -> Iterator[str]:
    """Draw the shares of the classes beside each other."""
    x = PAD
    # No shares, no bar: a regression, or a branch that no row took.
    for share, colour in zip(face.shares, legend.colours, strict=False):
        if share * width >= LEAST_SEGMENT:
            yield rectangle(x, face.height - PAD - BAR, share * width, BAR, f'fill="{colour}"')
        x += share * width


def _scale(shown: Sequence[Face]) -> tuple[float, float]:
    """Return the ends of the numbers that all boxes of a regression show."""
    spreads = [face.spread for face in shown if face.spread is not None]
    low = min((mean - std for mean, std in spreads), default=0.0)
    high = max((mean + std for mean, std in spreads), default=1.0)
    return low, high if high > low else low + 1.0


def _range(face: Face, scale: tuple[float, float], *, width: float) -> Iterator[str]:
    """Draw where the numbers of a box lie on the scale of all: one standard deviation to each side of the mean."""
    if face.spread is None:
        return
    (mean, std), (low, high) = face.spread, scale
    y = face.height - PAD - BAR
    start, middle, end = ((value - low) / (high - low) * width for value in (mean - std, mean, mean + std))
    yield f'<path d="M{number(PAD)} {number(y + BAR / 2)}h{number(width)}" {EDGE} stroke-width="1"/>'
    yield rectangle(PAD + start, y + 1, max(end - start, 1), BAR - 2, RANGE)
    yield rectangle(PAD + middle - 1, y, 2, BAR, INK)
