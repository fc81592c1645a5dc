"""Jobs: train, prune, evaluate, predict; watch, cancel, retry."""

import re
import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import marshmallow as ma
from flask import Response, request

from service.api import job_events
from service.api.auth import reauthenticate
from service.api.blueprint import LOCATION, Blueprint, View
from service.api.context import current_caller, current_service, find_job, queued_job
from service.api.etags import tagged_response
from service.api.idempotency import remember
from service.api.request_bodies import MAX_MEMBERS, read_json
from service.api.responses import created_response, json_response, page_response
from service.api.routing import JOB
from service.database.engine import read_session, transaction
from service.database.tables import Job, Kind, Scope, State
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories import job_queue
from service.repositories.decisions import NONE_KEPT, answers_of_job
from service.schemas import jobs as schemas
from service.schemas.fields import page_of, parameter
from service.serialization.answer_formats import encode_result
from service.serialization.media_types import CSV, EVENTS, JSON, NDJSON, PARQUET, RESULTS
from service.usecases import jobs as usecases
from service.usecases.batch_prediction import plan_prediction
from service.usecases.evaluation import plan_evaluation
from service.usecases.jobs import Planner
from service.usecases.pruning import plan_pruning
from service.usecases.training import plan_training

jobs = Blueprint("jobs", __name__, description="Work that a worker does in the background")

JOB_SCHEMA = schemas.Job()
RESULT_SCHEMA = schemas.JobResult()
# A key with the scope predict may use the prediction jobs that it has requested: see `Caller.check_job`.
WATCHING = (Scope.READ, Scope.PREDICT)
CANCELLING = (Scope.TRAIN, Scope.PREDICT)
POLL_SECONDS = 0.1  # between queries while a request waits
EVENT_ID = re.compile(r"[0-9]{1,18}")
LAST_EVENT_ID = parameter(
    "header",
    "Last-Event-ID",
    {"type": "string", "pattern": f"^{EVENT_ID.pattern}$"},
    "id of the last event that was received; the stream continues after it",
)


def _requested(path: str, schema: type[ma.Schema], *, scope: Scope = Scope.TRAIN) -> Callable[[View], View]:
    """Return a decorator that registers a view at `path`; the view queues the job that the request body describes."""
    body = {"required": True, "content": {JSON: {"schema": schema}}}
    register = jobs.post(path, scope=scope, body=body, refuses=(429,), creates=True)
    accepted = jobs.response(202, schemas.Job, headers=LOCATION)
    return lambda view: register(accepted(view))


@_requested("/v1/training-jobs", schemas.TrainingJobRequest)
def train() -> Response:
    """Train a new version of a model."""
    return _queue(plan_training, schemas.TrainingJobRequest())


@_requested("/v1/pruning-jobs", schemas.PruningJobRequest)
def prune() -> Response:
    """Prune a version into a new version; the old one does not change."""
    return _queue(plan_pruning, schemas.PruningJobRequest())


@_requested("/v1/evaluation-jobs", schemas.EvaluationJobRequest)
def evaluate() -> Response:
    """Compare several configurations on the same folds or the same held-out rows; no version is made."""
    return _queue(plan_evaluation, schemas.EvaluationJobRequest())


@_requested("/v1/prediction-jobs", schemas.PredictionJobRequest, scope=Scope.PREDICT)
def predict_data_set() -> Response:
    """Predict every row of a data set; each prediction is logged, and all of them are the result of the job."""
    return _queue(plan_prediction, schemas.PredictionJobRequest())


@jobs.get("/v1/jobs", scope=Scope.READ, query=schemas.JobQuery, shows=page_of(schemas.Job))
def list_jobs(query: dict[str, Any]) -> Response:
    """List jobs, newest first."""
    caller = current_caller()
    with read_session(current_service().sessions) as session:
        page = job_queue.list_jobs(session, models=caller.models, key_id=caller.key_id, **query)
        return page_response(page, JOB_SCHEMA)


@jobs.get(JOB, scope=WATCHING, query=schemas.JobWaitQuery, shows=schemas.Job)
def get_job(query: dict[str, Any], job_id: str) -> Response:
    """Return a job, or wait for its end.

    With `wait`, the response comes when the job has ended, but at the latest after `wait` seconds. At most a quarter of
    the threads may wait; further requests are answered at once. Repeat the request while `state` is queued or running.
    """
    service = current_service()
    deadline = time.monotonic() + query["wait"]
    job = _find(job_id)
    if query["wait"] and service.waiting.acquire(blocking=False):
        try:
            while job.state not in job_queue.FINAL and time.monotonic() < deadline and not service.is_stopping():
                time.sleep(POLL_SECONDS)
                job = _find(job_id)
        finally:
            service.waiting.release()
    return tagged_response(JOB_SCHEMA.dump(job))


@jobs.get(f"{JOB}/events", scope=WATCHING, refuses=(422,))
@jobs.doc(parameters=[LAST_EVENT_ID])
@jobs.response(200, schemas.JOB_EVENT, content_type=EVENTS, description="Server-sent events")
def watch_job(job_id: str) -> Response:
    """Watch a job: its transitions, its progress with phase and rate, and its end, as server-sent events.

    A stream lasts at most 300 s; the next one continues after the event in `Last-Event-ID`. Streams and waiting
    requests together may use a quarter of the threads; a further stream sends the present state and ends.
    """
    given = request.headers.get("Last-Event-ID", "")
    if given and not EVENT_ID.fullmatch(given):
        raise ValidationFailed.of("/Last-Event-ID", "invalid", "must be the id of an event: a whole number")
    return job_events.stream(job_id, reauthenticate(), job_events.events, after=int(given or 0))


@jobs.get(f"{JOB}/result", scope=WATCHING, query=schemas.JobResultQuery, refuses=(409,))
@jobs.response(200, {"anyOf": [schemas.JobResult, schemas.Comparison]}, description="The version, or the comparison")
@jobs.response(200, {"type": "string"}, content_type=NDJSON)
@jobs.response(200, {"type": "string"}, content_type=CSV)
@jobs.response(200, {"type": "string", "format": "binary"}, content_type=PARQUET)
def get_job_result(query: dict[str, Any], job_id: str) -> Response:
    """Return the result of a job that has succeeded: the new version, the comparison, or all predictions.

    The predictions of a prediction job are returned as NDJSON, CSV or Parquet, by `format` or the header Accept.
    """
    job = _find(job_id)
    if job.state != State.SUCCEEDED:
        raise Conflict(f"the job is {job.state}: only a job that has succeeded has a result")
    if job.kind == Kind.PREDICT:
        preferred = request.accept_mimetypes.best_match(list(RESULTS.values()), default=NDJSON)
        return _predictions(job, query["format"] or next(form for form in RESULTS if RESULTS[form] == preferred))
    return json_response((schemas.Comparison() if job.kind == Kind.EVALUATE else RESULT_SCHEMA).dump(job.result))


@jobs.post(f"{JOB}/cancel", scope=CANCELLING, refuses=(409,))
@jobs.response(202, schemas.Job, description="A queued job is cancelled; a running one stops within seconds")
def cancel_job(job_id: str) -> Response:
    """Cancel a job."""
    with transaction(current_service().sessions) as session:
        find_job(session, job_id, Scope.TRAIN)
        return json_response(JOB_SCHEMA.dump(job_queue.cancel(session, job_id)), status=202)


@jobs.post(f"{JOB}/retry", scope=Scope.TRAIN, refuses=(409, 429))
@jobs.response(202, schemas.Job, headers=LOCATION)
def retry_job(job_id: str) -> Response:
    """Queue again a job that has failed, was cancelled or has used up its attempts.

    The job then belongs to the key that retries it. Refused if the job's version was deleted, or one of its data sets
    was deleted or redeclared; a prediction job also if its version was archived. In these cases, request a new job.
    """
    with transaction(current_service().sessions) as session:
        job = find_job(session, job_id, Scope.TRAIN)
        settings, key_id = current_service().settings, current_caller().key_id
        return _accepted(usecases.retry_job(session, job, settings=settings, key_id=key_id))


def _predictions(job: Job, form: str) -> Response:
    service = current_service()
    try:
        with read_session(service.sessions) as session:
            payload = job_queue.find_job(session, job.id).payload
            model = service.models.get(session, payload["version_id"]).model
    except NotFound:  # the version was deleted, which requires that it has no decisions
        raise Conflict(NONE_KEPT.format(first_row=0)) from None
    batches = answers_of_job(service.sessions, job.id, n_rows=(job.result or {})["n_rows"])
    parts = encode_result(batches, model, form=form, with_rule=payload["explain"] != "none")
    head = next(parts) + next(parts, b"")  # an error in the first batch is still a problem document
    return Response(chain([head], parts), content_type=RESULTS[form])


def _queue(make_plan: Planner, schema: ma.Schema) -> Response:
    with queued_job(make_plan, schema, read_json(request, max_members=MAX_MEMBERS)) as (session, job):
        return remember(session, _accepted(job))


def _accepted(job: Job) -> Response:
    shown = JOB_SCHEMA.dump(job)
    return created_response(shown, f"/v1/jobs/{shown['id']}", status=202)


def _find(job_id: str) -> Job:
    with read_session(current_service().sessions) as session:
        return find_job(session, job_id, Scope.READ)
