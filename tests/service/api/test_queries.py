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
