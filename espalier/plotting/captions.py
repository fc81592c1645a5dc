"""What stands above and below a drawn tree: what it is and what is folded, the answer, the colours, equations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from espalier.explanation.branch_text import counted, cut, top_line
from espalier.explanation.linear_terms import equation_text
from espalier.model.rules import label_line
from espalier.plotting.boxes import NOTE
from espalier.plotting.escape import legal_text
from espalier.plotting.legend import Legend
from espalier.plotting.lettering import LINE, text_width, wrapped
from espalier.plotting.selection import Drawing
from espalier.plotting.shapes import rectangle, text
from espalier.prediction.tree_predictor import tree_predictor

TITLE: Final = 16.0
LONGEST_NAME: Final = 300
LONGEST_TEXT: Final = 600
MOST_LINES: Final = 8
WIDEST_LINE: Final = 1_000.0
MOST_EQUATIONS: Final = 60
SWATCH: Final = 12.0
WIDEST_NAME: Final = 240.0
LEAD: Final = 8.0
"""Between the lines above a tree and the tree, and below it."""


@dataclass(frozen=True, slots=True)
class Block:
    """MissingValues whose coordinates begin at 0, and their height."""

    marks: tuple[str, ...]
    height: float


def headline(drawing: Drawing) -> str:
    """Name the tree: what it answers, and how large it is."""
    target = drawing.model.schema.target
    name = "" if target is None else legal_text(cut(target.name, LONGEST_NAME))
    return (
        f"{name}: {'part of ' if drawing.top else ''}a tree of {counted(drawing.model.tree.n_leaves, 'leaf', 'leaves')}"
    )


def description(drawing: Drawing, legend: Legend, caption: str) -> str:
    """Say in words what the picture shows, for those who do not see it."""
    words = [*_remarks(drawing, caption)]
    if legend.labels:
        others = [f"and {legend.n_others} others"] if legend.n_others else []
        words.append(f"Classes: {', '.join([*(cut(label, LONGEST_NAME) for label in legend.labels), *others])}.")
    words.append(f"{counted(len(drawing.boxes), 'box', 'boxes')} follow, each test before its branches.")
    return " ".join(words)


def lines_above(drawing: Drawing, legend: Legend, caption: str, *, width: float) -> Block:
    """Write the title, the remarks and the legend."""
    y, marks, width = TITLE, [], min(width, WIDEST_LINE)
    for line in wrapped(headline(drawing), width=width, size=TITLE, most=2, bold=True)[0]:
        marks.append(text(line, 0, y, size=TITLE, bold=True))
        y += TITLE * LINE
    for remark in _remarks(drawing, caption):
        for line in wrapped(remark, width=width, size=NOTE, most=MOST_LINES)[0]:
            marks.append(text(line, 0, y, size=NOTE))
            y += NOTE * LINE
    swatches, height = _swatches(legend, width, y + LEAD)
    return Block((*marks, *swatches), height + LEAD)


def lines_below(drawing: Drawing, width: float) -> Block:
    """Write the equations of linear leaves."""
    y, marks = NOTE + LEAD, []
    for equation in _equations(drawing):
        for line in wrapped(legal_text(cut(equation, LONGEST_TEXT)), width=width, size=NOTE, most=MOST_LINES)[0]:
            marks.append(text(line, 0, y, size=NOTE))
            y += NOTE * LINE
    return Block(tuple(marks), y if marks else 0.0)


def _remarks(drawing: Drawing, caption: str) -> Iterator[str]:
    """Say which part is shown, what is folded, and what the row is answered."""
    model = drawing.model
    if caption:
        yield legal_text(cut(caption, LONGEST_TEXT))
    if drawing.top:
        yield legal_text(cut(f"From {top_line(model, drawing.top)}.", LONGEST_TEXT))
    if drawing.n_folded:
        yield (
            f"{drawing.n_folded:,} of {counted(drawing.n_leaves, 'leaf', 'leaves')} folded: a dashed box says how many "
            "are below it."
        )
    explanation = drawing.explanation
    if explanation is None:
        return
    prediction = explanation.prediction
    if prediction.value is not None:
        answer = f"{prediction.value:.6g}"
    else:
        answer = label_line(prediction.label if prediction.label is not None else "")
    ways = "" if prediction.n_visits == 1 else f" ({prediction.n_visits:,} ways, put together)"
    yield legal_text(f"Answer: {cut(answer, LONGEST_NAME)}{ways}.")
    yield legal_text(f"Because: {cut(explanation.rule, LONGEST_TEXT)}")


def _swatches(legend: Legend, width: float, y: float) -> tuple[list[str], float]:
    """Lay the colours out in rows; give them, and where the last row ends."""
    if not legend.labels:
        return [], y
    names = [wrapped(label, width=WIDEST_NAME, size=NOTE, most=1)[0][0] for label in legend.labels]
    if legend.n_others:
        names.append(counted(legend.n_others, "other class", "other classes"))
    marks, x = [], 0.0
    for name, colour in zip(names, legend.colours, strict=True):
        step = SWATCH + 6 + text_width(name, NOTE) + 16
        if x > 0 and x + step > width:
            x, y = 0.0, y + NOTE * LINE + 4
        marks.append(rectangle(x, y, SWATCH, SWATCH, f'rx="2" fill="{colour}"'))
        marks.append(text(name, x + SWATCH + 6, y + SWATCH - 1.5, size=NOTE))
        x += step
    return marks, y + SWATCH


def _equations(drawing: Drawing) -> Iterator[str]:
    linear = tree_predictor(drawing.model).linear
    if linear is None:
        return
    leaves = [box.node for box in drawing.boxes if box.form == "leaf"]
    for node in leaves[:MOST_EQUATIONS]:
        leaf = linear.leaf_model(tree_predictor(drawing.model).nodes_to(node))
        yield f"LM{linear.numbers[node]}: {equation_text(drawing.model, linear, leaf)}"
    if len(leaves) > MOST_EQUATIONS:
        yield f"… and {len(leaves) - MOST_EQUATIONS:,} more equations: see the text of the tree"
