"""Check a request for a training."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet, Kind
from service.errors import ValidationFailed, collect_faults, relocate
from service.usecases.holdouts import HeldOut, TrainingSource, check_rows, load_targets, read_holdout
from service.usecases.jobs import JobPlan, fingerprints, params_of, requested_data_set
from service.usecases.model_cache import ModelCache

# Places in a request of faults that the core finds in configuration and schema together; others are in the params.
PLACES = {"/target": "/dataset", "/attributes": "/dataset", "/preset": "/preset", "/holdout": "/holdout"}


class TrainingPayload(TypedDict):
    """Payload of a job of kind `train`."""

    model: str
    dataset: str  # id
    preset: str
    config: dict[str, Any]  # espalier.config_to_dict
    holdout: dict[str, Any] | None  # {"fraction", "seed", "stratified"} | {"rows"} | {"dataset": id}
    fingerprints: dict[str, str]


def plan_training(
    session: Session, models: ModelCache, request: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> JobPlan:
    """Plan a training.

    The arguments are those of every plan, as `service.usecases.jobs.Planner` says.

    Raises:
        ValidationFailed: Every fault, by its place in the request: no such data set, preset, field or combination.
    """
    found = list(faults)
    data_set = requested_data_set(session, request, faults=found)
    source = None if data_set is None else TrainingSource.of(data_set)
    schema = None if source is None else source.schema
    params = params_of(request, "preset", faults=found)
    config = read_config(request, params, schema=schema, at="", places=PLACES, faults=found)
    held_out = read_holdout(session, request.get("holdout"), source=source, faults=found)
    if config is not None and "holdout" in request and request["holdout"] is None:
        _check_own_holdout(session, config, data_set, faults=found)
    if config is not None and data_set is not None:
        found += folds_faults(config.pruning, "/params/pruning", n_rows=data_set.n_rows - held_out.n_rows)
        found += count_faults(session, data_set, {"/params/criterion": config}, held_out, faults=found)
    if found or data_set is None or config is None:
        raise ValidationFailed(found)
    payload = TrainingPayload(
        model=request["model"],
        dataset=data_set.id,
        preset=request["preset"],
        config=espalier.config_to_dict(config),
        holdout=request["holdout"],
        fingerprints=fingerprints(data_set, held_out.data_set),
    )
    return JobPlan(Kind.TRAIN, dict(payload), request["model"], data_set.id, held_out.data_set_id)


def read_config(
    given: Mapping[str, Any],
    params: Mapping[str, Any],
    *,
    schema: espalier.Schema | None,
    at: str,
    places: Mapping[str, str],
    faults: list[Fault],
) -> espalier.TrainingConfig | None:
    """Read a preset with changed fields, and check whether it can train on a data set.

    Args:
        given: With ``preset`` and ``params``.
        params: The fields to change.
        schema: Of the data set, if there is one.
        at: The place of `given` in the request.
        places: Other places of faults than ``{at}/params``.
        faults: Those found are added.
    """
    config: espalier.TrainingConfig | None = None
    with collect_faults(faults, relocate(f"{at}/params", places)):
        config = espalier.training_config(given.get("preset", "cart"), **params)
        if schema is not None and {"preset", "params"} <= given.keys():
            espalier.check_training(schema, config)
    return config


def folds_faults(pruner: object, pointer: str, *, n_rows: int) -> Iterator[Fault]:
    """Yield the fault of a pruning by cross-validation that has more folds than rows."""
    if isinstance(pruner, espalier.CostComplexity) and pruner.select == "cv" and pruner.folds > n_rows:
        message = f"must be at most {n_rows}: so many rows are learned from"
        yield Fault(f"{pointer}/folds", "out_of_range", message)


def count_faults(
    session: Session,
    data_set: DataSet,
    configs: Mapping[str, espalier.TrainingConfig],
    held_out: HeldOut,
    *,
    faults: Sequence[Fault],
) -> list[Fault]:
    """Return the faults of the criterion `poisson` where a training row has a target below 0.

    Args:
        session: For reading.
        data_set: Which is learned from.
        configs: By the place of each one's criterion.
        held_out: Rows that are not learned from.
        faults: With one of the holdout, the training rows are not known and nothing is checked.
    """
    places = [place for place, config in configs.items() if config.criterion == "poisson"]
    if not places or data_set.task != "regression" or any(fault.path.startswith("/holdout") for fault in faults):
        return []
    targets = load_targets(session, data_set)
    if targets.target is None:
        return []
    below = targets.target < 0
    if held_out.rows is not None:
        below[espalier.held_out_rows(held_out.rows, targets)] = False
    message = "must not be poisson: the target is below 0 in some rows"
    return [Fault(place, "target", message) for place in places] if below.any() else []


def _check_own_holdout(
    session: Session, config: espalier.TrainingConfig, data_set: DataSet | None, *, faults: list[Fault]
) -> None:
    """Check the rows that the preset sets aside by itself."""
    with collect_faults(faults, relocate("/params", PLACES)):
        own = espalier.needed_holdout(config, None)
        if isinstance(own, espalier.Holdout) and data_set is not None:
            check_rows(session, own, data_set=data_set, faults=faults)
