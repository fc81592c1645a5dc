"""Rules taken from trees answer as the trees do, and describe a class no longer than its paths."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    ConfigError,
    Feature,
    FeatureKind,
    NotApplicable,
    Role,
    Schema,
    class_dnf,
    class_sentences,
    dataset_from_csv,
    dataset_from_rows,
    evaluate,
    explain,
    extract_rules,
    predict,
    render_explanation,
    rules_to_dict,
    to_logic,
    to_text,
    train,
)
from espalier.model.node_tests import LEAF
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import encode_matrix
from espalier.prediction.rule_predictor import firing_rules
from espalier.rules.extract import edge_condition, merged
from tests.core.explanation.test_explain import holds
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Known, Leaf, mixed_rows, plant, roots
from tests.factories import REFERENCE, needs_reference

full_rows = st.fixed_dictionaries(
    {
        "length": st.integers(-8, 8).map(lambda n: n / 2),
        "colour": st.sampled_from(["red", "green", "blue"]),
        "size": st.sampled_from(["small", "middle", "large"]),
        "sold": st.booleans(),
    }
)


def tennis(preset="id3"):
    figures = json.loads((REFERENCE / "expected" / "theory.json").read_text())["tennis"]
    rows = [dict(zip(figures["columns"], row, strict=True)) for row in figures["rows"]]
    return train(dataset_from_rows(rows, target=figures["columns"][-1]), preset), figures


@given(root=roots(MIXED), row=full_rows)
def test_extracted_rules_answer_a_row_without_missing_values_as_the_tree_does(root, row):
    model = plant(MIXED, root)
    tree_says = predict(model, [row])[0]
    if len(tree_says.visits) == 1:
        rules_say = predict(extract_rules(model), [row])[0]
        for name in ("label", "code", "distribution", "confidence", "support"):
            assert getattr(rules_say, name) == getattr(tree_says, name)


@given(root=roots(NUMBERS), row=full_rows)
def test_extracted_rules_of_a_regression_answer_as_the_tree_does(root, row):
    model = plant(NUMBERS, root)
    tree_says = predict(model, [row])[0]
    if len(tree_says.visits) == 1:
        rules_say = predict(extract_rules(model), [row])[0]
        assert (rules_say.value, rules_say.std, rules_say.support) == (
            tree_says.value,
            tree_says.std,
            tree_says.support,
        )


@given(root=roots(MIXED))
def test_each_extracted_rule_asks_what_the_tests_of_its_whole_path_merged_ask(root):
    model = plant(MIXED, root)
    tree, asked = model.tree, []
    for leaf in np.flatnonzero(tree.test == LEAF).tolist():
        way, node = [], leaf
        while node > 0:
            way.append(edge_condition(model, node))
            node = int(tree.parent[node])
        asked.append(merged(way[::-1]))
    rules = extract_rules(model).rules.rules
    assert [rule.conditions for rule in rules] == [each for each in asked if each is not None]


@given(root=roots(MIXED), row=mixed_rows())
def test_at_most_one_extracted_rule_holds_for_any_row(root, row):
    body = extract_rules(plant(MIXED, root)).rules
    fired = [rule for rule in body.rules if all(holds(condition, row) is True for condition in rule.conditions)]
    assert len(fired) <= 1


@given(root=roots(MIXED), rows=st.lists(mixed_rows(), min_size=1, max_size=6))
def test_many_rows_get_the_answers_that_single_rows_get(root, rows):
    model = extract_rules(plant(MIXED, root))
    answers = predict(model, rows)
    values = np.array([answer.row.values for answer in answers]).T
    assert predict_batch(model, values).leaves.tolist() == [answer.leaf for answer in answers]
    assert predict_batch(model, values).answers.tolist() == [answer.code for answer in answers]
    assert predict_batch(model, values, shares=True).shares.tolist() == [
        [share for _, share in each.distribution] for each in answers
    ]


@given(root=roots(MIXED), rows=st.lists(mixed_rows(), min_size=1, max_size=6))
def test_compiled_code_finds_the_same_rules(root, rows):
    model = extract_rules(plant(MIXED, root))
    answers = predict(model, rows)
    values = np.array([answer.row.values for answer in answers]).T
    assert firing_rules(MIXED, model.rules, values).tolist() == [answer.leaf for answer in answers]


@given(root=roots(NUMBERS), rows=st.lists(mixed_rows(), min_size=1, max_size=6))
def test_many_rows_get_the_numbers_that_single_rows_get(root, rows):
    model = extract_rules(plant(NUMBERS, root))
    answers = predict(model, rows)
    values = np.array([answer.row.values for answer in answers]).T
    assert predict_batch(model, values).answers.tolist() == [answer.value for answer in answers]


@given(root=roots(MIXED), row=full_rows)
def test_a_row_is_of_a_class_exactly_where_a_conjunction_of_it_holds_and_none_of_the_others(root, row):
    model = plant(MIXED, root)
    answer = predict(model, [row])[0]
    if len(answer.visits) == 1:
        for label in MIXED.classes:
            dnf = class_dnf(model, label)
            own, others = (
                sum(all(holds(condition, row) for condition in each) for each in side)
                for side in (dnf.conjunctions, dnf.excluded)
            )
            assert (own, others) == ((1, 0) if answer.label == label else (0, 1))


@given(root=roots(MIXED))
def test_the_description_of_a_class_is_never_longer_than_its_paths(root):
    model = plant(MIXED, root)
    body = extract_rules(model).rules
    for code, label in enumerate(MIXED.classes):
        own = [rule for rule in body.rules if rule.value == code]
        dnf = class_dnf(model, label)
        assert len(dnf.conjunctions) <= len(own)
        assert sum(map(len, dnf.conjunctions)) <= sum(len(rule.conditions) for rule in own)


@needs_reference
@pytest.mark.parametrize("preset", ["cart", "c45", "reptree"])
@pytest.mark.parametrize("name", ["drug200", "iris", "kyphosis", "titanic"])
def test_the_rules_of_a_trained_tree_give_its_answers(name, preset):
    folder = REFERENCE / "data"
    schema = folder / f"{name}.schema.json"
    document = json.loads(schema.read_text())
    data = dataset_from_csv(folder / document["file"], schema=document)
    model = train(data, preset)
    values = encode_matrix(model, data)
    coded = np.array([feature.coded for feature in model.schema.attributes])
    whole = np.flatnonzero(~np.any(np.isnan(values) | (coded[:, None] & (values < 0)), axis=0))
    assert len(whole) > 50
    expected = predict_batch(model, values[:, whole]).answers
    assert predict_batch(extract_rules(model), values[:, whole]).answers.tolist() == expected.tolist()


@needs_reference
def test_the_rules_of_the_id3_tree_of_play_tennis_are_the_published_ones():
    model, figures = tennis()
    rules = extract_rules(model).rules
    found = {
        " & ".join(f"{condition.attribute.name}={condition.categories[0]}" for condition in rule.conditions)
        + f" -> {model.schema.classes[rule.value]}"
        for rule in rules.rules
    }
    assert found == set(figures["id3_rules"])
    assert len(rules.rules) == figures["id3_leaves"]


@needs_reference
def test_the_description_of_playing_is_the_seeds_own_and_so_is_its_negation():
    model, _ = tennis()
    lines = to_logic(model, "Yes").splitlines()
    # Lecture notes on machine learning (Alvarez 2022), "Disjunction of conjunctions"; the terms stand in leaf order.
    assert set(lines[0].removeprefix("Yes ⇔ ").split(" ∨ ")) == {
        "(Outlook = Sunny ∧ Humidity = Normal)",
        "(Outlook = Overcast)",
        "(Outlook = Rain ∧ Wind = Weak)",
    }
    # The other notes write the same tree as a negation.
    negated = lines[1].strip().removeprefix("⇔ ¬(").removesuffix(")")
    assert set(negated.split(" ∨ ")) == {
        "(Outlook = Sunny ∧ Humidity = High)",
        "(Outlook = Rain ∧ Wind = Strong)",
    }
    assert len(lines) == 2


def test_truth_values_are_written_by_their_names():
    schema = Schema(
        (
            *(Feature(name, FeatureKind.BOOLEAN, categories=(False, True)) for name in "AB"),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("no", "yes")),
        )
    )
    no, yes = Leaf((1.0, 0.0)), Leaf((0.0, 1.0))
    model = plant(schema, Ask(0, (0, 1), (no, Ask(1, (0, 1), (yes, no)))))
    assert to_logic(model, "yes") == "yes ⇔ A ∧ ¬B\n"
    assert to_logic(model) == "no ⇔ (¬A) ∨ (A ∧ B)\n   ⇔ ¬(A ∧ ¬B)\nyes ⇔ A ∧ ¬B\n"


def test_leaves_of_one_class_side_by_side_are_united():
    model = plant(MIXED, Cut(0, 1.5, (Ask(1, (0, 1, 0), (A, A)), B)))
    assert to_logic(model, "a") == "a ⇔ length ≤ 1.5\n"
    assert class_sentences(model, "b") == ("if length > 1.5 then b",)


def test_paths_that_differ_in_one_attribute_are_united_wherever_they_stand():
    below = Ask(1, (0, 1, 1), (A, B))
    model = plant(MIXED, Cut(0, 0.0, (below, Cut(0, 3.0, (below, B)))))
    assert class_dnf(model, "a").to_dict()["any_of"] == [
        [
            {"attribute": "length", "at_most": 3.0, "text": "length ≤ 3"},
            {"attribute": "colour", "in": ["red"], "text": "colour is red"},
        ]
    ]


def test_sets_of_categories_are_united_and_a_full_set_is_no_condition():
    model = plant(MIXED, Ask(1, (0, 1, 2), (A, A, B)))
    assert to_logic(model, "a") == "a ⇔ colour ∈ {red, green}\n"
    assert to_logic(plant(MIXED, Ask(1, (0, 1, 2), (A, A, A))), "a") == "a ⇔ ⊤\n"
    assert to_logic(plant(MIXED, Ask(1, (0, 1, 2), (A, A, A))), "b") == "b ⇔ ⊥\n"


def test_a_path_that_asks_for_what_excludes_itself_gives_no_rule():
    model = plant(MIXED, Cut(0, 1.0, (Cut(0, 2.0, (A, B)), Cut(2, 0.5, (A, Cut(2, 0.7, (B, C)))))))
    assert to_text(extract_rules(model)).splitlines()[:4] == [
        "rule 0: if length ≤ 1 then a (4)",
        "rule 1: if length > 1 and size ≤ small then a (4)",
        "rule 2: if length > 1 and size > small then c (4/1)",
        "otherwise a",
    ]


def test_a_category_without_training_rows_is_listed_with_the_branch_that_it_falls_back_to():
    model = plant(MIXED, Ask(1, (0, 1, -1), (A, B), fallback=1))
    assert to_text(extract_rules(model)).splitlines()[1] == "rule 1: if colour is green or blue then b (2)"


def test_a_condition_on_a_missing_value_does_not_hold_and_the_default_answers():
    model = extract_rules(plant(MIXED, Cut(0, 1.0, (A, B), fallback=1)))
    answer = predict(model, [{}])[0]
    assert (answer.leaf, answer.label, answer.support) == (2, "a", 0.0)
    assert answer.distribution == (("a", 4 / 6), ("b", 2 / 6), ("c", 0.0))


def test_a_condition_may_ask_for_the_missing_value_itself():
    model = extract_rules(plant(MIXED, Known(0, (A, B))))
    assert [predict(model, [row])[0].label for row in ({"length": 1}, {})] == ["a", "b"]
    assert to_text(model).splitlines()[:2] == [
        "rule 0: if length is known then a (4)",
        "rule 1: if length is missing then b (2)",
    ]


def test_an_empty_branch_answers_with_the_distribution_of_the_node_above():
    model = plant(MIXED, Ask(1, (0, 1, 2), (A, B, Leaf((0.0, 0.0, 0.0)))))
    rules = extract_rules(model)
    row = {"colour": "blue"}
    assert predict(rules, [row])[0].distribution == predict(model, [row])[0].distribution


def test_a_tree_of_one_leaf_is_one_rule_without_conditions():
    model = extract_rules(plant(MIXED, C))
    assert to_text(model) == "rule 0: always c (4/1)\notherwise c\n"
    assert to_logic(model) == "a ⇔ ⊥\nb ⇔ ⊥\nc ⇔ ⊤\n"


def test_rules_of_rules_are_the_same_rules():
    rules = extract_rules(plant(MIXED, Cut(0, 1.0, (A, B))))
    assert extract_rules(rules) is rules


def test_a_regression_writes_its_rules_as_arrows():
    model = plant(NUMBERS, Cut(0, 2.5, (Leaf((3.0, 10.0, 12.0)), Leaf((1.0, 20.0, 0.0)))))
    assert to_logic(model) == "length ≤ 2.5 → 10\nlength > 2.5 → 20\notherwise → 12.5\n"
    assert to_text(extract_rules(model)) == (
        "rule 0: if length ≤ 2.5 then 10 (3 ± 2)\nrule 1: if length > 2.5 then 20 (1 ± 0)\notherwise 12.5\n"
    )


def test_what_has_no_description_says_why():
    with pytest.raises(NotApplicable, match="numbers"):
        class_dnf(plant(NUMBERS, Leaf((1.0, 1.0, 0.0))), 1)
    with pytest.raises(ConfigError, match="must be one of the model's classes: a, b, c"):
        class_dnf(plant(MIXED, A), "d")
    with pytest.raises(NotApplicable, match="is a list of rules"):
        _ = extract_rules(plant(MIXED, A)).tree
    with pytest.raises(NotApplicable, match="is a tree"):
        _ = plant(MIXED, A).rules


def test_leaves_that_are_linear_models_give_no_rules():
    rows = [{"x": float(x), "z": float(x % 7), "y": 3.0 * x + x % 7} for x in range(60)]
    data = dataset_from_rows(rows, target="y", task="regression")
    with pytest.raises(NotApplicable, match="linear"):
        extract_rules(train(data, "m5"))
    smoothed = train(data, "m5", leaf="constant", pruning=None)
    assert evaluate(extract_rules(smoothed), data) == evaluate(smoothed, data)


def test_leaves_that_only_rows_with_missing_values_reach_are_counted_in_a_note():
    rows = [{"x": n if n % 4 else None, "y": "none" if n % 4 == 0 else "ab"[n > 20]} for n in range(40)]
    model = train(dataset_from_rows(rows, target="y"), "cart")
    found = extract_rules(model)
    left = model.tree.n_leaves - found.rules.n_rules
    assert left == 1
    assert found.notes[-1] == "1 leaf gives no rule: only rows with missing values reach it"
    assert rules_to_dict(model)["notes"] == list(found.notes)
    complete = train(dataset_from_rows([row for row in rows if row["x"]], target="y"), "cart")
    assert len(extract_rules(complete).notes) == len(complete.notes) + 1


@pytest.mark.parametrize(
    ("rows", "text", "logic"),
    [
        pytest.param(
            {"p": ("a, b", "c"), "q": ("a", "b, c")},
            ["if k is a or b, c then q", "if k is a, b or c then p"],
            ['p ⇔ k ∈ {"a, b", c}', 'q ⇔ k ∈ {a, "b, c"}'],
            id="commas",
        ),
        pytest.param(
            {"p": ("a or c", "b"), "q": ("a", "c or b")},
            ['if k is a or "c or b" then q', 'if k is "a or c" or b then p'],
            ['p ⇔ k ∈ {"a or c", b}', 'q ⇔ k ∈ {a, "c or b"}'],
            id="words",
        ),
        pytest.param(
            {"p": (" ", '"'), "q": ("}",)},
            ['if k is " " or "\\"" then p', 'if k is "}" then q'],
            ['p ⇔ k ∈ {" ", "\\""}', 'q ⇔ k = "}"'],
            id="signs",
        ),
    ],
)
def test_categories_that_read_like_a_part_of_the_sentence_stand_in_quotes(rows, text, logic):
    listed = [{"k": k, "y": y} for y, some in rows.items() for k in some for _ in range(4)]
    model = train(dataset_from_rows(listed, target="y"), "cart", nominal="subset")
    assert sorted(re.findall("if .* then .", to_text(extract_rules(model)))) == sorted(text)
    assert to_logic(model).splitlines() == logic


def test_a_name_that_reads_like_a_condition_stands_in_quotes():
    rows = [{"x ≤ y": n / 4, "y": "ab"[n > 3]} for n in range(8)]
    model = train(dataset_from_rows(rows, target="y"), "cart")
    assert to_text(extract_rules(model)).startswith('rule 0: if "x ≤ y" ≤ 0.875 then a')
    assert to_text(model).startswith('"x ≤ y" ≤ 0.875: a')
    assert '"x ≤ y" ≤ 0.875  (it is 0.5)' in render_explanation(explain(model, [{"x ≤ y": 0.5}])[0])
