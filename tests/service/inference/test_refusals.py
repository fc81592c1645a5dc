"""The Open Inference Protocol: what is refused, and the errors its clients can read."""

import gzip
import re
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.database.tables import Scope
from service.errors import Unavailable
from service.settings import Settings
from tests.service.guarded import token_of
from tests.service.served import Served, serving
from tests.service.tensors import LENGTH, SUNNY, error_of, infer, infer_bytes, keep_mixed, outputs, tensor, texts


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    """What is asked of most tests here ends before the database; those of the log run on both."""
    with serving(on_sqlite, max_predict_rows=5, max_cell_chars=20) as one:
        one.train("tennis")
        yield one


@pytest.fixture
def mixed(served: Served) -> Served:
    """The same with a model of attributes of every kind."""
    keep_mixed(served)
    return served


# Requests that are not as they should be


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
        ({"datatype": "BOOL", "data": [2]}, "/inputs/0/data/0"),
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


@pytest.mark.parametrize(("datatype", "beyond"), [("FP16", 1e5), ("FP32", 1e39)])
def test_the_largest_number_that_a_message_names_is_legal(mixed: Served, datatype: str, beyond: float) -> None:
    found = error_of(
        infer(mixed, {"inputs": [tensor("size", datatype, [beyond])]}, model="mixed"), 400, "/inputs/0/data/0"
    )
    [named] = re.findall(r"±([^,]+),", found)
    assert float(named) == np.finfo({"FP16": "f2", "FP32": "f4"}[datatype]).max
    assert infer(mixed, {"inputs": [tensor("size", datatype, [float(named)])]}, model="mixed").status_code == 200


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
        (b"\xff\xff\xff\xff" + b"x" * 20, "cell 0 is longer than the bytes that remain"),
        (texts("Sunny", "Rain", "Rain"), "has bytes after its 2"),
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
    nested = matrix | {"data": [matrix["data"][:4], matrix["data"][4:]]}
    data = texts(rain, nul)
    for response, pointer in (
        (infer(served, {"inputs": [one]}), "/inputs/0/data/1"),
        (infer(served, {"inputs": [matrix]}), "/inputs/0/data/4"),
        (infer(served, {"inputs": [nested]}), "/inputs/0/data/1/0"),
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

    monkeypatch.setattr("service.repositories.decision_log.insert_records", broken)
    response = infer(served, {"inputs": [SUNNY]})
    error_of(response, 503)
    assert response.headers["Retry-After"] == "1"


def test_an_unexpected_error_shows_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret cell 42")

    monkeypatch.setattr("espalier.predict_each", broken)
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
