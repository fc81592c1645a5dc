"""The commands that make and use model files: ``train``, ``prune``, ``predict``."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import espalier
from service.cli import Command, Refused, files
from service.cli.presets import help_with_tables
from service.cli.progress import shown_progress

DEFAULT_MEMORY: Final = 10**9
"""Bytes; a number that is the same at the next start, which goes on with a work folder."""
INDENT: Final = " " * 10

Cell = Callable[[Mapping[str, Any]], str]


def _train_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help=f"the training rows: {files.FORMATS}")
    files.data_arguments(parser)
    parser.add_argument("--preset", metavar="P", default="cart", help="see `espalier presets` (default: cart)")
    files.set_argument(parser, "a field of the preset; see `espalier presets`")
    parser.add_argument(
        "--holdout",
        metavar="0.3|JSON|FILE",
        help="rows to set aside before training, for stopping, pruning or testing; the model remembers them. Give "
        'a share drawn by --seed, {"rows": [0, 5]} counted from 0, {"fraction": 0.3, "seed": 1, "stratified": true}, '
        "or a file with other rows",
    )
    files.seed_argument(parser)
    parser.add_argument(
        "--out-of-core",
        action="store_true",
        help="leave the table on disk and read one column after the other; DATA may be a folder of files, too",
    )
    parser.add_argument(
        "--memory",
        metavar="2GB",
        type=files.memory_size,
        help="memory for the table, --out-of-core only (default: 1GB)",
    )
    parser.add_argument(
        "--work",
        metavar="FOLDER",
        type=Path,
        help="folder for temporary files, --out-of-core only; repeat a command that was killed to continue from there",
    )
    parser.add_argument(
        "--cluster",
        metavar="tcp://HOST:PORT",
        help="a Dask scheduler whose workers search the columns; needs --work, at the same path for all workers",
    )
    _out_arguments(parser)
    help_with_tables(parser)


def _prune_arguments(parser: ArgumentParser) -> None:
    files.model_argument(parser)
    parser.add_argument("--method", metavar="M", required=True, help="see `espalier presets`")
    files.set_argument(parser, "a parameter of the method; see `espalier presets`")
    parser.add_argument("--data", metavar="TRAIN", type=Path, help="the rows that the model was trained on")
    files.validation_argument(parser)
    _out_arguments(parser)
    help_with_tables(parser)


def _predict_arguments(parser: ArgumentParser) -> None:
    files.model_argument(parser)
    parser.add_argument("rows", metavar="ROWS", type=Path, help=f"the rows: {files.FORMATS}")
    parser.add_argument("--explain", choices=["none", "path", "full"], default="path", help="default: path")
    parser.add_argument(
        "--missing", metavar="S", help="strategy for missing values, such as last_prediction (default: as in training)"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="default: standard output")


def _out_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="MODEL.json", type=Path, required=True, help="the file to write the model to")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def train(arguments: Namespace) -> int:
    """Train a model on a file and write it."""
    files.check_folder(arguments.out)
    if not arguments.out_of_core and (arguments.memory, arguments.work, arguments.cluster) != (None, None, None):
        raise Refused("--memory, --work and --cluster need --out-of-core")
    with shown_progress() as progress:
        read = _table_on_disk if arguments.out_of_core else _table_in_memory
        table, options, lines = read(arguments)
        fields = {"seed": arguments.seed, **files.assignments(arguments.set, besides="preset")}
        config = espalier.training_config(arguments.preset, **fields)
        begun = time.perf_counter()
        model = espalier.train(table, config, progress=progress, **options)
        seconds = time.perf_counter() - begun
    return _finish(arguments, model, seconds, lines)


def _table_in_memory(arguments: Namespace) -> tuple[Any, dict[str, Any], Iterable[str]]:
    if arguments.data.is_dir():
        raise Refused(f"{arguments.data}: is a folder, whose files are only read with --out-of-core")
    dataset = files.read_data(arguments.data, arguments)
    holdout = files.holdout_of(arguments.holdout, dataset.schema, {"seed": arguments.seed})
    return dataset, {"holdout": holdout}, files.data_lines(arguments.data, dataset)


def _table_on_disk(arguments: Namespace) -> tuple[Any, dict[str, Any], Iterable[str]]:
    if arguments.holdout is not None:
        raise Refused("--holdout cannot be used with --out-of-core: rows are drawn from a table in memory")
    if arguments.cluster is not None and arguments.work is None:
        raise Refused("--cluster needs --work, a folder that its workers share")
    declared = files.declaration(arguments.data, arguments)
    if declared["target"] is None and declared["schema"] is None:
        raise Refused("which column is to be predicted? Give --target")
    lines: list[str] = []

    def show(dataset: "espalier.Dataset") -> None:
        files.print_notices(dataset)
        lines.extend(files.data_lines(arguments.data, dataset))

    options = {
        "memory_limit": DEFAULT_MEMORY if arguments.memory is None else arguments.memory,
        "work": arguments.work,
        "cluster": arguments.cluster,
        "declared": declared,
        "on_read": show,
    }
    return arguments.data if arguments.data.is_dir() else files.existing(arguments.data), options, lines


def prune(arguments: Namespace) -> int:
    """Prune a model file into another one."""
    files.check_folder(arguments.out)
    with shown_progress() as progress:
        model = files.read_tree(arguments.model)
        dataset = None if arguments.data is None else files.dataset_of(arguments.data, schema=model.schema)
        holdout = files.validation_rows(arguments.holdout, model)
        method = espalier.pruning_method(arguments.method, **files.assignments(arguments.set, besides="method"))
        begun = time.perf_counter()
        pruned = espalier.prune(model, method, dataset=dataset, holdout=holdout, progress=progress)
        seconds = time.perf_counter() - begun
    return _finish(arguments, pruned.model, seconds, trace_lines(pruned.trace), trace=dict(pruned.trace))


def predict(arguments: Namespace) -> int:
    """Predict each row of a file, and write one line of JSON per row."""
    files.check_folder(arguments.out)
    model = files.read_model(arguments.model)
    with files.about(arguments.rows), shown_progress() as progress:
        rows = files.rows_of(model.schema, arguments.rows)
        options = {"missing": arguments.missing, "progress": progress}
        answers: list[Any] = (
            list(espalier.predict(model, rows, **options))
            if arguments.explain == "none"
            else list(espalier.explain(model, rows, detail=arguments.explain, **options))
        )
        progress.begin("writing")
        lines = [json.dumps(answer.to_dict(), ensure_ascii=False) + "\n" for answer in progress.each(answers)]
    files.write_or_print(arguments.out, "".join(lines))
    return 0


COMMANDS: Mapping[str, Command] = {
    "train": Command("train a model on a file", _train_arguments, train),
    "prune": Command("prune a model file", _prune_arguments, prune),
    "predict": Command("predict the rows of a file, each answer with its path", _predict_arguments, predict),
}


def _finish(arguments: Namespace, model: "espalier.Model", seconds: float, lines: Iterable[str], **members: Any) -> int:
    """Write the model and print the report, after `lines` or with `more` members of JSON."""
    files.write_whole(arguments.out, espalier.to_json(model))
    report = {**espalier.summary(model), "seconds": round(seconds, 6), "out": str(arguments.out), **members}
    print(json.dumps(report) if arguments.json else "\n".join([*lines, *_model_lines(report)]))
    return 0


def _model_lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_size_text(report)}, in {report['seconds']:.3f} s"
    figures = _figures_text(report["n_training_rows"], report["train_errors"], report["train_accuracy"], report["rmse"])
    yield f"training  {figures}"
    held = report["holdout"]
    if held is not None:
        figures = _figures_text(held["n_rows"], held.get("errors"), held.get("accuracy"), held.get("rmse"))
        word = {"holdout": "hold-out", "validation": "pruned on"}[held["use"]]
        yield f"{word:9s} {figures}"
    for note in report["notes"]:
        yield f"note      {note}"
    yield f"written   {report['out']}"


def _size_text(report: Mapping[str, Any]) -> str:
    if report["n_rules"] is not None:
        size = f"{_counted(report['n_rules'], 'rule', 'rules')}, "
        return f"rules     {report['preset']}: {size}{_counted(report['n_conditions'], 'condition', 'conditions')}"
    size = f"{_counted(report['n_leaves'], 'leaf', 'leaves')}, {_counted(report['n_nodes'], 'node', 'nodes')}"
    return f"tree      {report['preset']}: {size}, depth {report['depth']}"


def _figures_text(n_rows: int, errors: float | None, accuracy: float | None, rmse: float | None) -> str:
    if errors is not None and accuracy is not None:
        return f"{_counted(errors, 'error', 'errors')} in {n_rows} rows, accuracy {accuracy:.5f}"
    if rmse is None:
        # Leaves that are smoothed, or that have counted other rows or fractions of rows, do not contain the error.
        return f"the error is not known without the {n_rows} rows: give them with --data"
    return f"root mean squared error {rmse:.6g} on {n_rows} rows"


def _counted(count: float, one: str, many: str) -> str:
    return f"{count:g} {one if count == 1 else many}"


# --- the trace of a pruning


def trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a trace (`espalier.Pruned.trace`)."""
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
        yield "steps     leaf by leaf, one condition per line; the estimate is that of the rule alone"
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
    yield from files.table_lines(
        rows, left={place for place, name in enumerate(columns) if name in left}, indent=INDENT
    )
