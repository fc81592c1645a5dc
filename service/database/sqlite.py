"""What connections to SQLite need: set up once, begun alone by who writes, let go of pages after much was written.

A file is in write-ahead mode: readers see one state of it while another writes, and there is one writer at a time.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

__all__ = ["BUSY_SECONDS", "PAGES_IN_LOG", "StoredBytes", "begin", "begin_alone", "let_go_of_pages", "prepare"]

BUSY_SECONDS = 10  # how long a writer waits for another
BUSY_PAUSE = 0.0005  # seconds between two attempts
BUSY_TIMEOUT = f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}"
PAGE_BYTES = 8192  # cells and documents are long: half as many calls of the system as with 4096, its default
PAGES_IN_LOG = 1000  # before a commit copies them into the file: its own default
PAGES_IN_MEMORY = "-2000"  # KiB: its own default


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
    """Begin a transaction: of a reader, of a writer, or of one who writes much."""
    options = connection.get_execution_options()
    if options.get("reading"):
        connection.exec_driver_sql("BEGIN")
        return
    driver: Any = connection.connection.driver_connection
    is_bulk = "bulk" in options
    try:
        if connection.info.setdefault("bulk", False) != is_bulk:  # of this connection, which is used again
            driver.execute(f"PRAGMA wal_autocheckpoint={0 if is_bulk else PAGES_IN_LOG}")
            connection.info["bulk"] = is_bulk
        begin_alone(driver)
    except sqlite3.Error as error:
        raise DBAPIError.instance("BEGIN IMMEDIATE", (), error, sqlite3.Error) from error


def let_go_of_pages(connection: Any, record: Any) -> None:
    """Free what a connection holds in memory after much was written by it, and the room that was made for it."""
    if connection is not None and record.info.get("bulk"):
        connection.execute(f"PRAGMA cache_size={PAGES_IN_MEMORY}")
        connection.execute("PRAGMA shrink_memory")


def begin_alone(connection: Any) -> None:
    """Begin a transaction of SQLite's driver as its only writer; who waits for another asks often.

    SQLite's own way is to sleep longer each time, up to a tenth of a second.

    Raises:
        sqlite3.Error: It cannot be begun; another has been writing for `BUSY_SECONDS`.
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


class StoredBytes:
    """The bytes of one cell of a table, read from their beginning on: no more than what is asked for is in memory.

    Several threads may each read a cell by one connection, in the turns that `lock` gives.
    """

    def __init__(self, connection: Connection, table: str, column: str, rowid: int, lock: threading.Lock) -> None:
        """Open a cell for reading, in the transaction of the connection."""
        driver: Any = connection.connection.driver_connection
        self._lock = lock
        with self._turn():
            self._blob = driver.blobopen(table, column, rowid, readonly=True)

    def read(self, size: int = -1, /) -> bytes:
        """Give so many bytes, or all that are left.

        Raises:
            DBAPIError: They cannot be read.
        """
        with self._turn():
            content: bytes = self._blob.read(size)
        return content

    def seek(self, offset: int, whence: int, /) -> None:
        """Go to another place, as in a file."""
        with self._turn():
            self._blob.seek(offset, whence)

    def close(self) -> None:
        """Let go of the cell."""
        with self._turn():
            self._blob.close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise DBAPIError.instance("blob", (), error, sqlite3.Error) from error
