"""Gunicorn's settings and hooks; `espalier serve` starts gunicorn with this file and a listening socket."""

import gc
import logging.config
import os
import select
import signal
import socket
import struct
from contextlib import suppress
from types import FrameType
from typing import Any

from gunicorn.http.errors import ParseException

from service.api.context import EXTENSION
from service.api.problems import BAD_CHUNKS, problem_response
from service.cli.listening import host_of
from service.log_config import configuration
from service.metrics import forget_process
from service.settings import Settings, check_listening

settings = Settings.from_env()

wsgi_app = "service.wsgi:application"
worker_class = "gthread"
workers = settings.web_workers
threads = settings.web_threads
preload_app = True  # imports and routes are shared by all workers
limit_request_line = 8190  # RFC 9112, section 3: at least 8,000
keepalive = 20  # seconds; a client that closes idle connections earlier (httpx: after 5 s) never uses a closed one
timeout = 300  # long, since the main loop may wait 2 s for each client that does not close its side
graceful_timeout = 8
sendfile = False  # Python's sendfile waits for ever for a client that does not read
forwarder_headers = ""  # no header sets WSGI variables; the application reads X-Forwarded-* (ESPALIER_PROXIES)
forwarded_allow_ips = ""
errorlog = None  # `configuration` sets the handlers
control_socket_disable = True  # it would create a file in the home folder
if os.access("/dev/shm", os.W_OK):  # noqa: S108 - heartbeats are not written to a disk there
    worker_tmp_dir = "/dev/shm"  # noqa: S108

RECEIVE_SECONDS = 5  # a client that pauses for longer while it sends its request is disconnected
SEND_SECONDS = 20  # a client that does not read its response for longer is disconnected
MAX_LAST_CONNECTIONS = 100  # a stopping process accepts at most this number before it refuses new ones
LINGER_SECONDS = 0.02  # time that a stopping process waits for another connection


def on_starting(server: Any) -> None:
    """Configure the log, and drop gunicorn's errors about clients that gunicorn disconnected."""
    logging.config.dictConfig(configuration(settings.log_format, settings.log_level))
    logging.getLogger("gunicorn.error").addFilter(
        lambda record: record.exc_info is None or not isinstance(record.exc_info[1], BlockingIOError)
    )


def when_ready(server: Any) -> None:
    """Check addresses, set time-outs of connections, and exclude shared objects from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.enable()
    for listener in server.LISTENERS:
        check_listening(settings, host_of(listener.sock))
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", RECEIVE_SECONDS, 0))
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        if hasattr(socket, "TCP_DEFER_ACCEPT") and listener.sock.family != socket.AF_UNIX:
            # The kernel keeps a connection until its first byte arrives, or for about 7 s; then a thread waits for 5 s.
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, RECEIVE_SECONDS)


def post_fork(_server: Any, worker: Any) -> None:
    """Drop inherited database connections, handle invalid chunks, and tell the service when the process is stopping."""
    app = worker.app.wsgi()
    app.register_error_handler(ParseException, lambda _: problem_response(BAD_CHUNKS))
    service = app.extensions[EXTENSION]
    service.sessions.engine.dispose(close=False)  # the parent's connections stay open
    service.is_stopping = lambda: not worker.alive


def post_worker_init(worker: Any) -> None:
    """Make this process refuse new connections as soon as it receives SIGTERM.

    On SIGTERM gunicorn accepts no more connections, but keeps the listening socket open until the last request is
    answered. Then gunicorn resets the connections made meanwhile; no setting changes this. So the process first accepts
    up to `MAX_LAST_CONNECTIONS` waiting connections, and then replaces the listening socket by one at another port.

    The main loop does this, not the signal handler. The handler may interrupt the main loop while the loop submits a
    request to its threads. The handler would then wait forever for a lock that the interrupted loop holds.
    """
    stop = signal.getsignal(signal.SIGTERM)
    assert callable(stop)  # noqa: S101 - gunicorn has just set it

    def stop_in_main_loop(number: int, frame: FrameType | None) -> None:
        _refuse_connections(worker)
        stop(number, frame)

    signal.signal(signal.SIGTERM, lambda *arguments: worker.method_queue.defer(stop_in_main_loop, *arguments))


def _refuse_connections(worker: Any) -> None:
    worker.set_accept_enabled(False)
    for listener in worker.sockets:
        with suppress(AttributeError, OSError):  # not Linux, or a Unix socket
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 0)
        for _ in range(MAX_LAST_CONNECTIONS):
            if not select.select([listener], [], [], LINGER_SECONDS)[0]:
                break
            worker.accept(listener)
        # Closing the socket is not enough: an event of the socket may still be pending in the main loop.
        with socket.create_server(("127.0.0.1", 0)) as unused:
            unused.settimeout(0)
            os.dup2(unused.fileno(), listener.fileno())


def worker_exit(_server: Any, worker: Any) -> None:
    """Commit submitted decisions that are not in the log yet, and close the database: SQLite then empties its log."""
    service = worker.app.wsgi().extensions[EXTENSION]
    service.log.close()
    service.sessions.engine.dispose()


def child_exit(_server: Any, worker: Any) -> None:
    """Drop the gauges of a process that has ended."""
    forget_process(worker.pid)
