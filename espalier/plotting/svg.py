"""A tree as a self-contained SVG picture, safe to embed, and readable by screen readers.

Texts of users are always escaped; there is no script, no link, and no address except SVG's namespace. Each box clips
its content, so that letters of an unknown width cannot overlap another box.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from espalier.errors import NotApplicable
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.plotting.boxes import BAR, HEAD, NOTE, PAD, BoxContent, box_contents
from espalier.plotting.colours import BOX, BOX_ON_PATH, CANVAS, EDGE, INK, PATH, SVG_STYLE, Legend, legend_of
from espalier.plotting.escape import xml_text
from espalier.plotting.layout import CURVE, BoxPosition, Layout, compute_layout
from espalier.plotting.selection import Box, Path, TreeView, select_nodes
from espalier.plotting.svg_elements import lines_of_text, number, rectangle, text
from espalier.plotting.text_width import LINE
from espalier.plotting.title_and_legend import description, headline, lines_above, lines_below

DEFAULT_BOXES: Final = 100
DEFAULT_BOXES_WITH_PATH: Final = 40
MAX_BOXES: Final = 4_000
MAX_BRANCHES: Final = 24
"""Maximum number of boxes for the branches of a node. The lightest branches share one box, but never those on the path
of the row, even if these alone take more boxes."""
MARGIN: Final = 20.0
MIN_WIDTH: Final = 480.0
"""Room for the lines above and below a small tree."""
FADED: Final = "0.6"
"""Opacity of boxes off the path of a row."""
BASELINE: Final = 0.95
"""Distance from the top of a line of text to its baseline, in font sizes."""
STROKE: Final = 1.5
THICK: Final = 4.0
ROUND: Final = 12.0
ANGULAR: Final = 3.0
RANGE: Final = 'fill="#0072b2" opacity="0.55"'
MIN_SEGMENT: Final = 0.25


def to_svg(
    model: Model, *, node: int = 0, depth: int | None = None, path: Path | None = None, caption: str = ""
) -> str:
    """Return the tree as SVG, from left to right, with the distribution of the training rows in each box.

    The file is self-contained and safe to embed: no script, no outside reference, every text escaped. Screen readers
    read its texts, and its colours follow the reader's light or dark scheme.

    Args:
        model: The model.
        node: The node at the top.
        depth: Maximum number of tests on a path; each deeper part is a dashed box with the number of its leaves.
            None: as many levels as fit into 100 boxes; with `path`, into 40.
        path: A row, or an `Explanation` of one: its path is drawn thick, with the row's values, and is never folded.
        caption: A line below the title, such as the time of the answer.

    Raises:
        ConfigError: There is no such node or depth, or `path` is neither a row nor an explanation by this model.
        NotApplicable: The model is a list of rules, or `depth` or `path` takes more than 4 000 boxes.
        RowError: The row has faults.
    """
    if isinstance(model.body, RuleList):
        raise NotApplicable("a list of rules has no tree to draw: use text, Mermaid or DOT")
    view = select_nodes(
        model,
        node=node,
        depth=depth,
        path=path,
        default_boxes=DEFAULT_BOXES if path is None else DEFAULT_BOXES_WITH_PATH,
        max_boxes=MAX_BOXES,
        max_branches=MAX_BRANCHES,
    )
    legend = legend_of(model)
    shown = list(box_contents(view, legend))
    layout = compute_layout(view.boxes, shown)
    width = max(layout.width, MIN_WIDTH)
    above, below = lines_above(view, legend, caption, width=width), lines_below(view, width)
    shapes = [
        *_translated(above.shapes, MARGIN, MARGIN),
        *_translated([*_lines(view, layout), *_boxes(view, layout, shown, legend)], MARGIN, MARGIN + above.height),
        *_translated(below.shapes, MARGIN, MARGIN + above.height + layout.height),
    ]
    height = 2 * MARGIN + above.height + layout.height + below.height
    texts = headline(view), description(view, legend, caption)
    return _document(*texts, "".join(shapes), width=width + 2 * MARGIN, height=height)


def _document(title: str, description: str, content: str, *, width: float, height: float) -> str:
    # Two pictures in one page must not share an id, and the same picture must always have the same id.
    name = f"espalier-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    size = f'width="{number(width)}" height="{number(height)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="espalier-tree" {size} '
        f'viewBox="0 0 {number(width)} {number(height)}" role="graphics-document document" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-desc" '
        "font-family=\"system-ui, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif\">"
        f'<title id="{name}-title">{xml_text(title)}</title>'
        f'<desc id="{name}-desc">{xml_text(description)}</desc>'
        f"<style>{SVG_STYLE}</style>"
        f"{rectangle(0, 0, width, height, CANVAS)}"
        f"{content}</svg>\n"
    )


def _translated(shapes: Sequence[str], x: float, y: float) -> Iterator[str]:
    if shapes:
        yield f'<g transform="translate({number(x)} {number(y)})">'
        yield from shapes
        yield "</g>"


def _lines(view: TreeView, layout: Layout) -> Iterator[str]:
    """Draw the lines between boxes, those on the path of the row last, so that they lie on top."""
    boxes, positions = view.boxes, layout.positions
    for on_path in (False, True):
        for box, position in zip(boxes, positions, strict=True):
            if box.parent < 0 or (box.share > 0) != on_path:
                continue
            start = positions[box.parent]
            right, above, middle = start.left + start.width, number(start.middle), number(position.middle)
            bend = number(right + CURVE / 2)
            line = f'{PATH if on_path else EDGE} stroke-width="{number(_thickness(box))}"'
            yield (
                f'<path d="M{number(right)} {above}C{bend} {above} {bend} {middle} {number(right + CURVE)} {middle}'
                f'H{number(position.left)}" {line}{_faded(view, box)}/>'
            )


def _thickness(box: Box) -> float:
    return max(2.0, THICK * box.share) if box.share else STROKE


def _faded(view: TreeView, box: Box) -> str:
    return "" if view.explanation is None or box.share else f' opacity="{FADED}"'


def _boxes(view: TreeView, layout: Layout, shown: Sequence[BoxContent], legend: Legend) -> Iterator[str]:
    scale = _scale(shown)
    for box, position, content in zip(view.boxes, layout.positions, shown, strict=True):
        node = f' data-node="{box.node}"' if box.node >= 0 else ""
        top = position.middle - content.label_height / 2
        if content.label:
            width = content.label_width + 6
            # The rectangle is not in the group of the box: if the group is faded, the line would be visible through it.
            yield rectangle(position.label_left - 3, top, width, content.label_height, CANVAS)
        yield f'<g role="graphics-symbol img"{node}{_faded(view, box)}><title>{xml_text(content.description)}</title>'
        yield from lines_of_text(content.label, position.label_left, top + BASELINE * NOTE, size=NOTE)
        yield (
            f'<svg x="{number(position.left)}" y="{number(position.middle - content.height / 2)}" '
            f'width="{number(position.width)}" height="{number(content.height)}">'
        )
        yield _frame(box, position, content)
        yield from _texts(content)
        yield from _bar(content, legend, width=position.width - 2 * PAD)
        yield from _range(content, scale, width=position.width - 2 * PAD)
        yield "</svg></g>"


def _frame(box: Box, position: BoxPosition, content: BoxContent) -> str:
    thickness = _thickness(box)
    return rectangle(
        thickness / 2,
        thickness / 2,
        position.width - thickness,
        content.height - thickness,
        BOX_ON_PATH if box.share else BOX,
        f'rx="{number(ROUND if box.form == "leaf" else ANGULAR)}" stroke-width="{number(thickness)}"',
        *(['stroke-dasharray="5 4"'] if box.form in ("folded", "more") else []),
    )


def _texts(content: BoxContent) -> Iterator[str]:
    y = PAD + len(content.head) * HEAD * LINE + BASELINE * NOTE
    yield from lines_of_text(content.head, PAD, PAD + BASELINE * HEAD, size=HEAD, bold=True)
    yield from lines_of_text(content.notes, PAD, y, size=NOTE)
    if content.value:
        yield text(content.value, PAD, y + len(content.notes) * NOTE * LINE, size=NOTE, bold=True)


def _bar(content: BoxContent, legend: Legend, *, width: float) -> Iterator[str]:
    x = PAD
    # A regression, and a branch that no row took, have no shares.
    for share, colour in zip(content.shares, legend.colours, strict=False):
        if share * width >= MIN_SEGMENT:
            yield rectangle(x, content.height - PAD - BAR, share * width, BAR, f'fill="{colour}"')
        x += share * width


def _scale(shown: Sequence[BoxContent]) -> tuple[float, float]:
    spreads = [content.spread for content in shown if content.spread is not None]
    low = min((mean - std for mean, std in spreads), default=0.0)
    high = max((mean + std for mean, std in spreads), default=1.0)
    return low, high if high > low else low + max(1.0, abs(low))


def _range(content: BoxContent, scale: tuple[float, float], *, width: float) -> Iterator[str]:
    if content.spread is None:
        return
    (mean, std), (low, high) = content.spread, scale
    y = content.height - PAD - BAR
    start, middle, end = ((value - low) / (high - low) * width for value in (mean - std, mean, mean + std))
    yield f'<path d="M{number(PAD)} {number(y + BAR / 2)}h{number(width)}" {EDGE} stroke-width="1"/>'
    yield rectangle(PAD + start, y + 1, max(end - start, 1), BAR - 2, RANGE)
    yield rectangle(PAD + middle - 1, y, 2, BAR, INK)
