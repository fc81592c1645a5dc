"""The OpenAPI document, written when it is first asked for, and the page that shows it without another host."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import flask_smorest
import orjson
from flask import Blueprint, Flask, Response, request, send_from_directory
from werkzeug.exceptions import HTTPException

from service.api.blueprint import SECURITY
from service.api.problems import CONTENT_TYPE, answer, is_inference
from service.api.responses import JSON
from service.api.routing import CONVERTERS
from service.schemas.problems import Problem

DESCRIPTION = """Decision trees you can read: upload a data set, train a model on it, prune it, ask it. Each answer
comes with the path that led to it, and can be looked up and explained again later.

Where keys are on, send yours as `Authorization: Bearer esp_<id>_<secret>`; each route names the scope that it needs,
and `admin` stands for all of them. A key may be limited to some models. The limit does not cover data sets: with the
scope `read` such a key sees all of them, but it may not change or delete any. Of the jobs for no model, comparisons, it
reaches only those that it asked for.

Errors are problem documents (RFC 9457), below /v2 with the member `error` besides. Of duplicate keys in a JSON object
the last one counts. A whole number beyond 2^53 in a nominal attribute must be sent as text."""

KEYS = {"type": "http", "scheme": "bearer", "bearerFormat": "esp_<id>_<secret>", "description": "A key of this service"}
INFERENCE_ERROR = {
    "description": "Error of the Open Inference Protocol",
    "content": {JSON: {"schema": {"$ref": "#/components/schemas/InferenceError"}}},
}
REFUSALS = ("401", "403", "429")  # what every route may answer that needs a scope


class ProblemApi(flask_smorest.Api):  # type: ignore[misc] # the parent is untyped
    """flask-smorest with our problem documents as errors."""

    ERROR_SCHEMA = Problem

    def __init__(self, app: Flask) -> None:
        about = {"title": "Espalier", "openapi_version": "3.1.0"}
        super().__init__(app, spec_kwargs={**about, "info": {"description": DESCRIPTION}})
        for name, converter in CONVERTERS.items():
            self.register_converter(converter, _described(converter.regex, name))

    def handle_http_exception(self, error: HTTPException) -> Response:
        """Answer as for every other error."""
        return answer(error)


def openapi(api: ProblemApi, *, keys_are_on: bool) -> Callable[[], Response]:
    """Give the view that answers with the description of `api`."""

    @lru_cache(maxsize=8)
    def content(root: str) -> bytes:
        document = _complete(api.spec.to_dict(), keys_are_on=keys_are_on)
        placed = document | {"servers": [{"url": root}]} if root else document
        return orjson.dumps(placed, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)

    def view() -> Response:
        return Response(content(request.root_path), content_type=JSON)

    return view


def _described(pattern: str, name: str) -> Callable[[object], dict[str, str]]:
    return lambda _: {"type": "string", "pattern": f"^{pattern}$", "description": f"{name} name or id"}


def _complete(document: dict[str, Any], *, keys_are_on: bool) -> dict[str, Any]:
    """Say what every route may answer, put the statuses in order, and drop what does not hold of this service."""
    for error in document["components"]["responses"].values():
        [content] = error["content"].values()
        error["content"] = {CONTENT_TYPE: content}
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
    _add_links(document)
    document["components"]["schemas"].pop("PaginationMetadata", None)
    if keys_are_on:
        document["components"]["securitySchemes"] = {SECURITY: KEYS}
    return document


# --- links: by them a client of the document finds the routes of what it has made

DATA_SET = "/v1/datasets/{data_set_id}"
JOB = "/v1/jobs/{job_id}"
MODEL = "/v1/models/{name}"
VERSION = f"{MODEL}/versions/{{number}}"
MODEL_ALIAS = f"{MODEL}/aliases/{{alias}}"
DECISION = "/v1/decisions/{decision_id}"
INFERENCE = "/v2/models/{name}"
JOBS = ("training", "pruning", "evaluation", "prediction")


@dataclass(frozen=True, slots=True)
class Leads:
    """Routes that an answer leads to.

    Attributes:
        path: Where they are.
        below: What is added to the path, and with which method it is asked.
        given: For each value of the path, the expression that finds it.
    """

    path: str
    below: Mapping[str, str]
    given: Mapping[str, str]


OF_DATA_SET = {"": "get patch delete", "/rows": "get", "/profile": "get"}
OF_JOB = {"": "get", "/events": "get", "/result": "get", "/cancel": "post", "/retry": "post"}
OF_MODEL = {"": "get patch delete", "/versions": "get post", "/aliases": "get", "/predict": "post"}
OF_VERSION = {
    "": "get delete",
    **{f"/{part}": "get" for part in ("tree", "rules", "importances", "document", "schema", "pruning", "accuracy")},
    "/archive": "post",
    "/predict": "post",
}
OF_ALIAS = {"": "put", "/history": "get", "/rollback": "post"}
OF_DECISION = {"": "get", "/explanation": "get", "/counterfactuals": "post", "/outcome": "post"}

MADE_BY_ID = "$response.body#/id"
PATH_NAME = {"name": "$request.path.name"}
LINKS: Mapping[tuple[str, str, str], tuple[Leads, ...]] = {
    ("post", "/v1/datasets", "201"): (Leads(DATA_SET, OF_DATA_SET, {"data_set_id": MADE_BY_ID}),),
    **{("post", f"/v1/{kind}-jobs", "202"): (Leads(JOB, OF_JOB, {"job_id": MADE_BY_ID}),) for kind in JOBS},
    ("post", f"{MODEL}/versions", "201"): (
        Leads(MODEL, OF_MODEL, PATH_NAME),
        Leads(VERSION, OF_VERSION, {**PATH_NAME, "number": "$response.body#/version"}),
        Leads(INFERENCE, {"": "get", "/ready": "get", "/infer": "post"}, PATH_NAME),
    ),
    ("put", MODEL_ALIAS, "200"): (
        Leads(MODEL_ALIAS, OF_ALIAS, {**PATH_NAME, "alias": "$request.path.alias"}),
        Leads(VERSION, OF_VERSION, {**PATH_NAME, "number": "$response.body#/version"}),
    ),
    ("post", f"{MODEL}/predict", "200"): (
        Leads(DECISION, OF_DECISION, {"decision_id": "$response.body#/predictions/0/decision_id"}),
        Leads(VERSION, OF_VERSION, {**PATH_NAME, "number": "$response.body#/version"}),
    ),
    ("post", f"{VERSION}/predict", "200"): (
        Leads(DECISION, OF_DECISION, {"decision_id": "$response.body#/predictions/0/decision_id"}),
    ),
    ("post", "/v1/keys", "201"): (Leads("/v1/keys/{key_id}", {"": "delete"}, {"key_id": MADE_BY_ID}),),
}
"""Method, path and status of an answer -> where it leads."""


def _add_links(document: dict[str, Any]) -> None:
    """Write the links into an OpenAPI document."""
    for (method, path, status), leads in LINKS.items():
        document["paths"][path][method]["responses"][status]["links"] = {
            name: link for one in leads for name, link in _links(one)
        }


def _links(leads: Leads) -> Iterator[tuple[str, dict[str, Any]]]:
    for below, methods in leads.below.items():
        path = f"{leads.path}{below}"
        place = path.replace("~", "~0").replace("/", "~1")
        for method in methods.split():
            words = [word for word in path.split("/")[2:] if not word.startswith("{")]
            yield (
                "-".join([method, *words]),
                {"operationRef": f"#/paths/{place}/{method}", "parameters": dict(leads.given)},
            )


# --- the page

STATIC = Path(__file__).resolve().parent.parent / "web" / "static"
PAGE = "docs.html"
# Scripts and styles only from our own files; Swagger UI sets styles by script, which needs no exception, and draws its
# icons from data URLs in its style sheet.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

docs = Blueprint("docs", __name__, static_folder=str(STATIC), static_url_path="/static")


@docs.get("/docs")
def page() -> Response:
    """Show the API as a page to read and to try."""
    response = send_from_directory(STATIC, PAGE)
    response.headers["Content-Security-Policy"] = POLICY
    return response
