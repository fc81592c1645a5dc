"""A tree that is grown level by level is bit by bit that of the in-memory grower, whoever holds the columns."""

import json
import random
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings, strategies as st

from espalier import (
    Cancelled,
    DataError,
    Dataset,
    Progress,
    TrainingConfig,
    dataset_from_csv,
    training_config,
)
from espalier.arrays import Array
from espalier.config.presets import resolved
from espalier.growing.grow import Grown, grow
from espalier.growing.levels import general_method
from espalier.growing.levels.grow_levels import Worker
from espalier.growing.levels.marks import BranchVector, Level
from espalier.growing.levels.table import LevelOptions, faults_of_levels, grow_by_levels
from espalier.growing.levels.work_files import FolderStore
from espalier.growing.training_data import training_data
from tests.core.growing import test_binary_and_general as binary_tables, test_delegated_subtrees as general_tables
from tests.core.growing_bridge import config_of, dataset_of
from tests.core.growing_tables import configs, tables, weighs_something
from tests.factories import REFERENCE, needs_reference

WORKERS = (1, 2, 3, 7)
UNTAKEN: list[dict[str, Any]] = [
    {"criterion": "absolute_error"},
    {"missing": "surrogate"},
    {"max_leaf_nodes": 5},
    {"cut_points": {"n0": (0.5,)}},
]


def in_any_order(question: Any, workers: Sequence[Worker]) -> Iterable[tuple[Worker, Any]]:
    """Ask the workers, and give their answers in an order of their own."""
    answers = [(worker, question(worker)) for worker in workers]
    random.Random(len(workers)).shuffle(answers)
    return reversed(answers)


class MemoryStore:
    """Arrays in memory."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    @contextmanager
    def writer(self, name: str) -> Any:
        parts: list[Array] = []
        yield lambda part: parts.append(np.array(part))
        self._arrays[name] = np.concatenate(parts) if parts else np.zeros(0)

    def read(self, name: str, kind: npt.DTypeLike) -> Array:
        return self._arrays[name].astype(kind, copy=False)

    def remove(self, name: str) -> None:
        self._arrays.pop(name, None)


def grown_by_levels(data: Dataset, config: TrainingConfig, store: Any = None, **options: Any) -> Grown:
    assert not faults_of_levels(config)
    options = {"ask": in_any_order, **options}
    return grow_by_levels(
        training_data(data, config), config, Progress(), LevelOptions(store or MemoryStore(), **options)
    )


def same(one: Grown, other: Grown) -> None:
    """Compare two trees to the last bit, also where a number is NaN."""
    for each in fields(one.tree):
        mine, its = getattr(one.tree, each.name), getattr(other.tree, each.name)
        if isinstance(mine, np.ndarray):
            assert (mine.dtype, mine.tobytes()) == (its.dtype, its.tobytes()), each.name
        else:
            assert mine is its is None, each.name
    assert (one.notes, one.preparation.imputed) == (other.notes, other.preparation.imputed)


def config_for(data: Dataset, preset: str, **changed: Any) -> TrainingConfig:
    return resolved(training_config(preset, **{"pruning": None, **changed}), data.schema)


# The same tree


@needs_reference
@pytest.mark.parametrize("preset", ["cart", "c45", "j48", "id3"])
@pytest.mark.parametrize(
    "name",
    ["iris", "drug200", "labor", "titanic", "golf_missing", "weather_nominal", "kyphosis", "cpu", "car_test_frame"],
)
def test_reference_data_give_the_same_tree_with_any_number_of_workers(name: str, preset: str) -> None:
    schema = json.loads((REFERENCE / "data" / f"{name}.schema.json").read_text())
    data = dataset_from_csv(REFERENCE / "data" / schema["file"], schema=schema)
    if data.schema.task == "regression" and preset != "cart":
        pytest.skip("a preset of classification")
    changed = {"missing": "fractional"} if preset == "cart" else {"numeric": "best"} if preset == "id3" else {}
    config = config_for(data, preset, **changed)
    expected = grow(data, config)
    for n_workers in WORKERS:
        for max_cells in (0, 50 * len(data.attributes)):
            same(grown_by_levels(data, config, n_workers=n_workers, max_cells=max_cells), expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("target", "preset", "changed"),
    [case for case in general_tables.CONFIGS if "cut_points" not in case[2] and case[1] != "m5"]
    + [("numbers", "cart", {"missing": "direction", "criterion": "m5"}), ("classes", "c45", {"threshold": "observed"})],
)
def test_tables_with_missing_values_and_categories_give_the_same_tree(
    target: str, preset: str, changed: dict[str, Any], *, weighted: bool
) -> None:
    data = general_tables.table(target, weighted=weighted)
    config = config_for(data, preset, **changed)
    for n_workers, max_cells in ((1, 0), (3, 200)):
        same(grown_by_levels(data, config, n_workers=n_workers, max_cells=max_cells), grow(data, config))


@pytest.mark.parametrize("weights", ["unit", "dyadic", "any"])
@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_complete_tables_of_two_branches_give_the_tree_of_the_binary_grower(n_classes: int, weights: str) -> None:
    data = binary_tables.table(700, n_classes, weights=weights)
    for changed in ({}, {"threshold": "observed", "max_depth": 5}):
        config = config_for(data, "cart", **changed)
        for n_workers, max_cells in ((1, 0), (2, 1_000), (7, 200)):
            options = {"n_workers": n_workers, "max_cells": max_cells, "max_rows_sorted": 250}
            same(grown_by_levels(data, config, **options), grow(data, config))


@pytest.mark.parametrize("function", ["nunez", "tan_schlimmer", "norton"])
def test_costs_that_a_path_has_paid_for_are_known_at_every_level(function: str) -> None:
    data = general_tables.table("classes", weighted=False)
    config = config_for(data, "c45", cost_function=function, attribute_costs={"n0": 3.0, "c1": 0.5})
    same(grown_by_levels(data, config, n_workers=2, max_cells=10_000), grow(data, config))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_table_and_configuration_give_the_same_tree(drawn: st.DataObject) -> None:
    table = drawn.draw(tables(kind=drawn.draw(st.sampled_from(["class", "number"]))))
    chosen = {"max_leaf_nodes": None, "cut_points": None}
    given_config = drawn.draw(configs(table, **chosen))
    assume(given_config["missing"] != "surrogate" and given_config["criterion"] != "absolute_error")
    assume(weighs_something(table, given_config))
    data = dataset_of(table)
    config = resolved(config_of(given_config, table), data.schema)
    n_workers, max_cells = drawn.draw(st.sampled_from(WORKERS)), drawn.draw(st.sampled_from([0, 10, 40, 10_000]))
    max_rows_sorted = drawn.draw(st.sampled_from([1, 5, 1_000]))
    options = {"n_workers": n_workers, "max_cells": max_cells, "max_rows_sorted": max_rows_sorted}
    same(grown_by_levels(data, config, **options), grow(data, config))


# Pure functions of the columns and of the levels so far


class Forgetful:
    """A worker that is replaced by a new one, without any memory, before each answer."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self.attributes = worker.attributes

    def _renewed(self) -> Any:
        self._worker._begin()  # what a new worker does
        return self._worker

    def scan(self, *given: Any) -> Any:
        return self._renewed().scan(*given)

    def mark(self, *given: Any) -> Any:
        return self._renewed().mark(*given)

    def copy_rows(self, *given: Any) -> Any:
        return self._renewed().copy_rows(*given)


@pytest.mark.parametrize("table", [general_tables.table("classes", weighted=True), binary_tables.table(600, 2)])
def test_a_worker_that_is_lost_before_every_answer_changes_nothing(table: Dataset) -> None:
    config = config_for(table, "cart", missing="fractional")

    def ask(question: Any, workers: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
        return [(worker, question(Forgetful(worker))) for worker in workers]

    same(grown_by_levels(table, config, n_workers=3, max_cells=100, ask=ask), grow(table, config))


@pytest.mark.parametrize("table", [general_tables.table("numbers", weighted=True), binary_tables.table(600, 0)])
def test_a_growing_that_was_interrupted_after_any_level_goes_on_from_there(table: Dataset) -> None:
    config = config_for(table, "cart", missing="fractional", max_depth=8)
    levels: list[Level] = []
    expected = grown_by_levels(table, config, max_cells=100, save=levels.append)
    assert len(levels) > 3
    for n_done in range(1, len(levels)):
        rest: list[Level] = []
        again = grown_by_levels(table, config, n_workers=2, max_cells=100, levels=levels[:n_done], save=rest.append)
        same(again, expected)
        assert len(rest) == len(levels) - n_done


def test_columns_in_files_give_the_same_tree_and_only_those_of_the_last_level_stay(tmp_path: Any) -> None:
    data = general_tables.table("classes", weighted=True)
    config = config_for(data, "c45")
    same(grown_by_levels(data, config, store=FolderStore(tmp_path), max_cells=100), grow(data, config))
    orders = [path.name for path in tmp_path.iterdir() if path.name.startswith("order") and path.name.endswith("-0")]
    assert len(orders) == 2  # that of the root, and that of the last level
    assert not list(tmp_path.glob("*.part"))


def test_two_branches_are_a_bit_a_row() -> None:
    branches = np.random.default_rng(0).integers(0, 2, 1_000).astype(np.int32)
    vector = BranchVector.of(branches, 2)
    assert vector.packed.nbytes == 125
    assert vector.branches().tolist() == branches.tolist()
    with_unknown = np.array([0, -1, 1], np.int32)
    assert BranchVector.of(with_unknown, 2).branches().tolist() == [0, -1, 1]


# What is refused, and how it ends


@pytest.mark.parametrize("changed", UNTAKEN)
def test_what_needs_more_than_one_column_at_a_time_is_refused_with_the_reason(changed: dict[str, Any]) -> None:
    assert [fault.path for fault in faults_of_levels(training_config("cart", **changed))] == [f"/{next(iter(changed))}"]


def test_every_reason_is_told_at_once() -> None:
    config = training_config("m5", max_leaf_nodes=4)
    assert [fault.path for fault in faults_of_levels(config)] == ["/max_leaf_nodes", "/leaf"]


def test_a_stop_between_two_levels_ends_the_growing() -> None:
    data = general_tables.table("classes", weighted=False)
    config, progress = config_for(data, "c45"), Progress()
    options = LevelOptions(MemoryStore(), max_cells=0, save=lambda _level: progress.stop())
    with pytest.raises(Cancelled):
        grow_by_levels(training_data(data, config), config, progress, options)


def test_a_tree_of_too_many_nodes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data = general_tables.table("numbers", weighted=False)
    config = config_for(data, "cart", missing="fractional")
    monkeypatch.setattr(general_method, "MAX_NODES", 50)
    with pytest.raises(DataError, match="more than"):
        grown_by_levels(data, config, max_cells=2_000)


def test_a_folder_that_cannot_be_written_to_is_an_error_and_leaves_no_file(tmp_path: Any) -> None:
    store = FolderStore(tmp_path / "gone")
    with pytest.raises(DataError) as refused, store.writer("codes-0") as write:
        write(np.zeros(3))
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [("/work", "not_writable")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "codes-0.part").symlink_to("/dev/full")
    with pytest.raises(DataError, match="No space left"), FolderStore(tmp_path).writer("codes-0") as write:
        write(np.zeros(100_000))
    assert list(tmp_path.iterdir()) == []


def test_a_constant_target_and_a_single_row_are_leaves() -> None:
    data = binary_tables.table(600, 2)
    for rows in (np.flatnonzero(np.asarray(data.target) == 1), [0]):
        part = data.take(rows)
        config = config_for(part, "cart")
        same(grown_by_levels(part, config), grow(part, config))
        general = replace(config, criterion="information_gain")
        same(grown_by_levels(part, general), grow(part, general))
