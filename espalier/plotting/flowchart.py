"""Trees and lists of rules for programs that draw graphs: Mermaid and Graphviz (DOT)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from espalier.explanation.branch_text import BranchText, cut, folded_text, leaf_equation, leaf_text
from espalier.explanation.explain import Explanation
from espalier.model.model import Model
from espalier.plotting.escape import legal_text
from espalier.plotting.rules import rules_to_mermaid
from espalier.plotting.selection import TreeView

MAX_TEXT: Final = 300
"""Characters in one box or on one arrow: the programs that read this draw it whole."""
PLAIN: Final = frozenset(" .,-_/()±≤:…")
"""Characters besides letters and digits that mean nothing to Mermaid inside quotes."""
MARKDOWN: Final = re.compile(r"^[0-9]+[.)](?= |$)|^-(?=[ -]|$)|(?<![^\W_])_|_(?![^\W_])|://|www\.", re.IGNORECASE)
"""Text that Mermaid would read as a list, emphasis or a link."""
ACCENT: Final = "#c2255c"


@dataclass(frozen=True, slots=True)
class Cell:
    """A box: its name in the chart, its text, ``test``, ``leaf`` or ``folded``, and whether it is on the path."""

    name: str
    text: str
    form: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from one cell to another."""

    start: str
    end: str
    text: str
    marked: bool


def tree_chart(view: TreeView) -> Iterator[Cell | Arrow]:
    """Yield a box for each box of the view, and before the next one the arrow that leads to it."""
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
    *pairs, last = rules_to_mermaid(model)
    n_rules, fired = len(pairs) // 2, -1 if explanation is None else explanation.prediction.leaf
    for number in range(n_rules):
        is_read, is_passed, answers = number <= fired, number < fired, number == fired
        yield Cell(f"r{number}", pairs[2 * number], "test", is_read)
        yield Cell(f"a{number}", pairs[2 * number + 1], "leaf", answers)
        yield Arrow(f"r{number}", f"a{number}", "yes", answers)
        yield Arrow(f"r{number}", f"r{number + 1}", "no", is_passed)
    yield Cell(f"r{n_rules}", last, "leaf", fired == n_rules)


def mermaid_lines(chart: Iterator[Cell | Arrow]) -> Iterator[str]:
    """Yield the lines of a Mermaid flowchart: tests as boxes, leaves round, folded boxes with double sides."""
    marked_cells, marked_arrows, n_arrows = [], [], 0
    for item in chart:
        if isinstance(item, Cell):
            start, end = MERMAID_BRACKETS[item.form]
            yield f'{item.name}{start}"{_mermaid_text(item.text)}"{end}'
            marked_cells += [item.name] if item.marked else []
        else:
            yield f'{item.start} -->|"{_mermaid_text(item.text)}"| {item.end}'
            marked_arrows += [str(n_arrows)] if item.marked else []
            n_arrows += 1
    if marked_cells:
        yield f"classDef path stroke:{ACCENT},stroke-width:4px"
        yield f"class {','.join(marked_cells)} path"
    if marked_arrows:
        yield f"linkStyle {','.join(marked_arrows)} stroke:{ACCENT},stroke-width:4px"


MERMAID_BRACKETS: Final[Mapping[str, tuple[str, str]]] = {
    "test": ("[", "]"),
    "leaf": ("([", "])"),
    "folded": ("[[", "]]"),
}


def dot_lines(chart: Iterator[Cell | Arrow]) -> Iterator[str]:
    """Yield the lines of a directed graph in DOT: tests as boxes, leaves rounded, folded boxes dashed."""
    yield 'graph [bgcolor="white"]'
    yield 'node [shape="box", fontname="Helvetica", style="solid"]'
    yield 'edge [fontname="Helvetica"]'
    for item in chart:
        more = f', color="{ACCENT}", penwidth="4"' if item.marked else ""
        if isinstance(item, Cell):
            style = DOT_STYLES[item.form]
            yield f'{item.name} [label="{_dot_text(item.text)}", style="{style}"{more}]'
        else:
            yield f'{item.start} -> {item.end} [label="{_dot_text(item.text)}"{more}]'


DOT_STYLES: Final[Mapping[str, str]] = {"test": "solid", "leaf": "rounded", "folded": "dashed"}


def _mermaid_text(text: str) -> str:
    """Return text with Mermaid's entities for characters that would end or style the label."""
    text = legal_text(cut(text, MAX_TEXT))
    active = {match.end() - 1 if match[0] != "://" else match.start() for match in MARKDOWN.finditer(text)}
    return "".join(
        each if each.isalnum() or (each in PLAIN and place not in active) else f"#{ord(each)};"
        for place, each in enumerate(text)
    )


def _dot_text(text: str) -> str:
    """Return text for a quoted string of DOT, in which a backslash begins an escape and an ampersand a name."""
    return legal_text(cut(text, MAX_TEXT)).translate(DOT_ESCAPES)


DOT_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"})
