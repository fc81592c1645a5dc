"""Options that several commands share: their declarations, and how their values are read."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import espalier
from service.cli import Refused, files


def set_argument(parser: ArgumentParser, meaning: str) -> None:
    """Declare ``--set``; `meaning` says what can be set and where it is listed."""
    parser.add_argument(
        "--set", metavar="FIELD=VALUE", action="append", default=[], help=f"{meaning}; the value is JSON or text"
    )


def model_argument(parser: ArgumentParser) -> None:
    """Declare the argument for a model file."""
    parser.add_argument("model", metavar="MODEL.json", type=Path, help="a model, as train, prune and import write it")


def holdout_arguments(parser: ArgumentParser, meaning: str, *, seed: int | None = 0) -> None:
    """Declare ``--holdout`` and ``--seed``; with `seed` None, the caller can see that ``--seed`` was not given."""
    forms = (
        'a share, drawn with --seed; a share with options: {"fraction": 0.3, "seed": 1, "stratified": true}; row '
        'numbers from 0: {"rows": [0, 5]}; or a file with other rows'
    )
    parser.add_argument("--holdout", metavar="0.3|JSON|FILE", type=holdout_value, help=f"{meaning}: {forms}")
    text = "seed of the held-out share; for evaluate, also of the folds and the label noise (default: 0)"
    parser.add_argument("--seed", metavar="N", type=int, default=seed, help=text)


def validation_argument(parser: ArgumentParser, when: str = "") -> None:
    """Declare ``--holdout`` of a pruning; its help begins with `when`."""
    parser.add_argument(
        "--holdout",
        metavar="FILE|JSON",
        type=holdout_value,
        help=f"{when}rows to prune by: a file with other rows, or rows of TRAIN that were set aside at training, such "
        'as {"rows": [0, 5]}, numbered from 0 (default: all that were set aside)',
    )


def data_arguments(parser: ArgumentParser) -> None:
    """Declare the options that say how to read the columns of a file; `files.read_data` uses their values."""
    parser.add_argument("--target", metavar="T", help="the column to predict (or the schema names it)")
    parser.add_argument(
        "--schema",
        metavar="S.json",
        type=Path,
        help="file that declares kinds, roles, categories (default: NAME.schema.json beside NAME.csv, if there is one)",
    )
    parser.add_argument("--task", choices=["classification", "regression"], help="default: by the kind of the target")
    parser.add_argument("--weight", metavar="COLUMN", help="the column with the weights of the rows")
    parser.add_argument("--ignore", metavar="COLUMN", action="append", default=[], help="ignored column; repeatable")


def assignments(given: list[str], *, besides: str = "") -> dict[str, Any]:
    """Read texts ``field=value``, where the value is JSON or else text; ``a.b=1`` sets the member ``b`` of ``a``.

    Raises `Refused` if a text has another form, sets a field twice, or sets `besides`, a field with its own argument.

    >>> assignments(["max_depth=4", "criterion=gini", "pruning.confidence=0.1"])
    {'max_depth': 4, 'criterion': 'gini', 'pruning': {'confidence': 0.1}}
    """
    fields: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not all(name.split(".")):
            raise Refused(f"{text}: must be FIELD=VALUE, such as max_depth=4")
        *outer, last = name.split(".")
        if besides in (name, *outer[:1]):
            raise Refused(f"{text}: the {besides} is chosen by another argument; see --help")
        inside = fields
        for part in outer:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise Refused(f"{text}: {part} is set to a value already; set either it or its fields")
        if last in inside:
            raise Refused(f"{text}: {last} or fields of it are set already; set either it or its fields, once")
        inside[last] = json_or_text(value)
    return fields


def holdout_value(text: str) -> Any:
    """Read the value of ``--holdout`` as JSON, where a number is a share; a text that is not JSON is a path."""
    value = json_or_text(text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"fraction": value}
    file = value.get("dataset") if isinstance(value, dict) and len(value) == 1 else value
    return Path(file) if isinstance(file, str) and file else value or {}


def holdout_of(
    given: Any, schema: "espalier.Schema", drawn: Mapping[str, Any]
) -> "espalier.Holdout | espalier.Dataset | None":
    """Return the holdout of a `holdout_value`; None if there is none.

    A file is read with the column kinds of `schema`. For a share, `drawn` gives the default seed and stratification.
    """
    if given is None:
        return None
    if isinstance(given, Path):
        return files.dataset_of(given, like=schema)
    if isinstance(given, dict) and "fraction" in given:
        given = {**drawn, **given}
    try:
        return espalier.holdout_from_dict(given)
    except espalier.ConfigError as error:
        faults = [espalier.Fault(f"/holdout{fault.path}", fault.code, fault.message) for fault in error.faults]
        raise espalier.ConfigError(faults) from None


def validation_rows(given: Any, model: "espalier.Model") -> "espalier.Holdout | espalier.Dataset | None":
    """Return the holdout of a pruning, as `holdout_of` does.

    If the training held out a share, its seed and its stratification are the defaults. With these defaults, a share
    of at most the same size selects only rows that the training held out.
    """
    rows = model.training.holdout
    drawn = {"seed": rows.seed, "stratified": rows.stratified} if rows and rows.fraction is not None else {}
    return holdout_of(given, model.schema, drawn)


def json_or_text(value: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON (NaN is not) or is nested too deeply."""
    try:
        return json.loads(value, parse_constant=int)  # called with NaN and Infinity, for which int raises ValueError
    except (ValueError, RecursionError):
        return value
