"""The twin against scikit-learn as it is installed: what the reference folder has no figures for.

Weights, class weights, best-first growth, least decrease, absolute error, Poisson deviance, and missing values in
training and prediction. Compared are shape, the gain at the root and the answers on the training rows.
"""

import math
import random
from importlib.metadata import version
from typing import Any

import pytest

from tests.factories import REFERENCE, needs_reference
from tests.reference import tree
from tests.reference.presets import preset
from tests.reference.replay import train
from tests.reference.table import Cell, Column, Table, read_table

learn = pytest.importorskip("sklearn.tree", reason="scikit-learn is a development dependency")
pytestmark = needs_reference

LIMITS: list[dict[str, Any]] = [
    {"max_leaf_nodes": 6},
    {"max_depth": 3},
    {"max_depth": 4, "min_samples_leaf": 5},
    {"max_depth": 4, "min_impurity_decrease": 0.02},
]
FIELDS = {"min_samples_leaf": "min_weight_leaf"}
CASES = [
    *((name, criterion) for name in ("iris", "kyphosis") for criterion in ("gini", "entropy")),
    *(("cpu", criterion) for criterion in ("squared_error", "absolute_error", "poisson")),
]


def with_holes(table: Table, share: float) -> Table:
    """The table with some cells missing."""
    draw = random.Random(7)

    def holed(column: Column) -> Column:
        values: tuple[Cell, ...] = tuple(None if draw.random() < share else value for value in column.values)
        return Column("numeric", values)

    return Table(tuple(map(holed, table.columns)), table.target, table.weights)


def weighted(table: Table) -> Table:
    draw = random.Random(3)
    return Table(table.columns, table.target, tuple(float(draw.randint(1, 4)) for _ in table.weights))


def compare(table: Table, criterion: str, limits: dict[str, Any], **both: Any) -> None:
    kind = table.target.kind
    maker = learn.DecisionTreeClassifier if kind == "class" else learn.DecisionTreeRegressor
    rows = [[math.nan if v is None else v for v in table.row(i)] for i in range(table.n_rows)]
    grown = [maker(criterion=criterion, random_state=seed, **limits, **both) for seed in range(5)]
    for each in grown:
        each.fit(rows, list(table.target.values), sample_weight=list(table.weights))
    theirs = grown[0]
    if any(list(each.predict(rows)) != list(theirs.predict(rows)) for each in grown):
        pytest.skip("equal scores: the tree depends on scikit-learn's seed")
    ours_criterion = "information_gain" if criterion == "entropy" else criterion
    fields = {FIELDS.get(name, name): value for name, value in limits.items()}
    ours = train(table, preset("cart", kind, criterion=ours_criterion, **fields, **both))
    assert (tree.n_nodes(ours.tree), tree.depth(ours.tree)) == (theirs.tree_.node_count, theirs.get_depth())
    assert ours.tree.gain == pytest.approx(root_gain(theirs.tree_), rel=1e-9)
    answers = [ours.answer(table.row(i), kind) for i in range(table.n_rows)]
    assert answers == pytest.approx(list(theirs.predict(rows)), rel=1e-9)


def root_gain(arrays: Any) -> float:
    children = (arrays.children_left[0], arrays.children_right[0])
    after = math.fsum(arrays.weighted_n_node_samples[child] * arrays.impurity[child] for child in children)
    return float(arrays.impurity[0] - after / arrays.weighted_n_node_samples[0])


@pytest.mark.parametrize(("name", "criterion"), CASES)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_trees_under_limits_are_the_same(name: str, criterion: str, limits: dict[str, Any]) -> None:
    compare(read_table(REFERENCE, name), criterion, limits)


@pytest.mark.parametrize(("name", "criterion"), CASES)
def test_trees_of_weighted_rows_are_the_same(name: str, criterion: str) -> None:
    compare(weighted(read_table(REFERENCE, name)), criterion, {"max_depth": 3})


@pytest.mark.parametrize("name", ["iris", "kyphosis"])
def test_trees_of_balanced_classes_are_the_same(name: str) -> None:
    compare(read_table(REFERENCE, name), "gini", {"max_depth": 4}, class_weight="balanced")


@pytest.mark.parametrize(("name", "criterion"), [case for case in CASES if case[1] != "absolute_error"])
@pytest.mark.parametrize("limits", [{"max_depth": 3}, {"max_depth": 3, "min_samples_leaf": 6}], ids=str)
def test_trees_of_rows_with_missing_values_are_the_same(name: str, criterion: str, limits: dict[str, Any]) -> None:
    if criterion == "poisson" and tuple(map(int, version("scikit-learn").split(".")[:2])) < (1, 9):
        pytest.skip("before 1.9 scikit-learn splits otherwise by the Poisson deviance if values are missing")
    compare(with_holes(read_table(REFERENCE, name), 0.2), criterion, limits)
