"""Errors on the wire: one table, one shape, no secrets."""

import errno
import logging
from collections.abc import Iterator
from types import ModuleType

import pytest
from werkzeug.exceptions import NotImplemented as NotOffered

import espalier
from service import errors
from service.api.problems import PROBLEMS, SHOWN_FAULTS, is_unexpected, problem_for
from service.settings import Settings
from tests.service.served import Served, assert_problem, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


def errors_of(module: ModuleType) -> list[type[Exception]]:
    return [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", errors_of(espalier))
def test_every_error_of_the_core_is_in_the_table(kind: type[Exception]) -> None:
    assert kind in PROBLEMS


@pytest.mark.parametrize("kind", errors_of(errors))
def test_every_error_of_the_service_is_in_the_table(kind: type[Exception]) -> None:
    assert kind in PROBLEMS


def test_each_slug_stands_for_one_status_and_one_title() -> None:
    meanings = {entry.slug: (entry.status, entry.title) for entry in PROBLEMS.values()}
    assert all(meanings[entry.slug] == (entry.status, entry.title) for entry in PROBLEMS.values())


def test_a_fault_of_the_core_keeps_its_place_code_and_message() -> None:
    problem = problem_for(espalier.RowError([espalier.Fault("/0/Age", "wrong_type", "must be a number")]))
    assert problem.status == 422
    assert problem.faults == (espalier.Fault("/0/Age", "wrong_type", "must be a number"),)
    assert problem.detail == "/0/Age: must be a number"


def test_a_temporary_failure_is_retryable_and_says_when() -> None:
    problem = problem_for(errors.Unavailable("the database is away"))
    assert (problem.status, problem.retryable) == (503, True)
    assert dict(problem.headers)["Retry-After"] == "1"


@pytest.mark.parametrize(
    "error",
    [
        *(OSError(number, "of a file", "/a/path") for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
        espalier.DataError([espalier.Fault("/work", "disk_full", "no space")]),
    ],
)
def test_a_full_disk_is_a_temporary_failure_of_the_service(error: Exception) -> None:
    problem = problem_for(error)
    assert (problem.status, problem.slug, problem.retryable, problem.faults) == (503, "unavailable", True, ())
    assert dict(problem.headers) == {"Retry-After": "1"}
    assert problem.detail == "a disk of the service is full; try again when it has free space"


def test_another_error_of_a_file_is_unexpected() -> None:
    assert problem_for(OSError(errno.EIO, "of a disk")).status == 500


def test_what_the_client_did_is_not_logged_as_a_fault_of_the_service() -> None:
    unexpected = [
        error
        for error in (NotOffered("no"), errors.Unavailable("no"), KeyError("no"))
        if is_unexpected(problem_for(error))
    ]
    assert [type(error) for error in unexpected] == [KeyError]


def test_an_unknown_path_says_what_a_model_name_is(served: Served) -> None:
    problem = assert_problem(served.client.get("/v1/models/a%2Fb/versions"), 404)
    assert "A-Z a-z 0-9 . _ -" in problem["detail"]


@pytest.mark.parametrize("path", ["/v1//models", "/v1/models//tennis", "/v1/models/", "/v1/./models"])
def test_a_path_that_is_nearly_one_is_not_found_and_leads_nowhere(served: Served, path: str) -> None:
    response = served.client.get(path, headers={"Host": "localhost:1"})
    assert_problem(response, 404)
    assert "Location" not in response.headers


@pytest.mark.parametrize("path", ["//v1/models", "///v1/models", "//v1/models/tennis/predict", "//", "//openapi.json"])
def test_a_path_that_begins_with_two_slashes_is_not_found(served: Served, path: str) -> None:
    # As the server gives it: the client takes what follows two slashes for a host.
    assert_problem(served.client.get("/", environ_overrides={"PATH_INFO": path}), 404)


def test_a_wrong_method_says_which_are_legal(served: Served) -> None:
    response = served.client.put("/v1/models")
    problem = assert_problem(response, 405)
    assert "GET" in problem["detail"]
    assert "GET" in response.headers["Allow"]


def test_an_unexpected_error_is_logged_by_its_request_id_and_shows_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret cell 42")

    monkeypatch.setattr("service.repositories.models.list_models", broken)
    with caplog.at_level(logging.ERROR, logger="service"):
        response = served.client.get("/v1/models")
    problem = assert_problem(response, 500)
    assert "secret" not in response.text
    [line] = caplog.records
    assert (line.request_id, line.route, line.exc_info[0]) == (problem["request_id"], "/v1/models", RuntimeError)


def test_of_very_many_faults_only_the_first_are_sent(served: Served) -> None:
    served.train("tennis")
    rows = [{"Nope": 1}] * (SHOWN_FAULTS + 50)
    response = served.post("/v1/models/tennis/predict", {"rows": rows})
    assert response.status_code == 422
    assert len(response.get_json()["errors"]) == SHOWN_FAULTS


def test_a_model_that_is_not_there_is_not_found(served: Served) -> None:
    problem = assert_problem(served.client.get("/v1/models/nothing"), 404)
    assert "nothing" in problem["detail"]


def test_a_process_that_was_asked_to_stop_lives_and_is_not_ready(served: Served) -> None:
    assert served.client.get("/readyz").status_code == 200
    served.service.is_stopping = lambda: True
    assert "is stopping" in assert_problem(served.client.get("/readyz"), 503)["detail"]
    assert served.client.get("/livez").status_code == 200
    assert served.client.get("/v1/models").status_code == 200
