"""What a newcomer tries first: the bare address, and /health."""

from collections.abc import Iterator

import pytest

from service.settings import Settings
from tests.service.served import Served, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


def test_the_bare_address_says_where_to_begin(served: Served) -> None:
    start = served.client.get("/").get_json()
    assert start["service"] == "Espalier"
    for name in ("pages", "documentation", "openapi", "data_sets", "models", "health"):
        with served.client.get(start[name]) as response:
            assert response.status_code == 200, name


@pytest.mark.parametrize("accepts", ["text/html,application/xhtml+xml,*/*;q=0.8", "text/html"])
def test_a_browser_is_sent_to_the_pages(served: Served, accepts: str) -> None:
    response = served.client.get("/", headers={"Accept": accepts})
    assert (response.status_code, response.headers["Location"]) == (302, "/ui/")


def test_a_redirect_does_not_repeat_the_name_that_the_caller_gives(served: Served) -> None:
    response = served.client.get("/", headers={"Accept": "text/html", "Host": "localhost:8080"})
    assert response.headers["Location"] == "/ui/"


@pytest.mark.parametrize("accepts", ["application/json", "*/*", ""])
def test_a_program_is_answered_with_json(served: Served, accepts: str) -> None:
    assert served.client.get("/", headers={"Accept": accepts}).content_type == "application/json"


def test_health_is_readiness(served: Served) -> None:
    assert served.client.get("/health").get_json() == served.client.get("/readyz").get_json() == {"status": "ready"}
    served.service.is_stopping = lambda: True
    assert served.client.get("/health").status_code == 503


def test_without_a_database_the_process_is_live_but_not_ready() -> None:
    with serving(Settings(database_url="postgresql+psycopg://nobody:secret@127.0.0.1:1/none")) as served:
        assert served.client.get("/livez").status_code == 200
        problem = served.client.get("/readyz").get_json()
    assert (problem["status"], "the database cannot be reached" in problem["detail"]) == (503, True)
