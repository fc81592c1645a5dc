"""Exported source code answers as the model does: run by Python, gcc and node."""

import hashlib
import shutil
from enum import IntEnum, StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import espalier
from espalier import Feature, FeatureKind, Model, Role, Schema
from tests.core.export.consumers import c_answers, different, javascript_answers, python_answers
from tests.core.export.models import (
    REFERENCE_MODELS,
    alias_model,
    dated_model,
    hostile_model,
    large_model,
    reference_model,
)
from tests.core.export.rows import boundary_rows, predicted_rows
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, mixed_rows, plant, roots
from tests.factories import needs_reference

PROCESSOR = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
RUNNERS = {"python": python_answers, "c": c_answers, "javascript": javascript_answers}
PROGRAMS = {"c": "gcc", "javascript": "node"}
LANGUAGES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name in PROGRAMS and shutil.which(PROGRAMS[name]) is None, reason=f"no {PROGRAMS.get(name)} here"
        ),
    )
    for name in RUNNERS
]


def expected(model: Model, rows):
    return [
        (each.value if each.label is None else each.label, each.leaf, tuple(share for _, share in each.distribution))
        for each in espalier.predict(model, predicted_rows(model, rows))
    ]


def check(language, model, folder, rows=None):
    rows = boundary_rows(model) if rows is None else rows
    text = espalier.export_model(model, language)
    assert different(RUNNERS[language](text, model, rows, folder), expected(model, rows)) == []


@needs_reference
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_every_row_gets_the_answer_of_the_model(name, language, tmp_path) -> None:
    check(language, reference_model(name), tmp_path)


@needs_reference
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["labor j48", "labor imputed", "iris cart", "titanic c45"])
def test_a_list_of_rules_answers_by_its_first_rule_that_holds(name, language, tmp_path) -> None:
    check(language, espalier.extract_rules(reference_model(name)), tmp_path)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
@pytest.mark.skipif(" fma " not in PROCESSOR, reason="no processor that merges a product and a sum")
def test_a_compiler_that_merges_products_and_sums_changes_no_digit_of_a_linear_leaf(tmp_path) -> None:
    table = np.random.default_rng(0).normal(size=(300, 5))
    columns = {f"x{place}": column for place, column in enumerate(table.T[:4])}
    columns["y"] = table @ [1.1, 2.2, -0.7, 0.3, 0.1] + np.where(table[:, 0] > 0, 3 * table[:, 1], 0.0)
    model = espalier.train(espalier.dataset_from_columns(columns, target="y"), "m5")
    rows = [dict(zip(columns, row, strict=False)) for row in table[:, :4].tolist()]
    found = c_answers(espalier.export_model(model, "c"), model, rows, tmp_path, ("-O2", "-mfma", "-Wno-nonnull"))
    assert [value for value, _, _ in found] == [each.value for each in espalier.predict(model, rows)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_are_text_and_never_code(language, tmp_path) -> None:
    check(language, hostile_model(), tmp_path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_five_thousand_leaves_are_one_file(language, tmp_path) -> None:
    check(language, large_model(), tmp_path)


@settings(max_examples=40)
@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]), laplace=st.booleans())
def test_any_tree_answers_alike_in_python(data, schema, laplace) -> None:
    fields = {"leaf_probability": "laplace"} if laplace else {}
    model = plant(schema, data.draw(roots(schema)), **fields)
    check("python", model, None, data.draw(st.lists(mixed_rows(), min_size=1)) + boundary_rows(model, n_rows=20))


@pytest.mark.parametrize("language", LANGUAGES[1:])
@settings(max_examples=6)
@given(data=st.data())
def test_any_tree_answers_alike_in_a_compiled_language(language, tmp_path_factory, data) -> None:
    model = plant(MIXED, data.draw(roots(MIXED)))
    check(language, model, tmp_path_factory.mktemp("any"))


@needs_reference
@pytest.mark.parametrize("missing", ["majority", "last_prediction", "fractional"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_export_takes_missing_values_by_another_strategy_on_request(language, missing, tmp_path) -> None:
    model = reference_model("labor j48")
    text = espalier.export_model(model, language, missing=missing)
    rows = boundary_rows(model)
    other = espalier.with_missing_strategy(model, missing)
    assert different(RUNNERS[language](text, model, rows, tmp_path), expected(other, rows)) == []


@needs_reference
def test_a_file_names_the_document_and_the_version_it_was_written_from() -> None:
    model = reference_model("golf c45")
    digest = hashlib.sha256(espalier.to_json(model)).hexdigest()
    for form in RUNNERS:
        head = espalier.export_model(model, form)[:400]
        assert digest in head
        assert f"Espalier {espalier.__version__}" in head


def test_an_unknown_format_is_refused_with_the_legal_ones() -> None:
    with pytest.raises(espalier.ConfigError, match="must be one of python, c, javascript"):
        espalier.export_model(large_model(), "fortran")


def test_categories_that_a_language_cannot_tell_apart_are_refused() -> None:
    schema = Schema(
        (
            Feature("x", FeatureKind.NOMINAL, categories=(1, 1.0, "1")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c")),
        )
    )
    model = plant(schema, Ask(0, (0, 1, 2), (A, B, C)))
    reasons = espalier.applicable_exports(model)
    assert reasons["python"] is None
    assert "the same number in JavaScript" in reasons["javascript"]
    assert "written alike" in reasons["c"]
    with pytest.raises(espalier.NotApplicable, match="written alike"):
        espalier.export_model(model, "c")
    check("python", model, None, [{"x": 1}, {"x": 1.0}, {"x": "1"}, {}])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_category_may_be_a_double_beyond_the_exact_whole_numbers(language, tmp_path) -> None:
    number = Feature("x", FeatureKind.NOMINAL, categories=(0.5, 1e300, 2.0**53 + 2))
    model = plant(Schema((number, MIXED.features[-1])), Ask(0, (0, 1, 2), (A, B, C), 0))
    check(language, model, tmp_path, [{"x": 0.5}, {"x": 1e300}, {"x": 2.0**53 + 2}])


def test_classes_that_a_format_cannot_tell_apart_are_refused() -> None:
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, (1, 1.0, 2))
    model = plant(Schema((Feature("x", FeatureKind.NUMERIC), target)), Cut(0, 0.5, (A, B), 0))
    reasons = espalier.applicable_exports(model)
    assert {form for form, reason in reasons.items() if reason is None} == {"python", "c"}
    assert reasons["javascript"] == "'y' has the categories 1 and 1.0, the same number in JavaScript"
    check("python", model, None, [{"x": 0}, {"x": 1}])


def test_a_missing_value_that_is_written_as_a_number_is_missing_in_an_export(tmp_path) -> None:
    schema = Schema((Feature("x", FeatureKind.NUMERIC), *MIXED.features[1:]), missing_values=("-999", "?"))
    model = plant(schema, Cut(0, 0.5, (A, B), 1))
    for language in RUNNERS:
        check(language, model, tmp_path, [{"x": -999.0}, {"x": -998.0}, {"x": 1.0}])


def test_a_category_that_is_listed_as_missing_is_a_category(tmp_path) -> None:
    regions = Feature("x", FeatureKind.NOMINAL, categories=("EU", "NA", "?"))
    schema = Schema((regions, *MIXED.features[1:]), missing_values=("NA", "?", "n/a"))
    model = plant(schema, Ask(0, (0, 1, 2), (A, B, C), 2))
    for language in RUNNERS:
        check(language, model, tmp_path, [{"x": "NA"}, {"x": "?"}, {"x": "n/a"}, {"x": "EU"}, {}])


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_date_is_missing_because_its_seconds_are_a_listed_number(language, tmp_path) -> None:
    check(language, dated_model(), tmp_path, [{"x": x, "when": when} for x in (0.0, 1.0) for when in (0.0, 1.0)])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_that_is_listed_as_missing_stands_for_no_category(language, tmp_path) -> None:
    numbers = [] if language == "c" else [{"x": 1}, {"x": 2}, {"x": 2.0}]  # C takes categories as text
    check(language, alias_model(), tmp_path, [{"x": "1"}, {"x": "2"}, {"x": "2.0"}, {"x": "1.0"}, {}, *numbers])


def test_cells_of_a_subclass_or_of_numpy_are_categories_in_python() -> None:
    text, number = StrEnum("Text", {"TWO": "2", "B": "b"}), IntEnum("Number", {"TWO": 2})
    for categories, cells in (
        (("2", "b", "c"), [text.TWO, text.B, np.str_("b"), number.TWO, np.int64(2), np.float64(2.0)]),
        ((1, 2, 3), [number.TWO, np.int64(2), np.float64(2.0), np.float32(2.0), np.int8(2)]),
        ((False, True), [np.bool_(True), np.bool_(False)]),
    ):
        schema = Schema((Feature("x", FeatureKind.NOMINAL, categories=categories), MIXED.features[-1]))
        model = plant(schema, Ask(0, tuple(range(len(categories))), (A, B, C)[: len(categories)], 0))
        check("python", model, None, [{"x": cell} for cell in cells])


@pytest.mark.parametrize("form", ["python", "sql-sqlite"])
def test_the_first_lines_name_the_strategy_for_missing_values(form: str) -> None:
    model = large_model()
    for missing in (None, "majority"):
        named = missing or model.config.missing
        text = espalier.export_model(model, form, missing=missing)
        assert f"Missing values and categories that training did not see: {named}\n" in str(text)
    rules = espalier.export_model(espalier.extract_rules(model), form)
    assert "training did not see: a condition on them does not hold\n" in str(rules)
