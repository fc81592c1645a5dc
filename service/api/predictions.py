"""Predictions over HTTP: the hot route, kept short: bytes in, decision committed, bytes out."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from flask import Response, request

import espalier
from service import catalog, decisions, refusals, schemas, usecases
from service.answering import Answering
from service.api.bodies import JSON, read_json
from service.api.context import here
from service.api.contract import Resource, documents
from service.api.names import MODEL, VERSION
from service.api.prediction_streams import KINDS, PARAMETERS, answer_stream
from service.api.recording import record_answers
from service.errors import Fault, Rejected
from service.tables import Scope

__all__ = ["predictions"]

predictions = Resource("predictions", __name__, description="Answers, each with the path that led to it")

ALIAS = re.compile(schemas.ALIAS)
KEYS = frozenset({"rows", "columns", "explain", "missing", "on_error", "subject"})
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
BY_ALIAS: Mapping[str, Any] = {
    "in": "query",
    "name": "alias",
    "required": False,
    "schema": {"type": "string", "pattern": f"^{schemas.ALIAS}$"},
    "description": "the alias of the version that is to answer",
}


@predictions.post(f"{MODEL}/predict", scope=Scope.PREDICT)
@documents(**DOCUMENTED, parameters=[BY_ALIAS, *PARAMETERS])
def predict_by_alias(name: str) -> Response:
    """Answer rows by the version that the alias points at; without one, that is `production`, else the newest."""
    return _answer(name, None)


@predictions.post(f"{VERSION}/predict", scope=Scope.PREDICT)
@documents(**DOCUMENTED, parameters=PARAMETERS)
def predict_by_version(name: str, number: int) -> Response:
    """Answer rows by one version of a model."""
    return _answer(name, number)


@dataclass(frozen=True, slots=True)
class Asked:
    """A prediction request, read."""

    rows: list[Mapping[str, Any]]
    by_column: bool
    explain: str
    missing: str | None
    skip: bool
    subject: str | None

    def place(self, row: int, path: str) -> str:
        """Give the place in the body of what is at `path` within a row: below /rows, or turned round below /columns."""
        if not self.by_column:
            return f"/rows/{row}{path}"
        return f"/columns{path}/{row}" if path else "/columns"


def _answer(name: str, number: int | None) -> Response:
    if request.mimetype in KINDS:
        return answer_stream(request.mimetype, _answering(name, number))
    began = time.perf_counter()
    service = here()
    if request.query_string:
        _check_query()
    asked = _read(read_json(request), limit=service.settings.max_predict_rows)
    usecases.check_cells(asked.rows, limit=service.settings.max_cell_chars)
    answering = _answering(name, number)
    version, settings = answering.version, service.settings
    usecases.check_explaining(version.model, len(asked.rows), explain=asked.explain, limit=settings.max_full_nodes)
    record = partial(record_answers, answering, asked.rows, began=began, missing=asked.missing, subject=asked.subject)
    try:
        answered = _answered(version, asked)
    except (espalier.RowError, Rejected) as error:
        record(refusals.failed(len(asked.rows), error, place=asked.place))
        raise _placed(error, asked) if isinstance(error, espalier.RowError) else error from None
    ids = record(answered)
    answers = [{"decision_id": key or None, **answer} for key, answer in zip(ids, answered.answers, strict=True)]
    body = {
        "model": version.model_name,
        "version": version.number,
        "operating_point": answering.policy.operating_point,
        **service.audited,
        "predictions": answers,
    }
    return Response(orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS), content_type=JSON)


def _answering(name: str, number: int | None) -> Answering:
    """Find what is to answer."""
    alias = None if number is not None else _asked_alias()
    return here().finder.find(here().sessions, name, number, alias)


def _check_query() -> None:
    """Refuse in the query what stands in the body of a JSON request."""
    faults = [
        Fault(f"/{name}", "not_legal", "of JSON this stands in the body, not in the query")
        for name in sorted(KEYS & request.args.keys())
    ]
    if faults:
        raise Rejected(faults)


def _answered(version: catalog.LoadedVersion, asked: Asked) -> usecases.Answered:
    if asked.skip:
        return usecases.predict_each(
            version, asked.rows, explain=asked.explain, missing=asked.missing, place=asked.place
        )
    return usecases.predict(version, asked.rows, explain=asked.explain, missing=asked.missing)


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
    missing, on_error = body.get("missing"), body.get("on_error", "fail")
    for name, value, legal in (
        ("explain", explain, schemas.EXPLAIN),
        ("missing", missing, (*espalier.PREDICTION_STRATEGIES, None)),
        ("on_error", on_error, schemas.ON_ERROR),
    ):
        if value not in legal:
            words = ", ".join(word or "null" for word in legal)
            faults.append(Fault(f"/{name}", "unknown_value", f"must be one of {words}"))
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
    return Asked(rows, by_column, explain, missing, on_error == "skip", subject)


def _rows_of_columns(columns: object, faults: list[Fault]) -> list[Mapping[str, Any]]:
    lists = columns if isinstance(columns, dict) else {}
    lengths = {len(cells) if isinstance(cells, list) else -1 for cells in lists.values()}
    if len(lengths) != 1 or lengths & {-1, 0}:
        message = "must be an object of attribute names and lists of values, all of one length of at least 1"
        faults.append(Fault("/columns", "wrong_type", message))
        return []
    return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]


def _placed(error: espalier.RowError, asked: Asked) -> espalier.RowError:
    """Turn the core's "/row/attribute" into the place in the body."""
    parts = [(fault, *fault.path.removeprefix("/").partition("/")) for fault in error.faults]
    return espalier.RowError(
        [
            espalier.Fault(asked.place(int(row), slash + attribute), fault.code, fault.message)
            for fault, row, slash, attribute in parts
        ]
    )
