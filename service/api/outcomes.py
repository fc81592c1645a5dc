"""Outcomes over HTTP: what turned out to be true of a decision, and how often a version is right by that."""

from collections.abc import Mapping
from typing import Any

from flask import Response

from service import catalog, decisions, schemas
from service import outcomes as kept
from service.api.answers import json_answer, tagged_answer
from service.api.context import caller, here
from service.api.contract import Resource, answers, answers_tagged, refuses, takes_json
from service.api.names import VERSION
from service.database.engine import reading, transaction
from service.database.tables import Scope

__all__ = ["outcomes"]

outcomes = Resource("outcomes", __name__, description="What turned out to be true")

SHOWN = schemas.Outcome()


@outcomes.post("/v1/decisions/<decision:decision_id>/outcome", scope=Scope.PREDICT)
@takes_json(schemas.OutcomeRequest)
@answers(200, schemas.Outcome)
@refuses(400, 404, 409, 413, 415, 422)
def report_outcome(said: Mapping[str, Any], decision_id: str) -> Response:
    """Say what turned out to be true of a decision: the class, or of a regression the number.

    Said again, the last word counts. It feeds the accuracy of the version that made the decision.
    """
    service = here()
    with reading(service.sessions) as session:
        decision = decisions.find(session, decision_id)
        caller().check_model(decision.model_name)
        schema = service.models.get(session, decision.version_id).model.schema
    with transaction(service.sessions) as session:
        row = kept.record(session, decision, schema, key_id=caller().key_id, **said)
        session.flush()
        return json_answer(SHOWN.dump({"decision_id": decision.id, "at": row.at, "right": kept.is_right(row), **said}))


@outcomes.get(f"{VERSION}/accuracy", scope=Scope.READ)
@answers_tagged(schemas.Accuracy)
@refuses(404)
def get_version_accuracy(name: str, number: int) -> Response:
    """Look at how often a version was right, of the decisions whose outcome is known.

    Of a classification the accuracy and the confusion matrix, a row for each true class and a column for each answer;
    of a regression the mean absolute error, the root mean squared one, and the mean one (answer minus truth).
    """
    service = here()
    with reading(service.sessions) as session:
        version = catalog.find_version(session, name, number)
        schema = service.models.get(session, version.id).model.schema
        found = kept.accuracy(session, version.id, schema)
    return tagged_answer({"model": name, "version": number, **found})
