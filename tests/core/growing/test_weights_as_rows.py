"""What must not change a tree: a weight for a repeated row, another order of rows or columns, another scale."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

import espalier
from espalier.model.tree import Tree
from tests.core import growing_bridge
from tests.core.drawn import choices
from tests.core.growing.test_twin import same_tree
from tests.core.growing_tables import ANY_WEIGHT, CRITERIA, configs, tables, tables_of_substitutes
from tests.reference.presets import preset
from tests.reference.table import Column, Table

SETTINGS = settings(deadline=None, max_examples=30, print_blob=False, suppress_health_check=list(HealthCheck))
WHOLE = (1.0, 1.0, 2.0, 3.0)
PRESETS = ("id3", "c45", "cart", "reptree", "m5")
KINDS = {
    "id3": ["class"],
    "c45": ["class"],
    "cart": ["class", "number"],
    "reptree": ["class", "number"],
    "m5": ["number"],
}
EVERY_PRESET = [(name, kind) for name in PRESETS for kind in KINDS[name]]


def repeated(table: Table, counts: Sequence[float]) -> Table:
    rows = [row for row, count in enumerate(counts) for _ in range(int(count))]
    return dataclasses.replace(table.only(rows), weights=(1.0,) * len(rows))


def same(one: Table, other: Table, config: Mapping[str, Any], other_config: Mapping[str, Any] | None = None) -> None:
    mine = growing_bridge.grow_table(one, config)
    same_tree(mine, growing_bridge.grow_table(other, other_config or config), config["missing"])


@pytest.mark.parametrize(("name", "kind"), EVERY_PRESET)
@given(data=st.data())
@SETTINGS
def test_a_weight_is_a_row_so_many_times_in_every_preset(name: str, kind: str, data: st.DataObject) -> None:
    columns = ("nominal",) if name == "id3" else ("numeric", "numeric", "nominal", "nominal", "ordinal")
    table = data.draw(tables(kind=kind, weights=WHOLE, columns=columns))
    same(table, repeated(table, table.weights), preset(name, kind))


@pytest.mark.parametrize(("kind", "criterion"), [(kind, each) for kind in CRITERIA for each in CRITERIA[kind]])
@given(data=st.data())
@SETTINGS
def test_a_weight_is_a_row_so_many_times_whatever_is_configured(kind: str, criterion: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind=kind, weights=WHOLE))
    config = data.draw(configs(table, criterion=criterion))
    factors = config["class_weight"] or {}
    assume(any(factors.get(int(value), 1.0) > 0 for value in table.target.values))
    # Balanced classes and class weights that are not whole are numbers of rows no longer.
    same(table, repeated(table, table.weights), config)


@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@SETTINGS
def test_a_weight_is_a_row_so_many_times_for_surrogates(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables_of_substitutes(kind=kind))
    table = dataclasses.replace(table, weights=tuple(data.draw(choices(table.n_rows)).some_of(WHOLE, table.n_rows)))
    same(table, repeated(table, table.weights), preset("cart", kind, missing="surrogate"))


@given(data=st.data())
@SETTINGS
def test_a_class_weight_is_each_row_of_the_class_so_many_times_where_no_leaf_has_a_least_size(
    data: st.DataObject,
) -> None:
    table = data.draw(tables(kind="class", weights=WHOLE))
    # The average gain guard has a limit, too: from 0.3·n categories on, an attribute does not count in the average.
    limits = {"min_weight_leaf": None, "min_weight_split": None, "window": None, "max_surrogates": 0}
    limits["average_gain_guard"] = False
    factors = {code: data.draw(st.sampled_from([1.0, 2.0, 3.0])) for code in range(table.target.k)}
    config = data.draw(configs(table, **limits, class_weight=factors))
    counts = [w * factors[int(code)] for w, code in zip(table.weights, table.target.values, strict=True)]
    same(table, repeated(table, counts), config, {**config, "class_weight": None})


@pytest.mark.parametrize(
    "fields",
    [
        {"min_weight_leaf": 10},
        {"min_weight_leaf": 10, "max_leaf_nodes": 500},
        {"min_weight_leaf": 10, "leaf_weight_rule": "winner", "max_leaf_nodes": 500},
        {"min_weight_split": 30},
    ],
)
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-9, 1e12])
def test_limits_on_weight_hold_in_every_unit_of_weight(unit: float, fields: dict[str, Any]) -> None:
    """Each row weighs one unit, and the limits are multiples of it: the tree is that of limits in rows."""
    classes = [(7 * row * row + row // 3) % 11 < 5 for row in range(200)]
    rows = [{"x": row, "y": str(each), "w": unit} for row, each in enumerate(classes)]
    scaled = {name: value * unit if name.startswith("min") else value for name, value in fields.items()}
    tree = espalier.train(espalier.dataset_from_rows(rows, target="y", weight="w"), "cart", **scaled).tree
    sizes = np.rint(tree.weight / unit)
    is_leaf = tree.test == 0
    assert len(sizes) > 1
    assert sizes[is_leaf].min() >= fields.get("min_weight_leaf", 1)
    assert sizes[~is_leaf].min() >= fields.get("min_weight_split", 2 * fields.get("min_weight_leaf", 1))


@pytest.mark.parametrize("grower", [{}, {"max_leaf_nodes": 500}])
def test_a_branch_one_row_below_a_limit_of_a_million_rows_is_too_light(grower: dict[str, Any]) -> None:
    features = (
        espalier.Feature("x", espalier.FeatureKind.NUMERIC),
        espalier.Feature("y", espalier.FeatureKind.NUMERIC, espalier.Role.TARGET),
    )
    value = (np.arange(2_000_000) >= 999_999).astype(np.float64)
    data = espalier.Dataset(espalier.Schema(features), (value, value))
    n_leaves = [espalier.train(data, "cart", min_weight_leaf=least, **grower).tree.n_leaves for least in (999_999, 1e6)]
    assert n_leaves == [2, 1]


@pytest.mark.parametrize("unit", [1.0, 0.5, 0.1, 1e-3, 1e-9])
def test_median_divides_the_rows_in_half_in_every_unit_of_weight(unit: float) -> None:
    rows = [{"x": row, "y": str(row % 3 == 1), "w": unit} for row in range(64)]
    data = espalier.dataset_from_rows(rows, target="y", weight="w")
    tree = espalier.train(data, "cart", numeric="median", max_depth=3).tree
    assert tree.weight / unit == pytest.approx([64, 32, 16, 8, 8, 16, 8, 8, 32, 16, 8, 8, 16, 8, 8])


def test_the_fallback_of_equally_heavy_branches_is_the_first_whatever_the_order_of_rows() -> None:
    """0.1 + 0.2 + 0.3 is 0.6, but some orders of addition give more: rounding must not choose the branch."""
    rows = [{"x": 0, "y": "b", "w": 0.6}, *({"x": 1, "y": "a", "w": weight} for weight in (0.1, 0.2, 0.3))]
    for order in itertools.permutations(rows):
        model = espalier.train(espalier.dataset_from_rows(order, target="y", weight="w"), "cart")
        assert model.tree.fallback[0] == 0
        assert espalier.predict(model, [{"x": None}])[0].label == "b"


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e300])
def test_the_weight_of_a_class_without_rows_changes_nothing(factor: float) -> None:
    rows = [{"x": row, "y": "ab"[row // 3 % 2]} for row in range(12)]
    schema = {"columns": [{"name": "y", "kind": "nominal", "role": "target", "categories": ["a", "b", "c"]}]}
    data = espalier.dataset_from_rows(rows, schema=schema)
    for fields in ({}, {"max_leaf_nodes": 9}):
        tree = espalier.train(data, "cart", class_weight={"c": factor}, **fields).tree
        assert tree.n_leaves == 4
        assert tree.weight[tree.test == 0].tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("factor", [0.5, 1.1, 2.0])
def test_one_weight_for_all_classes_does_not_move_c45_s_limit_on_categories(factor: float) -> None:
    # 10 rows: from 3 categories on, an attribute does not count in the average gain; a has 5, b 3, d 2.
    rows = ["v5xwp", "v1xwq", "v3xup", "v3xup", "v1xvp", "v0xvq", "v5xuq", "v4xwq", "v1xuq", "v5zvp"]
    data = espalier.dataset_from_rows(
        [{"a": row[:2], "d": row[2], "b": row[3], "y": row[4]} for row in rows], target="y"
    )
    plain = espalier.train(data, "c45", pruning=None, max_depth=1)
    weighted = espalier.train(data, "c45", pruning=None, max_depth=1, class_weight={"p": factor, "q": factor})
    assert shape(weighted.tree) == shape(plain.tree)


@pytest.mark.parametrize(("name", "kind"), EVERY_PRESET)
@given(data=st.data())
@SETTINGS
def test_the_order_of_rows_does_not_decide(name: str, kind: str, data: st.DataObject) -> None:
    """Weights and targets whose sums depend on the order of addition."""
    columns = ("nominal",) if name == "id3" else ("numeric", "numeric", "nominal", "nominal", "ordinal")
    # REPTree's own rule for shared rows is exact to the last bit, and so knows the order: see decisions.
    table = data.draw(tables(kind=kind, weights=ANY_WEIGHT, columns=columns, holes=name != "reptree"))
    if kind == "number":
        target = dataclasses.replace(table.target, values=tuple(value / 10 + 0.7 for value in table.target.values))
        table = dataclasses.replace(table, target=target)
    order = data.draw(st.permutations(range(table.n_rows)))
    same(table, table.only(order), preset(name, kind))


@pytest.mark.parametrize(("name", "kind"), EVERY_PRESET[1:])
@given(data=st.data())
@SETTINGS
def test_a_rising_function_of_an_attribute_leaves_the_same_rows_in_every_leaf(
    name: str, kind: str, data: st.DataObject
) -> None:
    # A replaced missing value is a mean, which is not the mean of the new values; C4.5's gap of 1e-5 is one of values.
    table = data.draw(tables(kind=kind, columns=("numeric", "numeric", "ordinal"), holes=name != "m5"))
    table = dataclasses.replace(
        table, columns=tuple(mapped(column, lambda value: round(value, 2)) for column in table.columns)
    )
    values = data.draw(st.lists(st.integers(-(10**6), 10**6), min_size=8, max_size=8, unique=True).map(sorted))
    risen = dict(zip((-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, 7.0), (value / 100 for value in values), strict=False))
    other = dataclasses.replace(table, columns=tuple(mapped(column, risen.__getitem__) for column in table.columns))
    config = preset(name, kind)
    assert leaves(table, config) == leaves(other, config)


def mapped(column: Column, function: Callable[[float], float]) -> Column:
    """The column with other numbers; categories stay."""
    if column.kind != "numeric":
        return column
    return dataclasses.replace(column, values=tuple(None if v is None else function(v) for v in column.values))


def leaves(table: Table, config: Mapping[str, Any]) -> list[tuple[float, tuple[float, ...]]]:
    """The tests' attributes and the statistics of all nodes, in preorder."""
    tree = growing_bridge.grown_table(table, config).tree
    return [(int(tree.feature[node]), tuple(tree.stats[node])) for node in range(tree.n_nodes)]


def random_rows(kind: str, seed: int) -> list[dict[str, Any]]:
    """Rows on which no two splits gain the same."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(60):
        row = {name: float(random.random()) for name in "abc"} | {"d": str(random.choice(["u", "v", "w"]))}
        signal = row["a"] + row["b"] * (row["d"] == "u") + 0.3 * random.random()
        rows.append({**row, "y": float(signal) if kind == "number" else str(signal > 0.8)})
    return rows


@pytest.mark.parametrize("name", [*espalier.PRESETS])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_columns_decides_only_between_equal_scores(name: str, seed: int) -> None:
    if name == "id3":
        pytest.skip("takes nominal attributes only, whose few values are full of ties")
    kind = "number" if name == "m5" else "class"
    rows = random_rows(kind, seed)
    # Small nodes are full of ties, which linear models would show.
    fields = {"leaf": "constant", "smoothing": None} if name == "m5" else {}
    answers = []
    for names in itertools.islice(itertools.permutations("abcd"), 0, 24, 5):
        data = espalier.dataset_from_rows([{each: row[each] for each in (*names, "y")} for row in rows], target="y")
        model = espalier.train(data, name, pruning=None, **fields)
        answers.append(
            [answer.value if kind == "number" else answer.label for answer in espalier.predict_each(model, rows)]
        )
    assert all(
        other == pytest.approx(answers[0], rel=1e-9) if kind == "number" else other == answers[0] for other in answers
    )


@pytest.mark.parametrize("name", ["id3", "c45", "j48", "cart", "m5"])
@pytest.mark.parametrize("seed", range(4))
def test_a_trained_and_pruned_model_estimates_the_same_from_weights_and_from_repeated_rows(
    name: str, seed: int
) -> None:
    kind = "number" if name == "m5" else "class"
    random = np.random.default_rng(seed)
    rows = random_rows(kind, seed)
    if name == "id3":
        rows = [{"d": row["d"], "e": str(row["a"] > 0.5), "y": row["y"]} for row in rows]
    counts = random.integers(1, 4, len(rows))
    weighted = espalier.dataset_from_rows(
        [{**row, "n": int(count)} for row, count in zip(rows, counts, strict=True)], target="y", weight="n"
    )
    copies = espalier.dataset_from_rows(
        [row for row, count in zip(rows, counts, strict=True) for _ in range(count)], target="y"
    )
    one, other = espalier.train(weighted, name), espalier.train(copies, name)
    assert shape(one.tree) == shape(other.tree)
    for mine, its in zip(espalier.predict_each(one, rows), espalier.predict_each(other, rows), strict=True):
        assert mine.label == its.label
        assert kind == "class" or mine.value == pytest.approx(its.value, rel=1e-7)
        assert mine.support == pytest.approx(its.support)


def shape(tree: Tree) -> tuple[list[int], list[float]]:
    return tree.feature.tolist(), np.nan_to_num(tree.threshold).round(9).tolist()
