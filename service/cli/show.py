"""``show``: a model file as text, a diagram, a picture or JSON; whole, in part, or with the way of a row."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.command import Command, Refused
from service.cli.files import check_folder, read_model, refusals, write_whole

if TYPE_CHECKING:
    import espalier

FORMATS = ("text", "mermaid", "dot", "svg", "json")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--depth", metavar="N", type=int, help="at most N tests below each other; the rest is folded")
    parser.add_argument("--node", metavar="N", type=int, default=0, help="begin at this node (default: 0, the root)")
    parser.add_argument("--row", metavar="JSON", help='show the way of a row, such as \'{"Outlook": "Sunny"}\'')
    parser.add_argument("--out", metavar="FILE", type=Path, help="default: standard output")


def show(arguments: Namespace) -> int:
    """Print a model, or a part of it."""
    if arguments.out is not None:
        check_folder(arguments.out)
    model = read_model(arguments.model)
    with refusals(None):
        text = _shown(model, arguments)
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        write_whole(arguments.out, text.encode())
        print(f"written   {arguments.out}")
    return 0


COMMANDS: Mapping[str, Command] = {
    "show": Command("print a model as text, Mermaid, DOT, SVG or JSON", _arguments, show),
}


def _shown(model: "espalier.Model", arguments: Namespace) -> str:
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    part: dict[str, Any] = {"node": arguments.node, "depth": arguments.depth}
    if arguments.format == "json":
        if arguments.row is not None:
            raise Refused("--row: JSON has no way of a row; `espalier predict` gives it")
        whole = arguments.node == 0 and arguments.depth is None
        document = espalier.to_document(model) if whole else espalier.to_columns(model, **part)
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    forms: Mapping[str, Callable[..., str]] = {
        "text": espalier.to_text,
        "mermaid": espalier.to_mermaid,
        "dot": espalier.to_dot,
        "svg": espalier.to_svg,
    }
    return forms[arguments.format](model, **part, path=_row(arguments.row))


def _row(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    try:
        row = json.loads(given)
    except (ValueError, RecursionError):
        raise Refused("--row: must be JSON, an object of attribute names and values") from None
    if not isinstance(row, dict):
        raise Refused("--row: must be an object of attribute names and values")
    return row
