"""What a query may say: each field once, whole numbers in digits."""

from collections.abc import Iterator

import pytest

from service.settings import Settings
from tests.service.served import Served, assert_problem, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


@pytest.mark.parametrize("limit", ["%D9%A1", "1_0", "%2B5", "%205", "5%20", "1e1", "1.0", "0x5", ""])
def test_a_whole_number_in_a_query_is_digits(served: Served, limit: str) -> None:
    response = served.client.get(f"/v1/datasets?limit={limit}")
    assert_problem(response, 422, "/limit")


@pytest.mark.parametrize(
    ("method", "path", "pointer"),
    [
        ("DELETE", "/v1/decisions?subject=Ada&subject=Bob", "/subject"),
        ("GET", "/v1/datasets?limit=1&limit=1", "/limit"),
        ("POST", "/v1/datasets?target=a&target=b", "/target"),
        ("POST", "/v1/models/tennis/predict?alias=production&alias=next", "/alias"),
    ],
)
def test_a_field_that_a_query_says_twice_is_refused(served: Served, method: str, path: str, pointer: str) -> None:
    body = {"rows": [{}]} if "predict" in path else None
    response = served.client.open(path, method=method, json=body)
    assert_problem(response, 422, pointer)


def test_a_stream_whose_query_says_a_field_twice_is_refused(served: Served) -> None:
    served.train("tennis")
    response = served.client.post(
        "/v1/models/tennis/versions/1/predict?explain=none&explain=path",
        data=b"Outlook\nSunny\n",
        content_type="text/csv",
    )
    assert_problem(response, 422, "/explain")


def test_the_number_of_a_version_is_digits(served: Served) -> None:
    served.train("tennis")
    assert served.client.get("/v1/models/tennis/versions/1").status_code == 200
    assert served.client.get("/v1/models/tennis/versions/%D9%A1").status_code == 404  # one, in Arabic


@pytest.mark.parametrize(
    ("method", "path", "legal"),
    [
        ("DELETE", "/v1/models/tennis?version=1", "none"),
        ("DELETE", "/v1/models/tennis/versions/1?version=2", "none"),
        ("GET", "/v1/models/tennis?version=1", "none"),
        ("GET", "/v1/models/tennis/versions/1/importances?version=1", "none"),
        ("POST", "/v1/models/tennis/predict?version=1", "alias"),
        ("POST", "/v1/models/tennis/versions/1/predict?version=1", "none"),
        ("POST", "/v1/models/tennis/predict?alias=a&version=1", "alias"),
    ],
)
def test_what_no_query_of_a_path_has_is_refused(served: Served, method: str, path: str, legal: str) -> None:
    served.train("tennis")
    body = {"rows": [{}]} if "predict" in path else None
    problem = assert_problem(served.client.open(path, method=method, json=body), 422, "/version")
    assert problem["errors"][0]["code"] == "unknown_field"
    assert problem["errors"][0]["message"] == f"there is no such field; legal: {legal}"
    assert served.client.get("/v1/models/tennis/versions/1").status_code == 200


@pytest.mark.parametrize("content_type", ["application/json", "text/csv"])
def test_a_path_with_a_version_has_no_alias(served: Served, content_type: str) -> None:
    served.train("tennis")
    data = b'{"rows":[{}]}' if content_type == "application/json" else b"Outlook\nSunny\n"
    path = "/v1/models/tennis/versions/1/predict?alias=a"
    assert_problem(served.client.post(path, data=data, content_type=content_type), 422, "/alias")


def test_the_inference_protocol_has_no_queries(served: Served) -> None:
    served.train("tennis")
    assert served.client.post("/v2/models/tennis/infer?version=1", json={"inputs": []}).status_code == 400
    assert "there is no such field" in served.client.get("/v2/models/tennis?version=1").get_json()["error"]


@pytest.mark.parametrize("path", ["/", "/livez", "/readyz", "/health", "/metrics", "/v2", "/v2/health/ready"])
def test_probes_may_add_what_they_like(served: Served, path: str) -> None:
    assert served.client.get(f"{path}?probe=1").status_code == 200


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/models/tennis/predict", "/v2/models/tennis", "/livez"])
@pytest.mark.parametrize("query", ["model=%ff", "model=a%C3", "%ff=1", "model=\xff", "model=%ed%a0%80"])
def test_a_query_that_is_not_utf8_is_malformed(served: Served, path: str, query: str) -> None:
    response = served.client.open(path, environ_overrides={"QUERY_STRING": query})
    assert "UTF-8" in assert_problem(response, 400)["detail"]


def test_a_query_may_have_any_text_in_utf8(served: Served) -> None:
    for query in ("model=%C3%A9", "model=\xc3\xa9", "model=%F0%9F%8C%B3"):
        assert served.client.open("/v1/jobs", environ_overrides={"QUERY_STRING": query}).status_code == 200


def test_a_name_in_a_query_becomes_a_json_pointer(served: Served) -> None:
    assert_problem(served.client.get("/v1/jobs?a/b~=1&a/b~=2"), 422, "/a~1b~0")
