"""The commands that make and use model files: ``train``, ``prune``, ``predict``."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import espalier
from service.cli import Command, Refused, files
from service.cli.presets import help_with_tables
from service.cli.progress import shown_progress
from service.cli.traces import trace_lines

DEFAULT_MEMORY: Final = 10**9
"""Bytes; a number that is the same at the next start, which goes on with a work folder."""


def _train_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help=f"the training rows: {files.FORMATS}")
    files.data_arguments(parser)
    parser.add_argument("--preset", metavar="P", default="cart", help="see `espalier presets` (default: cart)")
    files.set_argument(parser, "a field of the preset; see `espalier presets`")
    parser.add_argument(
        "--holdout",
        metavar="0.3|JSON|FILE",
        help="rows that are set aside before training, to stop, prune or measure by; the model remembers which: "
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
        help="folder for temporary files, --out-of-core only; after a kill the same command goes on from there",
    )
    parser.add_argument(
        "--cluster",
        metavar="tcp://HOST:PORT",
        help="a Dask scheduler whose workers search the columns, --work only: they see that folder at the same path",
    )
    _out_arguments(parser)
    help_with_tables(parser)


def _prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
    parser.add_argument("--method", metavar="M", required=True, help="see `espalier presets`")
    files.set_argument(parser, "a parameter of the method; see `espalier presets`")
    parser.add_argument("--data", metavar="TRAIN", type=Path, help="the rows that the model was trained on")
    files.validation_argument(parser)
    _out_arguments(parser)
    help_with_tables(parser)


def _predict_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.json", type=Path)
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
    if arguments.out_of_core:
        return _train_out_of_core(arguments)
    if (arguments.memory, arguments.work, arguments.cluster) != (None, None, None):
        raise Refused("--memory, --work and --cluster need --out-of-core")
    if arguments.data.is_dir():
        raise Refused(f"{arguments.data}: is a folder, whose files are only read with --out-of-core")
    with files.refusals(None), shown_progress() as progress:
        dataset = files.read_data(arguments.data, arguments)
        fields = {"seed": arguments.seed, **files.assignments(arguments.set, besides="preset")}
        config = espalier.training_config(arguments.preset, **fields)
        holdout = files.holdout_of(arguments.holdout, dataset.schema, {"seed": arguments.seed})
        begun = time.perf_counter()
        model = espalier.train(dataset, config, holdout=holdout, progress=progress)
        seconds = time.perf_counter() - begun
    return _finish(arguments, model, seconds, files.data_lines(arguments.data, dataset))


def _train_out_of_core(arguments: Namespace) -> int:
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

    with files.refusals(None), shown_progress() as progress:
        fields = {"seed": arguments.seed, **files.assignments(arguments.set, besides="preset")}
        config = espalier.training_config(arguments.preset, **fields)
        begun = time.perf_counter()
        model = espalier.train(
            files.table_path(arguments.data),
            config,
            progress=progress,
            memory_limit=DEFAULT_MEMORY if arguments.memory is None else arguments.memory,
            work=arguments.work,
            cluster=arguments.cluster,
            declared=declared,
            on_read=show,
        )
        seconds = time.perf_counter() - begun
    return _finish(arguments, model, seconds, lines)


def prune(arguments: Namespace) -> int:
    """Prune a model file into another one."""
    files.check_folder(arguments.out)
    with files.refusals(None), shown_progress() as progress:
        model = files.read_tree(arguments.model)
        dataset = None if arguments.data is None else files.dataset_of(arguments.data, schema=model.schema)
        holdout = files.validation_rows(arguments.holdout, model)
        method = espalier.pruning_method(arguments.method, **files.assignments(arguments.set, besides="method"))
        begun = time.perf_counter()
        pruned = espalier.prune(model, method, dataset=dataset, holdout=holdout, progress=progress)
        seconds = time.perf_counter() - begun
    return _finish(arguments, pruned.model, seconds, trace_lines(pruned.trace), trace=dict(pruned.trace))


def predict(arguments: Namespace) -> int:
    """Answer each row of a file with a line of JSON."""
    files.check_folder(arguments.out)
    model = files.read_model(arguments.model)
    with files.refusals(arguments.rows), shown_progress() as progress:
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


def _finish(arguments: Namespace, model: "espalier.Model", seconds: float, lines: Iterable[str], **more: Any) -> int:
    """Write the model and print the report, after `lines` or with `more` members of JSON."""
    files.write_whole(arguments.out, espalier.to_json(model))
    report = {**espalier.summary(model), "seconds": round(seconds, 6), "out": str(arguments.out), **more}
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
