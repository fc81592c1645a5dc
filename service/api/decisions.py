"""The decision log over HTTP: look a decision up, list, have it explained again."""

from typing import Any

from flask import Response

import espalier
from service import decisions as log
from service import schemas, usecases
from service.api.answers import TEXT, bytes_answer, json_answer, page_answer
from service.api.context import caller, here
from service.api.contract import Resource, answers, refuses, takes_query
from service.db import reading
from service.tables import Scope

__all__ = ["decisions"]

decisions = Resource("decisions", __name__, description="What was answered, to what, by which version")

SHOWN = schemas.Decision()
DECISION = "/v1/decisions/<decision:decision_id>"


@decisions.get("/v1/decisions", scope=Scope.AUDIT)
@takes_query(schemas.DecisionQuery)
@answers(200, schemas.DecisionPage)
@refuses(422)
def list_all(query: dict[str, Any]) -> Response:
    """List decisions, newest first.

    The search is thin: a page may hold fewer than `limit`, even none, and still have a `next`.
    """
    limit, cursor = query.pop("limit"), query.pop("cursor")
    with reading(here().sessions) as session:
        wanted = log.Filter(**query, models=caller().models)
        return page_answer(log.list_decisions(session, wanted, limit=limit, cursor=cursor), SHOWN)


@decisions.get(DECISION, scope=Scope.AUDIT)
@answers(200, schemas.Decision)
@refuses(404)
def get_one(decision_id: str) -> Response:
    """Look a decision up."""
    with reading(here().sessions) as session:
        decision = log.find(session, decision_id)
    caller().check_model(decision.model_name)
    return json_answer(SHOWN.dump(decision))


@decisions.get(f"{DECISION}/explanation", scope=Scope.AUDIT)
@takes_query(schemas.ExplanationQuery)
@answers(200, schemas.Explanation)
@answers(200, {"type": "string"}, content_type="text/plain")
@refuses(404, 422)
def get_explanation(query: dict[str, Any], decision_id: str) -> Response:
    """Have a decision explained: derived again from the version that made it, and compared with what was answered."""
    with reading(here().sessions) as session:
        decision, replay = usecases.explain_decision(session, here().models, decision_id)
    caller().check_model(decision.model_name)
    if query["format"] == "text":
        return bytes_answer(_text(decision, replay), content_type=TEXT)
    return json_answer(
        {
            "decision_id": decision.id,
            "model": decision.model_name,
            "version": decision.version,
            "verified": replay.verified,
            "explanation": replay.explanation.to_dict(),
        }
    )


def _text(decision: log.Decision, replay: log.Replay) -> str:
    verified = "verified: the version answers the same today" if replay.verified else "NOT verified: the answers differ"
    head = (
        f"{decision.model_name}, version {decision.version}, decided {decision.time:%Y-%m-%d %H:%M:%S} UTC; {verified}"
    )
    return f"{head}\n{espalier.render_explanation(replay.explanation)}"
