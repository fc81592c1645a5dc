"""Exported decision tables of GoRules JDM answer as the model does: run by GoRules' engine."""

import hashlib
import json
from decimal import Decimal
from typing import Any

import pytest
import zen
from hypothesis import given, settings, strategies as st

import espalier
from espalier import Feature, FeatureKind, Model, Role, Schema
from espalier.export import cases
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
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Leaf, mixed_rows, plant, roots
from tests.factories import needs_reference


def jdm_answers(text: str, model: Model, rows: list[dict[str, Any]]) -> list[Answer]:
    decision = zen.ZenEngine().create_decision(text)
    found = [decision.evaluate(row)["result"] for row in rows]
    if not model.schema.classes:
        return [(each["value"], each["leaf"], ()) for each in found]
    return [(each["label"], each["leaf"], tuple(each["probabilities"])) for each in found]


def expected(model: Model, rows: list[dict[str, Any]]) -> list[Answer]:
    return [
        (each.value if each.label is None else each.label, each.leaf, tuple(share for _, share in each.distribution))
        for each in espalier.predict(model, predicted_rows(model, rows))
    ]


def decimal_rows(model: Model, rows: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    """Return the rows with numbers of 15 significant digits, the last one moved by `step`."""
    numbers = {feature.name for feature in model.schema.attributes if not feature.coded}
    return [{name: _moved(cell, step) if name in numbers else cell for name, cell in row.items()} for row in rows]


def _moved(cell: float | None, step: int) -> float | None:
    if cell is None or 0 < abs(cell) < 1e-20:  # engines keep 28 digits behind the point
        return None
    near = Decimal(f"{cell:.15g}")
    return float(near + step * Decimal(1).scaleb(near.adjusted() - 14))


def check(model: Model, rows: list[dict[str, Any]] | None = None, **options: Any) -> None:
    rows = boundary_rows(model) if rows is None else rows
    text = espalier.export_model(model, "jdm", **options)
    answering = espalier.with_missing_strategy(model, options.get("missing"))
    for step in (-1, 0, 1):
        moved = decimal_rows(model, rows, step)
        assert different(jdm_answers(text, model, moved), expected(answering, moved)) == []


def options_of(model: Model) -> dict[str, str]:
    return {} if espalier.applicable_exports(model)["jdm"] is None else {"missing": "majority"}


@needs_reference
@pytest.mark.parametrize("name", [name for name in REFERENCE_MODELS if name not in ("cpu m5",)])
def test_every_decimal_row_gets_the_answer_of_the_model(name) -> None:
    model = reference_model(name)
    check(model, **options_of(model))


@needs_reference
@pytest.mark.parametrize("name", ["labor j48", "labor imputed", "iris cart", "titanic c45"])
def test_a_list_of_rules_answers_by_its_first_rule_that_holds(name) -> None:
    check(espalier.extract_rules(reference_model(name)))


def test_names_are_text_and_never_code() -> None:
    check(hostile_model())


def test_five_thousand_leaves_are_one_table() -> None:
    check(large_model(), boundary_rows(large_model(), n_rows=20)[:20])


@settings(max_examples=40)
@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]))
def test_any_tree_answers_alike(data, schema) -> None:
    model = plant(schema, data.draw(roots(schema)))
    rows = data.draw(st.lists(mixed_rows(), min_size=1)) + boundary_rows(model, n_rows=20)
    check(model, rows, **options_of(model))


def labelled(*attributes: Feature, classes: tuple = ("a", "b", "c"), missing_values: tuple = ("?",)) -> Schema:
    return Schema((*attributes, Feature("y", FeatureKind.NOMINAL, Role.TARGET, classes)), missing_values=missing_values)


X = Feature("x", FeatureKind.NUMERIC)


def test_a_number_that_means_missing_is_missing_in_a_table() -> None:
    for fallback in (0, 1):
        model = plant(labelled(X, missing_values=("-999", "?")), Cut(0, 0.5, (A, B), fallback))
        check(model, [{"x": -999.0}, {"x": -998.0}, {"x": 1.0}, {}])


def test_a_number_that_means_missing_needs_no_digits_where_no_number_is_tested() -> None:
    colour = Feature("x", FeatureKind.NOMINAL, categories=("r", "s"))
    check(
        plant(labelled(colour, missing_values=("-1e17", "?")), Ask(0, (0, 1), (A, B), 0)), [{"x": "r"}, {"x": "s"}, {}]
    )


def test_no_date_is_missing_because_its_seconds_are_a_listed_number() -> None:
    model = dated_model()
    rows = [{"x": x, "when": when} for x in (0.0, 1.0) for when in (0.0, 1.0)]
    assert different(jdm_answers(espalier.export_model(model, "jdm"), model, rows), expected(model, rows)) == []


def test_a_text_that_is_listed_as_missing_stands_for_no_category() -> None:
    check(alias_model(), [{"x": "1"}, {"x": "2"}, {"x": "2.0"}, {"x": "1.0"}, {}])


def test_attributes_that_are_not_tested_are_no_inputs() -> None:
    others = [Feature(name, FeatureKind.NUMERIC) for name in ("w", "z")]
    tested = plant(labelled(others[0], X, others[1]), Cut(1, 0.5, (A, B), 0))
    for model, names in ((tested, ["x"]), (plant(labelled(X), A), [])):
        check(model, [{"x": 0.5}, {"x": 1.0}, {}])
        table = json.loads(espalier.export_model(model, "jdm"))["nodes"][1]["content"]
        assert [each["name"] for each in table["inputs"]] == names
        assert all(each["id"] in rule for each in table["inputs"] for rule in table["rules"])


def test_the_cells_of_a_table_are_limited(monkeypatch) -> None:
    both = plant(labelled(X, Feature("z", FeatureKind.NUMERIC)), Cut(0, 0.5, (A, Cut(1, 0.5, (B, C), 0)), 0))
    monkeypatch.setattr(cases, "MAX_CELLS", 6)
    assert espalier.applicable_exports(both)["jdm"] is None
    monkeypatch.setattr(cases, "MAX_CELLS", 5)
    with pytest.raises(espalier.NotApplicable, match="it needs 3 rules with 2 cells each, and at most 5 cells are"):
        espalier.export_model(both, "jdm")


@pytest.mark.parametrize("categories", [(0, 2, 3.5), (False, True), ("", "NaN", "a"), ("1", "TRUE", "b")])
def test_a_category_is_a_literal_of_its_type(categories) -> None:
    kind = FeatureKind.BOOLEAN if isinstance(categories[0], bool) else FeatureKind.NOMINAL
    below = (A, B, C)[: len(categories)]
    for fallback in (0, 1):
        attribute = Feature("x", kind, categories=categories)
        model = plant(labelled(attribute), Ask(0, tuple(range(len(below))), below, fallback))
        check(model, [*({"x": category} for category in categories), {}])


def test_a_table_names_the_document_and_the_version_it_was_written_from() -> None:
    model = hostile_model()
    described = json.loads(espalier.export_model(model, "jdm"))["description"]
    assert hashlib.sha256(espalier.to_json(model)).hexdigest() in described
    assert f"Espalier {espalier.__version__} " in described


def test_what_a_table_cannot_express_is_refused_with_the_reason() -> None:
    mixed = Feature("x", FeatureKind.NOMINAL, categories=("1", True, "a"))
    long = Feature("x", FeatureKind.NOMINAL, categories=(0.1234567890123456, 1, 2))
    missing = [labelled(X, missing_values=(number,)) for number in ("1e-40", "1e17", "0.1234567890123456")]
    for model, reason in (
        *((plant(schema, Cut(0, 0.5, (A, B), 0)), "a number that means missing") for schema in missing),
        (plant(MIXED, Cut(0, 0.5, (A, B), -1)), "export with missing='majority'"),
        (plant(labelled(X), Cut(0, 1e-30, (A, B), 0)), "a threshold of 'x' needs more than 28 decimal places or is n"),
        (plant(labelled(X), Cut(0, 1e17, (A, B), 0)), "a threshold of 'x' needs more than"),
        (plant(labelled(mixed), Ask(0, (0, 1, 2), (A, B, C), 0)), "different types"),
        (plant(labelled(long), Ask(0, (0, 1, 2), (A, B, C), 0)), "more than 15 digits"),
        (
            plant(labelled(X, classes=(1e-30, 0.5, 2)), Cut(0, 0.5, (A, B), 0)),
            "a class needs more than 28 decimal places",
        ),
        (plant(NUMBERS, Leaf((1.0, 1e20, 0.0))), "a value of a leaf needs more than"),
    ):
        with pytest.raises(espalier.NotApplicable, match=reason):
            espalier.export_model(model, "jdm")


@needs_reference
def test_equations_in_leaves_are_refused() -> None:
    with pytest.raises(espalier.NotApplicable, match="equations"):
        espalier.export_model(reference_model("cpu m5"), "jdm")
