"""Flowcharts in Mermaid's language."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from espalier.explanation.branch_and_leaf_text import cut
from espalier.model.model import Model
from espalier.plotting.escape import legal_text
from espalier.plotting.flowchart import ACCENT, MAX_TEXT, Arrow, Cell, chart_of
from espalier.plotting.selection import Path

PLAIN: Final = frozenset(" .,-_/()±≤:…")
"""Characters that, like letters and digits, have no meaning for Mermaid inside quotes, unless `MARKDOWN` matches."""
MARKDOWN: Final = re.compile(r"^[0-9]+[.)](?= |$)|^-(?=[ -]|$)|(?<![^\W_])_|_(?![^\W_])|://|www\.", re.IGNORECASE)
"""Text that Mermaid would read as a list, emphasis or a link."""


def to_mermaid(
    model: Model, *, node: int = 0, depth: int | None = None, path: Path | None = None, most_nodes: int | None = None
) -> str:
    """Return the tree as a Mermaid flowchart: leaves are rounded boxes, branches are labelled arrows.

    A list of rules is a chain: a box per rule, with an arrow to its answer and one to the next rule. Folded boxes have
    double sides; the path of a row has thick lines. Texts are cut at 300 characters. Arguments: `espalier.to_text`.
    """
    lines = _mermaid_lines(chart_of(model, node, depth, path, most_nodes))
    return "\n".join(["flowchart TD", *(f"    {line}" for line in lines)]) + "\n"


def _mermaid_lines(chart: Iterator[Cell | Arrow]) -> Iterator[str]:
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


def _mermaid_text(text: str) -> str:
    """Return a text, cut to `MAX_TEXT`, with Mermaid's entities for characters that could end or style the label."""
    text = legal_text(cut(text, MAX_TEXT))
    active = {match.end() - 1 if match[0] != "://" else match.start() for match in MARKDOWN.finditer(text)}
    return "".join(
        each if each.isalnum() or (each in PLAIN and place not in active) else f"#{ord(each)};"
        for place, each in enumerate(text)
    )
