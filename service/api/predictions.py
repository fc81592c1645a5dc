"""Predictions for rows in JSON, or for a file of rows in CSV or NDJSON; the response has the same format.

A file is first copied to a temporary file, since many clients send a whole file before they read the response.
"""

import json
import logging
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import marshmallow as ma
import orjson
from flask import Request, Response
from werkzeug.exceptions import BadRequest
from werkzeug.wsgi import LimitedStream

import espalier
from espalier import Fault
from service.api.auth import reauthenticate
from service.api.blueprint import NO_QUERY, Blueprint
from service.api.context import current_caller, current_request, current_service, request_id
from service.api.problems import document_of, is_unexpected, problem_for
from service.api.request_bodies import BLOCK, open_body, read_json
from service.api.routing import MODEL, VERSION
from service.database.tables import Scope
from service.errors import ValidationFailed, check_size
from service.repositories.decisions import check_subject
from service.schemas import predictions as schemas
from service.schemas.predictions import ALIAS_PARAMETER, OPTION_NAMES, STREAM_PARAMETERS, VersionQuery, read_options
from service.serialization.answer_formats import json_items, lines_of
from service.serialization.json_columns import MANY_ROWS, table_of_columns, table_of_rows
from service.serialization.media_types import CSV, JSON
from service.usecases.prediction_streams import READERS, PredictionStream
from service.usecases.predictions import PredictionOptions, answer_rows, answer_table, with_strategy
from service.usecases.version_resolver import ResolvedVersion

log = logging.getLogger("service")
predictions = Blueprint("predictions", __name__, description="Predictions, each with its path through the tree")

MAX_BYTES_IN_MEMORY: Final = 2**20  # of a body; a larger one is on disk
TABLES: Final = frozenset({"rows", "columns"})
REQUEST: Final[Mapping[str, Any]] = {
    "required": True,
    "content": {
        JSON: {"schema": schemas.PREDICTION_REQUEST},
        **{kind: {"schema": schema} for kind, schema in schemas.PREDICTION_STREAMS.items()},
    },
}
PREDICTING: Mapping[str, Any] = {"scope": Scope.PREDICT, "query": None, "body": REQUEST, "refuses": (409, 429, 503)}
# For `Blueprint.doc`; `Blueprint.response` would add a function call to every prediction.
RESPONSE: Final[Mapping[int, Any]] = {
    200: {
        "description": "The predictions, logged as decisions unless ESPALIER_DECISIONS is off",
        "content": {
            JSON: {"schema": schemas.PredictionAnswer},
            **{kind: {"schema": {"type": "string"}} for kind in schemas.PREDICTION_STREAMS},
        },
    }
}


@predictions.post(f"{MODEL}/predict", **PREDICTING)
@predictions.doc(parameters=[ALIAS_PARAMETER, *STREAM_PARAMETERS], responses=RESPONSE)
def predict(name: str) -> Response:
    """Predict rows with the version behind an alias; default: `production`, else the newest version not archived."""
    return _predict(name)


@predictions.post(f"{VERSION}/predict", **PREDICTING)
@predictions.doc(parameters=STREAM_PARAMETERS, responses=RESPONSE)
def predict_by_version(name: str, number: int) -> Response:
    """Predict rows with one version of a model."""
    return _predict(name, number)


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
        """Return the rows; if columns were sent, they are converted."""
        if self.rows is not None:
            return self.rows
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*self.columns.values(), strict=True)]

    def as_table(self, model: espalier.Model) -> espalier.Dataset | None:
        """Return the rows as a table for batch prediction; None if `answer_rows` must predict them one by one."""
        if self.options.explain != "none" or self.n_rows < MANY_ROWS:
            return None
        try:
            with_strategy(model, self.options.missing)
        except ValidationFailed:  # `answer_rows` refuses and logs the rows
            return None
        return table_of_columns(model, self.columns) if self.rows is None else table_of_rows(model, self.rows)

    def pointer(self, row: int, path: str) -> str:
        """Return the JSON pointer to `path` within a row."""
        if self.rows is not None:
            return f"/rows/{row}{path}"
        return f"/columns{path}/{row}" if path else "/columns"


def _read_request(body: object, *, limit: int) -> PredictionRequest:
    """Return the checked request, which has at most `limit` rows; the model checks the cells later."""
    if not isinstance(body, dict):
        raise ValidationFailed([Fault("", "wrong_type", 'must be {"rows": [{…}, …], "explain": "path"}')])
    faults: list[Fault] = []
    options = read_options(body, beside=TABLES, faults=faults)
    if ("rows" in body) == ("columns" in body):
        raise ValidationFailed([*faults, Fault("", "required", "give either rows or columns")])
    payload = PredictionRequest(body.get("rows") if "rows" in body else None, body.get("columns", {}), options)
    if "columns" in body:
        lists = payload.columns.values() if isinstance(payload.columns, dict) else ()
        lengths = {len(cells) if isinstance(cells, list) else -1 for cells in lists}
        if len(lengths) != 1 or lengths & {-1, 0}:
            message = "must be an object of attribute names and lists of values, all of one length of at least 1"
            faults.append(Fault("/columns", "wrong_type", message))
    elif not (isinstance(payload.rows, list) and payload.rows):
        message = "must be a list of at least one object of attribute names and values"
        faults.append(Fault("/rows", "wrong_type", message))
    ValidationFailed.raise_for(faults)
    check_size("rows", given=payload.n_rows, limit=limit)
    check_subject(options.subject)
    return payload


def _predict(name: str, number: int | None = None) -> Response:
    service, request = current_service(), current_request()
    if request.mimetype in READERS:
        resolved = service.versions.resolve(name, number, _alias(request, number, unknown=ma.EXCLUDE))
        return _stream_predictions(request, resolved, beside=("alias",) if number is None else ())
    recorder = service.recorder.begin(current_caller().key_id)
    if request.query_string:
        message = "belongs in the body of a JSON request, not in the query"
        misplaced = sorted((OPTION_NAMES | TABLES) & request.args.keys())
        ValidationFailed.raise_for(Fault(f"/{name}", "not_legal", message) for name in misplaced)
    alias = _alias(request, number)
    payload = _read_request(read_json(request, kinds=(JSON, *READERS)), limit=service.settings.max_predict_rows)
    resolved = service.versions.resolve(name, number, alias)
    head = {
        "model": resolved.version.model_name,
        "version": resolved.version.number,
        "operating_point": resolved.settings.operating_point,
        **service.audited,
    }
    table = payload.as_table(resolved.version.model)
    if table is not None:
        batch = answer_table(resolved, table, payload.options, recorder=recorder)
        content = b"".join((orjson.dumps(head)[:-1], b',"predictions":[', json_items(batch), b"]}"))
        return Response(content, content_type=JSON)
    answers = answer_rows(resolved, payload.as_rows(), payload.options, recorder=recorder, pointer=payload.pointer)
    content = orjson.dumps({**head, "predictions": answers}, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, content_type=JSON)


def _alias(request: Request, number: int | None, *, unknown: str | None = None) -> str | None:
    """Return the alias in the query; refuse other parameters, unless `unknown` is ``exclude``."""
    if not request.query_string:
        return None
    schema = VersionQuery if number is None else NO_QUERY
    query = Blueprint.ARGUMENTS_PARSER.parse(schema, request, location="query", unknown=unknown)
    alias: str | None = query.get("alias")
    return alias


def _stream_predictions(request: Request, resolved: ResolvedVersion, *, beside: Collection[str]) -> Response:
    """Stream the predictions for a file of rows; an error in the first batch becomes a problem document."""
    service, options, authenticate = current_service(), _stream_options(request, beside), reauthenticate()

    def current() -> ResolvedVersion:
        authenticate()
        return replace(resolved, settings=service.versions.current_settings(resolved))

    model = with_strategy(resolved.version.model, options.missing)
    lines = lines_of(request.mimetype, is_regression=not model.schema.classes, with_rule=options.explain != "none")
    recorder = service.recorder.begin(current_caller().key_id).waiting()
    stream = PredictionStream(current=current, options=options, recorder=recorder, lines=lines)
    parts = _predict_body(request, stream, model.schema)
    head = next(parts) + next(parts)
    headers = {"Espalier-Version": str(resolved.version.number)}
    if resolved.settings.operating_point is not None:
        headers["Espalier-Operating-Point"] = json.dumps(resolved.settings.operating_point)
    if service.settings.decisions == "off":
        headers["Espalier-Audited"] = "false"
    rest = _ended_by_failure(parts, stream, request.root_path + request.path, request_id())
    # Send blocks, since the server's time-out applies to each block that a slow client reads.
    blocks = (part[start : start + BLOCK] for part in chain((head,), rest) for start in range(0, len(part), BLOCK))
    return Response(blocks, content_type=lines.content_type, headers=headers)


def _stream_options(request: Request, beside: Collection[str]) -> PredictionOptions:
    faults: list[Fault] = []
    options = read_options(request.args.to_dict(), beside=beside, faults=faults)
    if request.mimetype == CSV and options.explain == "full":
        faults.append(Fault("/explain", "not_legal", "CSV has no columns for full explanations: send NDJSON"))
    # A query cannot express null, so the messages must not offer it.
    ValidationFailed.raise_for(replace(fault, message=fault.message.removesuffix(", null")) for fault in faults)
    check_subject(options.subject)
    return options


def _predict_body(request: Request, stream: PredictionStream, schema: espalier.Schema) -> Iterator[bytes]:
    limit = current_service().settings.max_upload_mb * 2**20
    body: Any = open_body(request, limit=limit)
    if not isinstance(body, LimitedStream):  # a decompressed body, which has no limit yet
        body = LimitedStream(body, limit + 1, is_max=True)
    with tempfile.SpooledTemporaryFile(MAX_BYTES_IN_MEMORY) as file:
        try:
            shutil.copyfileobj(body, file, BLOCK)
        except espalier.DataError:
            raise BadRequest("the body does not match its Content-Encoding: gzip") from None
        file.seek(0)
        yield from READERS[request.mimetype](stream, schema, file)


def _ended_by_failure(parts: Iterator[bytes], stream: PredictionStream, instance: str, name: str) -> Iterator[bytes]:
    """Yield the parts; an error becomes the last line, since the status has already been sent."""
    try:
        yield from parts
    except Exception as error:
        problem = problem_for(error)
        document = document_of(problem, instance=instance, request_id=name)
        if is_unexpected(problem):
            log.error("a stream failed", exc_info=error, extra={"request_id": name})
        yield stream.lines.failure(stream.n_rows, document)
