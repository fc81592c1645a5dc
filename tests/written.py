"""A table written in every format that is read, and tables to write: independent of the code that reads them."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow
from hypothesis import strategies as st
from pyarrow import parquet

Columns = Mapping[str, Sequence[Any]]


def text_of(cell: Any) -> str:
    """How a cell is written where there are only texts."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def as_csv(columns: Columns) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows([text_of(cell) for cell in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_json_rows(columns: Columns) -> bytes:
    return json.dumps({"rows": rows_of(columns)}).encode()


def as_json_columns(columns: Columns) -> bytes:
    return json.dumps({"columns": {name: list(cells) for name, cells in columns.items()}}, ensure_ascii=False).encode()


def as_ndjson(columns: Columns) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows_of(columns))


def as_arrow_table(columns: Columns) -> pyarrow.Table:
    """Numbers as int64 or double, true and false as boolean; a column of several types as text."""
    arrays = {}
    for name, cells in columns.items():
        types = {type(cell) for cell in cells if cell is not None}
        plain = len(types) <= 1 or types == {int, float}
        arrays[name] = pyarrow.array(cells if plain else [None if cell is None else text_of(cell) for cell in cells])
    return pyarrow.table(arrays)


def as_parquet(columns: Columns) -> bytes:
    content = io.BytesIO()
    parquet.write_table(as_arrow_table(columns), content, row_group_size=3)
    return content.getvalue()


def as_arrow(columns: Columns) -> bytes:
    content = io.BytesIO()
    table = as_arrow_table(columns)
    with pyarrow.ipc.new_stream(content, table.schema) as stream:
        stream.write_table(table, max_chunksize=3)
    return content.getvalue()


def as_arff(columns: Columns) -> bytes:
    """Numbers as numeric, columns without a value or with ?, NA or a blank as string, else sorted categories."""
    lines = ["@relation 'a table'"]
    for name, cells in columns.items():
        known = [cell for cell in cells if cell is not None]
        if known and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known):
            kind = "numeric"
        else:
            texts = sorted({text_of(cell) for cell in known})
            # A header that lists them declares them to be categories.
            kind = "{" + ",".join(map(quoted, texts)) + "}" if texts and not {"?", "NA", " "} & set(texts) else "string"
        lines.append(f"@attribute {quoted(name)} {kind}")
    lines.append("@data")
    for row in zip(*columns.values(), strict=True):
        lines.append(",".join("?" if cell is None else quoted(text_of(cell)) for cell in row))
    return "\n".join(lines).encode()


def quoted(text: str) -> str:
    for sign, escape in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(sign, escape)
    return f"'{text}'"


WRITERS: Mapping[str, tuple[str, str, Callable[[Columns], bytes]]] = {
    "CSV": ("csv", "text/csv", as_csv),
    "JSON rows": ("json", "application/json", as_json_rows),
    "JSON columns": ("json", "application/json", as_json_columns),
    "NDJSON": ("ndjson", "application/x-ndjson", as_ndjson),
    "Parquet": ("parquet", "application/vnd.apache.parquet", as_parquet),
    "Arrow": ("arrow", "application/vnd.apache.arrow.stream", as_arrow),
    "ARFF": ("arff", "text/x-arff", as_arff),
}
"""Name -> format, content type, and how a table is written in it."""

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)
NAMES = TEXTS.filter(lambda name: name.strip() == name and not set(";\t|") & set(name))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
WORDS = st.sampled_from(
    ["yes", "no", "007a", "🌳", "a,b", 'say "x"', "it's", "two\nlines", " ", "NA", "?", "x y", "%", "{"]
)
LABELS = (
    st.sampled_from(["007", "7", "true", "1", "1.0", "9007199254740993", "null", "?"])
    | WORDS
    | TEXTS
    | st.integers(-5, 5)
    | st.booleans()
    | st.sampled_from([0.5, -2.25, 1.0, 1e22])
)
INSTANTS = st.datetimes().map(lambda moment: moment.isoformat())


@st.composite
def inferred_tables(draw: Callable[[Any], Any]) -> tuple[Columns, dict[str, Any]]:
    """A table of which nothing is declared but the target: numbers, texts that are none, true and false nowhere."""
    n_rows = draw(st.integers(1, 8))
    kinds = {"numbers": NUMBERS, "words": WORDS}
    columns = {
        name: draw(st.lists(st.none() | kinds[draw(st.sampled_from(list(kinds)))], min_size=n_rows, max_size=n_rows))
        for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    }
    target = draw(NAMES.filter(lambda name: name not in columns))
    halves = st.integers(-(10**6), 10**6).map(lambda number: number + 0.5)
    cells = draw(st.sampled_from([st.integers(0, 3), halves, WORDS.filter(lambda word: word not in "?NA")]))
    columns[target] = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    return columns, {"target": target}


@st.composite
def declared_tables(draw: Callable[[Any], Any]) -> tuple[Columns, dict[str, Any]]:
    """A table with a whole declaration: labels of any type, and any text."""
    n_rows = draw(st.integers(1, 8))
    missing = draw(st.sampled_from([[], ["?", "NA"], ["7", "yes"], ["-2.25"]]))
    columns: dict[str, Any] = {}
    declared = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True)):
        kind = draw(st.sampled_from(["numeric", "nominal", "ordinal", "boolean", "datetime"]))
        column = {"name": name, "kind": kind}
        cells = {"numeric": NUMBERS, "datetime": INSTANTS}.get(kind)
        if cells is None:
            labels = st.lists(LABELS, min_size=1, max_size=2 if kind == "boolean" else 6, unique_by=text_of)
            column["categories"] = draw(labels)
            cells = st.sampled_from(column["categories"])
        columns[name] = draw(st.lists(st.none() | cells, min_size=n_rows, max_size=n_rows))
        declared.append(column)
    return columns, {"schema": {"columns": declared, "missing_values": missing}}
