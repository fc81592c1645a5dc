"""The way of small predictions through a web process: many at a time, by one thread.

A thread a request costs more than the answer: two are woken for each, and all of them wait for the interpreter's lock.
So what is surely a small prediction, whole already, on a connection that was kept open, goes into the lane. Whatever
comes while the lane is at work is its next batch::

    main loop ── small and whole? ─┬─ yes ── lane: each answered ─┬── one commit ──┬── each sent ── main loop
                                   │                              │ not here       │ refused
                                   └─ no ─── a thread, as gunicorn does it, reads it anew

What a thread answers is not touched: the bytes are given back to gunicorn's reader. A 200 is sent after the commit.
"""

import io
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any, Final

from gunicorn.util import http_date

from service.api.context import ADMITTED, BEGAN, EXTENSION, RAISED, Service
from service.api.front import LATER, Later
from service.api.recording import keep_together
from service.api.sharing import SharingWorker
from service.errors import Unavailable
from service.recent import in_haste

__all__ = ["Arrival", "Lane", "LaneWorker", "read_small"]

LOG: Final = logging.getLogger(__name__)

MOST_BYTES: Final = 16_384
"""That are looked at of a request; what is longer is a thread's."""
MOST_HEAD: Final = 4_096
MOST_FIELDS: Final = 50
"""Header fields; gunicorn refuses a request of more than 100."""
MOST_ROWS: Final = 16
"""Of a request; more rows hold up others."""
MOST_OBJECTS: Final[Mapping[str, int]] = {"predict": MOST_ROWS, "infer": 128}
"""In a body, by what is asked for: its rows, or its tensors."""
LATE_SECONDS: Final = 0.25
"""So long a batch may take before what comes is left to threads: the database does not answer at the moment."""
REQUEST: Final = re.compile(
    r"POST (?P<path>/[A-Za-z0-9._/-]*/(?P<verb>predict|infer))(?:\?(?P<query>[A-Za-z0-9._=-]*))? HTTP/1\.1"
)
FIELD: Final = re.compile(r"(?P<name>[A-Za-z0-9-]+):[ \t]*(?P<value>[!-~](?:[ -~]*[!-~])?)[ \t]*")
NOT_SMALL: Final = re.compile(rb'\\|"columns"|"full"')
"""In a body: an escape may hide one of the others."""
SHAPE: Final = re.compile(rb'"shape"\s*:\s*\[\s*([0-9]*)')
"""In a body: how many rows a tensor has."""
UNUSUAL: Final = frozenset({"HTTP_TRANSFER_ENCODING", "HTTP_CONTENT_ENCODING", "HTTP_EXPECT", "HTTP_UPGRADE"})
HANDED: Final = (ADMITTED, RAISED, BEGAN)
WHERE: Final = "gunicorn.socket"
NOTHING: Final[Mapping[str, Any]] = {}


def read_small(content: bytes) -> dict[str, Any] | None:
    """Read a request into a WSGI environment if it is small, whole, and in no way unusual; else give None.

    Of what is not read here gunicorn decides what it is: this is stricter than HTTP.
    """
    head, end, body = content.partition(b"\r\n\r\n")
    if len(head) > MOST_HEAD or not head.isascii():
        return None
    first, *lines = head.decode().split("\r\n")
    asked = REQUEST.fullmatch(first)
    if asked is None or not end or len(lines) > MOST_FIELDS or _has_many_rows(body, asked["verb"]):
        return None
    environ: dict[str, Any] = {}
    for line in lines:
        field = FIELD.fullmatch(line)
        name = "" if field is None else f"HTTP_{field['name'].upper().replace('-', '_')}"
        if field is None or name in environ:
            return None
        environ[name] = field["value"]
    length = environ.pop("HTTP_CONTENT_LENGTH", "")
    if (
        length != str(len(body))
        or environ.get("HTTP_CONNECTION", "keep-alive").lower() != "keep-alive"
        or not UNUSUAL.isdisjoint(environ)
    ):
        return None
    if "HTTP_CONTENT_TYPE" in environ:
        environ["CONTENT_TYPE"] = environ.pop("HTTP_CONTENT_TYPE")
    environ |= {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": asked["path"],
        "QUERY_STRING": asked["query"] or "",
        "CONTENT_LENGTH": length,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
    }
    return environ


def _has_many_rows(body: bytes, verb: str) -> bool:
    """Whether there are many rows in a body, or may be."""
    return (
        body.count(b"{") > MOST_OBJECTS[verb]
        or NOT_SMALL.search(body) is not None
        or any(len(rows) > len(str(MOST_ROWS)) or int(rows or b"0") > MOST_ROWS for rows in SHAPE.findall(body))
    )


@dataclass(slots=True, eq=False)
class Arrival:
    """A request in the lane, and the answer to it."""

    connection: Any  # gunicorn's TConn
    content: bytes
    environ: dict[str, Any]
    later: Later | None = None
    head: str = ""
    body: bytes = b""
    is_over: bool = False  # it is no more the lane's


@dataclass(frozen=True, slots=True)
class _Done:
    """What became of a connection, as gunicorn's `finish_request` asks for it."""

    keeps_open: bool

    def cancelled(self) -> bool:
        """Say that it was not."""
        return False

    def result(self) -> bool:
        """Say whether the connection stays open."""
        return self.keeps_open


class LaneWorker(SharingWorker):
    """gunicorn's worker with threads, and a lane."""

    wsgi: Any
    _lane: "Lane | None" = None

    def run(self) -> None:
        """Serve until asked to stop."""
        service: Service = self.wsgi.extensions[EXTENSION]
        if service.has_front:
            self._lane = Lane(self, self.wsgi, service)
            self._lane.begin()
            self.wsgi = self._lane.with_what_was_handed
        super().run()

    def on_client_socket_readable(self, conn: Any, client: socket.socket) -> None:
        """Take a request on a connection that was kept open: into the lane, or as the parent does, to a thread."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        if self._lane is not None and not conn.is_http2:
            try:
                content = client.recv(MOST_BYTES)
            except OSError:  # a thread finds out what is the matter
                content = b""
            if content and self._lane.take(conn, content):
                return
            conn.parser.unreader.unread(content)
        self.enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """Answer a request by a thread; afterwards nothing is kept of what the lane handed over with it."""
        client = conn.sock
        try:
            return super().handle(conn)
        finally:
            if self._lane is not None:
                self._lane.forget(client)

    def finish_all(self, connections: Sequence[Any], done: _Done) -> None:
        """Wait for the next request on each connection, or close it; called in the main loop."""
        for connection in connections:
            self.finish_request(connection, done)


class Lane:
    """The requests that are answered together; `take` is called by the main loop, the rest is the lane's thread."""

    def __init__(self, worker: LaneWorker, application: Callable[..., Any], service: Service) -> None:
        """Answer by `application`, which has the front of `service`; `worker` has the connections and the threads."""
        self._worker = worker
        self._application = application
        self._service = service
        self._arrived: SimpleQueue[Arrival] = SimpleQueue()
        self._handed: dict[socket.socket, Mapping[str, Any]] = {}
        self._busy_since: float | None = None

    def begin(self) -> None:
        """Begin to answer what is taken."""
        threading.Thread(target=self._run, name="lane", daemon=True).start()

    def take(self, connection: Any, content: bytes) -> bool:
        """Take a request, if it is one for the lane and the lane is not held up."""
        busy_since = self._busy_since
        if busy_since is not None and time.monotonic() - busy_since > LATE_SECONDS:
            for arrival in self._waiting():
                self._leave(arrival)
            return False
        environ = read_small(content)
        if environ is None:
            return False
        environ |= {
            "REMOTE_ADDR": connection.client[0] if isinstance(connection.client, tuple) else "",
            "SERVER_NAME": str(connection.server[0]),
            "SERVER_PORT": str(connection.server[1]),
            BEGAN: time.perf_counter(),
        }
        self._arrived.put(Arrival(connection, content, environ))
        return True

    def with_what_was_handed(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """Be the application that threads call: what was found out in the lane is not found out again."""
        environ.update(self._handed.pop(environ[WHERE], NOTHING))
        return self._application(environ, start_response)

    def forget(self, client: socket.socket) -> None:
        """Drop what was handed over with a request on a connection: gunicorn may have refused it."""
        self._handed.pop(client, None)

    def answer(self, batch: Sequence[Arrival]) -> None:
        """Answer each, commit what is to be logged, and send; what is not answered here is left to threads."""
        newest = cache(self._service.finder.newest)  # all have arrived: what is the newest now is so for all
        answered = []
        is_away = False
        for arrival in batch:
            if not is_away and self._answers(arrival, newest):
                answered.append(arrival)
            else:
                is_away = is_away or isinstance(arrival.environ.get(RAISED), Unavailable)
                self._leave(arrival)
        records = [arrival.later.record for arrival in answered if arrival.later and arrival.later.record]
        faults = keep_together(self._service, records)
        kept = []
        for arrival, fault in zip(answered, faults, strict=True):
            if fault is None:
                kept.append(arrival)
            else:
                arrival.environ[RAISED] = fault
                self._leave(arrival)
        self._send_all(kept)

    def _run(self) -> None:
        while True:
            batch = [self._arrived.get(), *self._waiting()]
            self._busy_since = time.monotonic()
            try:
                self.answer(batch)
            except Exception as error:
                LOG.error("the lane failed", exc_info=error)
                held = [arrival.connection for arrival in batch if not arrival.is_over]
                self._worker.method_queue.defer(self._worker.finish_all, held, _Done(keeps_open=False))
            self._busy_since = None

    def _waiting(self) -> list[Arrival]:
        found = []
        try:
            while True:
                found.append(self._arrived.get_nowait())
        except Empty:
            return found

    def _answers(self, arrival: Arrival, newest: Callable[[str], str | None]) -> bool:
        """Make the answer to a request, if it is not a thread's to do."""
        environ = arrival.environ
        arrival.later = environ[LATER] = Later(newest, environ[BEGAN])

        def start_response(status: str, headers: Sequence[tuple[str, str]]) -> None:
            arrival.head = f"HTTP/1.1 {status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)

        try:
            with in_haste():  # what has to be looked up is not looked up here: all others would wait for it
                arrival.body = b"".join(self._application(environ, start_response))
        except Exception:  # of whatever kind: a thread meets it again, and says what is to be said
            if not isinstance(environ.get(RAISED), Unavailable):  # that is not waited for again
                environ.pop(RAISED, None)
            return False
        return True

    def _leave(self, arrival: Arrival) -> None:
        """Have a thread answer a request, as if it had never been here."""
        arrival.is_over = True
        connection = arrival.connection
        self._handed[connection.sock] = {name: arrival.environ[name] for name in HANDED if name in arrival.environ}
        connection.parser.unreader.unread(arrival.content)
        self._worker.enqueue_req(connection)

    def _send_all(self, arrivals: Sequence[Arrival]) -> None:
        worker = self._worker
        # As gunicorn has it: where too many are kept open already, there would be no room for who comes new.
        keeps_open = bool(worker.alive) and len(worker.keepalived_conns) < worker.max_keepalived
        common = (
            f"Server: gunicorn\r\nDate: {http_date()}\r\nConnection: {'keep-alive' if keeps_open else 'close'}\r\n\r\n"
        )
        sent, gone = [], []
        for arrival in arrivals:
            arrival.is_over = True
            content = (arrival.head + common).encode("latin-1") + arrival.body
            try:
                rest = content[arrival.connection.sock.send(content) :]
            except BlockingIOError:
                rest = content
            except OSError:
                gone.append(arrival.connection)
                continue
            if rest:
                self._send_by_thread(arrival.connection, rest, keeps_open=keeps_open)
            else:
                sent.append(arrival.connection)
            self._count(arrival.later)
        if self._service.settings.metrics == "on":
            self._service.metrics.together(len(arrivals) - len(gone))
        defer = self._worker.method_queue.defer
        if sent:
            defer(self._worker.finish_all, sent, _Done(keeps_open))
        if gone:
            defer(self._worker.finish_all, gone, _Done(keeps_open=False))

    def _send_by_thread(self, connection: Any, content: bytes, *, keeps_open: bool) -> None:
        """Send what a client does not take at once: it may be slow, or have ceased to read."""

        def send() -> bool:
            connection.sock.setblocking(True)  # noqa: FBT003 - the standard library's own
            connection.sock.sendall(content)
            return keeps_open

        sending = self._worker.tpool.submit(send)
        sending.add_done_callback(
            lambda done: self._worker.method_queue.defer(self._worker.finish_request, connection, done)
        )

    def _count(self, later: Later | None) -> None:
        if later is not None and self._service.settings.metrics == "on":
            self._service.metrics.request("POST", later.route, 200, time.perf_counter() - later.began)
