"""The texts above and below a drawn tree: title, remarks, legend, equations."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from espalier.explanation.branch_and_leaf_text import counted, cut, leaf_equations, top_line
from espalier.plotting.boxes import MAX_NAME, NOTE
from espalier.plotting.colours import Legend
from espalier.plotting.escape import legal_text
from espalier.plotting.selection import TreeView
from espalier.plotting.svg_elements import lines_of_text, rectangle, text
from espalier.plotting.text_width import LINE, text_width, wrap_text
from espalier.prediction.answers import format_answer

TITLE: Final = 16.0
MAX_TEXT: Final = 600
MAX_LINES: Final = 8
MAX_LINE_WIDTH: Final = 1_000.0
MAX_EQUATIONS: Final = 60
SWATCH: Final = 12.0
MAX_NAME_WIDTH: Final = 240.0
LEAD: Final = 8.0
"""Space between a tree and the lines above it, and between a tree and the lines below it."""


@dataclass(frozen=True, slots=True)
class Block:
    """SVG elements whose coordinates begin at 0, and their height."""

    shapes: tuple[str, ...]
    height: float


def headline(view: TreeView) -> str:
    """Return the title: the target, and the size of the tree."""
    target = view.model.schema.target
    name = "" if target is None else legal_text(cut(target.name, MAX_NAME))
    return f"{name}: {'part of ' if view.top else ''}a tree of {counted(view.model.tree.n_leaves, 'leaf', 'leaves')}"


def description(view: TreeView, legend: Legend, caption: str) -> str:
    """Describe the picture in words, for readers who cannot see it."""
    text_of = [*_remarks(view, caption)]
    if legend.labels:
        others = [f"and {legend.n_others} others"] if legend.n_others else []
        text_of.append(f"Classes: {', '.join([*(cut(label, MAX_NAME) for label in legend.labels), *others])}.")
    text_of.append(f"{counted(len(view.boxes), 'box', 'boxes')} follow, each test before its branches.")
    return " ".join(text_of)


def lines_above(view: TreeView, legend: Legend, caption: str, *, width: float) -> Block:
    """Return the title, the remarks and the legend."""
    width = min(width, MAX_LINE_WIDTH)
    title = wrap_text(headline(view), width=width, size=TITLE, most=2, bold=True)[0]
    remarks, y = _wrapped(_remarks(view, caption), TITLE + len(title) * TITLE * LINE, width)
    swatches, height = _swatches(legend, width, y + LEAD)
    return Block((*lines_of_text(title, 0, TITLE, size=TITLE, bold=True), *remarks, *swatches), height + LEAD)


def lines_below(view: TreeView, width: float) -> Block:
    """Return the equations of linear leaves."""
    equations = (legal_text(cut(equation, MAX_TEXT)) for equation in _equations(view))
    shapes, y = _wrapped(equations, NOTE + LEAD, width)
    return Block(tuple(shapes), y if shapes else 0.0)


def _wrapped(texts: Iterable[str], y: float, width: float) -> tuple[list[str], float]:
    """Return the lines of the texts, the first one on the baseline `y`, and the baseline of the next line."""
    lines = [line for each in texts for line in wrap_text(each, width=width, size=NOTE, most=MAX_LINES)[0]]
    return lines_of_text(lines, 0, y, size=NOTE), y + len(lines) * NOTE * LINE


def _remarks(view: TreeView, caption: str) -> Iterator[str]:
    model = view.model
    if caption:
        yield legal_text(cut(caption, MAX_TEXT))
    if view.top:
        yield legal_text(cut(f"From {top_line(model, view.top)}.", MAX_TEXT))
    if view.n_folded:
        yield (
            f"{view.n_folded:,} of {counted(view.n_leaves, 'leaf', 'leaves')} folded: a dashed box says how many "
            "are below it."
        )
    explanation = view.explanation
    if explanation is None:
        return
    prediction = explanation.prediction
    paths = "" if prediction.n_visits == 1 else f" ({prediction.n_visits:,} paths combined)"
    yield legal_text(f"Answer: {cut(format_answer(prediction), MAX_NAME)}{paths}.")
    yield legal_text(f"Because: {cut(explanation.rule, MAX_TEXT)}")


def _swatches(legend: Legend, width: float, y: float) -> tuple[list[str], float]:
    if not legend.labels:
        return [], y
    names = [wrap_text(label, width=MAX_NAME_WIDTH, size=NOTE, most=1)[0][0] for label in legend.labels]
    if legend.n_others:
        names.append(counted(legend.n_others, "other class", "other classes"))
    shapes, x = [], 0.0
    for name, colour in zip(names, legend.colours, strict=True):
        step = SWATCH + 6 + text_width(name, NOTE) + 16
        if x > 0 and x + step > width:
            x, y = 0.0, y + NOTE * LINE + 4
        shapes.append(rectangle(x, y, SWATCH, SWATCH, f'rx="2" fill="{colour}"'))
        shapes.append(text(name, x + SWATCH + 6, y + SWATCH - 1.5, size=NOTE))
        x += step
    return shapes, y + SWATCH


def _equations(view: TreeView) -> Iterator[str]:
    leaves = [box.node for box in view.boxes if box.form == "leaf"]
    yield from leaf_equations(view.model, leaves[:MAX_EQUATIONS])
    if view.model.linear is not None and len(leaves) > MAX_EQUATIONS:
        yield f"… and {len(leaves) - MAX_EQUATIONS:,} more equations: see the text of the tree"
