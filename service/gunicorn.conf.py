"""How gunicorn runs the service; `espalier serve` hands it the socket and this file."""  # noqa: N999 - gunicorn's own name for it

import gc
import logging
import os
import socket
import struct
from pathlib import Path
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.workers import gthread

from service.api.context import EXTENSION
from service.api.metrics import forget_process
from service.api.sharing import OpenConnections
from service.cli.lifeline import end_with_parent
from service.cli.listening import host_of
from service.cli.pinning import cores, least_taken, pin
from service.database.engine import forget_connections
from service.logs import configuration
from service.settings import Settings, check_listening

settings = Settings.from_env()
open_connections = OpenConnections()


class WithoutRequests(Logger):  # type: ignore[misc] # the parent is untyped
    """gunicorn's own log: it would work out a line for every request, since logging is configured, and write none."""

    def access(self, *_: object) -> None:
        """Leave requests to `service.api.request_lines`, which is there where they are asked for."""


wsgi_app = "service.wsgi:application"
bind = f"{settings.host}:{settings.port}"
worker_class = "service.api.lane.LaneWorker"
workers = settings.web_workers
threads = settings.web_threads
preload_app = True  # imports and routes are shared by all workers
keepalive = 5
graceful_timeout = 8
sendfile = False  # Python's own waits for ever for a client that does not take the file
forwarder_headers = (
    ""  # no header sets the WSGI variables; X-Forwarded-* are the application's affair: ESPALIER_PROXIES
)
forwarded_allow_ips = ""
logger_class = WithoutRequests
logconfig_dict = configuration(settings.log_format, settings.log_level)
loglevel = "error"  # what is wrong with a client's request is told to the client
control_socket_disable = True  # it would be a file in the home folder
if Path("/dev/shm").is_dir():  # noqa: S108 - the place for heartbeats that never reach a disk
    worker_tmp_dir = "/dev/shm"  # noqa: S108

# A connection on which nothing comes is given back to the poller after this time, and does not hold a thread for 5 s. A
# private name of gunicorn 27.0.1, hence the pin; a test with idle connections watches it.
gthread.DEFAULT_WORKER_DATA_TIMEOUT = 0.25

SILENT_SECONDS = 5  # a client that begins a request and says no more is cut off, and its thread is free again
DEAF_SECONDS = 20  # so is one that does not take its answer


def on_starting(server: Any) -> None:
    """Keep quiet about clients that were cut off: that is their affair."""
    server.log.error_log.addFilter(_is_not_silence)


def when_ready(server: Any) -> None:
    """Have the kernel bound each wait for a client; accepted connections inherit it. Strangers need keys to be on.

    What is loaded by now stays: the collector, which would write to all of it, leaves it alone, so that it is shared.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    for listener in server.LISTENERS:
        check_listening(settings, host_of(listener.sock))
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", SILENT_SECONDS, 0))
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", DEAF_SECONDS, 0))


def pre_fork(server: Any, worker: Any) -> None:
    """Give a web process its place among those that share connections, and its core, where each is to have one."""
    others = server.WORKERS.values()
    worker.open_connections, worker.place = open_connections, open_connections.place([one.place for one in others])
    if settings.web_pinning == "on":
        worker.core = least_taken(cores(), [other.core for other in others])


def post_fork(server: Any, worker: Any) -> None:
    """Let go of what belongs to the parent, do not outlive it, and stay on a core if one was chosen."""
    end_with_parent(os.getppid())
    if settings.web_pinning == "on":
        pin(worker.core)
    service = worker.app.wsgi().extensions[EXTENSION]
    forget_connections(service.sessions.engine)
    service.is_stopping = lambda: not worker.alive


def worker_exit(_server: Any, worker: Any) -> None:
    """Log what was answered and is not logged yet."""
    worker.app.wsgi().extensions[EXTENSION].log.close()


def child_exit(_server: Any, worker: Any) -> None:
    """Forget what only a living process has."""
    forget_process(worker.pid)
    open_connections.leave(worker.place)


def _is_not_silence(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], BlockingIOError)
