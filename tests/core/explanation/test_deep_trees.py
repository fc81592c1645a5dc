"""Trees of many levels, or of many leaves that one row reaches: the work grows with the nodes, by little each."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import espalier
from espalier.explanation.tree_path import conditions_of
from tests.core.counted_calls import n_calls
from tests.core.planted import MIXED, A, Ask, B, C, plant


def chain(n_rows: int) -> espalier.Model:
    """Of rows whose classes alternate the best cut takes one from an end: a chain as deep as there are rows."""
    columns = {"x": list(range(n_rows)), "y": ["p", "q"] * (n_rows // 2)}
    return espalier.train(espalier.dataset_from_columns(columns, target="y"), "cart")


@pytest.mark.parametrize("row", [{"x": 300.0}, {}], ids=["all values", "none"])
def test_a_full_explanation_of_a_chain_takes_some_calls_a_node_not_a_hundred(row: dict[str, Any]) -> None:
    model = chain(400)
    # The first time, what is kept with a model is made.
    found = espalier.explain(model, [row], detail="full", missing="fractional")
    n_entered = n_calls(
        lambda: found.extend(espalier.explain(model, [row], detail="full", missing="fractional")),
        events=("call", "c_call"),
    )

    assert n_entered < 60 * model.tree.n_nodes + 12 * sum(map(len, found[1].paths))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_row_that_reaches_thousands_of_leaves_is_answered_as_by_adding_them_up_one_by_one(kind: str) -> None:
    draw = np.random.default_rng(7)
    columns: dict[str, list[Any]] = {f"x{place}": draw.random(16_000).round(3).tolist() for place in range(3)}
    columns["c"] = draw.choice(list("abcdefgh"), 16_000).tolist()
    columns["y"] = (
        draw.choice(["p", "q", "r"], 16_000).tolist() if kind == "classes" else draw.normal(size=16_000).tolist()
    )
    model = espalier.train(espalier.dataset_from_columns(columns, target="y"), "cart")
    row = {"x1": 0.5}
    [found] = espalier.predict(model, [row], missing="fractional")

    ways = list(reached(espalier.with_missing_strategy(model, "fractional"), row))
    assert len(ways) == found.n_visits > 1_000
    parts = dict(ways)
    heaviest = sorted(map(float, parts.values()), reverse=True)[: espalier.MAX_VISITS]
    assert [visit.weight for visit in found.visits] == pytest.approx(heaviest)
    assert [float(parts[visit.leaf]) for visit in found.visits] == pytest.approx(heaviest)
    stats = model.tree.stats.tolist()
    assert found.support == pytest.approx(
        float(sum(part * Fraction(model.tree.weight[leaf].item()) for leaf, part in ways))
    )
    if kind == "classes":
        for place, (_, share) in enumerate(found.distribution):
            expected = sum(part * Fraction(stats[leaf][place]) / sum(map(Fraction, stats[leaf])) for leaf, part in ways)
            assert share == pytest.approx(float(expected))
        return
    mean = float(sum(part * Fraction(stats[leaf][1]) for leaf, part in ways))
    spread = sum(float(part) * (stats[leaf][2] / stats[leaf][0] + (stats[leaf][1] - mean) ** 2) for leaf, part in ways)
    assert found.value == pytest.approx(mean)
    assert found.std == pytest.approx(math.sqrt(spread))


def reached(model: espalier.Model, row: dict[str, Any]) -> Iterator[tuple[int, Fraction]]:
    """Give the leaves that some of a row reaches that knows numbers only, with the exact share that does."""
    tree, names = model.tree, [feature.name for feature in model.schema.attributes]
    ways = [(0, Fraction(1))]
    while ways:
        node, part = ways.pop()
        children = tree.children(node)
        if not children:
            yield node, part
        elif (value := row.get(names[tree.feature[node]])) is not None:
            ways.append((children[0 if value <= tree.threshold[node] else 1], part))
        else:
            shares = tree.branch_weight[tree.child_start[node] : tree.child_start[node + 1]].tolist()
            ways += [
                (child, part * Fraction(share)) for child, share in zip(children, shares, strict=True) if share > 0
            ]


def of_towns(labels: tuple[Any, ...], first: tuple[int, ...], second: tuple[int, ...]) -> espalier.Model:
    """Give a tree that asks for the same attribute twice: of its first branch again."""
    towns = espalier.Feature("town", espalier.FeatureKind.NOMINAL, categories=labels)
    return plant(espalier.Schema((towns, MIXED.target)), Ask(0, first, (Ask(0, second, (A, B)), C)))


def test_merged_tests_keep_labels_of_different_types_apart():
    model = of_towns((1, True, "1"), (0, 0, 1), (0, 1, -1))
    shown = [[condition.categories for condition in conditions_of(model, nodes)] for nodes in ((0, 1, 2), (0, 1, 3))]
    assert [[list(map(type, labels)) for labels in each] for each in shown] == [[[int]], [[bool]]]


def test_merging_tests_of_hundreds_of_categories_compares_none_with_another():
    class Label(str):
        __slots__ = ()
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Label.compared += 1
            return str.__eq__(self, other)

    model = of_towns(tuple(Label(f"town {place}") for place in range(300)), (0, 0, 1) * 100, (0, 1, -1) * 100)
    Label.compared = 0
    [condition] = conditions_of(model, (0, 1, 2))
    n_compared = Label.compared

    assert condition.categories == tuple(f"town {place}" for place in range(0, 300, 3))
    assert n_compared < 300  # each with each would be 20 000
