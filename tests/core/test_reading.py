"""Data sets from CSV, rows and columns: what is inferred, what is declared, what is refused."""

import csv
import gzip
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier import (
    DataError,
    FeatureKind,
    InvalidInput,
    Role,
    RowError,
    Schema,
    SchemaError,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_rows,
    predict,
    rows_from_csv,
    train,
)
from tests.core.planted import MIXED
from tests.factories import REFERENCE, needs_reference

DATA_SETS = sorted(path.name.removesuffix(".schema.json") for path in (REFERENCE / "data").glob("*.schema.json"))


def kinds(data):
    return {feature.name: str(feature.kind) for feature in data.schema.features}


def categories(data, name):
    return data.schema.features[data.schema.place(name)].categories


def refused(error, call):
    with pytest.raises(error) as caught:
        call()
    return [(fault.path, fault.code) for fault in caught.value.faults]


# What is inferred


def test_numbers_are_numeric_and_text_is_nominal():
    data = dataset_from_csv("a,b,c,d\n1,x,-1.5e3,1\n2,y,.5,z\n")
    assert kinds(data) == {"a": "numeric", "b": "nominal", "c": "numeric", "d": "nominal"}
    assert data.columns[2].tolist() == [-1500.0, 0.5]
    assert categories(data, "d") == ("1", "z")


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_000", "1,5", "0x10", "1e400", "١٢", "\uff11\uff12"])
def test_text_that_only_a_programming_language_takes_for_a_number_is_nominal(text):
    data = dataset_from_csv(f'a,b\n"{text}",1\n3,2\n')
    assert kinds(data)["a"] == "nominal"
    assert text in categories(data, "a")


def test_true_and_false_of_json_are_boolean_and_as_text_nominal():
    assert kinds(dataset_from_rows([{"a": True}, {"a": False}])) == {"a": "boolean"}
    assert kinds(dataset_from_csv("a,b\ntrue,1\nfalse,1\n"))["a"] == "nominal"
    assert kinds(dataset_from_rows([{"a": True}, {"a": 1}])) == {"a": "nominal"}


def test_categories_are_sorted_numbers_by_value_and_text_by_code_point():
    assert categories(dataset_from_csv("y,x\nb,1\na,1\nB,1\nä,1\n"), "y") == ("B", "a", "b", "ä")
    assert categories(dataset_from_csv("y,x\n10,1\n9,1\n-1,1\n", target="y"), "y") == (-1, 9, 10)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (range(20), "nominal"),
        (range(21), "numeric"),
        ([0, 1, 0, 1.5], "numeric"),
        ([1.0, 2.0, 2.0], "nominal"),
        (["1", "2", "2"], "nominal"),
        (["1.5", "2"], "numeric"),
        ([-3, 3], "nominal"),
        ([1e300, 1], "nominal"),
        (["a", "b"], "nominal"),
        ([True, False], "boolean"),
    ],
)
def test_a_numeric_target_of_at_most_20_whole_numbers_is_a_class(cells, kind):
    rows = [{"x": n, "y": cell} for n, cell in enumerate(cells)]
    if 1e300 in list(cells):
        rows[0]["y"] = 1e15
    data = dataset_from_rows(rows, target="y")
    assert kinds(data)["y"] == kind
    assert data.schema.task == ("regression" if kind == "numeric" else "classification")
    assert kinds(data)["x"] == "numeric"


def test_the_task_overrides_what_is_inferred():
    text = "x,y\n1,1\n2,2\n3,1.5\n"
    assert dataset_from_csv(text, target="y", task="classification").schema.task == "classification"
    assert dataset_from_csv("x,y\n1,1\n2,2\n", target="y", task="regression").schema.task == "regression"


def test_a_regression_on_text_is_refused_cell_by_cell():
    faults = refused(DataError, lambda: dataset_from_csv("x,y\n1,a\n2,b\n", target="y", task="regression"))
    assert faults == [("/y", "wrong_type")]


def test_a_column_without_any_value_is_nominal_without_categories_and_noticed():
    data = dataset_from_csv("x,y,z\n,a,3\n?,b,3\n", target="y")
    assert kinds(data)["x"] == "nominal"
    assert categories(data, "x") == ()
    assert data.columns[0].tolist() == [-1, -1]
    assert data.notices == (
        "attribute 'x' has no values and can never be tested",
        "attribute 'z' has one value and can never be tested",
    )


# Labels keep their type and spelling


def test_labels_of_json_keep_type_and_spelling():
    labels = ["007", 7, 7.0, True, "true", "", "🌳", "e\u0301", "é", " x ", -0.0, "None"]
    data = dataset_from_rows([{"a": label, "b": "u"} for label in labels])
    shown = [row["a"] for row in data.rows()]
    assert [(type(label), str(label)) for label in shown] == [(type(label), str(label)) for label in labels]
    assert len(categories(data, "a")) == len(labels)


def test_an_empty_cell_of_csv_is_missing_and_an_empty_text_of_json_is_a_category():
    assert dataset_from_csv("a,b\n,1\nx,2\n").rows()[0] == {"a": None, "b": 1.0}
    assert dataset_from_rows([{"a": ""}, {"a": "x"}]).rows()[0] == {"a": ""}


def test_a_declared_nominal_column_of_csv_keeps_leading_zeros():
    data = dataset_from_csv("code,y\n007,a\n7,b\n", schema={"columns": [{"name": "code", "kind": "nominal"}]})
    assert categories(data, "code") == ("007", "7")


def test_classes_with_leading_zeros_stay_text():
    data = dataset_from_csv("x,y\n1,007\n2,008\n3,007\n", target="y")
    assert categories(data, "y") == ("007", "008")
    assert predict(train(data), [{"x": 1}])[0].label == "007"


def test_classes_too_long_for_a_number_stay_text_and_apart():
    data = dataset_from_csv("x,y\n1,9007199254740993\n2,9007199254740992\n3,9007199254740992\n", target="y")
    assert categories(data, "y") == ("9007199254740992", "9007199254740993")


def test_whole_numbers_beyond_json_must_be_given_as_text():
    rows = [{"x": n, "y": 2**60 + n} for n in range(3)]
    with pytest.raises(SchemaError, match=r"beyond 2\^53 must be given as text"):
        dataset_from_rows(rows, target="y")


def test_two_classes_that_are_written_alike_are_refused():
    with pytest.raises(SchemaError, match="written alike"):
        dataset_from_rows([{"x": 1, "y": 1}, {"x": 2, "y": "1"}], target="y")


def test_declared_categories_are_met_by_how_a_text_format_writes_them():
    schema = {"columns": [{"name": "a", "kind": "nominal", "categories": [True, 1, 2.5, "x"]}]}
    data = dataset_from_csv("a,b\ntrue,1\n1,1\n2.5,1\nx,1\n", schema=schema)
    assert data.columns[0].tolist() == [0, 1, 2, 3]


# Missing


@pytest.mark.parametrize("cell", ["", "?", "NA"])
def test_an_empty_cell_and_the_usual_marks_are_missing(cell):
    data = dataset_from_csv(f"n,c,y\n{cell},{cell},a\n1,u,b\n", target="y")
    assert math.isnan(data.columns[0][0])
    assert data.columns[1].tolist() == [-1, 0]


def test_other_marks_can_be_declared_and_stand_instead_of_the_usual_ones():
    data = dataset_from_csv("c,y\n-,a\n?,b\nNA,a\n", target="y", missing_values=["-"])
    assert data.columns[0].tolist() == [-1, 0, 1]
    assert data.schema.missing_values == ("-",)
    assert dataset_from_csv("c,y\n-,a\nNA,b\n", schema={"missing_token": "-"}).columns[0].tolist() == [-1, 0]


def test_null_and_an_absent_key_are_missing():
    data = dataset_from_rows([{"a": None, "y": 1}, {"y": 2}, {"a": 3, "y": 1}])
    assert np.isnan(data.columns[0]).tolist() == [True, True, False]


def test_a_missing_target_is_refused_with_its_rows():
    with pytest.raises(DataError, match=r"/y: the target must not be missing: 2 cells \(row 0, 2, counted from 0\)"):
        dataset_from_csv("x,y\n1,\n2,a\n3,?\n", target="y")


# Declared


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
        ({"task": "ranking"}, "/task"),
        ({"missing_values": "?"}, "/missing_values"),
        ({"missing_values": [3]}, "/missing_values"),
        ({"missing_token": 3}, "/missing_values"),
    ],
)
def test_a_wrong_schema_is_refused_with_the_place(schema, path):
    faults = refused(SchemaError, lambda: dataset_from_csv("a,b\nu,1\nv,2\n", schema=schema))
    assert path in [place for place, _ in faults]


def test_all_faults_of_a_schema_come_at_once():
    schema = {"task": "x", "target": 3, "columns": [{"name": "a", "kind": "u"}, {"name": "b", "role": "v"}]}
    faults = refused(SchemaError, lambda: dataset_from_csv("a,b\nu,1\n", schema=schema))
    assert {path for path, _ in faults} == {"/task", "/target", "/columns/0/kind", "/columns/1/role"}


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


# Refused


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"a,b,c,d,e,f,g,h,i,j\n", "empty"),
        (b"a,b,c,d,e,f,g,h,i,j", "empty"),
        (b"a,b\n1\n", "ragged"),
        (b"a,b\n1,2,3\n", "ragged"),
        (b"a,b\n1,2\n \n", "ragged"),
        (b"a,a\n1,2\n", "duplicate"),
        (b"a,\n1,2\n", "empty_name"),
        (b"a,b\n1,\x00\n", "not_csv"),
        (b"\x00\x01\x02", "not_csv"),
        (b"PK\x03\x04\xff\xfe\x9c", "not_csv"),
        ("a,b\n1,ü\n".encode("latin-1"), "not_csv"),
        ("a,b\n1,2\n".encode("utf-16"), "not_csv"),
        (b'a,b\n"1,2\n', "not_csv"),
        (b'a,b\n"1"x,2\n', "not_csv"),
        (b"a,b\n" + b"x" * 200_000 + b",1\n", "not_csv"),
        (b"a;b\n1;2\n", "separator"),
        (b"a\tb\n1\t2\n", "separator"),
    ],
)
def test_content_that_is_no_table_is_refused_by_code(content, code):
    schema = {"columns": [{"name": "zz"}]} if code == "separator" else None
    faults = refused(DataError, lambda: dataset_from_csv(content, schema=schema))
    assert code in [fault for _, fault in faults]


def test_a_table_with_another_separator_says_so_when_the_target_is_not_found():
    with pytest.raises(DataError, match="cells must be separated by commas"):
        dataset_from_csv("a;y\n1;u\n2;v\n", target="y")


def test_a_ragged_line_is_named_by_its_number_in_the_file():
    with pytest.raises(DataError, match="line 4 has 1 cells, the first line has 2 names"):
        dataset_from_csv('a,b\n"1\n",2\n3\n')


def test_a_target_that_is_not_there_is_refused_with_the_columns_that_are():
    with pytest.raises(DataError, match="/target: there is no column 'z'; there are: x, y"):
        dataset_from_csv("x,y\n1,2\n", target="z")


@pytest.mark.parametrize("column", [{"weight": "z"}, {"ignore": ["z"]}, {"ignore": "z"}])
def test_a_weight_or_ignored_column_that_is_not_there_is_refused(column):
    assert refused(DataError, lambda: dataset_from_csv("x,y\n1,2\n", **column)) == [("", "unknown_column")]


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        ("-1", "negative"),
        ("", "missing"),
        ("x", "wrong_type"),
        ("0", "no_weight"),
        ("1e200", "out_of_range"),
        ("1e-200", "out_of_range"),
    ],
)
def test_weights_must_be_known_not_negative_and_not_all_zero(cells, code):
    text = f"x,w,y\n1,{cells},a\n2,0,b\n"
    assert refused(DataError, lambda: dataset_from_csv(text, target="y", weight="w")) == [("/w", code)]


def test_a_target_whose_square_is_no_number_is_refused():
    text = "x,y\n1,1e200\n2,-1e200\n3,0.5\n"
    assert refused(DataError, lambda: dataset_from_csv(text, target="y")) == [("/y", "too_large")]


def test_cells_that_do_not_fit_a_declared_kind_are_counted_and_named_by_row_in_every_column():
    schema = {"columns": [{"name": "n", "kind": "numeric"}, {"name": "c", "kind": "nominal", "categories": ["u"]}]}
    with pytest.raises(DataError) as caught:
        dataset_from_csv("n,c,x\na,u,1\n1,v,1\nb,w,1\nc,u,1\nd,u,1\n", schema=schema)
    assert [str(fault) for fault in caught.value.faults] == [
        "/n: must be a finite number or missing: 4 cells (row 0, 2, 3, …, counted from 0)",
        "/c: must be one of the declared categories: 2 cells (row 1, 2, counted from 0)",
    ]


def test_no_message_repeats_a_cell():
    with pytest.raises(DataError) as caught:
        dataset_from_csv("n,x\nmy secret,1\n", schema={"columns": [{"name": "n", "kind": "numeric"}]})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: dataset_from_rows([]), "empty"),
        (lambda: dataset_from_rows([{}]), "empty"),
        (lambda: dataset_from_rows({"a": 1}), "wrong_type"),
        (lambda: dataset_from_rows("abc"), "wrong_type"),
        (lambda: dataset_from_rows(None), "wrong_type"),
        (lambda: dataset_from_rows([{"a": 1}, 3]), "wrong_type"),
        (lambda: dataset_from_rows([{1: 2}]), "wrong_type"),
        (lambda: dataset_from_rows([{"a": [1]}]), "wrong_type"),
        (lambda: dataset_from_rows([{"a": {}}, {"a": "x"}]), "wrong_type"),
        (lambda: dataset_from_rows([{"a": math.inf}]), "wrong_type"),
        (lambda: dataset_from_rows([{"a": 10**400}, {"a": "x"}]), "too_large"),
        (lambda: dataset_from_columns({}), "empty"),
        (lambda: dataset_from_columns({"a": []}), "empty"),
        (lambda: dataset_from_columns({"a": "xyz"}), "wrong_type"),
        (lambda: dataset_from_columns({"a": 3}), "wrong_type"),
        (lambda: dataset_from_columns([("a", [1])]), "empty"),
        (lambda: dataset_from_columns({"a": [1, 2], "b": [1]}), "ragged"),
        (lambda: dataset_from_rows([{"": 1}]), "length"),
        (lambda: dataset_from_rows([{"n" * 1001: 1}]), "length"),
        (lambda: dataset_from_rows([{"a\x00": 1}]), "characters"),
        (lambda: dataset_from_rows([{"a": "\ud800"}, {"a": "x"}]), "characters"),
    ],
)
def test_rows_and_columns_that_are_no_table_are_refused_by_code(call, code):
    assert code in [fault for _, fault in refused(InvalidInput, call)]


# Forms of CSV


def test_a_byte_order_mark_crlf_quotes_and_blank_lines_are_read():
    content = '\ufeffa,b\r\n"x, ""y""\n",1\r\n\r\nz,2\r\n'
    for source in (content, content.encode()):
        assert dataset_from_csv(source).rows() == [{"a": 'x, "y"\n', "b": 1.0}, {"a": "z", "b": 2.0}]


def test_a_last_line_without_end_is_read():
    assert dataset_from_csv("a,b\n1,2").n_rows == 1


def test_a_path_is_read_packed_or_not(tmp_path):
    text = b"a,y\n1,u\n2,v\n"
    (tmp_path / "plain.csv").write_bytes(text)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(text))
    plain, packed = dataset_from_csv(tmp_path / "plain.csv"), dataset_from_csv(tmp_path / "packed.csv.gz")
    assert plain == packed == dataset_from_csv(text)


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: packed[:12] + b"\xff" * 9 + packed[21:]])
def test_a_damaged_gzip_file_is_refused(tmp_path, damage):
    (tmp_path / "packed.csv.gz").write_bytes(damage(gzip.compress(b"a,y\n1,u\n2,v\n" * 9)))
    with pytest.raises(DataError, match="gzip file is damaged"):
        dataset_from_csv(tmp_path / "packed.csv.gz")


# Rows to be answered


def test_rows_of_csv_are_read_by_the_schemas_kinds():
    rows = rows_from_csv(MIXED, b"length,colour,size,sold,extra\n1.5,red,small,true,9\n,?,NA,false,\nnan,mauve,x,?,u\n")
    assert rows == [
        {"length": 1.5, "colour": "red", "size": "small", "sold": True, "extra": "9"},
        {"length": None, "colour": "?", "size": "NA", "sold": False, "extra": None},
        {"length": "nan", "colour": "mauve", "size": "x", "sold": "?", "extra": "u"},
    ]


def test_text_that_is_no_number_is_refused_when_the_row_is_answered():
    data = dataset_from_csv("x,y\n1,a\n2,b\n", target="y")
    model = train(data)
    for text in ("nan", "inf", "1_0", "abc", "1e999"):
        with pytest.raises(RowError, match="/0/x"):
            predict(model, rows_from_csv(model.schema, f"x\n{text}\n"))


def test_another_number_is_an_unseen_category_of_a_column_of_numbers():
    data = dataset_from_rows([{"g": g, "y": "ab"[g % 2]} for g in range(4)], target="y",
                             schema={"columns": [{"name": "g", "kind": "nominal"}]})  # fmt: skip
    model = train(data)
    (seen, unseen) = predict(model, rows_from_csv(model.schema, "g\n3\n17\n"))
    assert (seen.label, seen.row.unseen) == ("b", ())
    assert unseen.row.unseen == ("g",)


@given(
    table=st.lists(
        st.tuples(
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_written_as_csv_reads_back_cell_by_cell(tmp_path_factory, table):
    schema = {
        "columns": [{"name": "n", "kind": "numeric"}, {"name": "c", "kind": "nominal"}],
        "missing_values": [],
    }
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["n", "c"])
        writer.writerows(table)
    rows = [{"n": number, "c": text} for number, text in table]
    assert dataset_from_csv(path, schema=schema).rows() == rows
    assert dataset_from_rows(rows, schema=schema) == dataset_from_csv(path, schema=schema)


@given(content=st.binary(max_size=60) | st.text(alphabet='a1,"\n\r;?\t \0ü\ud800', max_size=40))
def test_any_content_is_a_data_set_or_refused(content):
    try:
        data = dataset_from_csv(content)
    except InvalidInput:
        return
    assert data.n_rows > 0
    assert len(data.fingerprint) == 64
    assert dataset_from_rows(data.rows(), schema=data.schema, missing_values=[]).n_rows == data.n_rows


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(schema=JSON | st.fixed_dictionaries({}, optional={
    "columns": st.lists(st.fixed_dictionaries({}, optional={
        "name": st.sampled_from(["a", "b"]) | JSON,
        "kind": st.sampled_from(list(FeatureKind)) | JSON,
        "role": st.sampled_from(list(Role)) | JSON,
        "categories": st.lists(st.sampled_from(["u", "v", 1, True])) | JSON,
    }), max_size=3),
    "target": st.sampled_from(["a", "b"]) | JSON,
    "task": st.sampled_from(["classification", "regression"]) | JSON,
    "missing_values": st.lists(st.text(max_size=2)) | JSON,
}))  # fmt: skip
def test_any_schema_is_a_schema_or_refused(schema):
    try:
        data = dataset_from_csv("a,b\nu,1\nv,2\nu,3\n", schema=schema)
    except InvalidInput:
        return
    assert Schema.from_dict(data.schema.to_dict()) == data.schema
