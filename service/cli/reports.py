"""Print reports on data sets, and on trained and pruned models with the models' errors; align columns of tables."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import espalier
from service.cli import files

MAX_KINDS_SHOWN: Final = 12


def out_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that say where the model goes and how it is reported."""
    parser.add_argument("--out", metavar="MODEL.json", type=Path, required=True, help="the file to write the model to")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def write_model(
    arguments: Namespace, model: "espalier.Model", seconds: float, lines: Iterable[str], **members: Any
) -> int:
    """Write the model and return 0; print a report: `lines` and text on the model, or JSON that includes `members`."""
    files.write_whole(arguments.out, espalier.to_json(model))
    report = {**espalier.summary(model), "seconds": round(seconds, 6), "out": str(arguments.out), **members}
    print(json.dumps(report) if arguments.json else "\n".join([*lines, *_model_lines(report)]))
    return 0


def data_lines(file: Path, dataset: "espalier.Dataset") -> Iterator[str]:
    """Yield lines on a data set: the number of rows, the kinds of columns, the target and the task."""
    schema = dataset.schema
    target = schema.target
    yield f"data      {file}: {dataset.n_rows} rows, {len(schema.attributes)} attributes"
    kinds = (f"{feature.name} ({_kind_text(feature)})" for feature in schema.attributes)
    yield f"          {espalier.listed(kinds, MAX_KINDS_SHOWN)}"
    if target is not None:
        yield f"target    {target.name} ({_kind_text(target)}): {schema.task}"


def table_lines(rows: Sequence[Sequence[str]], *, left: Container[int], indent: str = "") -> Iterator[str]:
    """Yield rows of cells as aligned lines; the columns in `left` are aligned to the left, the others to the right.

    >>> list(table_lines([["name", "share"], ["a", "0.25"]], left={0}))
    ['name  share', 'a      0.25']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(range(len(widths)), row, widths, strict=True)
        padded = (cell.ljust(width) if place in left else cell.rjust(width) for place, cell, width in cells)
        yield indent + "  ".join(padded).rstrip()


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
        # Without the rows, the leaves do not always give the error: see `espalier.training.train._figures_of_leaves`.
        return f"the error is not known without the {n_rows} rows: give them with --data"
    return f"root mean squared error {rmse:.6g} on {n_rows} rows"


def _counted(count: float, one: str, many: str) -> str:
    return f"{count:g} {one if count == 1 else many}"


def _kind_text(feature: "espalier.Feature") -> str:
    return f"{feature.kind}, {len(feature.categories)} categories" if feature.coded else str(feature.kind)
