"""Our worker of gunicorn and slow clients: none of them holds up the others.

- A thread that waits for its client stands aside (`service.api.threads`), and the head of a request has its time.
- A connection is closed without waiting for it. What a client still sends must be read before, or the end of its
  answer may be thrown away on its way; gunicorn does that in the main loop, up to two seconds a connection, in which
  nobody else is answered. Here the main loop's poller tells when there is something to read.
"""

import math
import socket
import time
from collections import OrderedDict
from concurrent.futures import CancelledError
from contextlib import suppress
from selectors import EVENT_READ
from typing import Any, Final

from gunicorn.workers.gthread import ThreadWorker

from service.api.threads import ClientSocket, Threads

__all__ = ["HEAD_SECONDS", "PatientWorker"]

HEAD_SECONDS: Final = 10.0
"""For the request line and the header fields; a silence of more than `SILENT_SECONDS` ends them, too."""
PARTING_SECONDS: Final = 2.0
"""For which what comes after the last answer on a connection is read, and forgotten."""
MOST_PARTING: Final = 65_536
"""Bytes that are read of it."""
BLOCK: Final = 16_384


class PatientWorker(ThreadWorker):  # type: ignore[misc] # the parent is untyped
    """gunicorn's worker with threads, which slow clients do not hold up."""

    nr_conns: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As the parent."""
        super().__init__(*args, **kwargs)
        self._parting: OrderedDict[socket.socket, tuple[float, int]] = OrderedDict()  # until when, how much was read

    def get_thread_pool(self) -> Threads:
        """Give the pool of threads that answer requests."""
        return Threads(self.cfg.threads)

    def enqueue_req(self, conn: Any) -> None:
        """Have a thread answer the next request of a connection."""
        if type(conn.sock) is not ClientSocket:
            conn.sock = ClientSocket.of(conn.sock, self.tpool)
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """Read a request and answer it, by a thread."""
        conn.sock.until = time.monotonic() + HEAD_SECONDS
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Answer a request whose head is there; the rest may take as long as it comes."""
        conn.sock.until = math.inf
        return super().handle_request(req, conn)

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Wait for the next request on a connection, or part with the client."""
        try:
            stays = fs.cancelled() is False and fs.result()
        except (Exception, CancelledError):  # as the parent has it
            self.nr_conns -= 1
            conn.close()
            return
        if stays:
            super().finish_request(conn, fs)
        else:
            self._part(conn.sock)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for what is to be done, and do it; close what was to be read to its end for long enough."""
        super().wait_for_and_dispatch_events(timeout)
        now = time.monotonic()
        while self._parting:
            client, (until, _) = next(iter(self._parting.items()))
            if until > now:
                break
            self._close(client)

    def _part(self, client: socket.socket) -> None:
        """Say that no more comes, and close the connection when the client has said so, too; in the main loop."""
        self._parting[client] = (time.monotonic() + PARTING_SECONDS, 0)
        try:
            client.shutdown(socket.SHUT_WR)
            client.setblocking(False)  # noqa: FBT003 - the standard library's own
            self.poller.register(client, EVENT_READ, self._read_on)
        except (OSError, ValueError):  # it is gone already
            self._close(client)
            return
        self._read_on(client)

    def _read_on(self, client: socket.socket) -> None:
        until, n_bytes = self._parting[client]
        try:
            n_more = len(client.recv(BLOCK))
        except BlockingIOError:
            return
        except OSError:
            n_more = 0
        if n_more and n_bytes + n_more < MOST_PARTING:
            self._parting[client] = (until, n_bytes + n_more)
        else:
            self._close(client)

    def _close(self, client: socket.socket) -> None:
        del self._parting[client]
        self.nr_conns -= 1
        with suppress(KeyError, ValueError, OSError):
            self.poller.unregister(client)
        with suppress(OSError):
            client.close()
