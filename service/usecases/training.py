"""Check training requests, and make their jobs."""

from collections.abc import Mapping
from typing import Any

import espalier
from service.database.tables import DataSet, Job, Kind
from service.errors import ValidationFailed
from service.usecases.jobs import HeldOut, JobRequest, check_rows, load_targets, new_job, read_holdout

# Maps the start of a fault's path in the core to the place in the request. All other faults are in the params.
PLACES = {
    "/target": "/dataset",
    "/attributes": "/dataset",
    "/preset": "/preset",
    "/holdout": "/holdout",
    "/memory_limit": "/memory_limit",
}


def plan_training(request: JobRequest) -> Job:
    """Return the job of a training request; see `service.usecases.jobs.Planner`."""
    members, data_set = request.members, request.data_set()
    schema = None if data_set is None else espalier.Schema.from_dict(data_set.declared)
    config = read_config(request, members, request.params(members, "preset"), schema, at="", places=PLACES)
    held_out = read_holdout(request, data_set)
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
    payload = {name: value for name, value in members.items() if name != "params"}  # `config` includes them
    return new_job(Kind.TRAIN, data_set, held_out.data_set, **payload, config=espalier.config_to_dict(config))


def read_config(
    request: JobRequest,
    part: Mapping[str, Any],
    params: Mapping[str, Any],
    schema: espalier.Schema | None,
    *,
    at: str,
    places: Mapping[str, str],
) -> espalier.TrainingConfig | None:
    """Return the configuration of the ``preset`` of `part`, changed by `params`; None if preset or params have faults.

    These faults are added to the request. If there are none, the faults of a training on `schema` are added, but only
    if `schema` is given and `part` has both ``preset`` and ``params``. `at` is the pointer of the part in the request;
    `places` maps the paths of some faults to pointers outside the params.
    """
    config: espalier.TrainingConfig | None = None
    with request.collecting(f"{at}/params", places):
        config = espalier.training_config(part.get("preset", "cart"), **params)
        if schema is not None and {"preset", "params"} <= part.keys():
            espalier.check_training(schema, config)
    return config


def check_folds(request: JobRequest, pruner: object, place: str, *, n_rows: int) -> None:
    """Add a fault if cost-complexity pruning cross-validates with more folds than there are training rows."""
    if isinstance(pruner, espalier.CostComplexity) and pruner.select == "cv" and pruner.folds > n_rows:
        request.fault(f"{place}/folds", "out_of_range", f"must be at most {n_rows}: the number of training rows")


def check_counts(
    request: JobRequest, data_set: DataSet, configs: Mapping[str, espalier.TrainingConfig], held_out: HeldOut
) -> None:
    """Add a fault for each ``poisson`` criterion if a training row of weight above 0 has a target below 0.

    `configs` maps the JSON pointer of each criterion to its configuration. If the holdout has a fault, nothing is
    checked, since the training rows are not known.
    """
    places = [place for place, config in configs.items() if config.criterion == "poisson"]
    is_refused = any(fault.path.startswith("/holdout") for fault in request.faults)
    if not places or data_set.task != "regression" or is_refused:
        return
    targets = load_targets(request.session, data_set)
    if targets.target is None:
        return
    below = (targets.target < 0) & (targets.weight > 0)
    if held_out.rows is not None:
        below[espalier.held_out_rows(held_out.rows, targets)] = False
    for place in places if below.any() else ():
        request.fault(place, "target", "must not be poisson: the target is below 0 in some rows")
