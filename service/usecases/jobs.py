"""Check job requests and queue their jobs. A request is refused if a fault can be found before its job runs.

    request ──plan_…──> new job ──queue_job──> queued job
              (reads)             (writes)

The core checks configurations, pruning methods and holdouts against the data set (schema, target and weights) and the
parent model. The faults that are found are collected and raised together.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet, Job, Kind, ModelName, Version
from service.errors import Conflict, NotFound, ValidationFailed, relocate
from service.repositories import datasets, job_queue, models
from service.repositories.datasets import find_data_set
from service.repositories.model_cache import ModelCache
from service.settings import Settings

FORMS = 'must be {"fraction": 0.3, "seed": 1, "stratified": true}, {"rows": [0, 5, …]} or {"dataset": "an id"}'


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job request that is being checked, with a session for reading and the cache of decoded versions.

    `members` are the well-formed members of the body. At first, `faults` has the faults of the malformed members; the
    checks add more. The path of a fault is a JSON pointer into the body.
    """

    session: Session
    models: ModelCache
    members: Mapping[str, Any]
    faults: list[Fault] = field(default_factory=list)

    def fault(self, place: str, code: str, message: str) -> None:
        """Add a fault."""
        self.faults.append(Fault(place, code, message))

    @contextmanager
    def collecting(self, below: str = "", elsewhere: Mapping[str, str] | None = None) -> Iterator[None]:
        """Catch the faults that the core raises in the block; add each once, with the pointer that `relocate` makes."""
        pointer = relocate(below, elsewhere)
        try:
            yield
        except espalier.InvalidInput as error:
            located = [Fault(pointer(fault.path), fault.code, fault.message) for fault in error.faults]
            self.faults[:] = dict.fromkeys([*self.faults, *located])

    def data_set(self, at: str = "") -> DataSet | None:
        """Return the data set that the request (or its part at `at`) names; None if it names none, or after a fault."""
        part = self.members[at.removeprefix("/")] if at else self.members
        if "dataset" not in part:
            return None
        try:
            return find_data_set(self.session, part["dataset"] if isinstance(part["dataset"], str) else "")
        except NotFound:
            message = "there is no data set of this id; GET /v1/datasets lists them"
            self.fault(f"{at}/dataset", "unknown_data_set", message)
            return None

    def version(self) -> Version | None:
        """Return the named version; without a number, the newest that is not archived. Return None after a fault."""
        session, members = self.session, self.members
        if "model" not in members:
            return None
        try:
            if "version" not in members:
                models.find_model(session, members["model"])
                return None
            if members["version"] is None:
                return session.get_one(Version, models.newest_version_id(session, members["model"]))
            return models.find_version(session, members["model"], members["version"])
        except NotFound as error:
            if error.kind == "model":
                self.fault("/model", "unknown_model", "there is no model of this name; GET /v1/models lists them")
            else:
                self.fault("/version", "unknown_version", "the model has no such version")
            return None

    def params(self, part: Mapping[str, Any], *beside: str, at: str = "") -> dict[str, Any]:
        """Return ``params`` of `part` without the names in `beside`; add a fault below `at` for each removed name."""
        params = dict(part.get("params") or {})
        for name in beside:
            if name in params:
                del params[name]
                self.fault(f"{at}/params/{name}", "unknown_field", f"the {name} belongs beside params, not in them")
        return params


Planner = Callable[[JobRequest], Job]
"""Checks a request and returns its job, which is not queued yet; raises `ValidationFailed` with the faults found.

In the payload, ``fingerprints`` maps the id of each data set to its fingerprint. A payload with a ``version_id`` also
has the ``model`` and the number ``version``.
"""


def queue_job(session: Session, job: Job, *, settings: Settings, key_id: str | None = None) -> Job:
    """Queue a new job; its version and data sets cannot be deleted until it has ended.

    Raises `ValidationFailed` if they have changed since the check, and `LimitExceeded` for too many unfinished jobs.
    """
    job_queue.check_room(session, key_id=key_id, limit=settings.max_jobs)
    changes = _changes(session, job)
    ValidationFailed.raise_for(replace(change, message=f"{change.message} a moment ago") for change in changes)
    return job_queue.enqueue(session, job, max_attempts=settings.job_attempts, key_id=key_id)


def retry_job(session: Session, job: Job, *, settings: Settings, key_id: str | None = None) -> Job:
    """Queue a failed, cancelled or dead job again, for this key.

    Raises `Conflict` in another state, or if the version or a data set has changed; `LimitExceeded` as in `queue_job`.
    """
    job_queue.check_room(session, key_id=key_id, limit=settings.max_jobs)
    for change in _changes(session, job):
        raise Conflict(f"{change.message} since this job was requested: request a new one")
    queued = job_queue.retry(session, job.id)
    queued.key_id = key_id
    return queued


def new_job(
    kind: Kind, data_set: DataSet | None, holdout: DataSet | None = None, /, *, model: str | None = None, **payload: Any
) -> Job:
    """Return a job. Its payload is `payload`, the model's name, if any, and the fingerprints of the data sets."""
    ids = [None if each is None else each.id for each in (data_set, holdout)]
    payload["fingerprints"] = {each.id: each.fingerprint for each in (data_set, holdout) if each is not None}
    payload |= {} if model is None else {"model": model}
    return Job(kind=kind, model=model, payload=payload, data_set_id=ids[0], holdout_data_set_id=ids[1])


def _changes(session: Session, job: Job) -> Iterator[Fault]:
    """Yield a job's new faults if its version or data sets have changed since the check; lock both until the commit."""
    payload = job.payload
    if "version_id" in payload:
        # Deleting or archiving a version takes an exclusive lock on its model, which waits for this shared lock.
        model = select(ModelName.id).where(ModelName.name == payload["model"])
        session.execute(model.with_for_update(read=True, key_share=True))
        version = session.get(Version, payload["version_id"], populate_existing=True)
        name = f"version {payload['version']} of model {payload['model']!r}"
        if version is None:
            yield Fault("/version", "unknown_version", f"{name} was deleted")
        elif job.kind == Kind.PREDICT and version.archived is not None:
            yield Fault("/version", "archived_version", f"{name} was archived")
    for data_set_id, was in payload.get("fingerprints", {}).items():
        place = "/dataset" if data_set_id == job.data_set_id else "/holdout/dataset"
        row = session.get(DataSet, data_set_id, with_for_update={"read": True}, populate_existing=True)
        if row is None:
            yield Fault(place, "unknown_data_set", f"data set {data_set_id} was deleted")
        elif row.fingerprint != was:
            yield Fault(place, "changed_data_set", f"data set {data_set_id} was redeclared")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The holdout of a request: some `rows` of the training data, another data set, or nothing.

    `n_rows` is the number of held-out rows of the training data; 0 if there are none or the number is not known.
    """

    rows: espalier.Holdout | None = None
    data_set: DataSet | None = None
    n_rows: int = 0


def read_holdout(request: JobRequest, data_set: DataSet | None, model: espalier.Model | None = None) -> HeldOut:
    """Read the ``holdout`` of a request, and add the faults of the holdout to the request's.

    If the holdout is another data set, it must have the attributes and the target of `model` (without a model: of
    `data_set`), and it must not be the training data itself.
    """
    given = request.members.get("holdout")
    if given is None:
        return HeldOut()
    if isinstance(given, Mapping) and "dataset" in given:
        for name in (each.replace("~", "~0").replace("/", "~1") for each in given if each != "dataset"):
            request.fault(f"/holdout/{name}", "unknown_field", "is not legal beside dataset")
        other = request.data_set("/holdout")
        if other is not None and model is not None:
            request.faults.extend(_incompatibilities(model.schema, model.training.fingerprint, other))
        elif other is not None and data_set is not None:
            schema = espalier.Schema.from_dict(data_set.declared)
            request.faults.extend(_incompatibilities(schema, data_set.fingerprint, other))
        return HeldOut(data_set=other)
    if not isinstance(given, Mapping) or not given.keys() & {"fraction", "rows"}:
        request.fault("/holdout", "wrong_type", FORMS)
        return HeldOut()
    held_out = HeldOut()
    with request.collecting("/holdout"):
        held_out = HeldOut(rows := espalier.holdout_from_dict(given))
        if data_set is not None:
            held_out = HeldOut(rows, n_rows=check_rows(request, rows, data_set))
    return held_out


def check_rows(request: JobRequest, holdout: espalier.Holdout, data_set: DataSet) -> int:
    """Return the number of held-out rows; 0 if a fault prevents counting them, or if the data set has no target.

    Add a fault if a held-out row does not exist, if no row is left, or if all held-out or all other rows have weight 0.
    """
    last = data_set.n_rows - 1
    if holdout.rows is not None and (max(holdout.rows) > last or len(holdout.rows) > last):
        request.fault("/holdout/rows", "out_of_range", f"must be some, not all, of the rows 0 to {last}")
        return 0
    n_rows = 0
    if data_set.task is not None:
        with request.collecting("/holdout"):
            targets = load_targets(request.session, data_set)
            rows = espalier.held_out_rows(holdout, targets)
            n_rows = len(rows)
            if not 0 < np.count_nonzero(targets.weight[rows]) < np.count_nonzero(targets.weight):
                message = "both the held-out rows and the other rows must have some weight"
                request.fault("/holdout", "no_weight", message)
    return n_rows


def load_targets(session: Session, data_set: DataSet) -> espalier.Dataset:
    """Return the target and the weights of a data set, without its attributes."""
    return datasets.load_data_set(session, data_set.id, roles=(espalier.Role.TARGET, espalier.Role.WEIGHT))


def _incompatibilities(schema: espalier.Schema, fingerprint: str, other: DataSet) -> Iterator[Fault]:
    if other.n_rows == 0:
        yield Fault("/holdout/dataset", "no_rows", "the data set has no rows")
    if other.fingerprint == fingerprint:
        message = "the data set has the same rows as the training data: give other rows"
        yield Fault("/holdout/dataset", "not_legal", message)
    theirs = {feature.name: feature for feature in espalier.Schema.from_dict(other.declared).features}
    needed = [one for one in schema.features if one.role in (espalier.Role.ATTRIBUTE, espalier.Role.TARGET)]
    for feature in sorted(needed, key=lambda one: one.name):
        match = theirs.get(feature.name)
        if match is None:
            yield Fault("/holdout/dataset", "missing_column", f"the data set has no column {feature.name!r}")
        elif not espalier.is_compatible(match, feature) or (
            feature.role is espalier.Role.TARGET and match.coded != feature.coded
        ):
            message = f"the data set's column {feature.name!r} is {match.kind}, and must be {feature.kind}"
            yield Fault("/holdout/dataset", "kind", message)
