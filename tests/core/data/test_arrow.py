"""Data sets from tables that other libraries hold."""

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pytest

import espalier
from espalier import DataError, dataset_from_columns
from espalier.data.column import distinct_values

CELLS: dict[str, list[Any]] = {
    "colour": ["red", None, "blue", "red"],
    "length": [1.5, None, -2.0, 3.25],
    "count": [1, None, 3, 2**40],
    "sold": [True, None, False, True],
    "seen": [datetime(2020, 1, 1, 12, 30, 15, 250000), None, datetime(1969, 7, 20), datetime(2021, 2, 3)],
    "class": ["yes", "no", "no", "yes"],
}
AS_JSON = {**CELLS, "seen": ["2020-01-01T12:30:15.250000", None, "1969-07-20", "2021-02-03"]}
SCHEMA = {"columns": [{"name": "seen", "kind": "datetime"}]}


class Stream:
    """A table of a library that nobody has heard of."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def pandas_table(cells: dict[str, Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame(cells)


def nullable_pandas_table(cells: dict[str, Any]) -> Any:
    pytest.importorskip("pyarrow")
    return pytest.importorskip("pandas").DataFrame(cells).convert_dtypes()


def arrow_backed_pandas_table(cells: dict[str, Any]) -> Any:
    pandas = pytest.importorskip("pandas")
    return pytest.importorskip("pyarrow").table(cells).to_pandas(types_mapper=pandas.ArrowDtype)


def polars_table(cells: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(cells)


def arrow_table(cells: dict[str, Any]) -> Any:
    return pytest.importorskip("pyarrow").table(cells)


def chunked_arrow_table(cells: dict[str, Any]) -> Any:
    """Texts as dictionaries, in pieces that number their categories differently."""
    arrow = pytest.importorskip("pyarrow")
    whole = arrow.table(cells)
    pieces = [whole.slice(0, 1), whole.slice(1, 2), whole.slice(3)]
    for place, piece in enumerate(pieces):
        columns = [
            column.dictionary_encode() if arrow.types.is_string(column.type) else column for column in piece.columns
        ]
        pieces[place] = arrow.table(columns, names=whole.column_names)
    return arrow.concat_tables(pieces)


def streamed_table(cells: dict[str, Any]) -> Any:
    return Stream(arrow_table(cells))


def streamed_polars_table(cells: dict[str, Any]) -> Any:
    pytest.importorskip("pyarrow")
    return Stream(polars_table(cells))


def lazy_table(cells: dict[str, Any]) -> Any:
    return polars_table(cells).lazy()


TABLES = [
    pandas_table,
    nullable_pandas_table,
    arrow_backed_pandas_table,
    polars_table,
    lazy_table,
    arrow_table,
    chunked_arrow_table,
    streamed_table,
    streamed_polars_table,
]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_the_data_set_that_its_cells_are(table: Any) -> None:
    expected = espalier.dataset_from_columns(AS_JSON, target="class", schema=SCHEMA)
    found = espalier.dataset_from_arrow(table(CELLS), target="class")
    assert found.rows() == expected.rows()
    assert found.schema == expected.schema
    assert found.fingerprint == expected.fingerprint


@pytest.mark.parametrize("table", TABLES)
def test_what_is_declared_stands_over_the_types_of_a_table(table: Any) -> None:
    found = espalier.dataset_from_arrow(
        table(
            {"size": ["S", "L", "M"], "code": [7, 3, 7], "w": [1, 2, 1], "id": ["a", "b", "c"], "y": [1.5, 2.5, 3.5]}
        ),
        target="y",
        weight="w",
        ignore=["id"],
        schema={
            "columns": [
                {"name": "size", "kind": "ordinal", "categories": ["S", "M", "L"]},
                {"name": "code", "kind": "nominal"},
            ]
        },
    )
    size, code, weight, name, target = found.schema.features
    assert (str(size.kind), size.categories) == ("ordinal", ("S", "M", "L"))
    assert (str(code.kind), code.categories) == ("nominal", (3, 7))
    assert (str(weight.role), str(name.role), found.schema.task) == ("weight", "ignore", "regression")
    assert [column.tolist() for column in found.columns[:2]] == [[0, 2, 1], [1, 0, 1]]
    assert target.name == "y"


@pytest.mark.parametrize("table", TABLES)
def test_a_target_of_few_whole_numbers_is_a_class(table: Any) -> None:
    found = espalier.dataset_from_arrow(table({"x": [1.0, 2.0], "y": [0, 1]}), target="y")
    assert (found.schema.task, found.schema.classes) == ("classification", (0, 1))
    numbers = espalier.dataset_from_arrow(table({"x": [1.0, 2.0], "y": [0, 1]}), target="y", task="regression")
    assert numbers.schema.task == "regression"


@pytest.mark.parametrize("table", TABLES)
def test_texts_that_stand_for_missing_are_missing(table: Any) -> None:
    found = espalier.dataset_from_arrow(table({"a": ["?", "x", "NA"], "y": ["p", "q", "p"]}), target="y")
    assert [row["a"] for row in found.rows()] == [None, "x", None]
    assert found.schema.attributes[0].categories == ("x",)


@pytest.mark.parametrize("table", TABLES)
def test_a_target_with_a_missing_cell_is_refused_with_its_row(table: Any) -> None:
    with pytest.raises(espalier.DataError, match=r"/y: the target must not be missing: 1 cell \(row 1"):
        espalier.dataset_from_arrow(table({"x": [1.0, 2.0], "y": ["a", None]}), target="y")


@pytest.mark.parametrize("table", TABLES)
def test_an_infinite_cell_is_refused_with_its_row(table: Any) -> None:
    with pytest.raises(espalier.DataError, match=r"/x: must be a finite number or missing: 1 cell \(row 1"):
        espalier.dataset_from_arrow(table({"x": [1.0, np.inf], "y": ["a", "b"]}), target="y")


@pytest.mark.parametrize("table", TABLES)
def test_texts_that_are_declared_numeric_are_read_or_refused_by_row(table: Any) -> None:
    numeric = {"columns": [{"name": "x", "kind": "numeric"}]}
    found = espalier.dataset_from_arrow(table({"x": ["1.5", "-2"], "y": ["a", "b"]}), target="y", schema=numeric)
    assert found.attributes[0].tolist() == [1.5, -2.0]
    with pytest.raises(espalier.DataError, match=r"/x: must be a finite number or missing: 1 cell \(row 1"):
        espalier.dataset_from_arrow(table({"x": ["1.5", "long"], "y": ["a", "b"]}), target="y", schema=numeric)


@pytest.mark.parametrize("table", TABLES)
def test_a_column_that_is_not_there_is_named(table: Any) -> None:
    with pytest.raises(espalier.DataError, match="there is no column 'z'; there are: x, y"):
        espalier.dataset_from_arrow(table({"x": [1.0], "y": ["a"]}), target="z")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows_is_refused(table: Any) -> None:
    with pytest.raises(espalier.DataError, match="there are 2 columns and no rows"):
        espalier.dataset_from_arrow(table({"x": [], "y": []}))


def test_an_ordered_categorical_is_ordinal_and_as_a_target_keeps_its_order() -> None:
    pandas = pytest.importorskip("pandas")
    size = pandas.Categorical(["S", "L", None], categories=["S", "M", "L"], ordered=True)
    grade = pandas.Categorical(["low", "high", "low"], categories=["low", "high"], ordered=True)
    found = espalier.dataset_from_arrow(pandas.DataFrame({"size": size, "grade": grade}), target="grade")
    attribute, target = found.schema.features
    assert (str(attribute.kind), attribute.categories) == ("ordinal", ("S", "M", "L"))
    assert (str(target.kind), target.categories) == ("nominal", ("low", "high"))
    assert found.attributes[0].tolist() == [0, 2, -1]


def test_an_enumeration_of_polars_is_ordinal() -> None:
    polars = pytest.importorskip("polars")
    size = polars.Series("size", ["L", None, "S"], dtype=polars.Enum(["S", "M", "L"]))
    found = espalier.dataset_from_arrow(polars.DataFrame([size]))
    assert str(found.schema.features[0].kind) == "ordinal"
    assert found.columns[0].tolist() == [2, -1, 0]


def test_categories_that_no_row_has_are_left_out_and_the_rest_sorted() -> None:
    pandas = pytest.importorskip("pandas")
    colour = pandas.Categorical(["red", "blue", "red"], categories=["red", "green", "blue"])
    found = espalier.dataset_from_arrow(pandas.DataFrame({"colour": colour}))
    assert found.schema.features[0].categories == ("blue", "red")


def test_a_dictionary_with_an_entry_for_missing_has_missing_cells() -> None:
    arrow = pytest.importorskip("pyarrow")
    column = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 2, None]), arrow.array(["b", None, "a"]))
    found = espalier.dataset_from_arrow(arrow.table({"a": column}))
    assert [row["a"] for row in found.rows()] == ["b", None, "a", None]


def test_times_with_a_zone_are_instants() -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime(["2020-01-01T00:00:00+02:00", None])
    found = espalier.dataset_from_arrow(pandas.DataFrame({"t": times}))
    assert found.columns[0][0] == datetime(2019, 12, 31, 22, tzinfo=UTC).timestamp()
    assert np.isnan(found.columns[0][1])


@pytest.mark.parametrize("table", [pandas_table, polars_table, arrow_table])
def test_dates_are_midnights(table: Any) -> None:
    found = espalier.dataset_from_arrow(table({"d": [date(2020, 1, 1), None, date(1960, 2, 29)]}))
    assert [row["d"] for row in found.rows()] == ["2020-01-01", None, "1960-02-29"]


@pytest.mark.parametrize("table", [pandas_table, polars_table, arrow_table])
def test_columns_of_lists_are_refused_all_at_once(table: Any) -> None:
    with pytest.raises(espalier.DataError) as refused:
        espalier.dataset_from_arrow(table({"a": [[1], [2]], "b": [1, 2], "c": [[3], [4]]}))
    assert [fault.path for fault in refused.value.faults] == ["/a", "/c"]


def test_what_is_no_table_is_refused_with_what_is_legal() -> None:
    with pytest.raises(espalier.DataError, match="must be a pandas, polars or pyarrow table"):
        espalier.dataset_from_arrow({"a": [1]})


def test_two_columns_of_one_name_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(espalier.DataError, match="two columns are called 'a'"):
        espalier.dataset_from_arrow(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


def test_the_core_imports_no_library_of_tables() -> None:
    program = """
import sys
import espalier
loaded = {"pandas", "polars", "pyarrow", "sklearn", "scipy"} & set(sys.modules)
assert not loaded, loaded
data = espalier.dataset_from_columns({"x": [1.5, 2.5, 3.5, 4.5], "y": ["a", "a", "b", "b"]}, target="y")
espalier.train(data, "cart")
loaded = {"pandas", "polars", "pyarrow", "sklearn"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "cells",
    [
        np.array([5, 3, 3, 100], dtype=np.int64),
        np.array([-128, 127, 0, 127], dtype=np.int8),
        np.array([255, 0, 7], dtype=np.uint8),
        np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 200], dtype=np.int64),
        np.array([-(2**63), 2**63 - 1], dtype=np.int64),
        np.array([0.5, -1.0, 0.5]),
        np.array([], dtype=np.int64),
    ],
)
def test_distinct_values_are_sorted_and_each_value_finds_its_own(cells):
    distinct, places = distinct_values(cells)
    assert distinct.tolist() == sorted(set(cells.tolist()))
    assert distinct.dtype == cells.dtype
    assert distinct[places].tolist() == cells.tolist()


@pytest.mark.parametrize("task", [None, "regression"])
@pytest.mark.parametrize(("cell", "message"), [(float("nan"), "missing"), (float("inf"), "finite")])
def test_a_target_of_fractions_is_a_number_and_held_to_what_a_number_must_be(task, cell, message):
    data = espalier.dataset_from_arrow(pandas_table({"x": [1.0, 2.0], "y": [0.5, 2.0]}), target="y", task=task)
    assert data.schema.task == "regression"
    assert data.target.tolist() == [0.5, 2.0]
    with pytest.raises(espalier.DataError, match=message):
        espalier.dataset_from_arrow(pandas_table({"x": [1.0, 2.0], "y": [0.5, cell]}), target="y", task=task)


def test_numpy_columns_give_the_data_set_that_their_lists_give() -> None:
    lists: dict[str, list[Any]] = {
        "whole": [3, 1, 2],
        "half": [0.5, None, 2.25],
        "text": ["p", "q", "p"],
        "sure": [True, False, True],
        "mixed": [1, "x", None],
        "play": ["yes", "no", "yes"],
    }
    arrays = {
        "whole": np.array([3, 1, 2], dtype=np.int16),
        "half": np.array([0.5, np.nan, 2.25], dtype=np.float32),
        "text": np.array(["p", "q", "p"]),
        "sure": np.array([True, False, True]),
        "mixed": np.array([1, "x", None], dtype=object),
        "play": lists["play"],
    }
    assert dataset_from_columns(arrays, target="play") == dataset_from_columns(lists, target="play")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.zeros((2, 2)), "/a: columns must be names with lists of cells or one-dimensional arrays"),
        (np.array(3), "/a: columns must be names with lists of cells or one-dimensional arrays"),
        (np.array([1 + 2j, 3]), "/a: columns of the type complex128 cannot be read"),
        (np.array([1.0, np.inf]), r"/a: must be a finite number or missing: 1 cell \(row 1"),
        (np.array([1, 2, 3]), "'play' has 2 cells, 'a' has 3"),
    ],
)
def test_numpy_columns_that_cannot_be_read_are_refused_by_name(column: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        dataset_from_columns({"a": column, "play": ["yes", "no"]}, target="play")


MIXED_OBJECTS = {
    "a date and a time": ([date(2020, 1, 1), datetime(2020, 1, 1, 18)], "datetime"),
    "times and numbers": ([datetime(2024, 1, 1), 45352], "nominal"),
    "a date and a number": ([date(2020, 1, 1), 43831], "nominal"),
    "a number and booleans": ([1.5, True, False], "nominal"),
    "a decimal and a number": ([Decimal("1.5"), 1], "nominal"),
}


@pytest.mark.parametrize(("cells", "kind"), MIXED_OBJECTS.values(), ids=MIXED_OBJECTS)
def test_objects_of_several_types_are_read_alike_in_every_order(cells, kind):
    def values(order):
        found = espalier.dataset_from_arrow(pandas.DataFrame({"a": pandas.Series(order, dtype=object)}))
        assert found.schema.features[0].kind == kind
        return found.schema, found.columns[0].tolist()

    schema, forwards = values(cells)
    assert values(cells[::-1]) == (schema, forwards[::-1])
    assert len(set(forwards)) == len(cells)


def test_nanoseconds_of_objects_are_cut_off_with_a_notice():
    cells = [pandas.Timestamp("2020-01-01T00:00:00.000000001"), pandas.Timestamp("2021-01-01")]
    data = espalier.dataset_from_arrow(pandas.DataFrame({"a": pandas.Series(cells, dtype=object)}))
    assert "finer_than_microseconds" in [notice.code for notice in data.notices]
