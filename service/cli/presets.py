"""Every preset, field and pruning method with its meaning: the command ``presets``, and the help of who takes them.

All of it is read from the tables by which the core itself checks what it is given.
"""

import argparse
import json
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from service.cli import Command

if TYPE_CHECKING:
    import espalier

WIDTH = 100


def help_with_tables(parser: ArgumentParser) -> None:
    """Let ``--help`` end with all presets, fields and pruning methods."""
    parser.add_argument(
        "-h",
        "--help",
        action=_HelpWithTables,
        nargs=0,
        help="show this, with all presets, fields and methods, and exit",
    )


def presets(arguments: Namespace) -> int:
    """Print every preset, field and pruning method."""
    if arguments.json:
        print(json.dumps(_document()))
    else:
        print("\n".join(_lines()))
    return 0


class _HelpWithTables(argparse.Action):
    """Prints the help and the tables; these are loaded only now."""

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        parser.print_help()
        print("\n" + "\n".join(_lines()))
        parser.exit()


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


COMMANDS: Mapping[str, Command] = {
    "presets": Command("list presets, fields and pruning methods", _arguments, presets),
}


def _document() -> dict[str, Any]:
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    return {
        "presets": {name: espalier.config_to_dict(config) for name, config in espalier.PRESETS.items()},
        "fields": [_field_document(info) for info in espalier.field_table(espalier.TrainingConfig)],
        "pruning": {
            name: [_field_document(info) for info in espalier.field_table(kind)]
            for name, kind in espalier.PRUNERS.items()
        },
    }


def _lines() -> Iterator[str]:
    import espalier  # noqa: PLC0415 - as above

    yield "Presets (--preset), and the fields in which each differs from cart:"
    plain = espalier.config_to_dict(espalier.PRESETS["cart"])
    for name, config in espalier.PRESETS.items():
        fields = espalier.config_to_dict(config)
        changed = {field: value for field, value in fields.items() if field != "preset" and value != plain[field]}
        yield ""
        yield from _wrapped(espalier.PRESET_SENTENCES[name], f"  {name:9s} ")
        yield from _wrapped("  ".join(f"{field}={_compact(value)}" for field, value in changed.items()), " " * 12)
    yield ""
    yield "Fields (--set FIELD=VALUE; --set pruning.confidence=0.1 reaches inside), with the default of cart:"
    yield ""
    yield from _field_lines(espalier.field_table(espalier.TrainingConfig))
    for name, kind in espalier.PRUNERS.items():
        table = espalier.field_table(kind)
        yield ""
        yield f"Pruning method {name} (espalier prune --method {name}; --set pruning.method={name})"
        yield from _wrapped((kind.__doc__ or "").splitlines()[0], "  ")
        yield "" if table else "  no parameters"
        yield from _field_lines(table)


def _field_lines(table: "tuple[espalier.FieldInfo, ...]") -> Iterator[str]:
    for info in table:
        yield f"  {info.name} = {json.dumps(info.default)}"
        yield from _wrapped(info.meaning, " " * 6)
        yield from _wrapped(f"[{info.legal}]", " " * 6)


def _wrapped(text: str, start: str) -> list[str]:
    following = " " * len(start)
    return textwrap.wrap(
        text, WIDTH, initial_indent=start, subsequent_indent=following, break_long_words=False, break_on_hyphens=False
    )


def _compact(value: Any) -> str:
    """Write JSON without the blanks at which lines are broken."""
    return json.dumps(value, separators=(",", ":"))


def _field_document(info: "espalier.FieldInfo") -> dict[str, Any]:
    return {"name": info.name, "default": info.default, "legal": info.legal, "meaning": info.meaning}
