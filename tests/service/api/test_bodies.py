"""Hostile and careless bodies: a 4xx, in bounded memory, before anything else looks at them."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from werkzeug.test import TestResponse

from service.settings import Settings
from tests.service.served import Served, assert_problem, serving

PREDICT = "/v1/models/tennis/predict"


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite, max_body_mb=1) as one:
        one.train("tennis")
        yield one


def send(served: Served, body: bytes, *, content_type: str = "application/json", **more: object) -> TestResponse:
    return served.client.post(PREDICT, data=body, content_type=content_type, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 100_000, id="100 000 nested brackets"),
        pytest.param(b'{"a":' * 100_000, id="100 000 nested objects"),
        pytest.param(b'{"rows": [{"Wind": NaN}]}', id="NaN"),
        pytest.param(b'{"rows": [{"Wind": Infinity}]}', id="Infinity"),
        pytest.param(b'{"rows": [{"Wind": 1e400}]}', id="a number beyond floats"),
        pytest.param(b'{"rows": [{"Wind": "\\ud800"}]}', id="a lone surrogate"),
        pytest.param(b'{"rows": [{"Wind": "\xff"}]}', id="not UTF-8"),
        pytest.param(b"", id="empty"),
        pytest.param(b'{"rows": [', id="cut off"),
    ],
)
def test_a_body_that_is_not_json_is_malformed(served: Served, body: bytes) -> None:
    problem = assert_problem(send(served, body), 400)
    assert "not JSON" in problem["detail"]


def test_brackets_nested_as_deep_as_json_may_be_are_not_valid_rows(served: Served) -> None:
    body = b'{"rows": [{"Wind": ' + b"[" * 900 + b"]" * 900 + b"}]}"
    assert_problem(send(served, body), 422, "/rows/0/Wind")


def test_nul_characters_in_a_name_are_an_unknown_attribute(served: Served) -> None:
    assert_problem(send(served, b'{"rows": [{"Wi\\u0000nd": "Weak"}]}'), 422, "/rows/0/Wi\0nd")


@pytest.mark.parametrize("path", [PREDICT, "/v1/models/tennis/versions/1/predict"])
@pytest.mark.parametrize(
    ("rows", "pointers"),
    [
        pytest.param({"rows": [{"Outlook": "Su\0nny"}]}, ["/rows/0/Outlook"], id="a row"),
        pytest.param(
            {"rows": [{}, {"Outlook": "\0", "Wind": "Weak\0"}]}, ["/rows/1/Outlook", "/rows/1/Wind"], id="rows"
        ),
        pytest.param({"rows": [{"Wind": "Weak"}] * 1_999 + [{"Wind": "\0Weak"}]}, ["/rows/1999/Wind"], id="many rows"),
        pytest.param(
            {"rows": [{"Wind": "Weak"}] * 1_999 + [{"Wind": "\0Weak"}], "explain": "none"},
            ["/rows/1999/Wind"],
            id="many rows, not explained",
        ),
        pytest.param({"columns": {"Wind": ["Weak", "We\0ak"]}}, ["/columns/Wind/1"], id="a column"),
        pytest.param({"columns": {"Wind": ["Weak"] * 1_999 + ["\0"]}}, ["/columns/Wind/1999"], id="a long column"),
        pytest.param(
            {"columns": {"Wind": ["Weak"] * 1_999 + ["\0"]}, "explain": "none"},
            ["/columns/Wind/1999"],
            id="a long column, not explained",
        ),
    ],
)
def test_nul_characters_in_a_value_are_refused_by_their_place_and_kept_in_the_log(
    served: Served, path: str, rows: dict[str, Any], pointers: list[str]
) -> None:
    problem = assert_problem(served.client.post(path, json=rows), 422, *pointers)
    assert {fault["code"] for fault in problem["errors"]} == {"characters"}
    assert_all_decisions_are_shown(served, n_failed=len(rows.get("rows") or rows["columns"]["Wind"]))


@pytest.mark.parametrize("explain", ["none", "path", "full"])
def test_a_value_with_nul_characters_is_skipped_where_that_is_asked(served: Served, explain: str) -> None:
    body = {"rows": [{"Outlook": "Su\0nny"}, {"Outlook": "Rain"}], "on_error": "skip", "explain": explain}
    response = served.client.post(PREDICT, json=body)
    assert response.status_code == 200, response.text
    refused, answered = response.get_json()["predictions"]
    assert [fault["pointer"] for fault in refused["errors"]] == ["/rows/0/Outlook"]
    assert "label" in answered
    kept = served.client.get(f"/v1/decisions/{refused['decision_id']}").get_json()
    assert kept["input"] == {"Outlook": "Su\0nny"}
    assert_all_decisions_are_shown(served, n_failed=1)


def test_nul_characters_in_what_is_known_so_far_are_refused_by_their_place(served: Served) -> None:
    response = served.client.post("/v1/models/tennis/consultations", json={"known": {"Outlook": "Su\0nny"}})
    assert_problem(response, 422, "/known/Outlook")


def assert_all_decisions_are_shown(served: Served, *, n_failed: int) -> None:
    """Whatever a row holds, the log lists it, and those that failed have no answer."""
    listed = served.client.get("/v1/decisions?limit=200")
    assert listed.status_code == 200, listed.text
    failed = [one for one in listed.get_json()["items"] if "errors" in one["answer"]]
    assert len(failed) == min(n_failed, 200)


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_packed_body_is_unpacked_up_to_the_limit(served: Served, name: str, pack: Callable[[bytes], bytes]) -> None:
    headers = {"Content-Encoding": name}
    assert send(served, pack(b'{"rows": [{"Wind": "Weak"}]}'), headers=headers).status_code == 200
    assert_problem(send(served, pack(b" " * (10 * 1024 * 1024)), headers=headers), 413)
    assert_problem(send(served, pack(b'{"rows": [{}]}')[:-3], headers=headers), 400)


@pytest.mark.parametrize(("name", "status"), [("gzip", 400), ("br", 415)])
def test_a_body_that_is_not_packed_as_it_says_is_not_taken(served: Served, name: str, status: int) -> None:
    response = send(served, b"\x1f\x8b" + b"0" * 100, headers={"Content-Encoding": name})
    assert "Content-Encoding" in assert_problem(response, status)["detail"]


def test_another_content_type_is_not_taken(served: Served) -> None:
    problem = assert_problem(send(served, b"{}", content_type="text/plain"), 415)
    assert problem["detail"] == "the Content-Type must be application/json or text/csv or application/x-ndjson"


def test_a_body_said_to_be_too_long_is_refused_before_it_is_read(served: Served) -> None:
    stream = Spaces(3 * 1024 * 1024)
    response = send_stream(served, stream, CONTENT_LENGTH=str(10**12))
    assert_problem(response, 413)


def test_a_body_of_unknown_length_is_refused_when_it_passes_the_limit(served: Served) -> None:
    stream = Spaces(3 * 1024 * 1024)
    response = send_stream(served, stream, **{"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"})
    assert_problem(response, 413)


def test_a_body_of_unknown_length_may_have_as_many_bytes_as_the_limit(served: Served) -> None:
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    for n_more, status in ((0, 422), (1, 413)):
        body = b"{}" + b" " * (2**20 - 2 + n_more)
        assert send_stream(served, io.BytesIO(body), **chunked).status_code == status


def test_a_refused_body_is_read_to_its_end_so_that_the_client_sees_the_answer(served: Served) -> None:
    stream = Spaces(3 * 1024 * 1024)
    send_stream(served, stream, CONTENT_LENGTH=str(3 * 1024 * 1024)).close()
    assert stream.left == 0
    assert stream.longest_read <= 65536


def test_a_body_shorter_than_it_says_is_malformed(served: Served) -> None:
    assert_problem(send_stream(served, io.BytesIO(b'{"rows"'), CONTENT_LENGTH="500"), 400)


def test_of_duplicate_keys_the_last_counts(served: Served) -> None:
    body = b'{"rows": [{"Outlook": "Sunny", "Outlook": "Overcast"}], "explain": "none"}'
    assert send(served, body).get_json()["predictions"][0]["label"] == "Yes"


def send_stream(served: Served, stream: io.RawIOBase | io.BytesIO, **environ: object) -> TestResponse:
    headers = {"wsgi.input": stream, **environ}
    return served.client.post(PREDICT, content_type="application/json", environ_overrides=headers)


class Spaces(io.RawIOBase):
    """Spaces, as many as asked for, up to `length`; remembers the longest single read."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.left = length
        self.longest_read = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        taken = self.left if size < 0 else min(size, self.left)
        self.longest_read = max(self.longest_read, taken)
        self.left -= taken
        return b" " * taken

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


@pytest.mark.parametrize("path", ["/v1/datasets", PREDICT])
@pytest.mark.parametrize("content_type", ["text/csv", "application/json"])
def test_a_truncated_body_is_malformed_where_the_server_only_ends_it(
    served: Served, path: str, content_type: str
) -> None:
    ended = {"wsgi.input_terminated": True, "CONTENT_LENGTH": "1000"}  # as gunicorn says it
    stream = io.BytesIO(b"Outlook,Wind\nSunny,Weak\n" if content_type == "text/csv" else b"{}")
    response = served.client.post(path, input_stream=stream, content_type=content_type, environ_overrides=ended)
    assert "Content-Length" in assert_problem(response, 400)["detail"]
