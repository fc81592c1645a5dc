"""Reading a table: what is inferred, labels that keep their type, cells that are missing."""

import io
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from espalier import (
    DataError,
    SchemaError,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_rows,
    predict,
    read_table,
    train,
)
from tests.core.data_sets import categories, kinds, refused

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


def test_true_and_false_are_boolean_however_programs_write_them():
    assert kinds(dataset_from_rows([{"a": True}, {"a": False}])) == {"a": "boolean"}
    for true, false in (("true", "false"), ("True", "False"), ("TRUE", "FALSE")):
        data = dataset_from_csv(f"a,b\n{true},1\n{false},1\n")
        assert (kinds(data)["a"], categories(data, "a")) == ("boolean", (False, True))
    for cells in ([True, 1], ["yes", "no"], ["true", "maybe"]):
        assert kinds(dataset_from_columns({"a": cells})) == {"a": "nominal"}


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


@pytest.mark.parametrize("cell", [math.inf, 10**400], ids=["infinite", "huge"])
def test_a_number_that_is_not_finite_is_refused_as_such(cell):
    with pytest.raises(DataError, match="finite"):
        dataset_from_rows([{"x": cell, "y": "a"}, {"x": "b", "y": "b"}], target="y")


def test_a_column_without_any_value_is_nominal_without_categories_and_noticed():
    data = dataset_from_csv("x,y,z\n,a,3\n?,b,3\n", target="y")
    assert kinds(data)["x"] == "nominal"
    assert categories(data, "x") == ()
    assert data.columns[0].tolist() == [-1, -1]
    assert tuple(map(str, data.notices)) == (
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
    assert categories(data, "code") == ("7", "007")


def test_classes_with_leading_zeros_stay_text():
    data = dataset_from_csv("x,y\n1,007\n2,008\n3,007\n", target="y")
    assert categories(data, "y") == ("007", "008")
    assert predict(train(data), [{"x": 1}])[0].label == "007"


def test_classes_too_long_for_a_number_stay_text_and_apart():
    data = dataset_from_csv("x,y\n1,9007199254740993\n2,9007199254740992\n3,9007199254740992\n", target="y")
    assert categories(data, "y") == ("9007199254740992", "9007199254740993")


def test_classes_that_json_would_round_are_kept_as_text_in_every_format():
    data = dataset_from_rows([{"x": n, "y": 2**60 + n} for n in range(3)], target="y")
    assert categories(data, "y") == ("1152921504606846976", "1152921504606846977", "1152921504606846978")
    assert data == dataset_from_csv("x,y\n" + "".join(f"{n},{2**60 + n}\n" for n in range(3)), target="y")


def test_two_classes_that_are_written_alike_are_refused():
    with pytest.raises(SchemaError, match="written alike"):
        dataset_from_rows([{"x": 1, "y": 1}, {"x": 2, "y": "1"}], target="y")


def test_declared_categories_are_met_by_how_a_text_format_writes_them():
    schema = {"columns": [{"name": "a", "kind": "nominal", "categories": [True, 1, 2.5, "x"]}]}
    data = dataset_from_csv("a,b\ntrue,1\n1,1\n2.5,1\nx,1\n", schema=schema)
    assert data.columns[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("cells", "classes"),
    [([0, 1.0, 1], [0, 1]), ([-0.0, 7.0, 0], [0, 7]), ([0.5, 1, 1.0, 2**53 + 1], [0.5, 1, str(2**53 + 1)])],
)
def test_equal_numbers_of_a_target_are_one_class(cells, classes):
    data = dataset_from_rows([{"y": cell} for cell in cells], target="y", task="classification")
    assert [(type(label), label) for label in data.schema.classes] == [(type(label), label) for label in classes]
    assert [Fraction(row["y"]) for row in data.rows()] == [Fraction(cell) for cell in cells]


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


@pytest.mark.parametrize("task", [None, "classification", "regression"])
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_number_that_means_missing_is_no_class_however_it_is_spelt(form, task):
    content = {"csv": b"x,y\n1,0.0\n2,1.0\n3,-999.0\n", "ndjson": b'{"y": 0.0}\n{"y": "1.0"}\n{"y": "-999.0"}\n'}[form]
    declared = {"target": "y", "missing_values": ["-999"], "task": task}
    assert refused(DataError, lambda: read_table(io.BytesIO(content), form, **declared)) == [("/y", "missing")]


def test_null_and_an_absent_key_are_missing():
    data = dataset_from_rows([{"a": None, "y": 1}, {"y": 2}, {"a": 3, "y": 1}])
    assert np.isnan(data.columns[0]).tolist() == [True, True, False]


def test_a_missing_target_is_refused_with_its_rows():
    with pytest.raises(DataError, match=r"/y: the target must not be missing: 2 cells \(row 0, 2, counted from 0\)"):
        dataset_from_csv("x,y\n1,\n2,a\n3,?\n", target="y")


def test_a_signaling_nan_is_missing_as_every_nan_is():
    data = dataset_from_rows([{"x": Decimal("sNaN")}, {"x": Decimal("1.5")}])
    np.testing.assert_array_equal(data.columns[0], [math.nan, 1.5])
