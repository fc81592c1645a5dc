"""What is told of rules: explanations, JSON, drawings, summaries."""

import json
import math

from hypothesis import given

from espalier import (
    Condition,
    Feature,
    FeatureKind,
    Role,
    Schema,
    dataset_from_rows,
    evaluate,
    explain,
    extract_rules,
    render_explanation,
    rules_to_dict,
    summary,
    to_logic,
    to_mermaid,
    train,
)
from espalier.rules.unite import simplified
from tests.core.counted_calls import n_calls
from tests.core.explanation.test_explain import holds
from tests.core.planted import MIXED, A, Ask, B, C, Cut, Leaf, mixed_rows, plant, roots


def test_a_class_is_found_by_how_it_is_written():
    schema = Schema((Feature("x", FeatureKind.NUMERIC), Feature("y", FeatureKind.NOMINAL, Role.TARGET, (1, 2))))
    model = plant(schema, Cut(0, 0.0, (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))))
    assert to_logic(model, "2") == to_logic(model, 2) == "2 ⇔ x > 0\n"


def test_an_explanation_names_the_rule_that_fired_bound_by_bound():
    model = extract_rules(plant(MIXED, Cut(0, 4.0, (Cut(0, 1.0, (A, Ask(1, (0, 1, 1), (B, C)))), A))))
    explanation = explain(model, [{"length": 2.5, "colour": "red"}])[0]
    assert explanation.rule == "if 1 < length ≤ 4 and colour is red then b"
    steps = [step.to_dict() for step in explanation.paths[0]]
    assert [(step["attribute"], step["test"], step.get("threshold"), step["branch"]) for step in steps] == [
        ("length", "<=", 1.0, "no"),
        ("length", "<=", 4.0, "yes"),
        ("colour", "in", None, "yes"),
    ]
    assert [step.get("margin") for step in steps] == [1.5, 1.5, None]
    assert {step["node"] for step in steps} == {explanation.prediction.leaf} == {1}
    assert "passed_over" not in explanation.to_dict()


def test_a_full_explanation_names_the_rules_before_it_each_with_what_failed_first():
    model = extract_rules(plant(MIXED, Cut(0, 4.0, (Ask(1, (0, 1, 1), (B, C)), A))))
    explanation = explain(model, [{"length": 5.0}], detail="full")[0]
    assert [rule.to_dict() for rule in explanation.passed_over] == [
        {
            "number": 0,
            "rule": "if length ≤ 4 and colour is red then b",
            "failed": {"attribute": "length", "at_most": 4.0, "text": "length ≤ 4"},
            "value": 5.0,
        },
        {
            "number": 1,
            "rule": "if length ≤ 4 and colour is green or blue then c",
            "failed": {"attribute": "length", "at_most": 4.0, "text": "length ≤ 4"},
            "value": 5.0,
        },
    ]
    missing = explain(model, [{"colour": "mauve"}], detail="full")[0]
    assert [rule.reason for rule in missing.passed_over] == ["missing", "missing", "missing"]
    assert missing.rule == "otherwise a"
    unseen = explain(model, [{"length": 1.0, "colour": "mauve"}], detail="full")[0]
    why = [(rule.value, rule.reason) for rule in unseen.passed_over]
    assert why == [(None, "unseen"), (None, "unseen"), (1.0, "value")]


def test_the_text_of_an_explanation_tells_the_rule_and_what_was_passed_over():
    model = extract_rules(plant(MIXED, Cut(0, 4.0, (A, B))))
    assert render_explanation(explain(model, [{"length": 5}], detail="full")[0]).splitlines() == [
        "  length > 4  (it is 5)",
        "  not rule 0, if length ≤ 4 then a: length ≤ 4 does not hold (it is 5)",
        "answer: b (a 0, b 1, c 0; from training weight 2)",
        "because: if length > 4 then b",
        "missing: colour, size, sold",
    ]
    assert "  no rule holds" in render_explanation(explain(model, [{}])[0]).splitlines()


@given(root=roots(MIXED), row=mixed_rows())
def test_every_rule_passed_over_fails_at_its_first_condition_that_does_not_hold(root, row):
    model = extract_rules(plant(MIXED, root))
    explanation = explain(model, [row], detail="full")[0]
    assert len(explanation.passed_over) == explanation.prediction.leaf
    for passed in explanation.passed_over:
        rule = model.rules.rules[passed.number]
        failing = [condition for condition in rule.conditions if holds(condition, row) is not True]
        assert passed.failed == failing[0]
    assert all(holds(condition, row) is True for condition in explanation.conditions)


def test_the_json_of_rules_names_attributes_and_categories():
    document = rules_to_dict(plant(MIXED, Ask(1, (0, 1, 1), (A, C))))
    assert document["n_rules"] == 2
    assert document["rules"][1]["conditions"] == [
        {"attribute": "colour", "in": ["green", "blue"], "text": "colour is green or blue"}
    ]
    assert (document["rules"][1]["label"], document["rules"][1]["stats"]) == ("c", [0.0, 1.0, 3.0])
    assert document["default"]["text"] == "otherwise a"
    assert json.loads(json.dumps(document)) == document


def test_mermaid_is_a_chain_of_rules():
    assert to_mermaid(extract_rules(plant(MIXED, Cut(0, 1.5, (A, B))))).splitlines() == [
        "flowchart TD",
        '    r0["length ≤ 1.5"]',
        '    a0(["a (4)"])',
        '    r0 -->|"yes"| a0',
        '    r0 -->|"no"| r1',
        '    r1["length #62; 1.5"]',
        '    a1(["b (2)"])',
        '    r1 -->|"yes"| a1',
        '    r1 -->|"no"| r2',
        '    r2(["a (0)"])',
    ]


def test_a_summary_counts_rules_and_conditions_instead_of_leaves():
    figures = summary(extract_rules(plant(MIXED, Cut(0, 1.5, (A, Ask(1, (0, 1, 1), (B, C)))))))
    assert (figures["n_rules"], figures["n_conditions"]) == (3, 5)
    assert figures["n_leaves"] is figures["n_nodes"] is figures["depth"] is None
    assert summary(plant(MIXED, A))["n_rules"] is None


def test_rules_are_evaluated_like_trees():
    rows = [{"x": float(x), "y": "a" if x < 5 else "b"} for x in range(10)]
    data = dataset_from_rows(rows, target="y")
    model = train(data, "cart")
    assert evaluate(extract_rules(model), data) == evaluate(model, data)


def test_intervals_that_touch_or_overlap_are_joined_and_others_are_not():
    x, y = Feature("x", FeatureKind.NUMERIC), Feature("y", FeatureKind.NUMERIC)
    joined = simplified([(Condition(x, at_most=1.0),), (Condition(x, above=3.0),), (Condition(x, 1.0, 2.0),)])
    assert [[condition.to_dict()["text"] for condition in each] for each in joined] == [["x ≤ 2"], ["x > 3"]]
    apart = simplified([(Condition(x, at_most=1.0), Condition(y, at_most=0.0)), (Condition(x, above=1.0),)])
    assert len(apart) == 2
    assert simplified([(Condition(x, at_most=1.0),), (Condition(x, above=0.0),)]) == ((),)
    assert math.isinf(apart[0][0].above)


def test_conjunctions_whose_hashes_collide_are_not_united():
    x, y = Feature("x", FeatureKind.NUMERIC), Feature("y", FeatureKind.NUMERIC)
    assert hash(-1.0) == hash(-2.0)
    apart = [(Condition(x, above=-1.0), Condition(y, at_most=3.0)), (Condition(x, above=-2.0), Condition(y, above=3.0))]
    assert simplified(apart) == tuple(apart)
    alike = [(Condition(x, above=-2.0), Condition(y, at_most=3.0)), *apart]
    assert simplified(alike) == ((Condition(x, above=-2.0),),)


def test_conjunctions_are_compared_without_listing_their_other_conditions_for_each_attribute():
    attributes = [Feature(f"x{place}", FeatureKind.NUMERIC) for place in range(40)]
    apart = [
        tuple(Condition(each, above=float(place * (number + 1) % 97)) for number, each in enumerate(attributes[:20]))
        for place in range(1, 97)
    ] + [(Condition(each, above=1.0), Condition(attributes[0], at_most=2.0)) for each in attributes[20:]]
    n_conditions = sum(map(len, apart))
    # A generator of the others would be entered once per condition and attribute.
    assert n_calls(lambda: simplified(apart)) < n_conditions * len(attributes) / 4
