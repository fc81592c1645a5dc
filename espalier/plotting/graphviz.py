"""Flowcharts in DOT, the language of Graphviz."""

from collections.abc import Iterator, Mapping
from typing import Final

from espalier.explanation.branch_and_leaf_text import cut
from espalier.model.model import Model
from espalier.plotting.escape import legal_text
from espalier.plotting.flowchart import ACCENT, MAX_TEXT, Arrow, Cell, chart_of
from espalier.plotting.selection import Path


def to_dot(
    model: Model, *, node: int = 0, depth: int | None = None, path: Path | None = None, most_nodes: int | None = None
) -> str:
    """Return the tree as a directed graph in DOT, the language of Graphviz; leaves are rounded boxes.

    A list of rules is a chain, as in `espalier.to_mermaid`. Folded boxes are dashed; the path of a row has thick lines.
    Texts are cut at 300 characters. The arguments and errors are those of `espalier.to_text`.
    """
    lines = _dot_lines(chart_of(model, node, depth, path, most_nodes))
    return "\n".join(["digraph tree {", *(f"  {line};" for line in lines), "}"]) + "\n"


def _dot_lines(chart: Iterator[Cell | Arrow]) -> Iterator[str]:
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


def _dot_text(text: str) -> str:
    """Return text for a quoted string of DOT, in which a backslash begins an escape and an ampersand an entity."""
    return legal_text(cut(text, MAX_TEXT)).translate(DOT_ESCAPES)


DOT_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"})
