"""Check requests to predict whole data sets, and make their jobs."""

import espalier
from service.database.tables import Job, Kind, Version
from service.errors import ValidationFailed
from service.repositories import aliases
from service.usecases.jobs import JobRequest, new_job
from service.usecases.version_resolver import model_at_point, settings_of


def plan_prediction(request: JobRequest) -> Job:
    """Return the job of a request to predict all rows of a data set; see `service.usecases.jobs.Planner`."""
    session, members = request.session, request.members
    data_set = request.data_set()
    names_none = "model" in members and "version" in members and members["version"] is None
    pointed_at = aliases.version_id(session, members["model"], aliases.DEFAULT) if names_none else None
    version = request.version() if pointed_at is None else session.get(Version, pointed_at)
    if version is not None and version.archived is not None:
        request.fault("/version", "archived_version", "the version is archived: it no longer answers")
    model = None if version is None else request.models.get(session, version.id).model
    if model is not None and "missing" in members:
        with request.collecting():
            espalier.with_missing_strategy(model, members["missing"])
    if model is not None and data_set is not None:
        with request.collecting("/dataset"):
            espalier.check_table(model, espalier.Schema.from_dict(data_set.declared))
    if request.faults or version is None or data_set is None or model is None:
        raise ValidationFailed(request.faults)
    point = settings_of(session, version.id).operating_point
    has_point = model_at_point(model, point).operating_point is not None
    payload = {
        **members,
        "version": version.number,
        "version_id": version.id,
        "document_sha256": version.document_sha256,
        "alias": None if pointed_at is None else aliases.DEFAULT,
        "operating_point": point if has_point else None,  # a later change of the setting does not affect the job
    }
    return new_job(Kind.PREDICT, data_set, **payload)
