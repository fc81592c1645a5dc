"""Check a request for the answers to all rows of a data set."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import Kind, Version
from service.errors import ValidationFailed, collect_faults, relocate
from service.repositories import aliases
from service.usecases.jobs import JobPlan, fingerprints, requested_data_set, requested_version
from service.usecases.model_cache import ModelCache
from service.usecases.version_resolver import applicable_point, settings_of


class PredictionPayload(TypedDict):
    """Payload of a job of kind `predict`."""

    model: str
    version: int
    version_id: str
    document_sha256: str
    alias: str | None  # that led to the version
    dataset: str  # id
    explain: str  # none, or path for the rule as a sentence
    missing: str | None  # a strategy for missing values; None: the model's own
    operating_point: dict[str, Any] | None  # {"label", "probability"} of the model when the job was requested
    fingerprints: dict[str, str]


def plan_prediction(
    session: Session, models: ModelCache, request: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> JobPlan:
    """Plan a prediction of all rows of a data set.

    The arguments are those of every plan, as `service.usecases.jobs.Planner` says.

    Raises:
        ValidationFailed: Every fault, by its place in the request.
    """
    found = list(faults)
    data_set = requested_data_set(session, request, faults=found)
    pointed_at = None
    if request.get("version") is None and "model" in request:
        pointed_at = aliases.version_id(session, request["model"], aliases.DEFAULT)
    if pointed_at is None:
        version = requested_version(session, request, faults=found)
    else:
        version = session.get(Version, pointed_at)
    if version is not None and version.archived is not None:
        found.append(Fault("/version", "archived_version", "the version is archived: it answers no more"))
    model = None if version is None else models.get(session, version.id).model
    if model is not None and "missing" in request:
        with collect_faults(found, relocate("")):
            espalier.with_missing_strategy(model, request["missing"])
    if model is not None and data_set is not None:
        with collect_faults(found, relocate("/dataset")):
            espalier.check_table(model, espalier.Schema.from_dict(data_set.declared))
    if found or version is None or data_set is None or model is None:
        raise ValidationFailed(found)
    point = applicable_point(model, settings_of(session, version.id).operating_point)
    payload = PredictionPayload(
        model=version.model.name,
        version=version.number,
        version_id=version.id,
        document_sha256=version.document_sha256,
        alias=None if pointed_at is None else aliases.DEFAULT,
        dataset=data_set.id,
        explain=request["explain"],
        missing=request["missing"],
        operating_point=None if point is None else dict(point),
        fingerprints=fingerprints(data_set),
    )
    return JobPlan(Kind.PREDICT, dict(payload), version.model.name, data_set.id)
