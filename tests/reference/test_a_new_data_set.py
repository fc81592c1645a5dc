"""A data set dropped into the reference folder with its figures is tested without a new line of code.

A folder is made in which each published data set bears another name, as if it were new, and the tests that walk the
figures are run on it in a process of their own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import REFERENCE, ROOT, needs_reference

WALKERS = (
    "tests/reference/test_twin_matches_published_figures.py",
    "tests/core/growing/test_published_figures.py",
    "tests/core/pruning/test_published_figures.py",
    "tests/core/growing/test_model_tree_published_figures.py",
)
# Folders and files of the figures, and the test that walks them.
WALKED = {
    "weka": WALKERS,
    "c45r8": WALKERS,
    "rpart": WALKERS,
    "sklearn": WALKERS,
    "theory.json": ("tests/reference/test_twin_matches_theory.py", "tests/core/training/test_theory.py"),
    "golf_missing_predictions.json": (
        "tests/reference/test_twin_matches_theory.py",
        "tests/core/prediction/test_predict.py",
    ),
    "weka_addErrs.json": ("tests/core/pruning/test_twins.py",),
    "drug200_seed002.json": ("tests/reference/test_twin_matches_theory.py", "tests/acceptance/test_story.py"),
}

pytestmark = needs_reference


def figures_and_folders() -> list[str]:
    """The files of figures, and the folders of the systems that are built."""
    return sorted(path.name for path in (REFERENCE / "expected").glob("*") if path.is_file() or path.name in WALKED)


@pytest.mark.parametrize("name", figures_and_folders())
def test_every_file_of_the_figures_is_walked(name: str) -> None:
    if WALKED[name] is WALKERS:  # the others take their entries from the first
        assert f'figures("{name}")' in (ROOT / WALKERS[0]).read_text()
        return
    for test in WALKED[name]:
        assert name.removesuffix(".json") in (ROOT / test).read_text()


def renamed(folder: Path, old: str, new: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Put a data set of the reference, its figures and its splits into a folder under another name."""
    for part in ("data", "splits"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    schema = read(REFERENCE / "data" / f"{old}.schema.json")
    file = schema["file"].replace(old, new)
    shutil.copyfile(REFERENCE / "data" / schema["file"], folder / "data" / file)
    write(folder / "data" / f"{new}.schema.json", schema | {"name": new, "file": file})
    splits = read(REFERENCE / "splits" / f"{old}.json") | {"dataset": new}
    change(splits)
    write(folder / "splits" / f"{new}.json", splits)
    for system in (REFERENCE / "expected").glob(f"*/{old}.json"):
        (folder / "expected" / system.parent.name).mkdir(parents=True, exist_ok=True)
        write(folder / "expected" / system.parent.name / f"{new}.json", read(system) | {"dataset": new})


def walked(folder: Path) -> tuple[dict[str, int], list[str]]:
    """How many of the compiled core's tests passed, failed and were skipped on that folder, and which failed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-o",
        "addopts=--import-mode=importlib -p no:cacheprovider",
        *WALKERS[1:],
    ]
    environment = os.environ | {"ESPALIER_REFERENCE": str(folder)}
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout.strip().splitlines()[-1])
    assert counts, done.stdout + done.stderr
    failed = re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)
    return {word: int(number) for number, word in counts}, failed


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document))


def in_ranges(splits: dict[str, Any]) -> None:
    splits["test_row_ranges"] = [[row, row] for row in splits.pop("test_rows")]


def unlisted(splits: dict[str, Any]) -> None:
    splits.clear()


def test_new_data_sets_are_compared_with_every_figure_that_is_given_and_a_wrong_one_is_found(tmp_path: Path) -> None:
    renamed(tmp_path, "iris", "meadow", in_ranges)
    renamed(tmp_path, "cpu", "abacus", in_ranges)
    renamed(tmp_path, "kyphosis", "heath", unlisted)
    renamed(tmp_path, "weather_numeric", "fen", in_ranges)
    (tmp_path / "splits" / "heath.json").unlink()
    path = tmp_path / "expected" / "weka" / "fen.json"
    document = read(path)
    document["weka-3.9.7"]["J48_U"]["measureTreeSize"] += 2
    document["weka-3.9.7"]["J48_default"]["train"]["errors"] += 1
    write(path, document)

    counts, failed = walked(tmp_path)

    assert failed == [
        "test_the_tree_that_weka_prints_for_all_rows_is_grown_line_by_line[fen-weka-3.9.7-J48_U]",
        "test_j48_s_pruned_tree_of_all_rows_is_ours_line_by_line[fen-weka-3.9.7-J48_default]",
    ]
    assert "error" not in counts
    assert counts["passed"] > 200
