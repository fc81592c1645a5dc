"""The compiled grower against the slow twin on small tables full of ties, holes and repetitions."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from tests.core import growing_bridge
from tests.core.growing_tables import (
    ANY_WEIGHT,
    CRITERIA,
    NUMERICS,
    STRATEGIES,
    configs,
    nominals_of,
    tables,
    tables_of_many_categories,
    tables_of_substitutes,
    weighs_something,
)
from tests.reference import grower, missing
from tests.reference.presets import preset
from tests.reference.table import Column, Table, Target
from tests.reference.tree import Node

SETTINGS = settings(deadline=None, max_examples=50, print_blob=False, suppress_health_check=list(HealthCheck))
FEWER = settings(SETTINGS, max_examples=10)
FRACTIONAL = ("fractional", "spread")


def same_tree(ours: Node, twin: Node, strategy: str, path: str = "root") -> None:
    """Fail where two trees differ, and say in which node; `strategy` is that for missing values."""
    assert (ours.test, ours.attribute) == (twin.test, twin.attribute), path
    assert ours.threshold == twin.threshold or (math.isnan(ours.threshold) and math.isnan(twin.threshold)), path
    assert ours.branch_of_category == twin.branch_of_category, path
    assert ours.weight == pytest.approx(twin.weight, rel=1e-9, abs=1e-12), path
    assert ours.stats == pytest.approx(twin.stats, rel=1e-9, abs=1e-9), path
    assert ours.value == pytest.approx(twin.value, rel=1e-9, abs=1e-9), path
    assert len(ours.children) == len(twin.children), path
    if not twin.children:
        return
    assert ours.gain == pytest.approx(twin.gain, rel=1e-9, abs=1e-9), path
    assert ours.branch_weight == pytest.approx(twin.branch_weight, abs=1e-12), path
    assert ours.fallback == (-1 if strategy in FRACTIONAL else twin.fallback), path
    assert [s.attribute for s in ours.surrogates] == [s.attribute for s in twin.surrogates], path
    for mine, its in zip(ours.surrogates, twin.surrogates, strict=True):
        assert (mine.test, mine.below, mine.branch_of_category) == (its.test, its.below, its.branch_of_category), path
        assert mine.adjusted == pytest.approx(its.adjusted), path
    for place, (mine, its) in enumerate(zip(ours.children, twin.children, strict=True)):
        same_tree(mine, its, strategy, f"{path}/{place}")


def compare(table: Table, config: dict[str, Any], held_out: Table | None = None) -> None:
    """Grow with both and compare."""
    ours = growing_bridge.grow_table(table, config, held_out)
    same_tree(ours, grower.grow_table(table, config, held_out), config["missing"])


@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@SETTINGS
def test_on_dyadic_weights_the_tree_is_the_twin_s(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind=kind))
    config = data.draw(configs(table))
    assume(weighs_something(table, config))
    compare(table, config)


@pytest.mark.parametrize(("kind", "criterion"), [(kind, each) for kind in CRITERIA for each in CRITERIA[kind]])
@given(data=st.data())
@FEWER
def test_each_score_goes_with_each_nominal_split_and_each_strategy(
    kind: str, criterion: str, data: st.DataObject
) -> None:
    table = data.draw(tables(kind=kind, classes=(2, 2, 3)))
    chosen = data.draw(configs(table, criterion=criterion))
    assume(weighs_something(table, chosen))
    for nominal, strategy in itertools.product(nominals_of(table), STRATEGIES):
        compare(table, {**chosen, "nominal": nominal, "missing": strategy})


@pytest.mark.parametrize("name", ["c45", "cart", "reptree", "m5"])
@given(data=st.data())
@SETTINGS
def test_a_preset_grows_the_twin_s_tree(name: str, data: st.DataObject) -> None:
    kind = {"c45": "class", "m5": "number"}.get(name) or data.draw(st.sampled_from(["class", "number"]))
    compare(data.draw(tables(kind=kind)), preset(name, kind))


@pytest.mark.parametrize("numeric", NUMERICS)
@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@settings(SETTINGS, max_examples=30)
def test_the_cuts_of_numbers_are_the_twin_s(kind: str, numeric: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind=kind, columns=("numeric", "numeric", "ordinal")))
    for threshold, strategy in itertools.product(["midpoint", "observed"], ["fractional", "direction"]):
        compare(table, preset("cart", kind, numeric=numeric, threshold=threshold, missing=strategy))


@pytest.mark.parametrize("nominal", ["subset", "one_vs_rest", "ordered_binaries"])
@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@settings(SETTINGS, max_examples=30)
def test_surrogates_of_numbers_and_of_categories_are_the_twin_s(kind: str, nominal: str, data: st.DataObject) -> None:
    table = data.draw(tables_of_substitutes(kind=kind))
    compare(table, preset("cart", kind, nominal=nominal, missing="surrogate", max_surrogates=3))


@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@settings(SETTINGS, max_examples=30)
def test_more_categories_than_can_be_tried_are_divided_as_the_twin_does(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables_of_many_categories(kind=kind))
    criterion = data.draw(st.sampled_from(CRITERIA[kind]))
    for strategy in STRATEGIES:
        compare(table, preset("cart", kind, criterion=criterion, missing=strategy, max_depth=2))


@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@SETTINGS
def test_validation_rows_stop_growth_where_the_twin_s_do(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind=kind))
    rows = list(range(table.n_rows))
    held_out = table.only(data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=12)))
    config = data.draw(configs(table, validation_stop=True))
    assume(weighs_something(table, config))
    compare(table, config, held_out)


@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@SETTINGS
def test_on_any_weights_the_best_score_at_the_root_is_the_twin_s(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind=kind, weights=ANY_WEIGHT))
    config = data.draw(configs(table, max_depth=1, max_leaf_nodes=None, collapse=False))
    assume(weighs_something(table, config))
    ours, twin = growing_bridge.grow_table(table, config), grower.grow_table(table, config)
    assert (ours.test == "leaf") == (twin.test == "leaf")
    if twin.test != "leaf":
        assert ours.gain == pytest.approx(twin.gain, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("kind", ["class", "number"])
@given(data=st.data())
@SETTINGS
def test_what_goes_into_a_node_comes_out_of_it(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind=kind, weights=ANY_WEIGHT))
    config = data.draw(configs(table))
    assume(weighs_something(table, config))
    waiting = [growing_bridge.grow_table(table, config)]
    while waiting:
        node = waiting.pop()
        if not node.children:
            continue
        assert math.fsum(child.weight for child in node.children) == pytest.approx(node.weight)
        assert math.fsum(node.branch_weight) == pytest.approx(1.0)
        if kind == "class":
            for own, *parts in zip(node.stats, *(child.stats for child in node.children), strict=True):
                assert math.fsum(parts) == pytest.approx(own, abs=1e-9)
        else:
            total = math.fsum(child.stats[0] * child.stats[1] for child in node.children)
            assert total == pytest.approx(node.stats[0] * node.stats[1], abs=1e-9)
        waiting += node.children


def test_imputed_values_are_the_twin_s() -> None:
    columns = (
        Column("numeric", (1.0, None, 4.0), 0),
        Column("nominal", (2, 1, None), 3),
        Column("ordinal", (2, 0, None), 3),
    )
    table = Table(columns, Target("class", (0, 1, 1), 2), (1.0, 2.0, 0.5))
    grown = growing_bridge.grown_table(table, preset("cart", missing="imputed"))
    assert grown.preparation.imputed == missing.imputed_values(table.columns, table.weights)
