"""Connections to SQLite with a write-ahead log and full durability. A writing transaction begins with the write lock.

If another file takes the name of an open file, the process still writes to the old file, and its commits are lost. So
every transaction checks that the names still refer to the files that were opened.
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import OperationalError

from service.errors import Unavailable

BUSY_SECONDS = 10  # how long a writer waits for another
BUSY_PAUSE = 0.0005  # seconds between two attempts
BUSY_TIMEOUT = f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}"
PAGE_BYTES = 8192  # chunks and documents are long; the default of 4096 needs twice as many system calls


def listen(engine: Engine, file: Path) -> None:
    """Set up an engine's connections and transactions; each connection must use the file that the first one opened."""
    names = (file, file.with_name(f"{file.name}-wal"))
    opened: list[tuple[int, int] | None] = []

    def connect(connection: Any, record: Any) -> None:
        prepare(connection)
        record.info["files"] = [_identity(name) for name in names]
        opened[:] = opened or record.info["files"][:1]

    def check(connection: Connection) -> None:
        files = connection.info["files"]
        if files[:1] != opened or files != [_identity(name) for name in names]:
            raise Unavailable(
                f"{file.name}, the file of the database, or its write-ahead log was deleted or replaced while the "
                "service was running: nothing is stored until the file is back, or the service is restarted"
            )

    event.listen(engine, "connect", connect)
    event.listen(engine, "begin", check)
    event.listen(engine, "begin", begin)
    event.listen(engine, "commit", check)


def _identity(name: Path) -> tuple[int, int] | None:
    try:
        status = name.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def prepare(connection: Any) -> None:
    """Set up a new connection of the driver."""
    connection.isolation_level = None  # the driver begins no transaction; `begin` does
    cursor = connection.cursor()
    cursor.execute(BUSY_TIMEOUT)
    cursor.execute(f"PRAGMA page_size={PAGE_BYTES}")  # of a new file; a file with tables keeps its page size
    # Several processes may open a new file at once, and SQLite does not wait for them here.
    _while_busy(lambda: _use_write_ahead_log(cursor), pause=0.01)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA secure_delete=ON")  # overwrites what is deleted; not every build does this by default
    cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the write-ahead log
    cursor.close()


def empty_log(engine: Engine) -> None:
    """Move the write-ahead log, which has the old content of changed pages, to the file.

    The log stays if a transaction reads an older state for more than a second; writers wait meanwhile.
    """
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        try:
            for pragma in ("PRAGMA busy_timeout=1000", "PRAGMA wal_checkpoint(TRUNCATE)"):
                cursor.execute(pragma).fetchall()
        except sqlite3.Error as error:
            raise Unavailable("the write-ahead log cannot be emptied: try again later", reason=str(error)) from error
        finally:
            cursor.execute(BUSY_TIMEOUT)


def _use_write_ahead_log(cursor: Any) -> bool:
    return "wal" in (cursor.execute(f"PRAGMA journal_mode{mode}").fetchone()[0] for mode in ("", "=WAL"))


def _while_busy(action: Callable[[], bool], *, pause: float) -> None:
    """Repeat an action until it returns true; raise after `BUSY_SECONDS`, or for an error other than "busy"."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            if action():
                return
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            if time.monotonic() > deadline:
                raise sqlite3.OperationalError("the file system cannot have the write-ahead log of SQLite")
        time.sleep(pause)


def begin(connection: Connection) -> None:
    """Begin a transaction: a writer takes the write lock at once, a reader never."""
    driver_connection: Any = connection.connection.driver_connection  # executing through SQLAlchemy takes 50 us longer
    try:
        if connection.get_execution_options().get("read_only"):
            driver_connection.execute("BEGIN")
        else:
            # This tries every half millisecond; SQLite itself sleeps up to a tenth of a second between attempts.
            driver_connection.execute("PRAGMA busy_timeout=0")
            try:
                _while_busy(lambda: driver_connection.execute("BEGIN IMMEDIATE") is not None, pause=BUSY_PAUSE)
            finally:
                driver_connection.execute(BUSY_TIMEOUT)
    except sqlite3.Error as error:
        raise OperationalError("BEGIN", None, error) from error
