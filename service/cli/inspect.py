"""The commands that look at a model or a table: show, rules, profile, importances."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from service.cli import Command, Refused
from service.cli.files import (
    FORMATS,
    assignments,
    check_folder,
    data_arguments,
    data_lines,
    dataset_of,
    drawn_as,
    holdout_of,
    progress_reporter,
    read_data,
    read_model,
    read_tree,
    refusals,
    set_argument,
    voters_argument,
    write_whole,
)

if TYPE_CHECKING:
    import espalier

TREE_FORMATS = ("text", "mermaid", "dot", "svg", "json")
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
OF_LOSS: Final = ("measure", "repeats", "seed")
"""Arguments of the core's that say how columns are shuffled."""


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
    parser.add_argument("--format", choices=TREE_FORMATS, default="text", help="default: text")
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
        text = _format_model(model, arguments)
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        write_whole(arguments.out, text.encode())
        print(f"written   {arguments.out}")
    return 0


def _rules_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
    parser.add_argument("--class", metavar="LABEL", dest="label", help="only what a row of this class must be like")
    parser.add_argument("--format", choices=["text", "json", "logic"], default="text", help="default: text")
    parser.add_argument("--prune", choices=["validation", "pessimistic"], help="shorten the rules, the best first")
    set_argument(parser, "with --prune, a parameter such as confidence; see `espalier presets`")
    parser.add_argument("--data", metavar="TRAIN", type=Path, help="with --prune, the rows it was trained on")
    voters_argument(parser, "with --prune, ")
    parser.add_argument("--out", metavar="RULES.json", type=Path, help="write the list of rules as a model")


def rules(arguments: Namespace) -> int:
    """Print the rules of a model file, and write them as a model where that is asked for."""
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    if arguments.out is not None:
        check_folder(arguments.out)
    _check_pruning_options(arguments)
    pruned = _pruned_rules(arguments) if arguments.prune else None
    model = pruned.model if pruned is not None else read_model(arguments.model)
    with refusals(arguments.model):
        found = model if pruned is not None else espalier.extract_rules(model)
        if arguments.label is not None:
            text = _class_text(found, arguments)
        elif arguments.format == "json":
            text = _json({**espalier.rules_to_dict(found), **({"trace": dict(pruned.trace)} if pruned else {})})
        else:
            text = espalier.to_logic(found) if arguments.format == "logic" else espalier.to_text(found)
    if arguments.out is not None:
        write_whole(arguments.out, espalier.to_json(found))
    sys.stdout.write(text)
    # What stands on standard output are the rules alone, to be read by a program, too.
    for note in pruned.trace.get("notes", ()) if pruned is not None else ():
        print(f"note      {note}", file=sys.stderr)
    for note in found.notes:
        if pruned is not None or note not in model.notes:
            print(f"note      {note}", file=sys.stderr)
    return 0


def _profile_arguments(parser: ArgumentParser) -> None:
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


def _importances_arguments(parser: ArgumentParser) -> None:
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
    columns, records = _importances_table(model, arguments, given)
    if arguments.json:
        print(json.dumps({"attributes": records}, ensure_ascii=False))
        return 0
    for line in _table_lines(columns, records):
        print(line)
    return 0


COMMANDS: Mapping[str, Command] = {
    "show": Command("print a model as text, Mermaid, DOT, SVG or JSON", _show_arguments, show),
    "profile": Command("say how telling each attribute of a table is", _profile_arguments, profile),
    "rules": Command("print the rules of a model; shorten them and put them in order", _rules_arguments, rules),
    "importances": Command("say how much each attribute matters to a model", _importances_arguments, importances),
}


def _format_model(model: "espalier.Model", arguments: Namespace) -> str:
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
    return forms[arguments.format](model, **part, path=_parse_row(arguments.row))


def _parse_row(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    try:
        row = json.loads(given)
    except (ValueError, RecursionError):
        raise Refused("--row: must be JSON, an object of attribute names and values") from None
    if not isinstance(row, dict):
        raise Refused("--row: must be an object of attribute names and values")
    return row


def _check_pruning_options(arguments: Namespace) -> None:
    if arguments.prune is None:
        given = [f"--{name}" for name in ("set", "data", "holdout") if getattr(arguments, name)]
        if given:
            raise Refused(f"{', '.join(given)}: only with --prune, which says by what the rules are shortened")


def _pruned_rules(arguments: Namespace) -> "espalier.Pruned":
    import espalier  # noqa: PLC0415 - as above

    model = read_tree(arguments.model)
    if arguments.data is None:
        raise Refused("--prune counts the rows that each rule answers: give the training rows with --data")
    dataset = dataset_of(arguments.data, schema=model.schema)
    with refusals(None):
        holdout = holdout_of(arguments.holdout, model.schema, drawn_as(model))
        params = assignments(arguments.set, besides="method")
        if "estimate" in params:
            raise Refused(f"--set estimate=…: --prune {arguments.prune} says by what the rules are shortened")
        method = espalier.pruning_method("rules", **params, estimate=arguments.prune)
        return espalier.prune(model, method, dataset=dataset, holdout=holdout)


def _class_text(model: "espalier.Model", arguments: Namespace) -> str:
    """Show one class: its rules as they stand, or its disjunction of conjunctions."""
    import espalier  # noqa: PLC0415 - as above

    if arguments.format == "json":
        return _json(espalier.class_dnf(model, arguments.label).to_dict())
    if arguments.format == "logic":
        return espalier.to_logic(model, arguments.label)
    sentences = espalier.class_sentences(model, arguments.label)
    return "".join(f"{sentence}\n" for sentence in sentences)


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False) + "\n"


def _profile_lines(found: Mapping[str, Any]) -> Iterator[str]:
    if found["task"] == "classification":
        yield f"entropy   {_cell_text(found['entropy'])} {found['unit']}, gini {_cell_text(found['gini'])}"
        yield ""
        yield from _table_lines(CLASS_COLUMNS, found["classes"])
    else:
        yield f"mean      {_cell_text(found['mean'])}, variance {_cell_text(found['variance'])}"
    yield ""
    yield from _table_lines({**ATTRIBUTE_COLUMNS, **TASK_COLUMNS[found["task"]]}, found["attributes"])
    yield ""
    yield f"entropies and gains in {found['unit']}; without an order a branch a category, else the best cut"


def _importances_table(
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
                by_loss = espalier.permutation_importances(model, dataset, progress=progress_reporter(), **given)
            except espalier.ConfigError as error:
                lines = [f"--{fault.path.removeprefix('/')}: {fault.message}" for fault in error.faults]
                raise Refused("\n".join(lines)) from None
        figures["lost"] = [by_loss[name].mean for name in names]
        figures["deviation"] = [by_loss[name].deviation for name in names]
    fields = ("attribute", *figures)
    records = [dict(zip(fields, each, strict=True)) for each in zip(names, *figures.values(), strict=True)]
    leading = fields[1]
    return {field: field for field in fields}, sorted(records, key=lambda record: -record[leading])


def _table_lines(columns: Mapping[str, str], records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Give a line with the headings and one a record; `columns` has the field of each heading.

    >>> list(_table_lines({"who": "name", "share": "part"}, [{"name": "a", "part": 0.25}]))
    ['who  share', 'a     0.25']
    """
    cells = [list(columns), *([_cell_text(record[name]) for name in columns.values()] for record in records)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    for first, *others in cells:
        figures = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *figures])


def _cell_text(value: Any) -> str:
    """Show a figure with six digits, nothing as ``-``."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
