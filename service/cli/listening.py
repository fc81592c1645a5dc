"""Open the listening port and lock the database file: two ``espalier up`` processes must not share them."""

import errno
import os
import socket
import time
from pathlib import Path
from typing import TextIO

from service.cli import Refused

BACKLOG = 2048
PATIENCE_SECONDS = 1.0  # the children of a killed server need a moment to close the port
RETRY_SECONDS = 0.05


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host`:`port` (0: any free port).

    Raises `Refused` if the port cannot be used. The web server inherits the socket. So connections wait, and are not
    refused, while the supervisor restarts a web server that died.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        remedy = "set --host or ESPALIER_HOST, for example to 127.0.0.1"
        raise Refused(f"{host} is not an address of this machine ({error.strerror}): {remedy}") from None
    has_both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return socket.create_server(address, family=family, backlog=BACKLOG, dualstack_ipv6=has_both)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise Refused(_reason(error, host=host, port=port)) from None
        time.sleep(RETRY_SECONDS)


def host_of(listener: socket.socket) -> str:
    """Return the host that a socket listens on; ``localhost`` for a Unix socket."""
    name = listener.getsockname()
    return str(name[0]) if isinstance(name, tuple) else "localhost"


def url_of(host: str, port: int) -> str:
    """Return the URL of a host and a port in ASCII; the host may be an IPv6 address."""
    host = host.encode("idna").decode()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def lock_database(database: Path, *, address: str) -> TextIO:
    """Lock `database` for this process, and write `address` into the lock file.

    Raises `OSError`, or `Refused` with the holder's address if another process has the lock. Closing the file unlocks.
    """
    import fcntl  # not at the top: commands without a server also run on systems that lack it

    path = database.with_name(database.name + ".lock")
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        other = file.read().strip() or "an unknown address"
        file.close()
        raise Refused(
            f"a server uses {database} already, at {other}; stop it, or set ESPALIER_DATABASE_URL to another database"
        ) from None
    file.truncate(0)
    file.write(f"{address} (process {os.getpid()})\n")
    file.flush()
    return file


def _reason(error: OSError, *, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        free = "--port 8081, ESPALIER_PORT=8081 or make run PORT=8081"
        return f"port {port} of {host} is taken by another program; choose another port: {free}"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} is not allowed for this user; choose one above 1023 with --port or ESPALIER_PORT"
    return f"cannot listen on {host}, port {port} ({error.strerror})"
