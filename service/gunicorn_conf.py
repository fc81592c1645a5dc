"""Configure gunicorn: processes, threads, time-outs and hooks; `espalier serve` passes it the socket and this file."""

import gc
import logging.config
import os
import select
import signal
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from service.api.context import EXTENSION
from service.api.metrics import forget_process
from service.cli.listening import host_of
from service.database.engine import forget_connections
from service.logs import configuration
from service.settings import Settings, check_listening

settings = Settings.from_env()

wsgi_app = "service.wsgi:application"
bind = f"{settings.host}:{settings.port}"
worker_class = "gthread"
workers = settings.web_workers
threads = settings.web_threads
preload_app = True  # imports and routes are shared by all workers
keepalive = 5
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
CLOSE_SECONDS = 0.1  # after a process was asked to stop, it refuses connections


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
    """Have a process that is asked to stop take in who has connected, and then refuse connections at once.

    gunicorn leaves the listening socket open until the last request is answered: who connects meanwhile waits in vain.
    """
    stop = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        _accept_all(worker)
        if callable(stop):
            stop(number, frame)
        threading.Timer(CLOSE_SECONDS, _close_listeners, (worker,)).start()  # once the main loop accepts no more

    signal.signal(signal.SIGTERM, handle)


def worker_exit(_server: Any, worker: Any) -> None:
    """Write the decisions that were answered and are not in the log yet."""
    worker.app.wsgi().extensions[EXTENSION].log.close()


def child_exit(_server: Any, worker: Any) -> None:
    """Forget the gauges of a process that has ended."""
    forget_process(worker.pid)


def _accept_all(worker: Any) -> None:
    for listener in worker.sockets:
        while select.select([listener], [], [], 0)[0]:
            worker.accept(listener)


def _close_listeners(worker: Any) -> None:
    with suppress(OSError, TypeError, ValueError):  # they are closed already
        _accept_all(worker)
    for listener in worker.sockets:
        listener.close()


def _is_not_time_out(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], BlockingIOError)
