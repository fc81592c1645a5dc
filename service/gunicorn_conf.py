"""Configure gunicorn: processes, threads, time-outs and hooks; `espalier serve` passes it the socket and this file."""

import gc
import logging.config
import os
import select
import signal
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from service.api.context import EXTENSION
from service.cli.listening import host_of
from service.database.engine import forget_connections
from service.log_config import configuration
from service.metrics import forget_process
from service.settings import Settings, check_listening

settings = Settings.from_env()

wsgi_app = "service.wsgi:application"
bind = f"{settings.host}:{settings.port}"
worker_class = "gthread"
workers = settings.web_workers
threads = settings.web_threads
preload_app = True  # imports and routes are shared by all workers
keepalive = 20  # seconds; clients keep an idle connection for less (often 5): none is closed under a new request
graceful_timeout = 8
sendfile = False  # Python's own waits for ever for a client that does not take the file
forwarder_headers = ""  # no header sets WSGI variables; the application reads X-Forwarded-* (ESPALIER_PROXIES)
forwarded_allow_ips = ""
errorlog = None  # the handlers are those of `configuration`
control_socket_disable = True  # it would be a file in the home folder
if Path("/dev/shm").is_dir():  # noqa: S108 - heartbeats never reach a disk there
    worker_tmp_dir = "/dev/shm"  # noqa: S108

RECEIVE_SECONDS = 5  # a client that stops in the middle of its request is cut off
SEND_SECONDS = 20  # a client that does not read its answer is cut off
CLOSE_SECONDS = 0.5  # for which a process that is asked to stop accepts connections, at most
LINGER_SECONDS = 0.02  # without a new connection, after which it accepts no more


def on_starting(server: Any) -> None:
    """Log as the settings say, but not that a client was cut off."""
    logging.config.dictConfig(configuration(settings.log_format, settings.log_level))
    logging.getLogger("gunicorn.error").addFilter(_is_not_time_out)


def when_ready(server: Any) -> None:
    """Check the addresses, bound every wait for a client, and freeze the loaded code, which the workers share.

    Accepted connections inherit the options of the listening socket.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    for listener in server.LISTENERS:
        check_listening(settings, host_of(listener.sock))
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", RECEIVE_SECONDS, 0))
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        if hasattr(socket, "TCP_DEFER_ACCEPT") and listener.sock.family != socket.AF_UNIX:
            # The kernel keeps a connection until its first byte arrives: an idle one holds no thread.
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, RECEIVE_SECONDS)


def pre_fork(server: Any, worker: Any) -> None:
    """Choose a core for a web process: the one that the fewest others have."""
    if settings.web_pinning == "on" and hasattr(os, "sched_getaffinity"):
        taken = [other.core for other in server.WORKERS.values()]
        worker.core = min(sorted(os.sched_getaffinity(0)), key=taken.count)


def post_fork(_server: Any, worker: Any) -> None:
    """Drop the parent's connections, and keep to the chosen core."""
    if hasattr(worker, "core"):
        os.sched_setaffinity(0, {worker.core})
    service = worker.app.wsgi().extensions[EXTENSION]
    forget_connections(service.sessions.engine)
    service.is_stopping = lambda: not worker.alive


def post_worker_init(worker: Any) -> None:
    """Have a process that is asked to stop accept the clients who have connected, and refuse new connections at once.

    gunicorn leaves the listening socket open until the last request is answered, and resets who connects meanwhile.
    """
    stop = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        if worker.alive:
            worker.set_accept_enabled(False)
            for listener in worker.sockets:
                _stop_listening(worker, listener)
        if callable(stop):
            stop(number, frame)

    signal.signal(signal.SIGTERM, handle)


def worker_exit(_server: Any, worker: Any) -> None:
    """Write the decisions that were answered and are not in the log yet."""
    worker.app.wsgi().extensions[EXTENSION].log.close()


def child_exit(_server: Any, worker: Any) -> None:
    """Forget the gauges of a process that has ended."""
    forget_process(worker.pid)


def _stop_listening(worker: Any, listener: Any) -> None:
    with suppress(AttributeError, OSError):  # another system, or a socket in the file system
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 0)
    until = time.monotonic() + CLOSE_SECONDS
    while select.select([listener], [], [], LINGER_SECONDS if time.monotonic() < until else 0)[0]:
        worker.accept(listener)
    # The main loop may hold an event of this socket: it finds one on which nobody connects, not one that is closed.
    with socket.create_server(("127.0.0.1", 0)) as unused:
        unused.setblocking(False)  # noqa: FBT003 - the standard library's own
        os.dup2(unused.fileno(), listener.fileno())


def _is_not_time_out(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], BlockingIOError)
