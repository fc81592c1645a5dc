"""Small work does not wait for a compiler: kernels as Python give what machine code gives."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import espalier
from espalier import Progress, dataset_from_rows, small_work
from espalier.kernels.interpreting import Interpreting, current
from espalier.training import train

ROOT = Path(__file__).resolve().parents[2]
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
compiled_only = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

TRAININGS = [
    ("class", "id3", {"numeric": "best"}),
    ("class", "c45", {}),
    ("class", "c45", {"window": None, "missing": "fractional", "nominal": "subset"}),
    ("class", "j48", {}),
    ("class", "cart", {"missing": "surrogate"}),
    ("class", "cart", {"criterion": "information_gain", "max_leaf_nodes": 6, "missing": "direction"}),
    ("class", "reptree", {}),
    ("number", "cart", {"missing": "majority"}),
    ("number", "cart", {"criterion": "absolute_error", "missing": "majority"}),
    ("number", "reptree", {}),
    ("number", "m5", {}),
    *((target, "cart", {"missing": "none"}) for target in ("class", "number")),
]


def rows() -> list[dict[str, Any]]:
    """Give 80 rows of ties, holes and fractions that no float holds exactly."""
    draw = random.Random(7)
    made = []
    for _ in range(80):
        row: dict[str, Any] = {
            "size": round(draw.gauss(0, 3), 2),
            "count": draw.randrange(6),
            "share": draw.random() / 3,
            "colour": draw.choice(["red", "green", "blue", "grey"]),
        }
        row["class"] = "abc"[min(2, int(abs(row["size"] + row["count"] * draw.random()) / 3))]
        row["number"] = row["size"] * row["share"] + row["count"]
        made.append({name: None if name in HOLED and draw.random() < 0.1 else cell for name, cell in row.items()})
    return made


HOLED = ("size", "count", "colour")


@pytest.fixture(autouse=True)
def _nothing_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(small_work._SPENT, "seconds", 0.0)


def test_large_work_waits_for_the_compiler_and_so_does_what_is_told_to() -> None:
    small = small_work.SMALL_CELLS
    assert small_work.run_uncompiled_if_small(small, current) is not None
    assert small_work.run_uncompiled_if_small(small + 1, current) is None
    with small_work.always_compiled():
        assert small_work.run_uncompiled_if_small(1, current) is None


def test_a_process_compiles_once_small_work_has_taken_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_work, "BUDGET_SECONDS", 1e-9)

    def work() -> Interpreting | None:
        block = current()
        if block is not None:
            block.kernels.add("a kernel")
        return block

    assert small_work.run_uncompiled_if_small(1, work) is not None
    assert small_work.run_uncompiled_if_small(1, work) is None


def test_a_large_tree_is_no_small_work_however_few_rows_prune_it() -> None:
    table = [{"x": place, "y": "ab"[place % 2]} for place in range(6_000)]
    model = espalier.train(dataset_from_rows(table, target="y"), "cart")
    assert model.tree.n_nodes > small_work.SMALL_CELLS
    assert train._n_cells(model, None) > small_work.SMALL_CELLS


WITHOUT = """
import json, sys
import espalier
from espalier import small_work
from tests.core.test_small_work import TRAININGS, trained

small_work.BUDGET_SECONDS = 600.0
phases = set()
models = [trained(*training, espalier.Progress(phases.add)) for training in TRAININGS]
print(json.dumps([models, sorted(phases)]))
"""


def trained(target: str, preset: str, fields: dict[str, Any], watch: Progress) -> str:
    """Give the document of a training on `rows`."""
    other = {"class": "number", "number": "class"}[target]
    table = [{name: cell for name, cell in row.items() if name != other} for row in rows()]
    if fields.get("missing") == "none":  # so the binary grower
        table = [row for row in table if None not in row.values()]
        fields = {}
    model = espalier.train(dataset_from_rows(table, target=target), preset, progress=watch, **fields)
    return espalier.to_json(model).decode()


@compiled_only
def test_kernels_as_python_make_the_documents_that_compiled_ones_make(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", WITHOUT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    without, phases = json.loads(done.stdout)
    assert {"growing without compiled kernels", "pruning without compiled kernels"} <= set(phases)
    assert not list(tmp_path.rglob("*.nbi"))
    for asked, model in zip(TRAININGS, without, strict=True):
        with small_work.always_compiled():
            assert trained(*asked, Progress()) == model, asked


@compiled_only
def test_a_command_says_that_it_does_without(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "".join(f"{i},{'ab'[i % 3 > 0]}\n" for i in range(12)))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-m", "service.cli", "train", str(table), "--target", "y", "--out", str(tmp_path / "m")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "espalier: no kernels are compiled on this machine yet: little data is done without "
        "(`espalier compile` makes them)"
    ]
