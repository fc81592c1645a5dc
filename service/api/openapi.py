"""The OpenAPI document, built at the first request, and a page that shows it without files from other hosts.

This module has the description of the API, the errors that every route may return, the links between routes (`LINKS`)
and the security scheme. The fields of requests and responses are in `service.schemas`. The decorators of a view declare
the statuses and headers of its route.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import flask_smorest
import orjson
from flask import Blueprint, Flask, Response, request, send_from_directory

from service.api.blueprint import SECURITY
from service.api.problems import problem_response
from service.api.routing import CONVERTERS, is_inference
from service.schemas.problems import Problem
from service.serialization.media_types import JSON, PROBLEM

DESCRIPTION = """Decision trees you can read: upload a data set, train a model on it, prune it, predict with it. Each
prediction comes with its path through the tree, and can be looked up and explained later.

If keys are on, send yours as `Authorization: Bearer esp_<id>_<secret>`; each route names the scope that it needs, and
`admin` includes all scopes. A key may be limited to some models. Such a key can still read all data sets with the scope
`read`, but it cannot change or delete any. Comparisons are jobs without a model: such a key can use only its own.

Errors are problem documents (RFC 9457), below /v2 with the additional member `error`. If a JSON object repeats a name,
the last value counts. A whole number beyond 2^53 in a nominal attribute must be sent as text."""

KEYS = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "esp_<id>_<secret>",
    "description": "An API key of this service",
}
INFERENCE_ERROR = {
    "description": "An error of the Open Inference Protocol",
    "content": {JSON: {"schema": {"$ref": "#/components/schemas/InferenceError"}}},
}
REFUSALS = ("401", "403", "429")  # of every route that needs a scope


class ProblemApi(flask_smorest.Api):  # type: ignore[misc] # the parent is untyped
    """flask-smorest with problem documents as errors."""

    ERROR_SCHEMA = Problem

    def __init__(self, app: Flask) -> None:
        about = {"title": "Espalier", "openapi_version": "3.1.0"}
        super().__init__(app, spec_kwargs={**about, "info": {"description": DESCRIPTION}})
        for name, converter in CONVERTERS.items():
            meaning = f"name of the {name}" if name in ("model", "alias") else "id"
            described = {"type": "string", "pattern": f"^{converter.regex}$", "description": meaning}
            self.register_converter(converter, lambda _, described=described: described)

    handle_http_exception = staticmethod(problem_response)


def openapi(api: ProblemApi, *, keys_are_on: bool) -> Callable[[], Response]:
    """Return the view of the OpenAPI document of `api`."""

    @lru_cache(maxsize=8)
    def content(root: str) -> bytes:
        document = _complete(api.spec.to_dict(), keys_are_on=keys_are_on)
        placed = document | {"servers": [{"url": root}]} if root else document
        return orjson.dumps(placed, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)

    return lambda: Response(content(request.root_path), content_type=JSON)


def _complete(document: dict[str, Any], *, keys_are_on: bool) -> dict[str, Any]:
    """Add the errors of every route and the links, sort the statuses, and adapt the security to the settings."""
    for error in document["components"]["responses"].values():
        [content] = error["content"].values()
        error["content"] = {PROBLEM: content}
    document["components"]["responses"]["INFERENCE_ERROR"] = INFERENCE_ERROR
    for path, operations in document["paths"].items():
        failure = {"$ref": f"#/components/responses/{'INFERENCE' if is_inference(path) else 'DEFAULT'}_ERROR"}
        for operation in operations.values():
            if isinstance(operation, dict):
                statuses = operation["responses"]
                statuses["default"] = failure
                if not keys_are_on:
                    del operation["security"]
                refusals = REFUSALS if operation.get("security") else () if keys_are_on else ("403",)
                for status in ("500", *refusals):
                    statuses.setdefault(status, failure)
                operation["responses"] = dict(sorted(statuses.items()))
    for (method, path, status), bases in LINKS.items():
        document["paths"][path][method]["responses"][status]["links"] = {
            name: link for base, given in bases.items() for name, link in _links(document["paths"], base, given)
        }
    document["components"]["schemas"].pop("PaginationMetadata", None)
    if keys_are_on:
        document["components"]["securitySchemes"] = {SECURITY: KEYS}
    return document


MODEL = "/v1/models/{name}"
VERSION = f"{MODEL}/versions/{{number}}"
MODEL_ALIAS = f"{MODEL}/aliases/{{alias}}"
NAME = {"name": "$request.path.name"}
OF_VERSION = {**NAME, "number": "$response.body#/version"}
OF_DECISION = {"/v1/decisions/{decision_id}": {"decision_id": "$response.body#/predictions/0/decision_id"}}
JOBS = ("training", "pruning", "evaluation", "prediction")
LINKS: Mapping[tuple[str, str, str], Mapping[str, Mapping[str, str]]] = {
    ("post", "/v1/datasets", "201"): {"/v1/datasets/{data_set_id}": {"data_set_id": "$response.body#/id"}},
    **{("post", f"/v1/{kind}-jobs", "202"): {"/v1/jobs/{job_id}": {"job_id": "$response.body#/id"}} for kind in JOBS},
    ("post", f"{MODEL}/versions", "201"): {MODEL: NAME, VERSION: OF_VERSION, "/v2/models/{name}": NAME},
    ("put", MODEL_ALIAS, "200"): {MODEL_ALIAS: {**NAME, "alias": "$request.path.alias"}, VERSION: OF_VERSION},
    ("post", f"{MODEL}/predict", "200"): {**OF_DECISION, VERSION: OF_VERSION},
    ("post", f"{VERSION}/predict", "200"): OF_DECISION,
    ("post", "/v1/keys", "201"): {"/v1/keys/{key_id}": {"key_id": "$response.body#/id"}},
}
"""Maps a response (method, path, status) to base paths, each with the parameters of its links. The response has a link
to each route whose path is a base path or continues one without further parameters, but no link to `UNLINKED`."""
UNLINKED = f"{MODEL}/consultations"


def _links(paths: Mapping[str, Any], base: str, parameters: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in paths:
        if path.startswith(base) and "{" not in path.removeprefix(base) and path != UNLINKED:
            words = [word for word in path.split("/")[2:] if not word.startswith("{")]
            place = path.replace("~", "~0").replace("/", "~1")
            # Keep the order of the document: the order of a set would differ between processes.
            for method in filter("parameters".__ne__, paths[path]):
                link = {"operationRef": f"#/paths/{place}/{method}", "parameters": dict(parameters)}
                yield "-".join([method, *words]), link


STATIC = Path(__file__).resolve().parent.parent / "web" / "static"
# The page loads scripts and styles only from our own files. Swagger UI sets styles by script, which this policy allows;
# the icons in its style sheet are data URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

docs = Blueprint("docs", __name__, static_folder=str(STATIC), static_url_path="/static")


@docs.get("/docs")
def page() -> Response:
    """Return the page that shows the API and sends requests to it."""
    response = send_from_directory(STATIC, "docs.html")
    response.headers["Content-Security-Policy"] = POLICY
    return response
