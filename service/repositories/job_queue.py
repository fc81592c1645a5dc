"""The job queue: one table, leases and fencing tokens, on SQLite and PostgreSQL.

    (new) ─enqueue→ queued ─claim→ running ─succeed→ succeeded
                      ↑ │             │ ├─fail→ failed           the same input would fail again
                      │ │             │ ├─cancel→ cancelled
                      │ └─cancel→ cancelled
                      │               │ └─give_up→ dead          attempts used up
                      └─back_off, release, lose_lease─┘       cancelled, if that was requested
                      └─retry─ failed | cancelled | dead

A worker holds a claim: the id of a job and the token of its lease. While it works, it renews the lease. If a lease is
not renewed for ``ESPALIER_LEASE_SECONDS``, another worker ends it, and the job may be claimed again. Each write checks
both id and token, so a worker that has lost its lease saves no result. Every transition is recorded in `job_events`.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_, select, update
from sqlalchemy.orm import Session

from service.database import UNFINISHED
from service.database.clock import new_id, now
from service.database.engine import advisory_lock
from service.database.tables import Job, JobEvent, Kind, State
from service.errors import Conflict, LeaseLost, LimitExceeded, NotFound
from service.metrics import JobFigures
from service.repositories.pagination import Page, page
from service.settings import MAX_LEASE_SECONDS

BACK_OFF_SECONDS = 1.0  # before the second attempt; doubled for each further one
MAX_BACK_OFF_SECONDS = 60.0
MAX_WAIT_SECONDS = 1.5 * MAX_BACK_OFF_SECONDS  # a longer wait began before the database's clock was set back
RETRY_AFTER_SECONDS = 5.0  # for a key with too many unfinished jobs


class Event(StrEnum):
    """The transitions of a job."""

    ENQUEUE = "enqueue"
    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    BACK_OFF = "back_off"
    GIVE_UP = "give_up"
    RELEASE = "release"
    LOSE_LEASE = "lose_lease"
    REQUEST_CANCEL = "request_cancel"
    CANCEL = "cancel"
    RETRY = "retry"


TRANSITIONS: Mapping[tuple[State | None, Event], State] = {
    (None, Event.ENQUEUE): State.QUEUED,
    (State.QUEUED, Event.CLAIM): State.RUNNING,
    (State.QUEUED, Event.CANCEL): State.CANCELLED,
    (State.RUNNING, Event.SUCCEED): State.SUCCEEDED,
    (State.RUNNING, Event.FAIL): State.FAILED,
    (State.RUNNING, Event.BACK_OFF): State.QUEUED,
    (State.RUNNING, Event.GIVE_UP): State.DEAD,
    (State.RUNNING, Event.RELEASE): State.QUEUED,
    (State.RUNNING, Event.LOSE_LEASE): State.QUEUED,
    (State.RUNNING, Event.REQUEST_CANCEL): State.RUNNING,
    (State.RUNNING, Event.CANCEL): State.CANCELLED,
    (State.FAILED, Event.RETRY): State.QUEUED,
    (State.CANCELLED, Event.RETRY): State.QUEUED,
    (State.DEAD, Event.RETRY): State.QUEUED,
}
FENCED_OUT = "fence_out"  # an event without a transition: a worker came back after its lease had run out
FINAL = frozenset(State).difference(UNFINISHED)
NO_LEASE: Mapping[str, Any] = {"lease_token": None, "lease_expires_at": None}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed job, and the token that guards the worker's writes."""

    job_id: str
    token: str
    kind: Kind
    payload: dict[str, Any]
    attempt: int
    max_attempts: int


def enqueue(session: Session, job: Job, *, max_attempts: int, key_id: str | None = None) -> Job:
    """Queue a new job; its data sets cannot be deleted until it has ended."""
    job.state, job.key_id, job.max_attempts = State.QUEUED, key_id, max_attempts
    job.run_at = job.created = now()
    session.add(job)
    session.flush()
    _record(session, job, event=Event.ENQUEUE, from_state=None)
    session.refresh(job)
    return job


def check_room(session: Session, *, key_id: str | None, limit: int) -> None:
    """Raise `LimitExceeded` if the key (None: requests without a key) has `limit` or more unfinished jobs.

    The limit is exact: until this transaction ends, no other transaction passes this check for the key.
    """
    advisory_lock(session, f"jobs of {key_id}")
    mine = Job.key_id.is_not_distinct_from(key_id)
    unfinished = select(func.count()).where(mine, Job.state.in_(UNFINISHED))
    if (session.scalar(unfinished) or 0) >= limit:
        raise LimitExceeded(f"at most {limit} unfinished jobs of one key are accepted", seconds=RETRY_AFTER_SECONDS)


def find_job(session: Session, job_id: str, **options: Any) -> Job:
    """Return a job or raise `NotFound`; the options are those of `Session.get`."""
    job = session.get(Job, job_id, **options)
    if job is None:
        raise NotFound("job", job_id)
    return job


def find_unfinished(session: Session, *where: ColumnElement[bool]) -> Job | None:
    """Return an unfinished job that meets all conditions; None if there is none."""
    return session.scalar(select(Job).where(Job.state.in_(UNFINISHED), *where).limit(1))


def list_jobs(
    session: Session, *, models: Collection[str] | None = None, key_id: str | None = None, **query: Any
) -> Page[Job]:
    """Return a page of jobs, newest first; `query` may have ``limit, cursor, state, kind, model``.

    With `models`, return only jobs for these models, and jobs without a model that the key `key_id` requested.
    """
    wanted = {column: query.pop(column.key, None) for column in (Job.state, Job.kind, Job.model)}
    where = [column == value for column, value in wanted.items() if value is not None]
    where += [] if models is None else [or_(Job.model.in_(models), Job.model.is_(None) & (Job.key_id == key_id))]
    return page(session, Job, where, **query)


def list_events(session: Session, job_id: str, *, after: int = 0) -> Sequence[JobEvent]:
    """Return the events of a job with ids above `after`, in order."""
    query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.id > after)
    return session.scalars(query.order_by(JobEvent.id)).all()


def cancel(session: Session, job_id: str) -> Job:
    """Cancel a queued job, or request the worker of a running job to stop it; raise `Conflict` if the job has ended."""
    job = find_job(session, job_id, with_for_update=True, populate_existing=True)
    if job.state == State.RUNNING:
        if not job.cancel_requested:
            _move(session, job, Event.REQUEST_CANCEL, cancel_requested=True)
        return job
    return _move(session, job, Event.CANCEL, cancel_requested=True, finished=now())


def retry(session: Session, job_id: str) -> Job:
    """Queue a failed, cancelled or dead job again, with the full number of attempts; else raise `Conflict`."""
    fresh: dict[str, Any] = {"attempt": 0, "progress": 0.0, "phase": "", "error": None, "finished": None}
    job = find_job(session, job_id, with_for_update=True, populate_existing=True)
    return _move(session, job, Event.RETRY, cancel_requested=False, run_at=now(), **fresh)


def has_work(session: Session) -> bool:
    """Return whether a claim would find a job or an expired lease now; a cheap query without locks."""
    return bool(session.scalar(select(exists().where(or_(_ready(), _expired())))))


def claim(session: Session, *, worker: str, lease_seconds: float) -> Claim | None:
    """End expired leases, then claim the job that has been due for the longest time; return None if no job is due."""
    reap(session)
    first = select(Job).where(_ready()).order_by(Job.run_at, Job.id).limit(1).with_for_update(skip_locked=True)
    job = session.scalars(first, execution_options={"populate_existing": True}).one_or_none()
    if job is None:
        return None
    token = new_id()
    lease: dict[str, Any] = {"lease_token": token, "lease_expires_at": now(lease_seconds)}
    begun: dict[str, Any] = {"worker": worker, "started": now(), "progress": 0.0, "phase": "starting"}
    _move(session, job, Event.CLAIM, attempt=job.attempt + 1, **lease, **begun)
    return Claim(job.id, token, Kind(job.kind), job.payload, job.attempt, job.max_attempts)


def heartbeat(session: Session, held: Claim, *, lease_seconds: float, progress: float, phase: str) -> bool:
    """Renew the lease and publish the progress; return whether to cancel; raise `LeaseLost` if the lease is lost."""
    values = {"lease_expires_at": now(lease_seconds), "progress": progress, "phase": phase[:60]}
    renewed = update(Job).where(*_held(held)).values(**values).returning(Job.cancel_requested)
    cancel_requested = session.scalar(renewed)
    if cancel_requested is None:
        raise LeaseLost(held.job_id)
    return cancel_requested


def finish(session: Session, held: Claim, *, result: Mapping[str, Any]) -> Job:
    """Mark the job succeeded, in the transaction that saves its result; raise `LeaseLost` if the lease is lost."""
    done: dict[str, Any] = {"result": dict(result), "error": None, "progress": 1.0, "phase": "", "finished": now()}
    return _end_lease(session, held, Event.SUCCEED, **done)


def fail_or_retry(session: Session, held: Claim, *, error: Mapping[str, Any], retryable: bool) -> Job:
    """End a failed attempt: the job is failed if not `retryable`, else dead after its last attempt, else queued again.

    A job queued again waits 1 s, doubled per attempt up to 60 s, times a random factor (0.5 to 1.5) to spread retries.
    """
    details: dict[str, Any] = {"reason": str(error.get("message", "")), "error": dict(error)}
    if not retryable or held.attempt >= held.max_attempts:
        return _end_lease(session, held, Event.GIVE_UP if retryable else Event.FAIL, finished=now(), **details)
    pause = min(BACK_OFF_SECONDS * 2 ** (held.attempt - 1), MAX_BACK_OFF_SECONDS) * random.uniform(0.5, 1.5)  # noqa: S311
    return _end_lease(session, held, Event.BACK_OFF, run_at=now(pause), **details)


def release(session: Session, held: Claim, *, reason: str) -> Job:
    """Queue a running job again at once; the attempt does not count."""
    back: dict[str, Any] = {"attempt": held.attempt - 1, "progress": 0.0, "phase": "", "run_at": now()}
    return _end_lease(session, held, Event.RELEASE, reason=reason, **back)


def mark_cancelled(session: Session, held: Claim) -> Job:
    """Mark a running job as cancelled, after its worker has seen the cancel flag."""
    return _end_lease(session, held, Event.CANCEL, finished=now())


def reap(session: Session) -> int:
    """End the leases that ran out, and return their number. Each job is then cancelled, dead or queued again."""
    lost = session.scalars(
        select(Job).where(_expired()).with_for_update(skip_locked=True), execution_options={"populate_existing": True}
    ).all()
    for job in lost:
        reason = f"worker {job.worker} stopped reporting and its lease ran out"
        error = {"code": "worker_lost", "message": reason, "errors": []}
        if job.cancel_requested:
            _move(session, job, Event.CANCEL, reason=reason, finished=now(), **NO_LEASE)
        elif job.attempt >= job.max_attempts:
            _move(session, job, Event.GIVE_UP, reason=reason, error=error, finished=now(), **NO_LEASE)
        else:
            _move(session, job, Event.LOSE_LEASE, reason=reason, error=error, run_at=now(), **NO_LEASE)
    return len(lost)


def job_figures(session: Session) -> JobFigures:
    """Return the figures of the queue for the metrics."""
    counted = select(Job.state, Job.kind, func.count()).where(Job.state.in_(UNFINISHED)).group_by(Job.state, Job.kind)
    oldest, moment = session.execute(
        select(func.min(Job.run_at), now()).where(Job.state == State.QUEUED, Job.run_at <= now())
    ).one()
    events = (Event.LOSE_LEASE, FENCED_OUT)
    of_events = select(JobEvent.event, func.count()).where(JobEvent.event.in_(events)).group_by(JobEvent.event)
    seen: dict[str, int] = dict(session.execute(of_events).all())
    return JobFigures(
        unfinished={(state, kind): n for state, kind, n in session.execute(counted).all()},
        dead=session.scalar(select(func.count()).where(Job.state == State.DEAD)) or 0,
        oldest_seconds=0.0 if oldest is None else max(0.0, (moment - oldest).total_seconds()),
        leases_lost=seen.get(Event.LOSE_LEASE, 0),
        fenced_out=seen.get(FENCED_OUT, 0),
    )


def note_fenced_out(session: Session, held: Claim) -> None:
    """Record that a worker's write was refused, if the job still exists."""
    job = session.get(Job, held.job_id)
    if job is not None:
        reason = "a worker came back after its lease had run out, and wrote nothing"
        _record(session, job, event=FENCED_OUT, from_state=job.state, attempt=held.attempt, worker=None, reason=reason)


def _ready() -> ColumnElement[bool]:
    return (Job.state == State.QUEUED) & or_(Job.run_at <= now(), Job.run_at > now(MAX_WAIT_SECONDS))


def _expired() -> ColumnElement[bool]:
    # A lease that ends even later began before the database's clock was set back: it counts as expired.
    is_over = or_(Job.lease_expires_at < now(), Job.lease_expires_at > now(MAX_LEASE_SECONDS))
    return (Job.state == State.RUNNING) & is_over


def _held(held: Claim) -> tuple[Any, ...]:
    return Job.id == held.job_id, Job.lease_token == held.token, Job.state == State.RUNNING


def _end_lease(session: Session, held: Claim, event: Event, *, reason: str | None = None, **values: Any) -> Job:
    query = select(Job).where(*_held(held)).with_for_update()
    job = session.scalars(query, execution_options={"populate_existing": True}).one_or_none()
    if job is None:
        raise LeaseLost(held.job_id)
    if job.cancel_requested and TRANSITIONS[State.RUNNING, event] is State.QUEUED:
        event, values = Event.CANCEL, {"finished": now()}
    return _move(session, job, event, reason=reason, **NO_LEASE, **values)


def _move(session: Session, job: Job, event: Event, *, reason: str | None = None, **values: Any) -> Job:
    from_state = State(job.state)
    to_state = TRANSITIONS.get((from_state, event))
    if to_state is None:
        legal = sorted(state.value for state, possible in TRANSITIONS if possible == event and state is not None)
        raise Conflict(f"job {job.id} is {from_state.value}; {event.value} is possible only when {' or '.join(legal)}")
    for name, value in {"state": to_state, **values}.items():
        setattr(job, name, value)
    session.flush()
    _record(session, job, event=event, from_state=from_state, reason=reason)
    session.refresh(job)
    return job


def _record(session: Session, job: Job, **event: Any) -> None:
    of_job = {"job_id": job.id, "to_state": job.state, "attempt": job.attempt, "worker": job.worker}
    session.add(JobEvent(**{**of_job, "at": now(), **event}))
    session.flush()
