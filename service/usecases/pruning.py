"""Check a request for a pruning: a version, the method, and the rows that judge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet, Kind, Version
from service.errors import ValidationFailed, collect_faults, relocate
from service.usecases.holdouts import HeldOut, TrainingSource, held_out_rows, read_holdout
from service.usecases.jobs import JobPlan, fingerprints, params_of, requested_version
from service.usecases.model_cache import ModelCache


class PruningPayload(TypedDict):
    """Payload of a job of kind `prune`."""

    model: str
    version: int
    version_id: str
    method: str
    params: dict[str, Any]
    holdout: dict[str, Any] | None  # as for a training; None: the rows that the training held out
    fingerprints: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Parent:
    """The version to be pruned, its decoded model, and what it was trained on."""

    version: Version
    model: espalier.Model
    source: TrainingSource


def plan_pruning(
    session: Session, models: ModelCache, request: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> JobPlan:
    """Plan a pruning of a version into a new one.

    The arguments are those of every plan, as `service.usecases.jobs.Planner` says.

    Raises:
        ValidationFailed: Every fault, by its place in the request: no such model, version, method, parameter or data
            set, or a method that cannot prune this version.
    """
    found = list(faults)
    version = requested_version(session, request, faults=found)
    params = params_of(request, "method", faults=found)
    method: Any = None
    if "method" in request:
        with collect_faults(found, relocate("/params", {"/method": "/method"})):
            method = espalier.pruning_method(request["method"], **params)
    parent = None if version is None else _parent(session, models, version)
    source = None if parent is None else parent.source
    held_out = read_holdout(session, request.get("holdout"), source=source, faults=found)
    # Rows of the version's own data set may judge, also where it remembers the rows of another one.
    remembers = version is not None and request.get("holdout") is None
    judges_id = version.holdout_data_set_id if version is not None and remembers else held_out.data_set_id
    judges = None if judges_id is None else session.get(DataSet, judges_id)
    if parent is not None and method is not None and "params" in request:
        found += _method_faults(parent, method, judges, faults=found)
    # One reason why these rows cannot judge is enough: a second one would advise something else.
    if parent is not None and "holdout" in request and all(fault.path != "/holdout" for fault in found):
        found += _holdout_faults(session, parent, method, held_out)
    if found or version is None or parent is None:
        raise ValidationFailed(found)
    payload = PruningPayload(
        model=version.model.name,
        version=version.number,
        version_id=version.id,
        method=request["method"],
        params=dict(request["params"]),
        holdout=request["holdout"],
        fingerprints=fingerprints(parent.source.data_set, judges),
    )
    return JobPlan(Kind.PRUNE, dict(payload), version.model.name, version.data_set_id, judges_id)


def _parent(session: Session, models: ModelCache, version: Version) -> _Parent:
    model = models.get(session, version.id).model
    data_set = None if version.data_set_id is None else session.get(DataSet, version.data_set_id)
    return _Parent(version, model, TrainingSource(model.schema, model.training.fingerprint, data_set))


def _method_faults(parent: _Parent, method: Any, judges: DataSet | None, *, faults: Sequence[Fault]) -> list[Fault]:
    """Return why the method cannot prune the version; nothing of the holdout if it has a fault already."""
    found: list[Fault] = []
    with collect_faults(found, relocate("/params", {"/method": "/method", "/holdout": "/holdout"})):
        espalier.check_pruning(
            parent.model,
            method,
            has_training_rows=parent.source.data_set is not None,
            validation_data=None if judges is None else judges.fingerprint,
        )
    is_refused = any(fault.path.startswith("/holdout") for fault in faults)
    return [fault for fault in found if not (is_refused and fault.path == "/holdout")]


def _holdout_faults(session: Session, parent: _Parent, method: Any, held_out: HeldOut) -> Iterator[Fault]:
    """Yield why there are no rows to judge by but those that the version was trained on."""
    remembered, has_rows = parent.model.training.holdout, parent.source.data_set is not None
    if held_out.rows is not None:
        if remembered is None:
            message = "this version was trained on all the rows of its data set: give the id of another data set"
            yield Fault("/holdout", "not_legal", message)
        elif not has_rows:
            message = "the data set that this version was trained on is gone: give the id of another data set"
            yield Fault("/holdout", "no_training_rows", message)
        elif held_out.rows != remembered:
            yield from _training_row_faults(session, parent, held_out.rows, remembered)
    elif held_out.data_set is None and method is not None and espalier.needs_held_out(method):
        if remembered is None and parent.version.holdout_data_set_id is None:
            message = "this version was trained on all its rows and would be pruned on them: give a holdout"
            yield Fault("/holdout", "required", message)
        elif remembered is not None and not has_rows:
            message = "the rows that were set aside at training are gone with their data set: give another data set"
            yield Fault("/holdout", "no_training_rows", message)


def _training_row_faults(
    session: Session, parent: _Parent, requested: espalier.Holdout, remembered: espalier.Holdout
) -> Iterator[Fault]:
    """Yield the fault of requested rows that the version was trained on."""
    if parent.source.data_set is None:
        return
    try:
        _, rows = held_out_rows(session, requested, data_set=parent.source.data_set)
    except espalier.ConfigError:  # `read_holdout` has found that
        return
    _, aside = held_out_rows(session, remembered, data_set=parent.source.data_set)
    learned = len(set(rows.tolist()) - set(aside.tolist()))
    if learned:
        message = f"{learned} of these {len(rows)} rows were learned from: name rows that were set aside at training"
        yield Fault("/holdout", "learned_from", message)
