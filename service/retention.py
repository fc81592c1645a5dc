"""Decisions that are older than their model keeps them are deleted, some at a time, by whichever worker is idle."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.db import Sessions, reading, transaction, utc_now
from service.tables import DecisionRecord, ModelName, Version

__all__ = ["RECORDS_AT_ONCE", "Cleaner", "delete_expired"]

LOG = logging.getLogger(__name__)

RECORDS_AT_ONCE = 500  # in one transaction: a writer of SQLite holds up the others
PAUSE_SECONDS = 60.0  # after a look that found none


@dataclass(slots=True)
class Cleaner:
    """Deletes, now and then, what is not to be kept any longer.

    Attributes:
        source: Where the log is.
        clock: Monotonic seconds.
        due: When to look again, by that clock.
    """

    source: Sessions
    clock: Callable[[], float] = time.monotonic
    due: float = 0.0

    def clean_up(self) -> None:
        """Delete some, if it is time to: at once again while there are more. Nothing is raised."""
        if self.clock() < self.due:
            return
        n_deleted = 0
        try:
            n_deleted = delete_expired(self.source)
        except Exception:  # the worker outlives it, and the next look may go better
            LOG.exception("decisions whose time is over were not deleted")
        if n_deleted:
            LOG.info("%d records of decisions were deleted: their time is over", n_deleted)
        else:
            self.due = self.clock() + PAUSE_SECONDS


def delete_expired(source: Sessions) -> int:
    """Delete at most `RECORDS_AT_ONCE` records of the decision log whose time is over; give how many.

    Outcomes stay: the accuracy of a version keeps its history.
    """
    with reading(source) as session:
        if next(_expired(session), None) is None:
            return 0
    with transaction(source) as session:
        ids = [record_id for record_id, _ in zip(_expired(session), range(RECORDS_AT_ONCE), strict=False)]
        session.execute(delete(DecisionRecord).where(DecisionRecord.id.in_(ids)))
    return len(ids)


def _expired(session: Session) -> Iterator[str]:
    keeping = select(ModelName.id, ModelName.retention_days).where(ModelName.retention_days.is_not(None))
    for model in session.execute(keeping).all():
        mine = select(Version.id).where(Version.model_id == model.id)
        until = utc_now() - timedelta(days=model.retention_days)
        expired = (
            select(DecisionRecord.id)
            .where(DecisionRecord.version_id.in_(mine), DecisionRecord.time < until)
            .limit(RECORDS_AT_ONCE)
        )
        yield from session.scalars(expired).all()
