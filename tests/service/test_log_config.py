"""Log lines: of one form, with what they are about, and without a value of the caller's data."""

import io
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from structlog.contextvars import bound_contextvars

from service import log_config
from service.database.engine import transaction
from service.errors import Unavailable
from service.settings import Settings
from tests.acceptance.running import environment_for, run_command, running
from tests.service.served import Served, assert_problem, serving

SECRET = "hunter2-4711"  # noqa: S105 - what a caller would not want to read in a log
Lines = Callable[[], list[dict[str, Any]]]


@contextmanager
def written(*, is_text: bool = False) -> Iterator[io.StringIO]:
    """Give what is logged from the level info on, as a process writes it."""
    root, handler = logging.getLogger(), logging.StreamHandler(io.StringIO())
    handler.setFormatter(log_config.formatter(is_text=is_text))
    level = root.level
    root.addHandler(handler)
    root.setLevel("INFO")
    yield handler.stream
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Give the lines that were written so far."""
    with written() as stream:
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_its_fields_and_what_it_is_about(lines: Lines) -> None:
    log = logging.getLogger("service.worker.loop")

    with bound_contextvars(job_id="j1"):
        log.info("job %s: %s", "j1", "succeeded", extra={"attempt": 2})
        other = threading.Thread(target=log.warning, args=("of another thread",))
        other.start()
        other.join()
    log.debug("not so grave")

    first, second = lines()
    assert first.pop("timestamp").endswith("Z")
    assert isinstance(first.pop("process"), int)
    expected = {
        "event": "job j1: succeeded",
        "level": "info",
        "logger": "service.worker.loop",
        "attempt": 2,
        "job_id": "j1",
    }
    assert first == expected
    assert ("job_id" in second, second["level"]) == (False, "warning")


def test_of_an_exception_the_place_is_written_and_a_message_only_if_it_can_hold_no_data(lines: Lines) -> None:
    for error in (ValueError(SECRET), KeyError(SECRET), Unavailable("the database is away"), OSError(28, "disk full")):
        try:
            try:
                raise RuntimeError(SECRET)
            except RuntimeError as cause:
                raise error from cause
        except Exception as caught:
            logging.getLogger("service").error("failed", exc_info=caught)

    shown = [line["exception"] for line in lines()]
    assert [one["type"] for one in shown] == ["ValueError", "KeyError", "Unavailable", "OSError"]
    assert [one["message"] for one in shown] == [None, None, "the database is away", "[Errno 28] disk full"]
    assert all(Path(__file__).name in one["frames"][-1] and one["cause"] == {"type": "RuntimeError"} for one in shown)
    assert SECRET not in json.dumps(lines())


def test_for_a_person_a_line_is_text() -> None:
    with written(is_text=True) as stream:
        try:
            raise ValueError(SECRET)
        except ValueError:
            logging.getLogger("service").exception("it failed", extra={"job_id": "j1"})

    head, *frames, last = stream.getvalue().splitlines()
    assert "error   it failed  job_id=j1 process=" in head
    assert all(frame.startswith("    /") for frame in frames)
    assert last == "    ValueError: (not logged: it may contain data)"


def test_a_request_has_a_line_only_if_asked_for_and_it_names_the_route_not_the_path(
    settings: Settings, lines: Lines
) -> None:
    with serving(settings) as quiet:
        response = quiet.client.get("/v1/models")
        assert "X-Request-Id" not in response.headers
        assert lines() == []
    with serving(settings, log_requests="on") as served:
        response = served.client.get(f"/v1/models/{SECRET}?limit={SECRET}", headers={"X-Request-Id": "mine"})
        response.close()
        [line] = lines()
    assert line["request_id"] == response.headers["X-Request-Id"] == response.get_json()["request_id"] != "mine"
    assert {name: line[name] for name in ("event", "method", "route", "status", "key_id")} == {
        "event": "request",
        "method": "GET",
        "route": "/v1/models/<model:name>",
        "status": 422,  # the path takes no query
        "key_id": None,
    }
    assert SECRET not in json.dumps(line)


def test_behind_a_proxy_its_name_for_a_request_is_taken_if_it_is_one(settings: Settings) -> None:
    with serving(settings, proxies=1) as served:

        def named(given: str) -> str:
            return served.client.get("/v1/none", headers={"X-Request-Id": given}).headers["X-Request-Id"]

        assert named("a1.b2-c3") == "a1.b2-c3"
        assert named("a b") != "a b"
        assert named("x" * 65) != "x" * 65


def test_a_failure_is_written_with_its_request_and_without_the_parameters_of_a_statement(
    settings: Settings, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(settings) as served:

        def broken(*_: object, **__: object) -> None:
            with transaction(served.service.sessions) as session:
                session.execute(sqlalchemy.text("SELECT x FROM nothing WHERE y = :y"), {"y": SECRET})

        monkeypatch.setattr("service.repositories.models.list_models", broken)
        assert served.client.get("/v1/models").status_code in (500, 503)
        _train_and_fail(served, monkeypatch)

    assert {line["event"] for line in lines()} - {"requests are answered 503"} == {"a request failed"}
    assert SECRET not in json.dumps(lines())
    failed = [line for line in lines() if line["event"] == "a request failed"]
    assert all(len(line["request_id"]) == 32 and line["exception"]["frames"] for line in failed)


def test_why_the_database_cannot_be_used_is_written_once_in_a_while(
    tmp_path: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 100.0
    monkeypatch.setattr("service.log_config.time.monotonic", lambda: moment)
    folder = tmp_path / "folder.db"
    folder.mkdir()
    with serving(Settings(database_url=f"sqlite:///{folder}")) as served:
        for _ in range(5):
            assert "SQLITE" not in assert_problem(served.client.get("/v1/models"), 503)["detail"]
        moment += log_config.WARNING_SECONDS
        assert_problem(served.client.get("/v1/models/none"), 503)

    first, second = lines()
    assert first["event"] == "requests are answered 503"
    assert first["reason"] == "the database cannot be used at the moment (SQLITE_CANTOPEN)"
    assert (first["route"], second["route"]) == ("/v1/models", "/v1/models/<model:name>")
    assert (first["left_out"], second["left_out"]) == (0, 4)


def _train_and_fail(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a prediction fail with an error that quotes the row."""

    def broken(_: object, rows: list[dict[str, str]], **__: object) -> None:
        raise RuntimeError(f"cannot answer {rows}")

    served.train("play")
    monkeypatch.setattr("espalier.explain_each", broken)
    assert served.post("/v1/models/play/predict", {"rows": [{"Outlook": SECRET}]}).status_code == 500


def test_the_processes_write_json_where_nobody_sits(tmp_path: Path) -> None:
    with running(tmp_path, ESPALIER_LOG_REQUESTS="on", ESPALIER_LOG_LEVEL="info") as service:
        service.train("play", service.upload("a,b\n1,x\n2,y\n3,x\n4,y\n", name="rows", target="b"), preset="cart")
        output = service.output()

    told = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    jobs = [line["event"].partition(": ")[2] for line in told if line["logger"] == "service.worker.loop"]
    assert jobs == ["attempt 1 of 3", "succeeded"]
    assert {line["job_id"] for line in told if line["logger"] == "service.worker.loop"}
    assert "/v1/training-jobs" in {line.get("route") for line in told if line["event"] == "request"}
    assert run_command(["serve"], env=environment_for(tmp_path) | {"ESPALIER_LOG_LEVEL": "loud"}).returncode == 2
