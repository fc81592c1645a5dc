"""Prune a version: a chart of the cost-complexity path to choose from, a preview, and a form for the other methods.

The form shows the path by the risk "error". If no other risk is chosen and alpha is neither typed nor selected, the
step of the slider sets alpha, with or without scripts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flask import Response, request

import espalier
from service.api.context import queued_job
from service.database.tables import Scope
from service.errors import ServiceError
from service.schemas.jobs import PruningJobRequest
from service.usecases.pruning import plan_pruning
from service.web.charts import place_of, step_line
from service.web.forms import parameter_fields, typed_parameters, whole_number
from service.web.pages import pages, problem_of, render, see_other
from service.web.training import check_holdout, code_of, holdout_request, listed_data_sets
from service.web.tree_pictures import is_tree, picture
from service.web.versions import VERSION, loaded

MAX_STEPS = 60  # steps of the path that are shown
BY_PATH = "cost_complexity"
RISK = "error"  # of the path
HOLDOUTS = (("", "those of the training"), ("share", "a share of the rows"), ("dataset", "another data set"))


@dataclass(frozen=True, slots=True)
class Step:
    """A tree of the cost-complexity path."""

    alpha: float
    n_leaves: int
    risk: float
    x: float  # coordinate in the picture


@pages.page(f"{VERSION}/prune", Scope.TRAIN)
def prune(name: str, number: int) -> Response:
    """Show the form."""
    return _form_page("prune.html", name, number, request.args)


@pages.page(f"{VERSION}/prune", Scope.TRAIN, methods=("POST",))
def request_pruning(name: str, number: int) -> Response:
    """Queue a pruning."""
    body = _pruning_request(name, number, request.form)
    try:
        check_holdout(request.form)
        with queued_job(plan_pruning, PruningJobRequest(), body) as (_, job):
            job_id = job.id
    except (espalier.EspalierError, ServiceError) as error:
        return _form_page("prune.html", name, number, request.form, problem_of(error))
    return see_other("job", job_id=job_id)


@pages.page(f"{VERSION}/prune/form", Scope.TRAIN, methods=("POST",))
def pruning_form(name: str, number: int) -> Response:
    """Show the form for another method, as a part of the page."""
    return _form_page("_prune.html", name, number, request.form)


@pages.page(f"{VERSION}/prune/code", Scope.TRAIN, methods=("POST",))
def pruning_code(name: str, number: int) -> Response:
    """Show the request as code, as a part of the page."""
    return render("_code.html", code=code_of("/v1/pruning-jobs", _pruning_request(name, number, request.form)))


@pages.page(f"{VERSION}/prune/preview", Scope.READ)
def pruning_preview(name: str, number: int) -> Response:
    """Show the tree with marks at the nodes that become leaves up to a step of the path, as a part of the page."""
    _, model = loaded(name, number)
    path = espalier.pruning_path(model, RISK)
    steps = _steps(path)
    alpha = steps[_chosen(steps, request.args)].alpha
    mask = np.zeros(model.tree.n_nodes, dtype=np.bool_)
    mask[path.collapsed(path.place(alpha))] = True
    marked = frozenset(node for node in model.tree.remaining(mask).tolist() if mask[node])
    return render("_preview.html", picture=picture(model, marked=marked), n_marked=len(marked))


def _pruning_request(name: str, number: int, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the request of the API that a form describes."""
    method = typed.get("method", BY_PATH)
    kind: Any = espalier.PRUNERS.get(method)
    params = {} if kind is None else typed_parameters(kind, typed, prefix="params.")
    if steps := _steps_of_slider(loaded(name, number)[1], typed):
        params = {"risk": RISK, **params}
        if params["risk"] == RISK and "alpha" not in params and params.get("select") is None:
            params["alpha"] = steps[_chosen(steps, typed)].alpha
    return {
        "model": name,
        "version": number,
        "method": method,
        "params": params,
        "holdout": holdout_request(typed),
    }


def _form_page(template: str, name: str, number: int, typed: Mapping[str, str], problem: Any = None) -> Response:
    _, model = loaded(name, number)
    method = typed.get("method", BY_PATH)
    kind: Any = espalier.PRUNERS.get(method, espalier.PRUNERS[BY_PATH])
    steps = _steps_of_slider(model, typed)
    step = _chosen(steps, typed)
    parameters = kind(alpha=steps[step].alpha, risk=RISK) if steps else kind()
    return render(
        template,
        name=name,
        number=number,
        typed=typed,
        problem=problem,
        methods=[(one, one.replace("_", " ")) for one in espalier.PRUNERS],
        method=method,
        fields=parameter_fields(parameters, typed, prefix="params.", pointer="/params"),
        holdouts=HOLDOUTS,
        data_sets=listed_data_sets(typed.get("holdout_dataset", "")),
        steps=steps,
        step=step,
        risk_name="errors" if model.schema.classes else "squared error",
        line=step_line([one.risk for one in steps], line_id="step-line") if len(steps) > 1 else None,
        code=code_of("/v1/pruning-jobs", _pruning_request(name, number, typed)),
    )


def _steps_of_slider(model: espalier.Model, typed: Mapping[str, str]) -> Sequence[Step]:
    """Return the steps of the slider; none for another method, or a version without a cost-complexity path."""
    if typed.get("method", BY_PATH) != BY_PATH or not is_tree(model):
        return []
    try:
        return _steps(espalier.pruning_path(model, RISK))
    except espalier.EspalierError:
        return []


def _chosen(steps: Sequence[Step], typed: Mapping[str, str]) -> int:
    """Return the place of the chosen step, by default 0; a place after the last one counts as the last."""
    return max(0, min(whole_number(typed.get("step", "")) or 0, len(steps) - 1))


def _steps(path: espalier.PruningPath) -> Sequence[Step]:
    """Return all trees of a path if they are at most `MAX_STEPS`, else some, evenly spaced in the log of their size."""
    n_steps = len(path.alpha)
    places = np.arange(n_steps)
    if n_steps > MAX_STEPS:
        wanted = np.geomspace(float(path.leaves[0]), 1.0, MAX_STEPS)
        places = np.unique(np.clip(np.searchsorted(-path.leaves, -wanted), 0, n_steps - 1))
    return [
        Step(float(path.alpha[place]), int(path.leaves[place]), float(path.risk[place]), place_of(step, len(places)))
        for step, place in enumerate(places.tolist())
    ]
