"""Predictions over HTTP: bytes in, decision committed, bytes out."""

import re
import time
from collections.abc import Mapping
from typing import Any

from flask import Response, request

from espalier import Fault
from service.api.blueprint import Blueprint, refuse_repeated
from service.api.context import current_caller, current_service
from service.api.predicting import FIELDS, answer_body
from service.api.prediction_streams import KINDS, answer_stream
from service.api.recording import PredictionContext
from service.api.requests import JSON, read_bytes
from service.api.routing import MODEL, VERSION
from service.database import ALIAS
from service.database.tables import Scope
from service.errors import ValidationFailed
from service.schemas import predictions as schemas
from service.schemas.predictions import ALIAS_PARAMETER, STREAM_PARAMETERS
from service.usecases.version_resolver import ResolvedVersion

predictions = Blueprint("predictions", __name__, description="Answers, each with the path that led to it")

ALIAS_NAME = re.compile(ALIAS)
DOCUMENTED: Mapping[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": schemas.PREDICTION_REQUEST},
            **{kind: {"schema": schema} for kind, schema in schemas.PREDICTION_STREAMS.items()},
        },
    },
    "responses": {
        200: {
            "description": "The answers; every decision is in the log",
            "content": {
                JSON: {"schema": schemas.PredictionAnswer},
                **{kind: {"schema": {"type": "string"}} for kind in schemas.PREDICTION_STREAMS},
            },
        },
        400: "BAD_REQUEST",
        404: "NOT_FOUND",
        409: "CONFLICT",
        413: "REQUEST_ENTITY_TOO_LARGE",
        415: "UNSUPPORTED_MEDIA_TYPE",
        422: "UNPROCESSABLE_ENTITY",
        429: "TOO_MANY_REQUESTS",
        503: "SERVICE_UNAVAILABLE",
    },
}


@predictions.post(f"{MODEL}/predict", scope=Scope.PREDICT)
@predictions.doc(**DOCUMENTED, parameters=[ALIAS_PARAMETER, *STREAM_PARAMETERS])
def predict(name: str) -> Response:
    """Answer rows by the version that the alias points at; without one, that is `production`, else the newest."""
    return _answer(name, None)


@predictions.post(f"{VERSION}/predict", scope=Scope.PREDICT)
@predictions.doc(**DOCUMENTED, parameters=STREAM_PARAMETERS)
def predict_by_version(name: str, number: int) -> Response:
    """Answer rows by one version of a model."""
    return _answer(name, number)


def _answer(name: str, number: int | None) -> Response:
    if request.mimetype in KINDS:
        return answer_stream(request.mimetype, _answering(name, number))
    began = time.perf_counter()
    if request.query_string:
        _check_query()
    inquiry = PredictionContext(current_service(), lambda: _answering(name, number), current_caller().key_id, began)
    content = answer_body(inquiry, read_bytes(request, kinds=(JSON,)))
    return Response(content, content_type=JSON)


def _answering(name: str, number: int | None) -> ResolvedVersion:
    """Find what is to answer."""
    alias = None if number is not None else _asked_alias()
    return current_service().versions.resolve(name, number, alias)


def _check_query() -> None:
    """Refuse in the query what stands in the body of a JSON request."""
    faults = [
        Fault(f"/{name}", "not_legal", "of JSON this stands in the body, not in the query")
        for name in sorted(FIELDS & request.args.keys())
    ]
    if faults:
        raise ValidationFailed(faults)


def _asked_alias() -> str | None:
    refuse_repeated(request.args)
    given = request.args.get("alias")
    if given is not None and not ALIAS_NAME.fullmatch(given):
        raise ValidationFailed(
            [Fault("/alias", "invalid", "an alias has 1 to 64 of the signs A-Z a-z 0-9 . _ -, first a letter")]
        )
    return given
