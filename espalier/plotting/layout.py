"""Coordinates of the boxes of a drawn tree, and upper bounds of the width of texts.

Levels are columns from left to right, and no two boxes touch. Each box without boxes below it takes a strip, from top
to bottom in preorder; a box with boxes below it is centred between the first and the last of them, within their
strips::

    column 0   │ curve │ label │ column 1

      ┌─────┐     ╭──── ≤ 2.5 ──┌─────┐   strip 0
      │ box ├─────┤             └─────┘
      └─────┘     ╰──── > 2.5 ──┌─────┐   strip 1
                                └─────┘
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from unicodedata import category, decomposition, east_asian_width

GAP: Final = 14.0
"""Space between two strips."""
CURVE: Final = 34.0
"""Width of the curves that lead from a box to its branches."""
LABEL_GAP: Final = 7.0
"""Space to the left and to the right of a label."""
LINE: Final = 1.25
"""Height of a line, in font sizes."""
BOLD: Final = 1.16
ELLIPSIS: Final = "…"

# Widths in font sizes, not below those of the widest fonts in common use (Verdana, DejaVu Sans).
CLASSES: Final = (
    (0.43, " ijlI.,:;'|!ftr()[]/\\-·"),
    (0.60, '"sJczkvxy`*?_'),
    (0.70, "abdeghnopqu0123456789$FLEPTYZSKXAVBRC{}"),
    (0.87, "wDGHNOQUM<>=+≤≥±×~^#&–−"),
    (1.02, "mW@%…"),
)
WIDTHS: Final = {ord(character): width for width, characters in CLASSES for character in characters}
OTHER: Final = 1.1
WIDE: Final = 1.4
"""Ideographs and pictures."""
COMBINING: Final = frozenset({"Mn", "Me", "Cf"})
"""Unicode categories of characters without a width."""


@dataclass(frozen=True, slots=True)
class BoxSize:
    """Size of a box, and of the label of its branch."""

    width: float
    height: float
    label_width: float
    label_height: float


@dataclass(frozen=True, slots=True)
class BoxPosition:
    """Position of a box, as wide as its column (`middle` is vertical), and the left end of the label of its branch."""

    left: float
    width: float
    middle: float
    label_left: float


@dataclass(frozen=True, slots=True)
class Layout:
    """All positions, in the order of the boxes."""

    positions: tuple[BoxPosition, ...]
    width: float
    height: float


def compute_layout(parents: Sequence[int], levels: Sequence[int], sizes: Sequence[BoxSize]) -> Layout:
    """Compute the position of each box; boxes are in preorder, the parent of the first is -1."""
    lefts, ends = _columns(levels, sizes)
    middles, height = _middles(parents, sizes)
    positions = tuple(
        BoxPosition(lefts[level], ends[level] - lefts[level], middle, lefts[level] - size.label_width - LABEL_GAP)
        for level, middle, size in zip(levels, middles, sizes, strict=True)
    )
    return Layout(positions, ends[-1], height)


def _columns(levels: Sequence[int], sizes: Sequence[BoxSize]) -> tuple[list[float], list[float]]:
    """Return where the boxes of each level begin and end: each column is as wide as its widest box and label."""
    widths, labels = [0.0] * (max(levels) + 1), [0.0] * (max(levels) + 1)
    for level, size in zip(levels, sizes, strict=True):
        widths[level] = max(widths[level], size.width)
        labels[level] = max(labels[level], size.label_width)
    lefts: list[float] = []
    ends: list[float] = []
    for level, (width, label) in enumerate(zip(widths, labels, strict=True)):
        lefts.append(ends[-1] + CURVE + label + 2 * LABEL_GAP if level else 0.0)
        ends.append(lefts[-1] + width)
    return lefts, ends


def _middles(parents: Sequence[int], sizes: Sequence[BoxSize]) -> tuple[list[float], float]:
    n_boxes = len(parents)
    with_boxes_below = set(parents)
    middles = [0.0] * n_boxes
    y = 0.0
    for place in range(n_boxes):
        if place not in with_boxes_below:
            height = max(sizes[place].height, sizes[place].label_height)
            middles[place] = y + height / 2
            y += height + GAP
    first, last = [0.0] * n_boxes, [0.0] * n_boxes
    # Backwards through the preorder, so that the first of the boxes below is seen last.
    for place in range(n_boxes - 1, -1, -1):
        if place in with_boxes_below:
            middles[place] = (first[place] + last[place]) / 2
        parent = parents[place]
        if parent >= 0:
            last[parent] = last[parent] or middles[place]
            first[parent] = middles[place]
    # A box that is taller than the strips of the boxes below it extends beyond them at both ends.
    above = min(middle - size.height / 2 for middle, size in zip(middles, sizes, strict=True))
    below = max(middle + size.height / 2 for middle, size in zip(middles, sizes, strict=True))
    return [middle - above for middle in middles], below - above


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return an upper bound of the width of a text, in the unit of `size`."""
    width = sum(map(_width, text))
    return width * size * (BOLD if bold else 1.0)


def wrap_text(text: str, *, width: float, size: float, most: int, bold: bool = False) -> tuple[list[str], bool]:
    """Break a text into at most `most` lines of `width`, at spaces if there are any.

    Returns:
        The lines, and whether they hold the whole text; if not, the last one ends in an ellipsis.

    >>> wrap_text("education-num", width=200, size=12, most=2)
    (['education-num'], True)
    >>> wrap_text("marital status of the person", width=100, size=12, most=2)
    (['marital status', 'of the person'], True)
    """
    room = width / size / (BOLD if bold else 1.0)
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < most:
        end = _fitting(rest, room)
        if end < len(rest):
            space = rest.rfind(" ", 1, end + 1)
            end = space if space > 0 else end
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    if not rest:
        return lines or [""], True
    last = lines[-1]
    lines[-1] = last[: _fitting(last, room - _width(ELLIPSIS))].rstrip() + ELLIPSIS
    return lines, False


def _fitting(text: str, room: float) -> int:
    used = 0.0
    for place, character in enumerate(text):
        used += _width(character)
        if used > room:
            return max(place, 1)
    return len(text)


def _width(character: str) -> float:
    known = WIDTHS.get(ord(character))
    if known is not None:
        return known
    if category(character) in COMBINING:
        return 0.0
    base = decomposition(character).partition(" ")[0]
    if base and base[0] != "<":
        return _width(chr(int(base, 16)))  # a letter with an accent
    return WIDE if east_asian_width(character) in "WF" or ord(character) > 0xFFFF else OTHER
