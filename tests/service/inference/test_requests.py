"""The Open Inference Protocol: every form of a tensor, what is answered, and what the log has of it."""

import gzip
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pytest

import espalier
from service.inference.tensors import datatype_of
from service.settings import Settings
from tests.service.served import HOURS, Served, serving
from tests.service.tensors import (
    LENGTH,
    MIXED,
    SUNNY,
    error_of,
    infer,
    infer_bytes,
    keep_mixed,
    outputs,
    taken_apart,
    tensor,
)


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


def test_labels_that_are_equal_numbers_stay_different(served: Served) -> None:
    rows = [{"code": label, "answer": label} for label in (7, 7.0, 8)] * 2
    columns = [{"name": name, "kind": "nominal", "categories": [7, 7.0, 8]} for name in ("code", "answer")]
    dataset = espalier.dataset_from_rows(rows, schema={"columns": columns, "target": "answer"})
    served.keep("equal", espalier.train(dataset, "cart"))
    described = served.client.get("/v2/models/equal").get_json()
    kinds = {one["name"]: one["datatype"] for one in (*described["inputs"], *described["outputs"])}
    assert (kinds["code"], kinds["label"]) == ("BYTES", "BYTES")

    for is_binary in (False, True):
        body = {"inputs": [tensor("code", "BYTES", ["7", "7.0", "8"])], "parameters": {"binary_data_output": is_binary}}
        response = infer(served, body, model="equal")
        assert outputs(response)["label"] == ["7", "7.0", "8"]
        if not is_binary:
            assert orjson.dumps([row["code"] for row in logged(served, response)]) == b"[7,7.0,8]"


@pytest.mark.parametrize(
    ("labels", "datatype"),
    [
        ([7, 7.5], "FP64"), ([7.0, 8.0], "FP64"), ([7, 7.0, 8], "BYTES"), ([7, 8], "INT64"), ([1, True], "BYTES"),
        ([True], "BOOL"), ([1, "1"], "BYTES"), ([], "BYTES"),
    ],
)  # fmt: skip
def test_the_datatype_of_labels_keeps_them_apart(labels: list[Any], datatype: str) -> None:
    assert datatype_of(labels) == datatype


def test_truth_in_bytes_is_any_byte_but_zero(mixed: Served) -> None:
    one = {"name": "late", "datatype": "BOOL", "shape": [3], "parameters": {"binary_data_size": 3}}
    response = infer_bytes(mixed, {"inputs": [one]}, b"\x00\x01\xff", model="mixed")
    assert [row["late"] for row in logged(mixed, response)] == [False, True, True]


def test_truth_in_json_may_be_written_as_1_and_0(mixed: Served) -> None:
    response = infer(mixed, {"inputs": [tensor("late", "BOOL", [0, 1, True, None])]}, model="mixed")
    assert [row.get("late") for row in logged(mixed, response)] == [False, True, True, None]


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


# Requests that are packed


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
