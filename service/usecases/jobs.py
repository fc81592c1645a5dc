"""Queue the jobs that requests ask for. What can be known to be wrong is refused before a job is in the queue.

    request ──plan_…──> JobPlan ──queue_job──> job
              (reads)             (writes)

The core's own functions read and check configurations, methods and holdouts against the schema of the data set, its
target and weights, and the parent model. A plan collects all faults of a request before it raises; it begins with the
faults of form, found before, whose members are absent from the request.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from espalier import Fault
from service.database.tables import DataSet, Job, Kind, ModelName, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories import job_queue, models
from service.repositories.datasets import find_data_set
from service.settings import Settings
from service.usecases.model_cache import ModelCache


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job that was checked, but is not in the queue yet.

    Attributes:
        payload: As the handler of the kind reads it. ``fingerprints`` are those of the data sets when they were
            checked, by id; with ``version_id`` goes the name of its ``model``.
    """

    kind: Kind
    payload: Mapping[str, Any]
    model: str | None = None
    data_set_id: str | None = None
    holdout_data_set_id: str | None = None


class Planner(Protocol):
    """A function that checks a request and plans its job."""

    def __call__(
        self, session: Session, models: ModelCache, request: Mapping[str, Any], *, faults: Sequence[Fault] = ()
    ) -> JobPlan:
        """Plan a job.

        Args:
            session: For reading.
            models: Decoded versions.
            request: The members of the request that have no fault of form.
            faults: The faults of form.

        Raises:
            ValidationFailed: Every fault, by its place in the request.
        """


def queue_job(session: Session, plan: JobPlan, *, settings: Settings, key_id: str | None = None) -> Job:
    """Put a planned job into the queue. Its version and data sets cannot be deleted until it has ended.

    Raises:
        LimitExceeded: The key has too many unfinished jobs.
        ValidationFailed: The version was deleted or archived, or a data set deleted or redeclared, since the plan.
    """
    job_queue.check_room(session, key_id=key_id, limit=settings.max_jobs)
    lost = _lost_version(session, plan.kind, plan.payload)
    if lost is not None:
        raise ValidationFailed([Fault("/version", lost[0], f"this version {lost[1]} a moment ago")])
    places = {plan.holdout_data_set_id: "/holdout/dataset", plan.data_set_id: "/dataset"}
    faults = [
        Fault(places[data_set_id], code, f"this data set {what} a moment ago")
        for data_set_id, code, what in _changed_data_sets(session, plan.payload["fingerprints"])
    ]
    if faults:
        raise ValidationFailed(faults)
    return job_queue.enqueue(
        session,
        kind=plan.kind,
        payload=plan.payload,
        max_attempts=settings.job_attempts,
        model=plan.model,
        data_set_id=plan.data_set_id,
        holdout_data_set_id=plan.holdout_data_set_id,
        key_id=key_id,
    )


def retry_job(session: Session, job: Job, *, settings: Settings, key_id: str | None = None) -> Job:
    """Queue a job again that ended without success; from now on it counts for the key that retries it.

    Raises:
        LimitExceeded: The key has too many unfinished jobs.
        Conflict: The version was deleted or archived, or a data set deleted or redeclared, since the job was
            requested, or the job is queued, running or succeeded.
    """
    job_queue.check_room(session, key_id=key_id, limit=settings.max_jobs)
    lost = _lost_version(session, Kind(job.kind), job.payload)
    if lost is not None:
        version = f"version {job.payload['version']} of model {job.payload['model']!r}"
        raise Conflict(f"{version} {lost[1]} since this job was asked for: ask for a new one")
    for data_set_id, _, what in _changed_data_sets(session, job.payload.get("fingerprints", {})):
        raise Conflict(f"data set {data_set_id} {what} since this job was asked for: ask for a new one")
    queued = job_queue.retry(session, job.id)
    queued.key_id = key_id
    return queued


def fingerprints(*data_sets: DataSet | None) -> dict[str, str]:
    """Return the fingerprints of the data sets that are given, by id."""
    return {data_set.id: data_set.fingerprint for data_set in data_sets if data_set is not None}


def requested_data_set(
    session: Session, given: Mapping[str, Any], *, at: str = "", faults: list[Fault]
) -> DataSet | None:
    """Return the data set that the member ``dataset`` names; None, and a fault, where there is none.

    Args:
        session: For reading.
        given: The request or a part of it.
        at: The place of `given` in the request.
        faults: Those found are added.
    """
    if "dataset" not in given:
        return None
    try:
        return find_data_set(session, given["dataset"] if isinstance(given["dataset"], str) else "")
    except NotFound:
        message = "there is no data set of this id; GET /v1/datasets lists them"
        faults.append(Fault(f"{at}/dataset", "unknown_data_set", message))
        return None


def requested_version(session: Session, request: Mapping[str, Any], *, faults: list[Fault]) -> Version | None:
    """Return the version that a request names, else the newest that answers; None, and a fault, where there is none."""
    if "model" not in request:
        return None
    try:
        if "version" not in request:
            models.find_model(session, request["model"])
            return None
        if request["version"] is None:
            return session.get_one(Version, models.newest_version_id(session, request["model"]))
        return models.find_version(session, request["model"], request["version"])
    except NotFound as error:
        unknown_model = Fault("/model", "unknown_model", "there is no model of this name; GET /v1/models lists them")
        unknown_version = Fault("/version", "unknown_version", "the model has no such version")
        faults.append(unknown_model if error.kind == "model" else unknown_version)
        return None


def params_of(given: Mapping[str, Any], *beside: str, at: str = "", faults: list[Fault]) -> dict[str, Any]:
    """Return ``given["params"]`` without the names in `beside`, which are refused there: they have their own place."""
    params = dict(given.get("params") or {})
    for name in beside:
        if name in params:
            del params[name]
            message = f"the {name} is given beside params, not in them"
            faults.append(Fault(f"{at}/params/{name}", "unknown_field", message))
    return params


def _lost_version(session: Session, kind: Kind, payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return a code and what happened to the version of a job; None: it is there, and stays until the commit."""
    if "version_id" not in payload:
        return None
    # Whoever deletes or archives a version locks its model exclusively; versions may be added meanwhile.
    model = select(ModelName.id).where(ModelName.name == payload["model"])
    session.execute(model.with_for_update(read=True, key_share=True))
    version = session.get(Version, payload["version_id"], populate_existing=True)
    if version is None:
        return "unknown_version", "was deleted"
    if kind is Kind.PREDICT and version.archived is not None:
        return "archived_version", "was archived"
    return None


def _changed_data_sets(session: Session, fingerprints: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield id, code and what happened of each data set that has changed; the others stay until the commit."""
    for data_set_id, was in fingerprints.items():
        row = session.get(DataSet, data_set_id, with_for_update={"read": True}, populate_existing=True)
        if row is None:
            yield data_set_id, "unknown_data_set", "was deleted"
        elif row.fingerprint != was:
            yield data_set_id, "changed_data_set", "was declared anew"
