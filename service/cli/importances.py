"""The command ``importances``: how much each attribute matters, by a model's tests and by what it loses on rows."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from service.cli.aligned import table_lines
from service.cli.command import Command, Refused
from service.cli.files import FORMATS, dataset_of, read_model, refusals
from service.cli.telling import telling

if TYPE_CHECKING:
    import espalier

OF_LOSS: Final = ("measure", "repeats", "seed")
"""Arguments of the core's that say how columns are shuffled."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
    parser.add_argument(
        "data",
        metavar="DATA",
        type=Path,
        nargs="?",
        help=f"rows to shuffle columns of, best such as the model was not trained on: {FORMATS}",
    )
    parser.add_argument(
        "--measure",
        help="what may be lost: of classes accuracy, balanced_accuracy, macro_f1, log_loss, of numbers rmse, mae, r2 "
        "(default: the first)",
    )
    parser.add_argument("--repeats", metavar="N", type=int, help="how often each column is shuffled (default: 5)")
    parser.add_argument("--seed", metavar="N", type=int, help="for the shuffles (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def importances(arguments: Namespace) -> int:
    """Print the attributes of a model, those that matter most first."""
    model = read_model(arguments.model)
    given = {name: value for name in OF_LOSS if (value := getattr(arguments, name)) is not None}
    if arguments.data is None and given:
        raise Refused(f"--{next(iter(given))}: says how columns are shuffled: give rows to shuffle, as DATA")
    columns, records = _table(model, arguments, given)
    if arguments.json:
        print(json.dumps({"attributes": records}, ensure_ascii=False))
        return 0
    for line in table_lines(columns, records):
        print(line)
    return 0


COMMANDS: Mapping[str, Command] = {
    "importances": Command("say how much each attribute matters to a model", _arguments, importances),
}


def _table(
    model: "espalier.Model", arguments: Namespace, given: Mapping[str, Any]
) -> tuple[Mapping[str, str], list[dict[str, Any]]]:
    """Give the field of each heading, and a record an attribute, those that matter most first."""
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    names = [feature.name for feature in model.schema.attributes]
    figures: dict[str, list[float]] = {}
    # A list of rules has no tests that gain; what it loses can be told all the same.
    with refusals(arguments.model) if arguments.data is None else suppress(espalier.NotApplicable):
        by_tests = espalier.attribute_importances(model)
        figures["importance"] = [by_tests[name] for name in names]
    if arguments.data is not None:
        dataset = dataset_of(arguments.data, like=model.schema)
        with refusals(arguments.data):
            try:
                by_loss = espalier.permutation_importances(model, dataset, progress=telling(), **given)
            except espalier.ConfigError as error:
                lines = [f"--{fault.path.removeprefix('/')}: {fault.message}" for fault in error.faults]
                raise Refused("\n".join(lines)) from None
        figures["lost"] = [by_loss[name].mean for name in names]
        figures["deviation"] = [by_loss[name].deviation for name in names]
    fields = ("attribute", *figures)
    records = [dict(zip(fields, each, strict=True)) for each in zip(names, *figures.values(), strict=True)]
    leading = fields[1]
    return {field: field for field in fields}, sorted(records, key=lambda record: -record[leading])
