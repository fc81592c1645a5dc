"""Check a request for a pruning: version, method and holdout."""

from dataclasses import dataclass
from typing import Any

import espalier
from espalier import Fault
from service.database.tables import DataSet, Kind, Version
from service.errors import ValidationFailed, collect_faults, relocate
from service.repositories.job_queue import JobPlan
from service.usecases.jobs import HeldOut, JobRequest, TrainingSource, fingerprints, held_out_rows, read_holdout


@dataclass(frozen=True, slots=True)
class _Parent:
    """The version to be pruned, its decoded model, and its training data."""

    version: Version
    model: espalier.Model
    source: TrainingSource


def plan_pruning(request: JobRequest) -> JobPlan:
    """Plan a pruning of a version into a new one, as `service.usecases.jobs.Planner`."""
    session, members, version = request.session, request.members, request.version()
    params = request.params(members, "method")
    method: Any = None
    if "method" in members:
        with request.collecting("/params", {"/method": "/method"}):
            method = espalier.pruning_method(members["method"], **params)
    parent = None
    if version is not None:
        model = request.models.get(session, version.id).model
        data_set = None if version.data_set_id is None else session.get(DataSet, version.data_set_id)
        parent = _Parent(version, model, TrainingSource(model.schema, model.training.fingerprint, data_set))
    held_out = read_holdout(request, None if parent is None else parent.source)
    # Without a holdout in the request, the data set that was held out at training is used again.
    uses_own = version is not None and members.get("holdout") is None
    holdout_id = version.holdout_data_set_id if version is not None and uses_own else held_out.data_set_id
    holdout = None if holdout_id is None else session.get(DataSet, holdout_id)
    if parent is not None and method is not None and "params" in members:
        _check_method(request, parent, method, holdout)
    # One fault of the holdout is enough: a second one would give other advice.
    if parent is not None and "holdout" in members and all(fault.path != "/holdout" for fault in request.faults):
        _check_holdout(request, parent, method, held_out)
    if request.faults or version is None or parent is None:
        raise ValidationFailed(request.faults)
    payload = {
        "model": version.model.name,
        "version": version.number,
        "version_id": version.id,
        "method": members["method"],
        "params": dict(members["params"]),
        "holdout": members["holdout"],  # as for a training; None: the rows that the training held out
        "fingerprints": fingerprints(parent.source.data_set, holdout),
    }
    return JobPlan(Kind.PRUNE, payload, version.model.name, version.data_set_id, holdout_id)


def _check_method(request: JobRequest, parent: _Parent, method: Any, holdout: DataSet | None) -> None:
    """Add the faults of the method; those of the holdout only if it has none yet."""
    of_method: list[Fault] = []
    with collect_faults(of_method, relocate("/params", {"/method": "/method", "/holdout": "/holdout"})):
        espalier.check_pruning(
            parent.model,
            method,
            has_training_rows=parent.source.data_set is not None,
            validation_data=None if holdout is None else holdout.fingerprint,
        )
    is_refused = any(fault.path.startswith("/holdout") for fault in request.faults)
    request.faults.extend(fault for fault in of_method if not (is_refused and fault.path == "/holdout"))


def _check_holdout(request: JobRequest, parent: _Parent, method: Any, held_out: HeldOut) -> None:
    """Add a fault if only rows that the version was trained on could be used as the holdout."""
    remembered, has_rows = parent.model.training.holdout, parent.source.data_set is not None
    if held_out.rows is not None:
        if remembered is None:
            message = "this version was trained on all the rows of its data set: give the id of another data set"
            request.fault("/holdout", "not_legal", message)
        elif not has_rows:
            message = "the data set that this version was trained on is gone: give the id of another data set"
            request.fault("/holdout", "no_training_rows", message)
        elif held_out.rows != remembered:
            _check_training_rows(request, parent, held_out.rows, remembered)
    elif held_out.data_set is None and method is not None and espalier.needs_held_out(method):
        if remembered is None and parent.version.holdout_data_set_id is None:
            message = "this version was trained on all its rows and would be pruned on them: give a holdout"
            request.fault("/holdout", "required", message)
        elif remembered is not None and not has_rows:
            message = "the rows that were set aside at training are gone with their data set: give another data set"
            request.fault("/holdout", "no_training_rows", message)


def _check_training_rows(
    request: JobRequest, parent: _Parent, requested: espalier.Holdout, remembered: espalier.Holdout
) -> None:
    if parent.source.data_set is None:
        return
    try:
        _, rows = held_out_rows(request.session, requested, parent.source.data_set)
    except espalier.ConfigError:  # `read_holdout` has found this fault
        return
    _, aside = held_out_rows(request.session, remembered, parent.source.data_set)
    learned = len(set(rows.tolist()) - set(aside.tolist()))
    if learned:
        message = f"{learned} of these {len(rows)} rows were learned from: name rows that were set aside at training"
        request.fault("/holdout", "learned_from", message)
