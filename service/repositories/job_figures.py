"""How the queue is, in figures: what waits, since when, and how often workers lost their hold on a job."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.database.clock import now
from service.database.tables import Job, JobEvent, State
from service.repositories.job_queue import Claim, Event

FENCED_OUT = "fence_out"  # an event that is no transition: a worker came back to a job that is no longer its own


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The queue at one moment.

    Attributes:
        unfinished: Jobs by state and kind, of those that are queued or running.
        dead: Jobs that have spent their attempts, and wait for somebody to look.
        oldest_seconds: How long the job has waited that has waited longest since it might run; 0 where none does.
        leases_lost: How often a lease ran out, among the jobs that are kept.
        fenced_out: How often a worker came back to a job that was no longer its own, among those.
    """

    unfinished: Mapping[tuple[str, str], int]
    dead: int
    oldest_seconds: float
    leases_lost: int
    fenced_out: int


def job_figures(session: Session) -> JobFigures:
    """Count what is in the queue now."""
    waiting = (State.QUEUED, State.RUNNING)
    counted = select(Job.state, Job.kind, func.count()).where(Job.state.in_(waiting)).group_by(Job.state, Job.kind)
    oldest, moment = session.execute(
        select(func.min(Job.run_at), now()).where(Job.state == State.QUEUED, Job.run_at <= now())
    ).one()
    events = (Event.LOSE_LEASE, FENCED_OUT)
    noted = select(JobEvent.event, func.count()).where(JobEvent.event.in_(events)).group_by(JobEvent.event)
    seen: dict[str, int] = dict(session.execute(noted).all())
    return JobFigures(
        unfinished={(state, kind): n for state, kind, n in session.execute(counted).all()},
        dead=session.scalar(select(func.count()).where(Job.state == State.DEAD)) or 0,
        oldest_seconds=0.0 if oldest is None else max(0.0, (moment - oldest).total_seconds()),
        leases_lost=seen.get(Event.LOSE_LEASE, 0),
        fenced_out=seen.get(FENCED_OUT, 0),
    )


def note_fenced_out(session: Session, held: Claim) -> None:
    """Write down that a worker was refused to write, if the job is still there."""
    job = session.get(Job, held.job_id)
    if job is not None:
        event = JobEvent(job_id=job.id, at=now(), event=FENCED_OUT, from_state=job.state, to_state=job.state)
        event.attempt, event.reason = held.attempt, "a worker came back after its lease had run out, and wrote nothing"
        session.add(event)
