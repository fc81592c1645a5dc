"""Decisions: get, list, explain, erase; counterfactuals, consultations, outcomes and accuracy."""

from collections.abc import Mapping
from typing import Any

from flask import Response

import espalier
from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service, find_decision, find_with_version
from service.api.etags import tagged_bytes, tagged_response
from service.api.responses import json_response, page_response, svg_response
from service.api.routing import DECISION, MODEL, VERSION
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.errors import Conflict
from service.repositories import decisions as repository
from service.schemas import decisions as schemas
from service.schemas.fields import page_of
from service.schemas.models import Accuracy
from service.schemas.predictions import Consultation, ConsultationRequest, VersionQuery
from service.serialization.media_types import SVG, TEXT
from service.usecases import decisions as usecases
from service.usecases.outcomes import is_right, record_outcome, version_accuracy
from service.usecases.predictions import check_cells
from service.usecases.version_resolver import model_at_point

decisions = Blueprint(
    "decisions", __name__, description="The decision log: what was predicted, for which row, by which version"
)
what_if = Blueprint(
    "what-if", __name__, description="Counterfactuals, and consultations that ask for one attribute after another"
)
outcome_routes = Blueprint("outcomes", __name__, description="True outcomes of decisions, and the accuracy of versions")

DECISION_SCHEMA = schemas.Decision()
OUTCOME_SCHEMA = schemas.Outcome()
VERIFIED = {
    True: "verified: the version makes the same decision today",
    False: "NOT verified: the version makes another decision today",
    None: "cannot be verified: {reason}",
}


@decisions.get("/v1/decisions", scope=Scope.AUDIT, query=schemas.DecisionQuery, shows=page_of(schemas.Decision))
def list_decisions(query: dict[str, Any]) -> Response:
    """List decisions, newest first.

    The decisions of a JSON request are in the order of its rows. A page with few items, or none, may have a next one.
    """
    limit, cursor = query.pop("limit"), query.pop("cursor")
    with read_session(current_service().sessions) as session:
        wanted = repository.Filter(**query, models=current_caller().models)
        page = repository.list_decisions(session, wanted, limit=limit, cursor=cursor)
        return page_response(page, DECISION_SCHEMA)


@decisions.delete("/v1/decisions", scope=Scope.ADMIN, query=schemas.ErasureQuery)
@decisions.response(200, schemas.Erasure)
def erase_subject(query: dict[str, Any]) -> Response:
    """Erase the inputs of all decisions about a subject; the records and their predictions stay, marked as erased.

    A repeated request covers decisions that were made since the last request.
    """
    return json_response(usecases.erase(current_service().sessions, query["subject"]))


@decisions.get(DECISION, scope=Scope.AUDIT, shows=schemas.Decision)
def get_decision(decision_id: str) -> Response:
    """Return a decision."""
    with read_session(current_service().sessions) as session:
        decision = find_decision(session, decision_id)
    return tagged_response(DECISION_SCHEMA.dump(decision))


@decisions.get(
    f"{DECISION}/explanation",
    scope=Scope.AUDIT,
    query=schemas.ExplanationQuery,
    shows=schemas.Explanation,
    texts=(TEXT, SVG),
    refuses=(409,),
)
def explain_decision(query: dict[str, Any], decision_id: str) -> Response:
    """Explain a decision: predict its row again with the same version, and compare the results.

    If the inputs are erased or masked, or the row would be refused now, `verified` is null, and `reason` says why. The
    format is json, text (lines), or svg (a picture of the tree with the path; not for a list of rules).
    """
    decision, version = find_with_version(decision_id)
    if decision.leaf is None:
        raise Conflict(f"decision {decision_id} is a refused row without explanation: GET the decision for its errors")
    replay = usecases.replay(version, decision)
    if query["format"] == "text":
        return tagged_bytes(f"{_head(decision, replay)}\n{_lines(decision, replay)}", TEXT)
    if query["format"] == "svg":
        model = model_at_point(version.model, decision.operating_point)
        if isinstance(model.body, espalier.RuleList):
            raise espalier.NotApplicable("the version is a list of rules and has no tree to draw: get text or json")
        path = replay.explanation or usecases.as_logged(model, decision, replay.reason or "")
        return svg_response(espalier.to_svg(model, path=path, caption=_head(decision, replay)))
    logged = {**decision.answer, "nodes": decision.nodes}
    return tagged_response(
        {
            **_reference(decision),
            "verified": replay.verified,
            "reason": replay.reason,
            "erased": replay.erased,
            "operating_point": decision.operating_point,
            "explanation": logged if replay.explanation is None else replay.explanation.to_dict(),
        }
    )


@what_if.post(f"{DECISION}/counterfactuals", scope=Scope.AUDIT, body=schemas.CounterfactualRequest, refuses=(409,))
@what_if.response(200, schemas.Counterfactuals)
def find_counterfactuals(body: dict[str, Any], decision_id: str) -> Response:
    """Find the smallest changes to a decision's row that lead to another prediction.

    Each leaf (or rule) with a desired prediction has at most one counterfactual: the row that reaches it at the lowest
    cost found. The cost of a change is its distance times the cost of the attribute. Distances of numbers and dates are
    relative to the ranges of training values. If all training values of an attribute are whole numbers, its new value
    is a whole number, too. A category changes to another known category.
    """
    decision, version = find_with_version(decision_id)
    counterfactuals = usecases.counterfactuals(version, decision, body)
    return json_response({**_reference(decision), **counterfactuals.to_dict()})


@what_if.post(
    f"{MODEL}/consultations", scope=Scope.PREDICT, query=VersionQuery, body=ConsultationRequest, refuses=(409,)
)
@what_if.response(200, Consultation)
def consult(query: Mapping[str, Any], body: Mapping[str, Any], name: str) -> Response:
    """Return the next attribute to find out, or the prediction as soon as no further value can change it.

    The service stores no state: each request contains all known values. The version is selected as for a prediction.
    """
    service = current_service()
    version = service.versions.resolve(name, alias=query["alias"]).version
    check_cells([body["known"]], limit=service.settings.max_cell_chars)
    consultation = usecases.consult(version, body["known"], missing=body["missing"])
    return json_response({"model": version.model_name, "version": version.number, **consultation.to_dict()})


@outcome_routes.post(f"{DECISION}/outcome", scope=Scope.PREDICT, body=schemas.OutcomeRequest, refuses=(409,))
@outcome_routes.response(200, schemas.Outcome)
def report_outcome(body: Mapping[str, Any], decision_id: str) -> Response:
    """Report the true outcome of a decision: the class, or for a regression the true number.

    A later report replaces an earlier one. The accuracy of the version is computed from the outcomes.
    """
    decision, version = find_with_version(decision_id)
    with transaction(current_service().sessions) as session:
        row = record_outcome(session, decision, version.model.schema, body, key_id=current_caller().key_id)
        head = {"decision_id": decision.id, "at": row.at, "right": is_right(row)}
        return json_response(OUTCOME_SCHEMA.dump({**head, **body}))


@outcome_routes.get(f"{VERSION}/accuracy", scope=Scope.READ, shows=Accuracy)
def get_version_accuracy(name: str, number: int) -> Response:
    """Return the accuracy of a version over the decisions whose outcome is known.

    A classification has the accuracy and, up to 1,000 classes, the confusion matrix: a row per true class, a column per
    predicted class. A regression has the mean absolute error, the root mean squared error, and the bias, which is the
    mean of prediction minus truth.
    """
    service = current_service()
    with read_session(service.sessions) as session:
        return tagged_response(version_accuracy(session, service.models, name, number))


def _reference(decision: repository.Decision) -> dict[str, Any]:
    return {"decision_id": decision.id, "model": decision.model_name, "version": decision.version}


def _lines(decision: repository.Decision, replay: usecases.Replay) -> str:
    if replay.explanation is not None:
        return espalier.render_explanation(replay.explanation)
    answer = decision.answer
    text = " ".join(espalier.label_text(answer["label"]).split()) if "label" in answer else f"{answer['value']:.6g}"
    erased = f"erased: {', '.join(map(repr, replay.erased))}\n" if replay.erased else ""
    path = "".join(f"  node {node}\n" for node in decision.nodes)
    return f"{path}answer: {text}\n{erased}"


def _head(decision: repository.Decision, replay: usecases.Replay) -> str:
    verified = VERIFIED[replay.verified].format(reason=replay.reason)
    return (
        f"{decision.model_name}, version {decision.version}, decided {decision.time:%Y-%m-%d %H:%M:%S} UTC; {verified}"
    )
