"""Web processes share new connections evenly: a connection that is kept open stays where it was accepted.

All of them wait for connections at one socket, and who happens to be awake takes what has come. Of sixteen clients that
connect at the same moment one process may get all: it would answer them alone, as long as they stay. So each says in
memory that all share how many connections it has, and whoever has more than another leaves the next one to that one,
for a moment::

    open      process 1: 9    process 2: 6      a client connects
    accept    waits 1 ms      takes it
"""

import mmap
import socket
import time
from collections.abc import Collection
from typing import Final

from service.api.malformed import ProblemWorker

__all__ = ["OpenConnections", "SharingWorker"]

PLACES: Final = 64
"""Web processes that are counted; of more, the rest takes what comes."""
NOBODY: Final = 2**31 - 1
"""At a place that no process has: more than any has open."""
LEAVING_SECONDS: Final = 0.001
"""So long a connection is left to others; then whoever comes first takes it, for they may be held up."""
IN_VAIN_SECONDS: Final = 0.05
"""A connection that comes so soon after one was left to others was left in vain: threads may hold up the main loop."""
SLACK: Final = 16
"""Of so many connections one process may have one more than another, of twice as many two."""


class OpenConnections:
    """How many connections each web process has open: made before they are forked, a place for each."""

    def __init__(self) -> None:
        """Make a table in which no process has a place."""
        self._counts = memoryview(mmap.mmap(-1, 4 * PLACES)).cast("i")
        for place in range(PLACES):
            self._counts[place] = NOBODY

    def place(self, taken: Collection[int | None]) -> int | None:
        """Give the place of a process that is about to begin; None where all are taken."""
        return next((place for place in range(PLACES) if place not in taken), None)

    def leave(self, place: int | None) -> None:
        """Give a place back: its process has ended."""
        self.say(place, NOBODY)

    def say(self, place: int | None, count: int) -> None:
        """Say how many connections the process of a place has."""
        if place is not None:
            self._counts[place] = count

    def fewest(self) -> int:
        """Give how many connections the process has that has the fewest."""
        return min(self._counts)


class SharingWorker(ProblemWorker):
    """gunicorn's worker with threads; new connections are left to processes that have fewer."""

    nr_conns: int
    open_connections: OpenConnections | None = None
    place: int | None = None
    _left_until: float = 0.0
    _is_leaving: bool = False

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection, unless another process should; what was left to others in vain is accepted."""
        now = time.monotonic()
        if self.alive and now - self._left_until > IN_VAIN_SECONDS and self._has_more_than_others():
            self._left_until, self._is_leaving = now + LEAVING_SECONDS, True
            self.set_accept_enabled(False)
            return
        self._left_until = 0.0
        super().accept(listener)

    def set_accept_enabled(self, enabled: bool) -> None:  # noqa: FBT001 - the parent's own
        """Begin or cease to accept; not to begin while a connection is left to others."""
        if enabled and self._is_leaving:
            if time.monotonic() < self._left_until:
                return
            self._is_leaving = False
        super().set_accept_enabled(enabled)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for what is to be done, and do it; not for longer than a connection is left to others."""
        if self._is_leaving:
            timeout = LEAVING_SECONDS
        self._say()
        super().wait_for_and_dispatch_events(timeout)

    def _has_more_than_others(self) -> bool:
        if self.open_connections is None or self.place is None:
            return False
        self._say()
        return self.nr_conns > self.open_connections.fewest() + self.nr_conns // SLACK

    def _say(self) -> None:
        if self.open_connections is not None:
            self.open_connections.say(self.place, self.nr_conns if self.alive else NOBODY)
