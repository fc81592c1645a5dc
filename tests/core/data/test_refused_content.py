"""Content that is no table is refused by its code, and told by line, row and column."""

import math

import pytest

from espalier import (
    DataError,
    InvalidInput,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_rows,
)
from tests.core.data_sets import refused


def test_the_message_about_missing_columns_does_not_repeat_very_long_names():
    columns = {f"{number}{'x' * 100_000}": [1] for number in range(20)}
    schema = {"columns": [{"name": f"u{number}"} for number in range(50)]}
    with pytest.raises(DataError, match="there is no column 'u0'; there are: 0xxx") as caught:
        dataset_from_columns(columns, schema=schema)
    assert len(caught.value.faults) == 50
    assert sum(len(fault.message) for fault in caught.value.faults) < 2_000_000


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
        (b"a,b\n" + b"x" * 200_000 + b",1\n", "long_cell"),
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


@pytest.mark.parametrize("text", ["a;b\n1,5;u\n2,5;v\n", "a\tb\n1,5\tu\n"])
def test_a_table_with_another_separator_and_commas_in_its_numbers_says_so(text):
    with pytest.raises(DataError, match="line 2 has 2 cells, the first line has 1 name: cells must be separated by"):
        dataset_from_csv(text)


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


LARGE = [2.0**60 + 1024 * place for place in range(4)]
"""Numbers that may be rounded, so they cannot be categories."""


@pytest.mark.parametrize("role", [{"ignore": ["id"]}, {"ignore": ["id"], "schema": {"columns": [{"name": "id"}]}}])
def test_large_numbers_are_legal_in_an_ignored_column(role):
    columns = {"id": LARGE, "y": list("aabb")}
    rows = [{"id": number, "y": label} for number, label in zip(LARGE, "aabb", strict=True)]
    for data in (dataset_from_columns(columns, target="y", **role), dataset_from_rows(rows, target="y", **role)):
        assert [row["id"] for row in data.rows()] == LARGE


def test_a_target_of_few_large_numbers_is_refused_with_the_task_that_takes_them():
    columns = {"x": [1, 2, 3, 4], "y": LARGE}
    with pytest.raises(DataError, match=r'/y: .* give it as text, or choose task="regression": 4 cells'):
        dataset_from_columns(columns, target="y")
    assert dataset_from_columns(columns, target="y", task="regression").schema.task == "regression"
    nominal = {"target": "x", "columns": [{"name": "y", "kind": "nominal"}]}
    with pytest.raises(DataError, match=r"/y: .* give it as text: 4 cells"):
        dataset_from_columns(columns, schema=nominal)


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
        (lambda: dataset_from_rows([{"a": 10**400}, {"a": "x"}]), "wrong_type"),
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
