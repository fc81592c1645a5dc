"""Sufficient reasons: everything else is flipped, and the answer stays; one attribute less, and some row changes it."""

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, strategies as st

from espalier import (
    Feature,
    FeatureKind,
    Schema,
    dataset_from_rows,
    explain,
    predict,
    prune,
    render_explanation,
    train,
)
from espalier.explanation.sufficient_reasons import MAX_REASONS
from tests.core.every_row import STOP, answer, as_cells, cells_of, rows_like, with_strategy
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Known, Leaf, mixed_rows, plant, roots
from tests.service.served import TENNIS

STRATEGIES = {None: None, "fractional": "fractional", "last_prediction": STOP}


def of(model, row, **more):
    return explain(model, [row], detail="full", **more)[0]


def named(reason):
    return tuple(feature.name for feature in reason.attributes)


def flips(schema, root, cells, row, kept):
    """Whether some row with the same cells at the places `kept` is answered otherwise."""
    own = answer(schema, root, row)
    return any(answer(schema, root, other) != pytest.approx(own) for other in rows_like(cells, row, kept))


@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]), missing=st.sampled_from(list(STRATEGIES)))
def test_nothing_else_changes_the_answer_and_of_a_minimal_reason_all_is_needed(data, schema, missing):
    root, row = data.draw(roots(schema)), data.draw(mixed_rows())
    found = of(plant(schema, root), row, missing=missing)
    asked, cells = with_strategy(root, STRATEGIES[missing]), cells_of(schema, root)
    cut = as_cells(schema, row)
    assert 1 <= len(found.reasons) <= MAX_REASONS
    for reason in found.reasons:
        kept = {schema.attributes.index(feature) for feature in reason.attributes}
        assert not flips(schema, asked, cells, cut, kept), reason
        assert list(reason.values) == [cut[place] for place in kept_in_order(schema, reason)]
        if reason.minimal:
            assert all(flips(schema, asked, cells, cut, kept - {place}) for place in kept), reason


def kept_in_order(schema, reason):
    return [schema.attributes.index(feature) for feature in reason.attributes]


@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]))
def test_a_row_with_all_its_values_has_minimal_reasons_in_a_tree_without_contradictions(data, schema):
    root = data.draw(roots(schema, 2))
    row = {"length": data.draw(st.integers(-8, 8)), "colour": "red", "size": "large", "sold": True}
    on_a_way = [node.attribute for node in _tests(root)]
    found = of(plant(schema, root), row)
    seen_everywhere = all(not isinstance(node, Ask) or min(node.branches) >= 0 for node in _tests(root))
    if len(set(on_a_way)) == len(on_a_way) and seen_everywhere:
        assert all(reason.minimal for reason in found.reasons)


def _tests(root):
    if not isinstance(root, Leaf):
        yield root
        for child in root.children:
            yield from _tests(child)


def test_an_attribute_on_the_way_that_changes_nothing_is_left_out():
    root = Ask(1, (0, 1, 2), (Cut(0, 1.0, (A, B)), Cut(0, 1.0, (A, C)), B))
    (reason,) = of(plant(MIXED, root), {"colour": "green", "length": 0}).reasons
    assert reason.to_dict() == {
        "attributes": {"colour": "green", "length": 0.0},
        "minimal": True,
        "text": "if colour is green and length = 0 then a",
    }
    root = Ask(1, (0, 1, 1), (Cut(0, 1.0, (A, B)), Cut(0, 1.0, (A, C))))
    (reason,) = of(plant(MIXED, root), {"colour": "green", "length": 0}).reasons
    assert named(reason) == ("length",)
    assert reason.text == "if length = 0 then a"


def test_there_may_be_several_and_the_first_one_is_of_the_way():
    root = Cut(0, 1.0, (Ask(3, (0, 1), (B, A)), Ask(1, (0, 1, 1), (B, Ask(3, (0, 1), (B, A))))))
    found = of(plant(MIXED, root), {"length": 0, "colour": "green", "sold": True})
    assert [named(reason) for reason in found.reasons] == [("length", "sold"), ("sold", "colour")]


def test_a_missing_value_can_be_a_reason():
    found = of(plant(MIXED, Known(0, (A, B))), {})
    assert [reason.to_dict() for reason in found.reasons] == [
        {"attributes": {"length": None}, "minimal": True, "text": "if length is missing then b"}
    ]


def test_a_tree_of_one_leaf_needs_no_reason():
    assert [reason.text for reason in of(plant(MIXED, A), {}).reasons] == ["always a"]


def test_overcast_alone_makes_the_day_fit_for_tennis():
    lines = [line.split(",") for line in TENNIS.splitlines()]
    days = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    model = train(dataset_from_rows(days, target="PlayTennis"), "id3")
    row = {"Outlook": "Overcast", "Temperature": "Hot", "Humidity": "High", "Wind": "Weak"}
    assert [reason.text for reason in of(model, row).reasons] == ["if Outlook is Overcast then Yes"]
    rainy = of(model, row | {"Outlook": "Rain"})
    # Weak wind and normal humidity would do for every sky but with this humidity only rain and no wind do.
    assert [reason.text for reason in rainy.reasons] == ["if Outlook is Rain and Wind is Weak then Yes"]
    windless = of(model, row | {"Outlook": "Rain", "Humidity": "Normal"})
    assert [reason.text for reason in windless.reasons] == [
        "if Outlook is Rain and Wind is Weak then Yes",
        "if Wind is Weak and Humidity is Normal then Yes",
    ]
    text = render_explanation(rainy)
    assert "\nwhatever the other attributes are: if Outlook is Rain and Wind is Weak then Yes\n" in text


def test_where_several_leaves_answer_together_the_reason_says_that_fewer_may_be_enough():
    lines = [line.split(",") for line in TENNIS.splitlines()]
    days = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    model = train(dataset_from_rows(days, target="PlayTennis"), "c45")
    found = of(model, {"Outlook": "Overcast"}, missing="fractional")
    assert [(named(reason), reason.minimal) for reason in found.reasons] == [(("Outlook",), True)]
    found = of(model, {"Humidity": "Normal", "Wind": "Weak"})
    assert [(named(reason), reason.minimal) for reason in found.reasons] == [(("Wind", "Humidity"), False)]
    line = "whatever the other attributes are (fewer may be enough): if Wind is Weak and Humidity is Normal then Yes"
    assert line in render_explanation(found)


@pytest.mark.parametrize("seed", range(6))
def test_a_row_that_surrogates_decide_has_a_reason_that_holds(seed):
    draw = random.Random(seed)
    names = ("p", "q", "r", "s")
    table = []
    for _ in range(80):
        first = draw.randint(0, 3)
        row = {"p": first, "q": first + draw.randint(0, 1), "r": draw.choice("xyz"), "s": draw.randint(0, 2)}
        label = "yes" if (first > 1) != (row["r"] == "x") else "no"
        row = {name: None if draw.random() < 0.1 else cell for name, cell in row.items()}
        table.append({**row, "y": label})
    model = train(dataset_from_rows(table, target="y"), "cart", missing="surrogate", max_depth=3)
    cells = [[None, 0, 1, 2, 3], [None, 0, 1, 2, 3, 4], [None, "x", "y", "z"], [None, 0, 1, 2]]
    every = list(itertools.product(*cells))
    answers = {
        row: answer.label
        for row, answer in zip(
            every, predict(model, [dict(zip(names, row, strict=True)) for row in every]), strict=True
        )
    }
    decided = 0
    for row in draw.sample(every, 40):
        found = of(model, dict(zip(names, row, strict=True)))
        decided += any(step.surrogate is not None for step in found.paths[0])
        for reason in found.reasons:
            kept = {names.index(name) for name in named(reason)}
            assert {answers[other] for other in rows_like(cells, row, kept)} == {answers[row]}
    assert decided


def test_of_a_linear_leaf_the_terms_are_part_of_the_reason():
    rows = [{"x": x, "z": x % 3, "u": x % 2, "y": (3 * x + 5 * (x % 3)) if x < 20 else -4 * x} for x in range(40)]
    model = train(dataset_from_rows(rows, target="y", task="regression"), "m5", smoothing=None)
    found = of(model, {"x": 3, "z": 1, "u": 0})
    terms = {term.attribute.name for term in found.linear.terms}
    (reason, *_) = found.reasons
    assert terms <= set(named(reason))
    kept = {feature.name: value for feature, value in zip(reason.attributes, reason.values, strict=True)}
    for others in itertools.product([None, -5, 0, 1, 2, 19.5, 100], repeat=3):
        row = {**dict(zip("xzu", others, strict=True)), **kept}
        assert predict(model, [row])[0].value == found.prediction.value


def test_a_list_of_rules_has_no_reasons_but_a_cost():
    table = [{"x": x, "y": "ab"[x % 7 > 2]} for x in range(50)]
    data = dataset_from_rows(table, target="y")
    rules = prune(train(data, "c45", pruning=None), "rules", dataset=data, estimate="pessimistic").model
    found = of(rules, {"x": 3})
    assert found.reasons is None
    assert found.shap is None
    assert "reasons" not in found.to_dict()
    assert found.cost.total == len(found.cost.attributes)


def test_an_answer_whose_leaf_speaks_for_another_class_keeps_all_that_was_asked():
    # Two leaves of weight 1 and 2: together they speak for b; their values are written over, as a pruning may.
    root = Cut(0, 1.0, (Leaf((3.0, 4.0, 0.0)), Leaf((0.0, 2.0, 0.0))))
    model = plant(MIXED, root)
    tree = model.tree
    value = tree.value.copy()
    value[1] = 0
    odd = dataclasses.replace(model, body=dataclasses.replace(tree, value=value))
    (reason,) = of(odd, {"length": 0}).reasons
    assert (named(reason), reason.minimal, reason.text) == (("length",), False, "if length = 0 then a")


def test_of_a_hundred_and_thirty_attributes_those_are_kept_that_lead_away_from_another_answer():
    names = [f"x{place}" for place in range(130)]
    schema = Schema((*(Feature(name, FeatureKind.NUMERIC) for name in names), MIXED.target))
    root = A
    for place in reversed(range(130)):
        root = Cut(place, 1.0, (root, A if place % 3 else B))
    (reason,) = of(plant(schema, root), dict.fromkeys(names, 0)).reasons
    assert named(reason) == tuple(names[::3])
    assert reason.minimal


# What it costs


def test_each_attribute_that_was_asked_is_paid_once():
    tree = Cut(0, 1.0, (Cut(0, 0.0, (A, Ask(1, (0, 1, 1), (A, C)))), B))
    model = plant(MIXED, tree, attribute_costs={"length": 2.5, "size": 100}, cost_function="nunez")
    assert of(model, {"length": 0.5, "colour": "red"}).to_dict()["cost"] == {
        "total": 3.5,
        "attributes": {"length": 2.5, "colour": 1.0},
    }
    assert of(model, {"length": 3}).cost.total == 2.5
    assert of(model, {}).cost.to_dict() == {"total": 3.5, "attributes": {"length": 2.5, "colour": 1.0}}
    assert of(plant(MIXED, A), {}).cost.to_dict() == {"total": 0.0, "attributes": {}}


def test_costs_beyond_all_bounds_are_still_a_number():
    costs = {"length": 1.7e308, "colour": 1.7e308}
    model = plant(MIXED, Cut(0, 1.0, (Ask(1, (0, 1, 1), (A, C)), B)), attribute_costs=costs, cost_function="nunez")
    assert math.isfinite(of(model, {"length": 0, "colour": "red"}).cost.total)
