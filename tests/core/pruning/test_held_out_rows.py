"""Held-out rows: read by name and label, counted by weight, in any unit of the target."""

import random
from typing import Any

import numpy as np
import pytest

import espalier
from espalier import DataError, Dataset, Model, NotApplicable
from espalier.pruning.rule_lists import default_class

SIZES = [{"size": "SML"[row % 3], "x": row % 5, "y": "p" if row % 3 == 0 else "q"} for row in range(60)]


def sizes(rows: list[dict[str, Any]], *, order: str = "SML", classes: str = "pq") -> Dataset:
    columns = [
        {"name": "size", "kind": "ordinal", "categories": list(order)},
        {"name": "y", "kind": "nominal", "categories": list(classes)},
    ]
    return espalier.dataset_from_rows(rows, schema={"target": "y", "columns": columns})


HELD = [dict(row) for row in SIZES[:21]]
TURNED = [dict(reversed(row.items())) for row in HELD]


@pytest.mark.parametrize(
    "held_out",
    [
        sizes(HELD, order="LMS"),
        sizes(HELD, classes="qp"),
        sizes(HELD, classes="apq"),
        sizes(TURNED),
        sizes([{**row, "more": 1} for row in HELD]),
    ],
    ids=["order of categories", "order of classes", "a further class", "order of columns", "a further column"],
)
def test_rows_that_stop_the_growth_are_read_by_name_and_label(held_out: Dataset) -> None:
    expected = espalier.train(sizes(SIZES), "cart", validation_stop=True, holdout=sizes(HELD))
    assert expected.tree.n_leaves == 2
    stopped = espalier.train(sizes(SIZES), "cart", validation_stop=True, holdout=held_out)
    assert stopped.tree == expected.tree


def test_rows_without_an_attribute_cannot_stop_the_growth() -> None:
    rows = [{"size": row["size"], "y": row["y"]} for row in HELD]
    with pytest.raises(DataError, match="the attribute 'x' of the model is missing"):
        espalier.train(sizes(SIZES), "cart", validation_stop=True, holdout=sizes(rows))


def noise(*, unit: float = 1.0, weight: float = 1.0) -> Dataset:
    draw = random.Random(5)
    rows = [{"x": draw.random(), "z": draw.random(), "w": weight, "y": draw.gauss(0, 1) * unit} for _ in range(200)]
    return espalier.dataset_from_rows(rows, target="y", weight="w", task="regression")


@pytest.mark.parametrize("scale", [{"unit": 2.0**-40}, {"unit": 2.0**40}, {"weight": 2.0**-40}])
def test_the_unit_of_the_target_and_of_the_weights_does_not_decide_when_growth_stops(scale: dict[str, float]) -> None:
    def grown(data: Dataset) -> Model:
        return espalier.train(data, "cart", validation_stop=True, holdout=espalier.Holdout(fraction=0.3))

    plain, scaled = grown(noise()), grown(noise(**scale))
    assert plain.tree.n_leaves < 20
    assert scaled.tree.feature.tolist() == plain.tree.feature.tolist()


def test_a_class_without_weight_is_not_added_to_the_leaves() -> None:
    rows = [{"x": row % 4, "y": "c" if row % 3 else ("a" if row % 4 < 2 else "b")} for row in range(120)]
    data = espalier.dataset_from_rows(rows, target="y")
    model = espalier.train(data, "reptree", class_weight={"c": 0})
    assert model.training.backfitted
    assert [dict(one.distribution)["c"] for one in espalier.predict(model, data)] == [0.0] * 120


@pytest.mark.parametrize("class_weight", [{"b": 5}, "balanced"])
def test_added_rows_weigh_as_much_as_training_rows_of_their_class(class_weight: Any) -> None:
    rows = [{"x": 0, "y": "a" if row % 4 else "b"} for row in range(40)]
    data = espalier.dataset_from_rows(rows, target="y")
    model = espalier.train(data, "reptree", class_weight=class_weight, holdout={"rows": list(range(8))})
    factors = {"a": 1.0, "b": 5.0} if class_weight != "balanced" else {"a": 32 / (2 * 24), "b": 32 / (2 * 8)}
    assert model.tree.stats[0].tolist() == pytest.approx([30 * factors["a"], 10 * factors["b"]])


def test_balanced_weights_of_added_rows_need_the_training_rows() -> None:
    model = espalier.train(espalier.dataset_from_rows(SIZES, target="y"), "cart", class_weight="balanced")
    other = espalier.dataset_from_rows(HELD, target="y")
    with pytest.raises(NotApplicable, match=r"^backfit: must be false: balanced class weights"):
        espalier.prune(model, "reduced_error", backfit=True, holdout=other)


def test_prices_are_as_good_in_any_unit_of_the_target() -> None:
    draw = random.Random(1)
    rows = [{"x": x / 50, "z": draw.random(), "y": float(x // 50) + draw.gauss(0, 0.4)} for x in range(200)]
    leaves = []
    for unit in (1.0, 2.0**-280, 2.0**200):
        scaled = [{**row, "y": row["y"] * unit} for row in rows]
        data = espalier.dataset_from_rows(scaled, target="y", task="regression")
        pruned = espalier.prune(espalier.train(data, "cart"), "cost_complexity", select="cv", dataset=data)
        leaves.append(pruned.model.tree.n_leaves)
    assert leaves[0] > 2
    assert leaves == [leaves[0]] * 3


def test_a_held_out_row_without_weight_does_not_change_the_rules() -> None:
    def rows(seed: int) -> list[dict[str, float]]:
        draw = random.Random(seed)
        table = [{"x": draw.random(), "z": draw.random()} for _ in range(60)]
        return [{**row, "w": 1.0, "y": float(row["x"] > 0.5) + draw.gauss(0, 0.3)} for row in table]

    declared: dict[str, Any] = {"target": "y", "weight": "w", "task": "regression"}
    data = espalier.dataset_from_rows(rows(1), **declared)
    model, lists = espalier.train(data, "cart", max_depth=4), []
    for more in ([], [{"x": 0.1, "z": 0.1, "w": 0.0, "y": 1e6}]):
        held_out = espalier.dataset_from_rows([*rows(2), *more], **declared)
        lists.append(espalier.prune(model, "rules", dataset=data, holdout=held_out).model.rules)
    assert lists[0] == lists[1]


def test_the_default_class_does_not_depend_on_the_order_of_addition() -> None:
    weight = np.array([0.3, 0.1, 0.1, 0.1])  # the last three add up to 0.30000000000000004
    target = np.array([0, 1, 1, 1])
    assert default_class(np.zeros(4, np.bool_), target, weight, 2) == 0
