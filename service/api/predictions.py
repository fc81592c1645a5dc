"""Predictions over HTTP: rows in JSON, or a file of rows that is answered batch by batch."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from flask import Response, request

import espalier
from espalier import Fault
from service.api.blueprint import Blueprint, refuse_repeated
from service.api.context import current_caller, current_service
from service.api.prediction_streams import answer_file
from service.api.requests import JSON, read_json
from service.api.routing import MODEL, VERSION
from service.database import ALIAS
from service.database.tables import Scope
from service.errors import ValidationFailed
from service.repositories.decisions import check_subject
from service.schemas import predictions as schemas
from service.schemas.predictions import ALIAS_PARAMETER, OPTION_NAMES, STREAM_PARAMETERS, read_options
from service.serialization.answer_rows import json_items
from service.serialization.json_columns import MANY_ROWS, table_of_columns, table_of_rows
from service.usecases.limits import check_size
from service.usecases.prediction_streams import READERS
from service.usecases.predictions import (
    PredictionOptions,
    answer_rows,
    answer_table,
    check_cells,
    check_explanations,
    with_strategy,
)

predictions = Blueprint("predictions", __name__, description="Answers, each with the path that led to it")

ALIAS_NAME: Final = re.compile(ALIAS)
TABLES: Final = frozenset({"rows", "columns"})
DOCUMENTED: Final[Mapping[str, Any]] = {
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
    return _answer(name)


@predictions.post(f"{VERSION}/predict", scope=Scope.PREDICT)
@predictions.doc(**DOCUMENTED, parameters=STREAM_PARAMETERS)
def predict_by_version(name: str, number: int) -> Response:
    """Answer rows by one version of a model."""
    return _answer(name, number)


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """A prediction request in JSON: rows, or columns of the same length."""

    rows: list[Mapping[str, Any]] | None
    columns: Mapping[str, list[Any]]
    options: PredictionOptions

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()))) if self.rows is None else len(self.rows)

    def as_rows(self) -> list[Mapping[str, Any]]:
        """Return the rows, made of the columns if they were given."""
        if self.rows is not None:
            return self.rows
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*self.columns.values(), strict=True)]

    def as_table(self, model: espalier.Model) -> espalier.Dataset | None:
        """Return the rows as a table if they are many, plain, and nothing of their paths is wanted."""
        if self.options.explain != "none" or self.n_rows < MANY_ROWS:
            return None
        try:
            with_strategy(model, self.options.missing)
        except ValidationFailed:  # refused and logged row by row
            return None
        return table_of_columns(model, self.columns) if self.rows is None else table_of_rows(model, self.rows)

    def pointer(self, row: int, path: str) -> str:
        """Return the place in the body of what is at `path` within a row."""
        if self.rows is not None:
            return f"/rows/{row}{path}"
        return f"/columns{path}/{row}" if path else "/columns"


def _read_request(body: object, *, limit: int) -> PredictionRequest:
    """Check the fields of a request; the cells are checked by the model.

    Raises:
        ValidationFailed: Every fault, by its place.
        espalier.TooLarge: More rows than one request may have.
    """
    if not isinstance(body, dict):
        raise ValidationFailed([Fault("", "wrong_type", 'must be {"rows": [{…}, …], "explain": "path"}')])
    faults: list[Fault] = []
    options = read_options(body, beside=TABLES, faults=faults)
    if ("rows" in body) == ("columns" in body):
        raise ValidationFailed([*faults, Fault("", "required", "give either rows or columns")])
    payload = PredictionRequest(body.get("rows") if "rows" in body else None, body.get("columns", {}), options)
    if "columns" in body:
        faults += _column_faults(payload.columns)
    elif not (isinstance(payload.rows, list) and payload.rows):
        message = "must be a list of at least one object of attribute names and values"
        faults.append(Fault("/rows", "wrong_type", message))
    if faults:
        raise ValidationFailed(faults)
    check_size("rows", given=payload.n_rows, limit=limit)
    check_subject(options.subject)
    return payload


def _answer(name: str, number: int | None = None) -> Response:
    if request.mimetype in READERS:
        return answer_file(current_service().versions.resolve(name, number, _alias(number)))
    began = time.perf_counter()
    if request.query_string:
        _check_query()
    service = current_service()
    payload = _read_request(read_json(request), limit=service.settings.max_predict_rows)
    resolved = service.versions.resolve(name, number, _alias(number))
    model, options = resolved.version.model, payload.options
    check_explanations(model, payload.n_rows, explain=options.explain, limit=service.settings.max_full_nodes)
    given: dict[str, Any] = {"recorder": service.recorder, "key_id": current_caller().key_id, "began": began}
    head = {
        "model": resolved.version.model_name,
        "version": resolved.version.number,
        "operating_point": resolved.settings.operating_point,
        **service.audited,
    }
    table = payload.as_table(model)
    if table is not None:
        batch = answer_table(resolved, table, options, **given)
        content = b"".join((orjson.dumps(head)[:-1], b',"predictions":[', json_items(batch), b"]}"))
        return Response(content, content_type=JSON)
    rows = payload.as_rows()
    check_cells(rows, limit=service.settings.max_cell_chars)
    answers = answer_rows(resolved, rows, options, pointer=payload.pointer, **given)
    content = orjson.dumps({**head, "predictions": answers}, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, content_type=JSON)


def _column_faults(columns: object) -> Iterator[Fault]:
    lists = columns.values() if isinstance(columns, dict) else ()
    lengths = {len(cells) if isinstance(cells, list) else -1 for cells in lists}
    if len(lengths) != 1 or lengths & {-1, 0}:
        message = "must be an object of attribute names and lists of values, all of one length of at least 1"
        yield Fault("/columns", "wrong_type", message)


def _check_query() -> None:
    """Refuse in the query what belongs into the body of a JSON request."""
    faults = [
        Fault(f"/{name}", "not_legal", "of JSON this stands in the body, not in the query")
        for name in sorted((OPTION_NAMES | TABLES) & request.args.keys())
    ]
    if faults:
        raise ValidationFailed(faults)


def _alias(number: int | None) -> str | None:
    if number is not None or not request.query_string:
        return None
    refuse_repeated(request.args)
    alias = request.args.get("alias")
    if alias is not None and not ALIAS_NAME.fullmatch(alias):
        raise ValidationFailed(
            [Fault("/alias", "invalid", "an alias has 1 to 64 of the signs A-Z a-z 0-9 . _ -, first a letter")]
        )
    return alias
