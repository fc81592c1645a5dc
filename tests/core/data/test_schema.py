"""Columns, their kinds, roles and categories."""

import math

import orjson
import pytest
from hypothesis import given, strategies as st

from espalier import Feature, FeatureKind, Role, Schema, SchemaError, dataset_from_csv
from espalier.data.instants import instant_text, parse_instant
from espalier.data.labels import label_text, sorted_labels
from tests.core.planted import MIXED, NUMBERS

X = Feature("x", FeatureKind.NUMERIC)


def faults_of(*features):
    with pytest.raises(SchemaError) as caught:
        Schema(features)
    return {(fault.path, fault.code) for fault in caught.value.faults}


def test_attributes_target_weight_and_task_follow_from_the_roles():
    schema = Schema(
        (
            Feature("id", FeatureKind.NOMINAL, Role.IGNORE, ("a",)),
            Feature("y", FeatureKind.NUMERIC, Role.TARGET),
            X,
            Feature("w", FeatureKind.NUMERIC, Role.WEIGHT),
        )
    )
    assert [feature.name for feature in schema.attributes] == ["x"]
    assert (schema.target.name, schema.weight.name, schema.task) == ("y", "w", "regression")
    assert MIXED.task == "classification"
    assert Schema((X,)).task is None
    assert (MIXED.place("size"), MIXED.place("nowhere")) == (2, None)


@pytest.mark.parametrize(
    ("feature", "coded", "unordered"),
    [
        (X, False, False),
        (Feature("d", FeatureKind.DATETIME), False, False),
        (Feature("o", FeatureKind.ORDINAL, categories=("a",)), True, False),
        (Feature("n", FeatureKind.NOMINAL), True, True),
        (Feature("b", FeatureKind.BOOLEAN), True, True),
    ],
)
def test_each_kind_is_coded_or_not_and_ordered_or_not(feature, coded, unordered):
    assert (feature.coded, feature.unordered) == (coded, unordered)


@pytest.mark.parametrize("schema", [MIXED, NUMBERS, Schema(()), Schema((X,), missing_values=())])
def test_a_schema_reads_back_from_its_json_form(schema):
    assert Schema.from_dict(orjson.loads(orjson.dumps(schema.to_dict()))) == schema


def test_categorical_type_values_and_missing_token_are_read_too():
    schema = Schema.from_dict(
        {
            "name": "tennis",
            "rows": 14,
            "target": "y",
            "missing_token": "-",
            "columns": [{"name": "y", "type": "categorical", "values": ["b", "a"]}, {"name": "x", "type": "numeric"}],
        }
    )
    assert schema.target == Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("b", "a"))
    assert schema.missing_values == ("-",)


def test_a_full_declaration_names_every_columns_kind():
    with pytest.raises(SchemaError, match="/columns/1/kind: must be one of numeric, nominal, ordinal, boolean, date"):
        Schema.from_dict({"columns": [{"name": "a", "kind": "numeric"}, {"name": "b"}]})


@pytest.mark.parametrize(
    ("features", "fault"),
    [
        ((X, X), ("/columns/1/name", "duplicate")),
        ((Feature("", FeatureKind.NUMERIC),), ("/columns/0/name", "length")),
        ((Feature("x" * 1001, FeatureKind.NUMERIC),), ("/columns/0/name", "length")),
        ((Feature("\0", FeatureKind.NUMERIC),), ("/columns/0/name", "characters")),
        ((Feature("\udfff", FeatureKind.NUMERIC),), ("/columns/0/name", "characters")),
        (
            (Feature("x", FeatureKind.NUMERIC, Role.TARGET), Feature("y", FeatureKind.NUMERIC, Role.TARGET)),
            ("/columns/1/role", "duplicate"),
        ),
        (
            (Feature("x", FeatureKind.NUMERIC, Role.WEIGHT), Feature("y", FeatureKind.NUMERIC, Role.WEIGHT)),
            ("/columns/1/role", "duplicate"),
        ),
        ((Feature("w", FeatureKind.NOMINAL, Role.WEIGHT),), ("/columns/0/kind", "not_numeric")),
        ((Feature("d", FeatureKind.DATETIME, Role.TARGET),), ("/columns/0/kind", "not_legal")),
        ((Feature("x", FeatureKind.NUMERIC, categories=("a",)),), ("/columns/0/categories", "not_legal")),
        ((Feature("x", FeatureKind.NOMINAL, categories=("a", "a")),), ("/columns/0/categories", "duplicate")),
        ((Feature("x", FeatureKind.BOOLEAN, categories=(1, 2, 3)),), ("/columns/0/categories", "length")),
        ((Feature("x", FeatureKind.NOMINAL, categories=(math.nan,)),), ("/columns/0/categories", "not_finite")),
        ((Feature("x", FeatureKind.NOMINAL, categories=(math.inf,)),), ("/columns/0/categories", "not_finite")),
        ((Feature("x", FeatureKind.NOMINAL, categories=("\0",)),), ("/columns/0/categories", "characters")),
        ((Feature("x", FeatureKind.NOMINAL, categories=(2**53 + 1,)),), ("/columns/0/categories", "too_large")),
        ((Feature("y", FeatureKind.NOMINAL, Role.TARGET, (1, "1")),), ("/columns/0/categories", "ambiguous")),
        ((Feature("y", FeatureKind.NOMINAL, Role.TARGET, (True, "true")),), ("/columns/0/categories", "ambiguous")),
    ],
)
def test_what_makes_no_schema_is_refused_with_the_place(features, fault):
    assert fault in faults_of(*features)


@pytest.mark.parametrize("text", ["\0", "n\0ne", "\ud800"])
def test_what_stands_for_missing_is_text_that_can_be_kept(text):
    with pytest.raises(SchemaError) as caught:
        Schema((X,), ("?", text))
    assert [(fault.path, fault.code) for fault in caught.value.faults] == [("/missing_values", "characters")]


def test_every_fault_of_a_schema_is_told():
    assert len(faults_of(X, X, Feature("", FeatureKind.NOMINAL, Role.WEIGHT, ("a", "a")))) == 4


def test_labels_that_are_equal_in_python_are_different_categories():
    Schema((Feature("x", FeatureKind.NOMINAL, categories=(1, 1.0, True, "1", "1.0", "true", 0, False, "")),))


@given(labels=st.lists(st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()))
def test_sorting_labels_does_not_depend_on_the_order_in_which_they_came(labels):
    distinct = list({(type(label).__name__, label): label for label in labels}.values())
    forward, backward = sorted_labels(distinct), sorted_labels(reversed(distinct))
    assert list(map(repr, forward)) == list(map(repr, backward))
    assert [isinstance(label, str) for label in forward] == sorted(isinstance(label, str) for label in forward)


@pytest.mark.parametrize(("label", "text"), [(True, "true"), (False, "false"), (1, "1"), (1.0, "1.0"), ("a", "a")])
def test_a_label_is_written_as_json_writes_it(label, text):
    assert label_text(label) == text


def test_no_instant_holds_nul():
    assert parse_instant("1970-01-01 00:01") == parse_instant("1970-01-01T00:01") == 60.0
    assert parse_instant("1970-01-01\x0000:01") is None


@given(instant=st.datetimes(timezones=st.timezones() | st.none()))
def test_an_instant_is_shown_as_the_instant_that_it_is_or_refused(instant):
    seconds = parse_instant(instant.isoformat())
    if seconds is None:
        assert not 1 < instant.year < 9999
        return
    assert parse_instant(instant_text(seconds)) == pytest.approx(seconds, abs=1e-4)


@pytest.mark.parametrize(
    ("schema", "path", "meant"),
    [
        ({"colums": [{"name": "x", "kind": "nominal"}]}, "/colums", "columns"),
        ({"targt": "y"}, "/targt", "target"),
        ({"missing_value": ["none"]}, "/missing_value", "missing_values"),
        ({"columns": [{"name": "x", "kid": "nominal"}]}, "/columns/0/kid", "kind"),
        ({"columns": [{"name": "x", "categoris": ["a"]}]}, "/columns/0/categoris", "categories"),
    ],
)
def test_a_misspelt_member_is_refused(schema, path, meant):
    with pytest.raises(SchemaError, match=f"is '{meant}' meant") as refused:
        dataset_from_csv("x,y\n1,a\n2,b\n", schema=schema)
    assert [fault.path for fault in refused.value.faults] == [path]


def test_other_members_are_ignored():
    others = {
        "name": "play",
        "file": "play.csv",
        "rows": 14,
        "missing_cells": 0,
        "description": "when to play",
        "source": "…",
    }
    schema = {"target": "y", "columns": [{"name": "x", "kind": "nominal", "label": "X", "unit": "m"}]}
    expected = dataset_from_csv("x,y\n1,a\n2,b\n", schema=schema)
    assert dataset_from_csv("x,y\n1,a\n2,b\n", schema={**others, **schema}) == expected
