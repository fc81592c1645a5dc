"""A batch of the lane: each request is answered, or left to a thread, whatever becomes of those beside it."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import delete, func, select

from service.api.context import RAISED
from service.api.lane import Arrival, Lane, read_small
from service.database.engine import reading, transaction
from service.database.tables import DecisionRecord, Version
from service.errors import Conflict
from service.settings import Settings
from tests.service.served import Served, serving

BODY = b'{"rows": [{"Wind": "Weak"}]}'


@dataclass
class Connection:
    """What gunicorn has of a connection, and the client's end of it."""

    sock: socket.socket
    client: socket.socket
    given_back: list[bytes] = field(default_factory=list)

    @property
    def parser(self) -> Any:
        return self

    @property
    def unreader(self) -> Any:
        return self

    def unread(self, content: bytes) -> None:
        self.given_back.append(content)

    def status(self) -> int:
        self.client.settimeout(5)
        return int(self.client.recv(2**16).split()[1])


@dataclass
class Worker:
    """What a lane needs of gunicorn's worker: all that is done there is written down."""

    alive: bool = True
    max_keepalived: int = 1000
    keepalived_conns: list[Connection] = field(default_factory=list)
    left: list[Connection] = field(default_factory=list)
    done: list[Connection] = field(default_factory=list)
    sending: list[Callable[[], bool]] = field(default_factory=list)

    @property
    def tpool(self) -> Any:
        return self

    def submit(self, send: Callable[[], bool]) -> Any:
        self.sending.append(send)
        return Future()

    @property
    def method_queue(self) -> Any:
        return self

    def defer(self, _what: Callable[..., Any], connections: list[Connection], _how: Any) -> None:
        self.done.extend(connections)

    def finish_all(self) -> None:
        raise AssertionError("in the main loop only")

    def enqueue_req(self, connection: Connection) -> None:
        self.left.append(connection)


@dataclass
class Laid:
    """A lane on an application, without its thread."""

    served: Served
    worker: Worker
    lane: Lane
    open: ExitStack

    def arrival(self, path: str = "/v1/models/tennis/predict") -> Arrival:
        connection = Connection(*map(self.open.enter_context, socket.socketpair()))
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        content = f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
        environ = read_small(content)
        assert environ is not None
        return Arrival(connection, content, environ | {"espalier.began": 0.0})

    def look_up(self) -> None:
        """Have all that the models need looked up, as requests before these have it."""
        for path in ("tennis", "other/versions/1"):
            assert self.served.post(f"/v1/models/{path}/predict", {"rows": [{}]}).status_code == 200

    def n_logged(self) -> int:
        with reading(self.served.service.sessions) as session:
            return session.scalar(select(func.count()).select_from(DecisionRecord)) or 0


@pytest.fixture
def laid(on_sqlite: Settings) -> Iterator[Laid]:
    with serving(on_sqlite) as served, ExitStack() as sockets:
        for name in ("tennis", "other"):
            served.train(name)
        for recent in (served.service._tables, served.service.finder.found):  # what is kept does not grow old
            recent.clock = lambda: 0.0
        worker = Worker()
        lane = Lane(worker, served.client.application.wsgi_app, served.service)  # type: ignore[arg-type]
        yield Laid(served, worker, lane, sockets)


def test_what_was_looked_up_is_answered_and_the_records_are_committed_together(laid: Laid) -> None:
    batch = [laid.arrival() for _ in range(3)]
    laid.look_up()
    before = laid.n_logged()
    laid.lane.answer(batch)
    assert [arrival.connection.status() for arrival in batch] == [200, 200, 200]
    assert (laid.worker.left, laid.n_logged() - before) == ([], 3)
    assert laid.worker.done == [arrival.connection for arrival in batch]


def test_a_record_that_is_refused_is_left_to_a_thread_and_those_beside_it_are_sent(laid: Laid) -> None:
    batch = [laid.arrival(), laid.arrival("/v1/models/other/versions/1/predict"), laid.arrival()]
    good, refused, also_good = (arrival.connection for arrival in batch)
    laid.look_up()
    before = laid.n_logged()
    with transaction(laid.served.service.sessions) as session:  # another process does: this one has not heard of it
        of_other = select(Version.id).join(Version.model).where(Version.model.has(name="other"))
        session.execute(delete(DecisionRecord).where(DecisionRecord.version_id.in_(of_other)))
        session.execute(delete(Version).where(Version.id.in_(of_other)))
    laid.lane.answer(batch)
    assert (good.status(), also_good.status()) == (200, 200)
    assert laid.worker.left == [refused]
    assert refused.given_back == [batch[1].content]
    assert isinstance(batch[1].environ[RAISED], Conflict)
    assert laid.n_logged() - before == 2 - 1  # of the other's there was one before


def test_what_has_to_be_looked_up_is_left_to_a_thread_and_holds_nobody_up(laid: Laid) -> None:
    laid.served.train("new")
    laid.look_up()
    batch = [laid.arrival(), laid.arrival("/v1/models/new/predict"), laid.arrival("/v1/models/none/predict")]
    laid.lane.answer(batch)
    assert batch[0].connection.status() == 200
    assert laid.worker.left == [arrival.connection for arrival in batch[1:]]
    assert all(RAISED not in arrival.environ for arrival in batch)


def test_a_client_that_has_gone_takes_nobody_with_it(laid: Laid) -> None:
    batch = [laid.arrival() for _ in range(3)]
    batch[1].connection.client.close()
    laid.look_up()
    laid.lane.answer(batch)
    assert [batch[place].connection.status() for place in (0, 2)] == [200, 200]
    assert sorted(map(id, laid.worker.done)) == sorted(id(arrival.connection) for arrival in batch)


def test_an_answer_that_its_client_does_not_take_is_sent_by_a_thread_and_whole(laid: Laid) -> None:
    batch = [laid.arrival() for _ in range(3)]
    deaf = batch[0].connection
    deaf.sock.setblocking(False)
    n_before = 0
    with suppress(BlockingIOError):
        while True:
            n_before += deaf.sock.send(bytes(2**16))
    laid.look_up()
    laid.lane.answer(batch)
    assert [arrival.connection.status() for arrival in batch[1:]] == [200, 200]
    assert laid.worker.done == [arrival.connection for arrival in batch[1:]]

    [send] = laid.worker.sending
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(lambda: deaf.client.recv(n_before, socket.MSG_WAITALL))
        assert send() is True
        assert len(reading.result()) == n_before
    assert deaf.status() == 200
