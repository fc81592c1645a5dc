"""Shapes that break careless growers, through the public interface: what they take of memory, seen from outside.

A process of its own grows one shape after the other and tells by how much each raised the highest resident memory.
"""

import json
import math
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc"),
]

PROGRAM = r"""
import json
import sys
from pathlib import Path

import numpy as np

from espalier import Dataset, Feature, FeatureKind, Role, Schema
from espalier import from_json, predict, profile, prune, to_json, to_text, train


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def table(columns, target, n_categories=0):
    kind = FeatureKind.NOMINAL if n_categories else FeatureKind.NUMERIC
    features = [Feature(f"a{n}", kind, categories=tuple(range(n_categories))) for n in range(len(columns))]
    features.append(Feature("y", FeatureKind.NOMINAL, Role.TARGET, (0, 1)))
    return Dataset(Schema(tuple(features)), (*columns, target.astype(np.int32)))


def tell(name, data, model, before, **more):
    cells = sum(len(column) for column in data.columns) * 8 / 2**20
    sizes = {"leaves": model.tree.n_leaves, "depth": int(model.tree.depth), "errors": model.training.train["errors"]}
    print(json.dumps({"name": name, "rise": peak() - before, "cells": cells, **sizes, **more}), flush=True)


n = 20_000
labels = tuple(range(n))
codes = np.arange(n, dtype=np.int32)
features = Feature("a", FeatureKind.NOMINAL, categories=labels), Feature("y", FeatureKind.NOMINAL, Role.TARGET, labels)
data = Dataset(Schema(features), (codes, codes[::-1].copy()))
before = peak()
found = profile(data).attributes[0]
figures = {name: getattr(found, name) for name in ("gain", "gini_decrease", "chi_square", "degrees_of_freedom")}
print(json.dumps({"name": "profile", "rise": peak() - before, **figures}), flush=True)

small = table([np.array([0.0, 1.0, 2.0, 3.0])], np.array([0, 1, 0, 1]))
for preset in ("cart", "c45", "id3"):
    train(small, preset, numeric="best")  # the kernels are loaded

n = 1_000_000
values = np.arange(n, dtype=np.float64) % 2
data = table([values], values + (np.arange(n) % 10 == 0) > 0.5)
for preset in ("cart", "c45"):
    before = peak()
    tell(f"two values {preset}", data, train(data, preset), before)

n, k = 200_000, 100_000
codes = (np.arange(n) % k).astype(np.int32)
data = table([codes], codes % 3 == 0, k)
for preset in ("cart", "id3", "c45"):
    before = peak()
    tell(f"categories {preset}", data, train(data, preset), before)

columns = np.random.default_rng(0).integers(0, 3, (10_000, 300)).astype(np.float64)
data = table(list(columns), columns[7_777] > 1)
before = peak()
model = train(data, "cart")
tell("columns", data, model, before, tested=int(model.tree.feature[0]))

n = int(sys.argv[1])
data = table([np.arange(n, dtype=np.float64)], np.arange(n) % 2)
before = peak()
model = train(data, "cart")
tell("chain", data, model, before)

before = peak()
again = from_json(to_json(model))
answers = [answer.label for answer in predict(again, [{"a0": 0.0}, {"a0": n / 2}, {"a0": n - 1.0}])]
pruned = prune(again, "cost_complexity", alpha=1.0).model
tell("use of the chain", data, pruned, before, text=len(to_text(again)), answers=answers)
"""
CHAIN = 20_000
ROOM = 300
"""MiB besides the cells themselves: code that is loaded, a tree, what is kept of an answer a node."""


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(CHAIN)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: line for line in lines}


def test_the_profile_of_as_many_categories_as_classes_takes_no_table_of_both(told: Any) -> None:
    # Each category has one row, each class too: all is known, and every cell but n of the n² has no row.
    n, found = 20_000, told["profile"]
    assert found["gain"] == pytest.approx(math.log2(n))
    assert found["gini_decrease"] == pytest.approx(1 - 1 / n)
    assert found["chi_square"] == pytest.approx(n * (n - 1))
    assert found["degrees_of_freedom"] == (n - 1) ** 2
    assert found["rise"] < ROOM


@pytest.mark.parametrize("preset", ["cart", "c45"])
def test_a_million_rows_of_two_values_take_no_more_than_their_cells_a_few_times(told: Any, preset: str) -> None:
    assert told[f"two values {preset}"]["leaves"] == 2
    # Of the even rows, which are all of the first value, every fifth is of the second class.
    assert told[f"two values {preset}"]["errors"] == 100_000
    assert told[f"two values {preset}"]["rise"] < ROOM + 2 * told[f"two values {preset}"]["cells"]


@pytest.mark.parametrize(("preset", "leaves"), [("cart", 2), ("id3", 100_000), ("c45", 1)])
def test_a_hundred_thousand_categories_take_no_table_of_themselves(told: Any, preset: str, leaves: int) -> None:
    # C4.5 prunes to the root: a leaf of two rows is estimated at 2·(1 − √0.25) = 1 error, as one leaf a third is wrong.
    assert told[f"categories {preset}"]["leaves"] == leaves
    assert told[f"categories {preset}"]["rise"] < ROOM


def test_ten_thousand_columns_take_no_more_than_their_cells_a_few_times(told: Any) -> None:
    assert (told["columns"]["leaves"], told["columns"]["tested"]) == (2, 7_777)
    assert told["columns"]["rise"] < ROOM + 2 * told["columns"]["cells"]


def test_a_chain_as_deep_as_there_are_rows_is_grown_read_asked_shown_and_pruned(told: Any) -> None:
    assert (told["chain"]["leaves"], told["chain"]["depth"], told["chain"]["errors"]) == (CHAIN, CHAIN - 1, 0)
    assert told["chain"]["rise"] < ROOM
    assert told["use of the chain"]["answers"] == [0, 0, 1]
    assert told["use of the chain"]["leaves"] == 1
    assert told["use of the chain"]["rise"] < ROOM
    assert told["use of the chain"]["text"] < 2 * CHAIN * 300
