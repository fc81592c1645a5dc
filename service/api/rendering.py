"""Trees and ways through them as responses: the content type of each form, how much is shown, what a picture may.

A picture is a page to a browser that opens it by itself: its policy lets it apply its own style sheet and nothing else.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from flask import Response

import espalier
from service.api.responses import TEXT, bytes_answer, tagged_answer

SVG = "image/svg+xml"
DOT = "text/vnd.graphviz"
MOST_NODES = 20_000
MOST_COLUMNS_NODES = 200_000

_STYLE_HASH = base64.b64encode(hashlib.sha256(espalier.SVG_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)

Render = Callable[..., str]
TEXTS: Mapping[str, tuple[Render, str]] = {
    "text": (espalier.to_text, TEXT),
    "mermaid": (espalier.to_mermaid, TEXT),
    "dot": (espalier.to_dot, f"{DOT}; charset=utf-8"),
}


def drawn(model: espalier.Model, *, form: str, node: int, depth: int | None) -> Response:
    """Answer with a tree, or a part of it, in one of its forms.

    Where no depth is given, what does not fit is folded and counted; columns, which a program reads, are refused.

    Raises:
        espalier.ConfigError: There is no such node.
        espalier.NotApplicable: To this depth the tree is larger than what is shown at most.
    """
    part: dict[str, Any] = {"node": node, "depth": depth}
    if form == "json":
        return tagged_answer(espalier.to_columns(model, **part, most_nodes=MOST_COLUMNS_NODES))
    if form == "svg":
        return pictured(espalier.to_svg(model, **part))
    render, content_type = TEXTS[form]
    return bytes_answer(render(model, **part, most_nodes=MOST_NODES), content_type=content_type)


def pictured(svg: str) -> Response:
    """Answer with a picture."""
    response = bytes_answer(svg, content_type=f"{SVG}; charset=utf-8")
    response.headers["Content-Security-Policy"] = POLICY
    return response
