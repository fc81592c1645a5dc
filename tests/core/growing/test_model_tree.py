"""Trees of linear leaves: the reference's data sets, the slow twin, what a leaf owes its reader."""

import functools
import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    dataset_from_rows,
    explain,
    from_json,
    predict,
    prune,
    render_explanation,
    to_json,
    to_mermaid,
    to_text,
    train,
)
from espalier.config.presets import resolved, training_config
from espalier.growing.linear_models import fit_linear_models
from tests.core.data_sets import answers_and_shares
from tests.core.drawn import Choices, choices
from tests.core.growing_bridge import dataset_of, grow, node_of
from tests.core.model_trees import line, named, reference_data
from tests.factories import needs_reference
from tests.reference import missing, model_tree
from tests.reference.grower import impute
from tests.reference.table import Column, Table, Target

COMMANDS: dict[str, dict[str, Any]] = {
    "M5P": {},
    "M5P_N_unpruned": {"pruning": None},
    "M5P_U_unsmoothed": {"smoothing": None},
    "M5P_N_U": {"pruning": None, "smoothing": None},
    "M5P_R_regtree": {"leaf": "constant"},
    "M5P_R_N_U": {"leaf": "constant", "pruning": None, "smoothing": None},
}
TRAINED = [(name, command) for name in ("cpu", "car_test_frame") for command in COMMANDS]


@functools.cache
def trained(name, command):
    return train(reference_data(name), "m5", **COMMANDS[command])


# The reference's data sets


@needs_reference
@pytest.mark.parametrize("name", ["cpu", "car_test_frame"])
def test_pruning_later_gives_what_training_gives_at_once(name):
    at_once = trained(name, "M5P")
    later = prune(trained(name, "M5P_N_unpruned"), "model_tree", dataset=reference_data(name))
    assert later.model.tree == at_once.tree
    assert later.model.training.train == at_once.training.train


@needs_reference
def test_the_text_shows_the_published_equations_below_the_tree():
    text = to_text(trained("cpu", "M5P"))
    assert text.startswith("CHMIN ≤ 7.5: LM1 (165 ± ")
    assert "|   MMAX > 28000: LM5 (23 ± " in text
    assert "\nLM1: class = 11.0971 - 0.00554485 × MYCT + " in text
    assert len(re.findall(r"^LM\d: ", text, re.MULTILINE)) == 5
    assert to_mermaid(trained("cpu", "M5P")).count("LM") == 5


# The slow twin


CELLS = (-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, 7.0)
TARGETS = (*(0.0, 1.0, 2.0, 5.0, 8.0) * 20, *(round(200 * (place / math.e % 1) - 100, 3) for place in range(100)))


def tables() -> st.SearchStrategy[Table]:
    """Four to thirty rows: numbers, categories, holes, weights."""
    return choices(6 + 6 * 30).map(_table)


def _table(drawn: Choices) -> Table:
    n_rows = 4 + drawn.below(27)
    columns = []
    for _ in range(1 + drawn.below(4)):
        k = drawn.one_of([0, 0, 2, 3, 5])
        cells = range(k) if k else CELLS
        holed = (*tuple(cells) * 4, *(None,) * len(cells))
        columns.append(Column("nominal" if k else "numeric", tuple(drawn.some_of(holed, n_rows)), k))
    weights = tuple(drawn.some_of([0.5, 1.0, 1.0, 1.0, 2.0], n_rows))
    return Table(tuple(columns), Target("number", tuple(drawn.some_of(TARGETS, n_rows))), weights)


@given(tables(), st.sampled_from(["m5", "sdr", "squared_error"]))
def test_every_model_is_the_twins(table, criterion):
    models, twin, _ = both(table, criterion)
    for node, its in enumerate(preorder(twin)):
        ours = own_equation(models, node)
        theirs = {None: its.own.intercept, **its.own.coefficients}
        assert set(ours) == set(theirs), node
        size = max(map(abs, theirs.values()))
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6 * size), node
        assert models.squares[node] == pytest.approx(its.squares, rel=1e-6, abs=1e-6 * (1 + its.grown.stats[2]))


@given(
    tables(),
    st.sampled_from(["linear", "constant"]),
    st.sampled_from([None, 15.0, 0.5]),
    st.sampled_from([None, {"method": "model_tree"}]),
)
def test_every_answer_is_the_twins(table, leaf, smoothing, pruning):
    data = dataset_of(table)
    model = train(data, "m5", leaf=leaf, smoothing=smoothing, pruning=pruning, criterion="sdr", missing="imputed")
    _, twin, complete = both(table, "sdr", linear=leaf == "linear")
    if pruning is not None:
        twin = model_tree.pruned(twin)
    rows = [complete.row(row) for row in range(table.n_rows)]
    expected = [model_tree.answer(twin, row, smoothing) for row in rows]
    one_by_one = [answer.value for answer in predict(model, data.rows())]
    assert one_by_one == pytest.approx(expected, rel=1e-6, abs=1e-5)
    assert answers_and_shares(model, data)[0].tolist() == one_by_one
    assert model.tree.n_leaves == len(model_tree.leaves(twin))


@given(tables())
def test_a_document_gives_the_same_model_back(table):
    model = train(dataset_of(table), "m5", pruning=None)
    again = from_json(to_json(model))
    assert again.tree == model.tree
    assert to_json(again) == to_json(model)


def test_a_row_of_weight_two_is_two_rows():
    rows = [{"x": x % 7, "z": x * x % 11, "y": x % 7 * 1.5 + x * x % 11 / 3 + x % 3, "w": 1 + x % 2} for x in range(60)]
    twice = [row for row in rows for _ in range(row["w"])]
    weighed = dataset_from_rows(rows, target="y", weight="w", task="regression")
    repeated = dataset_from_rows(twice, target="y", ignore=["w"], task="regression")
    one, other = (train(data, "m5", criterion="sdr") for data in (weighed, repeated))
    rows_without = [{"x": row["x"], "z": row["z"]} for row in rows]
    assert [answer.value for answer in predict(one, rows_without)] == pytest.approx(
        [answer.value for answer in predict(other, rows_without)], rel=1e-9
    )


# What a linear leaf owes its reader


def test_a_line_is_one_equation_a_piece():
    model = train(line(), "m5", smoothing=None, criterion="sdr")
    assert model.tree.n_leaves == 2
    assert [round(answer.value, 6) for answer in predict(model, [{"x": 4}, {"x": 100}])] == [9, 0]
    assert "if x ≤ 9.5 then y = 1 + 2 × x" in render_explanation(explain(model, [{"x": 4}])[0])


@needs_reference
@pytest.mark.parametrize(("name", "command"), TRAINED)
def test_the_terms_of_an_explanation_add_up_to_the_answer(name, command):
    model, data = trained(name, command), reference_data(name)
    for explanation in explain(model, data.rows(0, 40), detail="full"):
        answer = explanation.prediction.value
        assert explanation.baseline + math.fsum(explanation.contributions.values()) == pytest.approx(answer, rel=1e-9)
        if explanation.linear is None:
            assert (model.config.leaf, model.config.smoothing) == ("constant", None)
            continue
        terms = [term["contribution"] for term in explanation.to_dict()["linear"]["terms"]]
        assert explanation.linear.intercept + math.fsum(terms) == pytest.approx(answer, rel=1e-9)
        for step in explanation.linear.smoothing[-1:]:
            assert step.smoothed == pytest.approx(answer, rel=1e-9)


@needs_reference
def test_smoothing_is_shown_from_the_leaf_to_the_root():
    model = trained("cpu", "M5P")
    steps = explain(model, reference_data("cpu").rows(0, 1))[0].linear.smoothing
    k = 15
    assert [step.node for step in steps] == list(reversed(predict(model, reference_data("cpu").rows(0, 1))[0].nodes))
    assert math.fsum(step.share for step in steps) == pytest.approx(1)
    for below, step in pairwise(steps):
        mixed = (below.weight * below.smoothed + k * step.value) / (below.weight + k)
        assert step.smoothed == pytest.approx(mixed, rel=1e-12)


@needs_reference
def test_a_missing_or_unseen_value_enters_as_what_was_imputed():
    model = trained("car_test_frame", "M5P")
    row = reference_data("car_test_frame").rows(0, 1)[0] | {"HP": None, "Country": "Atlantis"}
    explanation = explain(model, [row])[0]
    mean = float(np.mean(reference_data("car_test_frame").attributes[6]))
    [power] = [term for term in explanation.linear.terms if term.attribute.name == "HP"]
    assert (power.value, power.reason, power.imputed) == (None, "missing", pytest.approx(mean))
    assert "(the value is missing; an imputed value replaces it)" in render_explanation(explanation)
    assert explanation.to_dict()["flags"] == {"missing": ["HP"], "unseen": ["Country"]}


def test_a_value_beyond_every_bound_is_answered_with_a_number():
    model = train(line(), "m5", smoothing=None, criterion="sdr")
    answers = [answer.value for answer in predict(model, [{"x": 1e308}, {"x": -1e308}])]
    assert answers == pytest.approx([-1e150, -1e150], rel=1e-6)


def test_numbers_that_no_square_can_hold_leave_the_means():
    rows = [{"x": x * 1e200, "y": float(x % 5)} for x in range(20)]
    model = train(dataset_from_rows(rows, target="y", task="regression"), "m5")
    assert all(math.isfinite(answer.value) for answer in predict(model, rows))
    assert from_json(to_json(model)).tree == model.tree


@pytest.mark.parametrize("weight", [1.0, 1e7, 1e9, 1e12])
def test_a_line_through_all_rows_is_found_whatever_they_weigh(weight):
    rows = [{"x": x, "y": 3.0 * x + 1, "w": weight} for x in [0, 1] * 10]
    model = train(dataset_from_rows(rows, target="y", task="regression", weight="w"), "m5")
    assert [answer.value for answer in predict(model, [{"x": 0.5}, {"x": 3}])] == pytest.approx([2.5, 10])


def test_equal_columns_share_the_work_and_the_first_is_dropped():
    rows = [{"a": x, "b": x, "y": 3.0 * x + x % 2} for x in range(30)]
    model = train(dataset_from_rows(rows, target="y", task="regression"), "m5", smoothing=None)
    assert [round(answer.value) for answer in predict(model, [{"a": 10, "b": 10}])] in ([30], [31])


def test_of_many_columns_those_of_the_heaviest_tests_are_taken(monkeypatch):
    rows = [{**{f"x{n}": (x * (n + 3)) % 17 for n in range(6)}, "y": x * 5 % 13 + x % 17} for x in range(200)]
    data = dataset_from_rows(rows, target="y", task="regression")
    unlimited = train(data, "m5", pruning=None, smoothing=None)
    monkeypatch.setattr("espalier.growing.linear_models.MAX_REGRESSORS", 2)
    limited = train(data, "m5", pruning=None, smoothing=None)
    assert limited.linear.n_terms().max() == 2 < unlimited.linear.n_terms().max()


def both(table, criterion, *, linear=True):
    """The product's models of a grown tree and the twin's of the same tree; the table with nothing missing."""
    data = dataset_of(table)
    grown = grow(data, resolved(training_config("m5", criterion=criterion), data.schema))
    models = fit_linear_models(grown.tree, data, grown.preparation.imputed)
    complete = Table(
        impute(table.columns, missing.imputed_values(table.columns, table.weights)), table.target, table.weights
    )
    sample = list(enumerate(table.weights))
    return models, model_tree.with_models(node_of(grown.tree, 0), complete, sample, linear=linear), complete


def preorder(node):
    return [node, *(below for child in node.children for below in preorder(child))]


def own_equation(models, node):
    """A node's own model as the twin writes it: {column: coefficient}, the intercept under None."""
    return {None: float(models.intercept[node]), **named(models, models.terms(node))}
