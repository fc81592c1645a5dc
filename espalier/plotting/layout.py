"""Coordinates of the boxes of a drawn tree.

Levels are columns from left to right, and no two boxes touch. Each box without children takes a horizontal strip; the
strips are in preorder from top to bottom. A box with children is centred between its first and its last child::

    column 0   │ curve │ label │ column 1

      ┌─────┐     ╭──── ≤ 2.5 ──┌─────┐   strip 0
      │ box ├─────┤             └─────┘
      └─────┘     ╰──── > 2.5 ──┌─────┐   strip 1
                                └─────┘
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from espalier.plotting.boxes import BoxContent
from espalier.plotting.selection import Box

GAP: Final = 14.0
"""Space between two strips."""
CURVE: Final = 34.0
"""Width of the curves that lead from a box to its branches."""
LABEL_GAP: Final = 7.0
"""Space to the left and to the right of a label."""


@dataclass(frozen=True, slots=True)
class BoxPosition:
    """Position of a box and of its label. The box is as wide as its column; `middle` is its vertical centre."""

    left: float
    width: float
    middle: float
    label_left: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The position of each box, in the order of the boxes, and the size of the whole tree."""

    positions: tuple[BoxPosition, ...]
    width: float
    height: float


def compute_layout(boxes: Sequence[Box], contents: Sequence[BoxContent]) -> Layout:
    """Compute the position of each box of a view from the sizes of the boxes' contents."""
    levels = [box.level for box in boxes]
    lefts, ends = _columns(levels, contents)
    middles, height = _middles([box.parent for box in boxes], contents)
    positions = tuple(
        BoxPosition(lefts[level], ends[level] - lefts[level], middle, lefts[level] - content.label_width - LABEL_GAP)
        for level, middle, content in zip(levels, middles, contents, strict=True)
    )
    return Layout(positions, ends[-1], height)


def _columns(levels: Sequence[int], contents: Sequence[BoxContent]) -> tuple[list[float], list[float]]:
    """Return the left end and the right end of each level. A level is as wide as its widest box."""
    widths, labels = [0.0] * (max(levels) + 1), [0.0] * (max(levels) + 1)
    for level, content in zip(levels, contents, strict=True):
        widths[level] = max(widths[level], content.width)
        labels[level] = max(labels[level], content.label_width)
    lefts: list[float] = []
    ends: list[float] = []
    for level, (width, label) in enumerate(zip(widths, labels, strict=True)):
        lefts.append(ends[-1] + CURVE + label + 2 * LABEL_GAP if level else 0.0)
        ends.append(lefts[-1] + width)
    return lefts, ends


def _middles(parents: Sequence[int], contents: Sequence[BoxContent]) -> tuple[list[float], float]:
    children: list[list[int]] = [[] for _ in parents]
    for place, parent in enumerate(parents[1:], start=1):
        children[parent].append(place)
    middles = [0.0] * len(parents)
    y = 0.0
    for place, content in enumerate(contents):
        if not children[place]:
            height = max(content.height, content.label_height)
            middles[place] = y + height / 2
            y += height + GAP
    for place in reversed(range(len(parents))):  # in preorder, children come after the box above them
        if below := children[place]:
            middles[place] = (middles[below[0]] + middles[below[-1]]) / 2
    # A box that is taller than the strips of its children extends beyond them at both ends.
    highest = min(middle - content.height / 2 for middle, content in zip(middles, contents, strict=True))
    lowest = max(middle + content.height / 2 for middle, content in zip(middles, contents, strict=True))
    return [middle - highest for middle in middles], lowest - highest
