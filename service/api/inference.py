"""The Open Inference Protocol, version 2, over HTTP: health, metadata, inference, and the index of models.

Its clients ask for metadata and readiness of a model before they ask it, so these need the scope `predict`, too.
"""

import time
from collections.abc import Mapping
from typing import Any

import orjson
from flask import Response, current_app, request
from werkzeug.exceptions import BadRequest

import espalier
from espalier import Fault
from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service
from service.api.requests import packed, read_whole, unpacked
from service.api.responses import JSON, json_answer
from service.api.routing import INFERENCE, INFERENCE_MODEL, INFERENCE_VERSION
from service.database.engine import read_session
from service.database.migrate import is_ready
from service.database.tables import Scope
from service.errors import Unavailable, ValidationFailed
from service.inference.request import (
    HEADER_LENGTH,
    InferenceBody,
    MalformedBodyError,
    describe_inputs,
    read_body,
    read_inference,
)
from service.inference.response import describe_outputs, inference_body
from service.repositories import models
from service.schemas import inference as schemas
from service.usecases.predictions import PredictionOptions, answer_rows, check_cells, check_explanations
from service.usecases.version_resolver import ResolvedVersion

inference = Blueprint("inference", __name__, description="The Open Inference Protocol, for its clients")

PLATFORM = "espalier"
BYTES = "application/octet-stream"
EXTENSIONS = ("binary_tensor_data", "parameters")
READY = {"state": "READY", "reason": ""}
ARCHIVED = {"state": "UNAVAILABLE", "reason": "archived"}
INFERRING: Mapping[str, Any] = {
    "requestBody": schemas.INFERENCE_REQUEST,
    "parameters": [
        {
            "in": "header",
            "name": HEADER_LENGTH,
            "required": False,
            "schema": {"type": "integer", "minimum": 0},
            "description": "length of the JSON, where the bytes of tensors follow it",
        }
    ],
    "responses": {200: schemas.INFERENCE_ANSWER},
}


@inference.get(INFERENCE, scope=None)
@inference.response(200, schemas.InferenceServer)
def get_inference_server() -> Response:
    """Say what serves here, and what it offers beyond the protocol."""
    return json_answer({"name": PLATFORM, "version": current_app.config["API_VERSION"], "extensions": EXTENSIONS})


@inference.get(f"{INFERENCE}/health/live", scope=None)
@inference.response(200, schemas.InferenceHealth)
def inference_is_live() -> Response:
    """Say that the process runs."""
    return json_answer({"live": True})


@inference.get(f"{INFERENCE}/health/ready", scope=None)
@inference.response(200, schemas.InferenceHealth)
@inference.refuses_inference(503)
def inference_is_ready() -> Response:
    """Say whether requests can be answered."""
    if current_service().is_stopping() or not is_ready(current_service().sessions.engine):
        raise Unavailable("the database does not answer, or its tables are not of this version (espalier migrate)")
    return json_answer({"live": True, "ready": True})


@inference.get(INFERENCE_MODEL, scope=Scope.PREDICT)
@inference.response(200, schemas.InferenceModel)
@inference.refuses_inference(404, 409)
def get_inference_model(name: str) -> Response:
    """Look at the tensors that a model takes and gives, by the version that would answer."""
    return _metadata(name, None)


@inference.get(INFERENCE_VERSION, scope=Scope.PREDICT)
@inference.response(200, schemas.InferenceModel)
@inference.refuses_inference(404, 409)
def get_inference_version(name: str, number: int) -> Response:
    """Look at the tensors that a version of a model takes and gives."""
    return _metadata(name, number)


@inference.get(f"{INFERENCE_MODEL}/ready", scope=Scope.PREDICT)
@inference.response(200, schemas.InferenceReadiness)
@inference.refuses_inference(404, 409)
def inference_model_is_ready(name: str) -> Response:
    """Say whether a model answers."""
    return json_answer({"name": _resolved(name, None).version.model_name, "ready": True})


@inference.get(f"{INFERENCE_VERSION}/ready", scope=Scope.PREDICT)
@inference.response(200, schemas.InferenceReadiness)
@inference.refuses_inference(404, 409)
def inference_version_is_ready(name: str, number: int) -> Response:
    """Say whether a version of a model answers."""
    return json_answer({"name": _resolved(name, number).version.model_name, "ready": True})


@inference.post(f"{INFERENCE_MODEL}/infer", scope=Scope.PREDICT)
@inference.doc(**INFERRING)
@inference.refuses_inference(400, 404, 409, 413, 415, 503)
def infer(name: str) -> Response:
    """Answer rows by the version that `production` points at, else the newest; every decision is in the log."""
    return _infer(name, None)


@inference.post(f"{INFERENCE_VERSION}/infer", scope=Scope.PREDICT)
@inference.doc(**INFERRING)
@inference.refuses_inference(400, 404, 409, 413, 415, 503)
def infer_by_version(name: str, number: int) -> Response:
    """Answer rows by one version of a model; every decision is in the log."""
    return _infer(name, number)


@inference.post(f"{INFERENCE}/repository/index", scope=Scope.READ)
@inference.doc(requestBody=schemas.INDEX_REQUEST)
@inference.response(
    200, {"type": "array", "items": schemas.InferenceEntry}, description="One entry a version, newest first"
)
@inference.refuses_inference(400, 413, 415)
def list_inference_models() -> Response:
    """List the versions of models that the key reaches, archived ones as not ready; with `ready` only the others."""
    ready_only = _read_body(optional=True).json.get("ready", False)
    if not isinstance(ready_only, bool):
        raise ValidationFailed(
            [Fault("/ready", "wrong_type", "must be true or false; archived versions are not ready")]
        )
    with read_session(current_service().sessions) as session:
        found = models.version_numbers(session, names=current_caller().models)
    entries = [
        {"name": name, "version": str(number), **(READY if answers_still else ARCHIVED)}
        for name, number, answers_still in found
        if answers_still or not ready_only
    ]
    return json_answer(entries)


def _metadata(name: str, number: int | None) -> Response:
    version = _resolved(name, number).version
    with read_session(current_service().sessions) as session:
        numbers = [str(one) for _, one, answers_still in models.version_numbers(session, names=[name]) if answers_still]
    schema = version.model.schema
    return json_answer(
        {
            "name": version.model_name,
            "versions": numbers[::-1] if number is None else [str(version.number)],
            "platform": PLATFORM,
            "inputs": describe_inputs(schema),
            "outputs": describe_outputs(schema),
        }
    )


def _infer(name: str, number: int | None) -> Response:
    began = time.perf_counter()
    service, body = current_service(), _read_body()
    resolved = service.versions.resolve(name, number)
    model, settings = resolved.version.model, service.settings
    wanted = read_inference(body, model.schema, limit=settings.max_predict_rows)
    names = [output.name for output in wanted.outputs]
    options = PredictionOptions("path" if "decision_path" in names else "none", subject=wanted.subject)
    check_cells(wanted.rows, limit=settings.max_cell_chars)
    check_explanations(model, len(wanted.rows), explain=options.explain, limit=settings.max_full_nodes)
    try:
        answers = answer_rows(
            resolved,
            wanted.rows,
            options,
            recorder=service.recorder,
            key_id=current_caller().key_id,
            began=began,
            pointer=wanted.pointer,
        )
    except espalier.RowError as error:
        raise ValidationFailed(error.faults) from None
    binary = {output.name for output in wanted.outputs if output.binary}
    content, behind = inference_body(_head(resolved, wanted.id), model.schema, answers, names=names, binary=binary)
    sent, encoding = packed(b"".join([content, *behind]), request.headers.get("Accept-Encoding"))
    response = Response(sent, content_type=BYTES if behind else JSON)
    if behind:
        response.headers[HEADER_LENGTH] = str(len(content))
    if encoding is not None:
        response.content_encoding = encoding
    response.vary.add("Accept-Encoding")
    return response


def _head(resolved: ResolvedVersion, request_id: str | None) -> dict[str, Any]:
    version = resolved.version
    head: dict[str, Any] = {"model_name": version.model_name, "model_version": str(version.number)}
    if request_id is not None:
        head["id"] = request_id
    parameters: dict[str, Any] = {**current_service().audited}
    if resolved.settings.operating_point is not None:
        parameters["operating_point"] = orjson.dumps(resolved.settings.operating_point).decode()
    return {**head, "parameters": parameters} if parameters else head


def _read_body(*, optional: bool = False) -> InferenceBody:
    """Read the body of the request, of any content type: real clients send none; `optional`: it may be empty.

    Raises:
        UnsupportedMediaType: A Content-Encoding that is not known.
        BadRequest: Not packed as its header says, not JSON, no object, or not as long as its header says.
        RequestEntityTooLarge: Longer than the limit, as it came or unpacked.
    """
    body = read_whole(request)
    limit = request.max_content_length or len(body)
    body = unpacked(body, request.headers.get("Content-Encoding", ""), limit=limit)
    if optional and not body:
        return InferenceBody({}, memoryview(b""))
    try:
        return read_body(body, request.headers.get(HEADER_LENGTH))
    except MalformedBodyError as error:
        raise BadRequest(str(error)) from None


def _resolved(name: str, number: int | None) -> ResolvedVersion:
    return current_service().versions.resolve(name, number)
