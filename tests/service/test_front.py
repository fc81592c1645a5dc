"""What answers in front of Flask answers as Flask does: the same status, headers, body and record."""

import io
import json
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import orjson
import pytest
from sqlalchemy import func, select
from werkzeug.test import EnvironBuilder

from service import aliases, keys
from service.api.context import ADMITTED, EXTENSION, RAISED
from service.api.front import LATER, ROOM, Front, Later, NotHere
from service.api.rates import Rates
from service.api.recording import keep_together
from service.database.engine import reading, transaction
from service.database.tables import DecisionRecord, Scope
from service.errors import Unavailable
from service.keys import EVERYBODY
from service.settings import Settings
from tests.service.front_requests import (
    BODIES,
    BY_MODEL,
    HEADERS,
    IN_BYTES,
    INFER,
    INFERENCE_HEADERS,
    INFERENCE_PATHS,
    INFERENCES,
    PATHS,
    ROW,
    SKIPPED,
)
from tests.service.inference import UNPACK
from tests.service.served import Served, serving


@dataclass(frozen=True)
class Answer:
    """What came back, without ids and times, and how many decisions were logged."""

    status: str
    headers: list[tuple[str, str]]
    body: object
    n_logged: int


class Counting:
    """Flask, counting how often it is asked."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.n_asked = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.n_asked += 1
        return self.inner(environ, start_response)


@dataclass(frozen=True)
class Both:
    """The two ways into one application."""

    served: Served
    front: Any
    flask: Counting

    def ask(self, path: str, body: object, changes: Mapping[str, str | None]) -> tuple[Answer, Answer, bool]:
        """Ask both; give both answers, and whether the front left it to Flask."""
        flask = self.asked(self.flask, path, body, changes)
        before = self.flask.n_asked
        front = self.asked(self.front, path, body, changes)
        return front, flask, self.flask.n_asked > before

    def asked(self, application: Any, path: str, body: object, changes: Mapping[str, Any]) -> Answer:
        environ = _environ(path, body, changes)
        began: list[Any] = []
        before = self.n_logged()
        parts = application(environ, lambda *told: began.extend(told))
        content = b"".join(parts)
        if hasattr(parts, "close"):
            parts.close()
        status, headers = began[:2]
        assert ("Content-Length", str(len(content))) in headers
        kept = sorted((name, value) for name, value in headers if name not in ("X-Request-Id", "Content-Length"))
        unpack = UNPACK.get(dict(headers).get("Content-Encoding", ""), bytes)
        shown = _shown(unpack(content))
        return Answer(status, kept, shown, self.n_logged() - before)

    def n_logged(self) -> int:
        with reading(self.served.service.sessions) as session:
            return session.scalar(select(func.count()).select_from(DecisionRecord)) or 0


def _environ(path: str, body: object, changes: Mapping[str, Any]) -> dict[str, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    builder = EnvironBuilder(path=path, method="POST", input_stream=io.BytesIO(content))
    environ = builder.get_environ() | {
        "HTTP_HOST": "127.0.0.1:8080",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(content)),
    }
    return {name: value for name, value in (environ | changes).items() if value is not None}


def _shown(content: bytes) -> object:
    """Give JSON decoded; what stands behind it, the ids and times among them, is only counted."""
    if not content.startswith(b"{"):
        return content
    length = content.rfind(b"}") + 1
    return _without_ids(orjson.loads(content[:length])), len(content) - length


def _without_ids(shown: Any) -> Any:
    if isinstance(shown, dict):
        if shown.get("name") == "decision_id":
            return {**shown, "data": len(shown.get("data", ()))}
        return {
            name: bool(part) if name in ("decision_id", "request_id") else _without_ids(part)
            for name, part in shown.items()
        }
    return [_without_ids(part) for part in shown] if isinstance(shown, list) else shown


@pytest.fixture
def both(on_sqlite: Settings) -> Iterator[Both]:
    with serving(on_sqlite) as served:
        yield _prepared(served)


def _prepared(served: Served) -> Both:
    served.train("tennis")
    served.train("tennis", preset="c45")
    with transaction(served.service.sessions) as session:
        aliases.point(session, "tennis", "steady", 1)
    app: Any = served.client.application
    assert isinstance(app.wsgi_app, Front)
    counting = Counting(app.wsgi_app.inner)
    front = Front(counting, lambda: app.extensions[EXTENSION], served.settings)
    return Both(served, front, counting)


def test_every_body_is_answered_as_by_flask(both: Both) -> None:
    for name, body in BODIES.items():
        front, flask, _ = both.ask(BY_MODEL, body, {})
        assert front == flask, name


def test_every_path_is_answered_as_by_flask(both: Both) -> None:
    for path in PATHS:
        front, flask, _ = both.ask(path, BODIES["one row"], {})
        assert front == flask, path


def test_every_header_is_answered_as_by_flask(both: Both) -> None:
    for name, changes in HEADERS.items():
        front, flask, _ = both.ask(BY_MODEL, BODIES["one row"], changes)
        assert front == flask, name


def test_every_inference_is_answered_as_by_flask(both: Both) -> None:
    for body, changes in product(INFERENCES, INFERENCE_HEADERS):
        front, flask, _ = both.ask(INFER, INFERENCES[body], INFERENCE_HEADERS[changes])
        assert front == flask, (body, changes)
    for path in INFERENCE_PATHS:
        front, flask, _ = both.ask(path, INFERENCES["one row"], {})
        assert front == flask, path


def test_an_inference_is_answered_without_flask_whatever_its_client_says_of_its_content(both: Both) -> None:
    length = {"HTTP_INFERENCE_HEADER_CONTENT_LENGTH": str(len(IN_BYTES))}
    for name, body, changes in (
        ("one row", INFERENCES["one row"], {}),
        ("a type", INFERENCES["one row"], {"CONTENT_TYPE": "application/octet-stream"}),
        ("no type", INFERENCES["one row"], {"CONTENT_TYPE": None}),
        ("packed", INFERENCES["an answer worth packing"], {"HTTP_ACCEPT_ENCODING": "gzip"}),
        ("bytes", IN_BYTES + b"\4\0\0\0Weak", length),
    ):
        front, flask, left = both.ask(INFER, body, changes)
        assert (front.status, front.n_logged, left) == ("200 OK", 1, False), name
        assert front.headers == flask.headers, name
    for body in ("a wrong cell", "NUL", "no JSON", "nothing"):
        front, _, left = both.ask(INFER, INFERENCES[body], {})
        assert (front.status[0], left) == ("4", True), body


def test_what_is_answered_is_answered_without_flask_and_what_is_refused_is_refused_by_it(both: Both) -> None:
    for body in ("one row", "two rows", "columns", "no explanation", "all of it", "unseen", *SKIPPED):
        front, _, left = both.ask(BY_MODEL, BODIES[body], {})
        assert (front.status, front.n_logged, left) == ("200 OK", 1, False), body
    for path in PATHS[:2] + PATHS[6:7]:
        front, _, left = both.ask(path, BODIES["one row"], {})
        assert (front.status, left) == ("200 OK", False), path
    for body in ("a wrong cell", "NUL", "NUL in a column", "no JSON", "no rows", "too large for here"):
        front, _, left = both.ask(BY_MODEL, BODIES[body], {})
        assert (front.status[0], left) == ("4", True), body


def test_with_keys_each_caller_is_answered_as_by_flask(on_sqlite: Settings) -> None:
    with serving(on_sqlite, auth="keys", cors_origins="https://app.example", max_requests=1000) as served:
        both = _prepared(served)
        given = {"none": None, "no key": "Bearer esp_", "another way": "Basic YTpi"}
        with transaction(served.service.sessions) as session:
            for name, scopes, models in (
                ("predict", [Scope.PREDICT], None),
                ("read", [Scope.READ], None),
                ("admin", [Scope.ADMIN], None),
                ("this model", [Scope.PREDICT], ["tennis"]),
                ("another model", [Scope.PREDICT], ["other"]),
            ):
                given[name] = f"Bearer {keys.create(session, name=name, scopes=scopes, models=models)[1]}"
        statuses: dict[str, str] = {}
        for (name, token), (place, changes) in product(given.items(), HEADERS.items()):
            front, flask, _ = both.ask(BY_MODEL, BODIES["one row"], {**changes, "HTTP_AUTHORIZATION": token})
            assert front == flask, (name, place)
            statuses.setdefault(name, front.status[:3])

    assert statuses == {
        "none": "401",
        "no key": "401",
        "another way": "401",
        "predict": "200",
        "read": "403",
        "admin": "200",
        "this model": "200",
        "another model": "403",
    }


def test_a_request_is_counted_once_whoever_answers_it(on_sqlite: Settings) -> None:
    with serving(on_sqlite, max_requests=3) as served:
        both = _prepared(served)
        moment = [0.0]
        served.service.rates.clock = lambda: moment[0]
        statuses = []
        for body in ("one row", "no rows", "one row", "one row"):
            shown = both.asked(both.front, BY_MODEL, BODIES[body], {})
            statuses.append(shown.status[:3])

    assert statuses == ["200", "422", "200", "429"]


def test_where_each_request_has_its_line_flask_answers_all(on_sqlite: Settings) -> None:
    with serving(on_sqlite, log_requests="on") as served:
        assert not isinstance(served.client.application.wsgi_app, Front)


def test_together_with_others_it_answers_the_same_and_leaves_the_record_to_the_server(both: Both) -> None:
    service = both.served.service
    for name, body in BODIES.items():
        front, _, left = both.ask(BY_MODEL, body, {})
        later = Later(service.finder.newest, began=0.0)
        began: list[Any] = []
        before = both.n_logged()
        try:
            content = b"".join(both.front(_environ(BY_MODEL, body, {LATER: later}), lambda *told: began.extend(told)))  # noqa: B023
        except NotHere:
            assert left, name
        else:
            assert not left, name
            assert (began[0], _shown(content)) == (front.status, front.body), name
            assert later.record is not None
            assert keep_together(service, [later.record]) == [None]
        assert both.n_logged() == before + (not left), name


def test_who_was_tried_together_with_others_is_counted_once_against_the_limit(on_sqlite: Settings) -> None:
    with serving(on_sqlite) as served:
        both = _prepared(served)
        service = both.served.service
        service.rates = Rates(1, clock=lambda: 0.0)
        tried = _environ(BY_MODEL, BODIES["a wrong cell"], {LATER: Later(service.finder.newest, began=0.0)})
        with pytest.raises(NotHere):
            both.front(tried, print)

        again = both.asked(both.front, BY_MODEL, BODIES["a wrong cell"], {ADMITTED: tried[ADMITTED]})
        another = both.asked(both.front, BY_MODEL, BODIES["one row"], {})

        assert (again.status[:3], another.status[:3]) == ("422", "429")


def test_what_was_raised_while_it_was_tried_is_raised_by_flask_without_another_try(both: Both) -> None:
    for handed in ({RAISED: Unavailable("away")}, {RAISED: Unavailable("away"), ADMITTED: EVERYBODY}):
        answer = both.asked(both.front, BY_MODEL, BODIES["one row"], handed)
        assert (answer.status[:3], answer.n_logged) == ("503", 0)


class Parts(io.BytesIO):
    """A body that comes in parts of seven thousand bytes at most."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(7_000 if size is None or size < 0 else min(size, 7_000))


def test_a_long_body_is_received_whole(both: Both) -> None:
    rows = [ROW] * 500
    body = orjson.dumps({"rows": rows, "explain": "none"}).replace(b"},{", b"}," + b" " * (ROOM // 200) + b"{")
    assert len(body) > 2 * ROOM
    answer = both.asked(both.front, BY_MODEL, body, {"wsgi.input": Parts(body)})
    assert answer.status[:3] == "200"
    assert len(answer.body[0]["predictions"]) == len(rows)


def test_a_long_body_that_was_announced_and_does_not_come_takes_no_memory(both: Both) -> None:
    announced = {"wsgi.input": Parts(b'{"rows": ['), "CONTENT_LENGTH": str(60 * ROOM)}
    tracemalloc.start()
    try:
        answer = both.asked(both.front, BY_MODEL, b"", announced)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.status[:3] == "400"
    assert most < 20 * ROOM
