"""Counterfactuals of a decision, and consultations, over HTTP; neither is a decision, so neither is in the log."""

from collections.abc import Mapping
from typing import Any

import orjson
from flask import Response

from service import asking as asked_of
from service import decisions, schemas
from service.api.answers import JSON
from service.api.context import caller, here
from service.api.contract import Resource, answers, refuses, takes_json, takes_query
from service.api.names import MODEL
from service.database.engine import reading
from service.database.tables import Scope
from service.usecases.predictions import check_cells

__all__ = ["asking"]

asking = Resource("asking", __name__, description="What would change an answer, and what is still needed for one")


@asking.post("/v1/decisions/<decision:decision_id>/counterfactuals", scope=Scope.AUDIT)
@takes_json(schemas.CounterfactualRequest)
@answers(200, schemas.Counterfactuals)
@refuses(400, 404, 409, 413, 415, 422)
def find_counterfactuals(asked: dict[str, Any], decision_id: str) -> Response:
    """Ask what would have to be otherwise for another answer: the nearest changes, each answered by the version.

    They are exact: of each leaf the nearest row that it answers, by the spans of the training values and the costs of
    the attributes; whole numbers, days and categories stay what they are.
    """
    service = here()
    with reading(service.sessions) as session:
        decision = decisions.find(session, decision_id)
        caller().check_model(decision.model_name)
        version = service.models.get(session, decision.version_id)
    names = {"range": "value_range", "max": "most"}
    found = asked_of.counterfactuals(version, decision, {names.get(name, name): one for name, one in asked.items()})
    told = {"decision_id": decision.id, "model": decision.model_name, "version": decision.version}
    return _told({**told, **found.to_dict()})


@asking.post(f"{MODEL}/consultations", scope=Scope.PREDICT)
@takes_query(schemas.ConsultationQuery)
@takes_json(schemas.ConsultationRequest)
@answers(200, schemas.Consultation)
@refuses(400, 404, 409, 413, 415, 422)
def consult(query: Mapping[str, Any], asked: Mapping[str, Any], name: str) -> Response:
    """Ask only for what is needed: the next attribute to find out, or the answer once nothing can change it any more.

    Nothing is remembered: each time all that is known is sent. The version is found as for a prediction.
    """
    service = here()
    version = service.finder.find(service.sessions, name, alias=query["alias"]).version
    check_cells([asked["known"]], limit=service.settings.max_cell_chars)
    found = asked_of.consult(version, asked["known"], missing=asked["missing"])
    return _told({"model": version.model_name, "version": version.number, **found.to_dict()})


def _told(document: Mapping[str, Any]) -> Response:
    return Response(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS), content_type=JSON)
