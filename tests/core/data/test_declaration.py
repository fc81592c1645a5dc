"""Reading a table that is declared: kinds, roles, categories, dates; wrong schemas."""

import csv
import gzip
import json

import numpy as np
import pytest

from espalier import (
    DataError,
    Role,
    SchemaError,
    dataset_from_csv,
)
from tests.core.data_sets import kinds, refused
from tests.core.planted import MIXED
from tests.factories import REFERENCE, needs_reference

DATA_SETS = sorted(path.name.removesuffix(".schema.json") for path in (REFERENCE / "data").glob("*.schema.json"))


@needs_reference
@pytest.mark.parametrize("name", DATA_SETS)
def test_every_reference_data_set_reads_by_its_declared_schema(name):
    schema = json.loads((REFERENCE / "data" / f"{name}.schema.json").read_text())
    path = REFERENCE / "data" / schema["file"]
    data = dataset_from_csv(path, schema=schema)
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as lines:
        cells = [list(row.values()) for row in csv.DictReader(lines)]
    assert (data.n_rows, data.schema.task) == (schema["rows"], schema["task"])
    assert data.schema.target.name == schema["target"]
    n_missing = 0
    for place, (feature, declared) in enumerate(zip(data.schema.features, schema["columns"], strict=True)):
        assert (feature.name, feature.categories) == (declared["name"], tuple(declared.get("values", ())))
        assert feature.kind == {"categorical": "nominal"}.get(declared["type"], declared["type"])
        shown = [row[feature.name] for row in data.rows(0, 50)]
        for cell, text in zip(shown, [row[place] for row in cells[:50]], strict=True):
            missing = text in ("", schema["missing_token"])
            assert cell == (None if missing else text if feature.coded else float(text))
        column = data.columns[place]
        n_missing += int(np.count_nonzero(column < 0) if feature.coded else np.count_nonzero(np.isnan(column)))
    assert n_missing == schema["missing_cells"]


def test_what_a_schema_leaves_out_is_inferred():
    data = dataset_from_csv("a,b,y\n1,2,3\n2,3,4\n", schema={"columns": [{"name": "a", "kind": "nominal"}]}, target="y")
    assert kinds(data) == {"a": "nominal", "b": "numeric", "y": "nominal"}


def test_another_target_than_the_schemas_makes_that_one_an_attribute():
    schema = {"columns": [{"name": "a", "role": "target"}, {"name": "b"}]}
    data = dataset_from_csv("a,b\nu,v\nw,x\n", schema=schema, target="b")
    assert [feature.role for feature in data.schema.features] == [Role.ATTRIBUTE, Role.TARGET]


def test_a_schema_object_declares_as_its_json_form_does():
    text = "length,colour,size,sold,kind\n1,red,small,true,a\n2,blue,large,false,b\n"
    assert dataset_from_csv(text, schema=MIXED) == dataset_from_csv(text, schema=MIXED.to_dict())
    assert dataset_from_csv(text, schema=MIXED).schema == MIXED


def test_a_weight_column_and_ignored_columns_have_their_roles():
    data = dataset_from_csv("id,x,w,y\n1,2,0.5,a\n2,3,0,b\n", target="y", weight="w", ignore=["id"])
    assert [feature.name for feature in data.schema.attributes] == ["x"]
    assert data.weight.tolist() == [0.5, 0.0]
    assert data.schema.weight.name == "w"


def test_an_ordinal_column_is_coded_by_its_declared_order():
    schema = {"columns": [{"name": "s", "kind": "ordinal", "categories": ["low", "mid", "high"]}]}
    assert dataset_from_csv("s,x\nhigh,1\nlow,2\n", schema=schema).columns[0].tolist() == [2, 0]


def test_a_datetime_is_seconds_since_1970_and_shown_as_a_date():
    schema = {"columns": [{"name": "d", "kind": "datetime"}]}
    text = "d,x\n1970-01-02,1\n1970-01-01T00:00:01+01:00,2\n?,3\n2000-02-29T12:00:00.5Z,4\n"
    data = dataset_from_csv(text, schema=schema)
    assert data.columns[0].tolist()[:2] == [86400.0, -3599.0]
    assert [row["d"] for row in data.rows()] == [
        "1970-01-02",
        "1969-12-31T23:00:01+00:00",
        None,
        "2000-02-29T12:00:00.500000+00:00",
    ]


@pytest.mark.parametrize("text", ["yesterday", "2001-02-29", "12", "0001-01-01T00:00+23:00", "9999-12-31T23:00-02:00"])
def test_what_is_no_date_is_refused(text):
    schema = {"columns": [{"name": "d", "kind": "datetime"}]}
    assert refused(DataError, lambda: dataset_from_csv(f"d,x\n{text},1\n", schema=schema)) == [("/d", "wrong_type")]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ([], ""),
        ("x", ""),
        (3, ""),
        ({"columns": {"a": "numeric"}}, "/columns"),
        ({"columns": "a"}, "/columns"),
        ({"columns": [3]}, "/columns/0"),
        ({"columns": [{"kind": "numeric"}]}, "/columns/0"),
        ({"columns": [{"name": "a", "kind": "text"}]}, "/columns/0/kind"),
        ({"columns": [{"name": "a", "kind": []}]}, "/columns/0/kind"),
        ({"columns": [{"name": "a", "role": "id"}]}, "/columns/0/role"),
        ({"columns": [{"name": "a", "kind": "ordinal"}]}, "/columns/0/categories"),
        ({"columns": [{"name": "a", "kind": "nominal", "categories": "u"}]}, "/columns/0/categories"),
        ({"columns": [{"name": "a", "kind": "nominal", "categories": [None]}]}, "/columns/0/categories"),
        ({"target": 3}, "/target"),
        ({"target": "b", "columns": [{"name": "b", "role": "ignore"}]}, "/columns/0/role"),
        ({"target": "b", "columns": [{"name": "b", "kind": "numeric", "role": "weight"}]}, "/columns/0/role"),
        ({"task": "ranking"}, "/task"),
        ({"missing_values": "?"}, "/missing_values"),
        ({"missing_values": [3]}, "/missing_values"),
        ({"missing_token": 3}, "/missing_values"),
    ],
)
def test_a_wrong_schema_is_refused_with_the_place(schema, path):
    faults = refused(SchemaError, lambda: dataset_from_csv("a,b\nu,1\nv,2\n", schema=schema))
    assert path in [place for place, _ in faults]


def test_the_target_of_a_call_replaces_the_role_that_the_schema_gives_it():
    schema = {"target": "a", "columns": [{"name": "b", "role": "ignore"}]}
    data = dataset_from_csv("a,b\nu,1\nv,2\n", schema=schema, target="b")
    assert {feature.name: feature.role for feature in data.schema.features} == {"a": Role.ATTRIBUTE, "b": Role.TARGET}


def test_an_illegal_role_of_the_target_of_a_call_is_refused():
    schema = {"columns": [{"name": "b", "role": "bogus"}]}
    faults = refused(SchemaError, lambda: dataset_from_csv("a,b\nu,1\nv,2\n", schema=schema, target="b"))
    assert faults == [("/columns/0/role", "unknown_value")]


def test_all_faults_of_a_schema_come_at_once():
    schema = {"task": "x", "target": 3, "columns": [{"name": "a", "kind": "u"}, {"name": "b", "role": "v"}]}
    faults = refused(SchemaError, lambda: dataset_from_csv("a,b\nu,1\n", schema=schema))
    assert {path for path, _ in faults} == {"/task", "/target", "/columns/0/kind", "/columns/1/role"}


@pytest.mark.parametrize("declared", [{"task": "regression"}, {"schema": {"task": "classification", "target": None}}])
def test_a_task_without_a_target_is_refused(declared):
    assert refused(SchemaError, lambda: dataset_from_csv("a,b\n1,2\n", **declared)) == [("/task", "required")]


def test_a_single_mark_must_be_given_in_a_list():
    assert refused(SchemaError, lambda: dataset_from_csv("a\nu\n", missing_values="NA")) == [
        ("/missing_values", "wrong_type")
    ]


@pytest.mark.parametrize(
    "roles",
    [{"target": "y", "weight": "y"}, {"target": "y", "ignore": ["y"]}, {"weight": "x", "ignore": ["x"]}],
)
def test_a_column_has_one_role_only(roles):
    assert refused(DataError, lambda: dataset_from_csv("x,y\n1,2\n2,3\n", **roles)) == [("", "roles")]


def test_names_are_compared_with_few_others():
    class Name(str):
        n_compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.n_compared += 1
            return str.__eq__(self, other)

    columns = [{"name": Name(f"column {number % 1000}")} for number in range(1001)]
    faults = refused(SchemaError, lambda: dataset_from_csv("a\n1\n", schema={"columns": columns}))
    assert faults == [("/columns/1000/name", "duplicate")]
    assert Name.n_compared < 10 * len(columns)
