"""What RFC 9112 and RFC 9110 require of a server, byte by byte, of the service as it runs under gunicorn."""

import socket
from collections.abc import Mapping

import pytest

from tests.acceptance.conftest import IMAGE
from tests.acceptance.running import Service

pytestmark = pytest.mark.skipif(IMAGE is not None, reason="a proxy may stand before the image")

BODY = b'{"rows": [{}]}'
CHUNKED = b"e\r\n" + BODY + b"\r\n0\r\n\r\n"
NO_MODEL = "POST /v1/models/none/predict HTTP/1.1"
JSON = "Content-Type: application/json"


def ask(
    service: Service, *head: str, body: bytes = b"", host: str | None = "127.0.0.1"
) -> tuple[int, dict[str, str], bytes]:
    """Send a request; give the status, the headers and the body of its answer."""
    url = service.client.base_url
    lines = [head[0], *([f"Host: {host}"] if host is not None else []), *head[1:]]
    if service.key is not None:
        lines.append(f"Authorization: Bearer {service.key}")
    with socket.create_connection((url.host, url.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body)
        connection.shutdown(socket.SHUT_WR)  # nothing follows: the connection is closed after the answer
        answer = b""
        while part := connection.recv(65536):
            answer += part
    begin, _, content = answer.partition(b"\r\n\r\n")
    status, *fields = begin.decode("latin-1").split("\r\n")
    return (
        int(status.split()[1]),
        {name.lower(): value for name, _, value in (each.partition(": ") for each in fields)},
        content,
    )


REFUSED: Mapping[str, tuple[int, tuple[str, ...], bytes]] = {
    "a folded header (9112, 5.2)": (400, ("GET /livez HTTP/1.1", "X-A: b", " c"), b""),
    "a space before the colon (9112, 5.1)": (400, ("GET /livez HTTP/1.1", "X-A : b"), b""),
    "a carriage return in a value (9110, 5.5)": (400, ("GET /livez HTTP/1.1", "X-A: a\rb"), b""),
    "NUL in a value (9110, 5.5)": (400, ("GET /livez HTTP/1.1", "X-A: a\0b"), b""),
    "a name that is no token (9110, 5.1)": (400, ("GET /livez HTTP/1.1", "X(A: b"), b""),
    "two hosts (9112, 3.2)": (400, ("GET /livez HTTP/1.1", "Host: 127.0.0.1"), b""),
    "two lengths (9112, 6.3)": (400, (NO_MODEL, JSON, "Content-Length: 14", "Content-Length: 15"), BODY),
    "a list of lengths (9112, 6.3)": (400, (NO_MODEL, JSON, "Content-Length: 14, 15"), BODY),
    "a length with a sign (9110, 8.6)": (400, (NO_MODEL, JSON, "Content-Length: +14"), BODY),
    "a negative length (9110, 8.6)": (400, (NO_MODEL, JSON, "Content-Length: -14"), BODY),
    "a length and chunks (9112, 6.3)": (
        400,
        (NO_MODEL, JSON, "Content-Length: 14", "Transfer-Encoding: chunked"),
        CHUNKED,
    ),
    "chunked before the end (9112, 6.3)": (400, (NO_MODEL, JSON, "Transfer-Encoding: chunked, gzip"), CHUNKED),
    "an unknown coding (9112, 6.1)": (501, (NO_MODEL, JSON, "Transfer-Encoding: other"), CHUNKED),
    "a coding that is not decoded (9112, 6.1)": (501, (NO_MODEL, JSON, "Transfer-Encoding: gzip, chunked"), CHUNKED),
    "a chunk without a size (9112, 7.1)": (400, (NO_MODEL, JSON, "Transfer-Encoding: chunked"), b"x" + CHUNKED),
    "a chunk of negative size (9112, 7.1)": (400, (NO_MODEL, JSON, "Transfer-Encoding: chunked"), b"-" + CHUNKED),
    "another expectation (9110, 10.1.1)": (417, (NO_MODEL, JSON, "Expect: 200-maybe", "Content-Length: 14"), BODY),
    "a long target (9112, 3)": (414, (f"GET /livez?{'a' * 9000} HTTP/1.1",), b""),
    "a long header (6585, 5)": (431, ("GET /livez HTTP/1.1", f"X-A: {'a' * 9000}"), b""),
    "a method of another case (9110, 9.1)": (400, ("get /livez HTTP/1.1",), b""),
    "another major version (9112, 2.3)": (400, ("GET /livez HTTP/2.0",), b""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_http_is_refused(running_service: Service, case: str) -> None:
    status, head, body = REFUSED[case]
    assert ask(running_service, *head, body=body)[0] == status


def test_a_transfer_coding_that_is_not_decoded_is_named(running_service: Service) -> None:
    _, _, body = ask(running_service, NO_MODEL, JSON, "Transfer-Encoding: gzip, chunked", body=CHUNKED)
    assert b"the only supported transfer coding is chunked" in body


@pytest.mark.parametrize("host", [None, "", "a b", "a/b", "a@b", "a:x", "a, b"])
def test_a_request_needs_one_valid_host(running_service: Service, host: str | None) -> None:
    assert ask(running_service, "GET /livez HTTP/1.1", host=host)[0] == 400


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "[::1]:80", "[::1]", "127.0.0.1:"])
def test_the_legal_forms_of_a_host_are_answered(running_service: Service, host: str) -> None:
    assert ask(running_service, "GET /livez HTTP/1.1", host=host)[0] == 200


def test_the_host_of_an_absolute_target_replaces_the_header(running_service: Service) -> None:
    # Without keys only this machine has access: another host is refused, whatever the header says.
    assert ask(running_service, "GET http://localhost/livez HTTP/1.1", host="other.example")[0] == 200
    assert ask(running_service, "GET http://other.example/livez HTTP/1.1", host="localhost")[0] == 403


def test_an_old_client_needs_no_host(running_service: Service) -> None:
    status, headers, body = ask(running_service, "GET /livez HTTP/1.0", host=None)
    assert (status, body) == (200, b'{"status":"live"}')
    assert "transfer-encoding" not in headers


@pytest.mark.parametrize("body", [CHUNKED, CHUNKED.replace(b"e\r", b'e;a="b;c"\r'), CHUNKED[:-2] + b"X-T: 1\r\n\r\n"])
def test_chunks_may_have_extensions_and_trailers(running_service: Service, body: bytes) -> None:
    status, _, answer = ask(running_service, NO_MODEL, JSON, "Transfer-Encoding: chunked", body=body)
    assert (status, b"not-found" in answer) == (404, True)  # the body was read: there is no such model


def test_the_length_that_every_server_should_take_is_taken(running_service: Service) -> None:
    assert ask(running_service, f"GET /livez?{'a' * 7980} HTTP/1.1")[0] == 200  # 8,000 octets with what is around


def test_head_has_the_headers_of_get_and_no_body(running_service: Service) -> None:
    _, of_get, body = ask(running_service, "GET /livez HTTP/1.1")
    status, of_head, nothing = ask(running_service, "HEAD /livez HTTP/1.1")
    assert (status, nothing, of_head["content-length"]) == (200, b"", str(len(body)))
    assert of_head.keys() == of_get.keys()
    assert "date" in of_get


@pytest.mark.parametrize("method", ["DELETE", "TRACE", "OTHER"])
def test_a_method_that_a_path_has_not_is_told_which_it_has(running_service: Service, method: str) -> None:
    status, headers, _ = ask(running_service, f"{method} /livez HTTP/1.1")
    assert (status, set(headers["allow"].split(", "))) == (405, {"GET", "HEAD", "OPTIONS"})


def test_options_are_those_of_a_path_or_of_the_server(running_service: Service) -> None:
    status, headers, body = ask(running_service, "OPTIONS /livez HTTP/1.1")
    assert (status, set(headers["allow"].split(", ")), body) == (200, {"GET", "HEAD", "OPTIONS"}, b"")
    status, headers, body = ask(running_service, "OPTIONS * HTTP/1.1")
    assert (status, "GET" in headers["allow"], "content-length" in headers, body) == (204, True, False, b"")


def test_a_client_that_waits_is_told_to_go_on_and_an_old_one_is_not(running_service: Service) -> None:
    head = (JSON, "Expect: 100-continue", "Content-Length: 14")
    status, _, answer = ask(running_service, NO_MODEL, *head, body=BODY)
    assert (status, answer[:12]) == (100, b"HTTP/1.1 404")
    assert ask(running_service, NO_MODEL.replace("1.1", "1.0"), *head, body=BODY)[0] == 404


def test_conditions_are_looked_at_in_their_order(running_service: Service) -> None:
    path = "GET /v1/models HTTP/1.1"
    _, fresh, _ = ask(running_service, path)
    tag = fresh["etag"]
    for condition in (tag, f"W/{tag}", f'"a", {tag}', "*"):
        status, headers, body = ask(running_service, path, f"If-None-Match: {condition}")
        assert (status, headers["etag"], body) == (304, tag, b"")
        assert fresh.keys() - headers.keys() <= {"content-length", "content-type"}
    # If-Match is first, and compares strongly (9110, 13.1.1 and 13.2.2).
    assert ask(running_service, path, f"If-Match: {tag}")[0] == 200
    assert ask(running_service, path, f"If-Match: {tag}", f"If-None-Match: {tag}")[0] == 304
    for other in ('"other"', f"W/{tag}"):
        assert ask(running_service, path, f"If-Match: {other}", f"If-None-Match: {tag}")[0] == 412
    # No date is known: conditions on it are ignored (13.1.3), as are ranges (14.2).
    assert ask(running_service, path, "If-Modified-Since: Thu, 26 Nov 2099 00:00:00 GMT", "Range: bytes=0-1")[0] == 200


def test_a_wish_for_another_protocol_is_ignored(running_service: Service) -> None:
    for protocol in ("websocket", "h2c"):  # 9110, 7.8
        wish = ("Connection: upgrade", f"Upgrade: {protocol}")
        assert ask(running_service, "GET /v1/models HTTP/1.1", *wish)[0] == 200
