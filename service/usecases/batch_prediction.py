"""Check a request for a prediction job, which answers all rows of a data set."""

import espalier
from service.database.tables import Kind, Version
from service.errors import ValidationFailed
from service.repositories import aliases
from service.repositories.job_queue import JobPlan
from service.usecases.jobs import JobRequest, fingerprints
from service.usecases.version_resolver import model_at_point, settings_of


def plan_prediction(request: JobRequest) -> JobPlan:
    """Plan a prediction of all rows of a data set, as `service.usecases.jobs.Planner`."""
    session, members = request.session, request.members
    data_set = request.data_set()
    pointed_at = None
    if members.get("version") is None and "model" in members:
        pointed_at = aliases.version_id(session, members["model"], aliases.DEFAULT)
    version = request.version() if pointed_at is None else session.get(Version, pointed_at)
    if version is not None and version.archived is not None:
        request.fault("/version", "archived_version", "the version is archived: it answers no more")
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
        "model": version.model.name,
        "version": version.number,
        "version_id": version.id,
        "document_sha256": version.document_sha256,
        "alias": None if pointed_at is None else aliases.DEFAULT,
        "dataset": data_set.id,
        "explain": members["explain"],
        "missing": members["missing"],  # the strategy for missing values; None: the model's own
        "operating_point": point if has_point else None,  # when the job was requested
        "fingerprints": fingerprints(data_set),
    }
    return JobPlan(Kind.PREDICT, payload, version.model.name, data_set.id)
