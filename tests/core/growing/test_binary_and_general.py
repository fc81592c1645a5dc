"""The binary grower against the general one, and one thread against several: the same tree, whoever grows it."""

import itertools
import time
from typing import Any

import numpy as np
import pytest

from espalier import DataError, Dataset, Feature, FeatureKind, Role, Schema, training_config
from espalier.config.presets import resolved
from espalier.growing import binary_data, binary_grower, grow as growing
from espalier.growing.binary_data import row_bits_of
from espalier.growing.grow import grow
from espalier.model.tree import Tree

KINDS = {"two classes": 2, "four classes": 4, "numbers": 0}


def table(
    n_rows: int, n_classes: int, *, weights: str = "unit", n_values: int | None = None, n_columns: int = 6
) -> Dataset:
    """Random columns, a third of them continuous, the others of few values; weights that add up exactly, or do not."""
    random = np.random.default_rng(n_rows + n_classes)
    features, columns = [], []
    for place in range(n_columns):
        if place % 3 == 0 and n_values is None:
            column = random.standard_normal(n_rows)
        else:
            column = random.integers(0, n_values or 5 * place + 2, n_rows).astype(np.float64)
        features.append(Feature(f"a{place}", FeatureKind.NUMERIC))
        columns.append(column)
    features.append(Feature("known", FeatureKind.BOOLEAN, categories=(False, True)))
    columns.append(random.integers(0, 2, n_rows).astype(np.int32))
    features.append(Feature("size", FeatureKind.ORDINAL, categories=tuple(range(300))))
    columns.append(random.integers(0, 300, n_rows).astype(np.int32))
    signal = columns[0] + columns[1] * 0.5 + random.integers(-2, 3, n_rows)
    if n_classes:
        target = np.clip(np.floor(signal), 0, n_classes - 1).astype(np.int32)
        features.append(Feature("target", FeatureKind.NOMINAL, Role.TARGET, tuple(range(n_classes))))
    else:
        target = np.round(signal * 4) / 4
        features.append(Feature("target", FeatureKind.NUMERIC, Role.TARGET))
    columns.append(target)
    if weights != "unit":
        features.append(Feature("weight", FeatureKind.NUMERIC, Role.WEIGHT))
        some = [0.0, 0.25, 0.5, 1.0, 2.0] if weights == "dyadic" else [0.1, 0.3, 1.0004, 0.9991]
        columns.append(random.choice(some, n_rows))
    return Dataset(Schema(tuple(features)), tuple(columns))


def tree_of(data: Dataset, **fields: Any) -> Tree:
    return grow(data, resolved(training_config("cart", **fields), data.schema)).tree


def general_tree(data: Dataset, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Tree:
    with monkeypatch.context() as patched:
        patched.setattr(binary_data, "is_for_binary_grower", lambda *_: False)
        return tree_of(data, **fields)


def same_tree(one: Tree, other: Tree) -> None:
    for name in ("parent", "feature", "test", "threshold", "code_branch", "fallback"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("weight", "gain", "stats", "value", "branch_weight"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("weights", ["unit", "dyadic"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"max_depth": 4},
        {"min_weight_leaf": 5.0},
        {"min_weight_split": 20.0, "threshold": "observed"},
        {"min_impurity_decrease": None},
        {"min_impurity_decrease": 0.001},
        {"missing": "fractional"},
    ],
)
def test_both_growers_grow_the_same_tree(
    kind: str, weights: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(700, KINDS[kind], weights=weights)
    same_tree(tree_of(data, **fields), general_tree(data, monkeypatch, **fields))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [40, 700, 2500])
def test_each_branch_has_rows_where_weights_do_not_add_up_exactly(kind: str, n_rows: int) -> None:
    tree = tree_of(table(n_rows, KINDS[kind], weights="decimal", n_values=3), max_depth=9)
    lost = tree.weight[tree.parent[1:]] - tree.weight[1:]
    assert np.min(lost) > 0.09  # the lightest row weighs 0.1


@pytest.mark.parametrize("kind", ["two classes", "four classes"])
@pytest.mark.parametrize("least", [5.0, 20.0])
def test_both_growers_collapse_the_same_subtrees(kind: str, least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(700, KINDS[kind])
    collapsed = tree_of(data, min_weight_leaf=least, collapse=True)
    same_tree(collapsed, general_tree(data, monkeypatch, min_weight_leaf=least, collapse=True))
    assert collapsed.n_nodes < tree_of(data, min_weight_leaf=least).n_nodes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_values", [1, 2, 3])
def test_both_growers_agree_where_nearly_everything_is_tied(
    kind: str, n_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(60, KINDS[kind], n_values=n_values)
    same_tree(tree_of(data), general_tree(data, monkeypatch))


@pytest.mark.parametrize("weights", ["unit", "dyadic"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_values", [None, 2, 300])
def test_the_tree_does_not_depend_on_the_number_of_threads(
    kind: str, weights: str, n_values: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(3000, KINDS[kind], weights=weights, n_values=n_values)
    monkeypatch.setattr(growing, "n_threads", lambda: 1)
    one = tree_of(data)
    monkeypatch.setattr(growing, "n_threads", lambda: 3)
    monkeypatch.setattr(binary_grower, "MIN_JOB_ROWS", 100)
    monkeypatch.setattr(binary_grower, "MIN_ROWS_TO_SHARE", 100)
    several = tree_of(data)
    assert several == one
    several.validate(n_attributes=len(data.schema.attributes))


def test_a_thread_that_fails_says_why_and_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = binary_grower.binary_tree.grow_subtree
    begun, numbers, deadline = [], itertools.count(), time.monotonic() + 20

    def grow_or_fail(*arguments: Any) -> Any:
        begun.append(arguments)
        if next(numbers) == 0:
            raise MemoryError("no room for the subtree")
        stopped = arguments[3].progress
        while not stopped[1] and time.monotonic() < deadline:  # one that takes longer than until the failure is seen
            time.sleep(0.001)
        return grown(*arguments)

    monkeypatch.setattr(binary_grower.binary_tree, "grow_subtree", grow_or_fail)
    monkeypatch.setattr(growing, "n_threads", lambda: 2)
    monkeypatch.setattr(binary_grower, "MIN_JOB_ROWS", 100)
    monkeypatch.setattr(binary_grower, "MIN_ROWS_TO_SHARE", 100)
    with pytest.raises(MemoryError, match="no room for the subtree"):
        tree_of(table(3000, KINDS["two classes"]))
    assert len(begun) <= 2  # of many: the other thread's own, if it had begun


def test_an_entry_of_an_order_holds_every_class_and_at_least_16_million_rows() -> None:
    for n_classes in range(257):
        row_bits = row_bits_of(n_classes)
        assert n_classes <= 1 << (32 - row_bits)
        assert 1 << row_bits >= 1 << 24
    assert [row_bits_of(n_classes) for n_classes in (0, 2, 3, 4, 5, 256)] == [31, 31, 30, 30, 29, 24]


def test_a_tree_of_too_many_nodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(300, 2)
    n_nodes = tree_of(data).n_nodes
    monkeypatch.setattr(growing, "MAX_NODES", n_nodes)
    assert tree_of(data).n_nodes == n_nodes
    monkeypatch.setattr(growing, "MAX_NODES", n_nodes - 1)
    with pytest.raises(DataError, match="the tree would have more than"):
        tree_of(data)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_a_boolean_attribute_is_ordered_by_the_mean_target_in_both_growers(
    criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is larger where the attribute is false, so true is the lower branch."""
    known = np.array([0, 1, 1] * 4, np.int32)
    target = np.where(known == 0, 1, np.arange(12) % 2 * (np.arange(12) < 4)).astype(np.int32)
    kind, classes = (FeatureKind.NOMINAL, (0, 1)) if criterion == "gini" else (FeatureKind.NUMERIC, ())
    features = (
        Feature("known", FeatureKind.BOOLEAN, categories=(False, True)),
        Feature("y", kind, Role.TARGET, classes),
    )
    data = Dataset(Schema(features), (known, target))
    fields = {"criterion": criterion, "nominal": "ordered_binaries"}
    tree = tree_of(data, **fields)
    assert tree.code_branch.tolist() == [1, 0]
    same_tree(tree, general_tree(data, monkeypatch, **fields))


@pytest.mark.parametrize("weight", [2.0, 0.5])
def test_limits_count_rows_without_class_weights_where_both_weights_together_are_one(
    weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaf needs 20 rows; there are 25 rows of the class a."""
    rows = np.arange(300)
    features = (
        Feature("x", FeatureKind.NUMERIC),
        Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b")),
        Feature("w", FeatureKind.NUMERIC, Role.WEIGHT),
    )
    data = Dataset(Schema(features), (rows.astype(float), (rows >= 25).astype(np.int32), np.full(300, weight)))
    class_weight = {"a": 1 / weight, "b": 1 / weight}
    for n_rows, threshold in ((20, 24.5), (40, 39.5)):
        fields = {"class_weight": class_weight, "min_weight_leaf": n_rows * weight}
        tree = tree_of(data, **fields)
        assert tree.threshold[0] == threshold
        same_tree(tree, general_tree(data, monkeypatch, **fields))
