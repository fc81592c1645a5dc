"""Connections to SQLite: write-ahead mode, full durability, and a write lock that is taken when a writer begins."""

import sqlite3
import time
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

BUSY_SECONDS = 10  # how long a writer waits for another
BUSY_PAUSE = 0.0005  # seconds between two attempts
BUSY_TIMEOUT = f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}"
PAGE_BYTES = 8192  # cells and documents are long: half as many calls of the system as with 4096, its default


def prepare(connection: Any, record: object) -> None:
    """Set up a connection of the driver as soon as it is made."""
    connection.isolation_level = None  # the driver begins nothing by itself; `begin` does
    cursor = connection.cursor()
    cursor.execute(BUSY_TIMEOUT)
    cursor.execute(f"PRAGMA page_size={PAGE_BYTES}")  # of a new file; one that has tables keeps its own
    _use_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _use_write_ahead_log(cursor: Any) -> None:
    """Several processes may open a new file at once; the change of mode does not wait for the others by itself."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            if "wal" in (cursor.execute(f"PRAGMA journal_mode{mode}").fetchone()[0] for mode in ("", "=WAL")):
                return
        except sqlite3.OperationalError as error:  # anything else, such as a file of another kind, does not pass
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def begin(connection: Connection) -> None:
    """Begin a transaction: a writer takes the write lock at once, a reader never."""
    if connection.get_execution_options().get("read_only"):
        connection.exec_driver_sql("BEGIN")
        return
    try:
        _begin_immediate(connection.connection.driver_connection)
    except sqlite3.Error as error:
        raise OperationalError("BEGIN IMMEDIATE", None, error) from error


def _begin_immediate(connection: Any) -> None:
    """Take the write lock, trying every half millisecond: SQLite itself sleeps up to a tenth of a second between tries.

    Raises:
        sqlite3.Error: Another connection has held the lock for `BUSY_SECONDS`.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.Error as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(BUSY_PAUSE)
    finally:
        connection.execute(BUSY_TIMEOUT)
