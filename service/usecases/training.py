"""Check a request for a training, or for a prediction of all rows of a data set."""

from collections.abc import Mapping
from typing import Any

import espalier
from service.database.tables import DataSet, Job, Kind, Version
from service.errors import ValidationFailed
from service.repositories import aliases
from service.usecases.jobs import (
    HeldOut,
    JobRequest,
    TrainingSource,
    check_rows,
    load_targets,
    new_job,
    read_holdout,
)
from service.usecases.version_resolver import model_at_point, settings_of

# Where a fault that the core finds is in the request, by the start of its path; all others are in the params.
PLACES = {
    "/target": "/dataset",
    "/attributes": "/dataset",
    "/preset": "/preset",
    "/holdout": "/holdout",
    "/memory_limit": "/memory_limit",
}


def plan_training(request: JobRequest) -> Job:
    """Plan a training, as `service.usecases.jobs.Planner`."""
    members, data_set = request.members, request.data_set()
    source = None if data_set is None else TrainingSource.of(data_set)
    config = read_config(request, members, request.params(members, "preset"), source, at="", places=PLACES)
    held_out = read_holdout(request, source)
    if config is not None and "holdout" in members and members["holdout"] is None:
        with request.collecting("/params", PLACES):
            own = espalier.needed_holdout(config, None)
            if isinstance(own, espalier.Holdout) and data_set is not None:
                check_rows(request, own, data_set)
    if config is not None and data_set is not None:
        check_folds(request, config.pruning, "/params/pruning", n_rows=data_set.n_rows - held_out.n_rows)
        check_counts(request, data_set, {"/params/criterion": config}, held_out)
    limit = members.get("memory_limit")
    if limit is not None and config is not None:
        with request.collecting("/params", PLACES):
            n_rows = 0 if data_set is None else data_set.n_rows
            espalier.check_out_of_core(config, members.get("holdout"), limit, n_rows=n_rows)
    if request.faults or data_set is None or config is None:
        raise ValidationFailed(request.faults)
    payload = {
        "dataset": data_set.id,
        "preset": members["preset"],
        "config": espalier.config_to_dict(config),
        "memory_limit": limit,
        "holdout": members["holdout"],  # {"fraction", "seed", "stratified"}, {"rows"} or {"dataset": id}
    }
    return new_job(Kind.TRAIN, data_set, held_out.data_set, model=members["model"], **payload)


def read_config(
    request: JobRequest,
    part: Mapping[str, Any],
    params: Mapping[str, Any],
    source: TrainingSource | None,
    *,
    at: str,
    places: Mapping[str, str],
) -> espalier.TrainingConfig | None:
    """Return the ``preset`` of a part at `at` with changed fields, after a check whether it can train on the data set.

    `places` maps faults to other places than ``{at}/params``.
    """
    config: espalier.TrainingConfig | None = None
    with request.collecting(f"{at}/params", places):
        config = espalier.training_config(part.get("preset", "cart"), **params)
        if source is not None and {"preset", "params"} <= part.keys():
            espalier.check_training(source.schema, config)
    return config


def check_folds(request: JobRequest, pruner: object, place: str, *, n_rows: int) -> None:
    """Check that a cross-validation has no more folds than rows."""
    if isinstance(pruner, espalier.CostComplexity) and pruner.select == "cv" and pruner.folds > n_rows:
        request.fault(f"{place}/folds", "out_of_range", f"must be at most {n_rows}: the number of training rows")


def check_counts(
    request: JobRequest, data_set: DataSet, configs: Mapping[str, espalier.TrainingConfig], held_out: HeldOut
) -> None:
    """Check that no training row has a target below 0 where the criterion is `poisson`.

    `configs` has the configurations by the place of their criterion. If the holdout has a fault, the training rows are
    not known and nothing is checked.
    """
    places = [place for place, config in configs.items() if config.criterion == "poisson"]
    is_refused = any(fault.path.startswith("/holdout") for fault in request.faults)
    if not places or data_set.task != "regression" or is_refused:
        return
    targets = load_targets(request.session, data_set)
    if targets.target is None:
        return
    below = targets.target < 0
    if held_out.rows is not None:
        below[espalier.held_out_rows(held_out.rows, targets)] = False
    for place in places if below.any() else ():
        request.fault(place, "target", "must not be poisson: the target is below 0 in some rows")


def plan_prediction(request: JobRequest) -> Job:
    """Plan a prediction of all rows of a data set, as `service.usecases.jobs.Planner`."""
    session, members = request.session, request.members
    data_set = request.data_set()
    pointed_at = None
    if members.get("version") is None and "model" in members:
        pointed_at = aliases.version_id(session, members["model"], aliases.DEFAULT)
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
        "version": version.number,
        "version_id": version.id,
        "document_sha256": version.document_sha256,
        "alias": None if pointed_at is None else aliases.DEFAULT,
        "dataset": data_set.id,
        "explain": members["explain"],
        "missing": members["missing"],  # the strategy for missing values; None: the model's own
        "operating_point": point if has_point else None,  # when the job was requested
    }
    return new_job(Kind.PREDICT, data_set, model=version.model.name, **payload)
