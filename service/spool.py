"""Decisions that are logged behind the answer, by a thread: where answers must not wait, and some may be lost.

What waits is in memory: it is lost with the process, and so is what comes while too much waits already.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlalchemy import Engine

from service.decisions import ENTRIES
from service.errors import Unavailable
from service.prepared import Inserted

__all__ = ["MOST_WAITING", "Spool"]

LOG = logging.getLogger(__name__)

MOST_TOGETHER: Final = 256
"""Records of one commit."""
MOST_WAITING: Final = 10_000
"""Records that wait; more are dropped, and counted."""
PAUSE_SECONDS: Final = 1.0
"""Before the next try, while the database is away."""
CLOSE_SECONDS: Final = 5.0
"""That the end of the process waits for what is left."""


class Spool:
    """One process's records that are not committed yet; its thread begins with the first of them."""

    def __init__(self, engine: Engine, *, on_lost: Callable[[], None] = lambda: None) -> None:
        """Write by connections of `engine`; `on_lost` is told of each record that will never be written."""
        self._rows = Inserted(engine, ENTRIES)
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self.n_lost = 0
        self._on_lost = on_lost

    def put(self, entry: Mapping[str, Any]) -> None:
        """Take a record, as `service.decisions.new_entry` makes it; nothing is raised and nobody waits."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._lose()
                return
            self._waiting.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Write what waits, as far as there is time; afterwards nothing is to be put."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
        if self._waiting or self.n_lost:
            LOG.error("decisions that were never logged: %d", len(self._waiting) + self.n_lost)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closing)
                is_last_try = self._is_closing
                batch = [self._waiting[place] for place in range(min(len(self._waiting), MOST_TOGETHER))]
            if not batch:
                return
            try:
                self._write(batch)
            except Unavailable:
                if is_last_try:
                    return
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, PAUSE_SECONDS)
                continue
            with self._changed:
                for _ in batch:
                    self._waiting.popleft()

    def _write(self, batch: list[Mapping[str, Any]]) -> None:
        """Commit records together; where one is refused, each by itself, so that no other is lost for it."""
        try:
            self._rows.insert(batch)
        except Unavailable:
            raise
        except Exception as error:
            if len(batch) > 1:
                for entry in batch:
                    self._write([entry])
                return
            self._lose()
            LOG.warning("a decision cannot be logged", exc_info=error)

    def _lose(self) -> None:
        self.n_lost += 1
        self._on_lost()
