"""Bad input, each with its problem document, against the running service."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.acceptance.running import PATIENCE, Service

CSV = {"Content-Type": "text/csv"}
TENNIS = "Wind,Play\nWeak,Yes\nStrong,No\n"
MEGABYTE = b"x" * 1024 * 1024


def assert_problem(response: httpx.Response, status: int, *words: str) -> dict[str, Any]:
    assert response.headers["Content-Type"] == "application/problem+json", response.text
    problem: dict[str, Any] = response.json()
    assert (response.status_code, problem["status"]) == (status, status), response.text
    assert problem["request_id"]
    assert not [word for word in words if word not in problem["detail"]], problem["detail"]
    return problem


@pytest.fixture(scope="module")
def model(running_service: Service) -> str:
    dataset = running_service.upload(TENNIS, target="Play")
    running_service.train("bad-input", dataset, preset="cart")
    return "bad-input"


@pytest.mark.parametrize(
    ("content", "query", "words"),
    [
        pytest.param(b"\x89PNG\r\n\x1a\n\x00", {}, ["not CSV"], id="not CSV"),
        pytest.param(b"", {}, ["empty"], id="an empty file"),
        pytest.param(b"a,b\n1,2\n", {"target": "c"}, ["'c'", "a, b"], id="a target that does not exist"),
    ],
)
def test_a_bad_upload_is_refused(
    running_service: Service, content: bytes, query: dict[str, str], words: list[str]
) -> None:
    response = running_service.client.post("/v1/datasets", params=query, content=content, headers=CSV)
    assert_problem(response, 422, *words)


def test_a_target_of_one_value_is_refused_when_it_is_to_be_learned(running_service: Service) -> None:
    dataset = running_service.upload("a,b\n1,x\n2,x\n", target="b")
    response = running_service.client.post("/v1/training-jobs", json={"model": "m", "dataset": dataset})
    assert_problem(response, 422, "one value")


def test_an_attribute_of_one_value_is_noticed(running_service: Service) -> None:
    dataset = running_service.upload("a,c,b\n1,5,x\n2,5,y\n", target="b")
    assert "'c' has one value" in str(running_service.get(f"/v1/datasets/{dataset}")["notices"])


def test_a_model_name_with_a_slash_is_refused_and_the_legal_ones_are_said(running_service: Service) -> None:
    dataset = running_service.upload(TENNIS, target="Play")
    response = running_service.client.post("/v1/training-jobs", json={"model": "a/b", "dataset": dataset})
    assert_problem(response, 422, "A-Z a-z 0-9 . _ -")
    assert_problem(running_service.client.post("/v1/models/a/b/predict", json={"rows": [{}]}), 404, "A-Z a-z 0-9 . _ -")


def test_a_row_with_an_unknown_attribute_is_refused_by_its_place(running_service: Service, model: str) -> None:
    response = running_service.client.post(f"/v1/models/{model}/predict", json={"rows": [{}, {"Colour": "red"}]})
    problem = assert_problem(response, 422, "Wind")
    assert [fault["pointer"] for fault in problem["errors"]] == ["/rows/1/Colour"]


def test_a_job_on_a_missing_data_set_is_refused_by_its_place(running_service: Service) -> None:
    response = running_service.client.post("/v1/training-jobs", json={"model": "m", "dataset": "nothing"})
    assert [fault["pointer"] for fault in assert_problem(response, 422)["errors"]] == ["/dataset"]


def test_a_body_of_100_megabytes_is_too_large(running_service: Service) -> None:
    response = running_service.client.post("/v1/datasets", content=MEGABYTE * 100, headers=CSV)
    assert_problem(response, 413)


def test_a_body_of_100_megabytes_in_chunks_of_unknown_number_is_too_large(running_service: Service) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield MEGABYTE

    response = running_service.client.post("/v1/datasets", content=chunks(), headers=CSV)
    assert_problem(response, 413)


def test_100_000_nested_brackets_are_malformed(running_service: Service, model: str) -> None:
    headers = {"Content-Type": "application/json"}
    response = running_service.client.post(f"/v1/models/{model}/predict", content=b"[" * 100_000, headers=headers)
    assert_problem(response, 400, "not JSON")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"HELLO\r\n\r\n", 400, id="no request line"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", 400, id="a version that is not there"),
        pytest.param(b"GET / HTTP/1.1\r\nHo st: <b>x</b>\r\n\r\n", 400, id="a blank in a header's name"),
        pytest.param(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414, id="a long request line"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431, id="200 headers"),
    ],
)
def test_what_is_not_http_is_refused_and_nothing_of_it_is_repeated_as_markup(
    running_service: Service, sent: bytes, status: int
) -> None:
    head, body = exchanged(running_service, sent)
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert "Connection: close" in head
    assert "<b>" not in body


BODIES = {"/v1/models/{}/predict": "application/json", "/v1/datasets": "text/csv", "/v2/models/{}/infer": "text/plain"}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("framed", "said"),
    [
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n", "chunks are not", id="no size"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n5\r\na,b\n1XX\r\n0\r\n\r\n", "chunks are not", id="no end"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\nff\r\na,b\n", "truncated", id="cut short"),
        pytest.param(b"Content-Length: 1000\r\n\r\na,b\n1,2\n", "Content-Length", id="a length that lies"),
    ],
)
def test_a_body_that_is_not_framed_as_it_says_is_malformed(
    running_service: Service, model: str, path: str, framed: bytes, said: str
) -> None:
    fields = f"Host: 127.0.0.1\r\nConnection: close\r\nContent-Type: {BODIES[path]}\r\n"

    head, body = exchanged(running_service, f"POST {path.format(model)} HTTP/1.1\r\n{fields}".encode() + framed)

    assert head.startswith("HTTP/1.1 400 ")
    assert said in json.loads(body)["detail"]


@pytest.mark.parametrize("path", ["/nothing", "/v1/models"])
@pytest.mark.parametrize("chunks", [b"zz\r\nhello\r\n0\r\n\r\n", b"5\r\na,b\n1XX\r\n0\r\n\r\n"])
def test_a_request_whose_body_nobody_read_is_answered_first_and_then_the_connection_ends(
    running_service: Service, path: str, chunks: bytes
) -> None:
    head, body = exchanged(
        running_service,
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + chunks,
    )
    assert head.startswith(("HTTP/1.1 404 ", "HTTP/1.1 405 "))
    assert "HTTP/1.1 2" not in body  # nothing behind it is taken for a request


@pytest.mark.parametrize("header", ["SCRIPT_NAME: /evil", "Script-Name: /evil", "PATH_INFO: /evil", "REMOTE_USER: me"])
def test_no_header_moves_the_paths_of_the_service(running_service: Service, header: str) -> None:
    body = b'{"rows": [{"a": 1}]}'
    sent = f"POST /v1/datasets HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\nConnection: close\r\n"
    sent += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    head, answer = exchanged(running_service, sent.encode() + body)
    assert head.startswith("HTTP/1.1 201 "), head
    assert f"Location: /v1/datasets/{json.loads(answer)['id']}\r\n" in head + "\r\n"


def exchanged(service: Service, sent: bytes) -> tuple[str, str]:
    """Send bytes as they are; give head and body of what comes back."""
    host, port = service.address.removeprefix("http://").split(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65536):
            received += part
    head, _, body = received.decode().partition("\r\n\r\n")
    return head, body
