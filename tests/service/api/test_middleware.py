"""Behind a proxy, below a prefix, and towards browsers."""

from collections.abc import Iterator

import pytest

from service.settings import Settings
from tests.service.served import ON_SQLITE, Served, assert_problem, serving

CSV = "a,b\n1,x\n2,y\n"
FORWARDED = {"X-Forwarded-Prefix": "/outer", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "trees.example"}
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


def test_every_answer_has_safe_headers(served: Served) -> None:
    for path in ("/v1/models", "/v1/nothing", "/livez", "/docs", "/static/docs.js"):
        with served.client.get(path) as response:
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy, path
            assert "frame-ancestors 'none'" in policy, path
            assert "unsafe" not in policy, path
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Referrer-Policy"] == "no-referrer"


def test_without_listed_origins_no_page_of_another_may_read_an_answer(served: Served) -> None:
    origin = {"Origin": "https://app.example"}
    for response in (
        served.client.get("/v1/models", headers=origin),
        served.client.options("/v1/models", headers=origin | PREFLIGHT),
    ):
        assert not [name for name, _ in response.headers if name.startswith("Access-Control-")]


def test_a_listed_origin_may_and_another_may_not(settings: Settings) -> None:
    with serving(settings, auth="keys", cors_origins="https://app.example,http://localhost:3000") as served:
        for origin in ("https://app.example", "http://localhost:3000"):
            asked = served.client.options("/v1/datasets", headers={"Origin": origin} | PREFLIGHT)
            assert asked.status_code == 200  # a browser asks this without the key
            assert asked.headers["Access-Control-Allow-Origin"] == origin
            assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
            refused = served.client.get("/v1/models", headers={"Origin": origin})
            assert assert_problem(refused, 401)["status"] == 401
            assert refused.headers["Access-Control-Allow-Origin"] == origin  # so that the page can read the problem
            assert "Access-Control-Allow-Credentials" not in refused.headers
        other = served.client.get("/v1/models", headers={"Origin": "https://app.example.evil.example"})
        assert "Access-Control-Allow-Origin" not in other.headers
        assert "Origin" in other.headers["Vary"]


def test_forwarded_headers_are_not_believed_without_a_proxy(served: Served) -> None:
    made = served.client.post("/v1/datasets", data=CSV, content_type="text/csv", headers=FORWARDED)
    assert made.headers["Location"].startswith("/v1/datasets/")


def test_behind_a_proxy_places_are_as_the_caller_sees_them(settings: Settings) -> None:
    with serving(settings, proxies=1) as served:
        made = served.client.post("/v1/datasets", data=CSV, content_type="text/csv", headers=FORWARDED)
        assert made.headers["Location"].startswith("/outer/v1/datasets/")
        problem = assert_problem(served.client.get("/v1/models/none", headers=FORWARDED), 404)
        assert problem["instance"] == "/outer/v1/models/none"
        document = served.client.get("/openapi.json", headers=FORWARDED).get_json()
        assert document["servers"] == [{"url": "/outer"}]


@pytest.mark.parametrize("path", ["/trees/v1/datasets", "/v1/datasets"])
def test_below_a_prefix_all_is_found_whether_or_not_the_proxy_cut_it_off(settings: Settings, path: str) -> None:
    with serving(settings, path_prefix="/trees") as served:
        made = served.client.post(path, data=CSV, content_type="text/csv")
        assert made.headers["Location"].startswith("/trees/v1/datasets/")
        assert served.client.get(made.headers["Location"]).status_code == 200
        with served.client.get("/trees/docs") as page:
            assert page.status_code == 200
        assert served.client.get("/trees/openapi.json").get_json()["servers"] == [{"url": "/trees"}]
        assert_problem(served.client.get("/treesv1/datasets"), 404)


@ON_SQLITE
@pytest.mark.parametrize("prefix", ["", "/trees/x"])
@pytest.mark.parametrize(
    "sent", ["//evil.example", "https://evil.example", "/a//evil.example", "/a?b", "/a%20b", "evil"]
)
def test_a_forwarded_prefix_that_is_no_legal_prefix_is_ignored(settings: Settings, prefix: str, sent: str) -> None:
    with serving(settings, proxies=1, path_prefix=prefix or "/") as served:
        headers = {"Accept": "text/html", "X-Forwarded-Prefix": sent}
        assert served.client.get(f"{prefix}/", headers=headers).headers["Location"] == f"{prefix}/ui/"


@ON_SQLITE
def test_a_line_is_logged_if_a_forwarded_prefix_is_ignored(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings, proxies=1, path_prefix="/logged") as served:  # no other test has logged for this prefix
        for sent, n_lines in (("", 0), ("/", 0), ("/legal", 0), ("/a%20b", 1), ("/a@b", 1)):  # one in ten seconds
            assert served.client.get("/logged/livez", headers={"X-Forwarded-Prefix": sent}).status_code == 200
            assert caplog.text.count("the X-Forwarded-Prefix of a proxy is ignored") == n_lines
    assert "%20" not in caplog.text


@ON_SQLITE
def test_a_forwarded_prefix_may_end_with_a_slash(settings: Settings) -> None:
    with serving(settings, proxies=1) as served:
        headers = {"Accept": "text/html", "X-Forwarded-Prefix": "/trees/"}
        assert served.client.get("/", headers=headers).headers["Location"] == "/trees/ui/"


def test_a_request_that_breaks_the_rules_of_http_is_refused_so_where_requests_are_logged(settings: Settings) -> None:
    with serving(settings, log_requests="on") as served:
        assert_problem(served.client.get("/v1/models", headers={"Host": "no host"}), 400)
        assert_problem(served.client.get("/v1/models", headers={"Transfer-Encoding": "gzip"}), 501)
