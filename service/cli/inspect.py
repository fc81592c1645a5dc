"""The commands that look at a model or a table: ``show``, ``rules``, ``profile``, ``importances``."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import espalier
from service.cli import Command, Refused, files, options
from service.cli.progress import shown_progress
from service.cli.reports import data_lines, table_lines

TREE_FORMATS = ("text", "mermaid", "dot", "svg", "json")
ATTRIBUTE_COLUMNS: Final = {
    "attribute": "name",
    "kind": "kind",
    "missing": "n_missing",
    "distinct": "n_distinct",
    "entropy": "entropy",
    "threshold": "threshold",
}
"""Maps column headings to names of figures; these columns are shown for both tasks."""
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
CLASS_COLUMNS: Final = {"class": "label", "weight": "weight", "share": "share", "self-information": "self_information"}


def _show_arguments(parser: ArgumentParser) -> None:
    options.model_argument(parser)
    parser.add_argument("--format", choices=TREE_FORMATS, default="text", help="default: text")
    parser.add_argument("--depth", metavar="N", type=int, help="at most N tests on a path; deeper levels are folded")
    parser.add_argument("--node", metavar="N", type=int, default=0, help="the root of the shown subtree (default: 0)")
    parser.add_argument("--row", metavar="JSON", help='highlight the path of a row, such as \'{"Outlook": "Sunny"}\'')
    parser.add_argument("--out", metavar="FILE", type=Path, help="default: standard output")


def show(arguments: Namespace) -> int:
    """Print a model, or a part of it."""
    files.check_out(arguments)
    model = files.read_model(arguments.model)
    files.write_or_print(arguments.out, _format_model(model, arguments), report=sys.stdout)
    return 0


def _rules_arguments(parser: ArgumentParser) -> None:
    options.model_argument(parser)
    parser.add_argument("--class", metavar="LABEL", dest="label", help="only the rules of this class")
    parser.add_argument("--format", choices=["text", "json", "logic"], default="text", help="default: text")
    meaning = "shorten and order the rules; validation: by held-out rows; pessimistic: by training rows, like C4.5rules"
    parser.add_argument("--prune", choices=["validation", "pessimistic"], help=meaning)
    options.set_argument(parser, "with --prune, a parameter such as confidence; see `espalier presets`")
    parser.add_argument("--data", metavar="TRAIN", type=Path, help="with --prune, the training rows of the model")
    options.validation_argument(parser, "with --prune, ")
    parser.add_argument("--out", metavar="RULES.json", type=Path, help="also write the rules to a file, as a model")


def rules(arguments: Namespace) -> int:
    """Print the rules of a model file; ``--prune`` prunes the rules first, ``--out`` also writes them as a model."""
    files.check_out(arguments)
    given = [f"--{name}" for name in ("set", "data", "holdout") if getattr(arguments, name) not in (None, [])]
    if arguments.out is not None and arguments.label is not None:
        raise Refused("--out: writes the rules of all classes; leave out --class")
    if given and arguments.prune is None:
        raise Refused(f"{', '.join(given)}: only with --prune")
    pruned = _pruned_rules(arguments) if arguments.prune else None
    model = pruned.model if pruned is not None else files.read_model(arguments.model)
    with files.about(arguments.model):
        rules = model if pruned is not None else espalier.extract_rules(model)
        text = _rules_text(rules, arguments.format, arguments.label, pruned)
    if arguments.out is not None:
        files.write_whole(arguments.out, espalier.to_json(rules))
    sys.stdout.write(text)
    # Notes go to standard error: programs read the rules from standard output.
    of_pruning = () if pruned is None else pruned.trace.get("notes", ())
    of_rules = [note for note in rules.notes if pruned is not None or note not in model.notes]
    for note in (*of_pruning, *of_rules):
        print(f"note      {note}", file=sys.stderr)
    return 0


def _profile_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help=f"the rows: {files.FORMATS}")
    options.data_arguments(parser)
    parser.add_argument(
        "--log-base", choices=["2", "e", "10"], default="2", help="entropies in bits, nats or bans (default: 2)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def profile(arguments: Namespace) -> int:
    """Print the profile of a file."""
    dataset = files.read_data(arguments.data, arguments)
    with files.about(arguments.data):
        profile = espalier.profile(dataset, log_base=arguments.log_base).to_dict()
    lines = (*data_lines(arguments.data, dataset), *_profile_lines(profile))
    print(json.dumps(profile) if arguments.json else "\n".join(lines))
    return 0


def _importances_arguments(parser: ArgumentParser) -> None:
    options.model_argument(parser)
    meaning = f"rows whose columns are shuffled, preferably not the training rows: {files.FORMATS}"
    parser.add_argument("data", metavar="DATA", type=Path, nargs="?", help=meaning)
    parser.add_argument(
        "--measure",
        help="show by how much this measure gets worse: accuracy, balanced_accuracy, macro_f1 or log_loss for classes; "
        "rmse, mae or r2 for numbers (default: accuracy or rmse)",
    )
    parser.add_argument("--repeats", metavar="N", type=int, help="number of shuffles per column (default: 5)")
    parser.add_argument("--seed", metavar="N", type=int, help="seed of the shuffles (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def importances(arguments: Namespace) -> int:
    """Print the attributes of a model, the most important first."""
    model = files.read_model(arguments.model)
    options = {key: value for key in ("measure", "repeats", "seed") if (value := getattr(arguments, key)) is not None}
    if arguments.data is None and options:
        raise Refused(f"--{next(iter(options))}: needs DATA, the rows whose columns are shuffled")
    records = _importances(model, arguments, options)
    if arguments.json:
        print(json.dumps({"attributes": records}, ensure_ascii=False))
    else:
        print("\n".join(_table({name: name for name in records[0]}, records)))
    return 0


COMMANDS: Mapping[str, Command] = {
    "show": Command("print a model as text, Mermaid, DOT, SVG or JSON", _show_arguments, show),
    "profile": Command("show how informative each attribute of a table is", _profile_arguments, profile),
    "rules": Command("print the rules of a model; --prune shortens and orders them", _rules_arguments, rules),
    "importances": Command("show how important each attribute is to a model", _importances_arguments, importances),
}


def _format_model(model: "espalier.Model", arguments: Namespace) -> str:
    part: dict[str, Any] = {"node": arguments.node, "depth": arguments.depth}
    if arguments.format == "json":
        if arguments.row is not None:
            raise Refused("--row: the JSON form has no path of a row; `espalier predict` prints one")
        whole = arguments.node == 0 and arguments.depth is None
        document = espalier.to_document(model) if whole else espalier.to_columns(model, **part)
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    forms: Mapping[str, Callable[..., str]] = {
        "text": espalier.to_text,
        "mermaid": espalier.to_mermaid,
        "dot": espalier.to_dot,
        "svg": espalier.to_svg,
    }
    row = None if arguments.row is None else options.json_or_text(arguments.row)
    if arguments.row is not None and not isinstance(row, dict):
        raise Refused("--row: must be a JSON object of attribute names and values")
    return forms[arguments.format](model, **part, path=row)


def _pruned_rules(arguments: Namespace) -> "espalier.Pruned":
    model = files.read_tree(arguments.model)
    if arguments.data is None:
        raise Refused("--prune counts the rows of each rule: give the training rows with --data")
    params = options.assignments(arguments.set, besides="method")
    if "estimate" in params:
        raise Refused(f"--set estimate=…: --prune {arguments.prune} sets it")
    with shown_progress() as progress:
        dataset = files.dataset_of(arguments.data, schema=model.schema)
        holdout = options.validation_rows(arguments.holdout, model)
        method = espalier.pruning_method("rules", **params, estimate=arguments.prune)
        return espalier.prune(model, method, dataset=dataset, holdout=holdout, progress=progress)


def _rules_text(model: "espalier.Model", form: str, label: str | None, pruned: "espalier.Pruned | None") -> str:
    if form == "logic":
        return espalier.to_logic(model, label)
    if form == "json":
        trace = {} if pruned is None else {"trace": dict(pruned.trace)}
        rules = (
            {**espalier.rules_to_dict(model), **trace} if label is None else espalier.class_dnf(model, label).to_dict()
        )
        return json.dumps(rules, ensure_ascii=False) + "\n"
    if label is None:
        return espalier.to_text(model)
    return "".join(f"{sentence}\n" for sentence in espalier.class_sentences(model, label))


def _profile_lines(profile: Mapping[str, Any]) -> Iterator[str]:
    if profile["task"] == "classification":
        yield f"entropy   {_cell_text(profile['entropy'])} {profile['unit']}, gini {_cell_text(profile['gini'])}"
        yield ""
        yield from _table(CLASS_COLUMNS, profile["classes"])
    else:
        yield f"mean      {_cell_text(profile['mean'])}, variance {_cell_text(profile['variance'])}"
    yield ""
    yield from _table({**ATTRIBUTE_COLUMNS, **TASK_COLUMNS[profile["task"]]}, profile["attributes"])
    yield ""
    yield f"entropies and gains in {profile['unit']}; splits have a branch per category, or the best threshold"


def _importances(model: "espalier.Model", arguments: Namespace, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    records: dict[str, dict[str, Any]] = {each.name: {"attribute": each.name} for each in model.schema.attributes}
    # A list of rules has no gains, but its loss on shuffled columns can be measured.
    with files.about(arguments.model) if arguments.data is None else suppress(espalier.NotApplicable):
        for name, gain in espalier.attribute_importances(model).items():
            records[name]["importance"] = gain
    if arguments.data is not None:
        with files.about(arguments.data), shown_progress() as progress:
            dataset = files.dataset_of(arguments.data, like=model.schema)
            try:
                by_loss = espalier.permutation_importances(model, dataset, progress=progress, **options)
            except espalier.ConfigError as error:
                lines = [f"--{fault.path.removeprefix('/')}: {fault.message}" for fault in error.faults]
                raise Refused("\n".join(lines)) from None
        for name, loss in by_loss.items():
            records[name] |= {"lost": loss.mean, "deviation": loss.deviation}
    return sorted(records.values(), key=lambda record: -record["importance" if "importance" in record else "lost"])


def _table(columns: Mapping[str, str], records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line of headings, then a line per record; `columns` maps each heading to a member of the records."""
    cells = [list(columns), *([_cell_text(record[name]) for name in columns.values()] for record in records)]
    return table_lines(cells, left={0})


def _cell_text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
