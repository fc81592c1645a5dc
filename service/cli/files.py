"""What the commands on files share: reading what is there, writing all or nothing, and saying what was refused."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from service.cli import Refused

if TYPE_CHECKING:
    import espalier

SHOWN_NAMES = 12
FORMATS = "CSV, JSON, NDJSON, Parquet, Arrow or ARFF by the ending of its name, each also with .gz"


def assignments(given: list[str], *, besides: str = "") -> dict[str, Any]:
    """Read ``field=value`` texts; a value is JSON, else text; ``a.b=1`` reaches inside the object ``a``.

    Args:
        given: The texts.
        besides: A field that has a place of its own on the command line.

    Raises:
        Refused: A text without ``=``, or of that field.

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
            raise Refused(f"{text}: the {besides} is given before the fields, not among them")
        inside = fields
        for part in outer:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise Refused(f"{text}: {part} was set to a plain value before")
        inside[last] = json_or_text(value)
    return fields


@contextmanager
def refusals(file: Path | None) -> Iterator[None]:
    """Turn what the core refuses into lines for a person, each with the file it is about."""
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    prefix = f"{file}: " if file is not None else ""
    try:
        yield
    except espalier.InvalidInput as error:
        lines = []
        for fault in error.faults:
            where = fault.path.removeprefix("/").replace("/", ".").replace("~1", "/").replace("~0", "~")
            lines.append(f"{prefix}{where + ': ' if where else ''}{fault.message}")
        raise Refused("\n".join(lines)) from None
    except (espalier.EspalierError, OSError) as error:
        raise Refused(f"{prefix}{error}") from None


def set_argument(parser: ArgumentParser, meaning: str) -> None:
    """Declare ``--set``; `meaning` says what can be set and where it is listed."""
    parser.add_argument(
        "--set", metavar="FIELD=VALUE", action="append", default=[], help=f"{meaning}; the value is JSON, else text"
    )


def voters_argument(parser: ArgumentParser, when: str = "") -> None:
    """Declare ``--holdout`` as prunings take it; `when` goes before what it means."""
    parser.add_argument(
        "--holdout",
        metavar="FILE|JSON",
        help=f"{when}rows that vote: a file of its own, or some of those set aside at training, such as "
        '{"rows": [0, 5]} counted from 0 (default: all of those)',
    )


def data_arguments(parser: ArgumentParser) -> None:
    """Declare how the columns of a file are to be understood; `read_data` takes what was given."""
    parser.add_argument("--target", metavar="T", help="the column to learn (or the schema names it)")
    parser.add_argument(
        "--schema",
        metavar="S.json",
        type=Path,
        help="declares kinds, roles, categories (default: NAME.schema.json beside NAME.csv, where there is one)",
    )
    parser.add_argument("--task", choices=["classification", "regression"], help="overrides what the target looks like")
    parser.add_argument("--weight", metavar="COLUMN", help="the column of row weights")
    parser.add_argument("--ignore", metavar="COLUMN", action="append", default=[], help="a column not to look at")


def read_data(file: Path, arguments: Namespace) -> "espalier.Dataset":
    """Read a file, in whatever format, as `data_arguments` say.

    Raises:
        Refused: No such file, or what is wrong with it, every fault in a line.
    """
    name = file.name.removesuffix(".gz")
    beside = file.with_name(name.removesuffix(Path(name).suffix) + ".schema.json")
    declared = arguments.schema or (beside if beside.is_file() else None)
    return dataset_of(
        file,
        target=arguments.target,
        schema=read_schema(declared),
        task=arguments.task,
        weight=arguments.weight,
        ignore=arguments.ignore,
    )


def dataset_of(file: Path, **declared: Any) -> "espalier.Dataset":
    """Read a file in the format that its ending says; one that says nothing is taken for CSV.

    Raises:
        Refused: No such file, or what is wrong with it, every fault in a line.
    """
    import espalier  # noqa: PLC0415 - as above

    with refusals(file):
        return espalier.dataset_from_file(existing(file), form=_form(file), **declared)


def holdout_of(
    given: str | None, schema: "espalier.Schema", drawn: Mapping[str, Any]
) -> "espalier.Holdout | espalier.Dataset | None":
    """Read what ``--holdout`` names: a share, rows as JSON, or a file; None where it is not given.

    Args:
        given: The argument.
        schema: What a file is read like.
        drawn: How a share is drawn that does not say it.

    Raises:
        Refused: No such file, or what is wrong with it.
        espalier.ConfigError: A share or rows that are not legal, below ``/holdout``.
    """
    import espalier  # noqa: PLC0415 - as above

    if given is None:
        return None
    value = json_or_text(given)
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


def drawn_as(model: "espalier.Model") -> dict[str, Any]:
    """Say how a model's held-out share was drawn: a smaller share, drawn so, is a part of it."""
    remembered = model.training.holdout
    if remembered is None or remembered.fraction is None:
        return {}
    return {"seed": remembered.seed, "stratified": remembered.stratified}


def rows_of(schema: "espalier.Schema", file: Path) -> list[Any]:
    """Read rows to be answered, as `dataset_of` reads data sets.

    Raises:
        Refused: No such file, or what is wrong with it.
    """
    import espalier  # noqa: PLC0415 - as above

    with refusals(file):
        return espalier.rows_from_file(schema, existing(file), form=_form(file))


def existing(file: Path) -> Path:
    """Give `file` back if it is there.

    Raises:
        Refused: There is no such file.
    """
    if not file.is_file():
        raise Refused(f"{file}: there is no such file")
    return file


def read_schema(file: Path | None) -> dict[str, Any] | None:
    """Read a declaration of columns; None where no file is named.

    Raises:
        Refused: Not there, not JSON, or not an object.
    """
    if file is None:
        return None
    try:
        document = json.loads(existing(file).read_bytes())
    except ValueError as error:
        raise Refused(f"{file}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused(f'{file}: a schema must be an object: {{"target": …, "columns": […]}}')
    return document


def read_model(file: Path) -> "espalier.Model":
    """Read a model.

    Raises:
        Refused: Not there, or not a model document.
    """
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    with refusals(file):
        return espalier.from_json(existing(file).read_bytes())


def read_tree(file: Path) -> "espalier.Model":
    """Read a model that is a tree, as every pruning needs one: known before the rows are read.

    Raises:
        Refused: Not there, not a model document, or a list of rules.
    """
    model = read_model(file)
    with refusals(file):
        _ = model.tree
    return model


def check_folder(file: Path) -> None:
    """See that `file` can be made, before the work whose result it shall hold.

    Raises:
        Refused: Its folder is not there, or it is a folder itself.
    """
    if not file.parent.is_dir():
        raise Refused(f"{file}: there is no folder {file.parent}")
    if file.is_dir():
        raise Refused(f"{file}: is a folder; give the name of a file")


def write_whole(file: Path, content: bytes) -> None:
    """Write all or nothing: a reader never sees half a model."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise Refused(f"{file}: cannot be written: {error.strerror}") from None


def data_lines(file: Path, dataset: "espalier.Dataset") -> Iterator[str]:
    """Say how a data set was understood: rows, kinds, target, task, what to know of it."""
    schema = dataset.schema
    target = schema.target
    yield f"data      {file}: {dataset.n_rows} rows, {len(schema.attributes)} attributes"
    kinds = [f"{feature.name} ({_kind_text(feature)})" for feature in schema.attributes[:SHOWN_NAMES]]
    more = ["…"] if len(schema.attributes) > SHOWN_NAMES else []
    yield f"          {', '.join([*kinds, *more])}"
    if target is not None:
        yield f"target    {target.name} ({_kind_text(target)}): {schema.task}"
    for notice in dataset.notices:
        yield f"notice    {notice}"


def json_or_text(value: str) -> Any:
    """Read `value` as JSON if it is that, else take it as text."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def _form(file: Path) -> str:
    import espalier  # noqa: PLC0415 - as above

    try:
        return espalier.format_of(file)
    except espalier.DataError:
        return "csv"


def _kind_text(feature: "espalier.Feature") -> str:
    return f"{feature.kind}, {len(feature.categories)} categories" if feature.coded else str(feature.kind)


PHASE_NOTES: Final = (
    ("compiling kernels", "compiling kernels, once on this machine: this takes half a minute or so"),
    (
        "without compiled kernels",
        "no kernels are compiled on this machine yet: little data is done without (`espalier compile` makes them)",
    ),
)
"""A part of a phase's name, and what is printed once when it begins."""


def progress_reporter() -> "espalier.Progress":
    """Return a progress that prints, once, that kernels are being compiled or that the work is done without."""
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    printed: set[str] = set()

    def report(phase: str) -> None:
        for part, note in PHASE_NOTES:
            if part in phase and part not in printed:
                printed.add(part)
                print(f"espalier: {note}", file=sys.stderr, flush=True)

    return espalier.Progress(report)
