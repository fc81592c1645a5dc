"""What jobs can be asked for: training, pruning, evaluation. All that can be known to be wrong is said here, at once.

    asked for ──plan_…──> Plan ──submit──> a job in the queue
               (reading)        (writing)

Configurations, methods and holdouts are read and checked by the core's own functions, against what the data set
declares, its target and weights, and the parent model; only what nobody can know before the work is done is left to the
worker. A plan takes the faults of form that were found before and adds its own: who asks learns all in one round.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet, Job, Kind, ModelName, Version
from service.errors import Conflict, NotFound, ValidationFailed, collect_faults, relocate
from service.repositories import job_queue, models
from service.settings import Settings
from service.usecases import payloads
from service.usecases.candidates import read_candidates
from service.usecases.holdouts import HeldOut, Learned, check_rows, find_data_set, load_judges, read_holdout
from service.usecases.model_cache import ModelCache
from service.usecases.parents import faults_of_method, faults_of_voters, parent_of

# Where a fault that the core finds in configuration and schema together sits in a request for training; the rest is a
# field of the configuration.
PLACES_IN_TRAINING = {"/target": "/dataset", "/attributes": "/dataset", "/preset": "/preset", "/holdout": "/holdout"}
UNNUMBERED = re.compile(r"/candidates/[0-9]+")


@dataclass(frozen=True, slots=True)
class Plan:
    """A job that is right, as far as anyone can know, and is not in the queue yet."""

    kind: Kind
    payload: Mapping[str, Any]
    model: str | None = None
    data_set_id: str | None = None
    holdout_data_set_id: str | None = None


def submit(session: Session, plan: Plan, *, settings: Settings) -> Job:
    """Put a planned job into the queue; its version and its data sets cannot be deleted from now on until it has ended.

    Raises:
        ValidationFailed: The version was deleted or archived, or a data set deleted or redeclared, since the plan.
    """
    lost = _lost(session, plan.kind, plan.payload)
    if lost is not None:
        raise ValidationFailed([Fault("/version", lost[0], f"this version {lost[1]} a moment ago")])
    places = {plan.holdout_data_set_id: "/holdout/dataset", plan.data_set_id: "/dataset"}
    faults = [
        Fault(places[data_set_id], code, f"this data set {what} a moment ago")
        for data_set_id, code, what in _changed(session, plan.payload["fingerprints"])
    ]
    if faults:
        raise ValidationFailed(faults)
    return job_queue.enqueue(
        session,
        kind=plan.kind,
        payload=dict(plan.payload),
        max_attempts=settings.job_attempts,
        model=plan.model,
        data_set_id=plan.data_set_id,
        holdout_data_set_id=plan.holdout_data_set_id,
    )


def try_again(session: Session, job: Job) -> Job:
    """Put a job that ended without success into the queue again, if its version and its data sets are as they were.

    Raises:
        Conflict: The version was deleted or archived, or a data set deleted or declared anew, since the job was asked
            for, or the job is queued, running or succeeded.
    """
    lost = _lost(session, Kind(job.kind), job.payload)
    if lost is not None:
        version = f"version {job.payload['version']} of model {job.payload['model']!r}"
        raise Conflict(f"{version} {lost[1]} since this job was asked for: ask for a new one")
    for data_set_id, _, what in _changed(session, job.payload.get("fingerprints", {})):
        raise Conflict(f"data set {data_set_id} {what} since this job was asked for: ask for a new one")
    return job_queue.retry(session, job.id)


def plan_training(
    session: Session, models: ModelCache, asked: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> Plan:
    """Plan a training.

    Args:
        session: For reading.
        models: Not asked here; every plan is made with the same arguments.
        asked: ``model, dataset, preset, params, holdout``, as `schemas.TrainingJobRequest` gives them; what has a fault
            of form is not among them.
        faults: Those of form.

    Raises:
        ValidationFailed: Every fault, by its place in the request: no such data set, preset, field or combination.
    """
    found = list(faults)
    data_set = named_data_set(session, asked, faults=found)
    config: espalier.TrainingConfig | None = None
    params = _without("preset", asked, faults=found)
    place = relocate("/params", PLACES_IN_TRAINING)
    with collect_faults(found, place):
        config = espalier.training_config(asked.get("preset", "cart"), **params)
    learned = None if data_set is None else Learned.of(data_set)
    if learned is not None and config is not None and {"preset", "params"} <= asked.keys():
        with collect_faults(found, place):
            espalier.check_training(learned.schema, config)
    held_out = read_holdout(session, asked.get("holdout"), learned=learned, faults=found)
    if config is not None and "holdout" in asked and asked["holdout"] is None:
        with collect_faults(found, place):
            own = espalier.needed_holdout(config, None)
            if isinstance(own, espalier.Holdout) and data_set is not None:
                check_rows(session, own, data_set=data_set, faults=found)
    if data_set is not None and config is not None:
        found += _faults_of_parts(config.pruning, "/params/pruning", n_rows=data_set.n_rows - held_out.n_rows)
        found += _faults_of_counts(session, data_set, {"/params/criterion": config}, held_out, faults=found)
    if found or data_set is None or config is None:
        raise ValidationFailed(found)
    payload = payloads.TrainingPayload(
        model=asked["model"],
        dataset=data_set.id,
        preset=asked["preset"],
        config=espalier.config_to_dict(config),
        holdout=asked["holdout"],
        fingerprints=fingerprints(data_set, held_out.data_set),
    )
    return Plan(Kind.TRAIN, dict(payload), asked["model"], data_set.id, held_out.data_set_id)


def plan_pruning(
    session: Session, models: ModelCache, asked: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> Plan:
    """Plan a pruning of a version into a new one.

    Args:
        session: For reading.
        models: Where the version is found decoded.
        asked: ``model, version, method, params, holdout``, as `schemas.PruningJobRequest` gives them.
        faults: Those of form.

    Raises:
        ValidationFailed: Every fault, by its place in the request: no such model, version, method, parameter or data
            set, or a method that cannot take this version.
    """
    found = list(faults)
    version = asked_version(session, asked, faults=found)
    params = _without("method", asked, faults=found)
    method: Any = None
    if "method" in asked:
        with collect_faults(found, relocate("/params", {"/method": "/method"})):
            method = espalier.pruning_method(asked["method"], **params)
    parent = None if version is None else parent_of(session, models, version)
    learned = None if parent is None else parent.learned
    held_out = read_holdout(session, asked.get("holdout"), learned=learned, faults=found)
    # Rows of the version's own data set may be asked, also where it remembers another one's.
    remembers = version is not None and asked.get("holdout") is None
    voters = version.holdout_data_set_id if version is not None and remembers else held_out.data_set_id
    voting = None if voters is None else session.get(DataSet, voters)
    if parent is not None and method is not None and "params" in asked:
        found += faults_of_method(parent, method, voting, faults=found)
    # One reason why these rows cannot vote is enough: a second one would advise something else.
    if parent is not None and "holdout" in asked and all(fault.path != "/holdout" for fault in found):
        found += faults_of_voters(session, parent, method, held_out)
    if found or version is None or parent is None:
        raise ValidationFailed(found)
    payload = payloads.PruningPayload(
        model=version.model.name,
        version=version.number,
        version_id=version.id,
        method=asked["method"],
        params=dict(asked["params"]),
        holdout=asked["holdout"],
        fingerprints=fingerprints(parent.learned.data_set, voting),
    )
    return Plan(Kind.PRUNE, dict(payload), version.model.name, version.data_set_id, voters)


def plan_evaluation(
    session: Session, models: ModelCache, asked: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> Plan:
    """Plan a comparison of several ways of training.

    Args:
        session: For reading.
        models: Not asked here; every plan is made with the same arguments.
        asked: ``dataset, candidates, folds, holdout, label_noise, seed``, as `schemas.EvaluationJobRequest` gives them.
        faults: Those of form.

    Raises:
        ValidationFailed: Every fault, by its place in the request.
    """
    found = list(faults)
    data_set = named_data_set(session, asked, faults=found)
    learned = None if data_set is None else Learned.of(data_set)
    schema = None if learned is None else learned.schema
    # What is no object leaves a gap in the list, and the numbers of those after it would be wrong.
    given = [] if any(UNNUMBERED.fullmatch(fault.path) for fault in faults) else asked.get("candidates", [])
    candidates = read_candidates(given, schema=schema, faults=found)
    held_out = read_holdout(session, asked.get("holdout"), learned=learned, faults=found)
    if learned is not None and data_set is not None:
        with collect_faults(found, relocate("")):
            espalier.check_comparison(
                learned.schema,
                [candidate.name for candidate in candidates] or ["said to be missing already"],
                n_rows=data_set.n_rows,
                folds=asked.get("folds"),
                on_one_split=asked.get("holdout") is not None,
                label_noise=asked.get("label_noise", 0.0),
            )
        _check_candidates(session, data_set, list(zip(given, candidates, strict=True)), asked, held_out, faults=found)
    if found or data_set is None:
        raise ValidationFailed(found)
    payload = payloads.EvaluationPayload(
        dataset=data_set.id,
        candidates=[
            {"name": candidate.name, "config": espalier.config_to_dict(candidate.config)} for candidate in candidates
        ],
        folds=asked["folds"],
        holdout=asked["holdout"],
        label_noise=asked["label_noise"],
        seed=asked["seed"],
        fingerprints=fingerprints(data_set, held_out.data_set),
    )
    return Plan(Kind.EVALUATE, dict(payload), None, data_set.id, held_out.data_set_id)


def _lost(session: Session, kind: Kind, payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """Give a code and what happened to the version that a job works on; None: it is there, and stays until commit."""
    if "version_id" not in payload:
        return None
    # Whoever deletes or archives a version holds its model alone; versions may be added meanwhile.
    model = select(ModelName.id).where(ModelName.name == payload["model"])
    session.execute(model.with_for_update(read=True, key_share=True))
    version = session.get(Version, payload["version_id"], populate_existing=True)
    if version is None:
        return "unknown_version", "was deleted"
    if kind is Kind.PREDICT and version.archived is not None:
        return "archived_version", "was archived"
    return None


def _changed(session: Session, fingerprints: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Give the id of each data set that is not what it was, a code and what happened; the rest stay so until commit."""
    for data_set_id, was in fingerprints.items():
        row = session.get(DataSet, data_set_id, with_for_update={"read": True}, populate_existing=True)
        if row is None:
            yield data_set_id, "unknown_data_set", "was deleted"
        elif row.fingerprint != was:
            yield data_set_id, "changed_data_set", "was declared anew"


def fingerprints(*data_sets: DataSet | None) -> dict[str, str]:
    """Give what the data sets are when a job is asked for, by their ids."""
    return {data_set.id: data_set.fingerprint for data_set in data_sets if data_set is not None}


def named_data_set(session: Session, asked: Mapping[str, Any], *, faults: list[Fault]) -> DataSet | None:
    """Find the data set of a request; None, and a fault, where there is none."""
    if "dataset" not in asked:  # said already: it is not there, or no text
        return None
    return find_data_set(session, asked["dataset"], pointer="/dataset", faults=faults)


def _without(name: str, asked: Mapping[str, Any], *, faults: list[Fault]) -> dict[str, Any]:
    """Refuse `name` among the parameters: it has its own place in the request."""
    params = dict(asked.get("params") or {})
    if name in params:
        del params[name]
        faults.append(Fault(f"/params/{name}", "unknown_field", f"the {name} is given beside params, not in them"))
    return params


def asked_version(session: Session, asked: Mapping[str, Any], *, faults: list[Fault]) -> Version | None:
    """Find the version of a request, else the newest that answers; None, and a fault, where there is none."""
    if "model" not in asked:
        return None
    try:
        if "version" not in asked:
            models.find_model(session, asked["model"])
            return None
        if asked["version"] is None:
            return session.get_one(Version, models.newest_version_id(session, asked["model"]))
        return models.find_version(session, asked["model"], asked["version"])
    except NotFound as error:
        unknown_model = Fault("/model", "unknown_model", "there is no model of this name; GET /v1/models lists them")
        unknown_version = Fault("/version", "unknown_version", "the model has no such version")
        faults.append(unknown_model if error.kind == "model" else unknown_version)
        return None


def _faults_of_parts(pruner: object, pointer: str, *, n_rows: int) -> Iterator[Fault]:
    """Say why the rows that are learned from cannot be divided as cross-validation asks."""
    if isinstance(pruner, espalier.CostComplexity) and pruner.select == "cv" and pruner.folds > n_rows:
        message = f"must be at most {n_rows}: so many rows are learned from"
        yield Fault(f"{pointer}/folds", "out_of_range", message)


def _faults_of_counts(
    session: Session,
    data_set: DataSet,
    configs: Mapping[str, espalier.TrainingConfig],
    held_out: HeldOut,
    *,
    faults: Sequence[Fault],
) -> list[Fault]:
    """Say why the target of the rows that are learned from cannot be counts, where a criterion takes it for that.

    configs: By the place of each one's criterion. faults: Which rows those are is not known while the holdout has some.
    """
    places = [place for place, config in configs.items() if config.criterion == "poisson"]
    if not places or data_set.task != "regression" or any(fault.path.startswith("/holdout") for fault in faults):
        return []
    judges = load_judges(session, data_set)
    if judges.target is None:
        return []
    below = judges.target < 0
    if held_out.rows is not None:
        below[espalier.held_out_rows(held_out.rows, judges)] = False
    message = "must not be poisson: the target is below 0 in some rows"
    return [Fault(place, "target", message) for place in places] if below.any() else []


def _check_candidates(
    session: Session,
    data_set: DataSet,
    given: Sequence[tuple[Mapping[str, Any], espalier.Candidate]],
    asked: Mapping[str, Any],
    held_out: HeldOut,
    *,
    faults: list[Fault],
) -> None:
    """See whether the rows are such that each candidate can learn from them; given: as in `_check_parts`."""
    n_parts = asked.get("folds") or espalier.DEFAULT_FOLDS
    n_tested = held_out.n_rows if asked.get("holdout") else -(-data_set.n_rows // n_parts)
    for place, (one, candidate) in enumerate(given):
        pointer = f"/candidates/{place}/{'pruning' if 'pruning' in one else 'params/pruning'}"
        faults += _faults_of_parts(candidate.config.pruning, pointer, n_rows=data_set.n_rows - n_tested)
    configs = {f"/candidates/{place}/params/criterion": each.config for place, (_, each) in enumerate(given)}
    faults += _faults_of_counts(session, data_set, configs, held_out, faults=faults)
    if not any(fault.path.startswith(("/dataset", "/folds", "/holdout", "/label_noise")) for fault in faults):
        _check_parts(session, data_set, given, asked, held_out, faults=faults)


def _check_parts(
    session: Session,
    data_set: DataSet,
    given: Sequence[tuple[Mapping[str, Any], espalier.Candidate]],
    asked: Mapping[str, Any],
    held_out: HeldOut,
    *,
    faults: list[Fault],
) -> None:
    """See whether every training will find rows to learn from, to be tested on, and to set aside where it does that.

    given: Each candidate as the request has it, and what it is.
    """
    candidates = [candidate for _, candidate in given]
    asks = any(one.config.validation_stop or espalier.needs_held_out(one.config.pruning) for one in candidates)
    if not given or (not asks and espalier.Schema.from_dict(data_set.declared).weight is None):
        return
    places = {}
    for place, (one, _) in enumerate(given):
        inside = "params/pruning" if "pruning" in (one.get("params") or {}) else "pruning"
        places[f"/candidates/{place}/pruning"] = f"/candidates/{place}/{inside}"
        places[f"/candidates/{place}/validation_stop"] = f"/candidates/{place}/params/validation_stop"
    other = None if held_out.data_set is None else load_judges(session, held_out.data_set)
    with collect_faults(faults, relocate("", places)):
        espalier.check_candidate_rows(
            load_judges(session, data_set),
            candidates,
            folds=asked.get("folds"),
            holdout=held_out.rows if other is None else other,
            seed=asked.get("seed", 0),
            label_noise=asked.get("label_noise", 0.0),
        )
