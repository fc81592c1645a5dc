"""The command ``rules``: the rules of a model, as they are or shortened and put in order."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.command import Command, Refused
from service.cli.files import (
    assignments,
    check_folder,
    dataset_of,
    drawn_as,
    holdout_of,
    read_model,
    read_tree,
    refusals,
    set_argument,
    voters_argument,
    write_whole,
)

if TYPE_CHECKING:
    import espalier


def _arguments(parser: ArgumentParser) -> None:
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
    _check_options(arguments)
    pruned = _pruned(arguments) if arguments.prune else None
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


COMMANDS: Mapping[str, Command] = {
    "rules": Command("print the rules of a model; shorten them and put them in order", _arguments, rules),
}


def _check_options(arguments: Namespace) -> None:
    if arguments.prune is None:
        given = [f"--{name}" for name in ("set", "data", "holdout") if getattr(arguments, name)]
        if given:
            raise Refused(f"{', '.join(given)}: only with --prune, which says by what the rules are shortened")


def _pruned(arguments: Namespace) -> "espalier.Pruned":
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
