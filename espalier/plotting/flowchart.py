"""Trees and lists of rules as boxes and arrows, for programs that draw graphs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from espalier.explanation.branch_and_leaf_text import BranchText, folded_text, leaf_equation, leaf_text
from espalier.explanation.explain import Explanation
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.plotting.rules import check_whole_list, rule_texts
from espalier.plotting.selection import Path, TreeView, explained, select_nodes

MAX_TEXT: Final = 300
"""Maximum number of characters in a box or on an arrow, because programs that draw the chart do not cut texts."""
ACCENT: Final = "#c2255c"
"""Colour of the path of a row."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A box of a chart.

    Attributes:
        name: Unique name, to which arrows refer.
        text: The text in the box.
        form: ``test``, ``leaf`` or ``folded``.
        marked: Whether the box is on the path of the row that is shown.
    """

    name: str
    text: str
    form: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from the cell named `start` to the cell named `end`."""

    start: str
    end: str
    text: str
    marked: bool


def chart_of(
    model: Model, node: int, depth: int | None, path: Path | None, most_nodes: int | None
) -> Iterator[Cell | Arrow]:
    """Yield the boxes and arrows of a tree, of a part of a tree, or of a list of rules."""
    if isinstance(model.body, RuleList):
        check_whole_list(node, depth)
        return rule_chart(model, explained(model, path))
    return tree_chart(select_nodes(model, node=node, depth=depth, path=path, max_boxes=most_nodes))


def tree_chart(view: TreeView) -> Iterator[Cell | Arrow]:
    """Yield a cell for each box of the view, followed by the arrow that leads to the cell."""
    model, text_of = view.model, BranchText(view.model)
    names = ["n" + (str(box.node) if box.node >= 0 else f"{view.boxes[box.parent].node}x") for box in view.boxes]
    for box, name in zip(view.boxes, names, strict=True):
        if box.form == "test":
            text = text_of.attribute(box.node)
        elif box.form == "leaf":
            text = f"{leaf_text(model, box.node)} {leaf_equation(model, box.node)}".rstrip(" ")
        else:
            text = folded_text(model, box.nodes, box.n_leaves)
        yield Cell(name, text, "folded" if box.form == "more" else box.form, box.share > 0)
        if box.parent >= 0:
            label = "other" if box.node < 0 else text_of.label(box.node)
            yield Arrow(names[box.parent], name, label, box.share > 0)


def rule_chart(model: Model, explanation: Explanation | None) -> Iterator[Cell | Arrow]:
    """Yield a chain: a box per rule, with an arrow to its answer and one to the next rule."""
    *rules, (_, default) = rule_texts(model)
    fired = -1 if explanation is None else explanation.prediction.leaf
    for number, (conditions, answer) in enumerate(rules):
        yield Cell(f"r{number}", conditions, "test", number <= fired)
        yield Cell(f"a{number}", answer, "leaf", number == fired)
        yield Arrow(f"r{number}", f"a{number}", "yes", number == fired)
        yield Arrow(f"r{number}", f"r{number + 1}", "no", number < fired)
    yield Cell(f"r{len(rules)}", default, "leaf", fired == len(rules))
