"""Exported ONNX graphs answer as the model does: run by onnxruntime."""

import hashlib
import json
import math
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings, strategies as st
from onnx.reference import ReferenceEvaluator

import espalier
from espalier import Feature, FeatureKind, Model, Role, Schema
from espalier.export import obstacles
from tests.core.export.consumers import Answer, different
from tests.core.export.models import (
    REFERENCE_MODELS,
    alias_model,
    dated_model,
    hostile_model,
    large_model,
    reference_model,
)
from tests.core.export.rows import boundary_rows, predicted_rows
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Known, Leaf, mixed_rows, plant, roots
from tests.factories import needs_reference


def input_column(feature: Feature, cells: list[Any]) -> np.ndarray:
    if feature.coded and all(isinstance(label, str) for label in feature.categories):
        return np.array([["" if cell is None else cell] for cell in cells], object)
    # A text among numbers is an unseen category.
    return np.array([[math.nan if cell is None or isinstance(cell, str) else float(cell)] for cell in cells])


def by_onnxruntime(file: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(file)
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, inputs), strict=True))


def by_reference(file: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run the operators of the standard's own evaluator, which ends sets of categories at the code 0."""
    evaluator = ReferenceEvaluator(onnx.load_from_string(file))
    return dict(zip(evaluator.output_names, evaluator.run(None, inputs), strict=True))


def onnx_answers(file: bytes, model: Model, rows: list[dict[str, Any]], run=by_onnxruntime) -> list[Answer]:
    onnx.checker.check_model(file, full_check=True)
    attributes = model.schema.attributes
    found = run(file, {each.name: input_column(each, [row.get(each.name) for row in rows]) for each in attributes})
    leaves = found["leaf"].tolist()
    if not model.schema.classes:
        return [(value, leaf, ()) for value, leaf in zip(found["value"].tolist(), leaves, strict=True)]
    shares = map(tuple, found["probabilities"].tolist())
    return list(zip(found["label"].tolist(), leaves, shares, strict=True))


def expected(model: Model, rows) -> list[Answer]:
    return [
        (each.value if each.label is None else each.label, each.leaf, tuple(share for _, share in each.distribution))
        for each in espalier.predict(model, predicted_rows(model, rows))
    ]


def check(model: Model, rows=None, **options) -> None:
    rows = boundary_rows(model) if rows is None else rows
    file = espalier.export_model(model, "onnx", **options)
    answering = espalier.with_missing_strategy(model, options.get("missing"))
    assert different(onnx_answers(file, model, rows), expected(answering, rows)) == []


def options_of(model: Model) -> dict[str, str]:
    return {} if espalier.applicable_exports(model)["onnx"] is None else {"missing": "majority"}


@needs_reference
@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_every_row_gets_the_answer_of_the_model(name) -> None:
    model = reference_model(name)
    check(model, **options_of(model))


@needs_reference
@pytest.mark.parametrize("name", ["labor j48", "labor imputed", "iris cart", "titanic c45"])
def test_a_list_of_rules_answers_by_its_first_rule_that_holds(name) -> None:
    check(espalier.extract_rules(reference_model(name)))


@needs_reference
@pytest.mark.parametrize("name", ["iris cart", "cpu m5", "rules"])
def test_the_evaluator_of_the_standard_answers_alike(name) -> None:
    model = reference_model("iris cart" if name == "rules" else name)
    model = espalier.extract_rules(model) if name == "rules" else model
    answering = espalier.with_missing_strategy(model, options_of(model).get("missing"))
    rows = boundary_rows(model)[:200]
    file = espalier.export_model(model, "onnx", **options_of(model))
    assert different(onnx_answers(file, model, rows, by_reference), expected(answering, rows)) == []


def test_names_are_text_in_a_graph() -> None:
    check(hostile_model())


def test_five_thousand_leaves_are_one_graph() -> None:
    check(large_model())


@settings(max_examples=60)
@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]), laplace=st.booleans())
def test_any_tree_answers_alike(data, schema, laplace) -> None:
    fields = {"leaf_probability": "laplace"} if laplace else {}
    model = plant(schema, data.draw(roots(schema)), **fields)
    rows = data.draw(st.lists(mixed_rows(), min_size=1)) + boundary_rows(model, n_rows=20)
    check(model, rows, **options_of(model))


def labelled(*attributes: Feature, classes=("a", "b", "c"), missing_values=("?",)) -> Schema:
    kind = FeatureKind.BOOLEAN if isinstance(classes[0], bool) else FeatureKind.NOMINAL
    return Schema((*attributes, Feature("y", kind, Role.TARGET, classes)), missing_values=missing_values)


X = Feature("x", FeatureKind.NUMERIC)


@pytest.mark.parametrize("classes", [(1, 2), (1.5, 2.0), (False, True), ("", "é")])
def test_a_label_has_the_type_of_the_classes(classes) -> None:
    model = plant(labelled(X, classes=classes), Cut(0, 0.5, (Leaf((3.0, 1.0)), Leaf((1.0, 3.0))), 1))
    check(model, [{"x": 0.5}, {"x": 1.0}, {}])


@pytest.mark.parametrize(
    ("categories", "others"),
    [((0, 2, 3.5), [7.0, None]), ((False, True), [None]), (("", "NaN", "a"), ["b"]), (("1", "TRUE", "b"), ["c", None])],
)
def test_a_category_comes_in_as_text_or_as_a_number(categories, others) -> None:
    kind = FeatureKind.BOOLEAN if isinstance(categories[0], bool) else FeatureKind.NOMINAL
    below = (A, B, C)[: len(categories)]
    model = plant(labelled(Feature("x", kind, categories=categories)), Ask(0, tuple(range(len(below))), below, 1))
    check(model, [{"x": cell} for cell in (*categories, *others)])


def test_a_number_that_means_missing_is_missing_in_a_graph() -> None:
    model = plant(labelled(X, missing_values=("-999", "?", "-5.5")), Cut(0, 0.5, (A, B), 1))
    check(model, [{"x": -999.0}, {"x": -5.5}, {"x": -998.0}, {"x": 1.0}, {}])


def test_no_date_is_missing_because_its_seconds_are_a_listed_number() -> None:
    check(dated_model(), [{"x": x, "when": when} for x in (0.0, 1.0) for when in (0.0, 1.0)])


def test_a_text_that_is_listed_as_missing_stands_for_no_category() -> None:
    check(alias_model(), [{"x": "1"}, {"x": "2"}, {"x": "2.0"}, {"x": "1.0"}])


def test_a_test_that_no_value_fails_is_none() -> None:
    known = plant(labelled(X), Known(0, (Cut(0, 0.5, (A, B), 0), C)), imputed=(3.0,), missing="imputed")
    check(known, [{"x": 0.0}, {"x": 1.0}, {}])
    check(plant(labelled(X), Known(0, (A, B)), imputed=(3.0,), missing="imputed"), [{"x": 0.0}, {}])


def test_linear_leaves_sum_in_the_order_of_the_model() -> None:
    draw = np.random.default_rng(3)
    columns = {
        "a": draw.normal(size=400).tolist(),
        "b": [None if place % 9 == 0 else value for place, value in enumerate((draw.normal(size=400) * 1e6).tolist())],
        "k": [None if place % 7 == 0 else value for place, value in enumerate(draw.choice(list("pqrs"), 400).tolist())],
    }
    effect = {None: 0.0, "p": 1.0, "q": 5.0, "r": -3.0, "s": 0.1}
    columns["y"] = [
        3 * a + (b or 0.0) * (1e-6 if a > 0 else -2e-6) + effect[k]
        for a, b, k in zip(columns["a"], columns["b"], columns["k"], strict=True)
    ]
    model = espalier.train(espalier.dataset_from_columns(columns, target="y"), "m5")
    assert model.linear is not None
    rows = boundary_rows(model)
    found = onnx_answers(espalier.export_model(model, "onnx"), model, rows)
    assert found == expected(model, rows)  # to the last bit


@pytest.mark.parametrize("n_groups", [2, 300, 3_000])
def test_a_node_with_thousands_of_categories_is_one_graph(n_groups) -> None:
    categories = tuple(f"category {number}" for number in range(3_000))
    draw = np.random.default_rng(5)
    branches = [*range(n_groups), *draw.integers(n_groups, size=3_000 - n_groups).tolist()]
    leaves = tuple(Leaf(tuple(map(float, draw.permutation([1, 2, 3])))) for _ in range(n_groups))
    model = plant(
        labelled(Feature("x", FeatureKind.NOMINAL, categories=categories)), Ask(0, tuple(branches), leaves, 0)
    )
    check(model, [{"x": category} for category in categories] + [{}, {"x": "unseen"}])


def chain(n_tests: int) -> Model:
    root: Any = A
    for number in range(n_tests):
        root = Cut(0, float(-number), (root, B if number % 2 else C), number % 2)
    return plant(MIXED, root)


def test_a_path_of_hundreds_of_tests_is_one_graph() -> None:
    check(chain(300))


def test_a_graph_names_the_document_and_the_version_it_was_written_from() -> None:
    model = hostile_model()
    described = onnxruntime.InferenceSession(espalier.export_model(model, "onnx")).get_modelmeta()
    assert hashlib.sha256(espalier.to_json(model)).hexdigest() in described.description
    assert (described.producer_name, f"Espalier {espalier.__version__} " in described.description) == ("espalier", True)
    assert json.loads(described.custom_metadata_map["classes"]) == list(model.schema.classes)


def test_what_a_graph_cannot_express_is_refused_with_the_reason(monkeypatch) -> None:
    cut = Cut(0, 0.5, (A, B), 0)
    mixed = Feature("x", FeatureKind.NOMINAL, categories=("1", True, "a"))
    for model, reason in (
        (plant(MIXED, Cut(0, 0.5, (A, B), -1)), "export with missing='majority'"),
        (plant(labelled(mixed), Ask(0, (0, 1, 2), (A, B, C), 0)), "different types"),
        (plant(labelled(X, classes=("1", 2, 3)), cut), "classes are of different types"),
        (
            plant(labelled(Feature("label", FeatureKind.NUMERIC)), cut),
            "'label' has a name reserved for predictions: label, prob",
        ),
        (plant(labelled(Feature("espalier_1", FeatureKind.NUMERIC)), cut), "'espalier_1' has a name reserved"),
        (plant(labelled(), A), "no attributes"),
    ):
        with pytest.raises(espalier.NotApplicable, match=reason):
            espalier.export_model(model, "onnx")
    monkeypatch.setattr(obstacles, "MAX_TESTS", 10)
    with pytest.raises(espalier.NotApplicable, match="a path has 11 tests"):
        espalier.export_model(chain(11), "onnx")
    assert espalier.applicable_exports(chain(10))["onnx"] is None
