"""Check requests to compare candidates, and make a job of each request. A candidate is a preset with changed fields."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import espalier
from service.database.tables import DataSet, Job, Kind
from service.errors import ValidationFailed
from service.usecases.jobs import HeldOut, JobRequest, load_targets, new_job, read_holdout
from service.usecases.training import check_counts, check_folds, read_config

MAX_CANDIDATES = 50
MAX_NAME_CHARS = 200
NO_OBJECT = re.compile(r"/candidates/[0-9]+")  # the path of the fault that a candidate is not a JSON object
Given = Sequence[Mapping[str, Any]]


def plan_evaluation(request: JobRequest) -> Job:
    """Return the job of a request to compare candidates; see `service.usecases.jobs.Planner`."""
    members = request.members
    # `members` lacks candidates that are not JSON objects, so the indices of the others are wrong: none is checked.
    has_no_object = any(NO_OBJECT.fullmatch(fault.path) for fault in request.faults)
    given: Given = [] if has_no_object else members.get("candidates", [])
    data_set = request.data_set()
    schema = None if data_set is None else espalier.Schema.from_dict(data_set.declared)
    candidates = [_read_candidate(request, one, schema, at=f"/candidates/{place}") for place, one in enumerate(given)]
    held_out = read_holdout(request, data_set)
    if data_set is not None and schema is not None:
        with request.collecting():
            espalier.check_comparison(
                schema,
                [candidate.name for candidate in candidates] or ["a placeholder: an empty list has a fault already"],
                n_rows=data_set.n_rows,
                folds=members.get("folds"),
                on_one_split=members.get("holdout") is not None,
                label_noise=members.get("label_noise", 0.0),
            )
        _check_rows(request, data_set, given, candidates, held_out)
    if request.faults or data_set is None:
        raise ValidationFailed(request.faults)
    configs = [{"name": each.name, "config": espalier.config_to_dict(each.config)} for each in candidates]
    return new_job(Kind.EVALUATE, data_set, held_out.data_set, **{**members, "candidates": configs})


def _read_candidate(
    request: JobRequest, given: Mapping[str, Any], schema: espalier.Schema | None, *, at: str
) -> espalier.Candidate:
    """Return a candidate from its ``name, preset, params, pruning``; if these have faults, only the name is valid."""
    beside = ("preset", "pruning") if "pruning" in given else ("preset",)
    params = request.params(given, *beside, at=at)
    places = {"/target": "/dataset", "/attributes": "/dataset", "/preset": f"{at}/preset"}
    if "pruning" in given:
        params["pruning"] = given["pruning"]
        places["/pruning"] = f"{at}/pruning"
    config = read_config(request, given, params, schema, at=at, places=places)
    # The default name has the form that the command line uses: ``cart max_depth=3``.
    fields = (f"{name}={json.dumps(value, separators=(',', ':'))}" for name, value in params.items())
    default = " ".join([str(given.get("preset")), *fields])
    shown = default if len(default) <= MAX_NAME_CHARS else default[: MAX_NAME_CHARS - 1] + "…"
    return espalier.Candidate(given.get("name") or shown, config or espalier.TrainingConfig())


def _check_rows(
    request: JobRequest, data_set: DataSet, given: Given, candidates: Sequence[espalier.Candidate], held_out: HeldOut
) -> None:
    members = request.members
    n_folds = members.get("folds") or espalier.DEFAULT_FOLDS
    n_tested = held_out.n_rows if members.get("holdout") else -(-data_set.n_rows // n_folds)
    configs, places = {}, {}
    for place, (one, candidate) in enumerate(zip(given, candidates, strict=True)):
        at = f"/candidates/{place}"
        pruning_at = f"{at}/pruning" if "pruning" in one else f"{at}/params/pruning"
        check_folds(request, candidate.config.pruning, pruning_at, n_rows=data_set.n_rows - n_tested)
        configs[f"{at}/params/criterion"] = candidate.config
        is_in_params = "pruning" in (one.get("params") or {})
        places[f"{at}/pruning"] = f"{at}/params/pruning" if is_in_params else f"{at}/pruning"
        places[f"{at}/validation_stop"] = f"{at}/params/validation_stop"
    check_counts(request, data_set, configs, held_out)
    if any(fault.path.startswith(("/dataset", "/folds", "/holdout", "/label_noise")) for fault in request.faults):
        return
    sets_aside = any(one.config.needs_held_out for one in candidates)
    if not candidates or (not sets_aside and espalier.Schema.from_dict(data_set.declared).weight is None):
        return
    other = None if held_out.data_set is None else load_targets(request.session, held_out.data_set)
    with request.collecting("", places):
        espalier.check_candidate_rows(
            load_targets(request.session, data_set),
            candidates,
            folds=members.get("folds"),
            holdout=held_out.rows if other is None else other,
            seed=members.get("seed", 0),
            label_noise=members.get("label_noise", 0.0),
        )
