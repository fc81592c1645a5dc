"""Jobs put into the queue, taken and looked at."""

from sqlalchemy import update

from service.database.clock import now
from service.database.engine import Sessions, read_session, transaction
from service.database.tables import Job, Kind
from service.repositories import job_queue
from service.repositories.job_queue import Claim

ERROR = {"code": "unexpected", "message": "it broke", "errors": []}


def enqueue(source: Sessions, *, model: str = "m", kind: Kind = Kind.TRAIN, attempts: int = 3) -> str:
    with transaction(source) as session:
        return job_queue.enqueue(
            session, Job(kind=kind, payload={"model": model}, model=model), max_attempts=attempts
        ).id


def claim(source: Sessions, *, worker: str = "w1", lease: float = 30.0) -> Claim:
    with transaction(source) as session:
        claim = job_queue.claim(session, worker=worker, lease_seconds=lease)
    assert claim is not None
    return claim


def job(source: Sessions, job_id: str) -> Job:
    with read_session(source) as session:
        return job_queue.find_job(session, job_id)


def events(source: Sessions, job_id: str) -> list[tuple[str | None, str, str]]:
    with read_session(source) as session:
        return [(event.from_state, event.event, event.to_state) for event in job_queue.list_events(session, job_id)]


def expire_lease(source: Sessions, job_id: str) -> None:
    with transaction(source) as session:
        session.execute(update(Job).where(Job.id == job_id).values(lease_expires_at=now(-1)))
