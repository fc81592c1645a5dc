"""The form for a training, with the fields of its preset and pruning method, and the same request as code."""

import shlex
from collections.abc import Mapping
from typing import Any

import orjson
from flask import Response, request

import espalier
from service.api.context import current_caller, current_service, queued_job
from service.database.engine import read_session
from service.database.tables import DataSet, Scope
from service.errors import ServiceError, ValidationFailed
from service.repositories import models
from service.repositories.datasets import WITHOUT_DECLARATION
from service.repositories.pagination import page
from service.schemas.jobs import TrainingJobRequest
from service.usecases.training import plan_training
from service.web.forms import parameter_fields, typed_parameters, typed_value, with_chosen
from service.web.pages import can, pages, problem_of, render, see_other

NONE = "none"  # the choice "no pruning"
MAX_LISTED = 200
HOLDOUTS = (
    ("", "as the preset"),
    ("share", "a share of the rows"),
    ("dataset", "another data set"),
)


@pages.page("/train", Scope.TRAIN)
def train() -> Response:
    """Show the form."""
    return _form_page("train.html", request.args)


@pages.page("/train", Scope.TRAIN, methods=("POST",))
def request_training() -> Response:
    """Queue a training."""
    try:
        check_holdout(request.form)
        with queued_job(plan_training, TrainingJobRequest(), training_request(request.form)) as (_, job):
            job_id = job.id
    except (espalier.EspalierError, ServiceError) as error:
        return _form_page("train.html", request.form, problem_of(error))
    return see_other("job", job_id=job_id)


@pages.page("/train/form", Scope.TRAIN, methods=("POST",))
def training_form() -> Response:
    """Show the form for another preset or pruning method, as a part of a page. Fields of both forms keep their text."""
    return _form_page("_train.html", request.form)


@pages.page("/train/code", Scope.TRAIN, methods=("POST",))
def training_code() -> Response:
    """Show the request as code, as a part of a page."""
    return render("_code.html", code=code_of("/v1/training-jobs", training_request(request.form)))


def training_request(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the request of the API that a form describes."""
    params = typed_parameters(espalier.TrainingConfig, typed, prefix="params.")
    params.pop("pruning", None)
    method = typed.get("pruning", "")
    if method == NONE:
        params["pruning"] = None
    elif method in espalier.PRUNERS:
        params["pruning"] = {
            "method": method,
            **typed_parameters(espalier.PRUNERS[method], typed, prefix="pruning."),
        }
    body: dict[str, Any] = {name: typed.get(name, "").strip() for name in ("model", "dataset", "preset")}
    if not body["preset"]:
        del body["preset"]
    body |= {"params": params, "holdout": holdout_request(typed)}
    limit = typed.get("memory_limit", "").strip()
    return {**body, "memory_limit": typed_value(limit)} if limit else body


def holdout_request(typed: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the holdout that a form describes, or None if the form describes none."""
    if typed.get("holdout") == "dataset":
        return {"dataset": typed.get("holdout_dataset", "")}
    if typed.get("holdout") == "share":
        given = {name: typed.get(f"holdout_{name}", "").strip() for name in ("fraction", "seed", "stratified")}
        return {name: typed_value(text) for name, text in given.items() if text}
    return None


def check_holdout(typed: Mapping[str, str]) -> None:
    """Raise `ValidationFailed` if a form names a data set to hold out, but does not hold out another data set."""
    if typed.get("holdout_dataset") and typed.get("holdout") != "dataset":
        message = "is used only if another data set is held out: choose that above, or none here"
        raise ValidationFailed([espalier.Fault("/holdout/dataset", "not_legal", message)])


def code_of(path: str, body: Mapping[str, Any]) -> dict[str, str]:
    """Return a POST request of the API as code: a curl command under `shell`, Python under `python`."""
    address = f"{request.host_url.rstrip('/')}{request.root_path}{path}"
    text = orjson.dumps(body).decode()
    with_key = current_service().settings.auth == "keys"
    shell_key = ' -H "Authorization: Bearer $ESPALIER_KEY"' if with_key else ""
    python_key = ', "Authorization": f"Bearer {os.environ[\'ESPALIER_KEY\']}"' if with_key else ""
    imports = "import json, os, urllib.request" if with_key else "import json, urllib.request"
    return {
        "shell": f"curl -s {shlex.quote(address)}{shell_key} -H 'Content-Type: application/json' "
        f"-d {shlex.quote(text)}",
        "python": f"{imports}\n\nbody = json.loads({text!r})\nrequest = urllib.request.Request(\n"
        f"    {address!r},\n    json.dumps(body).encode(),\n"
        f'    {{"Content-Type": "application/json"{python_key}}},\n)\n'
        "print(json.load(urllib.request.urlopen(request)))",
    }


def listed_data_sets(*chosen: str) -> list[tuple[str, str]]:
    """Return the choices of a menu of data sets, newest first; add those of the ids `chosen` that are not among them.

    The list is empty if the caller may not read data sets.
    """
    if not can(Scope.READ):
        return []
    with read_session(current_service().sessions) as session:
        rows = page(session, DataSet, options=WITHOUT_DECLARATION, limit=MAX_LISTED).items
    named = {row.id: f"{row.name[:60]} ({row.n_rows} rows, {row.created:%Y-%m-%d %H:%M})" for row in rows}
    return with_chosen(named, *chosen)


def _form_page(template: str, typed: Mapping[str, str], problem: Any = None) -> Response:
    preset = typed.get("preset", "cart") if typed.get("preset", "cart") in espalier.PRESETS else "cart"
    config, sentences = espalier.PRESETS[preset], espalier.PRESET_SENTENCES
    method = typed.get("pruning", "")
    own = None if config.pruning is None else espalier.config_to_dict(config)["pruning"]["method"]
    pruner: Any = espalier.PRUNERS.get(method)
    data_sets = listed_data_sets(typed.get("dataset", ""), typed.get("holdout_dataset", ""))
    first = data_sets[0][0] if data_sets else ""
    typed = {**typed, "preset": preset, "dataset": typed.get("dataset") or first}
    return render(
        template,
        typed=typed,
        problem=problem,
        names=_model_names(),
        data_sets=data_sets,
        preset=preset,
        presets=[(name, f"{name}: {sentence.partition(':')[0]}") for name, sentence in sentences.items()],
        sentence=sentences[preset],
        fields=parameter_fields(config, typed, prefix="params.", pointer="/params", without=("pruning",)),
        methods=[
            ("", f"as the preset ({own or 'none'})"),
            (NONE, "none"),
            *((name, name) for name in espalier.PRUNERS),
        ],
        method=method,
        pruning_fields=[]
        if pruner is None
        else parameter_fields(pruner(), typed, prefix="pruning.", pointer="/params/pruning"),
        holdouts=HOLDOUTS,
        code=code_of("/v1/training-jobs", training_request(typed)),
    )


def _model_names() -> list[str]:
    if not can(Scope.READ):
        return []
    with read_session(current_service().sessions) as session:
        return [one.name for one in models.list_models(session, names=current_caller().models, limit=50).items]
