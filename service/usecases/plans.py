"""Plan jobs: check a request for a training, a pruning, a comparison, or a prediction of a whole data set.

Each `plan_…` is a `service.usecases.jobs.Planner`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import espalier
from espalier import Fault
from service.database.tables import DataSet, Job, Kind, Version
from service.errors import ValidationFailed, collect_faults, relocate
from service.repositories import aliases
from service.usecases.jobs import HeldOut, JobRequest, check_rows, load_targets, new_job, read_holdout
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
    config = read_config(request, members, request.params(members, "preset"), data_set, at="", places=PLACES)
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
    return new_job(Kind.TRAIN, data_set, held_out.data_set, **members, config=espalier.config_to_dict(config))


def read_config(
    request: JobRequest,
    part: Mapping[str, Any],
    params: Mapping[str, Any],
    data_set: DataSet | None,
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
        if data_set is not None and {"preset", "params"} <= part.keys():
            espalier.check_training(espalier.Schema.from_dict(data_set.declared), config)
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
        **members,
        "version": version.number,
        "version_id": version.id,
        "document_sha256": version.document_sha256,
        "alias": None if pointed_at is None else aliases.DEFAULT,
        "operating_point": point if has_point else None,  # when the job was requested
    }
    return new_job(Kind.PREDICT, data_set, **payload)


# --- pruning


def plan_pruning(request: JobRequest) -> Job:
    """Plan a pruning of a version into a new one, as `service.usecases.jobs.Planner`."""
    session, members, version = request.session, request.members, request.version()
    params = request.params(members, "method")
    method: Any = None
    if "method" in members:
        with request.collecting("/params", {"/method": "/method"}):
            method = espalier.pruning_method(members["method"], **params)
    if version is None:
        read_holdout(request, None)
        raise ValidationFailed(request.faults)
    model = request.models.get(session, version.id).model
    data_set = None if version.data_set_id is None else session.get(DataSet, version.data_set_id)
    held_out = read_holdout(request, data_set, model)
    holdout = held_out.data_set
    if members.get("holdout") is None and version.holdout_data_set_id is not None:  # it is used again
        holdout = session.get(DataSet, version.holdout_data_set_id)
    if method is not None and "params" in members:
        _check_method(request, model, method, holdout, has_rows=data_set is not None)
    # One fault of the holdout is enough: a second one would give other advice.
    if "holdout" in members and all(fault.path != "/holdout" for fault in request.faults):
        _check_holdout(request, version, data_set, model, method=method, held_out=held_out)
    if request.faults:
        raise ValidationFailed(request.faults)
    return new_job(Kind.PRUNE, data_set, holdout, **{**members, "version": version.number}, version_id=version.id)


def _check_method(
    request: JobRequest, model: espalier.Model, method: Any, holdout: DataSet | None, *, has_rows: bool
) -> None:
    """Add the faults of the method. A fault of the holdout is added only if the request has none yet."""
    of_method: list[Fault] = []
    with collect_faults(of_method, relocate("/params", {"/method": "/method", "/holdout": "/holdout"})):
        espalier.check_pruning(
            model, method, has_training_rows=has_rows, validation_data=None if holdout is None else holdout.fingerprint
        )
    is_refused = any(fault.path.startswith("/holdout") for fault in request.faults)
    request.faults.extend(fault for fault in of_method if not (is_refused and fault.path == "/holdout"))


def _check_holdout(
    request: JobRequest,
    version: Version,
    data_set: DataSet | None,
    model: espalier.Model,
    *,
    method: Any,
    held_out: HeldOut,
) -> None:
    """Add a fault if only rows that the version was trained on could be used as the holdout."""
    remembered = model.training.holdout
    if held_out.rows is not None:
        if remembered is None:
            message = "this version was trained on all the rows of its data set: give the id of another data set"
            request.fault("/holdout", "not_legal", message)
        elif data_set is None:
            message = "the data set that this version was trained on is gone: give the id of another data set"
            request.fault("/holdout", "no_training_rows", message)
        elif held_out.rows != remembered:
            with suppress(espalier.ConfigError):  # `read_holdout` has found this fault
                targets = load_targets(request.session, data_set)
                rows, aside = (espalier.held_out_rows(each, targets) for each in (held_out.rows, remembered))
                if learned := len(set(rows.tolist()) - set(aside.tolist())):
                    which = f"{learned} of these {len(rows)} rows were learned from"
                    request.fault("/holdout", "learned_from", f"{which}: name rows that were set aside at training")
    elif held_out.data_set is None and method is not None and espalier.needs_held_out(method):
        if remembered is None and version.holdout_data_set_id is None:
            message = "this version was trained on all its rows and would be pruned on them: give a holdout"
            request.fault("/holdout", "required", message)
        elif remembered is not None and data_set is None:
            message = "the rows that were set aside at training are gone with their data set: give another data set"
            request.fault("/holdout", "no_training_rows", message)


# --- comparisons of candidates, each a preset with changed fields


MAX_CANDIDATES = 50
MAX_NAME_CHARS = 200
NO_OBJECT = re.compile(r"/candidates/[0-9]+")
Given = Sequence[Mapping[str, Any]]


def plan_evaluation(request: JobRequest) -> Job:
    """Plan a comparison of training candidates, as `service.usecases.jobs.Planner`."""
    members = request.members
    # A candidate that is not an object is missing in the list, so the numbers of those after it would be wrong.
    has_no_object = any(NO_OBJECT.fullmatch(fault.path) for fault in request.faults)
    given: Given = [] if has_no_object else members.get("candidates", [])
    data_set = request.data_set()
    candidates = [_read_candidate(request, one, data_set, at=f"/candidates/{place}") for place, one in enumerate(given)]
    held_out = read_holdout(request, data_set)
    if data_set is not None:
        with request.collecting():
            espalier.check_comparison(
                espalier.Schema.from_dict(data_set.declared),
                [candidate.name for candidate in candidates] or ["whose absence is a fault already"],
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
    request: JobRequest, given: Mapping[str, Any], data_set: DataSet | None, *, at: str
) -> espalier.Candidate:
    """Read and check ``name, preset, params, pruning``. If a fault is found, only the name of the result is valid."""
    beside = ("preset", "pruning") if "pruning" in given else ("preset",)
    params = request.params(given, *beside, at=at)
    places = {"/target": "/dataset", "/attributes": "/dataset", "/preset": f"{at}/preset"}
    if "pruning" in given:
        params["pruning"] = given["pruning"]
        places["/pruning"] = f"{at}/pruning"
    config = read_config(request, given, params, data_set, at=at, places=places)
    # As the command line writes it: ``cart max_depth=3``.
    fields = (f"{name}={json.dumps(value, separators=(',', ':'))}" for name, value in params.items())
    default = " ".join([str(given.get("preset")), *fields])
    shown = default if len(default) <= MAX_NAME_CHARS else default[: MAX_NAME_CHARS - 1] + "…"
    return espalier.Candidate(given.get("name") or shown, config or espalier.TrainingConfig())


def _check_rows(
    request: JobRequest, data_set: DataSet, given: Given, candidates: Sequence[espalier.Candidate], held_out: HeldOut
) -> None:
    """Check whether each candidate can learn from the rows that are left for it."""
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
    sets_aside = any(one.config.validation_stop or espalier.needs_held_out(one.config.pruning) for one in candidates)
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
