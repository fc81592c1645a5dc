"""Numbers are printed as they are computed with: rules and equations, read back, give the model's answers."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from espalier import (
    PRESETS,
    class_sentences,
    dataset_from_columns,
    explain,
    extract_rules,
    from_document,
    predict,
    render_explanation,
    rules_to_dict,
    to_document,
    to_dot,
    to_mermaid,
    to_svg,
    to_text,
    train,
)
from espalier.data.instants import instant_text, latest_instant_text, parse_instant
from espalier.model.texts import share_text
from tests.reference.sentences import parsed

NUMBERS = st.one_of(
    st.floats(-1e3, 1e3),
    st.integers(0, 40).map(lambda place: 1.7e9 + place / 8),
    st.integers(0, 30).map(lambda place: 0.1 * place),
    st.sampled_from([1.0, math.nextafter(1.0, 2.0), 1e-300, -1e300, 2.0**53]),
)
# A number of a printed test: the sign, then the number.
PRINTED = re.compile(r"(?:≤|>|&gt;|&lt;=) (-?\d[\d.]*(?:e[+-]?\d+)?)")


@st.composite
def tables(draw):
    """Two numeric attributes and a target of two classes."""
    n_rows = draw(st.integers(4, 30))
    columns = {name: draw(st.lists(NUMBERS, min_size=n_rows, max_size=n_rows)) for name in ("x", "y")}
    return columns | {
        "label": ["a", "b", *draw(st.lists(st.sampled_from("ab"), min_size=n_rows - 2, max_size=n_rows - 2))]
    }


def neighbours(model, columns):
    """The training rows, and each with a cell at, just below and just above every threshold."""
    rows = [{"x": x, "y": y} for x, y in zip(columns["x"], columns["y"], strict=True)]
    for node in np.flatnonzero(model.tree.test == 1).tolist():
        cut, name = float(model.tree.threshold[node]), model.schema.attributes[int(model.tree.feature[node])].name
        for value in (cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf)):
            rows += [row | {name: value} for row in rows[: len(columns["x"])]]
    return rows


@settings(max_examples=60)
@given(columns=tables(), preset=st.sampled_from(["cart", "c45"]))
def test_each_printed_rule_holds_for_just_the_rows_that_its_leaf_answers(columns, preset):
    model = train(dataset_from_columns(columns, target="label"), preset, pruning=None, min_weight_leaf=1)
    sentences = [parsed(rule["text"], {"x": (), "y": ()}) for rule in rules_to_dict(model)["rules"]]
    described_by = [
        (label, parsed(sentence, {"x": (), "y": ()})[0])
        for label in model.schema.classes
        for sentence in class_sentences(model, label)
    ]
    rows = neighbours(model, columns)
    for row, answer in zip(rows, predict(model, rows), strict=True):
        fired = [label for holds, label in sentences if all(test(row[name]) for name, test in holds.items())]
        assert fired == [answer.label]
        described = {label for label, holds in described_by if all(test(row[name]) for name, test in holds.items())}
        assert described == {answer.label}


@settings(max_examples=30)
@given(columns=tables())
def test_every_form_prints_the_thresholds_of_the_tree(columns):
    model = train(dataset_from_columns(columns, target="label"), "cart", min_weight_leaf=1)
    cuts = set(model.tree.threshold[model.tree.test == 1].tolist())
    for form in (to_text(model), to_mermaid(model), to_dot(model), to_svg(model), to_text(extract_rules(model))):
        unescaped = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), form)
        printed = {float(text) for text in PRINTED.findall(unescaped)}
        assert printed <= cuts
        assert printed or not cuts


@pytest.mark.parametrize("preset", [name for name in PRESETS if name in {"cart", "reptree"}])
def test_a_regressions_rules_print_the_number_that_is_answered(preset):
    values = [place / 7 for place in range(60)]
    data = dataset_from_columns({"x": values, "y": [value * value / 3 for value in values]}, target="y")
    model = train(data, preset, pruning=None)
    for row in ({"x": value} for value in values):
        [answer] = predict(model, [row])
        assert float(explain(model, [row])[0].rule.rpartition(" then ")[2]) == answer.value
        assert f"answer: {answer.value!r} ±".replace(".0 ±", " ±") in render_explanation(explain(model, [row])[0])


TERM = re.compile(r"([+-]) (\S+) × (?:\((\w+) ([+-]) (\S+)\)|(\w+))")


def by_hand(equation, row):
    """What a printed equation gives: each number as it is printed."""
    constant, terms = re.fullmatch(r".*?= (-?\S+)(.*)", equation).groups()
    total = float(constant)
    for sign, size, centred, direction, centre, plain in TERM.findall(terms):
        column = row[plain] if plain else row[centred] + float(direction + centre)
        total += float(sign + size) * column
    return total


@pytest.mark.parametrize("start", [0.0, 1_700_000_000.0, -5e7, 1e12])
def test_a_printed_equation_gives_the_models_number(start):
    draw = np.random.default_rng(4)
    time, size = start + draw.uniform(0, 1e6, 300), draw.uniform(0, 5, 300)
    target = (time - start) * 2e-6 + 0.2 * size + draw.normal(0, 0.05, 300)  # from 0 to 3, or so
    data = dataset_from_columns({"time": time.tolist(), "size": size.tolist(), "y": target.tolist()}, target="y")
    model = train(data, "m5")
    text = to_text(model)
    equations = dict(re.findall(r"^(LM\d+): (y = .*)$", text, re.MULTILINE))
    assert equations
    rows = [{"time": float(t), "size": float(s)} for t, s in zip(time, size, strict=True)]
    for row, answer in zip(rows, predict(model, rows), strict=True):
        near = min(abs(by_hand(equation, row) - answer.value) for equation in equations.values())
        assert near < 1e-5  # a millionth of what the terms vary by, about 3
    assert ("(time - " in text or "(time + " in text) == (abs(start) > 1e10 or start == 1_700_000_000.0)


def test_an_equation_has_no_centre_beyond_the_numbers_that_a_leaf_reads():
    columns = {"x": list(range(40)), "z": [n * n % 7 for n in range(40)], "y": [5.5 * n + n * n % 7 for n in range(40)]}
    document = to_document(train(dataset_from_columns(columns, target="y", task="regression"), "m5", smoothing=None))
    linear, scales = document["tree"]["linear"], document["preparation"]["scales"]
    linear["coefficient"] = [(-1) ** place * 1e150 for place in range(len(linear["coefficient"]))]
    for middle in (1.7e308, 1e150):
        document["preparation"]["scales"] = {**scales, "middle": [middle] * 2, "span": [1e158] * 2}
        text = to_text(from_document(document))
        assert "1e+150 × x" in text
        assert "inf" not in text


@given(seconds=st.floats(-6e10, 2e11))
def test_a_printed_date_is_at_most_the_threshold_and_the_next_microsecond_is_after_it(seconds):
    printed = parse_instant(latest_instant_text(seconds))
    assert printed <= seconds
    assert parse_instant(instant_text(printed)) == printed
    after = parse_instant(instant_text(printed + 1e-6 + math.ulp(printed)))
    assert after > seconds or after == printed


@given(share=st.floats(0, 1))
def test_only_none_and_all_are_printed_as_0_and_1(share):
    assert (share_text(share) == "1") == (share == 1.0)
    assert (share_text(share) == "0") == (share == 0.0)
