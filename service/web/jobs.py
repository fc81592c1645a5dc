"""Jobs: the list, and a page that updates itself until the job has ended."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flask import Response, g, render_template, stream_with_context

from service.api.context import current_caller, current_service, find_job
from service.api.job_events import JobSnapshot, snapshot, stream
from service.database.engine import read_session, transaction
from service.database.tables import Job, JobEvent, Kind, Scope
from service.errors import ServiceError
from service.repositories import job_queue
from service.usecases import jobs as usecases
from service.web.pages import cursor, pages, problem_of, render, see_other

SHOWN = 50
TITLES: Mapping[str, str] = {
    Kind.TRAIN: "Training",
    Kind.PRUNE: "Pruning",
    Kind.EVALUATE: "Comparison",
    Kind.PREDICT: "Prediction of a data set",
}
RETRY = b"retry: 1000\n\n"
END = b"event: end\ndata: the job has ended\n\n"


@pages.page("/jobs", Scope.READ)
def job_list() -> Response:
    """List jobs, newest first."""
    caller = current_caller()
    query = {"limit": SHOWN, "cursor": cursor()}
    with read_session(current_service().sessions) as session:
        jobs = job_queue.list_jobs(session, models=caller.models, key_id=caller.key_id, **query)
        return render("jobs.html", jobs=jobs)


@pages.page("/jobs/<id:job_id>", Scope.READ)
def job(job_id: str, problem: Any = None) -> Response:
    """Show a job; the page of an unfinished job updates itself."""
    with read_session(current_service().sessions) as session:
        find_job(session, job_id, Scope.READ)
    current = snapshot(current_service().sessions, job_id, after=0)
    return render("job.html", problem=problem, title=TITLES[current.job.kind], **_values(current, current.transitions))


@pages.page("/jobs/<id:job_id>/progress", Scope.READ)
def job_progress(job_id: str) -> Response:
    """Stream the state of a job as HTML until the job has ended or `job_events.stream` reaches its time limit.

    If too many requests wait for jobs, the stream ends after the first state. Browsers reconnect if the job goes on.
    """
    service, key_id = current_service(), g.browser.key_id

    def authenticate() -> None:
        if key_id is not None:
            service.keys.caller_of(service.sessions, key_id)

    return stream(job_id, authenticate, lambda snapshots: stream_with_context(_messages(snapshots)))


@pages.page("/jobs/<id:job_id>/cancel", Scope.TRAIN, methods=("POST",))
def cancel_job(job_id: str) -> Response:
    """Cancel a job."""
    return _change(job_id, lambda session, _: job_queue.cancel(session, job_id))


@pages.page("/jobs/<id:job_id>/retry", Scope.TRAIN, methods=("POST",))
def retry_job(job_id: str) -> Response:
    """Queue a failed, cancelled or dead job again."""
    settings, key_id = current_service().settings, current_caller().key_id
    return _change(job_id, lambda session, job: usecases.retry_job(session, job, settings=settings, key_id=key_id))


def _change(job_id: str, change: Callable[[Any, Job], object]) -> Response:
    try:
        with transaction(current_service().sessions) as session:
            change(session, find_job(session, job_id, Scope.TRAIN))
    except ServiceError as error:
        return job(job_id, problem_of(error, "job"))
    return see_other("job", job_id=job_id)


def _values(current: JobSnapshot, events: Sequence[JobEvent]) -> Mapping[str, Any]:
    end = current.job.finished or current.moment
    seconds = None if current.job.started is None else (end - current.job.started).total_seconds()
    return {"job": current.job, "events": events, "is_final": current.is_final, "seconds": seconds}


def _messages(snapshots: Iterator[JobSnapshot]) -> Iterator[bytes]:
    """Yield the state of a job as HTML whenever it has changed, and an event when the job has ended."""
    yield RETRY
    sent, events = "", list[JobEvent]()
    for current in snapshots:
        events += current.transitions
        html = render_template("_job.html", **_values(current, events))
        if html != sent:
            sent = html
            yield "".join(f"data: {line}\n" for line in html.splitlines()).encode() + b"\n"
        if current.is_final:
            yield END
