"""Arguments, reading and writing for the commands that work on files."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import espalier
from service.cli import Refused, lines_of

SHOWN_NAMES: Final = 12
SHOWN_NOTICES: Final = 5
FORMATS: Final = "CSV, JSON, NDJSON, Parquet, Arrow or ARFF, by the ending of the name; each also as .gz"


# --- arguments


def set_argument(parser: ArgumentParser, meaning: str) -> None:
    """Declare ``--set``; `meaning` says what can be set and where it is listed."""
    parser.add_argument(
        "--set", metavar="FIELD=VALUE", action="append", default=[], help=f"{meaning}; the value is JSON or text"
    )


def model_argument(parser: ArgumentParser) -> None:
    """Declare the argument for a model file."""
    help_text = "a model, as train, prune and import write it"
    parser.add_argument("model", metavar="MODEL.json", type=Path, help=help_text)


def seed_argument(parser: ArgumentParser) -> None:
    """Declare ``--seed``."""
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of all random draws (default: 0)")


def validation_argument(parser: ArgumentParser, when: str = "") -> None:
    """Declare ``--holdout`` of a pruning; its help begins with `when`."""
    parser.add_argument(
        "--holdout",
        metavar="FILE|JSON",
        help=f"{when}rows to prune by: a file with other rows, or some of those set aside at training, such as "
        '{"rows": [0, 5]} counted from 0 (default: all of those)',
    )


def data_arguments(parser: ArgumentParser) -> None:
    """Declare how the columns of a file are read; `read_data` uses the given values."""
    parser.add_argument("--target", metavar="T", help="the column to predict (or the schema names it)")
    parser.add_argument(
        "--schema",
        metavar="S.json",
        type=Path,
        help="file that declares kinds, roles, categories (default: NAME.schema.json beside NAME.csv, if there is one)",
    )
    parser.add_argument("--task", choices=["classification", "regression"], help="default: by the kind of the target")
    parser.add_argument("--weight", metavar="COLUMN", help="the column with the weights of the rows")
    parser.add_argument("--ignore", metavar="COLUMN", action="append", default=[], help="a column to ignore")


def assignments(given: list[str], *, besides: str = "") -> dict[str, Any]:
    """Read ``field=value`` texts; a value is JSON or text; ``a.b=1`` sets a member of the object ``a``.

    `besides` is a field that another argument of the command line sets.

    >>> assignments(["max_depth=4", "criterion=gini", "pruning.confidence=0.1"])
    {'max_depth': 4, 'criterion': 'gini', 'pruning': {'confidence': 0.1}}
    """
    fields: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Refused(f"{text}: must be FIELD=VALUE, such as max_depth=4")
        *outer, last = name.split(".")
        if besides in (name, *outer[:1]):
            raise Refused(f"{text}: the {besides} is chosen by another argument; see --help")
        inside = fields
        for part in outer:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise Refused(f"{text}: {part} is set to a value already; set either it or its fields")
        inside[last] = _json_or_text(value)
    return fields


def holdout_of(
    given: str | None, schema: "espalier.Schema", drawn: Mapping[str, Any]
) -> "espalier.Holdout | espalier.Dataset | None":
    """Read the value of ``--holdout``: a share, rows as JSON, or a file with this schema; None if it was not given.

    `drawn` has the defaults of a share, such as its seed.
    """
    if given is None:
        return None
    value = _json_or_text(given)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = {"fraction": value}
    file = value.get("dataset") if isinstance(value, dict) and len(value) == 1 else value
    if isinstance(file, str) and file:
        return dataset_of(Path(file), like=schema)
    if isinstance(value, dict) and "fraction" in value:
        value = {**drawn, **value}
    try:
        return espalier.holdout_from_dict(value)
    except espalier.ConfigError as error:
        faults = [espalier.Fault(f"/holdout{fault.path}", fault.code, fault.message) for fault in error.faults]
        raise espalier.ConfigError(faults) from None


def validation_rows(given: str | None, model: "espalier.Model") -> "espalier.Holdout | espalier.Dataset | None":
    """Read the value of ``--holdout`` of a pruning.

    A share is drawn with the seed of the training, so that its rows are among those that were set aside.
    """
    remembered = model.training.holdout
    is_share = remembered is not None and remembered.fraction is not None
    drawn = {"seed": remembered.seed, "stratified": remembered.stratified} if remembered and is_share else {}
    return holdout_of(given, model.schema, drawn)


# --- reading


@contextmanager
def about(file: Path) -> Iterator[None]:
    """Raise errors of the core or the system in the block as `Refused`, with the file's name in every line."""
    try:
        yield
    except (espalier.EspalierError, OSError) as error:
        raise Refused("\n".join(f"{file}: {line}" for line in lines_of(error))) from None


def read_data(file: Path, arguments: Namespace) -> "espalier.Dataset":
    """Read a file of any format with the options of `data_arguments`; raise `Refused` if it has no target."""
    dataset = dataset_of(file, **declaration(file, arguments))
    if dataset.schema.target is None:
        columns = ", ".join(feature.name for feature in dataset.schema.features[:SHOWN_NAMES])
        raise Refused(f"{file}: which column is to be predicted? Give --target, one of: {columns}")
    return dataset


def declaration(file: Path, arguments: Namespace) -> dict[str, Any]:
    """Return the keyword arguments that declare the columns of a file, from the options of `data_arguments`."""
    name = file.name.removesuffix(".gz")
    beside = file.with_name(name.removesuffix(Path(name).suffix) + ".schema.json") if name else file
    schema = _read_schema(arguments.schema or (beside if beside.is_file() else None))
    return {"schema": schema} | {name: getattr(arguments, name) for name in ("target", "task", "weight", "ignore")}


def dataset_of(file: Path, **declared: Any) -> "espalier.Dataset":
    """Read a file in the format of its ending; without a known ending, as CSV; print its notices."""
    with about(file):
        dataset = espalier.dataset_from_file(existing(file), form=_form(file), **declared)
    print_notices(dataset)
    return dataset


def print_notices(dataset: "espalier.Dataset") -> None:
    """Print the notices of a table to standard error, at most `SHOWN_NOTICES` of each kind."""
    by_code: dict[str, list[str]] = {}
    for notice in dataset.notices:
        by_code.setdefault(notice.code, []).append(notice.message)
    for messages in by_code.values():
        hidden = len(messages) - SHOWN_NOTICES
        for message in (*messages[:SHOWN_NOTICES], *([f"the same of {hidden} more columns"] if hidden > 0 else [])):
            print(f"notice    {message}", file=sys.stderr)


def rows_of(schema: "espalier.Schema", file: Path) -> list[Any]:
    """Read the rows to predict from a file of any format."""
    with about(file):
        return espalier.rows_from_file(schema, existing(file), form=_form(file))


def read_model(file: Path) -> "espalier.Model":
    """Read a model file."""
    with about(file):
        return espalier.from_json(existing(file).read_bytes())


def read_tree(file: Path) -> "espalier.Model":
    """Read a model file; raise `Refused` if it is a list of rules, not a tree."""
    model = read_model(file)
    with about(file):
        _ = model.tree
    return model


def existing(file: Path) -> Path:
    """Return the path; raise `Refused` if there is no such file."""
    if not file.is_file():
        raise Refused(f"{file}: there is no such file")
    return file


def _form(file: Path) -> str:
    try:
        return espalier.format_of(file)
    except espalier.DataError:
        return "csv"


def _read_schema(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        document = json.loads(existing(file).read_bytes())
    except ValueError as error:
        raise Refused(f"{file}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused(f'{file}: a schema must be an object: {{"target": …, "columns": […]}}')
    return document


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


# --- writing


def check_folder(file: Path | None) -> None:
    """Raise `Refused` if the folder of `file` does not exist, or if `file` is a folder."""
    if file is None:
        return
    if not file.parent.is_dir():
        raise Refused(f"{file}: there is no folder {file.parent}")
    if file.is_dir():
        raise Refused(f"{file}: is a folder; give the name of a file")


def write_whole(file: Path, content: bytes) -> None:
    """Write a file all or nothing: a reader never sees half a model."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise Refused(f"{file}: cannot be written: {error.strerror}") from None


def write_or_print(file: Path | None, content: str | bytes) -> None:
    """Write text or bytes to a file; None: to standard output."""
    if file is not None:
        write_whole(file, content.encode() if isinstance(content, str) else content)
    elif isinstance(content, str):
        sys.stdout.write(content)
    else:
        sys.stdout.buffer.write(content)
