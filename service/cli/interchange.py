"""The commands that exchange models with other systems: ``export``, ``import``."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

import espalier
from service.cli import Command, Refused, files, options
from service.cli.reports import table_lines


def _export_arguments(parser: ArgumentParser) -> None:
    options.model_argument(parser)
    parser.add_argument(
        "--format", metavar="F", help="python, pmml, sql-postgres … (default: list all, and why some do not apply)"
    )
    parser.add_argument(
        "--missing", metavar="S", help="strategy for missing values, such as majority (default: as in training)"
    )
    parser.add_argument(
        "--table", metavar="T", default="rows", help="SQL: the table with the rows to predict (default: rows)"
    )
    parser.add_argument("--rule-text", action="store_true", help="SQL: add a column with the text of the rule")
    parser.add_argument("--out", metavar="FILE", type=Path, help="default: standard output")


def export(arguments: Namespace) -> int:
    """Write a model as a file of another system; without a format, list the formats."""
    files.check_out(arguments)
    if arguments.format is None and arguments.out is not None:
        raise Refused("--out needs --format")
    if (arguments.rule_text or arguments.table != "rows") and not (arguments.format or "").startswith("sql"):
        raise Refused("--table and --rule-text are for the formats of SQL")
    model = files.read_model(arguments.model)
    content: str | bytes
    with files.about(arguments.model):
        if arguments.format is None:
            reasons = espalier.applicable_exports(model, missing=arguments.missing)
            rows = [
                [form, f"not: {text}" if text else espalier.EXPORTS[form].meaning] for form, text in reasons.items()
            ]
            content = "\n".join([*table_lines(rows, left={0, 1}), ""])
        else:
            options = {"missing": arguments.missing, "table": arguments.table, "rule_text": arguments.rule_text}
            content = espalier.export_model(model, arguments.format, **options)
    files.write_or_print(arguments.out, content, report=sys.stderr)
    return 0


def _import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a PMML document (.pmml, .xml) or a skops file")
    parser.add_argument(
        "--missing",
        choices=["majority"],
        help="PMML: what happens if the document has no answer to a missing value; majority: the row goes down the "
        "heaviest branch, or in a rule list the condition does not hold (default: such a document is refused)",
    )
    parser.add_argument("--target", metavar="T", help="skops: name of the predicted column (default: target)")
    parser.add_argument("--out", metavar="MODEL.json", type=Path, help="default: standard output")


def import_model(arguments: Namespace) -> int:
    """Read a model of another system and write it as a model document."""
    files.check_out(arguments)
    # For each ending of a file name: the function that reads such a file, and the option that the function takes.
    readers: Mapping[str, tuple[Callable[..., espalier.Model], str]] = {
        ".pmml": (espalier.from_pmml, "missing"),
        ".xml": (espalier.from_pmml, "missing"),
        ".skops": (espalier.from_skops, "target"),
    }
    values = {"missing": arguments.missing, "target": arguments.target}
    given = {name: value for name, value in values.items() if value is not None}
    reader = readers.get(arguments.file.suffix.lower())
    if reader is None:
        raise Refused(f"{arguments.file}: the name must end in {', '.join(readers)}; a pickle is never read")
    read, option = reader
    for name in given.keys() - {option}:
        raise Refused(f"{arguments.file}: --{name} does not apply to such a file; --{option} does")
    with files.about(arguments.file):
        model = read(files.existing(arguments.file).read_bytes(), **given)
    for note in model.notes:
        print(f"note      {note}", file=sys.stderr)
    files.write_or_print(arguments.out, espalier.to_json(model), report=sys.stderr)
    return 0


COMMANDS: Mapping[str, Command] = {
    "export": Command(
        "write a model as a file for another system, which then predicts the same", _export_arguments, export
    ),
    "import": Command(
        "read a model of another system: PMML, or scikit-learn by skops", _import_arguments, import_model
    ),
}
