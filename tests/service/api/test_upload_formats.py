"""Data sets over HTTP in every format: the same table is the same data set, and hostile bodies are refused."""

import gzip
import io
import json
import resource
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pyarrow
import pytest
from hypothesis import given
from pyarrow import parquet
from werkzeug.test import TestResponse

import espalier
from service.api.request_bodies import MAX_SCHEMA_BYTES
from service.database.engine import read_session
from service.repositories import datasets
from service.settings import Settings
from tests.service.served import Served, assert_problem, serving
from tests.written import WRITERS, as_arrow, as_csv, as_json_rows, as_parquet, declared_tables, inferred_tables

PATH = "/v1/datasets"
WIND = {"wind": ["weak", "strong", None], "degrees": [20.5, 3, 7], "play": ["yes", "no", "no"]}
CSV, NDJSON, JSON, PARQUET, ARROW, ARFF = (
    "text/csv",
    "application/x-ndjson",
    "application/json",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.stream",
    "text/x-arff",
)
BINARY = [PARQUET, ARROW]
READ_HERE = [name for name, (_, content_type, _) in WRITERS.items() if content_type not in BINARY]
"""Names of the writers of what the web process reads by itself."""
ZEROS = pyarrow.array(np.zeros(80_000_000))
"""640 MB once unpacked, which are beyond the smallest memory that a reading process can be given."""
DRAWS = hypothesis.settings(max_examples=15, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))


@pytest.fixture(scope="module")
def served(shared_settings: Settings) -> Iterator[Served]:
    """One for all: an upload is known by its id, and is no other's business."""
    with serving(shared_settings) as one:
        yield one


def send(served: Served, content: bytes, content_type: str, *, packed: bool = False, **query: Any) -> TestResponse:
    headers = {"Content-Encoding": "gzip"} if packed else {}
    body = gzip.compress(content) if packed else content
    return served.client.post(PATH, data=body, content_type=content_type, headers=headers, query_string=query)


def send_form(served: Served, parts: dict[str, Any], **query: Any) -> TestResponse:
    return served.client.post(PATH, data=parts, content_type="multipart/form-data", query_string=query)


def test_a_schema_that_is_sent_as_a_file_is_not_longer_than_allowed(served: Served) -> None:
    head = '--x\r\nContent-Disposition: form-data; name="{0}"; filename="{0}.csv"\r\n\r\n'
    file, schema = (head.format(name).encode() for name in ("file", "schema"))
    for n_more, status in ((0, 201), (1, 413)):
        body = file + b"a,b\n1,x\n\r\n" + schema + b" " * (MAX_SCHEMA_BYTES + n_more) + b"\r\n--x--\r\n"
        assert send(served, body, "multipart/form-data; boundary=x").status_code == status


def kept(served: Served, response: TestResponse) -> espalier.Dataset:
    """The data set that an upload made, as it comes back from the database."""
    assert response.status_code == 201, response.text
    with read_session(served.service.sessions) as session:
        return datasets.load_data_set(session, response.get_json()["id"])


# One table, one data set


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_packed_or_not_gives_the_data_set_that_was_written(
    served: Served, name: str, *, packed: bool
) -> None:
    _, content_type, write = WRITERS[name]
    response = send(served, write(WIND), content_type, packed=packed, target="play")
    expected = espalier.dataset_from_columns(WIND, target="play")
    assert kept(served, response) == expected
    assert response.get_json()["fingerprint"] == expected.fingerprint
    assert response.get_json()["notices"] == [notice.to_dict() for notice in expected.notices]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_in_a_form_is_known_by_its_ending_or_its_content_type(shared_sqlite: Settings, name: str) -> None:
    form, content_type, write = WRITERS[name]
    content, expected = write(WIND), espalier.dataset_from_columns(WIND, target="play")
    ending = espalier.FORMATS[form].endings[0]
    files = [
        (io.BytesIO(content), f"wind{ending}", "application/octet-stream"),
        (io.BytesIO(gzip.compress(content)), f"wind{ending}.gz", "application/gzip"),
        (io.BytesIO(content), "wind", content_type),
    ]
    with serving(shared_sqlite) as served:
        for file in files:
            assert kept(served, send_form(served, {"file": file}, target="play")) == expected


DRAWN = inferred_tables() | declared_tables()


@DRAWS
@given(table=DRAWN)
def test_any_table_gives_one_fingerprint_in_every_format(served: Served, table: Any) -> None:
    # What is read in a process of its own takes half a second a time; and what reads a format knows no database.
    on_postgres = served.settings.database_file is None
    assert_one_fingerprint(served, table, ("CSV", "NDJSON") if on_postgres else READ_HERE)


@pytest.mark.parametrize("max_examples", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_any_table_gives_that_fingerprint_in_the_binary_formats_too(shared_sqlite: Settings, max_examples: int) -> None:
    with serving(shared_sqlite) as one:

        @hypothesis.settings(DRAWS, max_examples=max_examples)
        @given(table=DRAWN)
        def holds(table: Any) -> None:
            assert_one_fingerprint(one, table, ("CSV", "Parquet", "Arrow"))

        holds()


def assert_one_fingerprint(served: Served, table: Any, names: Iterable[str]) -> None:
    columns, declared = table
    expected = espalier.dataset_from_columns(columns, **declared)
    for name in names:
        form, content_type, write = WRITERS[name]
        parts: dict[str, Any] = {"file": (io.BytesIO(write(columns)), "table", content_type)}
        if "schema" in declared:
            parts["schema"] = json.dumps(declared["schema"])
        query = {"target": declared["target"]} if "target" in declared else {}
        response = send_form(served, parts, **query)
        assert kept(served, response).rows() == expected.rows(), form
        assert response.get_json()["fingerprint"] == expected.fingerprint, form


def test_labels_keep_type_and_spelling_on_their_way_through_the_database(served: Served) -> None:
    labels = ["007", "true", True, 1, 1.0, "1", "", "🌳", "9007199254740993", "null", " x ", "e\u0301", "é"]
    content = b"".join(json.dumps({"a": label, "b": "u"}).encode() + b"\n" for label in [*labels, None])
    data_set = send(served, content, NDJSON).get_json()["id"]
    shown = [row["a"] for row in served.client.get(f"{PATH}/{data_set}/rows").get_json()["items"]]
    assert [(type(label), label) for label in shown] == [
        *((type(label), label) for label in labels),
        (type(None), None),
    ]


def test_missing_values_mean_the_same_in_every_format(served: Served) -> None:
    columns = {"a": [-9, 1.5, -9.0], "b": ["none", "NA", "x"]}
    for _, content_type, write in WRITERS.values():
        data = kept(served, send(served, write(columns), content_type, missing_values="-9,none"))
        assert [list(row.values()) for row in data.rows()] == [[None, None], [1.5, "NA"], [None, "x"]]


# The declaration


@pytest.mark.parametrize("is_file", [False, True])
def test_a_declaration_comes_as_a_part_of_the_form_beside_the_file(served: Served, *, is_file: bool) -> None:
    schema = {"target": "play", "columns": [{"name": "wind", "kind": "ordinal", "categories": ["weak", "strong"]}]}
    part: Any = json.dumps(schema)
    if is_file:
        part = (io.BytesIO(part.encode()), "schema.json", "application/json")
    response = send_form(served, {"file": (io.BytesIO(as_csv(WIND)), "wind.csv"), "schema": part})
    assert kept(served, response) == espalier.dataset_from_columns(WIND, schema=schema)


@pytest.mark.parametrize(
    ("schema", "status", "pointers"),
    [
        ('{"columns": [{"name": "wind", "kind": "u"}]}', 422, ["/schema/columns/0/kind"]),
        ('{"columns": [{"name": "w", "kind": "nominal"}]}', 422, [""]),
        ('{"target": 3}', 422, ["/schema/target"]),
        (
            '{"missing_values": "u", "task": 5, "target": 5}',
            422,
            [f"/schema/{name}" for name in ("target", "task", "missing_values")],
        ),
        ("[]", 422, ["/schema"]),
        ("{", 400, []),
        ("NaN", 400, []),
        ("[" * 100_000, 400, []),
    ],
)
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_wrong_declaration_in_a_form_is_refused_by_its_place(
    served: Served, form: str, schema: str, status: int, pointers: list[str]
) -> None:
    content = {"csv": as_csv, "json": WRITERS["JSON rows"][2]}[form](WIND)
    response = send_form(served, {"file": (io.BytesIO(content), f"wind.{form}"), "schema": schema})
    if form == "json" and pointers == [""]:
        pointers = ["/rows"]
    assert_problem(response, status, *pointers)


@pytest.mark.parametrize(
    ("parts", "pointers"),
    [
        ({}, ["/file"]),
        ({"schema": "{}"}, ["/file"]),
        ({"file": "a,b\n1,2\n"}, ["/file"]),
        ({"file": ["a.csv", "b.csv"]}, ["/file"]),
        ({"data": ["a.csv"]}, ["/data", "/file"]),
        ({"file": ["a.xlsx"]}, ["/file"]),
        ({"file": ["a.csv"], "schema": ["a.json", "b.json"]}, ["/schema"]),
    ],
)
def test_a_form_without_its_file_or_with_other_parts_is_refused(
    served: Served, parts: dict[str, Any], pointers: list[str]
) -> None:
    files = {
        name: part if isinstance(part, str) else [(io.BytesIO(b"a\n1\n"), file) for file in part]
        for name, part in parts.items()
    }
    assert_problem(send_form(served, files), 422, *pointers)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"--x\r\nhello", "multipart/form-data; boundary=x"),
        (b"a,b\n1,2\n", "multipart/form-data; boundary=x"),
        (b"", "multipart/form-data; boundary=x"),
        (b"--x--\r\n", "multipart/form-data"),
        (b"--x\r\n\r\n" * 100_000, "multipart/form-data; boundary=x"),
    ],
)
def test_what_is_no_form_is_refused(served: Served, body: bytes, content_type: str) -> None:
    response = served.client.post(PATH, data=body, content_type=content_type)
    assert response.status_code in (400, 413, 422)
    assert response.content_type == "application/problem+json"


# Refused


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/octet-stream", "application/x-www-form-urlencoded"]
)
def test_another_content_type_is_refused_with_those_that_are_read(served: Served, content_type: str) -> None:
    problem = assert_problem(send(served, b"a,b\n1,2\n", content_type), 415)
    assert all(name in problem["detail"] for name in (CSV, NDJSON, PARQUET, ARROW, ARFF, "multipart/form-data"))


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip"])
def test_another_encoding_is_refused(served: Served, encoding: str) -> None:
    response = served.client.post(PATH, data=b"x", content_type=CSV, headers={"Content-Encoding": encoding})
    assert "gzip or none" in assert_problem(response, 415)["detail"]


DEEP = b"[" * 100_000
HOSTILE = [
    pytest.param(JSON, DEEP, 400, id="JSON: 100 000 nested brackets"),
    pytest.param(JSON, b'{"rows": [{"a": NaN}]}', 400, id="JSON: NaN"),
    pytest.param(JSON, b'{"rows": [{"a": 1e400}]}', 400, id="JSON: 1e400"),
    pytest.param(JSON, b'{"rows": [{"a": "\\ud800"}]}', 400, id="JSON: a lone surrogate"),
    pytest.param(JSON, b'{"rows": [{"a": "x\\u0000"}]}', 422, id="JSON: NUL"),
    pytest.param(JSON, b"", 400, id="JSON: nothing"),
    pytest.param(NDJSON, DEEP, 422, id="NDJSON: 100 000 nested brackets"),
    pytest.param(NDJSON, b'{"a": ' * 100_000, 422, id="NDJSON: 100 000 nested objects"),
    pytest.param(NDJSON, b'{"a": NaN}', 422, id="NDJSON: NaN"),
    pytest.param(NDJSON, b'{"a": 1e400}', 422, id="NDJSON: 1e400"),
    pytest.param(NDJSON, b'{"a": "\\ud800"}', 422, id="NDJSON: a lone surrogate"),
    pytest.param(NDJSON, b'{"a": "x\\u0000"}', 422, id="NDJSON: NUL"),
    pytest.param(NDJSON, b"\xff\xfe", 422, id="NDJSON: not UTF-8"),
    pytest.param(CSV, b'a,b\n"' + b"x,1\n" * 100_000, 422, id="CSV: a quote that is never closed"),
    pytest.param(CSV, b"a,b\n1,\0\n", 422, id="CSV: NUL"),
    pytest.param(CSV, b"a,b\n1,\xed\xa0\x80\n", 422, id="CSV: a lone surrogate"),
    pytest.param(CSV, b"," * 100_000, 422, id="CSV: names of nothing"),
    pytest.param(ARFF, b"@attribute a numeric\n@data\n1e400\n", 422, id="ARFF: 1e400"),
    pytest.param(ARFF, b"@attribute a numeric\n@data\nNaN\n", 422, id="ARFF: NaN"),
    pytest.param(ARFF, b"{" * 100_000, 422, id="ARFF: 100 000 nested braces"),
    pytest.param(ARFF, b"@attribute a string\n@data\n'\\ud800'\n", 422, id="ARFF: a lone surrogate"),
    pytest.param(PARQUET, b"", 422, id="Parquet: nothing"),
    pytest.param(PARQUET, b"PAR1" * 1_000, 422, id="Parquet: magic only"),
    pytest.param(
        PARQUET, as_parquet(WIND)[:-9] + struct.pack("<I", 2**31) + b"PAR1", 422, id="Parquet: a lying footer"
    ),
    pytest.param(ARROW, b"", 422, id="Arrow: nothing"),
    pytest.param(ARROW, b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1), 422, id="Arrow: a lying header"),
    pytest.param(ARROW, as_arrow(WIND)[:-300], 422, id="Arrow: cut short"),
]


@pytest.mark.parametrize(("content_type", "body", "status"), HOSTILE)
def test_a_hostile_body_is_refused_and_says_nothing_of_what_it_holds(
    shared_sqlite: Settings, content_type: str, body: bytes, status: int
) -> None:
    with serving(shared_sqlite) as served:
        for packed in (False, True):
            problem = assert_problem_of(send(served, body, content_type, packed=packed), status)
            assert len(problem["detail"]) < 500


def assert_problem_of(response: TestResponse, status: int) -> dict[str, Any]:
    pointers = [fault["pointer"] for fault in response.get_json()["errors"]]
    return assert_problem(response, status, *pointers)


@pytest.mark.parametrize("name", WRITERS)
def test_a_gzip_bomb_is_refused_while_it_is_unpacked(shared_sqlite: Settings, name: str) -> None:
    _, content_type, _ = WRITERS[name]
    bomb = gzip.compress(b" " * 50_000_000)
    with serving(shared_sqlite, max_upload_mb=1, max_body_mb=1) as served:
        response = served.client.post(PATH, data=bomb, content_type=content_type, headers={"Content-Encoding": "gzip"})
        assert "at most 1048576" in assert_problem(response, 413)["detail"]
        response = send_form(served, {"file": (io.BytesIO(bomb), "a.gz", content_type)})
        assert "at most 1048576" in assert_problem(response, 413)["detail"]


@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")  # werkzeug's parser closes none when it fails
@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("content_type", ["text/csv", "application/json", "multipart/form-data; boundary=x"])
def test_a_body_may_have_as_many_bytes_as_the_limit(
    shared_sqlite: Settings, content_type: str, *, is_chunked: bool
) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    start = {
        "text/csv": b"a,b\n1,x\n",
        "application/json": b'{"columns": {"a": [1]}}',
        "multipart/form-data; boundary=x": head + b"a,b\n1,x\n\r\n--x--\r\n",
    }[content_type]
    with serving(shared_sqlite, max_upload_mb=1, max_body_mb=1) as served:
        for n_more, status in ((0, 201), (1, 413)):
            body = start + b"\n" * (2**20 + n_more - len(start))
            environ = {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": content_type}
            if is_chunked:
                environ |= {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
            response = served.client.post(PATH, environ_overrides=environ)
            assert response.status_code == status, response.text


@contextmanager
def files_of_at_most(n_bytes: int) -> Iterator[None]:
    """A longer file fails with EFBIG, like a full disk with ENOSPC; this holds for processes started here, too."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@pytest.mark.parametrize("full", ["the body", "the columns of the sandbox", "the work folder"])
def test_while_a_disk_is_full_an_upload_may_be_tried_again(
    shared_sqlite: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture, full: str
) -> None:
    # Parquet has two bits for each of four numbers; the columns of a data set have a double.
    draw = np.random.default_rng(1)
    cells = draw.random(40_000) if full == "the body" else draw.integers(0, 4, 200_000) / 7
    parquet.write_table(pyarrow.table({"x": cells}), tmp_path / "a.parquet")
    body = (tmp_path / "a.parquet").read_bytes()
    assert (len(body) > 100_000) == (full == "the body")
    with serving(shared_sqlite, store=f"file://{tmp_path}") as served, files_of_at_most(100_000):
        if full == "the work folder":
            response = served.client.post(PATH, json={"reference": "a.parquet"})
        else:
            response = send(served, body, "application/vnd.apache.parquet")
    problem = assert_problem(response, 503)
    assert (problem["retryable"], response.headers["Retry-After"]) == (True, "1")
    assert problem["detail"] == "a disk of the service is full; try again when it has free space"
    assert "requests are answered 503" in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "reference"])
def test_a_declaration_that_is_nested_too_deeply_is_refused_in_every_format(
    shared_sqlite: Settings, tmp_path: Path, form: str
) -> None:
    schema = '{"columns": ' + "[" * 300 + "]" * 300 + "}"
    contents = {"csv": as_csv(WIND), "json": as_json_rows(WIND), "parquet": as_parquet(WIND)}
    (tmp_path / "wind.parquet").write_bytes(contents["parquet"])
    with serving(shared_sqlite, store=f"file://{tmp_path}") as served:
        if form == "reference":
            body = f'{{"reference": "wind.parquet", "schema": {schema}}}'
            response = served.client.post(PATH, data=body, content_type="application/json")
        else:
            response = send_form(served, {"file": (io.BytesIO(contents[form]), f"wind.{form}"), "schema": schema})
    pointers = [fault["pointer"].split("/")[:2] for fault in assert_problem_of(response, 422)["errors"]]
    assert pointers == [["", "schema"]]


@pytest.mark.parametrize("damage", [lambda body: body[:-9], lambda body: body + b"x" * 20, lambda _: b"a,b\n1,2\n"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_body_that_is_not_what_its_encoding_says_is_refused(shared_sqlite: Settings, name: str, damage: Any) -> None:
    _, content_type, write = WRITERS[name]
    with serving(shared_sqlite) as served:
        body = damage(gzip.compress(write(WIND)))
        response = served.client.post(PATH, data=body, content_type=content_type, headers={"Content-Encoding": "gzip"})
        assert "gzip" in assert_problem_of(response, 422)["detail"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_rows": 2}, "rows: at most 2 are"),
        ({"max_columns": 2}, "columns: at most 2 are"),
        ({"max_cells": 8}, "cells: at most 8 are"),
        ({"max_cell_chars": 5}, "characters in one cell: at most 5 are"),
    ],
)
def test_every_limit_holds_in_every_format(
    shared_sqlite: Settings, name: str, change: dict[str, int], words: str
) -> None:
    _, content_type, write = WRITERS[name]
    with serving(shared_sqlite, **change) as served:
        assert words in assert_problem(send(served, write(WIND), content_type), 413)["detail"]


@pytest.mark.parametrize(
    ("codec", "as_dictionary"),
    [
        ("zstd", False),
        ("snappy", True),
        *(pytest.param(*rest, marks=pytest.mark.slow) for rest in [("zstd", True), ("snappy", False)]),
        *(pytest.param("gzip", as_dictionary, marks=pytest.mark.slow) for as_dictionary in (False, True)),
    ],
)
def test_a_parquet_file_whose_page_unpacks_to_very_much_is_refused_in_a_process_of_its_own(
    shared_sqlite: Settings, codec: str, *, as_dictionary: bool
) -> None:
    table = pyarrow.table({"a": ["x" * 250_000_000, "y"]})
    content = io.BytesIO()
    parquet.write_table(table, content, compression=codec, use_dictionary=as_dictionary,
                        dictionary_pagesize_limit=2**30, write_statistics=False)  # fmt: skip
    with serving(shared_sqlite, reader_memory_mb=512) as served:
        assert "512" in assert_problem_of(send(served, content.getvalue(), PARQUET), 413)["detail"]


def test_a_dictionary_of_long_texts_that_many_rows_repeat_is_refused(shared_sqlite: Settings) -> None:
    table = pyarrow.table({"a": pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 200_000), ["x" * 1_000_000])})
    content = io.BytesIO()
    parquet.write_table(
        table.cast(pyarrow.schema([("a", pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))])), content
    )
    with serving(shared_sqlite, reader_memory_mb=512) as served:
        assert_problem_of(send(served, content.getvalue(), PARQUET), 413)


def test_an_arrow_stream_whose_buffers_unpack_to_very_much_is_refused(shared_sqlite: Settings) -> None:
    content = io.BytesIO()
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    table = pyarrow.table({"a": ZEROS})
    with pyarrow.ipc.new_stream(content, table.schema, options=options) as stream:
        stream.write_table(table)
    with serving(shared_sqlite, max_rows=10**9, max_cells=10**9, reader_memory_mb=512) as served:
        assert "512" in assert_problem_of(send(served, content.getvalue(), ARROW), 413)["detail"]


def test_a_long_json_body_that_takes_very_much_memory_is_refused(shared_sqlite: Settings) -> None:
    body = b'{"rows": [' + b"[]," * 6_000_000 + b"[]]}"
    with serving(shared_sqlite, max_rows=10**8, reader_memory_mb=512) as served:
        assert "512" in assert_problem_of(send(served, body, JSON), 413)["detail"]


def test_a_long_json_body_is_read_like_a_short_one(shared_sqlite: Settings) -> None:
    columns = {"a": [n / 8 for n in range(100_000)], "b": ["u" * 20, "v" * 20] * 50_000}
    with serving(shared_sqlite) as served:
        body = WRITERS["JSON columns"][2](columns)
        assert len(body) > 2 * 2**20
        assert kept(served, send(served, body, JSON)) == espalier.dataset_from_columns(columns)
        body = body.replace(b'"columns"', b'"schema": {"columns": [{"name": "a", "kind": "u"}]}, "columns"')
        assert_problem(send(served, body, JSON), 422, "/schema/columns/0/kind")


@pytest.mark.parametrize("n_places", [4, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("content_type", BINARY)
def test_bytes_changed_anywhere_in_a_binary_body_are_a_table_or_refused(
    shared_sqlite: Settings, content_type: str, n_places: int
) -> None:
    whole = {PARQUET: as_parquet, ARROW: as_arrow}[content_type](WIND)
    with serving(shared_sqlite) as served:
        for place in range(3, len(whole), len(whole) // n_places):
            changed = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
            assert send(served, changed, content_type).status_code in (201, 413, 422)
