"""Errors of ordered rule lists on hold-out rows, beside C4.5's rules and the pruned and unpruned `c45` trees."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import espalier
from benchmarks import tables
from benchmarks.measuring import print_table, seconds_text
from benchmarks.run import Run

NAMES: Final = (
    "data",
    "test rows",
    "C4.5's rules",
    "c45 tree",
    "unpruned",
    "leaves",
    "pessimistic",
    "rules",
    "seconds",
)
SMALL: Final = 16_000
"""Rows up to which a data set is also pruned with ``--quick``."""


def run(run: Run) -> None:
    """Print a line for each data set with classes for which the reference folder lists hold-out rows."""
    folder = tables.REFERENCE
    paths = sorted((folder / "splits").glob("*.json")) if folder.is_dir() else []
    lines = [_line(path.stem) for path in paths if run.takes(path.stem) and _is_measured(path.stem, run)]
    print_table("Errors of lists of rules on hold-out rows", NAMES, lines)


def _is_measured(name: str, run: Run) -> bool:
    schema = _json(tables.REFERENCE / "data" / f"{name}.schema.json")
    return schema["task"] == "classification" and (run.share == 1.0 or schema["rows"] <= SMALL)


def _line(name: str) -> list[str]:
    schema = _json(tables.REFERENCE / "data" / f"{name}.schema.json")
    dataset = espalier.dataset_from_csv(tables.REFERENCE / "data" / schema["file"], schema=schema)
    split = _json(tables.REFERENCE / "splits" / f"{name}.json")
    is_test = np.zeros(dataset.n_rows, dtype=np.bool_)
    is_test[split.get("test_rows", [])] = True
    for first, last in split.get("test_row_ranges", []):
        is_test[first : last + 1] = True
    training, test = dataset.take(np.flatnonzero(~is_test)), dataset.take(np.flatnonzero(is_test))
    pruned, grown = (espalier.train(training, "c45", **fields) for fields in ({}, {"pruning": None}))
    start = time.perf_counter()
    rules = espalier.prune(grown, "rules", dataset=training, estimate="pessimistic", quantile="c45").model
    seconds = time.perf_counter() - start
    errors = [f"{espalier.evaluate(model, test).errors:,.0f}" for model in (pruned, grown, rules)]
    sizes = [f"{grown.tree.n_leaves:,}", f"{rules.rules.n_rules:,}"]
    published = " ".join(_published(name)) or "–"
    return [name, f"{test.n_rows:,}", published, *errors[:2], sizes[0], errors[2], sizes[1], seconds_text(seconds)]


def _published(name: str) -> Iterator[str]:
    """Yield the published number of errors of C4.5's rules, if the reference folder has it."""
    path = tables.REFERENCE / "expected" / "c45r8" / f"{name}.json"
    if path.exists():
        yield str(_json(path)["holdout"]["rules_after_default"]["tested_errors"][1][1])


def _json(path: Path) -> Any:
    return json.loads(path.read_text())
