"""Clean-up: idle workers delete expired decisions and jobs in batches, and the folders of ended jobs.

A decision expires after the `retention_days` of its model or, if the model has none, of the settings. An ended job
expires after the `job_days` of the settings, unless a version or a decision refers to it. The database's clock decides.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, exists, func, or_, select
from sqlalchemy.orm import Session

from service.database.clock import database_time
from service.database.engine import Sessions, read_session, transaction
from service.database.tables import DecisionRecord, Job, ModelName, Version
from service.repositories.job_queue import FINAL
from service.settings import Settings
from service.worker import out_of_core

LOG = logging.getLogger(__name__)

RECORDS_AT_ONCE = 500  # deleted per transaction; other writers of an SQLite file wait until it ends
PAUSE_SECONDS = 60.0  # after a clean-up that deleted no record and no job


@dataclass(slots=True)
class Cleaner:
    """Deletes expired decisions, expired jobs and the folders of ended jobs from time to time."""

    source: Sessions
    settings: Settings
    clock: Callable[[], float] = time.monotonic
    due: float = 0.0  # time of the next clean-up, by `clock`

    def clean_up(self) -> None:
        """If a clean-up is due, delete some expired decisions, jobs and folders. Errors are logged, not raised.

        The next clean-up is due at once if a record or a job was deleted, else after `PAUSE_SECONDS`.
        """
        if self.clock() < self.due:
            return
        n_records = n_jobs = 0
        try:
            n_records = delete_expired(self.source, days=self.settings.retention_days)
            out_of_core.remove_ended(self.settings, self.source)
            n_jobs = delete_ended_jobs(self.source, days=self.settings.job_days)
        except Exception:  # the worker goes on, and tries again later
            LOG.exception("expired records were not deleted")
        if n_records or n_jobs:
            LOG.info("deleted %d expired records of decisions and %d expired jobs", n_records, n_jobs)
        else:
            self.due = self.clock() + PAUSE_SECONDS


def delete_expired(source: Sessions, *, days: int = 0) -> int:
    """Delete at most `RECORDS_AT_ONCE` expired records of the decision log and return how many; keep the outcomes.

    The decisions of models without their own retention expire after `days` days or, if `days` is 0, never.
    """
    with read_session(source) as session:
        if not _expired(session, days):
            return 0
    with transaction(source) as session:
        ids = _expired(session, days)
        session.execute(delete(DecisionRecord).where(DecisionRecord.id.in_(ids)))
    return len(ids)


def delete_ended_jobs(source: Sessions, *, days: int) -> int:
    """Delete at most `RECORDS_AT_ONCE` jobs that ended more than `days` days ago, with their events; return how many.

    Jobs to which a version or a decision refers are not deleted. If `days` is 0, no job is deleted.
    """
    if days == 0:
        return 0
    refers = or_(exists().where(Version.job_id == Job.id), exists().where(DecisionRecord.job_id == Job.id))
    with read_session(source) as session:
        ended = Job.state.in_(FINAL) & (Job.finished < database_time(session) - timedelta(days=days))
        some = select(Job.id).where(ended, ~refers).limit(RECORDS_AT_ONCE)
        if session.scalar(some.limit(1)) is None:
            return 0
    with transaction(source) as session:
        # Query again, with a lock: a job that was retried meanwhile has not ended.
        ids = session.scalars(some.with_for_update(skip_locked=True)).all()
        session.execute(delete(Job).where(Job.id.in_(ids)))
    return len(ids)


def _expired(session: Session, days: int) -> Sequence[str]:
    retention, moment = func.coalesce(ModelName.retention_days, days or None), database_time(session)
    lengths = session.scalars(select(retention).distinct().where(retention.is_not(None))).all()
    # Compare with constants: the database's clock is a volatile function, for which no index is used.
    has_expired = [(retention == each) & (DecisionRecord.time < moment - timedelta(days=each)) for each in lengths]
    if not has_expired:
        return []
    records = select(DecisionRecord.id).join(Version, DecisionRecord.version_id == Version.id)
    of_models = records.join(ModelName, Version.model_id == ModelName.id)
    return session.scalars(of_models.where(or_(*has_expired)).limit(RECORDS_AT_ONCE)).all()
