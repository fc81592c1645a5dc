"""Shapes that break careless growers: chains, a great many categories or columns, ties without end, one row, none."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from espalier import Cancelled, ConfigError, DataError, Dataset, Feature, FeatureKind, Role, Schema, training_config
from espalier.config.presets import resolved
from espalier.growing import binary_grower, general_grower, grow as growing
from espalier.growing.grow import Grown, grow
from espalier.growing.kernels.binary import tree as binary_tree
from espalier.progress import Progress

MOST_TRIES = 20


def numeric_table(columns: np.ndarray, target: np.ndarray, n_classes: int) -> Dataset:
    features = [Feature(f"a{place}", FeatureKind.NUMERIC) for place in range(len(columns))]
    return with_target(features, list(columns), target, n_classes)


def with_target(features: list[Feature], columns: list[np.ndarray], target: np.ndarray, n_classes: int) -> Dataset:
    kind = FeatureKind.NOMINAL if n_classes else FeatureKind.NUMERIC
    features = [*features, Feature("target", kind, Role.TARGET, tuple(range(n_classes)))]
    return Dataset(Schema(tuple(features)), (*columns, target))


def grown(data: Dataset, preset: str = "cart", progress: Progress | None = None, **fields: object) -> Grown:
    return grow(data, resolved(training_config(preset, **fields), data.schema), progress=progress)


@pytest.mark.parametrize("preset", ["cart", "c45"])
def test_a_million_rows_of_two_values_are_cut_once(preset: str) -> None:
    values = np.arange(1_000_000, dtype=np.float64) % 2
    data = numeric_table(values[None, :], (values + (np.arange(1_000_000) % 10 == 0) > 0.5).astype(np.int32), 2)
    assert grown(data, preset).tree.n_leaves == 2


@pytest.mark.parametrize("preset", ["cart", "id3"])
def test_a_hundred_thousand_categories_are_divided(preset: str) -> None:
    n_rows, n_categories = 200_000, 100_000
    codes = (np.arange(n_rows) % n_categories).astype(np.int32)
    target = (codes % 3 == 0).astype(np.int32)
    feature = Feature("town", FeatureKind.NOMINAL, categories=tuple(range(n_categories)))
    tree = grown(with_target([feature], [codes], target, 2), preset).tree
    assert tree.n_leaves == (2 if preset == "cart" else n_categories)
    assert int(tree.stats[tree.test == 0].min(axis=1).max()) == 0


def test_medians_of_many_branches_take_no_pass_over_the_rows_for_each_branch() -> None:
    """Category k has the targets k and k + 2, so its median is k + 1."""
    n_categories = 40_000
    codes = (np.arange(2 * n_categories) % n_categories).astype(np.int32)
    target = codes + 2.0 * (np.arange(2 * n_categories) >= n_categories)
    feature = Feature("town", FeatureKind.NOMINAL, categories=tuple(range(n_categories)))
    data, seconds = with_target([feature], [codes], target, 0), []
    for criterion in ("squared_error", "absolute_error"):
        start = time.process_time()
        tree = grown(data, criterion=criterion, nominal="multiway", missing="fractional").tree
        seconds.append(time.process_time() - start)
        assert tree.value[1:].tolist() == [code + 1.0 for code in range(n_categories)]
    assert seconds[1] < 50 * (seconds[0] + 0.01)  # a pass for each branch takes thousands of times as long


def test_ten_thousand_columns_are_looked_through() -> None:
    random = np.random.default_rng(0)
    columns = random.integers(0, 3, (10_000, 300)).astype(np.float64)
    tree = grown(numeric_table(columns, (columns[7_777] > 1).astype(np.int32), 2)).tree
    assert tree.n_nodes == 3
    assert int(tree.feature[0]) == 7_777


@pytest.mark.parametrize(
    ("n_rows", "criterion"),
    [(20_000, "gini"), (4_000, "information_gain"), pytest.param(100_000, "gini", marks=pytest.mark.slow)],
)
def test_a_chain_of_tests_needs_no_recursion(n_rows: int, criterion: str) -> None:
    # Of rows whose classes alternate, the best cut takes one from the end: a chain as deep as there are rows.
    values = np.arange(n_rows, dtype=np.float64)
    classes = (np.arange(n_rows) % 2).astype(np.int32)
    tree = grown(numeric_table(values[None, :], classes, 2), criterion=criterion).tree
    assert tree.n_leaves == n_rows
    assert tree.depth == n_rows - 1


def test_one_row_is_a_leaf() -> None:
    data = numeric_table(np.array([[1.0]]), np.array([1], dtype=np.int32), 2)
    assert grown(data).tree.n_nodes == 1


def test_no_rows_are_refused() -> None:
    data = numeric_table(np.zeros((10, 0)), np.zeros(0, dtype=np.int32), 2)
    with pytest.raises(DataError, match="no row"):
        grown(data)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_target_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(DataError, match="target"):
        grown(numeric_table(np.zeros((1, 2)), np.array([1.0, value]), 0))


def test_an_infinite_attribute_is_refused_by_its_name() -> None:
    with pytest.raises(DataError) as caught:
        grown(numeric_table(np.array([[1.0, np.inf]]), np.array([0, 1], dtype=np.int32), 2))
    assert caught.value.faults[0].path == "/a0"


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_a_weight_that_is_negative_or_missing_is_refused(weight: float) -> None:
    schema = Schema(
        (
            Feature("a", FeatureKind.NUMERIC),
            Feature("w", FeatureKind.NUMERIC, Role.WEIGHT),
            Feature("t", FeatureKind.NOMINAL, Role.TARGET, (0, 1)),
        )
    )
    data = Dataset(schema, (np.array([0.0, 1.0]), np.array([1.0, weight]), np.array([0, 1], dtype=np.int32)))
    with pytest.raises(DataError, match="/w: a weight must "):
        grown(data)


def test_a_count_below_zero_is_refused_for_poisson() -> None:
    with pytest.raises(DataError, match="poisson"):
        grown(numeric_table(np.zeros((1, 2)), np.array([1.0, -1.0]), 0), criterion="poisson")


def test_stopping_by_validation_without_validation_rows_is_refused() -> None:
    data = numeric_table(np.array([[0.0, 1.0]]), np.array([0, 1], dtype=np.int32), 2)
    with pytest.raises(ConfigError, match="held-out"):
        grown(data, validation_stop=True)


@pytest.mark.parametrize("grower", ["binary", "general"])
def test_a_stop_is_seen_while_a_kernel_runs(grower: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name = (binary_tree, "grow_subtree") if grower == "binary" else (general_grower, "grow_tree")
    kernel, n_nodes = getattr(place, name), []

    def counting(*arguments: Any) -> Any:
        made = kernel(*arguments)
        n_nodes.append(made if grower == "binary" else arguments[0].nodes.n)
        return made

    monkeypatch.setattr(place, name, counting)
    n_rows = 60_000  # neighbours of other classes: one is split off after the other, which takes a while
    data = numeric_table(np.arange(float(n_rows))[None, :], np.arange(n_rows, dtype=np.int32) % 2, 2)
    fields = {} if grower == "binary" else {"criterion": "information_gain"}
    monkeypatch.setattr(binary_grower, "MIN_ROWS_TO_SHARE", n_rows + 1)  # the whole tree is one call
    monkeypatch.setattr(growing, "n_threads", lambda: 1)

    def is_stopped_in_time() -> bool:
        progress, is_over = Progress(), threading.Event()

        def stop() -> None:
            while not ((progress.phase == "growing" and progress.share > 0) or is_over.is_set()):
                time.sleep(0.001)
            progress.stop()

        watcher = threading.Thread(target=stop)
        watcher.start()
        try:
            grown(data, progress=progress, **fields)
        except Cancelled:
            return True
        finally:
            is_over.set()
            watcher.join()
        return False

    # Where the machine is busy, the kernel may be done before the watcher wakes.
    assert any(is_stopped_in_time() for _ in range(MOST_TRIES))
    assert 1 <= n_nodes[-1] < 2 * n_rows - 1


def test_progress_ends_at_one() -> None:
    random = np.random.default_rng(0)
    for fields in ({}, {"criterion": "information_gain"}):
        progress = Progress()
        data = numeric_table(random.standard_normal((3, 500)), random.integers(0, 2, 500).astype(np.int32), 2)
        grown(data, progress=progress, **fields)
        assert progress.state[0] == pytest.approx(1.0)
