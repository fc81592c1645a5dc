"""The command ``prune``, and the trace of a pruning as text."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import espalier
from service.cli import Command, files, options
from service.cli.presets import help_with_tables
from service.cli.progress import shown_progress
from service.cli.reports import out_arguments, table_lines, write_model

INDENT: Final = " " * 10

Cell = Callable[[Mapping[str, Any]], str]


def _arguments(parser: ArgumentParser) -> None:
    options.model_argument(parser)
    parser.add_argument("--method", metavar="M", required=True, help="see `espalier presets`")
    options.set_argument(parser, "a parameter of the method; see `espalier presets`")
    parser.add_argument("--data", metavar="TRAIN", type=Path, help="the rows that the model was trained on")
    options.validation_argument(parser)
    out_arguments(parser)
    help_with_tables(parser)


def prune(arguments: Namespace) -> int:
    """Prune the model of a file, and write the pruned model to the file of ``--out``."""
    files.check_out(arguments)
    with shown_progress() as progress:
        model = files.read_tree(arguments.model)
        dataset = None if arguments.data is None else files.dataset_of(arguments.data, schema=model.schema)
        holdout = options.validation_rows(arguments.holdout, model)
        method = espalier.pruning_method(arguments.method, **options.assignments(arguments.set, besides="method"))
        begun = time.perf_counter()
        pruned = espalier.prune(model, method, dataset=dataset, holdout=holdout, progress=progress)
        seconds = time.perf_counter() - begun
    return write_model(arguments, pruned.model, seconds, _trace_lines(pruned.trace), trace=dict(pruned.trace))


COMMANDS: Mapping[str, Command] = {"prune": Command("prune a model file", _arguments, prune)}


def _trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    before, after = trace["before"], trace["after"]
    size = f"{after['rules']} rules" if "rules" in after else str(after["leaves"])
    yield f"pruning   {trace['method']}: {before['leaves']} leaves before, {size} after"
    on = f" on {trace['held_out_rows']} held-out rows" if trace.get("held_out_rows") is not None else ""
    yield f"{INDENT}{trace['estimate']}{on}: {before['estimate']:g} before, {after['estimate']:g} after"
    for note in trace.get("notes", ()):
        yield f"{INDENT}{note}"
    if "rules" in after:
        yield from _rule_lines(trace)
        return
    if "table" in trace:
        yield from _path_lines(trace)
    if trace["steps"]:
        yield from _step_lines(trace["steps"])


def _step_lines(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    letters = {rule: chr(ord("a") + place) for place, rule in enumerate(dict.fromkeys(step["rule"] for step in steps))}
    yield "steps     in order; node n is line n of `espalier show` of the tree before pruning, the root is 0"
    columns: dict[str, Cell] = {
        "node": lambda step: str(step["node"]),
        "reached by": lambda step: step["reached_by"],
        "tests": lambda step: step["attribute"],
        "weight": lambda step: f"{step['weight']:.6g}",
        "before": lambda step: f"{step['before']:.6g}",
        "after": lambda step: f"{step['after']:.6g}",
        "removed": lambda step: str(step["nodes_removed"]),
        "becomes": lambda step: "a leaf" if step.get("raised") is None else f"its branch {step['raised']}",
        "rule": lambda step: letters[step["rule"]],
    }
    if any("alpha" in step for step in steps):
        columns["alpha"] = lambda step: f"{step['alpha']:.6g}"
    yield from _table(columns, steps, left={"reached by", "tests", "becomes", "rule"})
    yield f"{INDENT}before, after: the estimate of the subtree, and of what replaces it"
    for rule, letter in letters.items():
        yield f"{INDENT}{letter}: {rule}"


def _path_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    yield "path      each line: the best subtree from this alpha (cost of a leaf) upwards; < marks the selected one"
    columns: dict[str, Cell] = {
        "alpha": lambda line: f"{line['alpha']:.6g}",
        "leaves": lambda line: str(line["leaves"]),
        "risk": lambda line: f"{line['risk']:.6g}",
    }
    if "error" in trace["table"][0]:
        columns["error"] = lambda line: f"{line['error']:.6g}"
        columns["± standard error"] = lambda line: f"{line['standard_error']:.3g}"
    columns[" "] = lambda line: "<" if line["selected"] else ""
    yield from _table(columns, trace["table"], left={" "})


def _rule_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    if trace["steps"]:
        yield "steps     leaf by leaf, one dropped condition per line; before, after: the estimate of the rule alone"
        columns: dict[str, Cell] = {
            "leaf": lambda step: str(step["node"]),
            "of rule": lambda step: "none" if step["to_rule"] is None else str(step["to_rule"]),
            "without": lambda step: step["dropped"],
            "before": lambda step: _estimate(step["before"]),
            "after": lambda step: _estimate(step["after"]),
            "holds for": lambda step: f"{step['covered']:.6g}",
        }
        yield from _table(columns, trace["steps"], left={"without"})
    for rule in trace["rules"]:
        yield f"rule {rule['number']:<4d} {rule['text']}"


def _estimate(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _table(columns: Mapping[str, Cell], lines: Sequence[Mapping[str, Any]], *, left: set[str]) -> Iterator[str]:
    rows = [list(columns), *([cell(line) for cell in columns.values()] for line in lines)]
    return table_lines(rows, left={place for place, name in enumerate(columns) if name in left}, indent=INDENT)
