"""Check a request for a comparison of candidates, each a preset with changed fields."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.tables import DataSet, Kind
from service.errors import ValidationFailed, collect_faults, relocate
from service.usecases.holdouts import HeldOut, TrainingSource, load_targets, read_holdout
from service.usecases.jobs import JobPlan, fingerprints, params_of, requested_data_set
from service.usecases.model_cache import ModelCache
from service.usecases.training import count_faults, folds_faults, read_config

MAX_CANDIDATES = 50
MAX_NAME_CHARS = 200
NO_OBJECT = re.compile(r"/candidates/[0-9]+")
Given = Sequence[Mapping[str, Any]]


class EvaluationPayload(TypedDict):
    """Payload of a job of kind `evaluate`."""

    dataset: str  # id
    candidates: list[dict[str, Any]]  # [{"name", "config": espalier.config_to_dict}]
    folds: int | None  # None with a holdout, or for the core's own number
    holdout: dict[str, Any] | None  # as for a training; None: folds
    label_noise: float
    seed: int
    fingerprints: dict[str, str]


def plan_evaluation(
    session: Session, models: ModelCache, request: Mapping[str, Any], *, faults: Sequence[Fault] = ()
) -> JobPlan:
    """Plan a comparison of several ways of training.

    The arguments are those of every plan, as `service.usecases.jobs.Planner` says.

    Raises:
        ValidationFailed: Every fault, by its place in the request.
    """
    found = list(faults)
    data_set = requested_data_set(session, request, faults=found)
    source = None if data_set is None else TrainingSource.of(data_set)
    schema = None if source is None else source.schema
    # A candidate that is no object is missing in the list, so the numbers of those after it would be wrong.
    given: Given = [] if any(NO_OBJECT.fullmatch(fault.path) for fault in faults) else request.get("candidates", [])
    candidates = [
        _read_candidate(one, at=f"/candidates/{place}", schema=schema, faults=found) for place, one in enumerate(given)
    ]
    held_out = read_holdout(session, request.get("holdout"), source=source, faults=found)
    if source is not None and data_set is not None:
        with collect_faults(found, relocate("")):
            espalier.check_comparison(
                source.schema,
                [candidate.name for candidate in candidates] or ["whose absence is a fault already"],
                n_rows=data_set.n_rows,
                folds=request.get("folds"),
                on_one_split=request.get("holdout") is not None,
                label_noise=request.get("label_noise", 0.0),
            )
        _check_rows(session, data_set, given, candidates, request=request, held_out=held_out, faults=found)
    if found or data_set is None:
        raise ValidationFailed(found)
    payload = EvaluationPayload(
        dataset=data_set.id,
        candidates=[{"name": each.name, "config": espalier.config_to_dict(each.config)} for each in candidates],
        folds=request["folds"],
        holdout=request["holdout"],
        label_noise=request["label_noise"],
        seed=request["seed"],
        fingerprints=fingerprints(data_set, held_out.data_set),
    )
    return JobPlan(Kind.EVALUATE, dict(payload), None, data_set.id, held_out.data_set_id)


def _read_candidate(
    given: Mapping[str, Any], *, at: str, schema: espalier.Schema | None, faults: list[Fault]
) -> espalier.Candidate:
    """Read and check a candidate; of one with a fault only the name is right.

    Args:
        given: ``name, preset, params, pruning``, as `service.schemas.jobs.CandidateRequest` loads them.
        at: Its place in the request.
        schema: Of the data set, if there is one.
        faults: Those found are added.
    """
    beside = ("preset", "pruning") if "pruning" in given else ("preset",)
    params = params_of(given, *beside, at=at, faults=faults)
    places = {"/target": "/dataset", "/attributes": "/dataset", "/preset": f"{at}/preset"}
    if "pruning" in given:
        params["pruning"] = given["pruning"]
        places["/pruning"] = f"{at}/pruning"
    config = read_config(given, params, schema=schema, at=at, places=places, faults=faults)
    name = given.get("name") or _default_name(str(given.get("preset")), params)
    return espalier.Candidate(name, config or espalier.TrainingConfig())


def _default_name(preset: str, params: Mapping[str, Any]) -> str:
    """Return the name of a candidate as the command line writes it: ``cart max_depth=3``."""
    words = [preset, *(f"{name}={json.dumps(value, separators=(',', ':'))}" for name, value in params.items())]
    name = " ".join(words)
    return name if len(name) <= MAX_NAME_CHARS else name[: MAX_NAME_CHARS - 1] + "…"


def _check_rows(
    session: Session,
    data_set: DataSet,
    given: Given,
    candidates: Sequence[espalier.Candidate],
    *,
    request: Mapping[str, Any],
    held_out: HeldOut,
    faults: list[Fault],
) -> None:
    """Check whether each candidate can learn from the rows that are left for it."""
    n_folds = request.get("folds") or espalier.DEFAULT_FOLDS
    n_tested = held_out.n_rows if request.get("holdout") else -(-data_set.n_rows // n_folds)
    configs, places = {}, {}
    for place, (one, candidate) in enumerate(zip(given, candidates, strict=True)):
        at = f"/candidates/{place}"
        pruning_at = f"{at}/pruning" if "pruning" in one else f"{at}/params/pruning"
        faults += folds_faults(candidate.config.pruning, pruning_at, n_rows=data_set.n_rows - n_tested)
        configs[f"{at}/params/criterion"] = candidate.config
        is_in_params = "pruning" in (one.get("params") or {})
        places[f"{at}/pruning"] = f"{at}/params/pruning" if is_in_params else f"{at}/pruning"
        places[f"{at}/validation_stop"] = f"{at}/params/validation_stop"
    faults += count_faults(session, data_set, configs, held_out, faults=faults)
    if any(fault.path.startswith(("/dataset", "/folds", "/holdout", "/label_noise")) for fault in faults):
        return
    sets_aside = any(one.config.validation_stop or espalier.needs_held_out(one.config.pruning) for one in candidates)
    if not candidates or (not sets_aside and espalier.Schema.from_dict(data_set.declared).weight is None):
        return
    other = None if held_out.data_set is None else load_targets(session, held_out.data_set)
    with collect_faults(faults, relocate("", places)):
        espalier.check_candidate_rows(
            load_targets(session, data_set),
            candidates,
            folds=request.get("folds"),
            holdout=held_out.rows if other is None else other,
            seed=request.get("seed", 0),
            label_noise=request.get("label_noise", 0.0),
        )
