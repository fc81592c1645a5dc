"""The web application: the only place that wires settings, database, routes and errors together."""

import logging
import time
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import flask_smorest
import orjson
from flask import Flask, Response, request
from flask.sessions import SecureCookieSession, SessionInterface

from service import db, schemas
from service.api.access import admit_only_callers, refuse_foreign_pages, scopes_of
from service.api.aliases import aliases
from service.api.answers import JSON
from service.api.asking import asking
from service.api.context import BEGAN, EXTENSION, Service, here
from service.api.contract import SECURITY
from service.api.curation import curation
from service.api.datasets import data_sets
from service.api.decisions import decisions
from service.api.docs import docs
from service.api.front import Front
from service.api.health import health
from service.api.inference_v2 import inference
from service.api.jobs import jobs
from service.api.keys import keys
from service.api.links import add_links
from service.api.models import models
from service.api.names import CONVERTERS, NumberConverter
from service.api.outcomes import outcomes
from service.api.predictions import predictions
from service.api.problems import CONTENT_TYPE, answer, is_inference
from service.api.request_lines import write_lines
from service.api.request_traces import trace_requests
from service.api.surroundings import surround
from service.settings import Settings
from service.traces import spanning

__all__ = ["create_app"]

log = logging.getLogger("service")

RESOURCES = (
    data_sets,
    jobs,
    models,
    curation,
    aliases,
    predictions,
    inference,
    decisions,
    asking,
    outcomes,
    keys,
    health,
)
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


def create_app(settings: Settings) -> Flask:
    """Make the application; a process of its own after a fork calls `db.forget_connections`."""
    app = (Measured if settings.metrics == "on" else Application)("service", static_folder=None)
    app.session_interface = NoSessions()
    app.config.update(
        MAX_CONTENT_LENGTH=settings.max_body_mb * 1024 * 1024,
        PROPAGATE_EXCEPTIONS=False,
        API_TITLE="Espalier",
        API_VERSION=_version(),
        OPENAPI_VERSION="3.1.0",
        API_SPEC_OPTIONS={"info": {"description": DESCRIPTION}},
    )
    app.extensions[EXTENSION] = Service(settings, db.sessions(db.connect(settings)))
    app.url_map.converters.update(CONVERTERS, int=NumberConverter)
    api = ProblemApi(app)
    for name, converter in CONVERTERS.items():
        api.register_converter(converter, _described(converter.regex, name))
    for resource in RESOURCES:
        api.register_blueprint(resource)
    app.register_blueprint(docs)
    app.add_url_rule(
        "/openapi.json",
        view_func=_openapi(_complete(api.spec.to_dict(), keys_are_on=settings.auth == "keys")),
        endpoint="openapi",
    )
    app.register_error_handler(Exception, answer)
    traces = spanning(settings)
    if settings.log_requests == "on":
        write_lines(app)
    if traces is not None:
        trace_requests(app, traces)
    if settings.log_requests == "off" and traces is None:  # else each request has something written of it, by hooks
        front = Front(app.wsgi_app, lambda: app.extensions[EXTENSION], settings)
        app.extensions[EXTENSION].has_front = True
        app.wsgi_app = front  # type: ignore[method-assign] # Flask's way
    refuse_foreign_pages(app, settings)
    admit_only_callers(app, scopes_of(RESOURCES))
    surround(app, settings)
    return app


class Application(Flask):
    """Flask without what it does for views that are coroutines: none is, and to ask each time costs time."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Give the function as it is."""
        return func


class Measured(Application):
    """The same, counting requests and how long each took until its answer began."""

    def full_dispatch_request(self) -> Response:
        """Answer, and count: by the route, since paths and methods that callers make up have no end."""
        began = request.environ.get(BEGAN) or time.perf_counter()
        response = super().full_dispatch_request()
        rule = request.url_rule
        method, route = ("other", "none") if rule is None else (request.method, rule.rule)
        here().metrics.request(method, route, response.status_code, time.perf_counter() - began)
        return response


class NoSessions(SessionInterface):
    """No cookies: opening a session at each request costs time and gives nothing here."""

    nothing = SecureCookieSession()

    def open_session(self, app: Flask, request: Any) -> SecureCookieSession:
        """Give the same empty session to everyone; nobody writes to it."""
        return self.nothing

    def is_null_session(self, obj: object) -> bool:
        """Say that there is nothing to save."""
        return True


class ProblemApi(flask_smorest.Api):  # type: ignore[misc] # the parent is untyped
    """flask-smorest with our problem documents, in what it answers and in what it writes down."""

    ERROR_SCHEMA = schemas.Problem

    def _register_error_handlers(self) -> None:
        """Leave errors to the application's one handler."""

    def _register_responses(self) -> None:
        """Write all errors down as problem documents; the parent takes the type of plain answers for them."""
        self.DEFAULT_RESPONSE_CONTENT_TYPE = CONTENT_TYPE
        try:
            super()._register_responses()
        finally:
            del self.DEFAULT_RESPONSE_CONTENT_TYPE  # the class's own shows again


def _described(pattern: str, name: str) -> Callable[[object], dict[str, str]]:
    return lambda _: {"type": "string", "pattern": f"^{pattern}$", "description": f"{name} name or id"}


def _openapi(document: dict[str, Any]) -> Callable[[], Response]:
    @lru_cache(maxsize=8)
    def content(root: str) -> bytes:
        placed = document | {"servers": [{"url": root}]} if root else document
        return orjson.dumps(placed, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)

    def openapi() -> Response:
        return Response(content(request.root_path), content_type="application/json")

    return openapi


def _complete(document: dict[str, Any], *, keys_are_on: bool) -> dict[str, Any]:
    """Say what every route may answer, put the statuses in order, and drop what does not hold of this service."""
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
    add_links(document)
    document["components"]["schemas"].pop("PaginationMetadata", None)
    if keys_are_on:
        document["components"]["securitySchemes"] = {SECURITY: KEYS}
    return document


def _version() -> str:
    try:
        return version("espalier")
    except PackageNotFoundError:  # run from a checkout
        return "0"
