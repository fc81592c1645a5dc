"""List every preset, field and pruning method with its meaning, for ``presets``, ``train --help`` and ``prune --help``.

The list is made from the tables that the core uses for validation.
"""

import json
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any, Final

import espalier
from service.cli import Command

WIDTH: Final = 100


def help_with_tables(parser: ArgumentParser) -> None:
    """Let ``--help`` end with all presets, fields and pruning methods."""
    # argparse would wrap an epilog, and ignore a disk that is full.
    parser.print_help = lambda file=None: print(  # type: ignore[method-assign]
        parser.format_help(), *_lines(), sep="\n", file=file
    )


def presets(arguments: Namespace) -> int:
    """Print every preset, field and pruning method."""
    document = {
        "presets": {name: espalier.config_to_dict(config) for name, config in espalier.PRESETS.items()},
        "fields": _fields(espalier.TrainingConfig),
        "pruning": {name: _fields(kind) for name, kind in espalier.PRUNERS.items()},
    }
    print(json.dumps(document) if arguments.json else "\n".join(_lines()))
    return 0


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


COMMANDS: Mapping[str, Command] = {"presets": Command("list presets, fields and pruning methods", _arguments, presets)}


def _fields(kind: type) -> list[dict[str, Any]]:
    return [
        {"name": info.name, "default": info.default, "legal": info.legal, "meaning": info.meaning}
        for info in espalier.field_table(kind)
    ]


def _lines() -> Iterator[str]:
    yield "Presets (--preset), with the fields in which each differs from cart:"
    cart = espalier.config_to_dict(espalier.PRESETS["cart"])
    for name, config in espalier.PRESETS.items():
        fields = espalier.config_to_dict(config)
        changed = {field: value for field, value in fields.items() if field != "preset" and value != cart[field]}
        yield ""
        yield from _wrapped(espalier.PRESET_SENTENCES[name], f"  {name:9s} ")
        # JSON without spaces: lines break between fields only.
        texts = (f"{field}={json.dumps(value, separators=(',', ':'))}" for field, value in changed.items())
        yield from _wrapped("  ".join(texts), " " * 12)
    yield ""
    yield "Fields (--set FIELD=VALUE; --set pruning.confidence=0.1 sets a parameter), with the defaults of cart:"
    yield ""
    yield from _field_lines(espalier.TrainingConfig)
    for name, kind in espalier.PRUNERS.items():
        yield ""
        yield f"Pruning method {name} (espalier prune --method {name}; --set pruning.method={name})"
        yield from _wrapped((kind.__doc__ or "").splitlines()[0], "  ")
        yield "" if espalier.field_table(kind) else "  no parameters"
        yield from _field_lines(kind)


def _field_lines(kind: type) -> Iterator[str]:
    for info in espalier.field_table(kind):
        yield f"  {info.name} = {json.dumps(info.default)}"
        yield from _wrapped(info.meaning, " " * 6)
        yield from _wrapped(f"[{info.legal}]", " " * 6)


def _wrapped(text: str, start: str) -> list[str]:
    following = " " * len(start)
    return textwrap.wrap(
        text, WIDTH, initial_indent=start, subsequent_indent=following, break_long_words=False, break_on_hyphens=False
    )
