"""The same table is the same data set, with the same fingerprint, whatever it comes in."""

import gzip
import io
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import example, given, settings, strategies as st

import espalier
from espalier import Dataset, dataset_from_arrow, dataset_from_columns, dataset_from_rows, read_table, unpacked
from tests.written import INSTANTS, NUMBERS, WRITERS, Columns, as_arrow, as_parquet, inferred_tables, rows_of


def as_polars(columns: Columns) -> polars.DataFrame:
    return polars.DataFrame({name: polars.Series(name, list(cells), strict=False) for name, cells in columns.items()})


FRAMES: Mapping[str, Callable[[Columns], Any]] = {
    "pandas": pandas.DataFrame,
    "pandas, an index that counts nothing": lambda columns: pandas.DataFrame(columns).set_axis(
        range(5, 5 + len(next(iter(columns.values())))), axis="index"
    ),
    "pandas of Arrow": lambda columns: pyarrow.table(columns).to_pandas(types_mapper=pandas.ArrowDtype),
    "polars": as_polars,
    "polars, lazy": lambda columns: as_polars(columns).lazy(),
    "pyarrow": pyarrow.table,
}


def from_files(columns: Columns, **declared: Any) -> dict[str, Dataset]:
    """The table written in every format, each packed by gzip and not."""
    found = {}
    for name, (form, _, write) in WRITERS.items():
        content = write(columns)
        found[name] = read_table(io.BytesIO(content), form, **declared)
        found[f"{name}, packed"] = read_table(unpacked(io.BytesIO(gzip.compress(content))), form, **declared)
    return found


def from_memory(columns: Columns, **declared: Any) -> dict[str, Dataset]:
    """The table in frames of every library, and in Python's own values."""
    found = {name: dataset_from_arrow(make(columns), **declared) for name, make in FRAMES.items()}
    found["rows"] = dataset_from_rows(rows_of(columns), **declared)
    found["columns"] = dataset_from_columns(columns, **declared)
    return found


@settings(max_examples=40)  # each is read from some twenty forms
@given(table=inferred_tables())
@example(table=({"a": [None, None], "y": [1, 0]}, {"target": "y"}))
@example(table=({"a": [1, 2.5], "b": ["?", "NA"], "y": [0.5, 1.5]}, {"target": "y"}))
@example(table=({"a": [2**53, -1], "y": ["yes", "no"]}, {"target": "y"}))
def test_numbers_and_words_are_the_same_data_set_in_files_frames_and_lists(table):
    columns, declared = table
    found = from_files(columns, **declared) | from_memory(columns, **declared)
    (schema,) = {str(data.schema.to_dict()) for data in found.values()}
    assert {data.fingerprint for data in found.values()} == {found["columns"].fingerprint}, schema


MOMENTS = st.datetimes()


@st.composite
def typed_tables(draw: Callable[[Any], Any]) -> Columns:
    """Numbers, integers, booleans, instants and texts, any of them missing; each type occurs."""
    n_rows = draw(st.integers(2, 8))

    def cells(values: st.SearchStrategy[Any]) -> list[Any]:
        known = [draw(values)]
        return draw(
            st.permutations(known + draw(st.lists(st.none() | values, min_size=n_rows - 1, max_size=n_rows - 1)))
        )

    return {
        "number": cells(st.floats(allow_nan=False, allow_infinity=False)),
        "whole": cells(st.integers(-(2**53), 2**53)),
        "sure": cells(st.booleans()),
        "moment": cells(MOMENTS),
        "word": cells(st.sampled_from(["u", "7", "NA", "true"])),
    }


@settings(max_examples=40)  # each is read from some twenty forms
@given(columns=typed_tables())
def test_types_say_the_same_in_every_format_that_has_them_and_a_declaration_in_the_others(columns):
    typed = {name: dataset_from_arrow(make(columns)) for name, make in FRAMES.items()}
    typed["Parquet"] = read_table(io.BytesIO(as_parquet(columns)), "parquet")
    typed["Arrow"] = read_table(io.BytesIO(as_arrow(columns)), "arrow")
    expected = typed["pyarrow"]
    assert {data.fingerprint for data in typed.values()} == {expected.fingerprint}
    kinds = ["numeric", "numeric", "boolean", "datetime", "nominal"]
    assert [str(feature.kind) for feature in expected.schema.features] == kinds
    written = {**columns, "moment": [cell and cell.replace(tzinfo=UTC).isoformat() for cell in columns["moment"]]}
    texts = from_files(written, schema=expected.schema)
    assert {data.fingerprint for data in texts.values()} == {expected.fingerprint}


@given(cells=st.lists(NUMBERS, min_size=1), instants=st.lists(INSTANTS, min_size=1))
def test_arrays_of_numbers_and_instants_are_what_their_lists_are(cells, instants):
    array = {"x": np.array(cells, dtype=np.float64)}
    assert dataset_from_columns(array).fingerprint == dataset_from_columns({"x": cells}).fingerprint
    moments = {"t": np.array(instants, dtype="datetime64[us]")}
    schema = {"columns": [{"name": "t", "kind": "datetime"}]}
    assert dataset_from_columns(moments) == dataset_from_columns({"t": instants}, schema=schema)


@pytest.mark.parametrize("text", ["007", "12345678901234567890123", "1e400", "nan", "-inf", " 8", "+7", "0x10", "1_0"])
def test_texts_like_numbers_are_read_alike_from_csv_and_from_lists(text):
    content = f'a,y\n"{text}",u\n1.5,v\n'.encode()
    found = read_table(io.BytesIO(content), "csv", target="y")
    assert found == dataset_from_columns({"a": [text, "1.5"], "y": ["u", "v"]}, target="y")
    kind = "nominal" if espalier.number_from_text(text) is None else "numeric"
    assert str(found.schema.features[0].kind) == kind
