"""The commands that need no server: ``train``, ``prune``, ``predict``; files in, files out."""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from service.cli import Command
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
    rows_of,
    set_argument,
    voters_argument,
    write_whole,
)
from service.cli.presets import help_with_tables
from service.cli.traces import trace_lines


def _train_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help=f"the training rows: {FORMATS}")
    data_arguments(parser)
    parser.add_argument("--preset", metavar="P", default="cart", help="see `espalier presets` (default: cart)")
    set_argument(parser, "a field of the preset; see `espalier presets`")
    parser.add_argument(
        "--holdout",
        metavar="0.3|JSON|FILE",
        help="rows set aside before anything is learned, to stop, prune or measure by, and remembered with the model: "
        'a share drawn by --seed, {"rows": [0, 5]} counted from 0, {"fraction": 0.3, "seed": 1, "stratified": true}, '
        "or a file",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="for everything drawn at random (default: 0)")
    _out_arguments(parser)
    help_with_tables(parser)


def _prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
    parser.add_argument("--method", metavar="M", required=True, help="see `espalier presets`")
    set_argument(parser, "a parameter of the method; see `espalier presets`")
    parser.add_argument("--data", metavar="TRAIN", type=Path, help="the rows that the model was trained on")
    voters_argument(parser)
    _out_arguments(parser)
    help_with_tables(parser)


def _predict_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
    parser.add_argument("rows", metavar="ROWS", type=Path, help=f"the rows: {FORMATS}")
    parser.add_argument("--explain", choices=["none", "path", "full"], default="path", help="default: path")
    parser.add_argument(
        "--missing",
        metavar="S",
        help="what is done where a value is missing, such as last_prediction (default: as in training)",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="default: standard output")


def _out_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="MODEL.json", type=Path, required=True, help="where the model is written")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def train(arguments: Namespace) -> int:
    """Train a model on a file and write it."""
    import espalier  # noqa: PLC0415 - `espalier --help` needs no arrays

    check_folder(arguments.out)
    dataset = read_data(arguments.data, arguments)
    fields = {"seed": arguments.seed, **assignments(arguments.set, besides="preset")}
    with refusals(None):
        config = espalier.training_config(arguments.preset, **fields)
        holdout = holdout_of(arguments.holdout, dataset.schema, {"seed": arguments.seed})
        begun = time.perf_counter()
        model = espalier.train(dataset, config, holdout=holdout, progress=progress_reporter())
        seconds = time.perf_counter() - begun
    write_whole(arguments.out, espalier.to_json(model))
    report = {**espalier.summary(model), "seconds": round(seconds, 6), "out": str(arguments.out)}
    if arguments.json:
        print(json.dumps(report))
    else:
        for line in (*data_lines(arguments.data, dataset), *_model_lines(report)):
            print(line)
    return 0


def prune(arguments: Namespace) -> int:
    """Prune a model file into another one."""
    import espalier  # noqa: PLC0415 - as above

    check_folder(arguments.out)
    model = read_tree(arguments.model)
    dataset = dataset_of(arguments.data, schema=model.schema) if arguments.data is not None else None
    with refusals(None):
        holdout = holdout_of(arguments.holdout, model.schema, drawn_as(model))
        method = espalier.pruning_method(arguments.method, **assignments(arguments.set, besides="method"))
        begun = time.perf_counter()
        pruned = espalier.prune(model, method, dataset=dataset, holdout=holdout, progress=progress_reporter())
        seconds = time.perf_counter() - begun
    write_whole(arguments.out, espalier.to_json(pruned.model))
    report = {
        **espalier.summary(pruned.model),
        "seconds": round(seconds, 6),
        "out": str(arguments.out),
        "trace": dict(pruned.trace),
    }
    if arguments.json:
        print(json.dumps(report))
    else:
        for line in (*trace_lines(pruned.trace), *_model_lines(report)):
            print(line)
    return 0


def predict(arguments: Namespace) -> int:
    """Answer each row of a file with a line of JSON."""
    import espalier  # noqa: PLC0415 - as above

    model = read_model(arguments.model)
    with refusals(arguments.rows):
        rows = rows_of(model.schema, arguments.rows)
        if arguments.explain == "none":
            answers: list[Any] = list(espalier.predict(model, rows, missing=arguments.missing))
        else:
            answers = list(espalier.explain(model, rows, detail=arguments.explain, missing=arguments.missing))
    lines = "".join(json.dumps(answer.to_dict(), ensure_ascii=False) + "\n" for answer in answers)
    if arguments.out is None:
        sys.stdout.write(lines)
    else:
        check_folder(arguments.out)
        write_whole(arguments.out, lines.encode())
    return 0


COMMANDS: Mapping[str, Command] = {
    "train": Command("train a model on a file", _train_arguments, train),
    "prune": Command("prune a model file", _prune_arguments, prune),
    "predict": Command("answer the rows of a file, each with its path", _predict_arguments, predict),
}


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
        # Leaves that mix in the nodes above, or have counted other rows, or parts, do not tell how far they miss.
        return f"error not known without the {n_rows} rows: give them with --data"
    return f"root mean squared error {rmse:.6g} on {n_rows} rows"


def _counted(count: float, one: str, many: str) -> str:
    return f"{count:g} {one if count == 1 else many}"
