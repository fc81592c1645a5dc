"""Where the boxes of a drawing go: levels are columns from left to right, and no two boxes touch.

Each box at the end of a way takes a strip of its own, from top to bottom in preorder; a box with boxes below it stands
in the middle between the first and the last of them, so within the strips of those::

    column 0   │ curve │ label │ column 1

      ┌─────┐     ╭──── ≤ 2.5 ──┌─────┐   strip 0
      │ box ├─────┤             └─────┘
      └─────┘     ╰──── > 2.5 ──┌─────┐   strip 1
                                └─────┘
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

GAP: Final = 14.0
"""Between two strips."""
CURVE: Final = 34.0
"""Width in which the lines from a box part."""
LABEL_GAP: Final = 7.0
"""To the left and to the right of a label."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How large a box is, and the label on the line that leads to it."""

    width: float
    height: float
    label_width: float
    label_height: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where a box is, as wide as its column, and where the label on the line that leads to it begins."""

    left: float
    width: float
    middle: float
    label_left: float


@dataclass(frozen=True, slots=True)
class Layout:
    """All places, in the order of the boxes.

    Attributes:
        places: One a box.
        width: Of all.
        height: Of all.
    """

    places: tuple[Place, ...]
    width: float
    height: float


def laid_out(parents: Sequence[int], levels: Sequence[int], extents: Sequence[Extent]) -> Layout:
    """Return each box its place.

    Args:
        parents: Place of the box above among the boxes, which stand in preorder; -1 at the top.
        levels: Boxes above each box.
        extents: Sizes.
    """
    lefts, ends = _columns(levels, extents)
    middles, height = _middles(parents, extents)
    places = tuple(
        Place(lefts[level], ends[level] - lefts[level], middle, lefts[level] - extent.label_width - LABEL_GAP)
        for level, middle, extent in zip(levels, middles, extents, strict=True)
    )
    return Layout(places, ends[-1], height)


def _columns(levels: Sequence[int], extents: Sequence[Extent]) -> tuple[list[float], list[float]]:
    """Return where the boxes of each level begin and end: each column is as wide as its widest box and label."""
    widths, labels = [0.0] * (max(levels) + 1), [0.0] * (max(levels) + 1)
    for level, extent in zip(levels, extents, strict=True):
        widths[level] = max(widths[level], extent.width)
        labels[level] = max(labels[level], extent.label_width)
    lefts: list[float] = []
    ends: list[float] = []
    for level, (width, label) in enumerate(zip(widths, labels, strict=True)):
        lefts.append(ends[-1] + CURVE + label + 2 * LABEL_GAP if level else 0.0)
        ends.append(lefts[-1] + width)
    return lefts, ends


def _middles(parents: Sequence[int], extents: Sequence[Extent]) -> tuple[list[float], float]:
    """Return the middle of each box from the top, and the height of all."""
    n_boxes = len(parents)
    with_boxes_below = set(parents)
    middles = [0.0] * n_boxes
    y = 0.0
    for place in range(n_boxes):
        if place not in with_boxes_below:
            height = max(extents[place].height, extents[place].label_height)
            middles[place] = y + height / 2
            y += height + GAP
    first, last = [0.0] * n_boxes, [0.0] * n_boxes
    # From the end of the preorder: the first of the boxes below is the last one that is seen.
    for place in range(n_boxes - 1, -1, -1):
        if place in with_boxes_below:
            middles[place] = (first[place] + last[place]) / 2
        parent = parents[place]
        if parent >= 0:
            last[parent] = last[parent] or middles[place]
            first[parent] = middles[place]
    # A single box above taller ones below it may stand out of their strips at both ends.
    above = min(middle - extent.height / 2 for middle, extent in zip(middles, extents, strict=True))
    below = max(middle + extent.height / 2 for middle, extent in zip(middles, extents, strict=True))
    return [middle - above for middle in middles], below - above
