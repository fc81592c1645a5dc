"""The Open Inference Protocol: every form of a tensor, every check, the log, and the errors its clients can read."""

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import espalier
from service.errors import Unavailable
from service.settings import Settings
from service.tables import Scope
from tests.service.guarded import token_of
from tests.service.inference import LENGTH, error_of, infer, infer_bytes, outputs, taken_apart, tensor, texts
from tests.service.served import HOURS, Served, serving

# "size" is a number, "day" a date, "code" a category that is a number, "late" one that is true or false, "" a category.
MIXED = {
    "rows": [
        {"size": 1.5, "code": 1, "late": True, "day": "2024-01-01", "note": "", "answer": 7},
        {"size": 2.5, "code": 1, "late": False, "day": "2024-02-01", "note": "x", "answer": 7},
        {"size": 3.5, "code": 2, "late": True, "day": "2024-03-01", "note": "", "answer": 9},
        {"size": 4.5, "code": 3, "late": False, "day": "2024-04-01", "note": "x", "answer": 9},
    ],
    "schema": {
        "columns": [
            {"name": "code", "kind": "nominal"},
            {"name": "day", "kind": "datetime"},
            {"name": "late", "kind": "boolean"},
            {"name": "answer", "kind": "nominal"},
        ],
        "target": "answer",
    },
}
SUNNY = tensor("Outlook", "BYTES", ["Sunny"])


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    """What is asked of most tests here ends before the database; those of the log run on both."""
    with serving(on_sqlite, max_predict_rows=5, max_cell_chars=20) as one:
        one.train("tennis")
        yield one


@pytest.fixture
def mixed(served: Served) -> Served:
    """The same with a model of attributes of every kind."""
    dataset = espalier.dataset_from_rows(MIXED["rows"], schema=MIXED["schema"])
    served.keep("mixed", espalier.train(dataset, "cart"))
    return served


def logged(served: Served, response: Any) -> list[dict[str, Any]]:
    """Give the rows that the log has for an answer."""
    ids = outputs(response)["decision_id"]
    return [served.client.get(f"/v1/decisions/{one}").get_json()["input"] for one in ids]


# Tensors


def test_one_tensor_an_attribute_is_a_row_by_row_answer(served: Served) -> None:
    body = {"inputs": [tensor("Outlook", "BYTES", ["Sunny", "Rain"]), tensor("Humidity", "BYTES", ["High", "Normal"])]}
    head, found = taken_apart(infer(served, body))
    assert (head["model_name"], head["model_version"]) == ("tennis", "1")
    assert "id" not in head
    assert found["label"] == ["No", "Yes"]
    assert found["probability"][0] == [1.0, 0.0]  # Mitchell 1997, figure 3.1: no sunny, humid day was played
    assert [len(one) for one in found["probability"]] == [2, 2]


@pytest.mark.parametrize(
    ("datatype", "cells", "kept"),
    [
        ("INT8", [-128, 127], [-128, 127]),
        ("UINT64", [0, 2**64 - 1], [0, 2**64 - 1]),
        ("INT64", [-(2**63), None], [-(2**63), None]),
        ("FP64", [0.1, None], [0.1, None]),
        ("FP32", [0.1, 3], [float(np.float32(0.1)), 3.0]),
        ("FP16", [0.1, None], [float(np.float16(0.1)), None]),
        ("BYTES", ["0.1", " 1e3"], [0.1, 1000.0]),
        ("BYTES", ["", "?"], [None, "?"]),  # the sign for missing is kept as it was written
    ],
)
def test_a_number_may_come_in_any_type_that_holds_numbers(
    mixed: Served, datatype: str, cells: list[Any], kept: list[Any]
) -> None:
    response = infer(mixed, {"inputs": [tensor("size", datatype, cells)]}, model="mixed")
    assert [row["size"] for row in logged(mixed, response)] == kept


@pytest.mark.parametrize(
    ("datatype", "dtype"),
    [(f"{kind}{bits}", f"<{kind[0].lower()}{bits // 8}") for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)]
    + [("FP16", "<f2"), ("FP32", "<f4"), ("FP64", "<f8")],
)
def test_bytes_say_the_same_as_json(mixed: Served, datatype: str, dtype: str) -> None:
    cells = [1, 2, 3] if datatype[0] in "IU" else [1.5, 2.25, None]
    data = np.array([np.nan if cell is None else cell for cell in cells], dtype).tobytes()
    one = {"name": "size", "datatype": datatype, "shape": [3, 1], "parameters": {"binary_data_size": len(data)}}
    in_bytes = infer_bytes(mixed, {"inputs": [one]}, data, model="mixed")
    in_json = infer(mixed, {"inputs": [tensor("size", datatype, cells)]}, model="mixed")
    assert logged(mixed, in_bytes) == logged(mixed, in_json)


def test_every_kind_of_attribute_has_a_type_that_keeps_its_values(mixed: Served) -> None:
    described = mixed.client.get("/v2/models/mixed").get_json()
    kinds = {one["name"]: one["datatype"] for one in described["inputs"]}
    assert kinds == {"size": "FP64", "code": "INT64", "late": "BOOL", "day": "BYTES", "note": "BYTES"}
    rows = [{name: row[name] for name in kinds} for row in MIXED["rows"]]
    inputs = [tensor(name, kind, [row[name] for row in rows]) for name, kind in kinds.items()]
    response = infer(mixed, {"inputs": inputs}, model="mixed")
    assert logged(mixed, response) == rows
    assert outputs(response)["label"] == [7, 7, 9, 9]
    assert {one["name"]: one["datatype"] for one in described["outputs"]}["label"] == "INT64"


def test_truth_in_bytes_is_any_byte_but_zero(mixed: Served) -> None:
    one = {"name": "late", "datatype": "BOOL", "shape": [3], "parameters": {"binary_data_size": 3}}
    response = infer_bytes(mixed, {"inputs": [one]}, b"\x00\x01\xff", model="mixed")
    assert [row["late"] for row in logged(mixed, response)] == [False, True, True]


def test_a_matrix_is_read_in_the_order_of_the_schema(mixed: Served) -> None:
    cells = ["1.5", "1", "true", "2024-01-01", "", "4.5", "3", "false", "2024-04-01", "x"]
    rows = [{name: row[name] for name in ("size", "code", "late", "day", "note")} for row in MIXED["rows"]]
    flat = infer(mixed, {"inputs": [tensor("any", "BYTES", cells, [2, 5])]}, model="mixed")
    nested = infer(mixed, {"inputs": [tensor("any", "BYTES", [cells[:5], cells[5:]], [2, 5])]}, model="mixed")
    assert logged(mixed, flat) == logged(mixed, nested) == [rows[0], rows[3]]


def test_an_attribute_without_a_tensor_is_missing_in_every_row(served: Served) -> None:
    response = infer(served, {"inputs": [SUNNY]})
    assert logged(served, response) == [{"Outlook": "Sunny"}]
    native = served.predict("tennis", {"rows": [{"Outlook": "Sunny"}]})["predictions"][0]
    assert outputs(response)["probability"] == [list(native["distribution"].values())]


def test_a_bare_nan_is_missing_and_one_in_a_text_is_text(mixed: Served) -> None:
    body = b'{"inputs":[{"name":"size","shape":[2],"datatype":"FP32","data":[NaN,1]},{"name":"note","shape":[2],'
    body += b'"datatype":"BYTES","data":["a \\"NaN","NaN"]}]}'
    found = logged(mixed, infer(mixed, body, model="mixed"))
    assert found == [{"size": None, "note": 'a "NaN'}, {"size": 1.0, "note": "NaN"}]


def test_a_regression_answers_with_a_value(served: Served) -> None:
    served.train("hours", HOURS, preset="cart", target="hours")
    found = outputs(infer(served, {"inputs": [tensor("size", "FP64", [1, 10])]}, model="hours"))
    assert found["value"] == [10.0, 30.5]
    assert list(found) == ["value", "leaf_id", "decision_id"]
    described = served.client.get("/v2/models/hours").get_json()["outputs"]
    assert [one["name"] for one in described] == ["value", "leaf_id", "decision_id", "decision_path"]


# Outputs


@pytest.mark.parametrize("everything", [True, False])
def test_an_output_is_in_bytes_where_that_is_asked_for(served: Served, *, everything: bool) -> None:
    asked = [{"name": "leaf_id", "parameters": {"binary_data": not everything}}, {"name": "label"}]
    body = {"inputs": [SUNNY], "outputs": asked, "parameters": {"binary_data_output": everything}}
    head, found = taken_apart(infer(served, body))
    in_bytes = ["data" not in one for one in head["outputs"]]
    assert in_bytes == [not everything, everything]
    assert list(found) == ["leaf_id", "label"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_long_answer_is_packed_where_the_caller_takes_that(served: Served, encoding: str) -> None:
    rows = tensor("Outlook", "BYTES", ["Sunny"] * 5)
    body = {"inputs": [rows], "outputs": [{"name": "decision_path"}, {"name": "label"}]}
    response = infer(served, body, **{"Accept-Encoding": f"{encoding}, br"})
    assert response.headers["Content-Encoding"] == encoding
    assert outputs(response)["label"] == ["No"] * 5
    for taken in ("identity", f"{encoding};q=0", "br"):
        assert "Content-Encoding" not in infer(served, body, **{"Accept-Encoding": taken}).headers


def test_errors_and_metadata_are_never_packed(served: Served) -> None:
    # tritonclient's aio client asks for gzip by itself and unpacks nothing but inferences.
    accept = {"Accept-Encoding": "gzip"}
    wide = ",".join(f"a{number}" for number in range(300)) + ",y\n"
    served.train("wide", wide + ",".join(["1"] * 301) + "\n" + ",".join(["2"] * 301) + "\n", preset="cart", target="y")
    assert "Content-Encoding" not in served.client.get("/v2/models/wide", headers=accept).headers
    response = infer(served, {"inputs": [tensor("b", "FP64", [1])] * 300}, model="wide", **accept)
    error_of(response, 400, *[f"/inputs/{place}/name" for place in range(100)])
    assert "Content-Encoding" not in response.headers


# Requests that are not as they should be


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "gzip in members", "GZIP"])
def test_a_packed_request_is_unpacked(served: Served, encoding: str) -> None:
    content = orjson.dumps({"inputs": [SUNNY]})
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(content),
        "deflate": zlib.compress(content),
        "raw deflate": raw.compress(content) + raw.flush(),
        "gzip in members": gzip.compress(content[:9]) + gzip.compress(content[9:]),
        "GZIP": gzip.compress(content),
    }[encoding]
    headers = {"Content-Encoding": encoding.removeprefix("raw ").split()[0], LENGTH: str(len(content))}
    assert outputs(infer(served, packed, **headers))["label"] == ["No"]


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", b"no gzip", 400),
        ("gzip", gzip.compress(b'{"inputs": []}', mtime=0)[:-6], 400),
        ("gzip", gzip.compress(b"{}", mtime=0) + b"more", 400),
        ("gzip", gzip.compress(b"", mtime=0) * 20_000, 400),
        ("gzip", b"", 400),
        ("deflate", zlib.compress(b"{}") + b"more", 400),
        ("deflate", b"\xff\xff", 400),
        ("br", b"{}", 415),
        ("gzip, gzip", b"{}", 415),
    ],
)
def test_what_is_not_packed_as_it_says_is_refused(served: Served, encoding: str, body: bytes, status: int) -> None:
    error_of(infer(served, body, **{"Content-Encoding": encoding}), status)


def test_a_bomb_is_too_large_before_it_is_in_memory(on_sqlite: Settings) -> None:
    bomb = zlib.compressobj(9, wbits=31)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(256)) + bomb.flush()
    with serving(on_sqlite, max_body_mb=1) as served:
        tracemalloc.start()
        error_of(infer(served, packed, **{"Content-Encoding": "gzip"}), 413)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 8 << 20


@pytest.mark.parametrize("length", ["-1", "0x10", "1e2", "", "99999999999999999999999", "18", "²"])
def test_a_length_of_the_json_that_cannot_be_is_refused(served: Served, length: str) -> None:
    headers = {LENGTH: length.encode().decode("latin-1")}
    assert LENGTH in error_of(infer(served, b'{"inputs": []}', **headers), 400)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"inputs": [1e400]}', b'{"a": Infinity}', b"[" * 100_000, b'{"a": "\\ud800"}', b"\xff"],
)
def test_what_is_no_json_object_is_malformed(served: Served, body: bytes) -> None:
    error_of(infer(served, body), 400)


def size(cells: object, more: int = 0) -> dict[str, Any]:
    return {"name": "Outlook", "datatype": "BYTES", "shape": [cells], "parameters": {"binary_data_size": more}}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"shape": [2]}, "/inputs/0/data"),
        ({"shape": [1, 2]}, "/inputs/0/shape"),
        ({"shape": [1, 1, 1]}, "/inputs/0/shape"),
        ({"shape": []}, "/inputs/0/shape"),
        ({"shape": [0]}, "/inputs/0/shape"),
        ({"shape": [-1]}, "/inputs/0/shape"),
        ({"shape": [1.0]}, "/inputs/0/shape"),
        ({"shape": [True]}, "/inputs/0/shape"),
        ({"shape": "1"}, "/inputs/0/shape"),
        ({"shape": [1, 2**64 - 1]}, "/inputs/0/shape"),
        ({"shape": [2**63, 2**63]}, "/inputs/0/shape"),
        ({"shape": None}, "/inputs/0/shape"),
        ({"datatype": "STRING"}, "/inputs/0/datatype"),
        ({"datatype": None}, "/inputs/0/datatype"),
        ({"datatype": ["BYTES"]}, "/inputs/0/datatype"),
        ({"name": "Nope"}, "/inputs/0/name"),
        ({"name": 3}, "/inputs/0/name"),
        ({"data": None}, "/inputs/0/data"),
        ({"data": "Sunny"}, "/inputs/0/data"),
        ({"data": []}, "/inputs/0/data"),
        ({"data": [["Sunny"]]}, "/inputs/0/data/0"),
        ({"data": [5]}, "/inputs/0/data/0"),
        ({"data": [{}]}, "/inputs/0/data/0"),
        ({"shape": [1, 1], "data": [["Sunny", "Rain"]]}, "/inputs/0/data"),
        ({"shape": [1, 1], "data": [[5]]}, "/inputs/0/data/0/0"),
        ({"datatype": "INT64", "data": [1.0]}, "/inputs/0/data/0"),
        ({"datatype": "INT64", "data": [True]}, "/inputs/0/data/0"),
        ({"datatype": "INT8", "data": [128]}, "/inputs/0/data/0"),
        ({"datatype": "INT8", "data": [-129]}, "/inputs/0/data/0"),
        ({"datatype": "UINT8", "data": [-1]}, "/inputs/0/data/0"),
        ({"datatype": "UINT16", "data": [65536]}, "/inputs/0/data/0"),
        ({"datatype": "INT64", "data": [2**63]}, "/inputs/0/data/0"),
        ({"datatype": "FP32", "data": [3.5e38]}, "/inputs/0/data/0"),
        ({"datatype": "FP16", "data": [65505]}, "/inputs/0/data/0"),
        ({"datatype": "FP64", "data": ["1"]}, "/inputs/0/data/0"),
        ({"datatype": "BOOL", "data": [1]}, "/inputs/0/data/0"),
        ({"datatype": "FP64", "data": [1.5]}, "/inputs/0/data/0"),  # the model wants text
        ({"parameters": []}, "/inputs/0/parameters"),
        ({"parameters": {"binary_data_size": 0}}, "/inputs/0/data"),
        ({"parameters": {"binary_data_size": -1}}, "/inputs/0/parameters/binary_data_size"),
        ({"parameters": {"binary_data_size": 1.5}}, "/inputs/0/parameters/binary_data_size"),
        ({"parameters": {"binary_data_size": 2**64 - 1}}, "/inputs/0/parameters/binary_data_size"),
        ({"parameters": {"shared_memory_region": "x"}}, "/inputs/0/parameters/shared_memory_region"),
    ],
)
def test_a_tensor_that_is_not_as_it_should_be_is_refused_by_its_place(
    served: Served, change: dict[str, Any], pointer: str
) -> None:
    found = error_of(infer(served, {"inputs": [SUNNY | change]}), 400, pointer)
    assert found.startswith(f"{pointer}: ")
    # A tensor that is none has no rows; rows that the model cannot take were asked, and failed.
    failed = [one["answer"]["errors"] for one in served.client.get("/v1/decisions").get_json()["items"]]
    of_the_model = change == {"datatype": "FP64", "data": [1.5]}
    assert [[fault["pointer"] for fault in faults] for faults in failed] == ([[pointer]] if of_the_model else [])


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/inputs"]),
        ({"inputs": {}}, ["/inputs"]),
        ({"inputs": []}, ["/inputs"]),
        ({"inputs": [1]}, ["/inputs/0"]),
        ({"inputs": [SUNNY] * 5}, ["/inputs"]),
        ({"inputs": [SUNNY, SUNNY]}, ["/inputs/1/name"]),
        ({"inputs": [SUNNY, tensor("Wind", "BYTES", ["Weak", "Weak"])]}, ["/inputs/1/shape"]),
        ({"inputs": [SUNNY], "id": 5}, ["/id"]),
        ({"inputs": [SUNNY], "parameters": 5}, ["/parameters"]),
        ({"inputs": [SUNNY], "parameters": {"binary_data_output": 1}}, ["/parameters/binary_data_output"]),
        ({"inputs": [SUNNY], "parameters": {"subject": 5}}, ["/parameters/subject"]),
        ({"inputs": [SUNNY], "parameters": {"subject": ""}}, ["/parameters/subject"]),
        ({"inputs": [SUNNY], "outputs": {}}, ["/outputs"]),
        ({"inputs": [SUNNY], "outputs": [1]}, ["/outputs/0"]),
        ({"inputs": [SUNNY], "outputs": [{"name": "value"}]}, ["/outputs/0/name"]),
        ({"inputs": [SUNNY], "outputs": [{"name": "label"}, {"name": "label"}]}, ["/outputs/1/name"]),
        (
            {"inputs": [SUNNY], "outputs": [{"name": "label", "parameters": {"binary_data": "yes"}}]},
            ["/outputs/0/parameters/binary_data"],
        ),
        (
            {"inputs": [SUNNY], "outputs": [{"name": "label", "parameters": {"classification": 2}}]},
            ["/outputs/0/parameters/classification"],
        ),
        ({"inputs": [tensor("m", "BYTES", ["a", "b", "c", "d"], [1, 4]), SUNNY]}, ["/inputs/0/shape"]),
    ],
)
def test_a_request_that_is_not_as_it_should_be_is_refused_by_its_places(
    served: Served, body: dict[str, Any], pointers: list[str]
) -> None:
    error_of(infer(served, body), 400, *pointers)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends after 0 of 2"),
        (b"\x00\x00", "ends after 0 of 2"),
        (texts("Sunny"), "ends after 1 of 2"),
        (b"\xff\xff\xff\xff" + b"x" * 20, "cell 0 is said to be longer"),
        (texts("Sunny", "Rain", "Rain"), "goes on after its 2"),
        (texts("Sunny") + b"\x02\x00\x00\x00\xff\xfe", "cell 1 is not text"),
    ],
)
def test_texts_in_bytes_that_are_not_as_they_should_be_are_refused(served: Served, data: bytes, said: str) -> None:
    response = infer_bytes(served, {"inputs": [size(2, len(data))]}, data)
    assert said in error_of(response, 400, "/inputs/0/parameters/binary_data_size")


def test_a_text_with_nul_characters_is_refused_by_its_place(served: Served) -> None:
    rain, nul = "Rain", "Su\0nny"
    one = SUNNY | {"shape": [2], "data": [rain, nul]}
    matrix = tensor("rows", "BYTES", [rain, "Hot", "High", "Weak", nul, "Hot", "High", "Weak"], [2, 4])
    data = texts(rain, nul)
    for response, pointer in (
        (infer(served, {"inputs": [one]}), "/inputs/0/data/1"),
        (infer(served, {"inputs": [matrix]}), "/inputs/0/data/4"),
        (infer_bytes(served, {"inputs": [size(2, len(data))]}, data), "/inputs/0/data/1"),
    ):
        assert "must not hold NUL" in error_of(response, 400, pointer)
    failed = [one["answer"]["errors"][0] for one in served.client.get("/v1/decisions?limit=200").get_json()["items"]]
    assert {fault["code"] for fault in failed} == {"characters", "not_answered"}


def test_among_many_texts_the_one_with_nul_characters_is_refused_by_its_place(on_sqlite: Settings) -> None:
    many = SUNNY | {"shape": [2_000], "data": ["Rain"] * 1_999 + ["Su\0nny"]}
    with serving(on_sqlite) as served:
        served.train("tennis")
        assert "must not hold NUL" in error_of(infer(served, {"inputs": [many]}), 400, "/inputs/0/data/1999")


@pytest.mark.parametrize(
    ("sizes", "data", "pointer"),
    [
        ([8], b"x" * 9, "/inputs"),  # a byte too many
        ([8, 16], b"x" * 16, "/inputs/1/parameters/binary_data_size"),  # more than there is
        ([9], b"x" * 9, "/inputs/0/parameters/binary_data_size"),  # no whole number of cells
        ([16], b"x" * 16, "/inputs/0/parameters/binary_data_size"),  # two cells, the shape says one
        ([], b"x" * 8, "/inputs"),
    ],
)
def test_sizes_that_do_not_fit_the_bytes_are_refused(
    mixed: Served, sizes: list[int], data: bytes, pointer: str
) -> None:
    inputs: list[dict[str, Any]] = [
        {"name": name, "datatype": "FP64", "shape": [1], "parameters": {"binary_data_size": one}}
        for name, one in zip(("size", "code"), sizes, strict=False)
    ]
    error_of(infer_bytes(mixed, {"inputs": inputs or [tensor("size", "FP64", [1])]}, data, model="mixed"), 400, pointer)


def test_an_infinite_number_in_bytes_is_refused_by_its_place(mixed: Served) -> None:
    data = np.array([1, np.inf], "<f4").tobytes()
    one = {"name": "size", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
    error = error_of(infer_bytes(mixed, {"inputs": [one]}, data, model="mixed"), 400, "/inputs/0/data/1")
    assert "finite" in error


def test_a_wrong_cell_of_a_matrix_is_named_by_its_place(mixed: Served) -> None:
    cells = ["1.5", "1", "true", "2024-01-01", "", "4.5", "3", "false", "yesterday", "x"]
    response = infer(mixed, {"inputs": [tensor("any", "BYTES", cells, [2, 5])]}, model="mixed")
    assert "yesterday" not in error_of(response, 400, "/inputs/0/data/8")


def test_of_very_many_wrong_cells_only_the_first_are_told(on_sqlite: Settings) -> None:
    with serving(on_sqlite) as served:
        served.train("tennis")
        response = infer(served, {"inputs": [tensor("Outlook", "BYTES", [1] * 5000)]})
    error_of(response, 400, *[f"/inputs/0/data/{place}" for place in range(100)])


def test_more_rows_or_longer_cells_than_allowed_are_too_large(served: Served) -> None:
    error_of(infer(served, {"inputs": [tensor("Outlook", "BYTES", ["Sunny"] * 6)]}), 413)
    error_of(infer(served, {"inputs": [tensor("Outlook", "BYTES", ["S" * 21])]}), 413)
    error_of(infer(served, {"inputs": [tensor("Outlook", "BYTES", [], [10**18])]}), 413)


# Errors of every kind


@pytest.mark.parametrize("path", ["/v2/models/none", "/v2/models/none/ready", "/v2/models/tennis/versions/9"])
def test_what_is_not_there_is_not_found(served: Served, path: str) -> None:
    assert "there is no" in error_of(served.client.get(path), 404)


@pytest.mark.parametrize("path", ["/v2/models/tennis/config", "/v2/nothing", "/v2/models/a%2Fb", "/v2/", "/v2/logging"])
def test_what_is_not_offered_is_not_found_in_the_same_shape(served: Served, path: str) -> None:
    error_of(served.client.get(path), 404)


def test_a_wrong_method_is_told_in_the_same_shape(served: Served) -> None:
    assert "POST" in error_of(served.client.get("/v2/models/tennis/infer"), 405)


def test_no_answer_is_given_when_the_log_cannot_be_written(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise Unavailable("the database cannot be used at the moment")

    monkeypatch.setattr("service.prepared.Inserted.insert", broken)
    response = infer(served, {"inputs": [SUNNY]})
    error_of(response, 503)
    assert response.headers["Retry-After"] == "1"


def test_an_unexpected_error_shows_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret cell 42")

    monkeypatch.setattr("service.usecases.predict", broken)
    assert "secret" not in error_of(infer(served, {"inputs": [SUNNY]}), 500)


def test_without_tables_nothing_is_ready(tmp_path: Path) -> None:
    with serving(Settings(database_url=f"sqlite:///{tmp_path}/empty.db")) as served:
        assert served.client.get("/v2/health/live").status_code == 200
        error_of(served.client.get("/v2/health/ready"), 503)


def test_keys_are_asked_for_in_the_same_shape_and_noted_with_the_decision(settings: Settings) -> None:
    with serving(settings, auth="keys") as served:
        served.train("tennis")
        error_of(infer(served, {"inputs": [SUNNY]}), 401)
        asks = {"Authorization": f"Bearer {token_of(served, Scope.PREDICT)}"}
        reads = {"Authorization": f"Bearer {token_of(served, Scope.READ, Scope.AUDIT)}"}
        other = {"Authorization": f"Bearer {token_of(served, Scope.PREDICT, Scope.READ, models=['other'])}"}
        assert "scope predict" in error_of(infer(served, {"inputs": [SUNNY]}, **reads), 403)
        assert "only the models other" in error_of(infer(served, {"inputs": [SUNNY]}, **other), 403)
        decision = outputs(infer(served, {"inputs": [SUNNY]}, **asks))["decision_id"][0]
        kept = served.client.get(f"/v1/decisions/{decision}", headers=reads).get_json()
        assert kept["key"] == asks["Authorization"].split("_")[1]
        assert served.client.get("/v2/models/tennis", headers=asks).status_code == 200
        index = served.client.post("/v2/repository/index", headers=reads).get_json()
        assert [one["name"] for one in index] == ["tennis"]
        assert served.client.post("/v2/repository/index", headers=other).get_json() == []


# Versions


def test_the_version_that_production_points_at_answers_and_is_noted(settings: Settings) -> None:
    with serving(settings) as served:
        served.train("tennis")
        assert_production_answers(served)


def assert_production_answers(served: Served) -> None:
    served.train("tennis")
    put = served.client.put("/v1/models/tennis/aliases/production", json={"version": 1})
    assert put.status_code == 200
    head, found = taken_apart(infer(served, {"inputs": [SUNNY]}))
    assert head["model_version"] == "1"
    decision = served.client.get(f"/v1/decisions/{found['decision_id'][0]}").get_json()
    assert (decision["alias"], decision["version"]) == ("production", 1)
    assert served.client.get("/v2/models/tennis").get_json()["versions"] == ["1", "2"]
    by_number = served.client.post("/v2/models/tennis/versions/2/infer", json={"inputs": [SUNNY]})
    assert taken_apart(by_number)[0]["model_version"] == "2"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"ready": true}', b'{"ready": false}'])
def test_the_index_names_every_version_the_newest_first(served: Served, body: bytes) -> None:
    served.train("tennis")
    served.train("another")
    found = served.client.post("/v2/repository/index", data=body).get_json()
    named = [(one["name"], one["version"], one["state"]) for one in found]
    assert named == [("another", "1", "READY"), ("tennis", "2", "READY"), ("tennis", "1", "READY")]


@pytest.mark.parametrize("body", [b"[]", b'{"ready": 1}', b"{"])
def test_an_index_asked_for_wrongly_is_refused(served: Served, body: bytes) -> None:
    pointers = ["/ready"] if b"ready" in body else []
    error_of(served.client.post("/v2/repository/index", data=body), 400, *pointers)
