"""Decisions over HTTP: look up, list, explain, what would change them, what turned out to be true; consultations."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson
from flask import Response
from sqlalchemy.orm import Session

import espalier
from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service
from service.api.rendering import SVG, pictured
from service.api.responses import JSON, TEXT, bytes_answer, json_answer, page_answer, tagged_answer
from service.api.routing import MODEL, VERSION
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.errors import Conflict, NotFound
from service.repositories import decisions as log, models
from service.schemas import decisions as schemas
from service.schemas.models import Accuracy
from service.schemas.predictions import Consultation, ConsultationQuery, ConsultationRequest
from service.usecases import decisions as usecases, erasure, outcomes
from service.usecases.predictions import check_cells
from service.usecases.version_resolver import model_at_point

decisions = Blueprint("decisions", __name__, description="What was answered, to what, by which version")
asking = Blueprint("asking", __name__, description="What would change an answer, and what is still needed for one")
outcome_routes = Blueprint("outcomes", __name__, description="What turned out to be true")

SHOWN = schemas.Decision()
SHOWN_OUTCOME = schemas.Outcome()
VERIFIED = {
    True: "verified: the version answers the same today",
    False: "NOT verified: the answers differ",
    None: "cannot be verified: {reason}",
}
CHANGE_NAMES = {"range": "value_range", "max": "most"}
DECISION = "/v1/decisions/<decision:decision_id>"


@decisions.get("/v1/decisions", scope=Scope.AUDIT)
@decisions.arguments(schemas.DecisionQuery, location="query")
@decisions.tagged(schemas.DecisionPage)
@decisions.refuses(422)
def list_decisions(query: dict[str, Any]) -> Response:
    """List decisions, newest first.

    The search is thin: a page may hold fewer than `limit`, even none, and still have a `next`.
    """
    limit, cursor = query.pop("limit"), query.pop("cursor")
    with read_session(current_service().sessions) as session:
        wanted = log.Filter(**query, models=current_caller().models)
        return page_answer(log.list_decisions(session, wanted, limit=limit, cursor=cursor), SHOWN)


@decisions.delete("/v1/decisions", scope=Scope.ADMIN)
@decisions.arguments(schemas.ErasureQuery, location="query")
@decisions.response(200, schemas.Erasure)
@decisions.refuses(422)
def erase_subject(query: dict[str, Any]) -> Response:
    """Erase the inputs of all decisions about a subject; the records stay, with their answers, and say so.

    Asked again, it erases what has come since.
    """
    return json_answer(asdict(erasure.erase(current_service().sessions, query["subject"])))


@decisions.get(DECISION, scope=Scope.AUDIT)
@decisions.tagged(schemas.Decision)
@decisions.refuses(404)
def get_decision(decision_id: str) -> Response:
    """Look a decision up."""
    with read_session(current_service().sessions) as session:
        decision = _find(session, decision_id)
    return tagged_answer(SHOWN.dump(decision))


@decisions.get(f"{DECISION}/explanation", scope=Scope.AUDIT)
@decisions.arguments(schemas.ExplanationQuery, location="query")
@decisions.tagged(schemas.Explanation)
@decisions.tagged({"type": "string"}, content_type="text/plain")
@decisions.tagged({"type": "string"}, content_type=SVG)
@decisions.refuses(404, 409, 422)
def explain_decision(query: dict[str, Any], decision_id: str) -> Response:
    """Have a decision explained: derived again from the version that made it, and compared with what was answered.

    As json, as lines (text), or as a picture of the tree with the way that led to the answer (svg).
    """
    with read_session(current_service().sessions) as session:
        decision = _find(session, decision_id)
        version = current_service().models.get(session, decision.version_id)
    if decision.leaf is None:
        raise Conflict(f"decision {decision_id} is a row that was refused: its errors stand in the decision itself")
    replay = usecases.replay(version, decision)
    if query["format"] == "text":
        return bytes_answer(f"{_head(decision, replay)}\n{_lines(decision, replay)}", content_type=TEXT)
    if query["format"] == "svg":
        model = model_at_point(version.model, decision.operating_point)
        if isinstance(model.body, espalier.RuleList):
            raise espalier.NotApplicable("a list of rules decided this, and has no tree to draw: take text or json")
        path = replay.explanation or usecases.as_logged(model, decision, replay.reason or "")
        return pictured(espalier.to_svg(model, path=path, caption=_head(decision, replay)))
    return tagged_answer(
        {
            "decision_id": decision.id,
            "model": decision.model_name,
            "version": decision.version,
            "verified": replay.verified,
            "reason": replay.reason,
            "erased": replay.erased,
            "operating_point": decision.operating_point,
            "explanation": _known(decision) if replay.explanation is None else replay.explanation.to_dict(),
        }
    )


@asking.post(f"{DECISION}/counterfactuals", scope=Scope.AUDIT)
@asking.arguments(schemas.CounterfactualRequest)
@asking.response(200, schemas.Counterfactuals)
@asking.refuses(400, 404, 409, 413, 415, 422)
def find_counterfactuals(wanted: dict[str, Any], decision_id: str) -> Response:
    """Ask what would have to be otherwise for another answer: the nearest changes, each answered by the version.

    They are exact: of each leaf the nearest row that it answers, by the spans of the training values and the costs of
    the attributes; whole numbers, days and categories stay what they are.
    """
    with read_session(current_service().sessions) as session:
        decision = _find(session, decision_id)
        version = current_service().models.get(session, decision.version_id)
    request = {CHANGE_NAMES.get(name, name): value for name, value in wanted.items()}
    found = usecases.counterfactuals(version, decision, request)
    head = {"decision_id": decision.id, "model": decision.model_name, "version": decision.version}
    return _document({**head, **found.to_dict()})


@asking.post(f"{MODEL}/consultations", scope=Scope.PREDICT)
@asking.arguments(ConsultationQuery, location="query")
@asking.arguments(ConsultationRequest)
@asking.response(200, Consultation)
@asking.refuses(400, 404, 409, 413, 415, 422)
def consult(query: Mapping[str, Any], payload: Mapping[str, Any], name: str) -> Response:
    """Ask only for what is needed: the next attribute to find out, or the answer once nothing can change it any more.

    Nothing is remembered: each time all that is known is sent. The version is found as for a prediction.
    """
    service = current_service()
    version = service.versions.resolve(name, alias=query["alias"]).version
    check_cells([payload["known"]], limit=service.settings.max_cell_chars)
    found = usecases.consult(version, payload["known"], missing=payload["missing"])
    return _document({"model": version.model_name, "version": version.number, **found.to_dict()})


@outcome_routes.post(f"{DECISION}/outcome", scope=Scope.PREDICT)
@outcome_routes.arguments(schemas.OutcomeRequest)
@outcome_routes.response(200, schemas.Outcome)
@outcome_routes.refuses(400, 404, 409, 413, 415, 422)
def report_outcome(reported: Mapping[str, Any], decision_id: str) -> Response:
    """Say what turned out to be true of a decision: the class, or of a regression the number.

    Said again, the last word counts. It feeds the accuracy of the version that made the decision.
    """
    service = current_service()
    with read_session(service.sessions) as session:
        decision = _find(session, decision_id)
        schema = service.models.get(session, decision.version_id).model.schema
    with transaction(service.sessions) as session:
        row = outcomes.record(session, decision, schema, key_id=current_caller().key_id, **reported)
        session.flush()
        head = {"decision_id": decision.id, "at": row.at, "right": outcomes.is_right(row)}
        return json_answer(SHOWN_OUTCOME.dump({**head, **reported}))


@outcome_routes.get(f"{VERSION}/accuracy", scope=Scope.READ)
@outcome_routes.tagged(Accuracy)
@outcome_routes.refuses(404)
def get_version_accuracy(name: str, number: int) -> Response:
    """Look at how often a version was right, of the decisions whose outcome is known.

    Of a classification the accuracy and the confusion matrix, a row for each true class and a column for each answer;
    of a regression the mean absolute error, the root mean squared one, and the mean one (answer minus truth).
    """
    service = current_service()
    with read_session(service.sessions) as session:
        version = models.find_version(session, name, number)
        schema = service.models.get(session, version.id).model.schema
        figures = outcomes.accuracy(session, version.id, schema)
    return tagged_answer({"model": name, "version": number, **figures})


def _find(session: Session, decision_id: str) -> log.Decision:
    """Return a decision by a model that the caller reaches.

    Raises:
        Forbidden: The key is limited to some models, and none of them has made the decision, if anything has.
        NotFound: There is none.
    """
    try:
        decision = log.find(session, decision_id)
    except NotFound:
        current_caller().check_found(None)
        raise
    current_caller().check_found(decision.model_name)
    return decision


def _document(document: Mapping[str, Any]) -> Response:
    return Response(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS), content_type=JSON)


def _known(decision: log.Decision) -> dict[str, Any]:
    return {**decision.answer, "nodes": decision.nodes}


def _lines(decision: log.Decision, replay: usecases.Replay) -> str:
    if replay.explanation is not None:
        return espalier.render_explanation(replay.explanation)
    answer = decision.answer
    text = " ".join(espalier.label_text(answer["label"]).split()) if "label" in answer else f"{answer['value']:.6g}"
    erased = f"erased: {', '.join(map(repr, replay.erased))}\n" if replay.erased else ""
    path = "".join(f"  node {node}\n" for node in decision.nodes)
    return f"{path}answer: {text}\n{erased}"


def _head(decision: log.Decision, replay: usecases.Replay) -> str:
    verified = VERIFIED[replay.verified].format(reason=replay.reason)
    return (
        f"{decision.model_name}, version {decision.version}, decided {decision.time:%Y-%m-%d %H:%M:%S} UTC; {verified}"
    )
