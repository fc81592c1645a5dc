"""Shapley values of an answer: against Shapley's own formula, against the package shap, and by arithmetic."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    Feature,
    FeatureKind,
    Role,
    Schema,
    dataset_from_columns,
    dataset_from_rows,
    explain,
    from_pmml,
    train,
)
from espalier.explanation import shap
from tests.core.every_row import STOP, as_cells, shapley, with_strategy
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Known, Leaf, mixed_rows, plant, roots

STRATEGIES = {None: None, "fractional": "fractional", "last_prediction": STOP}


def of(model, row, **more):
    return explain(model, [row], detail="full", **more)[0]


def the_answer(explanation):
    prediction = explanation.prediction
    return prediction.value if prediction.value is not None else prediction.distribution[prediction.code][1]


@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]), missing=st.sampled_from(list(STRATEGIES)))
def test_they_are_those_of_the_formula_over_every_set_of_attributes(data, schema, missing):
    root, row = data.draw(roots(schema)), data.draw(mixed_rows())
    found = of(plant(schema, root), row, missing=missing)
    slow = shapley(
        schema, with_strategy(root, STRATEGIES[missing]), as_cells(schema, row), max(found.prediction.code, 0)
    )
    by_name = dict(zip((feature.name for feature in schema.attributes), slow, strict=True))
    assert dict(found.shap.contributions) == pytest.approx(
        {name: by_name[name] for name in found.shap.contributions}, abs=1e-9
    )
    assert [value for name, value in by_name.items() if name not in found.shap.contributions] == pytest.approx(
        [0.0] * (len(slow) - len(found.shap.contributions)), abs=1e-9
    )
    assert found.shap.baseline + math.fsum(slow) == pytest.approx(the_answer(found), abs=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_on_trees_of_two_branches_they_are_those_of_the_package_shap(task):
    package = pytest.importorskip("shap")
    draw = np.random.default_rng(3)
    cells = draw.normal(size=(200, 4)).round(1)
    number = cells[:, 0] + cells[:, 1] * cells[:, 2] + (cells[:, 3] > 0.5)
    target = np.where(number > 0.4, "a", np.where(number > 0, "b", "c")) if task == "classification" else number
    names = [f"x{place}" for place in range(4)]
    columns = {name: cells[:, place].tolist() for place, name in enumerate(names)}
    data = dataset_from_columns({**columns, "y": target.tolist()}, target="y")
    model = train(data, "cart", max_depth=7)
    tree = model.tree
    inner = tree.test != 0
    first = np.where(inner, tree.child_start[:-1], 0)
    left, right = (np.where(inner, tree.child[first + at * inner], -1).astype(np.int32) for at in (0, 1))
    described = {
        "children_left": left,
        "children_right": right,
        "children_default": left,
        "features": np.where(inner, tree.feature, 0).astype(np.int32),
        "thresholds": np.where(inner, tree.threshold, 0.0),
        "values": tree.stats / tree.stats.sum(axis=1)[:, None] if model.schema.classes else tree.value[:, None],
        "node_sample_weight": tree.weight,
    }
    judge = package.TreeExplainer({"trees": [described]}, feature_perturbation="tree_path_dependent")
    theirs = judge.shap_values(cells[:40], check_additivity=False).reshape(40, 4, -1)
    for row, values in zip(cells[:40].tolist(), theirs, strict=True):
        found = of(model, dict(zip(names, row, strict=True)))
        code = max(found.prediction.code, 0)
        assert [found.shap.contributions.get(name, 0.0) for name in names] == pytest.approx(
            values[:, code].tolist(), abs=1e-6
        )
        assert found.shap.baseline == pytest.approx(float(np.atleast_1d(judge.expected_value)[code]), abs=1e-6)


def test_both_attributes_of_an_and_have_the_same_part_though_one_is_asked_first():
    no, yes = Leaf((1.0, 0.0, 0.0)), Leaf((0.0, 1.0, 0.0))
    root = Ask(3, (0, 1), (Leaf((2.0, 0.0, 0.0)), Ask(1, (0, 1, -1), (no, yes))))
    found = of(plant(MIXED, root), {"sold": True, "colour": "green"})
    # Of four rows one is b; either value alone makes it one of two: (1/2)(1/2 − 1/4) + (1/2)(1 − 1/2) = 3/8 each.
    assert found.shap.baseline == pytest.approx(1 / 4)
    assert dict(found.shap.contributions) == pytest.approx({"colour": 3 / 8, "sold": 3 / 8})
    assert dict(found.contributions) == pytest.approx({"sold": 1 / 4, "colour": 1 / 2})


def test_a_branch_without_training_rows_is_no_hindrance():
    schema = Schema(
        (
            Feature("sky", FeatureKind.NOMINAL, categories=("sun", "rain", "snow")),
            Feature("wind", FeatureKind.NUMERIC),
            Feature("play", FeatureKind.NOMINAL, Role.TARGET, ("no", "yes")),
        )
    )
    rows = [{"sky": sky, "wind": wind, "play": play} for sky, wind, play in (
        ("sun", 1, "yes"), ("sun", 2, "yes"), ("sun", 9, "no"), ("rain", 1, "no"), ("rain", 3, "no"),
    )]  # fmt: skip
    model = train(dataset_from_rows(rows, schema=schema), "id3", numeric="best", missing="fractional")
    for row in ({"sky": "snow"}, {"sky": "snow", "wind": 5}, {}, {"wind": 1}, {"sky": "hail"}):
        found = of(model, row)
        assert found.shap.baseline == pytest.approx({"no": 3 / 5, "yes": 2 / 5}[found.prediction.label])
        assert found.shap.baseline + math.fsum(found.shap.contributions.values()) == pytest.approx(the_answer(found))


IMPORTED = """<PMML version="4.4" xmlns="http://www.dmg.org/PMML-4_4"><Header/><DataDictionary>
<DataField name="x" optype="continuous" dataType="double"/><DataField name="z" optype="continuous" dataType="double"/>
<DataField name="y" optype="continuous" dataType="double"/></DataDictionary>
<TreeModel functionName="regression" missingValueStrategy="STRATEGY"><MiningSchema>
<MiningField name="x"/><MiningField name="z"/><MiningField name="y" usageType="target"/></MiningSchema>
<Node id="0" score="4" recordCount="10" defaultChild="1"><True/>
<Node id="1" score="1" recordCount="6"><SimplePredicate field="x" operator="lessOrEqual" value="0"/></Node>
<Node id="2" score="8.5" recordCount="4" defaultChild="3"><SimplePredicate field="x" operator="greaterThan" value="0"/>
<Node id="3" score="7" recordCount="2"><SimplePredicate field="z" operator="lessOrEqual" value="0"/></Node>
<Node id="4" score="10" recordCount="2"><SimplePredicate field="z" operator="greaterThan" value="0"/></Node>
</Node></Node></TreeModel></PMML>"""


@pytest.mark.parametrize("strategy", ["defaultChild", "lastPrediction"])
def test_the_answer_of_an_imported_node_to_a_missing_value_has_no_rows_in_the_game(strategy):
    found = of(from_pmml(IMPORTED.replace("STRATEGY", strategy).encode()), {"x": 1, "z": 1}).shap
    nothing, x, z, both = 4.0, (7 + 10) / 2, 0.6 * 1 + 0.4 * 10, 10.0
    assert found.baseline == pytest.approx(nothing)
    assert found.contributions == pytest.approx(
        {"x": ((x - nothing) + (both - z)) / 2, "z": ((z - nothing) + (both - x)) / 2}
    )


def test_a_long_chain_of_tests_adds_up():
    root = Leaf((1.0, 2.0, 0.0))
    for number in range(300):
        attribute = number % 3
        threshold = {0: 500.0 - number, 1: None, 2: 1.5}[attribute]
        leaf = Leaf((float(number % 7), 1.0, 2.0))
        root = Known(1, (root, leaf)) if threshold is None else Cut(attribute, threshold, (root, leaf))
    found = of(plant(MIXED, root), {"colour": "red"})
    assert found.shap.baseline + math.fsum(found.shap.contributions.values()) == pytest.approx(the_answer(found))


@pytest.mark.parametrize("size", [1e-300, 1e-5, 1e140])
def test_numbers_of_any_size_add_up(size):
    root = Cut(0, 1.0, (Leaf((3.0, size, 0.0)), Cut(0, 2.0, (Leaf((1.0, -size, 0.0)), Leaf((1.0, size / 2, 0.0))))))
    found = of(plant(NUMBERS, root), {"length": 1.5})
    assert found.shap.baseline == pytest.approx(size * 2.5 / 5)
    assert found.shap.contributions["length"] == pytest.approx(-1.5 * size)


@pytest.mark.parametrize("n_attributes", [1, 2, 3, 24, 65])
def test_with_many_attributes_on_a_way_the_quadrature_is_still_exact(n_attributes):
    draw = random.Random(n_attributes)
    features = [Feature(f"x{place}", FeatureKind.NUMERIC) for place in range(n_attributes)]
    schema = Schema((*features, Feature("y", FeatureKind.NUMERIC, Role.TARGET)))
    root = Leaf((1.0, 1.0, 0.0))
    for place in reversed(range(n_attributes)):
        root = Cut(place, 0.0, (Leaf((float(draw.randint(1, 4)), 0.0, 0.0)), root))
    found = of(plant(schema, root), {feature.name: 1.0 for feature in features})
    # The last leaf alone says 1: a game of products, in which an attribute's part is the mean over all orders.
    weights = _weights_left(root)
    covers = [below / whole for whole, below in pairwise(weights)]
    assert list(found.shap.contributions.values()) == pytest.approx(_of_product(covers), rel=1e-9)


def _weights_left(root):
    weights = []
    while isinstance(root, Cut):
        rest = root
        weights.append(0.0)
        while isinstance(rest, Cut):
            weights[-1] += rest.children[0].stats[0]
            rest = rest.children[1]
        weights[-1] += rest.stats[0]
        root = root.children[1]
    return [*weights, root.stats[0]]


def _of_product(covers):
    """Shapley values of v(S) = the product of the covers outside S, by the sizes of S (elementary polynomials)."""
    n, found = len(covers), []
    for player, own in enumerate(covers):
        # by_size[k]: the sum over sets S of k others of the product of the covers of the others outside S
        by_size = [1.0] + [0.0] * (n - 1)
        for other, cover in enumerate(covers):
            if other != player:
                by_size = [by_size[k] * cover + (by_size[k - 1] if k else 0.0) for k in range(n)]
        sizes = range(n)
        found.append(math.fsum(by_size[k] / (n * math.comb(n - 1, k)) for k in sizes) * (1 - own))
    return found


def test_linear_leaves_have_none_and_smoothed_constants_do():
    rows = [{"x": x, "z": x % 3, "y": (2 * x if x < 10 else 50 - x) + x % 3} for x in range(40)]
    linear = of(train(dataset_from_rows(rows, target="y", task="regression"), "m5"), {"x": 3, "z": 1})
    assert linear.shap is None
    assert "shap" not in linear.to_dict()
    constant = of(
        train(dataset_from_rows(rows, target="y", task="regression"), "m5", leaf="constant"), {"x": 3, "z": 1}
    )
    added = constant.shap.baseline + math.fsum(constant.shap.contributions.values())
    assert added == pytest.approx(constant.prediction.value)


@given(root=roots(MIXED), row=mixed_rows())
def test_taken_in_small_portions_they_are_the_same(root, row):
    model = plant(MIXED, root)
    whole = of(model, row).shap
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shap, "MAX_CELLS", 1)
        portions = of(model, row).shap
    assert dict(portions.contributions) == pytest.approx(dict(whole.contributions), abs=1e-12)
