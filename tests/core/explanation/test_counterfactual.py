"""The nearest change that leads to an answer, held against a search of all points."""

import dataclasses
import itertools
import json
import math
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from espalier import (
    counterfactuals,
    dataset_from_rows,
    predict,
    train,
)
from espalier.model.preparation import Preparation, Scale
from tests.core.every_row import answer as answer_slowly, as_cells, as_row, nodes_of, with_strategy
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Known, mixed_rows, plant, roots, walk
from tests.core.proposals import SPAN, WHOLE, changed, measured
from tests.core.rule_lists import rule_lists
from tests.reference.counterfactual import cheapest, gower

CLOSE = 1e-5  # five attributes, each a margin of 1e-6 at most
LENGTHS = {0.0: [], 1.0: [float(whole) for whole in range(-9, 10)]}


def grid(schema, root, step):
    """Every cell between which a tree can tell, and every legal one where there are steps."""
    cuts = sorted({node.threshold for node in nodes_of(root) if isinstance(node, Cut) and node.attribute == 0})
    above = [math.nextafter(cut, math.inf) for cut in cuts]
    lengths = LENGTHS[step] if step else [-99.0, *cuts, *above]
    return [lengths, *(list(feature.categories) for feature in schema.attributes[1:])]


def gowers(schema, row, costs=(1, 1, 1, 1)):
    """What it costs to take a cell."""
    kinds = [
        {"span": SPAN},
        {},
        {"order": list(schema.attributes[2].categories)},
        {},
    ]
    known = [own if at == 0 or own in schema.attributes[at].categories else None for at, own in enumerate(row)]
    return [
        lambda cell, own=own, kind=kind, cost=cost: cost * gower(own, cell, **kind)
        for own, kind, cost in zip(known, kinds, costs, strict=True)
    ]


def cells_as_given(schema, row):
    return tuple(row.get(feature.name) for feature in schema.attributes)


def may_be_shared(root, cells):
    """Whether there are tests that share a row out, and one of them might do so with this row, once it is changed."""
    sharing = [node for node in nodes_of(root) if isinstance(node, Cut | Ask) and node.fallback == -1]
    lacking = any(cell not in (MIXED.attributes[at].categories or (cell,)) for at, cell in enumerate(cells) if at)
    unseen_there = any(isinstance(node, Ask) and min(node.branches) < 0 for node in sharing)
    return bool(sharing) and (lacking or cells[0] is None or unseen_there)


def by_leaf(found, *, may_omit=False):
    assert found.complete or may_omit
    return {proposal.leaf: proposal.cost for proposal in found.proposals}


@given(data=st.data(), step=st.sampled_from([0.0, 1.0]))
def test_of_each_leaf_that_answers_alone_the_nearest_point_is_found(data, step):
    root, row = data.draw(roots(MIXED)), data.draw(mixed_rows())
    model, cells = measured(MIXED, root, step), cells_as_given(MIXED, row)
    own = predict(model, [row])[0]

    def whole_answer(point):
        ways = walk(MIXED, root, point)
        stats = ways[0][2].stats
        return ways[0][1] if len(ways) == 1 and stats.index(max(stats)) != own.code else None

    expected = cheapest(grid(MIXED, root, step), cells, answer=whole_answer, prices=gowers(MIXED, cells))
    found = counterfactuals(model, row, most=100)
    shared = may_be_shared(root, cells)
    costs = by_leaf(found, may_omit=shared)
    for leaf, cost in expected.items():
        # Left as it is, a missing value may do where one that is given does: what holds is kept, and is no dearer.
        assert leaf in costs or shared, (leaf, cost, costs)
        if leaf in costs:
            assert costs[leaf] <= cost + CLOSE
            assert shared or costs[leaf] >= cost - CLOSE
    assert shared or costs.keys() == expected.keys()


@given(
    data=st.data(), step=st.sampled_from([0.0, 1.0]), missing=st.sampled_from([None, "fractional", "last_prediction"])
)
def test_every_proposal_holds_and_they_come_nearest_first(data, step, missing):
    schema = data.draw(st.sampled_from([MIXED, NUMBERS]))
    root, row = data.draw(roots(schema)), data.draw(mixed_rows())
    model = measured(schema, root, step)
    asked = with_strategy(root, {"last_prediction": "stop"}.get(missing, missing))
    own = predict(model, [row], missing=missing)[0]
    fields = {} if schema is MIXED else {"value_range": [own.value + 0.5, None]}
    found = counterfactuals(model, row, most=100, missing=missing, **fields)
    assert found.prediction == own
    costs = [proposal.cost for proposal in found.proposals]
    assert all(one <= other + CLOSE for one, other in itertools.pairwise(costs))
    assert len({proposal.leaf for proposal in found.proposals}) == len(costs)
    prices = gowers(schema, cells_as_given(schema, row))
    for proposal in found.proposals:
        other = changed(row, proposal)
        slow = answer_slowly(schema, asked, as_cells(schema, other))
        assert slow == pytest.approx(proposal.prediction.code if schema is MIXED else proposal.prediction.value)
        assert slow != own.code if schema is MIXED else slow >= own.value + 0.5
        assert predict(model, [other], missing=missing)[0].to_dict() == proposal.prediction.to_dict()
        for change in proposal.changes:
            place = schema.attributes.index(change.attribute)
            assert change.before == row.get(change.attribute.name)
            assert change.after is not None
            assert change.distance == pytest.approx(prices[place](change.after), abs=1e-12)
            assert not change.attribute.coded or change.after in change.attribute.categories
            assert place or not step or isinstance(change.after, int)


@given(data=st.data(), fixed=st.sets(st.integers(0, 3)), costs=st.tuples(*[st.integers(0, 3)] * 4))
def test_what_is_immutable_stays_and_costs_are_counted(data, fixed, costs):
    root, row = data.draw(roots(MIXED)), data.draw(mixed_rows())
    model, cells = measured(MIXED, root, 1.0), cells_as_given(MIXED, row)
    names = [feature.name for feature in MIXED.attributes]
    own = predict(model, [row])[0]
    for label in {"a", "b", "c"} - {own.label}:
        code = "abc".index(label)

        def whole_answer(point, code=code):
            ways = walk(MIXED, root, point)
            return (len(ways) == 1 and ways[0][2].stats.index(max(ways[0][2].stats)) == code) or None

        free = [[] if place in fixed else each for place, each in enumerate(grid(MIXED, root, 1.0))]
        expected = cheapest(free, cells, answer=whole_answer, prices=gowers(MIXED, cells, costs))
        immutable = [names[place] for place in fixed]
        found = counterfactuals(
            model, row, label=label, immutable=immutable, costs=dict(zip(names, costs, strict=True)), most=1
        )
        assert all(change.attribute.name not in immutable for each in found.proposals for change in each.changes)
        assert all(each.prediction.label == label for each in found.proposals)
        if expected:
            assert found.proposals[0].cost <= expected[True] + 3 * CLOSE
        if not may_be_shared(root, cells):
            assert len(found.proposals) == len(expected)
            assert not expected or found.proposals[0].cost == pytest.approx(expected[True], abs=3 * CLOSE)


def test_a_number_goes_just_beyond_the_threshold_or_onto_it():
    root = Cut(0, 2.45, (A, B))
    (up,) = counterfactuals(measured(MIXED, root), WHOLE).proposals
    assert up.changes[0].after == 2.450004  # within a millionth of the span above 2.45, in the fewest digits
    assert 2.45 < up.changes[0].after <= 2.45 + SPAN * Fraction(1, 10**6)
    (down,) = counterfactuals(measured(MIXED, root), {**WHOLE, "length": 5.1}).proposals
    assert down.changes[0].after == 2.45
    (whole,) = counterfactuals(measured(MIXED, root, 1.0), WHOLE).proposals
    assert (whole.changes[0].after, type(whole.changes[0].after)) == (3, int)
    (whole_down,) = counterfactuals(measured(MIXED, root, 1.0), {**WHOLE, "length": 5}).proposals
    assert whole_down.changes[0].after == 2
    assert whole_down.text == "if length were 2 instead of 5 then a"
    assert whole_down.to_dict() == {
        "changes": [{"attribute": "length", "from": 5, "to": 2, "distance": 3 / SPAN, "cost": 3 / SPAN}],
        "distance": 3 / SPAN,
        "cost": 3 / SPAN,
        "leaf": 1,
        "answer": predict(plant(MIXED, root), [{"length": 2, **{k: v for k, v in WHOLE.items() if k != "length"}}])[
            0
        ].to_dict(),
        "text": "if length were 2 instead of 5 then a",
    }


def test_one_number_far_away_does_not_move_a_proposal_away_from_its_threshold():
    numbers = (0.1, 0.2, 0.3, 0.45, 0.7, 1e9)
    pairs = [(x, z) for x in numbers for z in (0.1, 0.9)]
    rows = [{"x": x, "z": z, "y": "p" if x < 0.25 and z < 0.5 else "q"} for x, z in pairs]
    model = train(dataset_from_rows(rows, target="y"), "cart")
    found = counterfactuals(model, {"x": 0.1, "z": 0.1}, costs={"x": 1e7, "z": 1})
    near, far = found.proposals
    assert near.text == "if x were 0.2501 instead of 0.1 then q"  # at most a thousandth above the threshold 0.25
    assert near.cost == pytest.approx((0.25 - 0.1) * 1e7 / 1e9, rel=1e-2)
    assert far.changes[0].attribute.name == "z"
    near_data = train(dataset_from_rows(rows[:-2], target="y"), "cart")
    by_hand = counterfactuals(near_data, {"x": 0.1, "z": 0.1}, spans={"x": 1e9}, immutable=["z"])
    assert 0.25 < by_hand.proposals[0].changes[0].after <= 0.25 * 1.001


def test_a_number_just_above_zero_is_no_subnormal_one():
    model = measured(MIXED, Cut(0, 0.0, (A, B)))
    (found,) = counterfactuals(model, WHOLE).proposals  # the row's own number is the threshold
    assert 1e-9 < found.changes[0].after <= SPAN / 1e6


@given(data=st.data(), step=st.sampled_from([0.0, 1.0]))
def test_where_a_row_ends_at_tests_of_its_missing_values_the_nearest_point_of_each_class_is_found(data, step):
    root, row = data.draw(roots(MIXED)), data.draw(mixed_rows())
    ending, cells = with_strategy(root, "stop"), cells_as_given(MIXED, row)
    model = measured(MIXED, root, step)
    own = predict(model, [row], missing="last_prediction")[0].code

    def other_class(point):
        code = answer_slowly(MIXED, ending, as_cells(MIXED, as_row(MIXED, point)))
        return None if code == own else (code,)

    expected = cheapest(grid(MIXED, root, step), cells, answer=other_class, prices=gowers(MIXED, cells))
    found = counterfactuals(model, row, most=100, missing="last_prediction")
    assert found.complete
    costs = {}
    for proposal in found.proposals:
        costs.setdefault((proposal.prediction.code,), proposal.cost)
    assert costs == pytest.approx(expected, abs=CLOSE)


def test_a_box_without_a_whole_number_is_not_proposed():
    root = Cut(0, 1.2, (A, Cut(0, 1.7, (B, A))))
    assert counterfactuals(measured(MIXED, root, 1.0), WHOLE).proposals == ()
    (found,) = counterfactuals(measured(MIXED, root), WHOLE).proposals
    assert 1.2 < found.changes[0].after <= 1.7


def test_numbers_as_large_as_there_are_have_neighbours_too():
    for threshold in (1.7e308, -1.7e308, 5e-324, 2.0**60):
        root = Cut(0, threshold, (A, B))
        model = plant(MIXED, root)
        for step in (0.0, 1.0):
            sized = dataclasses.replace(model, preparation=Preparation(None, (Scale(1e308, 0.0, step),) + (None,) * 3))
            for length in (-1.79e308, 0.0, 1.79e308):
                found = counterfactuals(sized, {**WHOLE, "length": length})
                own = found.prediction.label
                assert [each.prediction.label for each in found.proposals] == (["b"] if own == "a" else ["a"])


def test_dates_move_to_the_next_day_where_all_were_days():
    days = [{"on": f"2026-03-{day:02}", "y": "late" if day > 12 else "early"} for day in range(1, 29)]
    schema = {"target": "y", "columns": [{"name": "on", "kind": "datetime"}]}
    model = train(dataset_from_rows(days, schema=schema), "cart")
    (found,) = counterfactuals(model, {"on": "2026-03-10"}).proposals
    assert found.text == "if on were 2026-03-13 instead of 2026-03-10 then late"
    (back,) = counterfactuals(model, {"on": "2026-03-20T10:00:00"}).proposals
    assert back.changes[0].after == "2026-03-12"
    times = [{"on": f"2026-03-01T10:00:00.{part:06}", "y": "late" if part > 12 else "early"} for part in range(1, 29)]
    fine = train(dataset_from_rows(times, schema=schema), "cart")
    (found,) = counterfactuals(fine, {"on": "2026-03-01"}).proposals
    assert found.prediction.label == "late"
    assert found.changes[0].after.startswith("2026-03-01T10:00:00.00001")


@pytest.mark.parametrize(
    ("kind", "cell", "shown"),
    [
        ("datetime", pd.Timestamp("2026-03-10"), "2026-03-10"),
        ("datetime", date(2026, 3, 10), "2026-03-10"),
        ("datetime", datetime(2026, 3, 10, 6, tzinfo=UTC), "2026-03-10T06:00:00+00:00"),
        ("datetime", np.datetime64("2026-03-10"), "2026-03-10"),
        ("numeric", Decimal("0.5"), 0.5),
        ("numeric", np.float32(0.5), 0.5),
        ("numeric", np.int64(0), 0),
        ("nominal", np.str_("a"), "a"),
        ("nominal", date(2026, 3, 10), "2026-03-10"),
        ("nominal", Decimal("1.50"), "1.50"),
    ],
)
def test_a_proposal_for_a_row_of_other_libraries_is_json(kind, cell, shown):
    values = {"datetime": ["2026-03-10", "2026-03-20"], "numeric": [0, 9], "nominal": ["a", "b"]}[kind]
    rows = [{"x": value, "y": label} for value, label in zip(values, ["low", "high"], strict=True)] * 9
    schema = {"target": "y", "columns": [{"name": "x", "kind": kind}]}
    found = counterfactuals(train(dataset_from_rows(rows, schema=schema), "cart"), {"x": cell})
    change = json.loads(json.dumps(found.to_dict()))["counterfactuals"][0]["changes"][0]
    assert (change["from"], type(change["from"])) == (shown, type(shown))
    assert f" instead of {shown}" in found.proposals[0].text


def test_a_missing_value_is_left_where_that_does_and_else_given():
    root = Cut(0, 0.0, (A, Ask(1, (0, 1, 1), (A, B), fallback=1)), fallback=1)
    # Without a length the row goes to colour; green is enough.
    found = counterfactuals(measured(MIXED, root), {"colour": "red"})
    assert [each.text for each in found.proposals] == ["if colour were green instead of red then b"]
    given_length = counterfactuals(measured(MIXED, Cut(0, 0.0, (A, B), fallback=0)), {})
    (only,) = given_length.proposals
    assert (only.changes[0].before, only.distance, only.text) == (None, 1.0, "if length were 0.25 then b")
    assert 0 < only.changes[0].after <= 0.25 + 1e-9


def test_that_a_value_should_be_missing_is_not_proposed():
    found = counterfactuals(measured(MIXED, Known(0, (A, B))), WHOLE)
    assert (found.proposals, found.complete) == ((), True)
    (given_one,) = counterfactuals(measured(MIXED, Known(0, (A, B))), {}).proposals
    assert given_one.prediction.label == "a"


@pytest.mark.parametrize(
    ("missing", "length", "after"),
    [
        (("3",), 0, [4]),
        (("3", "4.0", "5"), 0, [6]),
        (("2", "1", "8"), 5, [9, 0]),
        (("3", "4", "5", "6", "7"), 0, []),
    ],
)
def test_a_number_that_stands_for_missing_is_not_proposed_but_the_nearest_other_one(missing, length, after):
    schema = dataclasses.replace(MIXED, missing_values=missing)
    model = measured(schema, Cut(0, 2.5, (A, Cut(0, 7.5, (B, A)))), 1.0)
    found = counterfactuals(model, {**WHOLE, "length": length})
    assert [each.changes[0].after for each in found.proposals] == after
    assert found.complete


def test_beside_a_threshold_that_stands_for_missing_another_number_is_proposed():
    schema = dataclasses.replace(MIXED, missing_values=("2.5", "2.500004"))
    model = measured(schema, Cut(0, 2.5, (A, B)))
    for length in (0, 5):
        (found,) = counterfactuals(model, {**WHOLE, "length": length}).proposals
        after = found.changes[0].after
        assert after not in (2.5, 2.500004)
        assert abs(after - 2.5) <= 2 * SPAN / 10**6
        assert found.prediction.label == ("b" if length == 0 else "a")


def test_a_date_that_stands_for_missing_is_not_proposed():
    days = [{"on": f"2026-03-{day:02}", "y": "late" if day > 12 else "early"} for day in range(1, 29) if day != 13]
    schema = {"target": "y", "columns": [{"name": "on", "kind": "datetime"}], "missing_values": ["2026-03-13"]}
    model = train(dataset_from_rows(days, schema=schema), "cart", threshold="observed")
    (found,) = counterfactuals(model, {"on": "2026-03-10"}).proposals
    assert found.text == "if on were 2026-03-14 instead of 2026-03-10 then late"


@given(data=st.data(), missing=st.sets(st.integers(-4, 4), min_size=1))
def test_the_nearest_number_that_does_not_stand_for_missing_is_found(data, missing):
    root, row = data.draw(roots(MIXED)), data.draw(mixed_rows())
    cells = cells_as_given(MIXED, row)
    schema = dataclasses.replace(MIXED, missing_values=tuple(map(str, missing)))
    if cells[0] in missing:
        cells = (None, *cells[1:])
    if may_be_shared(root, cells):
        return
    model = measured(schema, root, 1.0)
    own = predict(model, [row])[0]

    def other_answer(point):
        ways = walk(MIXED, root, point)
        stats = ways[0][2].stats
        return ways[0][1] if stats.index(max(stats)) != own.code else None

    lengths, *others = grid(MIXED, root, 1.0)
    legal = [[length for length in lengths if length not in missing], *others]
    expected = cheapest(legal, cells, answer=other_answer, prices=gowers(MIXED, cells))
    assert by_leaf(counterfactuals(model, row, most=100)) == pytest.approx(expected, abs=CLOSE)


def test_imputed_values_are_where_a_row_without_one_stands():
    rows = [{"x": x, "y": "low" if x < 50 else "high"} for x in range(100)]
    model = train(dataset_from_rows(rows, target="y"), "cart", missing="imputed")
    found = counterfactuals(model, {})
    (only,) = found.proposals
    assert only.changes[0].before is None
    assert only.distance == 1.0
    assert only.prediction.label != found.prediction.label


def test_without_scales_the_thresholds_give_the_span():
    root = Cut(0, -1.0, (A, Cut(0, 4.0, (B, C))))
    found = counterfactuals(plant(MIXED, root), {**WHOLE, "length": 1.5})
    assert {each.prediction.label: each.cost for each in found.proposals} == {
        "a": pytest.approx(2.5 / 5.0),
        "c": pytest.approx(2.5 / 5.0, abs=1e-6),
    }
    by_hand = counterfactuals(plant(MIXED, root), {**WHOLE, "length": 1.5}, spans={"length": 2.5}, label="a")
    assert by_hand.proposals[0].cost == 1.0


def test_the_smallest_span_is_a_span_too():
    smallest = math.ulp(0.0)  # half of it is 0
    model = plant(MIXED, Cut(0, 1.0, (A, B)))
    by_hand = counterfactuals(model, WHOLE, spans={"length": smallest}).proposals
    kept = Preparation(scales=(Scale(smallest, 0.0, 0.0), *[None] * (len(MIXED.attributes) - 1)))
    by_model = counterfactuals(dataclasses.replace(model, preparation=kept), WHOLE).proposals
    for (found,) in (by_hand, by_model):
        assert found.distance == sys.float_info.max  # any difference is more spans than a double can count
    near = plant(MIXED, Cut(0, 4 * smallest, (A, B)))
    (found,) = counterfactuals(near, {**WHOLE, "length": 8 * smallest}, spans={"length": smallest}).proposals
    assert found.distance == 8 - 4


def test_the_costs_of_the_configuration_count_unless_others_are_given():
    root = Ask(1, (0, 1, 1), (Cut(0, 1.0, (A, B)), C))
    costs = {"colour": 0.1, "length": 2.0}
    model = measured(MIXED, root, 1.0, attribute_costs=costs, cost_function="nunez")
    found = counterfactuals(model, WHOLE)
    assert [(each.prediction.label, each.distance, each.cost) for each in found.proposals] == [
        ("c", 1.0, 0.1),
        ("b", 2 / SPAN, 4 / SPAN),
    ]
    assert [each.prediction.label for each in counterfactuals(model, WHOLE, costs={"colour": 9}).proposals] == [
        "b",
        "c",
    ]


def holds(condition, cell):
    feature = condition.attribute
    if feature.coded and cell not in feature.categories:
        cell = None
    if condition.known is False or cell is None:
        return condition.known is False and cell is None
    value = feature.categories.index(cell) if feature.coded else cell
    listed = condition.categories is None or cell in condition.categories
    return condition.above < value <= condition.at_most and listed


@given(rules=rule_lists(), row=mixed_rows())
def test_of_each_rule_the_nearest_point_is_found_at_which_none_before_it_fires(rules, row):
    model = dataclasses.replace(measured(MIXED, A, 1.0), body=rules)
    cells = cells_as_given(MIXED, row)

    def fired(point):
        at = dict(zip((feature.name for feature in MIXED.attributes), point, strict=True))
        return next(
            number
            for number, rule in enumerate(rules.answers)
            if all(holds(condition, at[condition.attribute.name]) for condition in rule.conditions)
        )

    own = rules.answers[fired(cells)].value
    spaces = [LENGTHS[1.0], *(list(feature.categories) for feature in MIXED.attributes[1:])]
    expected = cheapest(
        spaces,
        cells,
        answer=lambda point: number if rules.answers[number := fired(point)].value != own else None,
        prices=gowers(MIXED, cells),
    )
    assert by_leaf(counterfactuals(model, row, most=100)) == pytest.approx(expected)
