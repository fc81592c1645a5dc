"""Consultations: asked until the answer is settled, it is that of the whole row, and nothing was asked in vain."""

import dataclasses
import math

import pytest
from hypothesis import given, strategies as st

import espalier
from espalier import (
    Condition,
    ConfigError,
    RowError,
    Rule,
    RuleList,
    consult,
    dataset_from_rows,
    explain,
    extract_rules,
    predict,
    train,
)
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Leaf, mixed_rows, plant, roots
from tests.core.rule_lists import rule_lists
from tests.factories import ROOT

DAY = {"Outlook": "Sunny", "Temperature": "Hot", "Humidity": "High", "Wind": "Weak"}


def asked_until_settled(model, row, **more):
    """Reply from `row`, null where it has nothing; give every state on the way."""
    known, states = {}, [consult(model, {}, **more)]
    while states[-1].question is not None:
        name = states[-1].question.attribute.name
        assert name not in known
        known[name] = row.get(name)
        states.append(consult(model, known, **more))
    return known, states


@given(data=st.data(), missing=st.sampled_from([None, "fractional", "majority", "last_prediction"]))
def test_a_tree_asked_until_settled_answers_as_for_the_whole_row_and_asks_only_on_its_way(data, missing):
    schema = data.draw(st.sampled_from([MIXED, NUMBERS]))
    root, row = data.draw(roots(schema)), data.draw(mixed_rows())
    model = plant(schema, root)
    known, states = asked_until_settled(model, row, missing=missing)
    whole = explain(model, [row], detail="full", missing=missing)[0]
    last = states[-1]
    assert set(known) <= set(whole.cost.attributes)
    if schema is MIXED:
        assert last.label == whole.prediction.label
        assert all(whole.prediction.label in dict(state.possible) for state in states)
    else:
        assert last.value == pytest.approx(whole.prediction.value)
        for state in states:
            low, high = state.value_range
            assert low - 1e-9 <= whole.prediction.value <= high + 1e-9
    if last.prediction is not None:
        assert (last.prediction.nodes, last.prediction.support) == (whole.prediction.nodes, whole.prediction.support)
        assert set(last.cost.attributes) == set(known) == set(whole.cost.attributes)


@given(rules=rule_lists(), row=mixed_rows())
def test_a_list_of_rules_does_so_too(rules, row):
    model = dataclasses.replace(plant(MIXED, A), body=rules)
    known, states = asked_until_settled(model, row)
    whole = explain(model, [row], detail="full")[0]
    assert set(known) <= set(whole.cost.attributes)
    assert states[-1].label == whole.prediction.label
    assert all(whole.prediction.label in dict(state.possible) for state in states)
    assert states[-1].prediction is None or states[-1].prediction.leaf == whole.prediction.leaf


def test_the_tennis_tree_asks_for_the_sky_first_and_for_humidity_only_under_the_sun():
    data = espalier.dataset_from_csv(ROOT / "service" / "examples" / "play_tennis.csv", target="PlayTennis")
    model = train(data, "id3", attribute_costs={"Humidity": 3}, cost_function="nunez", cost_weight=0)
    first = consult(model, {})
    assert first.to_dict() == {
        "settled": False,
        "next": {
            "attribute": "Outlook",
            "kind": "nominal",
            "cost": 1.0,
            "node": 0,
            "categories": ["Overcast", "Rain", "Sunny"],
        },
        "possible": [{"label": "No", "weight": 5.0}, {"label": "Yes", "weight": 9.0}],
        "cost": {"total": 0.0, "attributes": {}},
    }
    sunny = consult(model, {"Outlook": "Sunny"})
    assert (sunny.question.attribute.name, sunny.question.cost) == ("Humidity", 3.0)
    assert sunny.possible == (("No", 3.0), ("Yes", 2.0))
    done = consult(model, {"Outlook": "Sunny", "Humidity": "High"})
    assert (done.label, done.prediction.support, done.cost.total) == ("No", 3.0, 4.0)
    assert consult(model, {"Outlook": "Overcast"}).label == "Yes"


def test_what_is_known_out_of_turn_narrows_what_is_possible():
    root = Ask(1, (0, 1, 2), (Cut(0, 1.0, (A, B)), Cut(0, 1.0, (A, C)), A))
    found = consult(plant(MIXED, root), {"length": 0})
    assert (found.label, found.question, found.possible) == ("a", None, (("a", 12.0),))
    assert found.prediction is None  # which leaf answers is still open
    assert consult(plant(MIXED, root), {"length": 5}).possible == (("a", 4.0), ("b", 2.0), ("c", 4.0))


def test_where_all_leaves_agree_nothing_is_asked():
    found = consult(plant(MIXED, Cut(0, 1.0, (A, Leaf((1.0, 0.0, 0.0))))), {})
    assert (found.label, found.question, found.prediction) == ("a", None, None)
    assert consult(plant(MIXED, B), {}).prediction.label == "b"


def test_that_a_value_is_not_known_is_a_reply():
    root = Cut(0, 1.0, (A, Cut(2, 0.5, (B, C), fallback=0)), fallback=1)
    asked, states = asked_until_settled(plant(MIXED, root), {"size": "large"})
    assert (list(asked), asked["length"], states[-1].label) == (["length", "size"], None, "c")
    stopped = consult(plant(MIXED, root), {"length": None}, missing="last_prediction")
    assert (stopped.label, stopped.prediction.leaf) == ("a", 0)


def test_where_a_row_is_shared_out_both_ways_are_asked():
    root = Cut(0, 1.0, (Ask(1, (0, 1, 1), (A, B)), Cut(2, 0.5, (B, C))))
    asked, states = asked_until_settled(plant(MIXED, root), {"colour": "red", "size": "large"})
    assert list(asked) == ["length", "colour", "size"]
    assert states[-1].prediction.n_visits == 2


@pytest.mark.parametrize("missing", ["surrogate", "direction", "imputed", "fractional"])
def test_trained_models_are_asked_for_no_more_than_they_look_at(missing):
    data = espalier.dataset_from_csv(ROOT / "service" / "examples" / "drug200.csv", target="Drug")
    model = train(data, "cart", missing=missing)
    names = [feature.name for feature in data.schema.attributes]
    for number, whole in enumerate(data.rows(0, 40)):
        row = {name: None if (number + place) % 3 == 0 else whole[name] for place, name in enumerate(names)}
        known, states = asked_until_settled(model, row)
        explained = explain(model, [row], detail="full")[0]
        assert states[-1].label == explained.prediction.label
        assert set(known) <= set(explained.cost.attributes)


def test_linear_leaves_are_asked_for_their_terms():
    rows = [{"x": x, "z": x % 3, "u": x % 2, "y": (3 * x + 5 * (x % 3)) if x < 20 else -4 * x} for x in range(40)]
    model = train(dataset_from_rows(rows, target="y", task="regression"), "m5")
    row = {"x": 3, "z": 1}
    known, states = asked_until_settled(model, row)
    assert states[0].value_range is None
    assert states[-1].value == predict(model, [row])[0].value
    assert set(known) <= {"x", "z", "u"}


def test_the_cost_of_a_linear_answer_is_that_of_its_tests_and_terms():
    rows = [{"a": a, "b": b, "y": (3 * a + 2 * b if a <= 4 else 3 * a + 12 * b)} for a in range(10) for b in range(10)]
    costs = {"a": 5.0, "b": 7.0}
    data = dataset_from_rows(rows, target="y", task="regression")
    model = train(data, "m5", attribute_costs=costs, cost_function="nunez")
    assert model.tree.tested() == [0]
    for row in ({"a": 3, "b": 4}, {"a": 8, "b": 1}):
        (explained,) = explain(model, [row], detail="full")
        assert {term.attribute.name for term in explained.linear.terms if term.coefficient} == {"a", "b"}
        assert explained.cost == consult(model, row).cost
        assert (explained.cost.total, explained.cost.attributes) == (12.0, costs)


@pytest.mark.parametrize("preset", ["cart", "c45"])
def test_rules_of_a_tree_that_imputes_are_asked_as_the_tree_is(preset):
    rows = [{"x": 0, "z": place % 2, "y": "A"} for place in range(40)]
    rows += [{"x": 1, "z": 0, "y": "C"}] * 10 + [{"x": 1, "z": 1, "y": "AC"[place % 3 > 0]} for place in range(9)]
    rows += [{"x": 2, "z": place % 2, "y": "BC"[place % 2]} for place in range(20)]
    model = train(dataset_from_rows(rows, target="y"), preset, missing="imputed")
    rules = extract_rules(model)
    for known in ({}, {"x": 0}, {"x": 1}, {"x": 2}, {"z": 0}, {"z": 1}, {"x": None}, {"x": 2, "z": 0}):
        of_tree, of_rules = consult(model, known), consult(rules, known)
        assert of_rules.possible == of_tree.possible
        assert (of_rules.label, of_rules.question is None) == (of_tree.label, of_tree.question is None)
    assert consult(rules, {"x": 1}).label == "C"


def test_where_a_value_may_stay_missing_the_default_rule_stays_possible():
    model = extract_rules(plant(MIXED, Cut(0, 1.0, (B, Cut(2, 0.5, (B, A)))), imputed=(math.nan, 0.0, 0.0, 0.0)))
    assert consult(model, {"size": "small"}).possible == (("a", 0.0), ("b", 4.0))
    assert predict(model, [{"size": "small"}])[0].leaf == model.rules.n_rules


def test_a_rule_that_has_failed_already_is_not_asked_further():
    length, colour, *_ = MIXED.attributes
    rules = (
        Rule((Condition(length, above=1.0), Condition(colour, categories=("red",))), 1, 3.0, (0.0, 3.0, 0.0)),
        Rule((Condition(length, at_most=0.0),), 2, 2.0, (0.0, 0.0, 2.0)),
    )
    body = RuleList(rules, Rule((), 0, 1.0, (1.0, 0.0, 0.0)), exclusive=False)
    model = dataclasses.replace(plant(MIXED, A), body=body)
    assert consult(model, {}).possible == (("a", 1.0), ("b", 3.0), ("c", 2.0))
    green = consult(model, {"colour": "green"})
    assert (green.question.attribute.name, green.question.node) == ("length", 1)
    assert green.possible == (("a", 1.0), ("c", 2.0))
    assert consult(model, {"colour": "green", "length": -1}).prediction.leaf == 1


def test_what_is_not_legal_is_refused_by_its_place():
    model = plant(MIXED, Cut(0, 1.0, (A, B)))
    with pytest.raises(RowError) as refused:
        consult(model, {"length": "long", "x": 1})
    assert {fault.path for fault in refused.value.faults} == {"/length", "/x"}
    with pytest.raises(ConfigError):
        consult(model, {}, missing="somehow")
