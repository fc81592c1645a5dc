"""Predictions over HTTP: the hot route, kept short: bytes in, decision committed, bytes out."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from flask import Response, request

import espalier
from service import decisions, schemas, usecases
from service.api.bodies import JSON, read_json
from service.api.context import caller, here
from service.api.contract import Resource, documents
from service.api.names import MODEL, VERSION
from service.db import reading, transaction
from service.errors import Fault, Rejected
from service.tables import Scope

__all__ = ["predictions"]

predictions = Resource("predictions", __name__, description="Answers, each with the path that led to it")

ALIAS = re.compile(schemas.ALIAS)
KEYS = frozenset({"rows", "columns", "explain", "subject"})
DOCUMENTED: Mapping[str, Any] = {
    "requestBody": {"required": True, "content": {JSON: {"schema": schemas.PREDICTION_REQUEST}}},
    "responses": {
        200: {
            "description": "The answers; every decision is in the log",
            "content": {JSON: {"schema": schemas.PredictionAnswer}},
        },
        400: "BAD_REQUEST",
        404: "NOT_FOUND",
        413: "REQUEST_ENTITY_TOO_LARGE",
        415: "UNSUPPORTED_MEDIA_TYPE",
        422: "UNPROCESSABLE_ENTITY",
        503: "SERVICE_UNAVAILABLE",
    },
}
BY_ALIAS: Mapping[str, Any] = {
    "in": "query",
    "name": "alias",
    "required": False,
    "schema": {"type": "string", "pattern": f"^{schemas.ALIAS}$"},
    "description": "the alias of the version that is to answer",
}


@predictions.post(f"{MODEL}/predict", scope=Scope.PREDICT)
@documents(**DOCUMENTED, parameters=[BY_ALIAS])
def predict_by_alias(name: str) -> Response:
    """Answer rows by the version that the alias points at; without one, that is `production`, else the newest."""
    return _answer(name, None)


@predictions.post(f"{VERSION}/predict", scope=Scope.PREDICT)
@documents(**DOCUMENTED)
def predict_by_version(name: str, number: int) -> Response:
    """Answer rows by one version of a model."""
    return _answer(name, number)


@dataclass(frozen=True, slots=True)
class Asked:
    """A prediction request, read."""

    rows: list[Mapping[str, Any]]
    explain: str
    subject: str | None
    by_column: bool


def _answer(name: str, number: int | None) -> Response:
    began = time.perf_counter()
    service = here()
    asked = _read(read_json(request), limit=service.settings.max_predict_rows)
    usecases.check_cells(asked.rows, limit=service.settings.max_cell_chars)
    with reading(service.sessions) as session:
        version, alias = (
            usecases.find_pointed_at(session, service.models, service.aliases, name, _asked_alias())
            if number is None
            else (usecases.find_loaded(session, service.models, name, number), None)
        )
    try:
        answered = usecases.predict(version, asked.rows, explain=asked.explain)
    except espalier.RowError as error:
        raise _placed(error, by_column=asked.by_column) from None
    with transaction(service.sessions) as session:
        ids = decisions.record(
            session,
            version=version,
            inputs=asked.rows,
            answers=answered.answers,
            nodes=answered.nodes,
            milliseconds=(time.perf_counter() - began) * 1000,
            subject=asked.subject,
            alias=alias,
            key_id=caller().key_id,
        )
    answers = [{"decision_id": key, **answer} for key, answer in zip(ids, answered.answers, strict=True)]
    body = {"model": version.model_name, "version": version.number, "predictions": answers}
    return Response(orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS), content_type=JSON)


def _asked_alias() -> str | None:
    given = request.args.get("alias")
    if given is not None and not ALIAS.fullmatch(given):
        raise Rejected(
            [Fault("/alias", "invalid", "an alias has 1 to 64 of the signs A-Z a-z 0-9 . _ -, first a letter")]
        )
    return given


def _read(body: object, *, limit: int) -> Asked:
    """Check the frame of a request; what the rows hold is checked by the model.

    Raises:
        Rejected: Every fault, by its place.
        TooLarge: More rows than one request may have.
    """
    if not isinstance(body, dict):
        raise Rejected([Fault("", "wrong_type", 'must be {"rows": [{…}, …], "explain": "path"}')])
    faults = [
        Fault(f"/{name}", "unknown_field", f"legal: {', '.join(sorted(KEYS))}") for name in sorted(body.keys() - KEYS)
    ]
    explain, subject = body.get("explain", "path"), body.get("subject")
    if explain not in schemas.EXPLAIN:
        faults.append(Fault("/explain", "unknown_value", f"must be one of {', '.join(schemas.EXPLAIN)}"))
    if subject is not None and not isinstance(subject, str):
        faults.append(Fault("/subject", "wrong_type", "must be text or null"))
    if ("rows" in body) == ("columns" in body):
        faults.append(Fault("", "required", "give either rows or columns"))
        raise Rejected(faults)
    by_column = "columns" in body
    rows = _rows_of_columns(body["columns"], faults) if by_column else body["rows"]
    if not by_column and not (isinstance(rows, list) and rows):
        faults.append(
            Fault("/rows", "wrong_type", "must be a list of at least one object of attribute names and values")
        )
    if faults:
        raise Rejected(faults)
    usecases.check_size("rows", given=len(rows), limit=limit)
    decisions.check_subject(subject)
    return Asked(rows, explain, subject, by_column)


def _rows_of_columns(columns: object, faults: list[Fault]) -> list[Mapping[str, Any]]:
    lists = columns if isinstance(columns, dict) else {}
    lengths = {len(cells) if isinstance(cells, list) else -1 for cells in lists.values()}
    if len(lengths) != 1 or lengths & {-1, 0}:
        message = "must be an object of attribute names and lists of values, all of one length of at least 1"
        faults.append(Fault("/columns", "wrong_type", message))
        return []
    return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]


def _placed(error: espalier.RowError, *, by_column: bool) -> espalier.RowError:
    """Turn the core's "/row/attribute" into the place in the body: below /rows, or turned round below /columns."""
    return espalier.RowError(
        [espalier.Fault(_place(fault.path, by_column=by_column), fault.code, fault.message) for fault in error.faults]
    )


def _place(path: str, *, by_column: bool) -> str:
    if not by_column:
        return f"/rows{path}"
    row, _, attribute = path.removeprefix("/").partition("/")
    return f"/columns/{attribute}/{row}" if attribute else "/columns"
