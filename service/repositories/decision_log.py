"""Group commit for the decision log: records that wait at the same time are committed together.

`append` commits in the thread of a caller, since a switch to another thread may take longer than the commit. The first
caller is the leader: it commits the waiting records. The next leader is the first caller that still waits::

    request 1   leads ── commit 1 ──┐ answers
    request 2      waits ───────────│leads ── commit 2, 3, 4 ──┐ answers
    request 3          waits ───────│──────────────────────────│ answers
    request 4              waits ───│──────────────────────────│ answers

`submit` does not wait: a background thread commits its records later. If the process dies first, these are lost.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Engine, Table
from sqlalchemy.exc import DBAPIError

from service.database.engine import insert_new, translate_db_errors
from service.database.tables import DecisionRecord
from service.errors import LimitExceeded, Unavailable

LOG = logging.getLogger(__name__)

DECISIONS: Final[Table] = DecisionRecord.metadata.tables[DecisionRecord.__tablename__]
NO_VALUES: Final[dict[str, Any]] = dict.fromkeys(DECISIONS.columns.keys())
MAX_TOGETHER: Final = 256  # records in one commit
MAX_WAITING: Final = 1024  # records that may wait in `append`; further requests are refused
MAX_SUBMITTED: Final = 10_000  # while so many rows wait after `submit`, further records are dropped and counted
LINGER_SECONDS: Final = 0.001  # how long a leader waits for more records, if the previous leader had several
RETRY_AFTER: Final = 1.0  # seconds after which a refused request may be repeated
PAUSE_SECONDS: Final = 1.0  # between attempts to commit submitted records while the database is unavailable
CLOSE_SECONDS: Final = 5.0  # how long `close` waits for submitted records

Record = dict[str, Any]


@dataclass(slots=True, eq=False)
class _Waiter:
    """A record in `append`; `turn` is set when the record is committed or refused, or when its caller must lead."""

    record: Record
    turn: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    error: Exception | None = None


class DecisionLog:
    """The decision log of one process. Thread-safe."""

    def __init__(self, engine: Engine, *, on_lost: Callable[[], None] = lambda: None) -> None:
        """Write through `engine`; call `on_lost` if a submitted record is dropped, or if the database refuses it."""
        self._engine = engine
        self._lock = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self.is_committing = False  # whether a leader is at work; written only under `_lock`
        self._had_several = False  # whether the last commit of a leader had several records
        self._submitted: deque[Record] = deque()
        self._n_submitted_rows = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._on_lost = on_lost
        self.n_lost = 0

    @property
    def n_waiting(self) -> int:
        """Number of records in `append` that wait for the next commit; records of `submit` are not counted."""
        return len(self._waiting)

    def append(self, record: Record) -> None:
        """Insert a row of the decisions table, and return after its commit.

        Raises:
            LimitExceeded: Too many records are waiting.
            Unavailable: The database cannot be reached or written now, or the service is ending.
        """
        waiter = _Waiter(record)
        with self._lock:
            if len(self._waiting) >= MAX_WAITING:
                raise LimitExceeded("more decisions are waiting to be logged than can be written", seconds=RETRY_AFTER)
            self._waiting.append(waiter)
            waiter.leads = not self.is_committing
            self.is_committing = True
        if not waiter.leads:
            waiter.turn.wait()
        if waiter.leads:
            self._commit_as_leader(waiter)
        if waiter.error is not None:
            raise waiter.error

    def append_all(self, records: Sequence[Record]) -> list[Exception | None]:
        """Insert rows; return the error of each row, or None if the row is committed.

        All rows have one commit; if the database refuses it, each row is committed alone.
        """
        error = self._commit(lambda: records)
        return [error and self._alone(record, error, n_records=len(records)) for record in records]

    def submit(self, record: Record) -> None:
        """Insert a record later, without waiting. If `MAX_SUBMITTED` rows wait already, drop it."""
        with self._changed:
            if self._n_submitted_rows >= MAX_SUBMITTED:
                self._lose()
                return
            self._submitted.append(record)
            self._n_submitted_rows += record["n_rows"]
            if self._thread is None:
                self._thread = threading.Thread(target=self._commit_submitted, name="decision log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Wait up to `CLOSE_SECONDS` for the commit of submitted records; nothing may be submitted afterwards."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
        if self._submitted or self.n_lost:
            LOG.error("decisions that were never logged: %d", len(self._submitted) + self.n_lost)

    def _commit_as_leader(self, leader: _Waiter) -> None:
        if self._had_several:
            time.sleep(LINGER_SECONDS)
        waiters: list[_Waiter] = []

        def take() -> Sequence[Record]:
            with self._lock:
                while self._waiting and len(waiters) < MAX_TOGETHER:
                    waiters.append(self._waiting.popleft())
            return [waiter.record for waiter in waiters]

        try:
            error = self._commit(take)
            for waiter in waiters:
                waiter.error = error and self._alone(waiter.record, error, n_records=len(waiters))
        except BaseException:  # the process ends: no other caller may wait for ever
            for waiter in waiters:
                waiter.error = Unavailable("the service is ending: the decision was not logged")
            raise
        finally:
            self._had_several = len(waiters) > 1
            with self._lock:
                following = self._waiting[0] if self._waiting else None
                self.is_committing = following is not None
            if following is not None:
                following.leads = True
                following.turn.set()
            for waiter in waiters:
                if waiter is not leader:
                    waiter.turn.set()

    def _commit(self, take: Callable[[], Sequence[Record]]) -> Exception | None:
        try:
            insert_records(self._engine, take)
        except Exception as error:
            take()  # it was not called if the transaction did not begin: then the waiting records get this error, too
            return error
        return None

    def _alone(self, record: Record, error: Exception, *, n_records: int) -> Exception | None:
        """Insert one record of a refused batch alone; return its error, or None if it is committed.

        If the database is unavailable, or the record was the whole batch, return the error of the batch.
        """
        if isinstance(error, Unavailable):
            return Unavailable(str(error), reason=error.reason)
        return error if n_records == 1 else self._commit(lambda: [record])

    def _commit_submitted(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._submitted or self._is_closing)
                is_last_attempt = self._is_closing
                records = [self._submitted[place] for place in range(min(len(self._submitted), MAX_TOGETHER))]
            if not records:
                return
            errors = self.append_all(records)
            if any(isinstance(error, Unavailable) for error in errors):
                if is_last_attempt:
                    return
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, PAUSE_SECONDS)
                continue
            for error in filter(None, errors):
                self._lose()
                LOG.warning("a decision cannot be logged", exc_info=error)
            with self._changed:
                for _ in records:
                    self._n_submitted_rows -= self._submitted.popleft()["n_rows"]

    def _lose(self) -> None:
        self.n_lost += 1
        self._on_lost()


def insert_records(engine: Engine, take: Callable[[], Sequence[Record]]) -> None:
    """Insert rows into the decisions table and commit them; columns that a row does not name are null.

    `take` returns the rows. It is called after the transaction has begun (on SQLite: with the write lock), so rows may
    arrive until then. If the connection is lost, the insertion is repeated once; it skips rows that exist already.
    """
    with translate_db_errors():
        for is_repeated in (False, True):
            try:
                with engine.begin() as connection:
                    rows = [NO_VALUES | record for record in take()]
                    connection.execute(insert_new(engine.dialect.name, DECISIONS, "id"), rows)
                return
            except DBAPIError as error:
                if is_repeated or not error.connection_invalidated:
                    raise
