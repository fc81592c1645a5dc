"""The life of a job as server-sent events: its transitions, its progress, its end.

::

    id: 17                                   of a transition: Last-Event-ID asks for those that came after it
    event: transition
    data: {"event":"claim","from":"queued","to":"running","attempt":1,"reason":null,"at":"2026-11-22T08:15:30.123000Z"}

    event: progress                          when it changed; what it was before is of no use to those who come later
    data: {"progress":0.25,"phase":"growing","rate":0.05}

    : still here                             when nothing else was sent for a while

    event: end                               the job as GET shows it; then the stream is over
    data: {"id":"0190…","state":"succeeded",…}

Each stream holds a thread, so there are few of them, and each has an end: a client that is sent away before the job has
ended comes again after ``retry`` milliseconds, as browsers do by themselves, and misses nothing.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from service.database.clock import now
from service.database.engine import Sessions, read_session
from service.database.tables import Job, JobEvent, State
from service.errors import Unauthenticated, Unavailable
from service.repositories import job_queue
from service.schemas import jobs as schemas

CONTENT_TYPE = "text/event-stream"
LOOK_SECONDS = 0.25  # between looks at the job
HEARTBEAT_SECONDS = 10.0  # after which a silent stream says that it is still there
LONGEST_SECONDS = 300.0  # of one stream
AGAIN_MILLISECONDS = 2000  # before a client that was sent away asks again

SHOWN = schemas.Job()


@dataclass(frozen=True, slots=True)
class Look:
    """A job at one moment.

    Attributes:
        job: The job.
        transitions: Those after the last one that was seen, in their order.
        moment: The database's clock.
    """

    job: Job
    transitions: tuple[JobEvent, ...]
    moment: datetime

    def progress(self) -> dict[str, Any] | None:
        """Give how far a running job is; rate: the share that it has done a second since its attempt began."""
        if self.job.state != State.RUNNING or self.job.started is None:
            return None
        seconds = (self.moment - self.job.started).total_seconds()
        rate = self.job.progress / seconds if seconds > 0 else 0.0
        return {"progress": self.job.progress, "phase": self.job.phase, "rate": round(rate, 6)}


def look(source: Sessions, job_id: str, *, after: int) -> Look:
    """Look at a job, and at its transitions after that of the number `after`.

    Raises:
        NotFound: There is no such job.
        Unavailable: The database cannot be reached now.
    """
    with read_session(source) as session:
        job = job_queue.find_job(session, job_id)
        transitions = tuple(event for event in job_queue.list_events(session, job_id) if event.id > after)
        moment = session.scalar(now().select())
    assert moment is not None  # noqa: S101 - a clock always says something
    return Look(job, transitions, moment)


def events(first: Look, again: Callable[[int], Look], is_over: Callable[[], bool], *, after: int) -> Iterator[bytes]:
    """Give events until the job has ended, or it is time to go.

    Args:
        first: The first look.
        again: Looks again, at the transitions after that of a number.
        is_over: Whether it is time to go, though the job has not ended.
        after: The number of the last transition that the client has seen.
    """
    yield f"retry: {AGAIN_MILLISECONDS}\n\n".encode()
    seen, told = first, None
    began = spoke = time.monotonic()
    while True:
        pieces = [_event("transition", _shown(one), number=one.id) for one in seen.transitions]
        progress = seen.progress()
        if seen.job.state in job_queue.FINAL:
            pieces.append(_event("end", SHOWN.dump(seen.job)))
        elif progress is not None and (progress["progress"], progress["phase"]) != told:
            told = progress["progress"], progress["phase"]
            pieces.append(_event("progress", progress))
        elif not pieces and time.monotonic() - spoke >= HEARTBEAT_SECONDS:
            pieces.append(b": still here\n\n")
        if pieces:
            spoke = time.monotonic()
            yield b"".join(pieces)
        if seen.job.state in job_queue.FINAL or is_over() or time.monotonic() - began > LONGEST_SECONDS:
            return
        time.sleep(LOOK_SECONDS)
        after = max([after, *(one.id for one in seen.transitions)])
        try:
            seen = again(after)
        except (Unavailable, Unauthenticated):  # the client comes again, and is told why
            return


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
