"""Web processes share new connections evenly: a connection that is kept open stays where it was accepted.

All of them wait for connections at one socket, and who happens to be awake takes what has come. Of sixteen clients that
connect at the same moment one process may get all: it would answer them alone, as long as they stay. So each says in
memory that all share how many connections it has, and whoever has more than another leaves the next one to that one,
for a moment::

    open      process 1: 9    process 2: 6      a client connects
    accept    waits 5 ms      takes it

Clients that connect at the same moment are dealt out evenly, whatever else is open: when a load ends and the next one
begins, much of that are connections whose client has gone, which is found out when their last request is answered.
"""

import math
import mmap
import socket
import time
from collections.abc import Collection
from typing import Final

from service.api.malformed import ProblemWorker

__all__ = ["OpenConnections", "SharingWorker"]

PLACES: Final = 64
"""Web processes that are counted; of more, the rest takes what comes."""
NOBODY: Final = math.inf
"""At a place that no process has: more than any has open."""
LEAVING_SECONDS: Final = 0.005
"""So long a connection is left to others; then whoever comes first takes it, for they may be held up.

The main loop of a process whose threads are at work waits so long for Python's lock.
"""
IN_VAIN_SECONDS: Final = 0.05
"""A connection that comes so soon after one was left to others was left in vain: threads may hold up the main loop."""
BURST_SECONDS: Final = 0.1
"""A connection that is accepted so soon after another belongs to the same burst."""
OF_BURST: Final = 2**16
"""What a connection of a burst counts beside one that is open: no process has so many."""
SLACK: Final = 16
"""Of so many connections one process may have one more than another, of twice as many two."""


class OpenConnections:
    """What each web process has taken on: made before they are forked, a place for each."""

    def __init__(self) -> None:
        """Make a table in which no process has a place."""
        self._said = memoryview(mmap.mmap(-1, 8 * 3 * PLACES)).cast("d", (PLACES, 3))
        for place in range(PLACES):
            self.leave(place)

    def place(self, taken: Collection[int | None]) -> int | None:
        """Give the place of a process that is about to begin; None where all are taken."""
        return next((place for place in range(PLACES) if place not in taken), None)

    def leave(self, place: int | None) -> None:
        """Give a place back: its process has ended."""
        self.say(place, NOBODY)

    def say(self, place: int | None, n_open: float, *, n_of_burst: int = 0, burst_until: float = 0.0) -> None:
        """Say how many connections the process of a place has open, how many are of a burst, and its end."""
        if place is not None:
            self._said[place, 0], self._said[place, 1], self._said[place, 2] = n_open, n_of_burst, burst_until

    def taken(self, place: int, now: float) -> float:
        """Give how much the process of a place has taken on: connections of a burst that is under way count first."""
        n_of_burst = self._said[place, 1] if now < self._said[place, 2] else 0
        return self._said[place, 0] + OF_BURST * n_of_burst

    def fewest(self, now: float) -> float:
        """Give how much that is of the process that has the least."""
        return min(self.taken(place, now) for place in range(PLACES))


class SharingWorker(ProblemWorker):
    """gunicorn's worker with threads; new connections are left to processes that have fewer."""

    nr_conns: int
    open_connections: OpenConnections | None = None
    place: int | None = None
    _left_until: float = 0.0
    _is_leaving: bool = False
    _n_of_burst: int = 0
    _burst_until: float = 0.0

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection, unless another process should; what was left to others in vain is accepted."""
        now = time.monotonic()
        if self.alive and now - self._left_until > IN_VAIN_SECONDS and self._has_more_than_others(now):
            self._left_until, self._is_leaving = now + LEAVING_SECONDS, True
            self.set_accept_enabled(False)
            return
        self._left_until = 0.0
        n_before = self.nr_conns
        super().accept(listener)
        if self.nr_conns > n_before:  # else another process was faster
            self._n_of_burst = 1 + (self._n_of_burst if now < self._burst_until else 0)
            self._burst_until = now + BURST_SECONDS

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

    def _has_more_than_others(self, now: float) -> bool:
        if self.open_connections is None or self.place is None:
            return False
        self._say()
        return self.open_connections.taken(self.place, now) > self.open_connections.fewest(now) + self.nr_conns // SLACK

    def _say(self) -> None:
        """Tell the others what this process has taken on."""
        if self.open_connections is not None:
            n_open = self.nr_conns if self.alive else NOBODY
            self.open_connections.say(self.place, n_open, n_of_burst=self._n_of_burst, burst_until=self._burst_until)
