"""What a model answers to a row."""

import gc
import json
import math
import sys
import weakref

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, strategies as st

from espalier import (
    DataError,
    Feature,
    FeatureKind,
    Role,
    RowError,
    Schema,
    dataset_from_arrow,
    dataset_from_rows,
    explain,
    explain_each,
    predict,
    predict_each,
    predict_table,
    train,
)
from espalier.prediction.answers import wilson_lower_bound
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_rows import RowEncoder
from espalier.prediction.tree_predictor import tree_predictor
from tests.core.data_sets import answers_and_shares
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Known, Leaf, mixed_rows, node_numbered, plant, roots, walk
from tests.factories import REFERENCE, needs_reference

GOLF = Schema(
    (
        Feature("outlook", FeatureKind.NOMINAL, categories=("sunny", "overcast", "rainy")),
        Feature("temperature", FeatureKind.NUMERIC),
        Feature("humidity", FeatureKind.NUMERIC),
        Feature("windy", FeatureKind.NOMINAL, categories=("TRUE", "FALSE")),
        Feature("play", FeatureKind.NOMINAL, Role.TARGET, ("yes", "no")),
    )
)


def golf_tree():
    """The tree of Quinlan (1993), chapter 3; the case without an outlook weighs 5/13, 3/13 and 5/13 in its leaves."""
    return Ask(
        0,
        (0, 1, 2),
        (
            Cut(2, 75.0, (Leaf((2.0, 0.0)), Leaf((5 / 13, 3.0)))),
            Leaf((3 + 3 / 13, 0.0)),
            Ask(3, (0, 1), (Leaf((5 / 13, 2.0)), Leaf((3.0, 0.0)))),
        ),
    )


def shares(answer):
    return [share for _, share in answer.distribution]


def test_a_missing_value_goes_down_every_branch_with_its_share_of_the_training_weight():
    row = {"outlook": "sunny", "temperature": 70, "humidity": None, "windy": "FALSE"}
    (answer,) = predict(plant(GOLF, golf_tree()), [row])
    below, above = 2 / (2 + 3 + 5 / 13), (3 + 5 / 13) / (2 + 3 + 5 / 13)
    yes = below * 1 + above * (5 / 13) / (3 + 5 / 13)
    assert shares(answer) == pytest.approx([yes, 1 - yes], abs=1e-12)
    assert yes == pytest.approx(31 / 70, abs=1e-12)
    assert answer.label == "no"
    assert [visit.weight for visit in answer.visits] == pytest.approx([above, below], abs=1e-12)
    assert answer.support == pytest.approx(below * 2 + above * (3 + 5 / 13), abs=1e-12)
    assert answer.row.missing == ("humidity",)


@needs_reference
def test_fractional_answers_are_those_of_the_published_tree():
    expected = json.loads((REFERENCE / "expected" / "golf_missing_predictions.json").read_text())
    model = plant(GOLF, golf_tree())
    for query in expected["queries"]:
        cells = dict(zip(expected["columns"], query["case"], strict=True))
        row = {
            name: cell if cell == "?" or name in ("outlook", "windy") else float(cell) for name, cell in cells.items()
        }
        assert shares(predict(model, [row])[0]) == pytest.approx([query["P(yes)"], query["P(no)"]], abs=5e-4), row


def test_a_row_without_any_value_gets_the_shares_of_the_root():
    (answer,) = predict(plant(GOLF, golf_tree()), [{}])
    assert shares(answer) == pytest.approx([9 / 14, 5 / 14], abs=1e-12)
    assert answer.row.missing == ("outlook", "temperature", "humidity", "windy")


def test_a_category_that_was_never_seen_is_answered_like_a_missing_one_and_flagged():
    model = plant(GOLF, golf_tree())
    unseen, missing = predict(model, [{"outlook": "foggy", "windy": "TRUE"}, {"windy": "TRUE"}])
    assert unseen.distribution == missing.distribution
    assert unseen.row.unseen == ("outlook",)
    assert "outlook" not in unseen.row.missing
    assert unseen.to_dict()["flags"]["unseen"] == ["outlook"]


def test_a_category_that_no_training_row_had_at_the_node_takes_the_fallback():
    tree = Ask(1, (0, 1, -1), (Leaf((1.0, 0.0, 0.0)), Leaf((0.0, 4.0, 0.0))), fallback=1)
    (answer,) = predict(plant(MIXED, tree), [{"colour": "blue"}])
    assert answer.label == "b"
    assert answer.row.unseen == ()


@pytest.mark.parametrize(("value", "leaf"), [(1.5, 1), (math.nextafter(1.5, 2), 2), (-math.inf, None), (1e300, 2)])
def test_a_number_at_the_threshold_goes_left_and_the_next_number_right(value, leaf):
    model = plant(MIXED, Cut(0, 1.5, (Leaf((1.0, 0.0, 0.0)), Leaf((0.0, 4.0, 0.0)))))
    if leaf is None:
        with pytest.raises(RowError):
            predict(model, [{"length": value}])
    else:
        assert predict(model, [{"length": value}])[0].leaf == leaf


def test_an_unknown_test_sends_every_value_one_way_and_missing_ones_the_other():
    model = plant(MIXED, Known(0, (Leaf((1.0, 0.0, 0.0)), Leaf((0.0, 4.0, 0.0)))))
    assert [answer.leaf for answer in predict(model, [{"length": 0}, {}, {"length": None}])] == [1, 2, 2]


def test_a_branch_without_training_rows_answers_the_majority_above_it_without_confidence():
    tree = Ask(1, (0, 1, 2), (Leaf((3.0, 0.0, 0.0)), Leaf((0.0, 1.0, 0.0)), Leaf((0.0, 0.0, 0.0))))
    (answer,) = predict(plant(MIXED, tree), [{"colour": "blue"}])
    assert (answer.label, answer.support, answer.confidence) == ("a", 0.0, 0.0)
    assert shares(answer) == [0.75, 0.25, 0.0]


def test_confidence_is_wilsons_lower_bound():
    z2, n = 1.96**2, 47
    assert wilson_lower_bound(1.0, n) == pytest.approx(
        (1 + z2 / (2 * n) - 1.96 * math.sqrt(z2 / (4 * n * n))) / (1 + z2 / n)
    )
    assert wilson_lower_bound(1.0, 47) == pytest.approx(0.92444, abs=5e-6)
    p, n = 0.7, 10
    by_hand = (p + z2 / 20 - 1.96 * math.sqrt(p * 0.3 / n + z2 / 400)) / (1 + z2 / n)
    assert wilson_lower_bound(p, n) == pytest.approx(by_hand, abs=1e-15)
    model = plant(MIXED, Leaf((0.0, 47.0, 0.0)))
    assert predict(model, [{}])[0].confidence == pytest.approx(0.92444, abs=5e-6)


def test_wilsons_bound_is_a_share_even_where_nothing_was_seen():
    assert wilson_lower_bound(1.0, 0.0) == 0.0
    assert 0.0 <= wilson_lower_bound(0.0, 1e-9) <= 1.0
    assert 0.0 <= wilson_lower_bound(1.0, 5e-324) <= wilson_lower_bound(1.0, 1e300) <= 1.0


def test_the_confidence_of_a_row_in_two_leaves_is_that_of_the_counted_shares():
    # Half of the row is at 3 of 3 rows "yes", half at 1 of 3: the share is 2/3 of 3 rows, with or without Laplace.
    leaves = Leaf((3.0, 0.0, 0.0)), Leaf((1.0, 2.0, 0.0))
    for leaf_probability in ("frequency", "laplace"):
        model = plant(MIXED, Cut(0, 0.0, leaves), leaf_probability=leaf_probability, missing="fractional")
        (answer,) = predict(model, [dict.fromkeys(feature.name for feature in MIXED.features)])
        assert (answer.n_visits, answer.support) == (2, 3.0)
        assert answer.confidence == pytest.approx(wilson_lower_bound(2 / 3, 3.0))


def test_laplace_shares_add_one_to_each_class():
    model = plant(MIXED, Leaf((3.0, 1.0, 0.0)), leaf_probability="laplace")
    (answer,) = predict(model, [{}])
    assert shares(answer) == pytest.approx([4 / 7, 2 / 7, 1 / 7])


def test_a_regression_answers_the_leafs_mean_and_standard_deviation():
    model = plant(NUMBERS, Cut(0, 0.0, (Leaf((4.0, 10.0, 36.0)), Leaf((1.0, 20.0, 0.0)))))
    (answer,) = predict(model, [{"length": -1}])
    assert (answer.value, answer.std, answer.support, answer.label) == (10.0, 3.0, 4.0, None)
    assert answer.to_dict() == {
        "value": 10.0,
        "std": 3.0,
        "support": 4.0,
        "leaf": 1,
        "flags": {"missing": ["colour", "size", "sold"], "unseen": []},
    }


def test_a_mixed_regression_answers_the_mean_and_deviation_of_the_mixture():
    model = plant(NUMBERS, Cut(0, 0.0, (Leaf((3.0, 10.0, 12.0)), Leaf((1.0, 20.0, 0.0)))))
    (answer,) = predict(model, [{}])
    mean = 0.75 * 10 + 0.25 * 20
    variance = 0.75 * (4 + (10 - mean) ** 2) + 0.25 * (0 + (20 - mean) ** 2)
    assert answer.value == pytest.approx(mean)
    assert answer.std == pytest.approx(math.sqrt(variance))


def test_equal_shares_answer_the_class_that_stands_first_in_the_schema():
    model = plant(MIXED, Ask(1, (0, 1, -1), (Leaf((0.0, 0.0, 2.0)), Leaf((0.0, 2.0, 0.0)))))
    assert predict(model, [{}])[0].label == "b"


def test_imputed_values_stand_in_for_missing_and_unseen_ones():
    tree = Cut(0, 1.0, (Leaf((1.0, 0.0, 0.0)), Ask(1, (0, 1, -1), (Leaf((0.0, 2.0, 0.0)), Leaf((0.0, 0.0, 2.0))))))
    model = plant(MIXED, tree, imputed=(2.5, 1.0, 0.0, 0.0))
    assert [answer.leaf for answer in predict(model, [{}, {"colour": "mauve"}, {"length": 0}])] == [4, 4, 1]
    (answer,) = predict(model, [{"colour": "mauve"}])
    assert answer.row.missing == ("length", "size", "sold")
    assert answer.row.unseen == ("colour",)


@pytest.mark.parametrize(
    ("row", "faults"),
    [
        ({"length": "long"}, {("/0/length", "wrong_type")}),
        ({"length": "1.5"}, {("/0/length", "wrong_type")}),
        ({"length": True}, {("/0/length", "wrong_type")}),
        ({"length": [1]}, {("/0/length", "wrong_type")}),
        ({"length": {}}, {("/0/length", "wrong_type")}),
        ({"length": 10**400}, {("/0/length", "wrong_type")}),
        ({"length": math.inf}, {("/0/length", "wrong_type")}),
        ({"colour": 1}, {("/0/colour", "wrong_type")}),
        ({"colour": False}, {("/0/colour", "wrong_type")}),
        ({"colour": []}, {("/0/colour", "wrong_type")}),
        ({"sold": "yes"}, {("/0/sold", "wrong_type")}),
        ({"sold": 1}, {("/0/sold", "wrong_type")}),
        ({"size": 2}, {("/0/size", "wrong_type")}),
        ({"colour": "re\0d"}, {("/0/colour", "characters")}),
        ({"colour": "\ud800"}, {("/0/colour", "characters")}),
        ({"weight": 1}, {("/0/weight", "unknown_attribute")}),
        ({"a/b~c": 1}, {("/0/a~1b~0c", "unknown_attribute")}),
        ({"length": "x", "colour": 3, "hue": 1}, {("/0/length", "wrong_type"), ("/0/colour", "wrong_type"),
                                                 ("/0/hue", "unknown_attribute")}),
        ("length", {("/0", "wrong_type")}),
        (None, {("/0", "wrong_type")}),
        ([1.0], {("/0", "wrong_type")}),
    ],
)  # fmt: skip
def test_a_wrong_row_is_refused_with_a_pointer_to_each_fault(row, faults):
    model = plant(MIXED, Leaf((1.0, 0.0, 0.0)))
    with pytest.raises(RowError) as caught:
        predict(model, [row])
    assert {(fault.path, fault.code) for fault in caught.value.faults} == faults


CELLS_OF_NUMBERS = [
    0, -0.0, 1.5, 7, 10**300, -1.7e308, None, math.nan, "?", "1", True, 10**400, -(10**400), math.inf, -math.inf, [1]
]  # fmt: skip


@given(row=st.fixed_dictionaries({}, optional=dict.fromkeys("abc", st.sampled_from(CELLS_OF_NUMBERS))))
def test_where_all_attributes_are_numbers_each_cell_is_read_or_refused_by_itself(row):
    schema = Schema(
        (
            *(Feature(name, FeatureKind.NUMERIC) for name in "abc"),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("no", "yes")),
        )
    )
    absent = {name for name in "abc" if row.get(name) in (None, "?") or row[name] != row[name]}
    numbers = {n for n in row if type(row[n]) in (int, float) and abs(row[n]) <= sys.float_info.max}
    encode = RowEncoder(schema, None)
    if row.keys() - numbers - absent:
        with pytest.raises(RowError) as refused:
            encode(row)
        assert {fault.path for fault in refused.value.faults} == {f"/{name}" for name in row.keys() - numbers - absent}
        return
    encoded = encode(row)
    assert encoded.missing == tuple(name for name in "abc" if name in absent)
    for name, value in zip("abc", encoded.values, strict=True):
        assert math.isnan(value) if name in absent else (type(value) is float and value == float(row[name]))


def test_faults_of_all_rows_are_collected():
    model = plant(MIXED, Leaf((1.0, 0.0, 0.0)))
    with pytest.raises(RowError) as caught:
        predict(model, [{"length": "x"}, {"length": 1}, {"colour": 0}])
    assert [fault.path for fault in caught.value.faults] == ["/0/length", "/2/colour"]


def test_no_fault_repeats_a_value_of_the_callers_row():
    model = plant(MIXED, Leaf((1.0, 0.0, 0.0)))
    with pytest.raises(RowError) as caught:
        predict(model, [{"length": "my secret", "colour": 424242}])
    assert "secret" not in str(caught.value)
    assert "424242" not in str(caught.value)


def test_target_weight_and_ignored_columns_may_be_there_and_are_not_looked_at():
    rows = [{"id": n, "x": n % 2, "w": 1.0, "y": "ab"[n % 2]} for n in range(6)]
    model = train(dataset_from_rows(rows, target="y", weight="w", ignore=["id"]))
    answers = predict(model, [{"x": 0, "y": "nonsense", "w": -7, "id": {}}, {"x": 0}])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("text", ["?", "NA"])
def test_the_schemas_texts_for_missing_are_missing(text):
    model = plant(MIXED, Cut(0, 0.0, (Leaf((1.0, 0.0, 0.0)), Leaf((0.0, 1.0, 0.0))), fallback=1))
    (answer,) = predict(model, [{"length": text, "colour": text}])
    assert answer.leaf == 2
    assert answer.row.missing == ("length", "colour", "size", "sold")


def test_numbers_of_a_nominal_attribute_match_by_value_and_never_a_truth_value():
    schema = Schema(
        (
            Feature("grade", FeatureKind.NOMINAL, categories=(1, 2.0, "007")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b")),
        )
    )
    model = plant(schema, Ask(0, (0, 1, 2), (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)), Leaf((1.0, 1.0)))))
    answers = predict(model, [{"grade": 1}, {"grade": 1.0}, {"grade": 2}, {"grade": "007"}, {"grade": 7}])
    assert [answer.leaf for answer in answers[:4]] == [1, 1, 2, 3]
    assert answers[4].row.unseen == ("grade",)
    with pytest.raises(RowError):
        predict(model, [{"grade": True}])


DAYS = [
    {"outlook": "sunny", "wind": 3.0, "day": "2026-01-01", "play": "no"},
    {"outlook": "rain", "wind": 20.0, "day": "2026-01-02", "play": "no"},
    {"outlook": None, "wind": 4.0, "day": "2026-01-03", "play": "yes"},
    {"outlook": "sunny", "wind": None, "day": "2026-01-04", "play": "no"},
    {"outlook": "rain", "wind": 2.0, "day": None, "play": "yes"},
]


@pytest.mark.parametrize("function", [predict, predict_each, explain, explain_each])
def test_the_rows_of_a_table_are_those_of_a_list_in_every_format(function):
    model = train(dataset_from_rows(DAYS, target="play", schema={"columns": [{"name": "day", "kind": "datetime"}]}))
    attributes = [{name: day[name] for name in ("outlook", "wind", "day")} for day in DAYS]
    expected = function(model, attributes)
    frame = pandas.DataFrame(DAYS).assign(day=lambda table: pandas.to_datetime(table.day), more=1)
    for table in (frame, polars.from_pandas(frame), dataset_from_arrow(frame, target="play"), pyarrow.table(frame)):
        assert function(model, table) == expected
    assert function(model, frame[["wind"]]) == function(model, [{"wind": day["wind"]} for day in DAYS])


def test_only_the_attributes_of_a_table_are_read():
    model = train(dataset_from_rows(DAYS, target="play"))
    frame = pandas.DataFrame(DAYS)
    expected = [one.label for one in predict(model, frame)]
    extra = frame[["play"]].rename(columns={"play": "extra"})
    for table in (
        frame.assign(play=None),
        frame.assign(play=[math.inf, 1, 2, 3, 4]),
        frame.assign(more=[[1]] * len(frame)),
        pandas.concat([frame, extra, extra], axis="columns"),
    ):
        assert [one.label for one in predict(model, table)] == expected
        assert predict_table(model, table).labels() == expected


class Result:
    """Rows of a library of databases, which has a method `columns`, too."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

    def columns(self):
        raise AssertionError("is no table")


def test_a_sequence_of_mappings_is_no_table_whatever_else_it_has():
    model = train(dataset_from_rows(DAYS, target="play"))
    rows = [{"wind": 1.0}, {"wind": 30.0}]
    for sequence in (tuple(rows), Result(rows), iter(rows)):
        assert predict(model, sequence) == predict(model, rows)


def test_a_table_without_any_attribute_and_a_series_are_refused():
    model = train(dataset_from_rows(DAYS, target="play"))
    frame = pandas.DataFrame(DAYS)
    for function in (predict, predict_each, explain, explain_each, predict_table):
        for table in (frame.add_prefix("other_"), dataset_from_arrow(frame[["play"]])):
            with pytest.raises(DataError, match="none of the model's attributes"):
                function(model, table)
        for series in (frame.iloc[0], frame["wind"], polars.Series("wind", [1.0])):
            with pytest.raises(DataError, match="not a Series"):
                function(model, series)


def test_one_row_in_place_of_a_list_and_a_table_of_another_kind_are_refused():
    model = train(dataset_from_rows(DAYS, target="play"))
    for wrong in (DAYS[0], "sunny", b"sunny", None, 5):
        for function in (predict, predict_each, explain, explain_each):
            with pytest.raises(RowError, match="make a list"):
                function(model, wrong)
    with pytest.raises(DataError, match="/wind"):
        predict(model, pandas.DataFrame({"wind": ["strong"]}))


def test_one_row_as_a_list_of_nothing_answers_nothing():
    assert predict(plant(MIXED, Leaf((1.0, 0.0, 0.0))), []) == []


def test_a_model_that_is_no_longer_used_is_let_go():
    model = plant(MIXED, Leaf((1.0, 0.0, 0.0)))
    predict(model, [{}])
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@given(root=roots(MIXED), row=mixed_rows())
def test_every_answer_is_that_of_a_slow_walk_down_the_tree(root, row):
    (answer,) = predict(plant(MIXED, root), [row])
    ways = walk(MIXED, root, [row.get(feature.name) for feature in MIXED.attributes])
    found = {visit.leaf: visit.weight for visit in answer.visits}
    assert found == pytest.approx({number: weight for weight, number, _ in ways})
    assert answer.n_visits == len(ways)
    expected = [sum(weight * leaf.stats[place] / sum(leaf.stats) for weight, _, leaf in ways) for place in range(3)]
    assert shares(answer) == pytest.approx(expected)
    assert sum(shares(answer)) == pytest.approx(1)
    assert dict(answer.distribution)[answer.label] == pytest.approx(max(expected))


@given(root=roots(NUMBERS), row=mixed_rows())
def test_every_number_is_that_of_a_slow_walk_down_the_tree(root, row):
    (answer,) = predict(plant(NUMBERS, root), [row])
    ways = walk(NUMBERS, root, [row.get(feature.name) for feature in NUMBERS.attributes])
    assert answer.value == pytest.approx(sum(weight * leaf.stats[1] for weight, _, leaf in ways))


@given(root=roots(MIXED), row=mixed_rows())
def test_the_nodes_of_an_answer_lead_from_the_root_to_its_leaf(root, row):
    model = plant(MIXED, root)
    (answer,) = predict(model, [row])
    for visit in answer.visits:
        assert visit.nodes[0] == 0
        assert isinstance(node_numbered(root, visit.leaf), Leaf)
        for parent, child in zip(visit.nodes, visit.nodes[1:], strict=False):
            assert child in model.tree.children(parent)
    assert answer.leaf == answer.nodes[-1] == answer.visits[0].leaf


@given(root=roots(MIXED), row=mixed_rows())
def test_many_rows_are_routed_as_one_row_is(root, row):
    model = plant(MIXED, root)
    encoded = tree_predictor(model).encode(row)
    (leaf,) = predict_batch(model, np.array([encoded.values]).T).leaves.tolist()
    visits = tree_predictor(model).answer(encoded).visits
    if leaf >= 0:
        assert [visit.leaf for visit in visits] == [leaf]
    else:
        assert any(model.tree.fallback[node] < 0 for visit in visits for node in visit.nodes)


@given(root=roots(MIXED), row=mixed_rows())
def test_a_data_set_is_answered_as_its_rows_are(root, row):
    model = plant(MIXED, root)
    legal = {name: None if cell in ("mauve", "giant") else cell for name, cell in row.items()}
    full = {feature.name: legal.get(feature.name) for feature in MIXED.attributes}
    data = dataset_from_rows([{**full, "kind": "a"}], schema=MIXED)
    answers, class_shares = answers_and_shares(model, data)
    (one,) = predict(model, [full])
    assert answers.tolist() == [one.code]
    assert class_shares[0].tolist() == shares(one)
