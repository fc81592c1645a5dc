"""What a job does: a function a kind, from the payload to a new model version or to a report.

It runs in the worker's child process and only reads the database; the worker saves what it returns.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

import espalier
from service.database.engine import Sessions, read_session
from service.database.tables import Job, Kind, Version
from service.errors import NotFound, Unavailable
from service.repositories import datasets, decisions, models
from service.repositories.models import NewVersion
from service.serialization.table_records import record_rows, table_record
from service.usecases.version_resolver import model_at_point, settings_of

LOG = logging.getLogger(__name__)

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows that a job has answered, to be logged by the worker before the next ones."""

    origin: decisions.RecordContext
    n_rows: int
    content: bytes  # as `TableRecord.to_bytes` returns it
    milliseconds: float


def _nowhere(part: Part) -> None:
    raise RuntimeError("this job was given nowhere to keep its parts")


@dataclass(frozen=True, slots=True)
class JobLog:
    """What a job of many parts has behind it, and where the next part goes."""

    job_id: str = ""
    keep: Callable[[Part], None] = _nowhere


Handler = Callable[[Sessions, Mapping[str, Any], espalier.Progress, JobLog], NewVersion | Report]
NO_LOG = JobLog()


@dataclass(frozen=True, slots=True)
class Finished:
    """The attempt went well: a version to be saved."""

    version: NewVersion


@dataclass(frozen=True, slots=True)
class Reported:
    """The attempt went well: what was found out, as JSON, is the job's result."""

    result: Report


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt went wrong: {code, message, errors: [{pointer, code, message}]}, and may another go better?"""

    error: Mapping[str, Any]
    retryable: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The attempt was stopped because that was asked for."""


@dataclass(frozen=True, slots=True)
class Released:
    """The attempt could not be made, through no fault of the job; it does not count."""

    reason: str


Outcome = Finished | Reported | Failed | Cancelled | Released


def perform(
    source: Sessions,
    *,
    kind: Kind,
    payload: Mapping[str, Any],
    progress: espalier.Progress,
    log: JobLog = NO_LOG,
) -> Outcome:
    """Do a job and say how it went; nothing is raised."""
    progress.begin("loading")
    try:
        made = HANDLERS[kind](source, payload, progress, log)
        return Finished(made) if isinstance(made, NewVersion) else Reported(made)
    except espalier.Cancelled:
        return Cancelled()
    except Unavailable as error:
        return Released(str(error))
    except Exception as error:
        return _failed(error)


def problem(code: str, message: str, errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """The error of a job in its JSON form."""
    return {"code": code, "message": message, "errors": errors or []}


def train(source: Sessions, payload: Mapping[str, Any], progress: espalier.Progress, log: JobLog) -> NewVersion:
    """Train on a data set: payload as `service.usecases.payloads.TrainingPayload`."""
    with read_session(source) as session:
        dataset = datasets.load_data_set(session, payload["dataset"])
        holdout, holdout_data_set_id = _holdout(session, payload["holdout"])
    _check_unseen(holdout, dataset)
    started = time.perf_counter()
    config = espalier.config_from_dict(payload["config"])
    model, trace = espalier.train_traced(dataset, config, holdout=holdout, progress=progress)
    return NewVersion(
        model=payload["model"],
        document=espalier.to_json(model),
        preset=payload["preset"],
        summary=espalier.summary(model),
        seconds=time.perf_counter() - started,
        trace=trace,
        data_set_id=payload["dataset"],
        holdout_data_set_id=holdout_data_set_id,
    )


def prune(source: Sessions, payload: Mapping[str, Any], progress: espalier.Progress, log: JobLog) -> NewVersion:
    """Prune a version into a new one: payload as `service.usecases.payloads.PruningPayload`."""
    with read_session(source) as session:
        model = models.load_version(session, payload["version_id"]).model
        parent = session.get_one(Version, payload["version_id"])
        dataset = None if parent.data_set_id is None else datasets.load_data_set(session, parent.data_set_id)
        holdout, holdout_data_set_id = _holdout(session, payload["holdout"])
        if holdout is None and parent.holdout_data_set_id is not None:
            holdout_data_set_id = parent.holdout_data_set_id
            holdout = datasets.load_data_set(session, holdout_data_set_id)
    _check_unseen(holdout, model.training)
    started = time.perf_counter()
    method = espalier.pruning_method(payload["method"], **payload["params"])
    pruned = espalier.prune(model, method, dataset=dataset, holdout=holdout, progress=progress)
    return NewVersion(
        model=payload["model"],
        document=espalier.to_json(pruned.model),
        preset=parent.preset,
        summary=espalier.summary(pruned.model),
        seconds=time.perf_counter() - started,
        trace=pruned.trace,
        parent_id=parent.id,
        data_set_id=parent.data_set_id,
        holdout_data_set_id=holdout_data_set_id,
    )


def evaluate(source: Sessions, payload: Mapping[str, Any], progress: espalier.Progress, log: JobLog) -> Report:
    """Compare several ways of training: payload as `service.usecases.payloads.EvaluationPayload`."""
    with read_session(source) as session:
        dataset = datasets.load_data_set(session, payload["dataset"])
        holdout, _ = _holdout(session, payload["holdout"])
    _check_unseen(holdout, dataset)
    candidates = [
        espalier.Candidate(one["name"], espalier.config_from_dict(one["config"])) for one in payload["candidates"]
    ]
    comparison = espalier.compare(
        dataset,
        candidates,
        folds=payload["folds"],
        holdout=holdout,
        seed=payload["seed"],
        label_noise=payload["label_noise"],
        progress=progress,
    )
    return {"dataset": payload["dataset"], **comparison.to_dict()}


def predict(source: Sessions, payload: Mapping[str, Any], progress: espalier.Progress, log: JobLog) -> Report:
    """Answer every row of a data set: payload as `service.usecases.payloads.PredictionPayload`.

    Each part is logged before the next is made; an attempt goes on behind the last one that was.
    """
    with read_session(source) as session:
        model = models.load_version(session, payload["version_id"]).model
        data_set = datasets.find_data_set(session, payload["dataset"])
        n_rows, max_rows = data_set.n_rows, record_rows(espalier.Schema.from_dict(data_set.declared))
        start = decisions.n_rows_of_job(session, log.job_id)
        key_id = session.get_one(Job, log.job_id).key_id
    point = payload.get("operating_point")  # of a job from before there were any: none
    as_asked = espalier.with_missing_strategy(model_at_point(model, point), payload["missing"])
    origin = decisions.RecordContext(
        version_id=payload["version_id"],
        document_sha256=payload["document_sha256"],
        missing=payload["missing"] or model.config.missing,
        alias=payload["alias"],
        key_id=key_id,
        job_id=log.job_id,
        operating_point=point,
    )
    attributes = [attribute.name for attribute in model.schema.attributes]
    progress.begin("predicting")
    parts = datasets.iterate_parts(
        source, payload["dataset"], roles={espalier.Role.ATTRIBUTE}, max_rows=max_rows, start=start
    )
    for first_row, dataset in parts:
        progress.state[0] = first_row / n_rows
        began = time.perf_counter()
        answers = espalier.predict_table(as_asked, dataset)
        with read_session(source) as session:  # again for each part: a mask holds from the moment that it is set
            settings = settings_of(session, payload["version_id"])
        rows = table_record(as_asked, dataset, answers, erased=settings.mask, rules=payload["explain"] != "none")
        content = rows.to_bytes(with_rules=True)
        milliseconds = (time.perf_counter() - began) * 1000
        told = replace(origin, first_row=first_row, masked=settings.masked(attributes))
        log.keep(Part(told, dataset.n_rows, content, milliseconds))
        progress.check()
    done = {"model": payload["model"], "version": payload["version"], "n_rows": n_rows}
    return done if point is None else {**done, "operating_point": point}


HANDLERS: Mapping[Kind, Handler] = {
    Kind.TRAIN: train,
    Kind.PRUNE: prune,
    Kind.EVALUATE: evaluate,
    Kind.PREDICT: predict,
}


def _holdout(
    session: Session, given: Mapping[str, Any] | None
) -> tuple[espalier.Holdout | espalier.Dataset | None, str | None]:
    """What is held out, and the id of its data set if it is one of its own."""
    if given is None:
        return None, None
    if "dataset" in given:
        return datasets.load_data_set(session, given["dataset"]), given["dataset"]
    return espalier.holdout_from_dict(dict(given)), None


def _check_unseen(
    holdout: espalier.Holdout | espalier.Dataset | None, learned_from: espalier.Dataset | espalier.TrainingRecord
) -> None:
    """What was learned from cannot be held out; a second upload of the same rows is the same data set.

    No fingerprint is taken where there is nothing to compare: a training takes its own beside the growing.
    """
    if isinstance(holdout, espalier.Dataset) and holdout.fingerprint == learned_from.fingerprint:
        message = "has the rows that are learned from; held-out rows are rows that the model has not seen"
        raise espalier.ConfigError([espalier.Fault("/holdout/dataset", "not_legal", message)])


def _failed(error: Exception) -> Failed:
    """What is wrong with the job itself fails at once; what may be over the next time does not."""
    match error:
        case espalier.InvalidInput(faults=faults):
            found = [{"pointer": fault.path, "code": fault.code, "message": fault.message} for fault in faults]
            return Failed(problem("invalid_input", str(error), found), retryable=False)
        case espalier.NotApplicable():
            return Failed(problem("not_applicable", str(error)), retryable=False)
        case NotFound():
            return Failed(problem("not_found", str(error)), retryable=False)
        case MemoryError():
            return Failed(problem("out_of_memory", "the job needs more memory than there is"), retryable=True)
    LOG.error("a job failed unexpectedly", exc_info=error)
    message = f"the job failed with an unexpected {type(error).__name__}"
    return Failed(problem("unexpected", message), retryable=True)
