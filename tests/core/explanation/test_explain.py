"""Why a model answered as it did: the path, the merged conditions, the rule, the contributions."""

import math

import orjson
import pytest
from hypothesis import given, strategies as st

from espalier import (
    ConfigError,
    Feature,
    FeatureKind,
    Role,
    Schema,
    TooLarge,
    counterfactuals,
    dataset_from_rows,
    explain,
    explain_each,
    extract_rules,
    predict,
    render_explanation,
    to_text,
    train,
)
from espalier.explanation import tree_path
from tests.core.planted import (
    MIXED,
    NUMBERS,
    A,
    Ask,
    B,
    C,
    Cut,
    Known,
    Leaf,
    mixed_rows,
    plant,
    roots,
    walk,
)


def only(model, row, **kw):
    (explanation,) = explain(model, [row], **kw)
    return explanation


def test_a_step_says_what_was_tested_what_the_row_has_and_how_far_it_is_from_the_threshold():
    step = only(plant(MIXED, Cut(0, 4.95, (A, B))), {"length": 4.2}).paths[0][0].to_dict()
    assert step == {
        "node": 0,
        "attribute": "length",
        "test": "<=",
        "threshold": 4.95,
        "value": 4.2,
        "branch": "yes",
        "margin": pytest.approx(0.75),
        "weight": 6.0,
        "distribution": {"a": pytest.approx(4 / 6), "b": pytest.approx(2 / 6), "c": 0.0},
    }


def test_a_step_of_the_other_branch_says_no():
    step = only(plant(MIXED, Cut(0, 4.95, (A, B))), {"length": 5}).paths[0][0]
    assert (step.branch, step.value, step.margin) == ("no", 5.0, pytest.approx(0.05))


def test_a_nominal_step_lists_the_categories_of_the_branch_taken():
    step = only(plant(MIXED, Ask(1, (0, 1, 0), (A, B))), {"colour": "blue"}).paths[0][0].to_dict()
    assert (step["test"], step["set"], step["value"], step["branch"]) == ("in", ["red", "blue"], "blue", "yes")
    assert "threshold" not in step
    assert "margin" not in step


def test_an_ordinal_threshold_is_shown_by_name():
    explanation = only(plant(MIXED, Cut(2, 0.5, (A, B))), {"size": "large"})
    assert explanation.paths[0][0].threshold == "small"
    assert explanation.rule == "if size > small then b"


def test_an_ordinal_category_stands_in_quotes_if_its_end_would_not_be_clear():
    size = Feature("size or so", FeatureKind.ORDINAL, categories=("", "low or high", "x"))
    model = plant(Schema((size, MIXED.target)), Cut(0, 0.5, (A, Cut(0, 1.5, (B, C)))))
    assert to_text(model).splitlines()[1:3] == ['"size or so" > ""', '|   "size or so" ≤ "low or high": b (2)']
    none, low = explain(model, [{"size or so": ""}, {"size or so": "low or high"}])
    assert none.rule == 'if "size or so" ≤ "" then a'
    assert low.rule == 'if "" < "size or so" ≤ "low or high" then b'
    assert '"size or so" ≤ ""  (it is "")' in render_explanation(none)
    change = counterfactuals(model, {"size or so": ""}, label="b").proposals[0].text
    assert change == 'if "size or so" were "low or high" instead of "" then b'


def test_a_number_in_a_reason_has_a_name_in_quotes_if_its_end_would_not_be_clear():
    number = Feature("a and b", FeatureKind.NUMERIC)
    explanation = explain(plant(Schema((number, MIXED.target)), Cut(0, 0.5, (A, B))), [{"a and b": 3}], detail="full")
    assert explanation[0].reasons[0].text == 'if "a and b" = 3 then b'


def test_a_boolean_reads_true_and_false():
    assert only(plant(MIXED, Ask(3, (0, 1), (A, B))), {"sold": True}).rule == "if sold is true then b"


def test_a_datetime_threshold_is_shown_as_a_date():
    schema = Schema(
        (
            Feature("day", FeatureKind.DATETIME),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b")),
        )
    )
    model = plant(schema, Cut(0, 86400.0 * 365, (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))))
    explanation = only(model, {"day": "1970-06-01"})
    assert explanation.rule == "if day ≤ 1971-01-01 then a"
    assert explanation.paths[0][0].value == "1970-06-01"


def test_tests_of_one_attribute_merge_into_an_interval():
    tree = Cut(0, 4.95, (Cut(0, 2.45, (A, Cut(0, 3.0, (B, C)))), A))
    explanation = only(plant(MIXED, tree), {"length": 3.5})
    assert [condition.to_dict() for condition in explanation.conditions] == [
        {"attribute": "length", "above": 3.0, "at_most": 4.95, "text": "3 < length ≤ 4.95"}
    ]
    assert explanation.rule == "if 3 < length ≤ 4.95 then c"


def test_tests_of_one_nominal_attribute_merge_into_what_all_allow():
    tree = Ask(1, (0, 0, 1), (Ask(1, (0, 1, -1), (A, B)), C))
    explanation = only(plant(MIXED, tree), {"colour": "green"})
    assert [condition.categories for condition in explanation.conditions] == [("green",)]
    assert explanation.rule == "if colour is green then b"


def test_conditions_stand_in_the_order_in_which_they_were_first_asked():
    tree = Ask(1, (0, 1, 0), (Cut(0, 1.0, (Ask(1, (0, -1, 1), (A, B)), C)), C))
    explanation = only(plant(MIXED, tree), {"colour": "blue", "length": 0})
    assert explanation.rule == "if colour is blue and length ≤ 1 then b"


def test_a_tree_of_one_leaf_always_answers_the_same():
    explanation = only(plant(MIXED, A), {})
    assert explanation.rule == "always a"
    assert explanation.to_dict()["path"] == []
    assert "one leaf" in render_explanation(explanation)


def test_a_missing_value_says_why_the_branch_was_taken():
    steps = only(plant(MIXED, Cut(0, 1.0, (A, B), fallback=1)), {}).paths[0]
    assert (steps[0].reason, steps[0].value, steps[0].margin, steps[0].branch) == ("missing", None, None, "no")
    assert steps[0].to_dict()["reason"] == "missing"


def test_an_unseen_category_says_so_whether_nobody_knows_it_or_only_this_node_does_not():
    model = plant(MIXED, Ask(1, (0, 1, -1), (A, B), fallback=0))
    assert only(model, {"colour": "mauve"}).paths[0][0].reason == "unseen"
    assert only(model, {"colour": "blue"}).paths[0][0].reason == "unseen"


def test_an_unknown_test_reads_known_and_missing():
    model = plant(MIXED, Known(0, (A, B)))
    assert only(model, {"length": 1}).rule == "if length is known then a"
    assert only(model, {}).rule == "if length is missing then b"
    assert only(model, {}).conditions[0].to_dict() == {
        "attribute": "length",
        "known": False,
        "text": "length is missing",
    }


def test_a_fractional_answer_has_one_weighted_path_a_leaf_the_heaviest_first():
    document = only(plant(MIXED, Cut(0, 1.0, (A, B))), {}).to_dict()
    assert [(path["weight"], path["leaf"]) for path in document["paths"]] == [
        (pytest.approx(4 / 6), 1),
        (pytest.approx(2 / 6), 2),
    ]
    assert document["path"] == document["paths"][0]["path"]


def test_of_many_ways_the_heaviest_hundred_are_told_and_all_are_counted():
    root = Leaf((1.0, 0.0, 2.0))
    for number in range(150):
        root = Cut(0, 200.0 - number, (Leaf((1.0 + number % 7, 3.0, 0.0)), root))
    explanation = only(plant(MIXED, root), {}, detail="full")
    document = explanation.to_dict()
    ways = walk(MIXED, root, [None] * 4)
    heaviest = sorted(((-weight, number) for weight, number, _ in ways))[:100]
    assert (document["n_paths"], len(ways)) == (151, 151)
    assert [(path["leaf"], path["weight"]) for path in document["paths"]] == [
        (number, pytest.approx(-weight)) for weight, number in heaviest
    ]
    shares = [sum(weight * leaf.stats[place] / sum(leaf.stats) for weight, _, leaf in ways) for place in range(3)]
    assert list(document["distribution"].values()) == pytest.approx(shares)
    assert document["baseline"] + sum(document["contributions"].values()) == pytest.approx(max(shares))
    lighter = 1 - sum(-weight for weight, _ in heaviest)
    assert f"with weight {lighter:.4g} in all: 51 more paths" in render_explanation(explanation)


def test_a_limit_of_steps_counts_the_paths_that_are_not_listed_like_those_that_are():
    root = B
    for number in range(149):
        root = Cut(0, float(number), (A, root))
    model = plant(MIXED, root)
    (whole,) = explain_each(model, [{}])
    n_listed = sum(map(len, whole.paths))
    assert (len(whole.paths), whole.prediction.n_visits) == (100, 150)
    for rows, n_counted in ([{}], n_listed * 3 // 2), ([{}, {"length": 1.0}, {}], 2 * (n_listed * 3 // 2)):
        assert len(explain_each(model, rows, most_steps=n_counted)) == len(rows)
        with pytest.raises(TooLarge, match=f"at most {n_counted - 1} are allowed"):
            explain_each(model, rows, most_steps=n_counted - 1)


def test_a_single_path_is_not_listed_twice():
    assert "paths" not in only(plant(MIXED, Cut(0, 1.0, (A, B))), {"length": 0}).to_dict()


def test_a_regression_step_has_the_mean_at_the_node():
    model = plant(NUMBERS, Cut(0, 0.0, (Leaf((3.0, 10.0, 12.0)), Leaf((1.0, 20.0, 0.0)))))
    explanation = only(model, {"length": 3}, detail="full")
    assert explanation.paths[0][0].to_dict()["mean"] == pytest.approx(12.5)
    assert explanation.rule == "if length > 0 then 20"
    assert (explanation.baseline, explanation.contributions) == (pytest.approx(12.5), {"length": pytest.approx(7.5)})


def test_contributions_are_the_changes_of_the_labels_share():
    tree = Cut(0, 1.0, (Ask(1, (0, 1, 1), (A, C)), B))
    explanation = only(plant(MIXED, tree), {"length": 0, "colour": "red"}, detail="full")
    assert explanation.baseline == pytest.approx(4 / 10)
    assert explanation.contributions == {
        "length": pytest.approx(4 / 8 - 4 / 10),
        "colour": pytest.approx(1 - 4 / 8),
    }


def test_contributions_are_given_only_when_asked_for():
    model = plant(MIXED, Cut(0, 1.0, (A, B)))
    assert "contributions" not in only(model, {}).to_dict()
    assert "contributions" in only(model, {}, detail="full").to_dict()


@pytest.mark.parametrize("detail", ["", "everything", None, True])
def test_another_detail_is_refused_with_the_legal_ones(detail):
    with pytest.raises(ConfigError, match="/detail: must be one of path, full"):
        explain(plant(MIXED, A), [{}], detail=detail)


def test_classes_that_are_equal_as_numbers_are_told_apart():
    schema = Schema((Feature("x", FeatureKind.NUMERIC), Feature("y", FeatureKind.NOMINAL, Role.TARGET, (True, 1, 1.0))))
    model = plant(schema, Cut(0, 0.0, (Leaf((9.0, 0.0, 0.0)), Leaf((0.0, 1.0, 5.0)))))
    explanation = only(model, {"x": 1}, detail="full")
    assert repr(explanation.prediction.label) == "1.0"
    assert explanation.baseline == pytest.approx(5 / 15)
    assert explanation.contributions == {"x": pytest.approx(5 / 6 - 5 / 15)}


def test_the_text_names_each_test_the_answer_the_reason_and_the_flags():
    tree = Cut(0, 1.5, (Ask(1, (0, 1, -1), (A, C), fallback=1), B))
    text = render_explanation(only(plant(MIXED, tree), {"length": 1, "colour": "mauve", "size": "small"}))
    assert text.splitlines() == [
        "  length ≤ 1.5  (it is 1)",
        "  colour is green  (taken because the value is unseen)",
        "answer: c (a 0, b 0.25, c 0.75; from training weight 4)",
        "because: if length ≤ 1.5 and colour is green then c",
        "missing: sold",
        "never seen in training: colour",
    ]


def test_the_text_of_a_fractional_answer_names_the_weights():
    text = render_explanation(only(plant(MIXED, Cut(0, 1.5, (A, B))), {}))
    assert text.splitlines()[:4] == [
        "with weight 0.6667:",
        "  length ≤ 1.5  (taken because the value is missing)",
        "with weight 0.3333:",
        "  length > 1.5  (taken because the value is missing)",
    ]


def holds(condition, row):
    """Whether a merged condition holds for a row, from its JSON form alone; None where the row has no value."""
    document = condition.to_dict()
    feature = condition.attribute
    cell = row.get(feature.name)
    if cell is None or (feature.coded and cell not in feature.categories):
        return None if document.get("known") is None else document["known"] is False
    if "known" in document and document["known"] is False:
        return False
    if "in" in document and not any(type(cell) is type(label) and cell == label for label in document["in"]):
        return False
    place = feature.categories.index if feature.kind is FeatureKind.ORDINAL else float
    low, high = document.get("above"), document.get("at_most")
    return (low is None or place(cell) > place(low)) and (high is None or place(cell) <= place(high))


@given(root=roots(MIXED), row=mixed_rows())
def test_every_merged_condition_holds_for_the_row_that_it_explains(root, row):
    explanation = only(plant(MIXED, root), row)
    seen_everywhere = {step.attribute.name for step in explanation.paths[0] if step.reason != "value"}
    for condition in explanation.conditions:
        if condition.attribute.name not in seen_everywhere:
            assert holds(condition, row) is not False, condition


@given(root=roots(MIXED), row=mixed_rows(), other=mixed_rows())
def test_a_row_for_which_every_condition_holds_goes_to_the_same_leaf(root, row, other):
    model = plant(MIXED, root)
    explanation = only(model, row)
    if all(holds(condition, other) for condition in explanation.conditions):
        assert predict(model, [other])[0].leaf == explanation.prediction.leaf


@given(root=roots(MIXED), row=mixed_rows())
def test_the_steps_of_a_path_follow_each_other_to_its_leaf(root, row):
    model = plant(MIXED, root)
    explanation = only(model, row)
    assert explanation.prediction == predict(model, [row])[0]
    for visit, path in zip(explanation.prediction.visits, explanation.paths, strict=True):
        assert [step.node for step in path] == list(visit.nodes[:-1])
        for step, child in zip(path, visit.nodes[1:], strict=True):
            assert child in model.tree.children(step.node)
            assert step.attribute is MIXED.attributes[model.tree.feature[step.node]]


@given(root=roots(MIXED), row=mixed_rows(), detail=st.sampled_from(["path", "full"]))
def test_an_explanation_begins_with_its_prediction_and_is_json(root, row, detail):
    model = plant(MIXED, root)
    document = only(model, row, detail=detail).to_dict()
    answer = predict(model, [row])[0].to_dict()
    assert {name: document[name] for name in answer} == answer
    assert orjson.loads(orjson.dumps(document)) == orjson.loads(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


@given(root=roots(MIXED), row=mixed_rows())
def test_baseline_and_contributions_add_up_to_the_labels_share(root, row):
    explanation = only(plant(MIXED, root), row, detail="full")
    total = explanation.baseline + math.fsum(explanation.contributions.values())
    assert total == pytest.approx(dict(explanation.prediction.distribution)[explanation.prediction.label])


@given(root=roots(NUMBERS), row=mixed_rows())
def test_baseline_and_contributions_add_up_to_the_number(root, row):
    explanation = only(plant(NUMBERS, root), row, detail="full")
    total = explanation.baseline + math.fsum(explanation.contributions.values())
    assert total == pytest.approx(explanation.prediction.value)
    assert render_explanation(explanation).count("answer: ") == 1


@given(root=roots(MIXED), rows=st.lists(mixed_rows(), min_size=2, max_size=6))
def test_what_was_said_before_does_not_change_what_is_said(root, rows):
    model, fresh = plant(MIXED, root), plant(MIXED, root)
    told = explain(model, rows)
    again = [explain(model, [row])[0] for row in rows]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tree_path, "MAX_CACHED", -1)
        alone = [explain(fresh, [row])[0] for row in rows]
    assert [one.to_dict() for one in told] == [one.to_dict() for one in again] == [one.to_dict() for one in alone]
    assert [one.paths for one in told] == [one.paths for one in alone]


def test_a_document_that_is_changed_does_not_change_the_next_one():
    model = plant(MIXED, Cut(0, 0.0, (Leaf((1.0, 0.0, 0.0)), Leaf((0.0, 1.0, 0.0)))))
    document = explain(model, [{"length": 1.0}])[0].to_dict()
    document["path"][0]["distribution"]["a"] = 7
    assert explain(model, [{"length": 1.0}])[0].to_dict()["path"][0]["distribution"]["a"] == 0.5


def test_a_step_that_a_surrogate_decided_names_it_with_its_own_test():
    rows = [{"p": at % 10, "q": "low" if at % 10 < 5 else "high", "y": "ab"[at % 10 >= 5]} for at in range(40)]
    model = train(dataset_from_rows(rows, target="y"), "cart", missing="surrogate")
    (step,) = only(model, {"q": "high"}).paths[0]
    assert (step.attribute.name, step.reason, step.value) == ("p", "missing", None)
    assert step.to_dict()["surrogate"] == {
        "attribute": "q",
        "test": "in",
        "set": ["high"],
        "value": "high",
        "branch": "yes",
    }
    text = render_explanation(only(model, {"q": "high"}))
    assert text.splitlines()[0] == "  p > 4.5  (the value is missing; in its place q is high: it is high)"
    assert only(model, {"p": 7}).paths[0][0].surrogate is None
    assert only(model, {}).paths[0][0].surrogate is None
    assert "surrogate" not in only(model, {}).to_dict()["path"][0]


@pytest.mark.parametrize("as_rules", [False, True])
def test_what_stood_in_for_a_value_is_not_shown_as_the_rows_own(as_rules):
    rows = [{"c": "pqr"[n % 3], "x": n, "y": "no" if n % 3 == 0 else "yes" if n > 20 else "may"} for n in range(60)]
    grown = train(dataset_from_rows(rows, target="y"), "id3", missing="imputed", numeric="best")
    model = extract_rules(grown) if as_rules else grown
    own, no_number, no_category, nothing = explain(
        model, [{"c": "q", "x": 50}, {"c": "q"}, {"c": "new", "x": 3}, {}], detail="full"
    )
    mean, most = 29.5, "p"  # of 0 to 59; of equally many categories the first
    assert [(step.value, step.imputed, step.reason) for step in own.paths[0]] == [
        ("q", None, "value"),
        (50, None, "value"),
    ]
    asked = [(step.value, step.imputed, step.reason, step.margin) for step in no_number.paths[0]]
    assert asked == [("q", None, "value", None), (None, mean, "missing", None)]
    assert [(step.value, step.imputed, step.reason) for step in no_category.paths[0]] == [(None, most, "unseen")]
    assert [step.to_dict()["imputed"] for step in nothing.paths[0]] == [most]
    assert f"(the value is missing; replaced by {mean})" in render_explanation(no_number)
    if as_rules:
        [passed] = [rule for rule in no_number.passed_over if rule.failed.attribute.name == "x"]
        assert (passed.value, passed.imputed, passed.reason) == (None, mean, "missing")
        assert f"(it is missing; replaced by {mean})" in render_explanation(no_number)


def test_contributions_add_up_to_the_number_of_a_leaf_without_rows():
    model = plant(NUMBERS, Cut(0, 0.0, (Leaf((10.0, 1.0, 0.0)), Leaf((0.0, 7.0, 0.0)))))
    explanation = only(model, {"length": 1}, detail="full")
    assert (explanation.prediction.value, explanation.baseline) == (7.0, 1.0)
    assert explanation.contributions == {"length": 6.0}


def test_contributions_explain_a_median_where_leaves_answer_with_medians():
    rows = [{"x": x, "y": y} for x, y in [(1, 0.0), (1, 0.0), (1, 9.0), (2, 10.0), (2, 10.0), (2, 40.0)]]
    data = dataset_from_rows(rows, target="y", task="regression")
    model = train(data, "cart", criterion="absolute_error", pruning=None)
    explanation = only(model, {"x": 1}, detail="full")
    assert (explanation.prediction.value, explanation.baseline) == (0.0, 9.5)  # the medians of 3 and of all 6 rows
    assert explanation.contributions == {"x": -9.5}
