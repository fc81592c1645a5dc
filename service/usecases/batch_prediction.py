"""A prediction job as it is asked for: checked against the version and the data set, and planned."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import Kind, Version
from service.errors import ValidationFailed, collect_faults, relocate
from service.repositories import aliases
from service.usecases import payloads
from service.usecases.job_requests import Plan, asked_version, fingerprints, named_data_set
from service.usecases.model_cache import ModelCache
from service.usecases.version_resolver import applicable_point, settings_of


def plan_prediction(
    session: Session, models: ModelCache, asked: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> Plan:
    """Plan the answering of all rows of a data set, asked for as `schemas.PredictionJobRequest`; as `plan_pruning`.

    Raises:
        ValidationFailed: Every fault, by its place in the request.
    """
    found = list(faults)
    data_set = named_data_set(session, asked, faults=found)
    pointed_at = None
    if asked.get("version") is None and "model" in asked:
        pointed_at = aliases.version_id(session, asked["model"], aliases.DEFAULT)
    version = asked_version(session, asked, faults=found) if pointed_at is None else session.get(Version, pointed_at)
    if version is not None and version.archived is not None:
        found.append(Fault("/version", "archived_version", "the version is archived: it answers no more"))
    model = None if version is None else models.get(session, version.id).model
    if model is not None and "missing" in asked:
        with collect_faults(found, relocate("")):
            espalier.with_missing_strategy(model, asked["missing"])
    if model is not None and data_set is not None:
        with collect_faults(found, relocate("/dataset")):
            espalier.check_table(model, espalier.Schema.from_dict(data_set.declared))
    if found or version is None or data_set is None:
        raise ValidationFailed(found)
    point = None if model is None else applicable_point(model, settings_of(session, version.id).operating_point)
    payload = payloads.PredictionPayload(
        model=version.model.name,
        version=version.number,
        version_id=version.id,
        document_sha256=version.document_sha256,
        alias=None if pointed_at is None else aliases.DEFAULT,
        dataset=data_set.id,
        explain=asked["explain"],
        missing=asked["missing"],
        operating_point=None if point is None else dict(point),
        fingerprints=fingerprints(data_set),
    )
    return Plan(Kind.PREDICT, dict(payload), version.model.name, data_set.id)
