"""Documents of rule lists: written, read back, and refused by name wherever something is wrong."""

import copy
import json
import math

import pytest
from hypothesis import given, strategies as st

from espalier import (
    DocumentError,
    Feature,
    FeatureKind,
    Role,
    Schema,
    explain,
    extract_rules,
    from_document,
    from_json,
    predict,
    render_explanation,
    rules_to_dict,
    to_document,
    to_json,
    to_logic,
    to_mermaid,
    to_text,
)
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Known, Leaf, mixed_rows, plant, roots

A, B, C = Leaf((4.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0)), Leaf((0.0, 1.0, 3.0))
ROOT = Cut(0, 2.5, (Ask(1, (0, 1, 0), (A, B)), Cut(2, 0.5, (B, Known(3, (A, C))))))


def document():
    return to_document(extract_rules(plant(MIXED, ROOT)))


def regression():
    model = plant(NUMBERS, Cut(0, 2.5, (Leaf((3.0, 10.0, 12.0)), Leaf((1.0, 20.0, 0.0)))))
    return to_document(extract_rules(model))


@given(root=roots(MIXED), row=mixed_rows())
def test_a_list_of_rules_is_read_back_with_the_same_bytes_and_answers(root, row):
    model = extract_rules(plant(MIXED, root))
    again = from_json(to_json(model))
    assert to_json(again) == to_json(model)
    assert again.rules == model.rules
    assert predict(again, [row]) == predict(model, [row])


@given(root=roots(NUMBERS))
def test_a_list_of_rules_of_a_regression_is_read_back(root):
    model = extract_rules(plant(NUMBERS, root))
    assert from_json(to_json(model)).rules == model.rules


def test_bounds_may_be_any_finite_number():
    model = extract_rules(plant(NUMBERS, Cut(0, -1e308, (Leaf((3.0, 10.0, 12.0)), Leaf((1.0, 20.0, 0.0))))))
    assert from_json(to_json(model)).rules == model.rules


def test_the_document_names_attributes_and_categories_by_their_places():
    rules = document()["rules"]
    assert document()["kind"] == "rules"
    assert rules["exclusive"] is True
    assert [rule["conditions"] for rule in rules["rules"]] == [
        [{"attribute": 0, "at_most": 2.5}, {"attribute": 1, "categories": [0, 2]}],
        [{"attribute": 0, "at_most": 2.5}, {"attribute": 1, "categories": [1]}],
        [{"attribute": 0, "above": 2.5}, {"attribute": 2, "at_most": 0.5}],
        [{"attribute": 0, "above": 2.5}, {"attribute": 2, "above": 0.5}, {"attribute": 3, "known": True}],
        [{"attribute": 0, "above": 2.5}, {"attribute": 2, "above": 0.5}, {"attribute": 3, "known": False}],
    ]
    assert rules["default"] == {"value": 0, "weight": 0.0, "stats": [8.0, 5.0, 3.0]}


def changed(given_document, path, value):
    made = copy.deepcopy(given_document)
    *outer, last = path
    inside = made["rules"]
    for part in outer:
        inside = inside[part]
    inside[last] = value
    return made


RULE = ("rules", 0)
CONDITION = ("rules", 0, "conditions", 0)
SECOND = ("rules", 0, "conditions", 1)


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("exclusive",), 1, "/rules/exclusive"),
        (("rules",), None, "/rules/rules"),
        (("rules",), {"0": {}}, "/rules/rules"),
        (RULE, None, "/rules/rules/0"),
        (RULE, [], "/rules/rules/0"),
        (("default",), None, "/rules/default"),
        (("default", "value"), 3, "/rules/default/value"),
        (("default", "stats"), [0.0, 0.0, 0.0], "/rules/default/stats"),
        ((*RULE, "value"), 3, "/rules/rules/0/value"),
        ((*RULE, "value"), -1, "/rules/rules/0/value"),
        ((*RULE, "value"), True, "/rules/rules/0/value"),
        ((*RULE, "value"), 1.0, "/rules/rules/0/value"),
        ((*RULE, "value"), None, "/rules/rules/0/value"),
        ((*RULE, "weight"), -1, "/rules/rules/0/weight"),
        ((*RULE, "weight"), None, "/rules/rules/0/weight"),
        ((*RULE, "weight"), "4", "/rules/rules/0/weight"),
        ((*RULE, "weight"), 1e301, "/rules/rules/0/weight"),
        ((*RULE, "estimate"), "good", "/rules/rules/0/estimate"),
        ((*RULE, "stats"), [1.0, 2.0], "/rules/rules/0/stats"),
        ((*RULE, "stats"), [1.0, None, 2.0], "/rules/rules/0/stats"),
        ((*RULE, "stats"), [-1.0, 5.0, 0.0], "/rules/rules/0/stats"),
        ((*RULE, "stats"), [0, 0, 0], "/rules/rules/0/stats"),
        ((*RULE, "conditions"), None, "/rules/rules/0/conditions"),
        ((*RULE, "conditions"), "x", "/rules/rules/0/conditions"),
        (CONDITION, None, "/rules/rules/0/conditions/0/attribute"),
        ((*CONDITION, "attribute"), 4, "/rules/rules/0/conditions/0/attribute"),
        ((*CONDITION, "attribute"), -1, "/rules/rules/0/conditions/0/attribute"),
        ((*CONDITION, "attribute"), True, "/rules/rules/0/conditions/0/attribute"),
        ((*CONDITION, "attribute"), "length", "/rules/rules/0/conditions/0/attribute"),
        (SECOND, {"attribute": 0, "above": 0.0}, "/rules/rules/0/conditions/1/attribute"),
        (CONDITION, {"attribute": 0}, "/rules/rules/0/conditions/0"),
        (CONDITION, {"attribute": 0, "below": 3}, "/rules/rules/0/conditions/0"),
        (CONDITION, {"attribute": 0, "at_most": None}, "/rules/rules/0/conditions/0"),
        (CONDITION, {"attribute": 0, "at_most": "2"}, "/rules/rules/0/conditions/0"),
        (CONDITION, {"attribute": 0, "at_most": True}, "/rules/rules/0/conditions/0"),
        (CONDITION, {"attribute": 0, "above": 2.0, "at_most": 2.0}, "/rules/rules/0/conditions/0"),
        (CONDITION, {"attribute": 0, "categories": [0]}, "/rules/rules/0/conditions/0/categories"),
        (CONDITION, {"attribute": 0, "at_most": 1.0, "known": False}, "/rules/rules/0/conditions/0/known"),
        (CONDITION, {"attribute": 0, "known": None}, "/rules/rules/0/conditions/0/known"),
        (SECOND, {"attribute": 1, "at_most": 1.0}, "/rules/rules/0/conditions/1"),
        (SECOND, {"attribute": 1, "categories": []}, "/rules/rules/0/conditions/1/categories"),
        (SECOND, {"attribute": 1, "categories": [3]}, "/rules/rules/0/conditions/1/categories"),
        (SECOND, {"attribute": 1, "categories": [-1]}, "/rules/rules/0/conditions/1/categories"),
        (SECOND, {"attribute": 1, "categories": [0, 0]}, "/rules/rules/0/conditions/1/categories"),
        (SECOND, {"attribute": 1, "categories": [0.0]}, "/rules/rules/0/conditions/1/categories"),
        (SECOND, {"attribute": 1, "categories": None}, "/rules/rules/0/conditions/1/categories"),
        (SECOND, {"attribute": 2, "categories": [0]}, "/rules/rules/0/conditions/1/categories"),
    ],
)
def test_whatever_is_wrong_is_refused_at_its_place(path, value, where):
    with pytest.raises(DocumentError) as caught:
        from_document(changed(document(), path, value))
    assert where in [fault.path for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*RULE, "value"), 1e200),
        ((*RULE, "value"), "10"),
        ((*RULE, "stats"), [0.0, 1.0, 1.0]),
        ((*RULE, "stats"), [1.0, 1e200, 1.0]),
        ((*RULE, "stats"), [1.0, 1.0, -1.0]),
    ],
)
def test_the_numbers_of_a_regression_are_checked(path, value):
    with pytest.raises(DocumentError):
        from_document(changed(regression(), path, value))


def test_a_bound_of_a_datetime_must_be_a_date():
    schema = Schema((Feature("day", FeatureKind.DATETIME), Feature("y", FeatureKind.NUMERIC, Role.TARGET)))
    model = extract_rules(plant(schema, Cut(0, 86400.0, (Leaf((1.0, 0.0, 0.0)), Leaf((1.0, 1.0, 0.0))))))
    assert from_json(to_json(model)).rules == model.rules
    with pytest.raises(DocumentError, match="years 1 to 9999"):
        from_document(changed(to_document(model), (*CONDITION, "at_most"), 1e18))


def test_every_fault_is_named_not_only_the_first():
    wrong = changed(changed(document(), (*RULE, "weight"), -1), ("default", "value"), 9)
    with pytest.raises(DocumentError) as caught:
        from_document(wrong)
    assert {fault.path for fault in caught.value.faults} >= {"/rules/rules/0/weight", "/rules/default/value"}


@pytest.mark.parametrize("kind", ["forest", None, ["rules"], "tree"])
def test_another_kind_or_the_wrong_body_is_refused(kind):
    with pytest.raises(DocumentError):
        from_document({**document(), "kind": kind})


JUNK = st.sampled_from([None, True, -1, 0, 2, 1.5, 1e308, "x", [], [0], [[]], {}, {"attribute": 0}])


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@given(data=st.data())
def test_a_document_with_junk_anywhere_is_refused_or_a_model_that_works(data):
    whole = document()
    path = data.draw(st.sampled_from([path for path in places(whole["rules"]) if path]))
    try:
        model = from_document(changed(whole, path, data.draw(JUNK)))
    except DocumentError:
        return
    for row in ({}, {"length": 1.0, "colour": "red", "size": "large", "sold": True}):
        render_explanation(explain(model, [row], detail="full")[0])
    assert from_json(to_json(model)).rules == model.rules
    for shown in (to_text, to_mermaid, to_logic, rules_to_dict):
        json.dumps(shown(model))
    assert math.isfinite(predict(model, [{}])[0].confidence)
