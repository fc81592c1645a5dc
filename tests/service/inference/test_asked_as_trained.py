"""The same table is the same data set in every format, and its rows have the same answers, however they are asked."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pandas
import polars
import pyarrow
from hypothesis import given, settings, strategies as st

import espalier
from espalier import Dataset, Model, read_table
from service.inference.request import read_inference
from service.serialization.json_columns import table_of_rows
from tests.written import WRITERS, Columns, as_csv, as_ndjson, rows_of, text_of

Answers = list[tuple[int, Any]]

NUMBERS = st.integers(-3, 3) | st.sampled_from([0.1, -2.5, 1e22, 5e-324, 2.0**53, -0.0])
INSTANTS = st.sampled_from(
    ["2024-02-29", "1969-12-31T23:59:59.5", "0001-01-01", "9999-12-31T23:59:59.997", "2024-01-01T00:00:00+02:00"]
)
WHOLE = st.integers(-2, 12) | st.sampled_from([2**53 + 1, 2**53 + 3, -(2**60)])
CODES = st.sampled_from(
    ["7", "007", "7.50", "1e3", "x", " x", "x ", "Ä", "A\u0308", "true", "TRUE", "yes", "0", "-0", "1_0"]
)
MIXED = st.sampled_from([0, 1, True, "x", "0x1", 2.5, "no"])
NOMINAL = st.sampled_from([WHOLE, CODES, st.booleans(), MIXED, st.sampled_from([0.5, 2.0, -1.25])])


@st.composite
def tables(draw: Callable[[Any], Any]) -> tuple[Columns, dict[str, Any]]:
    """A table of which the kinds are declared, and the categories of ordinal columns alone."""
    n_rows = draw(st.integers(2, 8))

    def cells(values: st.SearchStrategy[Any]) -> list[Any]:
        column: list[Any] = draw(st.lists(st.none() | values, min_size=n_rows, max_size=n_rows))
        return column

    kinds = draw(
        st.lists(st.sampled_from(["numeric", "boolean", "nominal", "ordinal", "datetime"]), min_size=1, max_size=4)
    )
    columns: dict[str, Sequence[Any]] = {}
    declared: list[dict[str, Any]] = []
    for place, kind in enumerate(kinds):
        column: dict[str, Any] = {"name": f"a{place}", "kind": kind}
        if kind == "ordinal":
            values = draw(st.sampled_from([st.integers(-2, 12), CODES, MIXED]))
            column["categories"] = draw(st.lists(values, min_size=1, max_size=4, unique_by=text_of))
            columns[f"a{place}"] = cells(st.sampled_from(column["categories"]))
        else:
            made = {"numeric": NUMBERS, "boolean": st.booleans(), "datetime": INSTANTS}
            columns[f"a{place}"] = cells(made[kind] if kind in made else draw(NOMINAL))
        declared.append(column)
    classes = draw(st.sampled_from([(0, 1, 2), (False, True), ("p", "q"), ("007", "7")]))
    columns["y"] = [*classes[:2], *draw(st.lists(st.sampled_from(classes), min_size=n_rows - 2, max_size=n_rows - 2))]
    declared.append({"name": "y", "kind": "boolean" if classes[0] is False else "nominal"})
    return columns, {"target": "y", "schema": {"columns": declared}}


def data_sets(columns: Columns, **declared: Any) -> Iterator[tuple[str, Dataset]]:
    for name, (form, _, write) in WRITERS.items():
        yield name, read_table(io.BytesIO(write(columns)), form, **declared)
    if not any(
        None in cells and any(isinstance(cell, int) and abs(cell) > 2**53 for cell in cells)
        for cells in columns.values()
    ):
        yield "pandas", espalier.dataset_from_arrow(pandas.DataFrame(columns), **declared)  # else it rounds them
    yield "objects of pandas", espalier.dataset_from_arrow(pandas.DataFrame(columns, dtype=object), **declared)
    yield "rows", espalier.dataset_from_rows(rows_of(columns), **declared)
    yield "scalars", espalier.dataset_from_rows(scalars(rows_of(columns)), **declared)
    if all(len({type(cell) for cell in cells if cell is not None}) < 2 for cells in columns.values()):
        yield "pyarrow", espalier.dataset_from_arrow(pyarrow.table(columns), **declared)
        yield "polars", espalier.dataset_from_arrow(polars.DataFrame(columns), **declared)


def scalars(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the scalars of numpy and pandas in place of Python's."""
    made = {float: np.float64, str: np.str_, bool: np.bool_, type(None): lambda _: pandas.NA, int: np.int64}
    return [{name: made[type(cell)](cell) for name, cell in row.items()} for row in rows]


def by_rows(model: Model, rows: Sequence[Mapping[str, Any]]) -> Answers:
    return [(answer.leaf, answer.label) for answer in espalier.predict(model, rows)]


def by_table(model: Model, data: Dataset) -> Answers:
    leaves = espalier.predict_table(model, data)
    several = leaves.several
    return [
        (each, several[row].label if row in several else espalier.leaf_prediction(model, each).label)
        for row, each in enumerate(leaves.leaves.tolist())
    ]


def by_csv(model: Model, content: bytes) -> Answers:
    answers: Answers = []
    for batch in espalier.batches_from_csv(model.schema, io.BytesIO(content)):
        answers += by_rows(model, batch.rows) if batch.dataset is None else by_table(model, batch.dataset)
    return answers


def by_tensors(model: Model, columns: Columns, *, as_text: bool) -> Answers:
    inputs = []
    for name, cells in columns.items():
        types = {type(cell) for cell in cells if cell is not None}
        datatype = {frozenset({bool}): "BOOL", frozenset({int}): "INT64"}.get(frozenset(types), "BYTES")
        datatype = "FP64" if types and types <= {int, float} and datatype == "BYTES" else datatype
        datatype = "BYTES" if as_text else datatype
        data = cells if datatype != "BYTES" else [None if cell is None else text_of(cell) for cell in cells]
        inputs.append({"name": name, "datatype": datatype, "shape": [len(cells)], "data": data})
    body = orjson.loads(orjson.dumps({"inputs": inputs}))
    return by_rows(model, read_inference(body, memoryview(b""), model.schema, limit=100).rows)


def asked(model: Model, columns: Columns) -> Iterator[tuple[str, Answers]]:
    rows = rows_of(columns)
    yield "JSON", by_rows(model, orjson.loads(orjson.dumps(rows)))
    table = table_of_rows(model, rows)
    if table is not None:
        yield "JSON as a table", by_table(model, table)
    yield "scalars", by_rows(model, scalars(rows))
    yield (
        "NaN",
        by_rows(model, [{name: float("nan") if cell is None else cell for name, cell in row.items()} for row in rows]),
    )
    yield "texts", by_csv(model, as_csv(columns))
    yield "lines of CSV", by_rows(model, espalier.rows_from_csv(model.schema, as_csv(columns)))
    yield "NDJSON", by_rows(model, [orjson.loads(line) for line in as_ndjson(columns).splitlines()])
    yield "tensors", by_tensors(model, columns, as_text=False)
    yield "tensors of text", by_tensors(model, columns, as_text=True)
    frame = espalier.dataset_from_arrow(pandas.DataFrame(columns, dtype=object), like=model.schema)
    yield "frame", by_table(model, frame)


@settings(max_examples=25)
@given(table=tables())
def test_the_same_table_is_the_same_data_set_and_is_asked_as_it_was_trained(
    table: tuple[Columns, dict[str, Any]],
) -> None:
    columns, declared = table
    found = dict(data_sets(columns, **declared))
    assert {name: data.fingerprint for name, data in found.items()} == dict.fromkeys(found, found["rows"].fingerprint)
    attributes = {name: cells for name, cells in columns.items() if name != "y"}
    for source in ("CSV", "JSON rows", "Parquet", "ARFF", "objects of pandas"):
        model = espalier.train(
            found[source],
            "c45",
            min_weight_leaf=0.0,
            min_weight_split=0.0,
            window=None,
            mdl_correction=False,
            pruning=None,
        )
        expected = by_table(model, found[source])
        for way, answers in asked(model, attributes):
            assert answers == expected, (source, way, model.schema)
        stored = [{name: row[name] for name in attributes} for row in found[source].rows()]
        assert by_rows(model, stored) == expected
