"""Missing values and categories: `c45` and `j48` beside Weka's J48, and four presets on adult with categories."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import espalier
from benchmarks import tables, weka
from benchmarks.measuring import Measurable, Measured, Subject, measure, print_table, ratio_text, seconds_text
from benchmarks.run import Run

N_ROWS: Final = 100_000
MISSING_SHARE: Final = 0.1
J48_TARGET: Final = 10
MISSING_TARGET: Final = 3
NAMES: Final = ("who", "rows", "seconds", "leaves", "accuracy", "peak MB")
COMPLETE: Final = "complete"
HOLES: Final = "10 % missing"
WEKA: Final = "Weka's J48"


def run(run: Run) -> None:
    """Print both tables."""
    _show_missing(run)
    _show_adult()


def growing(preset: str, path: str, *, with_missing: bool) -> Measurable:
    """Return a measurable of a preset's whole training on the table, which is complete or has missing cells."""
    training, held_out = _with_holes(path) if with_missing else tables.read(path)
    return _training(preset, training.dataset(), held_out.dataset())


def growing_adult(preset: str) -> Measurable:
    """Return a measurable of a preset's whole training on adult with its categories and missing cells."""
    return _training(preset, *tables.adult_with_categories())


def building(training: str, test: str) -> Measurable:
    """Return a measurable of J48's own time for building the tree, which excludes starting Java and reading files."""
    return Measurable(
        partial(weka.j48, training, test),
        describe=lambda answer: {"leaves": answer.leaves, "quality": answer.accuracy},
        own_seconds=lambda answer: answer.seconds,
    )


def _training(preset: str, training: espalier.Dataset, held_out: espalier.Dataset) -> Measurable:
    few = training.take(np.arange(min(training.n_rows, tables.FEW)))

    def describe(model: espalier.Model) -> Mapping[str, Any]:
        return {"leaves": model.tree.n_leaves, "quality": espalier.evaluate(model, held_out).accuracy}

    return Measurable(lambda: espalier.train(training, preset), lambda: espalier.train(few, preset), describe)


def _with_holes(path: str) -> tuple[tables.Rows, tables.Rows]:
    """Return the training and the held-out rows with a tenth of the cells missing."""
    generator = np.random.default_rng(6)
    parts = []
    for rows in tables.read(path):
        features = rows.features.copy()
        features[generator.random(features.shape) < MISSING_SHARE] = np.nan
        parts.append(tables.Rows(features, rows.target))
    return parts[0], parts[1]


def _show_missing(run: Run) -> None:
    path = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    subjects = []
    for preset in ("c45", "j48"):
        for name, with_missing in ((COMPLETE, False), (HOLES, True)):
            arguments = {"preset": preset, "path": path, "with_missing": with_missing}
            subjects.append(Subject(f"espalier {preset}, {name}", "benchmarks.missing:growing", arguments))
    if weka.jar() is not None:
        for name, tables_of_rows in ((COMPLETE, tables.read(path)), (HOLES, _with_holes(path))):
            files = [
                _arff(run.folder, name, *result) for result in zip(("training", "test"), tables_of_rows, strict=True)
            ]
            arguments = dict(zip(("training", "test"), files, strict=True))
            subjects.append(Subject(f"{WEKA}, {name}", "benchmarks.missing:building", arguments))
    results = measure(subjects)
    n_rows = f"{run.rows(N_ROWS):,}"
    lines = [[name, n_rows, *_cells(result)] for name, result in results.items()]
    notes = [] if weka.jar() is not None else [f"{WEKA}: not installed."]
    faults = [f"{name}: {result.fault}" for name, result in results.items() if result.fault]
    print_table(f"C4.5 with missing values, {n_rows} x 20, pruned", NAMES, lines, *notes, *faults)
    print_table("Targets with missing values", ("what", "ratio", "target", ""), _verdicts(results))


def _arff(folder: Path, name: str, part: str, rows: tables.Rows) -> str:
    return weka.write_arff(rows, folder / f"{name.split(maxsplit=1)[0]}-{part}.arff")


def _verdicts(results: Mapping[str, Measured]) -> list[list[str]]:
    lines = []
    for preset in ("c45", "j48"):
        complete, with_missing = (results[f"espalier {preset}, {name}"].seconds for name in (COMPLETE, HOLES))
        ratio = with_missing / complete if with_missing and complete else None
        holds = "holds" if ratio is not None and ratio <= MISSING_TARGET else "missed"
        lines.append(
            [f"{preset}: with holes / complete", ratio_text(with_missing, complete), f"<= {MISSING_TARGET}", holds]
        )
        for name in (COMPLETE, HOLES):
            peer, ours = (
                results.get(f"{library}, {name}", Measured()).seconds for library in (WEKA, f"espalier {preset}")
            )
            holds = "" if not peer or not ours else "holds" if peer / ours >= J48_TARGET else "missed"
            lines.append([f"{WEKA} / {preset}, {name}", ratio_text(peer, ours), f">= {J48_TARGET}", holds])
    return lines


def _show_adult() -> None:
    if not tables.REFERENCE.is_dir():
        print("\nadult with its categories: the reference data are not here (ESPALIER_REFERENCE names their folder)")
        return
    subjects = [Subject(f"espalier {preset}", "benchmarks.missing:growing_adult", {"preset": preset})
                for preset in ("cart", "c45", "j48", "reptree")]  # fmt: skip
    results = measure(subjects)
    faults = [f"{name}: {result.fault}" for name, result in results.items() if result.fault]
    lines = [[name, "32,561", *_cells(result)] for name, result in results.items()]
    print_table("adult with its categories: 8 nominal attributes of 14, missing cells", NAMES, lines, *faults)


def _cells(result: Measured) -> list[str]:
    known = bool(result.facts)
    return [
        seconds_text(result.seconds),
        f"{result.facts['leaves']:,}" if known else "–",
        f"{result.facts['quality']:.4f}" if known else "–",
        "–" if result.peak_bytes is None else f"{result.peak_bytes / 1e6:.0f}",
    ]
