"""Trees and lists of rules for the programs that lay out graphs themselves: Mermaid and Graphviz (DOT)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from espalier.explanation.branch_text import BranchWords, cut, folded_text, leaf_text
from espalier.explanation.explain import Explanation
from espalier.explanation.linear_terms import equation_text
from espalier.model.model import Model
from espalier.plotting.escape import legal_text
from espalier.plotting.rules import rules_to_mermaid
from espalier.plotting.selection import Drawing
from espalier.prediction.tree_predictor import tree_predictor

LONGEST_TEXT: Final = 300
"""Characters in one box or on one arrow: the programs that read this lay out what they get."""
PLAIN: Final = frozenset(" .,-_/()±≤:…")
"""Characters besides letters and digits that mean nothing to Mermaid inside quotes."""
ACCENT: Final = "#c2255c"


@dataclass(frozen=True, slots=True)
class Cell:
    """A box: its name in the chart, what stands in it, ``test``, ``leaf`` or ``folded``, and if it is on the way."""

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


def tree_chart(drawing: Drawing) -> Iterator[Cell | Arrow]:
    """Return a box for each of the drawing's, and before the next one the arrow that leads to it."""
    model, words = drawing.model, BranchWords(drawing.model)
    names = ["n" + (str(box.node) if box.node >= 0 else f"{drawing.boxes[box.parent].node}x") for box in drawing.boxes]
    for box, name in zip(drawing.boxes, names, strict=True):
        if box.form == "test":
            text = words.attribute(box.node)
        elif box.form == "leaf":
            text = f"{leaf_text(model, box.node)}{_equation(model, box.node)}"
        else:
            text = folded_text(model, box.nodes, box.n_leaves)
        yield Cell(name, text, "folded" if box.form == "more" else box.form, box.share > 0)
        if box.parent >= 0:
            label = "other" if box.node < 0 else words.label(box.node)
            yield Arrow(names[box.parent], name, label, box.share > 0)


def rule_chart(model: Model, explanation: Explanation | None) -> Iterator[Cell | Arrow]:
    """Return a chain: a box a rule, which answers where it holds and else asks the next one."""
    *pairs, last = rules_to_mermaid(model)
    n_rules, fired = len(pairs) // 2, -1 if explanation is None else explanation.prediction.leaf
    for number in range(n_rules):
        asked, passed, answers = number <= fired, number < fired, number == fired
        yield Cell(f"r{number}", pairs[2 * number], "test", asked)
        yield Cell(f"a{number}", pairs[2 * number + 1], "leaf", answers)
        yield Arrow(f"r{number}", f"a{number}", "yes", answers)
        yield Arrow(f"r{number}", f"r{number + 1}", "no", passed)
    yield Cell(f"r{n_rules}", last, "leaf", fired == n_rules)


def mermaid_lines(chart: Iterator[Cell | Arrow]) -> Iterator[str]:
    """Return the lines of a Mermaid flowchart: tests as boxes, leaves round, what is folded with double sides."""
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
        yield f"classDef way stroke:{ACCENT},stroke-width:4px"
        yield f"class {','.join(marked_cells)} way"
    if marked_arrows:
        yield f"linkStyle {','.join(marked_arrows)} stroke:{ACCENT},stroke-width:4px"


MERMAID_BRACKETS: Final[Mapping[str, tuple[str, str]]] = {
    "test": ("[", "]"),
    "leaf": ("([", "])"),
    "folded": ("[[", "]]"),
}


def dot_lines(chart: Iterator[Cell | Arrow]) -> Iterator[str]:
    """Return the lines of a directed graph in DOT: tests as boxes, leaves rounded, what is folded dashed."""
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


def _equation(model: Model, node: int) -> str:
    predictor = tree_predictor(model)
    if predictor.linear is None:
        return ""
    return f" {equation_text(model, predictor.linear, predictor.linear.leaf_model(predictor.nodes_to(node)))}"


def _mermaid_text(text: str) -> str:
    """Write text as Mermaid's entities where a character would end or style the label."""
    return "".join(
        character if character.isalnum() or character in PLAIN else f"#{ord(character)};"
        for character in legal_text(cut(text, LONGEST_TEXT))
    )


def _dot_text(text: str) -> str:
    r"""Write text for a quoted string of DOT, where a backslash begins an escape, an ampersand a name."""
    return legal_text(cut(text, LONGEST_TEXT)).translate(DOT_ESCAPES)


DOT_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"})
