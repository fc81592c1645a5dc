"""The two things of which a machine has only one: the port, and the right to run on a database file."""

import errno
import os
import socket
import time
from pathlib import Path
from typing import TextIO

from service.cli import Refused

BACKLOG = 2048
PATIENCE_SECONDS = 1.0  # the children of one that was killed need a moment to let go of the port
LOOK_SECONDS = 0.05


def listen(host: str, port: int) -> socket.socket:
    """Give a socket that listens on `host`:`port` (0: any free port).

    It is made here and handed to the web server, so that a port which is taken is known before anything has started,
    and so that connections wait, instead of being refused, while a web server that died is started again.

    Raises:
        Refused: The port is taken, may not be used, or the host is not an address of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Refused(f"{host} is not an address to listen on ({error.strerror})") from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(LOOK_SECONDS)
                continue
            listener.close()
            raise Refused(_why_not(error, host=host, port=port)) from None
        return listener


def address_of(listener: socket.socket) -> str:
    """Give the address to type into a browser."""
    return url_of(*listener.getsockname()[:2])


def host_of(listener: socket.socket) -> str:
    """Give the address that a socket listens on; a socket in the file system is of this machine."""
    name = listener.getsockname()
    return str(name[0]) if isinstance(name, tuple) else "localhost"


def url_of(host: str, port: int) -> str:
    """Write an address; one of IPv6 goes into brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def lock_database(database: Path, *, address: str) -> TextIO:
    """Claim `database` for this process and note `address` for those who come later.

    The lock is the kernel's: it is gone when this process is, however it ended. Keep the file that is returned open.

    Raises:
        Refused: Another ``espalier up`` runs on this database (the sentence names its address), or its folder cannot be
            written.
    """
    import fcntl  # noqa: PLC0415 - commands without a server run on systems that have none

    path = database.with_name(database.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write beside {database} ({error.strerror}); see ESPALIER_DATABASE_URL") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.seek(0)
        other = held.read().strip() or "an address not known yet"
        held.close()
        raise Refused(
            f"already running on {database} at {other}; stop that one, "
            "or give this one its own database in ESPALIER_DATABASE_URL"
        ) from None
    held.truncate(0)
    held.write(f"{address} (process {os.getpid()})\n")
    held.flush()
    return held


def _why_not(error: OSError, *, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        free = "--port 8081, ESPALIER_PORT=8081 or make run PORT=8081"
        return f"port {port} of {host} is taken by another program; choose another: {free}"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} may not be used by this user; choose one above 1023 with --port or ESPALIER_PORT"
    return f"cannot listen on {host}, port {port} ({error.strerror})"
