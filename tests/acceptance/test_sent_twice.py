"""The same request sent many times, to a service whose web processes are killed meanwhile, on either database."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sqlalchemy import ColumnElement, func, select, update

from service.database import engine as db
from service.database.clock import now
from service.database.engine import Sessions, read_session, transaction
from service.database.tables import DataSet, IdempotentRequest
from service.settings import Settings
from tests.acceptance.running import Running, running, until
from tests.factories import ROOT
from tests.service.conftest import empty_database

CSV = (ROOT / "service" / "examples" / "drug200.csv").read_bytes()
KEY = "5f2b5c1e"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with empty_database(request.param, tmp_path_factory.mktemp("database")) as url:
        yield url


@pytest.fixture(scope="module")
def service(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all tests: each creates data sets of its own name."""
    with running(tmp_path_factory.mktemp("service"), ESPALIER_DATABASE_URL=database_url) as one:
        yield one


@pytest.fixture(scope="module")
def sessions(database_url: str) -> Iterator[Sessions]:
    engine = db.connect(Settings(database_url=database_url))
    yield db.sessions(engine)
    engine.dispose()


def path(name: str) -> str:
    return f"/v1/datasets?name={name}&target=Drug"


def headers(key: str) -> dict[str, str]:
    return {"Content-Type": "text/csv", "Idempotency-Key": key}


def send(service: Running, name: str, key: str = KEY) -> httpx.Response:
    return httpx.post(service.address + path(name), content=CSV, headers=headers(f"{name}-{key}"), timeout=60)


def count(sessions: Sessions, which: ColumnElement[bool]) -> int:
    with read_session(sessions) as session:
        return session.scalar(select(func.count()).where(which)) or 0


def test_many_callers_at_once_are_given_one_data_set(service: Running, sessions: Sessions) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: send(service, "at-once"), range(36)))
    statuses = Counter(one.status_code for one in answers)
    assert statuses.keys() <= {201, 409}, [one.text for one in answers if one.status_code not in (201, 409)]
    assert len({one.content for one in answers if one.status_code == 201}) == 1
    assert {one.json()["type"] for one in answers if one.status_code == 409} <= {"urn:espalier:problem:still-running"}
    assert send(service, "at-once").headers["Idempotent-Replayed"] == "true"
    assert count(sessions, DataSet.name == "at-once") == 1


def test_a_web_server_that_is_killed_in_the_middle_leaves_nothing_behind(service: Running, sessions: Sessions) -> None:
    host, port = service.address.removeprefix("http://").split(":")
    head = f"POST {path('killed')} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(CSV)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers(f"killed-{KEY}").items())
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(head.encode() + b"\r\n" + CSV[:1000])
        until(lambda: count(sessions, IdempotentRequest.claimed_until.is_not(None)) == 1, what="the claim")
        assert send(service, "killed").status_code == 409
        [web] = service.children("serve")
        os.killpg(web, signal.SIGKILL)  # its workers, too: none is left that could give the claim back
    until(lambda: service.children("serve") not in ([], [web]), what="another web server")

    assert until(lambda: _status(service, "killed"), what="an answer") == 409
    with transaction(sessions) as session:  # a minute later
        session.execute(
            update(IdempotentRequest).where(IdempotentRequest.claimed_until.is_not(None)).values(claimed_until=now(-1))
        )
    first, again = send(service, "killed"), send(service, "killed")

    assert (first.status_code, again.status_code) == (201, 201)
    assert (first.content, again.headers["Idempotent-Replayed"]) == (again.content, "true")
    assert count(sessions, DataSet.name == "killed") == 1


def test_of_many_requests_through_kills_and_lost_claims_each_creates_once(service: Running, sessions: Sessions) -> None:
    keys = [f"request-{number}" for number in range(16)]
    answered: list[str] = []

    def insist(key: str) -> bytes:
        while True:
            try:
                response = send(service, "many", key)
            except httpx.TransportError:
                continue
            if response.status_code == 201:
                answered.append(key)
                return response.content
            assert response.status_code in (409, 503), response.text
            with transaction(sessions) as session:  # a claim of the living is taken from them, too
                mine = IdempotentRequest.claimed_until.is_not(None)
                session.execute(update(IdempotentRequest).where(mine).values(claimed_until=now(-1)))

    with ThreadPoolExecutor(8) as pool:
        first = pool.map(insist, keys * 2)
        for enough in (3, 12):
            until(lambda enough=enough: len(answered) > enough, what="some answers")  # type: ignore[misc]
            [web] = service.children("serve")
            os.killpg(web, signal.SIGKILL)
            until(lambda web=web: service.children("serve") not in ([], [web]), what="a server")  # type: ignore[misc]
        contents = list(first)

    assert contents[: len(keys)] == contents[len(keys) :]
    assert count(sessions, DataSet.name == "many") == len(set(contents)) == len(keys)


def _status(service: Running, name: str) -> int | None:
    try:
        return send(service, name).status_code
    except httpx.TransportError:
        return None
