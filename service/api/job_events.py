"""The transitions, the progress and the end of a job as server-sent events.

::

    id: 17                                   a transition; Last-Event-ID continues after it
    event: transition
    data: {"event":"claim","from":"queued","to":"running","attempt":1,"reason":null,"at":"2026-11-22T08:15:30.123000Z"}

    event: progress                          when it has changed; earlier values are not repeated
    data: {"progress":0.25,"phase":"growing","rate":0.05}

    : still here                             if nothing else was sent for a while

    event: end                               the job as GET returns it; the stream ends
    data: {"id":"0190…","state":"succeeded",…}

Each stream occupies a thread, so the number and the duration of streams are limited. If a stream ends before the job
has ended, the client reconnects after ``retry`` milliseconds, as browsers do, and misses no transition.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from flask import Response

from service.api.context import current_service, find_job
from service.database.clock import database_time
from service.database.engine import Sessions, read_session
from service.database.tables import Job, JobEvent, Scope, State
from service.errors import Unauthenticated, Unavailable
from service.repositories import job_queue
from service.schemas import jobs as schemas
from service.serialization.media_types import EVENTS

POLL_SECONDS = 0.25  # between queries
HEARTBEAT_SECONDS = 2.0  # of silence before a comment is sent; only sending shows that a client has left
MAX_SECONDS = 300.0  # of one stream
RETRY_MILLISECONDS = 2000  # before a client reconnects
NO_STORE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies must not buffer the stream either

JOB_SCHEMA = schemas.Job()


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job at one moment by the database's clock, and its transitions after the last one that was sent."""

    job: Job
    transitions: Sequence[JobEvent]
    moment: datetime

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self.job.state in job_queue.FINAL

    def progress(self) -> dict[str, Any] | None:
        """Return the progress of a running job, else None; ``rate`` is the mean progress per second."""
        if self.job.state != State.RUNNING or self.job.started is None:
            return None
        seconds = (self.moment - self.job.started).total_seconds()
        rate = self.job.progress / seconds if seconds > 0 else 0.0
        return {"progress": self.job.progress, "phase": self.job.phase, "rate": round(rate, 6)}


def snapshot(source: Sessions, job_id: str, *, after: int) -> JobSnapshot:
    """Read a job, and its transitions after number `after`."""
    with read_session(source) as session:
        job = job_queue.find_job(session, job_id)
        return JobSnapshot(job, job_queue.list_events(session, job_id, after=after), database_time(session))


Show = Callable[[Iterator[JobSnapshot]], Iterator[bytes]]


def stream(job_id: str, authenticate: Callable[[], object], show: Show, *, after: int = 0) -> Response:
    """Return a response that streams snapshots of a job, formatted by `show`, for at most `MAX_SECONDS`.

    `after` is the number of the last transition that the client has. `authenticate` is called before each further
    snapshot. The stream also ends when the job ends, `authenticate` or the database fails, or the process stops. If too
    many requests wait for jobs, the stream has only one snapshot.
    """
    service = current_service()
    with read_session(service.sessions) as session:
        find_job(session, job_id, Scope.READ)
    first = snapshot(service.sessions, job_id, after=after)
    stays = service.waiting.acquire(blocking=False)

    def snapshots() -> Iterator[JobSnapshot]:
        current, last, began = first, after, time.monotonic()
        while True:
            yield current
            is_over = service.is_stopping() or time.monotonic() - began > MAX_SECONDS
            if current.is_final or is_over or not stays:
                return
            time.sleep(POLL_SECONDS)
            last = max([last, *(one.id for one in current.transitions)])
            try:
                authenticate()
                current = snapshot(service.sessions, job_id, after=last)
            except (Unavailable, Unauthenticated):  # the client reconnects and gets the reason as a response
                return

    response = Response(show(snapshots()), content_type=EVENTS, headers=NO_STORE)
    if stays:
        response.call_on_close(service.waiting.release)
    return response


def events(snapshots: Iterator[JobSnapshot]) -> Iterator[bytes]:
    """Yield the snapshots as server-sent events."""
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    sent, last_sent = None, time.monotonic()
    for current in snapshots:
        parts = [_event("transition", _shown(one), number=one.id) for one in current.transitions]
        progress = current.progress()
        if current.is_final:
            parts.append(_event("end", JOB_SCHEMA.dump(current.job)))
        elif progress is not None and (progress["progress"], progress["phase"]) != sent:
            sent = progress["progress"], progress["phase"]
            parts.append(_event("progress", progress))
        elif not parts and time.monotonic() - last_sent >= HEARTBEAT_SECONDS:
            parts.append(b": still here\n\n")
        if parts:
            last_sent = time.monotonic()
            yield b"".join(parts)


def _shown(transition: JobEvent) -> dict[str, Any]:
    return {
        "event": transition.event,
        "from": transition.from_state,
        "to": transition.to_state,
        "attempt": transition.attempt,
        "reason": transition.reason,
        "at": transition.at,
    }


def _event(name: str, data: object, *, number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {name}\ndata: {orjson.dumps(data, option=orjson.OPT_UTC_Z).decode()}\n\n".encode()
