"""Handlers of jobs: for each kind, a function from the payload to a new model version or a result.

A handler runs in the child process of an attempt and only reads the database. The worker saves its result.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

import espalier
from service.database.engine import Sessions, read_session
from service.database.tables import Job, Kind, Version
from service.errors import StoreUnavailable, Unavailable
from service.repositories import datasets, decisions
from service.repositories.model_cache import load_version
from service.repositories.models import NewVersion
from service.serialization.table_records import record_rows, table_record
from service.settings import Settings
from service.usecases.version_resolver import model_at_point, settings_of
from service.worker import out_of_core
from service.worker.failures import Failed, failure_of

DIVIDING = ("fractional", "spread")  # strategies by which a row with missing values may take many branches
MAX_DIVIDED_ROWS = 10_000  # that are predicted together; each may need 0.1 MB, in which its paths are listed


@dataclass(frozen=True, slots=True)
class ResultChunk:
    """The decision record of some rows. The worker logs each chunk before it reads the next message of the child."""

    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a handler gets besides the payload; `send` passes a chunk of the result to the worker."""

    source: Sessions
    progress: espalier.Progress
    job_id: str
    send: Callable[[ResultChunk], None]
    settings: Settings


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The attempt was stopped on request."""


@dataclass(frozen=True, slots=True)
class Released:
    """A reason outside the job prevented or interrupted the attempt, so the attempt does not count."""

    reason: str


Result = NewVersion | dict[str, Any]  # the dictionary is in JSON form
Outcome = Result | Failed | Cancelled | Released


def perform(context: JobContext, kind: Kind, payload: Mapping[str, Any]) -> Outcome:
    """Run a job and return its outcome; nothing is raised."""
    context.progress.begin("loading")
    try:
        return HANDLERS[kind](context, payload)
    except espalier.Cancelled:
        return Cancelled()
    except Unavailable as error:
        return failure_of(error) if isinstance(error, StoreUnavailable) else Released(str(error))
    except Exception as error:
        return failure_of(error)


def train(context: JobContext, payload: Mapping[str, Any]) -> NewVersion:
    """Train on a data set; `plan_training` makes the payload."""
    with read_session(context.source) as session:
        data_set = datasets.find_data_set(session, payload["dataset"])
    config = espalier.config_from_dict(payload["config"])
    limit = out_of_core.memory_limit(context.settings, payload, config, data_set)
    if limit is None:
        dataset, holdout, holdout_id = _load(context, payload)
        started = time.perf_counter()
        model, trace = espalier.train_traced(dataset, config, holdout=holdout, progress=context.progress)
    else:
        started, holdout_id = time.perf_counter(), None
        model, trace = out_of_core.train(context, data_set, config, limit=limit)
    seconds = time.perf_counter() - started
    origin = {"trace": trace, "data_set_id": payload["dataset"], "holdout_data_set_id": holdout_id}
    return NewVersion.of(model, name=payload["model"], seconds=seconds, **origin)


def prune(context: JobContext, payload: Mapping[str, Any]) -> NewVersion:
    """Prune a version into a new one; `plan_pruning` makes the payload."""
    with read_session(context.source) as session:
        model = load_version(session, payload["version_id"]).model
        parent = session.get_one(Version, payload["version_id"])
        dataset = None if parent.data_set_id is None else datasets.load_data_set(session, parent.data_set_id)
        requested = payload["holdout"]
        if requested is None and parent.holdout_data_set_id is not None:
            requested = {"dataset": parent.holdout_data_set_id}
        holdout, holdout_id = _holdout(session, requested)
    started = time.perf_counter()
    method = espalier.pruning_method(payload["method"], **payload["params"])
    pruned = espalier.prune(model, method, dataset=dataset, holdout=holdout, progress=context.progress)
    seconds = time.perf_counter() - started
    origin = {"parent_id": parent.id, "data_set_id": parent.data_set_id, "holdout_data_set_id": holdout_id}
    return NewVersion.of(pruned.model, name=payload["model"], seconds=seconds, trace=pruned.trace, **origin)


def evaluate(context: JobContext, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Compare training candidates; `plan_evaluation` makes the payload."""
    dataset, holdout, _ = _load(context, payload)
    candidates = [
        espalier.Candidate(one["name"], espalier.config_from_dict(one["config"])) for one in payload["candidates"]
    ]
    options = {name: payload[name] for name in ("folds", "seed", "label_noise")}
    comparison = espalier.compare(dataset, candidates, holdout=holdout, progress=context.progress, **options)
    return {"dataset": payload["dataset"], **comparison.to_dict()}


def predict(context: JobContext, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Predict every row of a data set; `plan_prediction` makes the payload.

    The predictions are sent in chunks, which the worker logs. Another attempt continues after the last logged chunk.
    """
    with read_session(context.source) as session:
        version = load_version(session, payload["version_id"])
        data_set = datasets.find_data_set(session, payload["dataset"])
        start = decisions.n_rows_of_job(session, context.job_id)
        key_id = session.get_one(Job, context.job_id).key_id
    point = payload["operating_point"]
    columns = {name: payload[name] for name in ("version_id", "document_sha256", "alias", "operating_point")}
    missing = payload["missing"] or version.model.config.missing
    columns |= {"missing": missing, "key_id": key_id, "job_id": context.job_id}
    model = espalier.with_missing_strategy(model_at_point(version.model, point), payload["missing"])
    context.progress.begin("predicting")
    max_rows = record_rows(espalier.Schema.from_dict(data_set.declared), n_classes=len(model.schema.classes))
    if missing in DIVIDING:
        max_rows = min(max_rows, MAX_DIVIDED_ROWS)
    # The parts have columns of all roles; `predict_table` finds the columns of the model by name.
    parts = datasets.iterate_parts(context.source, payload["dataset"], max_rows=max_rows, start=start)
    for first_row, rows in parts:
        context.progress.state[0] = first_row / data_set.n_rows
        began, answers = time.perf_counter(), espalier.predict_table(model, rows)
        with read_session(context.source) as session:  # a new mask applies from the next chunk on
            settings = settings_of(session, version.id)
        known, rules = version.leaf_answers, payload["explain"] != "none"
        record = table_record(model, rows, answers, known=known, erased=settings.mask, rules=rules)
        content = record.to_bytes(with_rules=True)
        columns |= {"first_row": first_row, "masked": settings.masked(version.attributes)}
        seconds = time.perf_counter() - began
        made = decisions.new_record(columns, n_rows=rows.n_rows, milliseconds=seconds * 1000, packed=content)
        context.send(ResultChunk(made))
        context.progress.check()
    result = {"model": payload["model"], "version": payload["version"], "n_rows": data_set.n_rows}
    return result if point is None else {**result, "operating_point": point}


HANDLERS: Mapping[Kind, Callable[[JobContext, Mapping[str, Any]], Result]] = {
    Kind.TRAIN: train,
    Kind.PRUNE: prune,
    Kind.EVALUATE: evaluate,
    Kind.PREDICT: predict,
}

Holdout = espalier.Holdout | espalier.Dataset | None


def _load(context: JobContext, payload: Mapping[str, Any]) -> tuple[espalier.Dataset, Holdout, str | None]:
    """Return the data set of a job, its holdout or None, and the id of its held-out data set or None."""
    with read_session(context.source) as session:
        dataset = datasets.load_data_set(session, payload["dataset"])
        holdout, holdout_id = _holdout(session, payload["holdout"])
    return dataset, holdout, holdout_id


def _holdout(session: Session, given: Mapping[str, Any] | None) -> tuple[Holdout, str | None]:
    if given is None:
        return None, None
    if "dataset" in given:
        return datasets.load_data_set(session, given["dataset"]), given["dataset"]
    return espalier.holdout_from_dict(dict(given)), None
