"""Check requests to prune a version, and make their jobs."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import espalier
from service.database.tables import DataSet, Job, Kind
from service.errors import ValidationFailed
from service.usecases.jobs import HeldOut, JobRequest, load_targets, new_job, read_holdout


def plan_pruning(request: JobRequest) -> Job:
    """Return the job of a request to prune a version into a new one; see `service.usecases.jobs.Planner`."""
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
    if members.get("holdout") is None and version.holdout_data_set_id is not None:  # reuse the version's holdout
        held_out = HeldOut(data_set=session.get(DataSet, version.holdout_data_set_id))
    if method is not None and "params" in members:
        other = None if held_out.data_set is None else held_out.data_set.fingerprint
        of_method = replace(request, faults=[])
        with of_method.collecting("/params", {"/method": "/method", "/holdout": "/holdout"}):
            espalier.check_pruning(model, method, has_training_rows=data_set is not None, validation_data=other)
        is_refused = any(fault.path.startswith("/holdout") for fault in request.faults)
        request.faults.extend(fault for fault in of_method.faults if not (is_refused and fault.path == "/holdout"))
    # Only one fault of the holdout is reported: a second one could give contradictory advice.
    if "holdout" in members and not any(fault.path.startswith("/holdout") for fault in request.faults):
        _check_holdout(request, data_set, model, method, held_out)
    ValidationFailed.raise_for(request.faults)
    payload = {**members, "version": version.number, "version_id": version.id}
    return new_job(Kind.PRUNE, data_set, held_out.data_set, **payload)


def _check_holdout(
    request: JobRequest, data_set: DataSet | None, model: espalier.Model, method: Any, held_out: HeldOut
) -> None:
    """Add a fault if the version was trained on a held-out row, or if the method lacks the held-out rows it needs."""
    remembered = model.training.holdout
    is_needed = held_out.data_set is None and method is not None and espalier.needs_held_out(method)
    if held_out.rows is None and not is_needed:
        return
    if remembered is None:
        message = "this version was trained on all the rows of its data set: give the id of another data set"
        request.fault("/holdout", "required" if held_out.rows is None else "not_legal", message)
    elif data_set is None:
        message = "the data set that this version was trained on is not stored: give the id of another data set"
        request.fault("/holdout", "no_training_rows", message)
    elif held_out.rows not in (None, remembered):
        with suppress(espalier.ConfigError):  # `read_holdout` has reported this fault
            targets = load_targets(request.session, data_set)
            rows, aside = (espalier.held_out_rows(each, targets) for each in (held_out.rows, remembered))
            if learned := len(set(rows.tolist()) - set(aside.tolist())):
                which = f"the version was trained on {learned} of these {len(rows)} rows"
                request.fault("/holdout", "learned_from", f"{which}: name rows that were set aside at training")
