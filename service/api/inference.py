"""The Open Inference Protocol, version 2: health, metadata, inference, and the index of models.

Clients request a model's metadata and readiness before inference, so these routes need the scope `predict`, not `read`.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from flask import Response, current_app, request
from werkzeug.exceptions import BadRequest

from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service
from service.api.health import check_ready
from service.api.request_bodies import read_bytes
from service.api.responses import compressed, json_response
from service.api.routing import INFERENCE, INFERENCE_MODEL, INFERENCE_VERSION
from service.database.engine import read_session
from service.database.tables import Scope
from service.errors import ValidationFailed
from service.inference.request import HEADER_LENGTH, MalformedBodyError, describe_inputs, read_body, read_inference
from service.inference.response import PATH, describe_outputs, inference_body
from service.repositories import models
from service.schemas import inference as schemas
from service.schemas.fields import parameter
from service.serialization.media_types import BYTES, JSON
from service.usecases.predictions import PredictionOptions, answer_rows
from service.usecases.version_resolver import ResolvedVersion

inference = Blueprint("inference", __name__, description="The Open Inference Protocol")

PLATFORM = "espalier"
EXTENSIONS = ("binary_tensor_data", "parameters")
STATES = {True: {"state": "READY", "reason": ""}, False: {"state": "UNAVAILABLE", "reason": "archived"}}
INFERRING: Mapping[str, Any] = {
    "parameters": [parameter("header", HEADER_LENGTH, {"type": "integer", "minimum": 0}, schemas.LENGTH_MEANING)],
    "responses": {200: schemas.INFERENCE_ANSWER},
}


@inference.get(INFERENCE, scope=None)
@inference.response(200, schemas.InferenceServer)
def get_inference_server() -> Response:
    """Return the name, the version and the protocol extensions of the server."""
    return json_response({"name": PLATFORM, "version": current_app.config["API_VERSION"], "extensions": EXTENSIONS})


@inference.get(f"{INFERENCE}/health/live", scope=None)
@inference.response(200, schemas.InferenceHealth)
def inference_is_live() -> Response:
    """Return 200 while the process is running."""
    return json_response({"live": True})


@inference.get(f"{INFERENCE}/health/ready", scope=None, refuses=(503,))
@inference.response(200, schemas.InferenceHealth)
def inference_is_ready() -> Response:
    """Return 200 if requests can be answered."""
    check_ready()
    return json_response({"live": True, "ready": True})


@inference.get(INFERENCE_MODEL, scope=Scope.PREDICT, refuses=(409,))
@inference.response(200, schemas.InferenceModel)
def get_inference_model(name: str) -> Response:
    """Return the ready versions of a model, and the input and output tensors of its default version."""
    return _metadata(name, None)


@inference.get(INFERENCE_VERSION, scope=Scope.PREDICT, refuses=(409,))
@inference.response(200, schemas.InferenceModel)
def get_inference_version(name: str, number: int) -> Response:
    """Return the input and output tensors of a version."""
    return _metadata(name, number)


@inference.get(f"{INFERENCE_MODEL}/ready", scope=Scope.PREDICT, refuses=(409,))
@inference.response(200, schemas.InferenceReadiness)
def inference_model_is_ready(name: str) -> Response:
    """Return 200 if a model can predict."""
    return json_response({"name": current_service().versions.resolve(name, None).version.model_name, "ready": True})


@inference.get(f"{INFERENCE_VERSION}/ready", scope=Scope.PREDICT, refuses=(409,))
@inference.response(200, schemas.InferenceReadiness)
def inference_version_is_ready(name: str, number: int) -> Response:
    """Return 200 if a version can predict."""
    return json_response({"name": current_service().versions.resolve(name, number).version.model_name, "ready": True})


@inference.post(f"{INFERENCE_MODEL}/infer", scope=Scope.PREDICT, body=schemas.INFERENCE_REQUEST, refuses=(409, 503))
@inference.doc(**INFERRING)
def infer(name: str) -> Response:
    """Predict rows with the version behind the alias `production`, else the newest that is not archived."""
    return _infer(name, None)


@inference.post(f"{INFERENCE_VERSION}/infer", scope=Scope.PREDICT, body=schemas.INFERENCE_REQUEST, refuses=(409, 503))
@inference.doc(**INFERRING)
def infer_by_version(name: str, number: int) -> Response:
    """Predict rows with one version of a model."""
    return _infer(name, number)


@inference.post(f"{INFERENCE}/repository/index", scope=Scope.READ, body=schemas.INDEX_REQUEST)
@inference.response(
    200, {"type": "array", "items": schemas.InferenceEntry}, description="One entry per version, newest first"
)
def list_inference_models() -> Response:
    """List the versions of models that the key may use; an archived version is UNAVAILABLE.

    If `ready` is true, archived versions are left out. Only the newest 100 000 versions are listed.
    """
    ready_only = _read_body(optional=True)[0].get("ready", False)
    if not isinstance(ready_only, bool):
        raise ValidationFailed.of("/ready", "wrong_type", "must be true or false; archived versions are not ready")
    with read_session(current_service().sessions) as session:
        versions = models.version_numbers(session, names=current_caller().models)
    entries = [
        {"name": name, "version": str(number), **STATES[is_ready]}
        for name, number, is_ready in versions
        if is_ready or not ready_only
    ]
    return json_response(entries)


def _metadata(name: str, number: int | None) -> Response:
    version = current_service().versions.resolve(name, number).version
    with read_session(current_service().sessions) as session:
        numbers = [str(one) for _, one, is_ready in models.version_numbers(session, names=[name]) if is_ready]
    schema = version.model.schema
    return json_response(
        {
            "name": version.model_name,
            "versions": numbers[::-1] if number is None else [str(version.number)],
            "platform": PLATFORM,
            "inputs": describe_inputs(schema),
            "outputs": describe_outputs(schema),
        }
    )


def _infer(name: str, number: int | None) -> Response:
    service = current_service()
    recorder, body = service.recorder.begin(current_caller().key_id), _read_body()
    resolved = service.versions.resolve(name, number)
    schema = resolved.version.model.schema
    inputs = read_inference(*body, schema, limit=service.settings.max_predict_rows)
    options = PredictionOptions("path" if PATH in inputs.outputs else "none", subject=inputs.subject)
    answers = answer_rows(resolved, inputs.rows, options, recorder=recorder, pointer=inputs.pointer)
    content, behind = inference_body(_head(resolved, inputs.id), schema, answers, inputs.outputs)
    response = Response(b"".join([content, *behind]), content_type=BYTES if behind else JSON)
    if behind:
        response.headers[HEADER_LENGTH] = str(len(content))
    return compressed(response)


def _head(resolved: ResolvedVersion, request_id: str | None) -> dict[str, Any]:
    version, parameters = resolved.version, dict[str, Any](current_service().audited)
    if resolved.settings.operating_point is not None:
        parameters["operating_point"] = orjson.dumps(resolved.settings.operating_point).decode()
    head = {"model_name": version.model_name, "model_version": str(version.number), "id": request_id}
    return {name: value for name, value in {**head, "parameters": parameters or None}.items() if value is not None}


def _read_body(*, optional: bool = False) -> tuple[dict[str, Any], memoryview]:
    """Return the JSON object of a body and the bytes after it; if `optional`, the body may be empty.

    Any Content-Type is accepted, since some clients send none.
    """
    body = read_bytes(request, kinds=None)
    if optional and not body:
        return {}, memoryview(b"")
    try:
        return read_body(body, request.headers.get(HEADER_LENGTH))
    except MalformedBodyError as error:
        raise BadRequest(str(error)) from None
