"""What may go into the lane is small, whole and in no way unusual; all else is for gunicorn to read."""

import pytest

from service.api.lane import read_small

BODY = b'{"rows": [{"Wind": "Weak"}]}'
FIRST = "POST /v1/models/tennis/predict HTTP/1.1"
FIELDS = ("Host: 127.0.0.1:8080", "Content-Type: application/json", f"Content-Length: {len(BODY)}")


def request(first: str = FIRST, *more: str, fields: tuple[str, ...] = FIELDS, body: bytes = BODY) -> bytes:
    return "\r\n".join([first, *fields, *more, "", ""]).encode() + body


def test_a_small_prediction_is_read_as_gunicorn_would_read_it() -> None:
    environ = read_small(
        request(f"{FIRST[:30]}?alias=steady HTTP/1.1", "Authorization: Bearer esp_a_b", "X-Own:  a b ")
    )

    assert environ is not None
    assert environ.pop("wsgi.input").read() == BODY
    assert environ == {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/v1/models/tennis/predict",
        "QUERY_STRING": "alias=steady",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(BODY)),
        "HTTP_HOST": "127.0.0.1:8080",
        "HTTP_AUTHORIZATION": "Bearer esp_a_b",
        "HTTP_X_OWN": "a b",
        "wsgi.url_scheme": "http",
    }


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(request()[:-1], id="the last byte is not there yet"),
        pytest.param(request()[:40], id="half a head"),
        pytest.param(f"{FIRST}\r\nHost: a\r\nContent-Length: 0".encode(), id="a head without its end"),
        pytest.param(request(FIRST, *(f"X-{place}: a" for place in range(99))), id="many fields"),
        pytest.param(request() + b"P", id="more comes behind it"),
        pytest.param(request() + request(), id="two requests"),
        pytest.param(request("GET /v1/models/tennis/predict HTTP/1.1"), id="another method"),
        pytest.param(request("POST /v1/models/tennis/predict HTTP/1.0"), id="another protocol"),
        pytest.param(request("POST /v1/training-jobs HTTP/1.1"), id="another path"),
        pytest.param(request("POST /v1/models/a%2Fb/predict HTTP/1.1"), id="a path in code"),
        pytest.param(request("POST http://a/v1/models/tennis/predict HTTP/1.1"), id="a whole address"),
        pytest.param(request(FIRST, "Transfer-Encoding: chunked"), id="chunked"),
        pytest.param(request(FIRST, "Content-Encoding: gzip"), id="packed"),
        pytest.param(request(FIRST, "Expect: 100-continue"), id="waits for a word"),
        pytest.param(request(FIRST, "Upgrade: h2c"), id="another protocol is wanted"),
        pytest.param(request(FIRST, "Connection: close"), id="to be closed"),
        pytest.param(request(FIRST, f"Content-Length: {len(BODY)}"), id="two lengths"),
        pytest.param(request(FIRST, "Host: b"), id="two names"),
        pytest.param(request(FIRST, " folded"), id="a folded line"),
        pytest.param(request(FIRST, "X_Own: a"), id="an underscore"),
        pytest.param(request(FIRST, "X-Own : a"), id="a space before the colon"),
        pytest.param(request(FIRST, "X-Own: a\nb"), id="a line feed alone"),
        pytest.param(request(FIRST, "X-Own: \xe9"), id="a sign that is not ASCII"),
        pytest.param(request(FIRST, "X-Own: " + "a" * 4096), id="a long head"),
        pytest.param(request(fields=FIELDS[:2]), id="no length"),
        pytest.param(request(fields=(*FIELDS[:2], f"Content-Length: +{len(BODY)}")), id="a length with a sign"),
    ],
)
def test_what_is_unusual_is_not_for_the_lane(content: bytes) -> None:
    assert read_small(content) is None


def test_a_small_inference_is_for_the_lane_and_one_of_many_rows_is_not() -> None:
    first = "POST /v2/models/tennis/infer HTTP/1.1"

    def is_read(body: bytes) -> bool:
        fields = (FIELDS[0], f"Content-Length: {len(body)}")
        return read_small(request(first, fields=fields, body=body)) is not None

    assert is_read(b'{"inputs": [' + b",".join([b'{"shape": [1]}'] * 60) + b"]}")
    assert is_read(b'{"inputs": [{"shape": [16, 20]}]}')
    assert not is_read(b'{"inputs": [{"shape": [17]}]}')
    assert not is_read(b'{"inputs": [{"shape": [1]}, {"shape" :[ 1000, 1]}]}')
    assert not is_read(b'{"inputs": [{"shape": [' + b"9" * 5000 + b"]}]}")
    assert not is_read(b'{"inputs": [{"sh\\u0061pe": [17]}]}')


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"rows": [' + b"{}," * 20 + b"{}]}", id="many rows"),
        pytest.param(b'{"columns": {"Wind": ["Weak", "Weak"]}}', id="columns"),
        pytest.param(b'{"rows": [{}], "explain": "full"}', id="a look at every node"),
        pytest.param(b'{"rows": [{}], "explain": "\\u0066ull"}', id="the same, hidden"),
    ],
)
def test_what_takes_long_does_not_hold_up_the_lane(body: bytes) -> None:
    fields = (*FIELDS[:2], f"Content-Length: {len(body)}")
    assert read_small(request(fields=fields, body=body)) is None
