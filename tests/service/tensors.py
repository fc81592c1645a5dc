"""Requests and answers of the Open Inference Protocol, put together and taken apart without the service's own code."""

import gzip
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import flask.testing
import numpy as np
import orjson
from werkzeug.test import TestResponse

import espalier
from tests.service.served import Served

LENGTH = "Inference-Header-Content-Length"
DTYPES = {"BOOL": "?", "INT64": "<i8", "FP64": "<f8"}
UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress}


def tensor(name: str, datatype: str, cells: Sequence[object], shape: Sequence[int] | None = None) -> dict[str, Any]:
    """Give an input with its data as JSON."""
    return {"name": name, "datatype": datatype, "shape": shape or [len(cells)], "data": list(cells)}


SUNNY = tensor("Outlook", "BYTES", ["Sunny"])

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


def keep_mixed(served: Served) -> None:
    """Keep a model of attributes of every kind, "mixed"."""
    dataset = espalier.dataset_from_rows(MIXED["rows"], schema=MIXED["schema"])
    served.keep("mixed", espalier.train(dataset, "cart"))


def infer(served: Served, body: object, *, model: str = "tennis", **headers: str) -> TestResponse:
    """Send JSON as a client does that says nothing of its content."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return served.client.post(f"/v2/models/{model}/infer", data=content, headers=headers)


def infer_bytes(served: Served, body: Mapping[str, Any], *data: bytes, model: str = "tennis") -> TestResponse:
    """Send JSON with the bytes of tensors behind."""
    content = orjson.dumps(body)
    headers = {LENGTH: str(len(content))}
    return served.client.post(f"/v2/models/{model}/infer", data=b"".join([content, *data]), headers=headers)


def texts(*cells: str) -> bytes:
    """Give BYTES as bytes."""
    return b"".join(struct.pack("<I", len(cell.encode())) + cell.encode() for cell in cells)


def send_again(client: flask.testing.FlaskClient, file: Path) -> TestResponse:
    """Send a request that was written down as it went over the wire."""
    head, _, body = file.read_bytes().partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    method, path, _ = first.split(" ")
    headers = [tuple(line.split(": ", 1)) for line in lines]
    return client.open(path, method=method, headers=headers, data=body)


def outputs(response: TestResponse) -> dict[str, Any]:
    """Give the outputs of an answer, each a nested list, as its shape says."""
    return taken_apart(response)[1]


def taken_apart(response: TestResponse) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take an answer apart: its JSON, and its outputs."""
    assert response.status_code == 200, response.text
    content = UNPACK.get(response.headers.get("Content-Encoding", ""), bytes)(response.get_data())
    length = response.headers.get(LENGTH)
    assert response.content_type == ("application/json" if length is None else "application/octet-stream")
    end = len(content) if length is None else int(length)
    found = {}
    head = orjson.loads(content[:end])
    for one in head["outputs"]:
        if "data" in one:
            cells = one["data"]
        else:
            start, end = end, end + one["parameters"]["binary_data_size"]
            cells = _texts(content[start:end]) if one["datatype"] == "BYTES" else _numbers(content[start:end], one)
        found[one["name"]] = np.array(cells, dtype=object).reshape(one["shape"]).tolist()
    assert end == len(content)
    return head, found


def error_of(response: TestResponse, status: int, *pointers: str) -> str:
    """See that the response is an error as the protocol has it, with faults at these places; give its sentence."""
    assert (response.status_code, response.content_type) == (status, "application/json"), response.text
    error = response.get_json()
    assert error["status"] == status
    assert error["request_id"] == response.headers["X-Request-Id"]
    assert [fault["pointer"] for fault in error["errors"]] == list(pointers), error["errors"]
    assert "Traceback" not in response.text
    return str(error["error"])


def _numbers(data: bytes, output: Mapping[str, Any]) -> list[Any]:
    cells: list[Any] = np.frombuffer(data, DTYPES[output["datatype"]]).tolist()
    return cells


def _texts(data: bytes) -> list[str]:
    found, start = [], 0
    while start < len(data):
        length = struct.unpack_from("<I", data, start)[0]
        found.append(data[start + 4 : start + 4 + length].decode())
        start += 4 + length
    return found
