"""Waiting for what others commit: on SQLite it is seen within a hundredth of a second, at next to no cost.

SQLite tells a connection whether another one has committed since it last asked, without a look at any table. Where that
cannot be asked, the wait takes its whole time. What is committed all the time (logged decisions) is not run after:
after a wait that was cut short for nothing the next one begins with a rest in which nothing is asked, twice as long
each time up to `MOST_REST`, until nothing is committed in one::

    commits   |        |   |  | | | | | | | | | | |
    waits     ─?|rest──?|rest────?|rest────────────?|…     ?: asked, and cut short
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from sqlalchemy import Engine

__all__ = ["Commits"]

ASK_SECONDS: Final = 0.01
MOST_REST: Final = 0.1
"""Seconds."""


class Commits:
    """What others commit to a database, from now on; used by one thread."""

    def __init__(self, engine: Engine) -> None:
        self._connection: sqlite3.Connection | None = None
        if engine.dialect.name == "sqlite" and engine.url.database:
            with suppress(sqlite3.Error):
                self._connection = sqlite3.connect(engine.url.database, timeout=0, isolation_level=None)
        self._seen = self._version()
        self._rest = 0.0

    @property
    def are_seen(self) -> bool:
        """Whether a wait ends with a commit; else it always takes its time."""
        return self._connection is not None

    def wait(self, seconds: float, pause: Callable[[float], object] = time.sleep) -> None:
        """Wait until something was committed, `pause` gives a true value, or the time is over."""
        if self._connection is None:
            pause(seconds)
            return
        deadline = time.monotonic() + seconds
        asking, self._rest = max(ASK_SECONDS, self._rest), 0.0
        while time.monotonic() < deadline and not pause(min(asking, seconds)):
            version = self._version()
            if version != self._seen:
                self._seen, self._rest = version, min(2 * asking, MOST_REST)
                return
            asking = ASK_SECONDS

    def welcome(self) -> None:
        """Say that the wait was worth while: the next one begins without a rest."""
        self._seen, self._rest = self._version(), 0.0

    def close(self) -> None:
        """Let go of the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _version(self) -> int:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        return 0
