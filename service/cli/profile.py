"""The command ``profile``: what each attribute of a table says of the target, before any tree is grown."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from service.cli.aligned import cell_text, table_lines
from service.cli.command import Command
from service.cli.files import FORMATS, data_arguments, data_lines, read_data, refusals

ATTRIBUTE_COLUMNS: Final = {
    "attribute": "name",
    "kind": "kind",
    "missing": "n_missing",
    "distinct": "n_distinct",
    "entropy": "entropy",
    "cut at": "threshold",
}
"""Heading -> figure, for both tasks."""
TASK_COLUMNS: Final = {
    "classification": {
        "gain": "gain",
        "split info": "split_information",
        "gain ratio": "gain_ratio",
        "gini decrease": "gini_decrease",
        "chi-square": "chi_square",
        "df": "degrees_of_freedom",
        "p-value": "p_value",
    },
    "regression": {"variance decrease": "variance_decrease", "sd reduction": "sd_reduction"},
}
CLASS_COLUMNS: Final = {
    "class": "label",
    "weight": "weight",
    "share": "share",
    "self-information": "self_information",
}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help=f"the rows: {FORMATS}")
    data_arguments(parser)
    parser.add_argument(
        "--log-base", choices=["2", "e", "10"], default="2", help="entropies in bits, nats or bans (default: 2)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def profile(arguments: Namespace) -> int:
    """Print the profile of a file."""
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    dataset = read_data(arguments.data, arguments)
    with refusals(arguments.data):
        found = espalier.profile(dataset, log_base=arguments.log_base).to_dict()
    if arguments.json:
        print(json.dumps(found))
        return 0
    for line in (*data_lines(arguments.data, dataset), *_profile_lines(found)):
        print(line)
    return 0


COMMANDS: Mapping[str, Command] = {
    "profile": Command("say how telling each attribute of a table is", _arguments, profile),
}


def _profile_lines(found: Mapping[str, Any]) -> Iterator[str]:
    if found["task"] == "classification":
        yield f"entropy   {cell_text(found['entropy'])} {found['unit']}, gini {cell_text(found['gini'])}"
        yield ""
        yield from table_lines(CLASS_COLUMNS, found["classes"])
    else:
        yield f"mean      {cell_text(found['mean'])}, variance {cell_text(found['variance'])}"
    yield ""
    yield from table_lines({**ATTRIBUTE_COLUMNS, **TASK_COLUMNS[found["task"]]}, found["attributes"])
    yield ""
    yield f"entropies and gains in {found['unit']}; without an order a branch a category, else the best cut"
