"""The way of single requests into the decision log: those that wait at the same time are committed together.

There is no thread for it, since handing over to one costs more than the disk. The first who comes leads: it takes
what waits, writes it with one statement, commits, lets the others go, and hands the lead to the first who has come
meanwhile::

    request 1   leads ── commit 1 ──┐ answers
    request 2      waits ───────────│leads ── commit 2, 3, 4 ──┐ answers
    request 3          waits ───────│──────────────────────────│ answers
    request 4              waits ───│──────────────────────────│ answers
"""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Engine

from service.decisions import ENTRIES
from service.errors import TooMany, Unavailable
from service.prepared import Inserted

__all__ = ["MOST_TOGETHER", "MOST_WAITING", "DecisionLog"]

MOST_TOGETHER: Final = 256
"""Records of one commit."""
MOST_WAITING: Final = 1024
"""Records that wait; a request that finds so many is told to come again."""
COMPANY_SECONDS: Final = 0.0007
"""How long a leader waits for company, where the last one had some."""
SOON: Final = 1.0
"""Seconds after which to come again."""


def _held() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(slots=True, eq=False)
class _Waiter:
    """A record on its way; `turn` is held until it is committed or refused, or until it leads."""

    entry: Mapping[str, Any]
    turn: threading.Lock = field(default_factory=_held)
    leads: bool = False
    fault: Exception | None = None


class DecisionLog:
    """One process's way into the log, for any number of threads."""

    def __init__(self, engine: Engine) -> None:
        """Write by connections of `engine`."""
        self._rows = Inserted(engine, ENTRIES)
        self._lock = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self._is_led = False
        self._had_company = False

    @property
    def n_waiting(self) -> int:
        """How many records wait for the commit after the one that is under way."""
        return len(self._waiting)

    @property
    def is_led(self) -> bool:
        """Whether a commit is under way."""
        return self._is_led

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write a record, as `service.decisions.new_entry` makes it, and come back when it is committed.

        Raises:
            TooMany: The log is so far behind that nothing more is taken.
            Unavailable: The database cannot be reached or written now.
            Conflict: The version that answered was deleted meanwhile.
            Rejected: A value is none that this database takes.
        """
        me = _Waiter(entry)
        with self._lock:
            if len(self._waiting) >= MOST_WAITING:
                raise TooMany("more decisions wait to be logged than the database takes in", seconds=SOON)
            self._waiting.append(me)
            me.leads = not self._is_led
            self._is_led = True
        if not me.leads:
            me.turn.acquire()
        if me.leads:
            self._lead(me)
        if me.fault is not None:
            raise me.fault

    def append_all(self, entries: Sequence[Mapping[str, Any]]) -> list[Exception | None]:
        """Write records of several requests with one commit, waiting for nobody; give of each why it is not there.

        Where one is refused, the others are written all the same. None: it is committed.
        """
        batch = [_Waiter(entry) for entry in entries]
        self._commit(batch)
        return [waiter.fault for waiter in batch]

    def _lead(self, me: _Waiter) -> None:
        if self._had_company:
            time.sleep(COMPANY_SECONDS)
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_TOGETHER))]
        self._had_company = len(batch) > 1
        try:
            self._commit(batch)
        except BaseException:  # the process is to end; nobody may wait for ever
            for waiter in batch:
                waiter.fault = Unavailable("the service is ending: the decision was not logged")
            raise
        finally:
            with self._lock:
                following = self._waiting[0] if self._waiting else None
                self._is_led = following is not None
            if following is not None:
                following.leads = True
                following.turn.release()
            for waiter in batch:
                if waiter is not me:
                    waiter.turn.release()

    def _commit(self, batch: Sequence[_Waiter]) -> None:
        """Commit the records together; where one is refused, each by itself, so that no other suffers for it."""
        try:
            self._rows.insert([waiter.entry for waiter in batch])
        except Unavailable as fault:
            for waiter in batch:
                waiter.fault = Unavailable(str(fault), reason=fault.reason)
        except Exception as fault:
            if len(batch) == 1:
                batch[0].fault = fault
                return
            for waiter in batch:
                self._commit([waiter])
