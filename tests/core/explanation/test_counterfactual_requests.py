"""Changes asked of trained models, and requests that are refused."""

import itertools
import math
import random

import pytest

import espalier
from espalier import (
    ConfigError,
    NotApplicable,
    RowError,
    counterfactuals,
    dataset_from_rows,
    predict,
    train,
)
from espalier.explanation.counterfactuals import counterfactual, search
from tests.core.planted import MIXED, NUMBERS, A, B, Cut, Leaf
from tests.core.proposals import WHOLE, changed, measured
from tests.factories import ROOT


@pytest.mark.parametrize("preset", ["id3", "c45", "cart"])
def test_a_sunny_day_becomes_fit_for_tennis(preset):
    data = espalier.dataset_from_csv(ROOT / "service" / "examples" / "play_tennis.csv", target="PlayTennis")
    row = {"Outlook": "Sunny", "Temperature": "Hot", "Humidity": "High", "Wind": "Weak"}
    found = counterfactuals(
        train(data, preset, **({} if preset == "id3" else {"pruning": None})), row, immutable=["Outlook"]
    )
    assert found.proposals[0].text == "if Humidity were Normal instead of High then Yes"


@pytest.mark.parametrize("missing", ["surrogate", "fractional", "direction", "majority"])
def test_of_trained_models_every_proposal_holds_whatever_is_missing(missing):
    data = espalier.dataset_from_csv(ROOT / "service" / "examples" / "drug200.csv", target="Drug")
    model = train(data, "cart", missing=missing)
    names = [feature.name for feature in data.schema.attributes]
    for number, whole in enumerate(data.rows(0, 60)):
        row = {name: None if (number + place) % 3 == 0 else whole[name] for place, name in enumerate(names)}
        own = predict(model, [row])[0].label
        found = counterfactuals(model, row)
        assert found.proposals
        for proposal in found.proposals:
            assert predict(model, [changed(row, proposal)])[0].label == proposal.prediction.label != own


def test_a_regression_is_asked_for_a_range():
    root = Cut(0, 1.0, (Leaf((2.0, 5.0, 0.0)), Cut(0, 3.0, (Leaf((2.0, 9.0, 0.0)), Leaf((2.0, 20.0, 0.0))))))
    model = measured(NUMBERS, root, 1.0)
    for wanted, after in (([8, 10], 2), ([10, None], 4), ([None, 19.5], None), ([100, 200], None)):
        if wanted[0] is None:
            with pytest.raises(ConfigError) as refused:
                counterfactuals(model, WHOLE, value_range=wanted)
            assert refused.value.faults[0].path == "/range"
            continue
        found = counterfactuals(model, WHOLE, value_range=wanted)
        assert [change.after for each in found.proposals for change in each.changes] == ([after] if after else [])


def test_linear_leaves_are_refused_with_what_to_do():
    rows = [{"x": x, "y": 3 * x if x < 20 else -4 * x} for x in range(40)]
    model = train(dataset_from_rows(rows, target="y", task="regression"), "m5")
    with pytest.raises(NotApplicable, match="leaf=constant"):
        counterfactuals(model, {"x": 3}, value_range=[0, 1])


def test_a_search_that_is_given_up_says_so(monkeypatch):
    root = Cut(0, 0.0, (A, Cut(0, 1.0, (A, B))))
    monkeypatch.setattr(search, "MAX_EDGES", 1)
    found = counterfactuals(measured(MIXED, root), {**WHOLE, "length": -4})
    assert (found.proposals, found.complete) == ((), False)


def squares(n_categories):
    """A tree of two tests, each with a branch for every category; it has a leaf for every pair."""
    pairs = itertools.product(range(n_categories), repeat=2)
    classes = {(n_categories - 1, n_categories - 1): "q"}
    rows = [{"a": f"a{i}", "b": f"b{j}", "y": classes.get((i, j), "rp"[(i + j) % 2])} for i, j in pairs]
    fields = {"min_weight_leaf": 0.0, "collapse": False, "average_gain_guard": False, "missing": "fractional"}
    return train(dataset_from_rows(rows, target="y"), "c45", pruning=None, **fields)


def test_an_answer_is_proposed_before_tests_of_the_same_cost_are_followed(monkeypatch):
    model = squares(4)
    # Of the root, four branches lead to a wanted answer; of the next test, two.
    monkeypatch.setattr(search, "MAX_EDGES", 4 + 2)
    found = counterfactuals(model, {"a": "a0", "b": "b0"}, most=2)
    assert [each.text for each in found.proposals] == [f"if b were b{to} instead of b0 then p" for to in (1, 3)]
    assert found.complete
    more = counterfactuals(model, {"a": "a0", "b": "b0"}, most=3)
    assert (more.proposals, more.complete) == (found.proposals, False)


def test_the_unchanged_row_is_not_predicted_again(monkeypatch):
    model = squares(6)
    # If only a or only b is given, six leaves answer. This happens 6 + 6 times, before both are given.
    monkeypatch.setattr(counterfactual, "MAX_VISITED", 2 * 6 * 6 + 3)
    assert len(counterfactuals(model, {}, most=1).proposals) == 1


def test_costs_ascend_where_a_later_test_moves_a_number_nearer_to_its_threshold():
    for seed in range(50, 60):
        drawn = random.Random(seed)
        numbers = [drawn.choice([1, -1]) * 10.0 ** drawn.randint(-310, 307) for _ in range(30)]
        rows = [{"x": x, "z": drawn.choice(numbers), "y": drawn.choice("pqr")} for x in numbers]
        model = train(dataset_from_rows(rows, target="y"), "cart")
        costs = [each.cost for each in counterfactuals(model, {"x": numbers[0], "z": numbers[1]}, most=100).proposals]
        assert costs == sorted(costs)


def unseen_below(missing):
    """Below a = x, no training row has b = w; together, the leaves below answer r, although each alone does not."""
    cells = [("xup", 5), ("xur", 4), ("xvq", 5), ("xvr", 4), ("zus", 9), ("zvs", 9), ("zws", 9)]
    rows = [dict(zip("aby", letters, strict=True)) for letters, times in cells for _ in range(times)]
    return train(dataset_from_rows(rows, target="y"), "cart", missing=missing)


def test_a_category_at_which_the_row_ends_is_proposed():
    model, row = unseen_below("fractional"), {"a": "x", "b": "u"}
    assert predict(model, [{**row, "b": "w"}], missing="last_prediction")[0].label == "r"
    found = counterfactuals(model, row, label="r", missing="last_prediction")
    assert [each.text for each in found.proposals] == ["if b were w instead of u then r"]
    assert found.complete
    fixed = counterfactuals(model, row, label="r", missing="last_prediction", immutable=["b"])
    assert (fixed.proposals, fixed.complete) == ((), True)


def test_where_another_category_would_divide_the_row_nobody_says_that_there_is_no_other_change():
    model, row = unseen_below("fractional"), {"a": "x", "b": "u"}
    assert predict(model, [{**row, "b": "w"}])[0].label == "r"
    assert not counterfactuals(model, row, label="r").complete
    assert counterfactuals(model, row, label="r", immutable=["b"]).complete
    # Below a = z, training has seen every category.
    assert counterfactuals(model, {"a": "z", "b": "u"}, label="r", immutable=["a"]).complete
    assert counterfactuals(model, row, label="r", missing="majority").complete


def test_where_a_surrogate_would_decide_another_category_nobody_says_that_there_is_no_other_change():
    cells = [("xu1p", 5), ("xv2q", 4), ("xv1q", 1), ("zu1s", 9), ("zv2s", 9), ("zw1s", 9)]
    rows = [dict(zip("abcy", letters, strict=True)) for letters, times in cells for _ in range(times)]
    model, row = train(dataset_from_rows(rows, target="y"), "cart", missing="surrogate"), {"a": "x", "b": "u", "c": 2}
    assert predict(model, [row])[0].label == "p"
    assert predict(model, [{**row, "b": "w"}])[0].label == "q"  # c decides
    found = counterfactuals(model, row, label="q", immutable=["a"])
    assert [each.text for each in found.proposals] == ["if b were v instead of u then q"]
    assert not found.complete
    assert counterfactuals(model, row, label="q", immutable=["a", "b"]).complete


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"label": "z"}, {"/label": "unknown_value"}),
        ({"label": ["a"]}, {"/label": "unknown_value"}),
        ({"label": "a"}, {"/label": "not_legal"}),
        ({"value_range": [0, 1]}, {"/range": "not_legal"}),
        ({"immutable": "length"}, {"/immutable": "wrong_type"}),
        (
            {"immutable": ["length", "lenght", 3]},
            {"/immutable/1": "unknown_attribute", "/immutable/2": "unknown_attribute"},
        ),
        ({"costs": {"length": -1, "x": 1}}, {"/costs/length": "not_legal", "/costs/x": "unknown_attribute"}),
        ({"costs": {"length": 10**400}}, {"/costs/length": "not_legal"}),
        ({"costs": {"length": True}}, {"/costs/length": "not_legal"}),
        ({"costs": []}, {"/costs": "wrong_type"}),
        ({"spans": {"length": 0, "colour": 2}}, {"/spans/length": "not_legal", "/spans/colour": "not_legal"}),
        ({"most": 0}, {"/max": "not_legal"}),
        ({"most": 1.0}, {"/max": "not_legal"}),
        ({"missing": "somehow"}, {"/missing": "unknown_value"}),
    ],
)
def test_a_request_that_is_not_legal_is_refused_by_its_place(fields, paths):
    with pytest.raises(ConfigError) as refused:
        counterfactuals(measured(MIXED, Cut(0, 1.0, (A, B))), WHOLE, **fields)
    assert {fault.path: fault.code for fault in refused.value.faults} == paths


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (None, "required"),
        ([1], "wrong_type"),
        ("12", "wrong_type"),
        ([None, None], "wrong_type"),
        ([True, 2], "wrong_type"),
        ([3, 2], "not_legal"),
        ([math.nan, 2], "not_legal"),
    ],
)
def test_a_range_that_is_none_is_refused(wanted, code):
    with pytest.raises(ConfigError) as refused:
        counterfactuals(measured(NUMBERS, Leaf((1.0, 5.0, 0.0))), WHOLE, value_range=wanted)
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [("/range", code)]


def test_a_row_that_cannot_be_read_is_refused_by_attribute():
    with pytest.raises(RowError) as refused:
        counterfactuals(measured(MIXED, Cut(0, 1.0, (A, B))), {"length": "long", "x": 1})
    assert {fault.path for fault in refused.value.faults} == {"/length", "/x"}


def test_where_every_answer_is_that_of_many_leaves_the_work_is_bounded(monkeypatch):
    root = Cut(0, 0.0, (Cut(0, -2.0, (A, Cut(2, 0.5, (A, B)))), Cut(2, 1.5, (A, Cut(2, 0.5, (B, A))))))
    whole = counterfactuals(measured(MIXED, root), {}, most=1)
    monkeypatch.setattr(counterfactual, "MAX_VISITED", 1)
    found = counterfactuals(measured(MIXED, root), {}, most=1)
    assert whole.complete
    assert not found.complete
    assert len(found.proposals) <= len(whole.proposals)


def test_where_a_surrogate_decides_nobody_says_that_there_is_no_other_change():
    rows = [{"a": place % 2, "b": place % 2, "y": "no" if place % 2 else "yes"} for place in range(20)]
    model = train(dataset_from_rows(rows, target="y"), "cart", missing="surrogate")
    assert [each.label for each in predict(model, [{"b": 0}, {"b": 1}])] == ["yes", "no"]
    found = counterfactuals(model, {"b": 0}, immutable=["a"])
    assert (found.proposals, found.complete) == ((), False)
    assert counterfactuals(model, {"b": 0}, most=1).complete
    assert counterfactuals(model, {"a": 0}).complete


def test_where_a_row_is_divided_nobody_says_that_there_is_no_other_change():
    low, high, most = (Leaf((1.0, number, 0.0)) for number in (0.0, 8.0, 12.0))
    model = measured(NUMBERS, Cut(0, 0.0, (low, Cut(2, 0.5, (high, most)))))
    row = {"size": "small"}
    # The mean changes from (0 + 2 · 8) / 3 to (0 + 2 · 12) / 3 = 8, but no leaf answers with a number from 7 to 7.9.
    assert [each.value for each in predict(model, [row, {"size": "large"}])] == pytest.approx([16 / 3, 8.0])
    found = counterfactuals(model, row, value_range=[7.95, 8.05], immutable=["length"])
    assert not found.complete
    assert counterfactuals(model, {**row, "length": 1}, value_range=[20, None]).complete
