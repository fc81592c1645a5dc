"""Jobs over HTTP: ask for training, pruning and comparison, watch, cancel, try again."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from flask import Response, request

from espalier import Fault
from service.api import job_events
from service.api.auth import reauthenticate
from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service
from service.api.idempotency import creating, remember
from service.api.responses import json_answer, page_answer, tagged_answer
from service.database.engine import read_session, transaction
from service.database.tables import Job, Kind, Scope, State
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories import job_queue
from service.repositories.decisions import NONE_KEPT, answers_of_job
from service.schemas import jobs as schemas
from service.serialization.answer_rows import RESULT_TYPES, written
from service.usecases import job_requests
from service.usecases.batch_prediction import plan_prediction

jobs = Blueprint("jobs", __name__, description="Work that takes its time")

SHOWN = schemas.Job()
SHOWN_RESULT = schemas.JobResult()
RESULTS = {Kind.EVALUATE: schemas.Comparison()}
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "where to watch the job"}}
# A key with the scope predict reaches the prediction jobs that it asked for: see `Caller.check_job`.
WATCHING = (Scope.READ, Scope.PREDICT)
CANCELLING = (Scope.TRAIN, Scope.PREDICT)
LOOK_SECONDS = 0.1  # between looks at the job
EVENT_ID = re.compile(r"[0-9]{1,18}")
SEEN: Mapping[str, Any] = {
    "in": "header",
    "name": "Last-Event-ID",
    "required": False,
    "schema": {"type": "string", "pattern": f"^{EVENT_ID.pattern}$"},
    "description": "the id of the last event that was seen: what came after it is told",
}
NOT_KEPT = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # by a proxy in between, either


@jobs.post("/v1/training-jobs", scope=Scope.TRAIN, creates=True)
@jobs.lenient_arguments(schemas.TrainingJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def train(asked: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Train a new version of a model."""
    return _requested(job_requests.plan_training, asked, faults)


@jobs.post("/v1/pruning-jobs", scope=Scope.TRAIN, creates=True)
@jobs.lenient_arguments(schemas.PruningJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def prune(asked: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Prune a version into a new one; the old one stays as it is."""
    return _requested(job_requests.plan_pruning, asked, faults)


@jobs.post("/v1/evaluation-jobs", scope=Scope.TRAIN, creates=True)
@jobs.lenient_arguments(schemas.EvaluationJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def evaluate(asked: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Compare several ways of training on the same folds, or on the same held-out rows; no version is made."""
    return _requested(job_requests.plan_evaluation, asked, faults)


@jobs.post("/v1/prediction-jobs", scope=Scope.PREDICT, creates=True)
@jobs.lenient_arguments(schemas.PredictionJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def predict_data_set(asked: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Answer every row of a data set; each answer is a decision in the log, and all of them are the job's result."""
    return _requested(plan_prediction, asked, faults)


@jobs.get("/v1/jobs", scope=Scope.READ)
@jobs.arguments(schemas.JobQuery, location="query")
@jobs.tagged(schemas.JobPage)
@jobs.refuses(422)
def list_jobs(query: dict[str, Any]) -> Response:
    """List jobs, newest first."""
    with read_session(current_service().sessions) as session:
        return page_answer(
            job_queue.list_jobs(session, models=current_caller().models, key_id=current_caller().key_id, **query), SHOWN
        )


@jobs.get("/v1/jobs/<id:job_id>", scope=WATCHING)
@jobs.arguments(schemas.JobWaitQuery, location="query")
@jobs.tagged(schemas.Job)
@jobs.refuses(404, 422)
def get_job(query: dict[str, Any], job_id: str) -> Response:
    """Look at a job, or wait for its end.

    With `wait` the answer comes when the job has ended or the seconds are over. At most a quarter of the threads may be
    held by those who wait; beyond that the answer comes at once, so ask again while `state` is queued or running.
    """
    job = _show(job_id)
    if query["wait"] and job["state"] not in job_queue.FINAL:
        job = _wait(job_id, seconds=query["wait"])
    return tagged_answer(job)


@jobs.get("/v1/jobs/<id:job_id>/events", scope=WATCHING)
@jobs.doc(parameters=[SEEN])
@jobs.response(200, schemas.JOB_EVENT, content_type=job_events.CONTENT_TYPE, description="Server-sent events")
@jobs.refuses(404, 422)
def watch_job(job_id: str) -> Response:
    """Watch a job: its transitions, its progress with phase and rate, and its end, as server-sent events.

    After a break the events go on behind the one named in `Last-Event-ID`. Streams and those who `wait` may hold a
    quarter of the threads between them; beyond that a stream says what there is and ends, and is to be asked for again.
    """
    service, source = current_service(), current_service().sessions
    after = _last_seen()
    first = job_events.look(source, job_id, after=after)
    current_caller().check_job(first.job, Scope.READ)
    stays = service.waiting.acquire(blocking=False)
    authenticate = reauthenticate()

    def again(seen: int) -> job_events.Look:
        authenticate()
        return job_events.look(source, job_id, after=seen)

    told = job_events.events(
        first,
        again,
        service.is_stopping if stays else lambda: True,
        after=after,
    )
    response = Response(told, content_type=job_events.CONTENT_TYPE, headers=NOT_KEPT)
    if stays:
        response.call_on_close(service.waiting.release)
    return response


@jobs.get("/v1/jobs/<id:job_id>/result", scope=WATCHING)
@jobs.arguments(schemas.JobResultQuery, location="query")
@jobs.response(200, {"anyOf": [schemas.JobResult, schemas.Comparison]}, description="The version, or the comparison")
@jobs.response(200, {"type": "string"}, content_type=RESULT_TYPES["ndjson"])
@jobs.response(200, {"type": "string"}, content_type=RESULT_TYPES["csv"])
@jobs.response(200, {"type": "string", "format": "binary"}, content_type=RESULT_TYPES["parquet"])
@jobs.refuses(404, 409, 422)
def get_job_result(query: dict[str, Any], job_id: str) -> Response:
    """Look at what came of a job that has succeeded: the new version, all of a comparison, or every answer.

    The answers of a prediction job come as lines of JSON, as CSV or as Parquet, by `format` or by the header Accept.
    """
    with read_session(current_service().sessions) as session:
        job = job_queue.find_job(session, job_id)
    current_caller().check_job(job, Scope.READ)
    if job.state != State.SUCCEEDED:
        raise Conflict(f"the job is {job.state}: only one that has succeeded has a result")
    if job.kind == Kind.PREDICT:
        return _answers_of(job, query["format"] or _accepted_form())
    return json_answer(RESULTS.get(Kind(job.kind), SHOWN_RESULT).dump(job.result))


@jobs.post("/v1/jobs/<id:job_id>/cancel", scope=CANCELLING)
@jobs.response(202, schemas.Job, description="Cancelled at once if it was queued; a running one stops within seconds")
@jobs.refuses(404, 409)
def cancel_job(job_id: str) -> Response:
    """Cancel a job."""
    with transaction(current_service().sessions) as session:
        current_caller().check_job(job_queue.find_job(session, job_id), Scope.TRAIN)
        return json_answer(SHOWN.dump(job_queue.cancel(session, job_id)), status=202)


@jobs.post("/v1/jobs/<id:job_id>/retry", scope=Scope.TRAIN)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(404, 409, 429)
def retry_job(job_id: str) -> Response:
    """Queue a job again that has failed, was cancelled or has spent its attempts; it counts for the key that asks now.

    Refused where its version was deleted or archived since, or one of its data sets deleted or declared anew: ask for a
    new job.
    """
    with transaction(current_service().sessions) as session:
        job = job_queue.find_job(session, job_id)
        current_caller().check_job(job, Scope.TRAIN)
        job_queue.check_room(session, key_id=current_caller().key_id, limit=current_service().settings.max_jobs)
        again = job_requests.try_again(session, job)
        again.key_id = current_caller().key_id
        return _accepted(again)


def _last_seen() -> int:
    """Give the number of the last event that the caller has seen; 0: of none."""
    given = request.headers.get("Last-Event-ID", "")
    if given and not EVENT_ID.fullmatch(given):
        raise ValidationFailed([Fault("/Last-Event-ID", "invalid", "must be an id that an event had: a whole number")])
    return int(given or 0)


def _answers_of(job: Job, form: str) -> Response:
    """Stream the answers of a prediction job from its records in the log."""
    service = current_service()
    try:
        with read_session(service.sessions) as session:
            model = service.models.get(session, job.payload["version_id"]).model
    except NotFound:  # a version goes only after its decisions
        raise Conflict(NONE_KEPT.format(first_row=0)) from None
    batches = answers_of_job(service.sessions, job.id, n_rows=(job.result or {})["n_rows"])
    pieces = written(batches, model, form=form, with_rule=job.payload["explain"] != "none")
    head = next(pieces) + next(pieces, b"")  # what cannot begin is a problem document
    return Response(chain([head], pieces), content_type=RESULT_TYPES[form])


def _accepted_form() -> str:
    """Give the form that the caller likes best; of equals the first."""
    liked = request.accept_mimetypes.best_match(list(RESULT_TYPES.values()), default=RESULT_TYPES["ndjson"])
    return next(form for form, content_type in RESULT_TYPES.items() if content_type == liked)


def _requested(plan: Callable[..., job_requests.Plan], asked: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Plan what was asked for, and queue it in the name of the caller."""
    service = current_service()
    current_caller().check_model(asked.get("model"))
    with read_session(service.sessions) as session:
        planned = plan(session, service.models, asked, faults=faults)
    with creating() as session:
        job_queue.check_room(session, key_id=current_caller().key_id, limit=service.settings.max_jobs)
        job = job_requests.submit(session, planned, settings=service.settings)
        job.key_id = current_caller().key_id
        return remember(session, _accepted(job))


def _accepted(job: Job) -> Response:
    shown = SHOWN.dump(job)
    return json_answer(shown, status=202, headers={"Location": f"{request.root_path}/v1/jobs/{shown['id']}"})


def _show(job_id: str) -> dict[str, Any]:
    with read_session(current_service().sessions) as session:
        job = job_queue.find_job(session, job_id)
        current_caller().check_job(job, Scope.READ)
        shown: dict[str, Any] = SHOWN.dump(job)
        return shown


def _wait(job_id: str, *, seconds: float) -> dict[str, Any]:
    service = current_service()
    deadline = time.monotonic() + seconds
    if not service.waiting.acquire(blocking=False):
        return _show(job_id)
    try:
        job = _show(job_id)
        while job["state"] not in job_queue.FINAL and time.monotonic() < deadline and not service.is_stopping():
            time.sleep(LOOK_SECONDS)
            job = _show(job_id)
        return job
    finally:
        service.waiting.release()
