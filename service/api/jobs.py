"""Jobs over HTTP: train, prune, compare, predict; watch, cancel, retry."""

import re
import time
from collections.abc import Mapping, Sequence
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
from service.usecases import jobs as usecases
from service.usecases.batch_prediction import plan_prediction
from service.usecases.evaluation import plan_evaluation
from service.usecases.jobs import Planner
from service.usecases.pruning import plan_pruning
from service.usecases.training import plan_training

jobs = Blueprint("jobs", __name__, description="Work that takes its time")

JOB_SCHEMA = schemas.Job()
RESULT_SCHEMA = schemas.JobResult()
RESULT_SCHEMAS = {Kind.EVALUATE: schemas.Comparison()}
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "where to watch the job"}}
# A key with the scope predict reaches the prediction jobs that it asked for: see `Caller.check_job`.
WATCHING = (Scope.READ, Scope.PREDICT)
CANCELLING = (Scope.TRAIN, Scope.PREDICT)
POLL_SECONDS = 0.1  # between queries while a request waits
EVENT_ID = re.compile(r"[0-9]{1,18}")
LAST_EVENT_ID: Mapping[str, Any] = {
    "in": "header",
    "name": "Last-Event-ID",
    "required": False,
    "schema": {"type": "string", "pattern": f"^{EVENT_ID.pattern}$"},
    "description": "the id of the last event that was seen: what came after it is told",
}
NO_STORE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # by a proxy in between, either


@jobs.post("/v1/training-jobs", scope=Scope.TRAIN, creates=True)
@jobs.lenient_arguments(schemas.TrainingJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def train(body: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Train a new version of a model."""
    return _queue(plan_training, body, faults)


@jobs.post("/v1/pruning-jobs", scope=Scope.TRAIN, creates=True)
@jobs.lenient_arguments(schemas.PruningJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def prune(body: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Prune a version into a new one; the old one stays as it is."""
    return _queue(plan_pruning, body, faults)


@jobs.post("/v1/evaluation-jobs", scope=Scope.TRAIN, creates=True)
@jobs.lenient_arguments(schemas.EvaluationJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def evaluate(body: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Compare several ways of training on the same folds, or on the same held-out rows; no version is made."""
    return _queue(plan_evaluation, body, faults)


@jobs.post("/v1/prediction-jobs", scope=Scope.PREDICT, creates=True)
@jobs.lenient_arguments(schemas.PredictionJobRequest)
@jobs.response(202, schemas.Job, headers=LOCATION)
@jobs.refuses(400, 413, 415, 422, 429)
def predict_data_set(body: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Answer every row of a data set; each answer is a decision in the log, and all of them are the job's result."""
    return _queue(plan_prediction, body, faults)


@jobs.get("/v1/jobs", scope=Scope.READ)
@jobs.arguments(schemas.JobQuery, location="query")
@jobs.tagged(schemas.JobPage)
@jobs.refuses(422)
def list_jobs(query: dict[str, Any]) -> Response:
    """List jobs, newest first."""
    caller = current_caller()
    with read_session(current_service().sessions) as session:
        jobs = job_queue.list_jobs(session, models=caller.models, key_id=caller.key_id, **query)
        return page_answer(jobs, JOB_SCHEMA)


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
@jobs.doc(parameters=[LAST_EVENT_ID])
@jobs.response(200, schemas.JOB_EVENT, content_type=job_events.CONTENT_TYPE, description="Server-sent events")
@jobs.refuses(404, 422)
def watch_job(job_id: str) -> Response:
    """Watch a job: its transitions, its progress with phase and rate, and its end, as server-sent events.

    After a break the events go on behind the one named in `Last-Event-ID`. Streams and those who `wait` may hold a
    quarter of the threads between them; beyond that a stream says what there is and ends, and is to be asked for again.
    """
    service, source = current_service(), current_service().sessions
    after = _last_event_id()
    first = job_events.snapshot(source, job_id, after=after)
    current_caller().check_job(first.job, Scope.READ)
    stays = service.waiting.acquire(blocking=False)
    authenticate = reauthenticate()

    def next_snapshot(last_event: int) -> job_events.JobSnapshot:
        authenticate()
        return job_events.snapshot(source, job_id, after=last_event)

    is_over = service.is_stopping if stays else lambda: True
    stream = job_events.events(first, next_snapshot, is_over, after=after)
    response = Response(stream, content_type=job_events.CONTENT_TYPE, headers=NO_STORE)
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
        return _answers_of(job, query["format"] or _accepted_format())
    return json_answer(RESULT_SCHEMAS.get(Kind(job.kind), RESULT_SCHEMA).dump(job.result))


@jobs.post("/v1/jobs/<id:job_id>/cancel", scope=CANCELLING)
@jobs.response(202, schemas.Job, description="Cancelled at once if it was queued; a running one stops within seconds")
@jobs.refuses(404, 409)
def cancel_job(job_id: str) -> Response:
    """Cancel a job."""
    with transaction(current_service().sessions) as session:
        current_caller().check_job(job_queue.find_job(session, job_id), Scope.TRAIN)
        return json_answer(JOB_SCHEMA.dump(job_queue.cancel(session, job_id)), status=202)


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
        settings, key_id = current_service().settings, current_caller().key_id
        return _accepted(usecases.retry_job(session, job, settings=settings, key_id=key_id))


def _last_event_id() -> int:
    """Return the number of the last event that the caller has seen; 0: of none."""
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
    parts = written(batches, model, form=form, with_rule=job.payload["explain"] != "none")
    head = next(parts) + next(parts, b"")  # what cannot begin is a problem document
    return Response(chain([head], parts), content_type=RESULT_TYPES[form])


def _accepted_format() -> str:
    """Return the format that the header Accept prefers; of equals the first."""
    liked = request.accept_mimetypes.best_match(list(RESULT_TYPES.values()), default=RESULT_TYPES["ndjson"])
    return next(form for form, content_type in RESULT_TYPES.items() if content_type == liked)


def _queue(make_plan: Planner, body: Mapping[str, Any], faults: Sequence[Fault]) -> Response:
    """Plan the job that a request describes, and queue it for the caller's key."""
    service, caller = current_service(), current_caller()
    caller.check_model(body.get("model"))
    with read_session(service.sessions) as session:
        plan = make_plan(session, service.models, body, faults=faults)
    with creating() as session:
        job = usecases.queue_job(session, plan, settings=service.settings, key_id=caller.key_id)
        return remember(session, _accepted(job))


def _accepted(job: Job) -> Response:
    shown = JOB_SCHEMA.dump(job)
    return json_answer(shown, status=202, headers={"Location": f"{request.root_path}/v1/jobs/{shown['id']}"})


def _show(job_id: str) -> dict[str, Any]:
    with read_session(current_service().sessions) as session:
        job = job_queue.find_job(session, job_id)
        current_caller().check_job(job, Scope.READ)
        shown: dict[str, Any] = JOB_SCHEMA.dump(job)
        return shown


def _wait(job_id: str, *, seconds: float) -> dict[str, Any]:
    service = current_service()
    deadline = time.monotonic() + seconds
    if not service.waiting.acquire(blocking=False):
        return _show(job_id)
    try:
        job = _show(job_id)
        while job["state"] not in job_queue.FINAL and time.monotonic() < deadline and not service.is_stopping():
            time.sleep(POLL_SECONDS)
            job = _show(job_id)
        return job
    finally:
        service.waiting.release()
