"""Where keys are off, a web page of elsewhere cannot use the service through a browser on this machine."""

from collections.abc import Iterator

import pytest

from service.settings import Settings
from tests.service.served import Served, assert_problem, serving

CSV = "a,b\n1,x\n2,y\n"
LISTED = "https://app.example"


@pytest.fixture
def settings(on_sqlite: Settings) -> Settings:
    """One kind of database will do: requests are refused before it is asked."""
    return on_sqlite


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings, cors_origins=LISTED) as one:
        yield one


def upload_status(served: Served, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = served.client.post("/v1/datasets", data=CSV, content_type="text/csv", headers=named)
    if response.status_code == 403:
        assert_problem(response, 403)
    return response.status_code


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("127.1.2.3", 200),
        ("LocalHost:8080", 200),
        ("[::1]:8080", 200),
        ("[::1]", 200),
        ("evil.example", 403),
        ("evil.example:8080", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("192.168.1.5:8080", 403),
        ("[2001:db8::1]", 403),
        ("127.0.0.1:", 200),
        ("127.0.0.1:8080,evil.example", 400),  # no host at all
        ("evil.example@127.0.0.1", 400),
    ],
)
def test_only_names_of_this_machine_are_answered(served: Served, host: str, status: int) -> None:
    for path in ("/v1/models", "/livez", "/openapi.json", "/docs"):
        with served.client.get(path, headers={"Host": host}) as response:
            assert response.status_code == status
            if status == 403:
                assert assert_problem(response, 403)["type"] == "urn:espalier:problem:foreign-page"


def test_what_a_header_says_of_a_proxy_does_not_hide_a_name_of_elsewhere(settings: Settings) -> None:
    with serving(settings, proxies=1) as served:
        forged = {"Host": "evil.example", "X-Forwarded-Host": "localhost"}
        assert_problem(served.client.get("/v1/models", headers=forged), 403)
        assert served.client.get("/v1/models", headers={"X-Forwarded-Host": "trees.example"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"Origin": "http://localhost"}, 201),
        ({"Origin": "http://localhost", "Sec_Fetch_Site": "same-origin"}, 201),
        ({"Origin": LISTED, "Sec_Fetch_Site": "cross-site"}, 201),
        ({"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:3000", "Sec_Fetch_Site": "same-site"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
    ],
)
def test_only_pages_of_its_own_or_listed_ones_may_change_something(
    served: Served, headers: dict[str, str], status: int
) -> None:
    assert upload_status(served, **headers) == status
    assert len(served.client.get("/v1/datasets").get_json()["items"]) == (status == 201)


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "models/m/aliases/a"), ("PATCH", "datasets/x"), ("DELETE", "keys/x")]
)
def test_every_method_that_changes_something_is_guarded(served: Served, method: str, path: str) -> None:
    response = served.client.open(f"/v1/{path}", method=method, headers={"Origin": "https://evil.example"})
    assert "evil.example" in assert_problem(response, 403)["detail"]


def test_looking_is_open_and_cors_says_who_may_read(served: Served) -> None:
    for origin in (LISTED, "https://evil.example"):
        headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
        answered = served.client.get("/v1/models", headers=headers)
        asked = served.client.options("/v1/models", headers=headers | {"Access-Control-Request-Method": "POST"})
        assert (answered.status_code, asked.status_code) == (200, 200)
        assert {"Access-Control-Allow-Origin" in one.headers for one in (answered, asked)} == {origin == LISTED}


def test_a_page_may_read_and_send_every_header_of_the_service(served: Served) -> None:
    headers = {"Origin": LISTED, "Access-Control-Request-Method": "POST"}
    answered = served.client.options("/v1/models", headers=headers).headers
    own = ("Espalier-Version", "Espalier-Operating-Point", "Espalier-Audited", "Inference-Header-Content-Length")
    for name in (*own, "Content-Disposition"):
        assert name in answered["Access-Control-Expose-Headers"].split(", ")
    for name in ("Content-Encoding", "If-Match", "Inference-Header-Content-Length", "Last-Event-ID"):
        assert name in answered["Access-Control-Allow-Headers"].split(", ")


def test_where_keys_are_on_names_and_pages_do_not_matter(settings: Settings) -> None:
    with serving(settings, auth="keys") as served:
        headers = {"Host": "trees.example", "Origin": "https://evil.example"}
        assert served.client.get("/livez", headers=headers).status_code == 200
        assert_problem(served.client.post("/v1/training-jobs", json={}, headers=headers), 401)


def test_where_keys_are_off_none_is_made(served: Served) -> None:
    response = served.post("/v1/keys", {"name": "robot", "scopes": ["read"]})
    assert "ESPALIER_AUTH=keys" in assert_problem(response, 409)["detail"]
    assert served.client.get("/v1/keys").get_json()["items"] == []
