"""The decision log over HTTP: look a decision up, list, have it explained again."""

from dataclasses import asdict
from typing import Any

from flask import Response

import espalier
from service import decisions as log
from service import erasure, replays, schemas
from service.api.answers import TEXT, bytes_answer, json_answer, page_answer, tagged_answer
from service.api.context import caller, here
from service.api.contract import Resource, answers, answers_tagged, refuses, takes_query
from service.api.drawings import SVG, pictured
from service.database.engine import reading
from service.database.tables import Scope
from service.operating import at_point
from service.usecases.decisions import replay_decision

__all__ = ["decisions"]

decisions = Resource("decisions", __name__, description="What was answered, to what, by which version")

SHOWN = schemas.Decision()
VERIFIED = {
    True: "verified: the version answers the same today",
    False: "NOT verified: the answers differ",
    None: "cannot be verified: {reason}",
}
DECISION = "/v1/decisions/<decision:decision_id>"


@decisions.get("/v1/decisions", scope=Scope.AUDIT)
@takes_query(schemas.DecisionQuery)
@answers_tagged(schemas.DecisionPage)
@refuses(422)
def list_decisions(query: dict[str, Any]) -> Response:
    """List decisions, newest first.

    The search is thin: a page may hold fewer than `limit`, even none, and still have a `next`.
    """
    limit, cursor = query.pop("limit"), query.pop("cursor")
    with reading(here().sessions) as session:
        wanted = log.Filter(**query, models=caller().models)
        return page_answer(log.list_decisions(session, wanted, limit=limit, cursor=cursor), SHOWN)


@decisions.delete("/v1/decisions", scope=Scope.ADMIN)
@takes_query(schemas.ErasureQuery)
@answers(200, schemas.Erasure)
@refuses(422)
def erase_subject(query: dict[str, Any]) -> Response:
    """Erase the inputs of all decisions about a subject; the records stay, with their answers, and say so.

    Asked again, it erases what has come since.
    """
    return json_answer(asdict(erasure.erase(here().sessions, query["subject"])))


@decisions.get(DECISION, scope=Scope.AUDIT)
@answers_tagged(schemas.Decision)
@refuses(404)
def get_decision(decision_id: str) -> Response:
    """Look a decision up."""
    with reading(here().sessions) as session:
        decision = log.find(session, decision_id)
    caller().check_model(decision.model_name)
    return tagged_answer(SHOWN.dump(decision))


@decisions.get(f"{DECISION}/explanation", scope=Scope.AUDIT)
@takes_query(schemas.ExplanationQuery)
@answers_tagged(schemas.Explanation)
@answers_tagged({"type": "string"}, content_type="text/plain")
@answers_tagged({"type": "string"}, content_type=SVG)
@refuses(404, 409, 422)
def explain_decision(query: dict[str, Any], decision_id: str) -> Response:
    """Have a decision explained: derived again from the version that made it, and compared with what was answered.

    As json, as lines (text), or as a picture of the tree with the way that led to the answer (svg).
    """
    with reading(here().sessions) as session:
        decision, replay = replay_decision(session, here().models, decision_id)
        model = at_point(here().models.get(session, decision.version_id).model, decision.operating_point)
    caller().check_model(decision.model_name)
    if query["format"] == "text":
        return bytes_answer(f"{_head(decision, replay)}\n{_lines(decision, replay)}", content_type=TEXT)
    if query["format"] == "svg":
        if isinstance(model.body, espalier.RuleList):
            raise espalier.NotApplicable("a list of rules decided this, and has no tree to draw: take text or json")
        way = replay.explanation or replays.as_logged(model, decision, replay.reason or "")
        return pictured(espalier.to_svg(model, path=way, caption=_head(decision, replay)))
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


def _known(decision: log.Decision) -> dict[str, Any]:
    return {**decision.answer, "nodes": decision.nodes}


def _lines(decision: log.Decision, replay: replays.Replay) -> str:
    if replay.explanation is not None:
        return espalier.render_explanation(replay.explanation)
    answer = decision.answer
    said = " ".join(espalier.label_text(answer["label"]).split()) if "label" in answer else f"{answer['value']:.6g}"
    erased = f"erased: {', '.join(map(repr, replay.erased))}\n" if replay.erased else ""
    way = "".join(f"  node {node}\n" for node in decision.nodes)
    return f"{way}answer: {said}\n{erased}"


def _head(decision: log.Decision, replay: replays.Replay) -> str:
    verified = VERIFIED[replay.verified].format(reason=replay.reason)
    return (
        f"{decision.model_name}, version {decision.version}, decided {decision.time:%Y-%m-%d %H:%M:%S} UTC; {verified}"
    )
