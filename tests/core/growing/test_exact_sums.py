"""Targets and weights whose sums cancel: every split, mean and square against exact rational arithmetic."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

import espalier
from espalier.growing import binary_data
from espalier.growing.grow import grow
from espalier.model.tree import Tree
from tests.reference import exact

SETTINGS = settings(deadline=None, max_examples=25, print_blob=False, suppress_health_check=list(HealthCheck))
BASES = (0.0, 1e6, 1e9 + 0.1, -1e12, 1e15, -4e15, 1e60)
SCALES = (1.0, 1e-3, 1e-40, 1e30)
STEPS = st.integers(0, 6)
WEIGHTS = st.sampled_from([0.1, 0.3, 1.0, 1.0, 2.0, 7.0])
TOLERANCE = Decimal("1e-8")
NUMBER_CRITERIA = ("squared_error", "sdr", "m5", "absolute_error", "poisson")


@st.composite
def targets(draw: st.DrawFn, n_rows: int) -> list[float]:
    """Small whole steps on a large base, in some unit, perhaps with one row far away."""
    base, scale = draw(st.sampled_from(BASES)), draw(st.sampled_from(SCALES))
    if abs(base) > 1e50 or (base and scale != 1.0):
        scale = math.ulp(base) * 4
    values = [base + scale * draw(STEPS) for _ in range(n_rows)]
    if draw(st.booleans()):
        values[draw(st.integers(0, n_rows - 1))] = draw(st.sampled_from([0.0, 1e3, -1e9, 1e15]))
    return values


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[float]], list[float], list[float]]:
    n_rows = draw(st.integers(2, 14))
    rows = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0]), min_size=n_rows, max_size=n_rows)
    weights = draw(st.one_of(st.just([1.0] * n_rows), st.lists(WEIGHTS, min_size=n_rows, max_size=n_rows)))
    return [draw(rows), draw(rows)], draw(targets(n_rows)), weights


def dataset(columns: list[list[float]], target: list[float], weights: list[float], classes: Any = ()) -> Any:
    kind = espalier.FeatureKind.NOMINAL if classes else espalier.FeatureKind.NUMERIC
    features = [espalier.Feature(f"a{place}", espalier.FeatureKind.NUMERIC) for place in range(len(columns))]
    features.append(espalier.Feature("y", kind, espalier.Role.TARGET, tuple(classes)))
    features.append(espalier.Feature("w", espalier.FeatureKind.NUMERIC, espalier.Role.WEIGHT))
    own = np.array(target, np.int32 if classes else np.float64)
    arrays = (*(np.array(column) for column in columns), own, np.array(weights))
    return espalier.Dataset(espalier.Schema(tuple(features)), arrays)


def compare(tree: Tree, criterion: str, columns: list[list[float]], rows: Any) -> None:
    """Check every node: its mean, its squares, and that no threshold gains more than the one that it has."""
    pending = [(0, list(range(len(rows))))]
    while pending:
        node, inside = pending.pop()
        own = [rows[row] for row in inside]
        if len(tree.stats[node]) == 3 and criterion in NUMBER_CRITERIA:
            largest = max(abs(value) for value, _ in own)
            assert abs(Fraction(float(tree.stats[node][1])) - exact.mean(own)) <= largest * Fraction(4, 10**15)
            squares = exact.squares(own)
            assert abs(Fraction(float(tree.stats[node][2])) - squares) <= squares / 10**9
        if tree.test[node] == 0:
            continue
        column = columns[int(tree.feature[node])]
        branches = [
            [row for row in inside if (column[row] <= tree.threshold[node]) == is_left] for is_left in (True, False)
        ]
        assert all(branches)
        gain = exact.gain(criterion, [[rows[row] for row in branch] for branch in branches])
        slack = max(TOLERANCE * exact.impurity(criterion, own), Decimal("1.1e-6") if criterion == "m5" else Decimal(0))
        assert abs(Decimal(float(tree.gain[node])) - gain) <= slack
        if criterion != "m5":  # which leaves out the ends of a column
            assert gain >= max(exact.gains(criterion, [[each[row] for row in inside] for each in columns], own)) - slack
        pending += zip(tree.children(node), branches, strict=True)


@pytest.mark.parametrize("criterion", NUMBER_CRITERIA)
@given(table=tables())
@SETTINGS
def test_splits_of_numbers_are_those_of_exact_arithmetic(criterion: str, table: Any) -> None:
    columns, target, weights = table
    assume(criterion != "poisson" or min(target) >= 0)
    config = espalier.training_config("cart", criterion=criterion, min_impurity_decrease=None)
    compare(grow(dataset(columns, target, weights), config).tree, criterion, columns, exact.rows_of(target, weights))


@given(table=tables())
@SETTINGS
def test_both_growers_are_as_exact(table: Any) -> None:
    columns, target, weights = table
    config = espalier.training_config("cart", criterion="squared_error", min_impurity_decrease=None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(binary_data, "is_for_binary_grower", lambda *_: False)
        general = grow(dataset(columns, target, weights), config).tree
    compare(general, "squared_error", columns, exact.rows_of(target, weights))


@pytest.mark.parametrize(
    ("criterion", "classes", "heaviest"),
    [("gini", "ab", 1e7), ("gini", "abc", 10.0), ("information_gain", "ab", 1e7), ("information_gain", "abc", 1e7)],
)
@given(data=st.data(), factor=st.sampled_from([1e-12, 1.0, 1e9, 1e40]))
@SETTINGS
def test_splits_of_nearly_pure_classes_are_those_of_exact_arithmetic(
    criterion: str, classes: str, heaviest: float, data: st.DataObject, factor: float
) -> None:
    columns, numbers, weights = data.draw(tables())
    codes = [float(data.draw(st.sampled_from([0, 0, 0, 1, len(classes) - 1]))) for _ in numbers]
    weights = [factor * weight * data.draw(st.sampled_from([1.0, 1.0, heaviest])) for weight in weights]
    config = espalier.training_config("cart", criterion=criterion, min_impurity_decrease=None)
    tree = grow(dataset(columns, codes, weights, classes=classes), config).tree
    compare(tree, criterion, columns, exact.rows_of(codes, weights))


@pytest.mark.parametrize("n_values", [40, 100_000])
@pytest.mark.parametrize("base", [0.0, 1e9, 1e15])
def test_many_rows_on_a_large_base_have_the_tree_of_the_small_numbers(base: float, n_values: int) -> None:
    """Columns of few values are counted per code and subtracted from one node to the next, others are sorted."""
    random = np.random.default_rng(5)
    columns = [np.floor(random.random(4000) * n_values) for _ in range(3)]
    steps = np.floor(random.random(4000) * 8) + 4 * (columns[1] > n_values / 3)
    weights = [1.0] * 4000
    config = espalier.training_config("cart", criterion="squared_error", max_depth=9)
    columns_of = [column.tolist() for column in columns]
    small = grow(dataset(columns_of, steps.tolist(), weights), config).tree
    large = grow(dataset(columns_of, (base + steps).tolist(), weights), config).tree
    np.testing.assert_array_equal(large.feature, small.feature)
    np.testing.assert_array_equal(large.threshold, small.threshold)
    np.testing.assert_allclose(large.stats[:, 2], small.stats[:, 2], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(large.value - base, small.value, atol=max(1e-12, math.ulp(base)))


def test_rows_far_away_leave_no_trace_in_the_splits_below_them() -> None:
    """The far rows are split off at the root; what is left of them in differences of counts would hide the others."""
    random = np.random.default_rng(6)
    columns = [np.floor(random.random(4000) * 40) for _ in range(3)]
    steps = np.floor(random.random(4000) * 8) + 4 * (columns[1] > 13)
    columns.append((np.arange(4000) % 10 == 0).astype(float))
    far = np.where(columns[3] > 0, 1e15 + steps, steps)
    weights = [1.0] * 4000
    config = espalier.training_config("cart", criterion="squared_error", max_depth=7)
    tree = grow(dataset([column.tolist() for column in columns], far.tolist(), weights), config).tree
    near = columns[3] == 0
    alone = grow(dataset([c[near].tolist() for c in columns], steps[near].tolist(), [1.0] * int(near.sum())), config)
    assert int(tree.feature[0]) == 3
    left = slice(1, 1 + int(tree.size[1]))
    depth = espalier.training_config("cart", criterion="squared_error", max_depth=6)
    alone = grow(dataset([c[near].tolist() for c in columns], steps[near].tolist(), [1.0] * int(near.sum())), depth)
    np.testing.assert_array_equal(tree.feature[left], alone.tree.feature)
    np.testing.assert_array_equal(tree.threshold[left], alone.tree.threshold)


@pytest.mark.parametrize("weight", [1.0, 1e49, 1e-49])
@pytest.mark.parametrize("size", [1.0, 1e99, 1e60, 1e-60, 1e-98])
@pytest.mark.parametrize("n_values", [40, 500])
def test_targets_and_weights_of_every_legal_size_have_the_same_split(size: float, weight: float, n_values: int) -> None:
    """The targets are 0 to 0.01 below x = 0.6, and 1 to 1.01 above. Columns of few values are coded, others sorted."""
    places = range(n_values)
    target = [((place >= 0.6 * n_values) + place * 7 % 11 / 1000) * size for place in places]
    data = dataset([[float(place) for place in places]], target, [weight * (1 + place % 3 / 10) for place in places])
    for fields in ({}, {"max_leaf_nodes": 2}):
        config = espalier.training_config("cart", criterion="squared_error", max_depth=1, **fields)
        assert grow(data, config).tree.threshold[0] == 0.6 * n_values - 0.5


@pytest.mark.parametrize("function", ["nunez", "tan_schlimmer", "norton"])
@pytest.mark.parametrize("size", [1.0, 1e96, 1e-96])
def test_costs_leave_the_better_attribute_first_whatever_the_size_of_gains(function: str, size: float) -> None:
    """Both attributes cost the same. The target is the second one, so its gain is the larger by every cost function."""
    columns = [[float(row // 4 % 2) for row in range(16)], [float(row % 2) for row in range(16)]]
    config = espalier.training_config(
        "cart", criterion="squared_error", cost_function=function, attribute_costs={"a0": 2, "a1": 2}, max_depth=1
    )
    target = [size * (right + left / 10) for left, right in zip(*columns, strict=True)]
    assert grow(dataset(columns, target, [1.0] * 16), config).tree.feature[0] == 1


@pytest.mark.parametrize("field", ["min_sd_fraction", "min_variance_fraction"])
@pytest.mark.parametrize("grower", [{}, {"max_leaf_nodes": 50}])
@pytest.mark.parametrize("seed", range(20))
def test_no_rounding_error_keeps_the_root_from_varying_as_much_as_the_root(
    field: str, grower: dict[str, Any], seed: int
) -> None:
    random = np.random.default_rng(seed)
    target, weights = (random.random(20) * 10).tolist(), (random.random(20) + 0.1).tolist()
    config = espalier.training_config("cart", criterion="squared_error", **{field: 1.0}, **grower)
    assert grow(dataset([list(map(float, range(20)))], target, weights), config).tree.n_nodes > 1


def test_the_figures_of_a_regression_on_a_large_base_are_those_of_the_small_numbers() -> None:
    table = [{"x": x, "y": float(x % 3)} for x in range(12)]
    base = 1e15
    small = espalier.train(espalier.dataset_from_rows(table, target="y", task="regression"), "cart", max_depth=1)
    large_rows = espalier.dataset_from_rows(
        [{**row, "y": base + row["y"]} for row in table], target="y", task="regression"
    )
    large = espalier.train(large_rows, "cart", max_depth=1)
    small_rows = espalier.dataset_from_rows(table, target="y", task="regression")
    one, other = espalier.evaluate(small, small_rows), espalier.evaluate(large, large_rows)
    assert other.r2 == pytest.approx(one.r2, abs=0.02)  # answers are rounded to eighths
    assert other.rmse == pytest.approx(one.rmse, abs=0.02)
