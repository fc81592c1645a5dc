"""Missing values and categories as they are: `c45` and `j48` beside Weka's J48, `cart` on adult beside its codes."""

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


def growing(preset: str, path: str, *, holes: bool) -> Measurable:
    """Give a preset's whole training on the table, complete or with holes."""
    training, held_out = _with_holes(path) if holes else tables.read(path)
    return _training(preset, training.dataset(), held_out.dataset())


def growing_adult(preset: str) -> Measurable:
    """Give a preset's whole training on adult with its categories and missing cells."""
    return _training(preset, *tables.adult_as_it_is())


def building(training: str, test: str) -> Measurable:
    """Give J48's building of its tree, as J48 itself times it: reading the file and starting Java are left out."""
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
    """Give the same rows with a tenth of the cells missing."""
    generator = np.random.default_rng(6)
    found = []
    for rows in tables.read(path):
        features = rows.features.copy()
        features[generator.random(features.shape) < MISSING_SHARE] = np.nan
        found.append(tables.Rows(features, rows.target))
    return found[0], found[1]


def _show_missing(run: Run) -> None:
    path = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    subjects = []
    for preset in ("c45", "j48"):
        for name, holes in ((COMPLETE, False), (HOLES, True)):
            arguments = {"preset": preset, "path": path, "holes": holes}
            subjects.append(Subject(f"espalier {preset}, {name}", "benchmarks.missing:growing", arguments))
    if weka.jar() is not None:
        for name, parts in ((COMPLETE, tables.read(path)), (HOLES, _with_holes(path))):
            files = [_arff(run.folder, name, *each) for each in zip(("training", "test"), parts, strict=True)]
            arguments = dict(zip(("training", "test"), files, strict=True))
            subjects.append(Subject(f"{WEKA}, {name}", "benchmarks.missing:building", arguments))
    found = measure(subjects)
    n_rows = f"{run.rows(N_ROWS):,}"
    lines = [[name, n_rows, *_cells(each)] for name, each in found.items()]
    notes = [] if weka.jar() is not None else [f"{WEKA}: not installed."]
    faults = [f"{name}: {each.fault}" for name, each in found.items() if each.fault]
    print_table(f"C4.5 with missing values, {n_rows} x 20, pruned", NAMES, lines, *notes, *faults)
    print_table("Targets with missing values", ("what", "ratio", "target", ""), _verdicts(found))


def _arff(folder: Path, name: str, part: str, rows: tables.Rows) -> str:
    return weka.write_arff(rows, folder / f"{name.split(maxsplit=1)[0]}-{part}.arff")


def _verdicts(found: Mapping[str, Measured]) -> list[list[str]]:
    lines = []
    for preset in ("c45", "j48"):
        complete, holes = (found[f"espalier {preset}, {name}"].seconds for name in (COMPLETE, HOLES))
        ratio = holes / complete if holes and complete else None
        holds = "holds" if ratio is not None and ratio <= MISSING_TARGET else "missed"
        lines.append([f"{preset}: with holes / complete", ratio_text(holes, complete), f"<= {MISSING_TARGET}", holds])
        for name in (COMPLETE, HOLES):
            peer, ours = (found.get(f"{who}, {name}", Measured()).seconds for who in (WEKA, f"espalier {preset}"))
            holds = "" if not peer or not ours else "holds" if peer / ours >= J48_TARGET else "missed"
            lines.append([f"{WEKA} / {preset}, {name}", ratio_text(peer, ours), f">= {J48_TARGET}", holds])
    return lines


def _show_adult() -> None:
    if not tables.REFERENCE.is_dir():
        print("\nadult as it is: the reference data are not here (ESPALIER_REFERENCE names their folder)")
        return
    subjects = [Subject(f"espalier {preset}", "benchmarks.missing:growing_adult", {"preset": preset})
                for preset in ("cart", "c45", "j48", "reptree")]  # fmt: skip
    found = measure(subjects)
    faults = [f"{name}: {each.fault}" for name, each in found.items() if each.fault]
    lines = [[name, "32,561", *_cells(each)] for name, each in found.items()]
    print_table("adult as it is: 8 nominal attributes of 14, missing cells", NAMES, lines, *faults)


def _cells(each: Measured) -> list[str]:
    known = bool(each.facts)
    return [
        seconds_text(each.seconds),
        f"{each.facts['leaves']:,}" if known else "–",
        f"{each.facts['quality']:.4f}" if known else "–",
        "–" if each.peak_bytes is None else f"{each.peak_bytes / 1e6:.0f}",
    ]
