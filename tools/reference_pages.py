"""Write the reference pages that are generated from the code: ``python -m tools.reference_pages``.

Each function of `PAGES` returns one page of docs/reference/ as Markdown. ``make docs`` runs this module first.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import espalier
from service.app import create_app
from service.cli.__main__ import COMMANDS, main
from service.settings import Settings, variables

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
METHODS = ("get", "post", "put", "patch", "delete")


def settings() -> str:
    """Return the table of the service's environment variables."""
    rows = (
        [f"`{variable.name}`", f"`{variable.default}`", variable.rule.legal, variable.rule.meaning]
        for variable in variables()
    )
    return _page(
        "# Settings",
        "Environment variables of the service. At the start, all illegal values are reported together; an empty "
        "variable counts as not set.",
        *_table(["variable", "default", "legal", "what it sets"], rows),
    )


def configuration() -> str:
    """Return the presets, the fields of a training and the parameters of each pruning method."""
    plain = espalier.config_to_dict(espalier.PRESETS["cart"])
    parts = [
        "# Configuration",
        "An algorithm is a *preset*: a value for every field below. The same names are used in Python, JSON (`params`) "
        "and on the command line (`--set FIELD=VALUE`).",
        "## Presets",
        "Each table lists the fields in which the preset differs from `cart`. If `criterion` is not listed, it is "
        "`null`; the sentence above the table then names the criteria that are used.",
    ]
    for name, config in espalier.PRESETS.items():
        fields = espalier.config_to_dict(config).items()
        changed = {field: value for field, value in fields if field != "preset" and value != plain[field]}
        parts += [f"### `{name}`", espalier.PRESET_SENTENCES[name] + "."]
        if changed:
            rows = ([f"`{field}`", f"`{json.dumps(value)}`"] for field, value in changed.items())
            parts.append("\n".join(_table(["field", "value"], rows)))
    parts += ["## Fields of a training", "The default is that of `cart`.", _fields(espalier.TrainingConfig)]
    for name, kind in espalier.PRUNERS.items():
        parts += [f"## Pruning method `{name}`", (kind.__doc__ or "").splitlines()[0], _fields(kind)]
    return "\n\n".join(part for part in parts if part) + "\n"


def http_api() -> str:
    """Return the tables of operations, one for each tag of the OpenAPI document."""
    app = create_app(Settings(auth="keys", database_url="sqlite:///never-opened.db"))
    document = app.test_client().get("/openapi.json").get_json()
    tags: dict[str, list[list[str]]] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                operation = operations[method]
                scopes = [scope for needed in operation.get("security", ()) for scope in next(iter(needed.values()))]
                row = [f"`{method.upper()} {path}`", operation["summary"], ", ".join(f"`{scope}`" for scope in scopes)]
                tags.setdefault(operation["tags"][0], []).append(row)
    parts = [
        "# HTTP API",
        "A running service shows the full description at `/docs`, to read and to try, and the OpenAPI 3.1 document at "
        "`/openapi.json`. Client generators name their functions after its operation ids: `train`, `get_job`, "
        "`predict`, `explain_decision`.",
        "Errors are problem documents (RFC 9457, `application/problem+json`): `status`, `title`, `detail`, "
        "`request_id`, `retryable` and `errors`, each with `pointer`, `code` and `message`. Below `/v2`, errors have "
        "the media type `application/json` and the additional member `error`. Lists below `/v1` are paged: pass `next` "
        "of one page as `cursor` of the next.",
        "The last column names the [scope](../operations/keys.md) that a key needs. If it names two scopes, a key "
        "needs only one of them. With `predict` alone, a key reaches only the prediction jobs that it requested "
        "itself. The scope `admin` includes all others.",
    ]
    meanings = {tag["name"]: tag["description"] for tag in document["tags"]}
    for tag, rows in tags.items():
        table = "\n".join(_table(["operation", "summary", "scope"], rows))
        parts += [f"## {tag.capitalize()}", f"{meanings[tag]}.", table]
    return "\n\n".join(parts) + "\n"


def command_line() -> str:
    """Return the help of every command."""
    parts = [
        "# Command line",
        "`espalier COMMAND --help` prints the section of the command. For `train` and `prune`, it adds all presets, "
        "fields and methods.\n\nExit codes: 0: done. 1: failed. 2: refused, with the reasons on "
        "standard error, one per line. 130: interrupted. 143: terminated in a container.",
    ]
    os.environ["COLUMNS"] = "100"
    for name in COMMANDS:
        with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
            main([name, "--help"])
        text = printed.getvalue().partition("\nPresets (--preset)")[0]  # the page on configuration has these tables
        parts += [f"## espalier {name}", f"```text\n{text.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "command_line.md": command_line,
    "configuration.md": configuration,
    "http_api.md": http_api,
    "settings.md": settings,
}


def _fields(kind: type) -> str:
    rows = (
        [f"`{field.name}`", f"`{json.dumps(field.default)}`", field.legal, field.meaning]
        for field in espalier.field_table(kind)
    )
    table = _table(["field", "default", "legal", "meaning"], rows)
    return "\n".join(table) if len(table) > 2 else "No parameters."


def _table(head: list[str], rows: Iterator[list[str]] | list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines]


def _page(title: str, sentence: str, *lines: str) -> str:
    return f"{title}\n\n{sentence}\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
