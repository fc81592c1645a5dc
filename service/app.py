"""The web application: the only place that wires settings, database, routes and errors together."""

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from flask import Flask, Request, Response, request
from flask.sessions import SecureCookieSession, SessionInterface
from werkzeug.routing import MapAdapter

from service.api.aliases import aliases
from service.api.auth import Rates, admit_only_callers, refuse_foreign_pages, scopes_of
from service.api.context import EXTENSION, Service, current_service
from service.api.datasets import data_sets
from service.api.decisions import asking, decisions, outcome_routes
from service.api.health import health
from service.api.inference import inference
from service.api.jobs import jobs
from service.api.keys import keys
from service.api.middleware import log_requests, surround, trace_requests
from service.api.models import curation, models
from service.api.openapi import ProblemApi, docs, openapi
from service.api.predictions import predictions
from service.api.problems import answer
from service.api.routing import CONVERTERS, NumberConverter
from service.database.engine import connect, sessions
from service.settings import Settings
from service.tracing import spanning

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
    outcome_routes,
    keys,
    health,
)


def create_app(settings: Settings) -> Flask:
    """Make the application; a process of its own after a fork calls `service.database.engine.forget_connections`."""
    app = (Measured if settings.metrics == "on" else Application)("service", static_folder=None)
    app.session_interface = NoSessions()
    app.config.update(
        API_VERSION=_version(), MAX_CONTENT_LENGTH=settings.max_body_mb * 1024 * 1024, PROPAGATE_EXCEPTIONS=False
    )
    app.extensions[EXTENSION] = Service(settings, sessions(connect(settings)), Rates(settings.max_requests))
    app.url_map.converters.update(CONVERTERS, int=NumberConverter)
    app.url_map.merge_slashes = False  # no redirect, which would be a page of HTML at the address that Host says
    api = ProblemApi(app)
    for resource in RESOURCES:
        api.register_blueprint(resource)
    app.register_blueprint(docs)
    app.add_url_rule("/openapi.json", view_func=openapi(api, keys_are_on=settings.auth == "keys"), endpoint="openapi")
    app.register_error_handler(Exception, answer)
    traces = spanning(settings)
    if settings.log_requests == "on":
        log_requests(app)
    if traces is not None:
        trace_requests(app, traces)
    refuse_foreign_pages(app, settings)
    admit_only_callers(app, scopes_of(RESOURCES))
    surround(app, settings)
    return app


class Application(Flask):
    """Flask without what it does for views that are coroutines: none is, and to ask each time costs time."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Give the function as it is."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Find the route of the path as it is: Werkzeug passes over slashes at its start, so ``//v1`` was ``/v1``."""
        adapter = super().create_url_adapter(request)
        if adapter is not None and adapter.path_info.startswith("//"):
            adapter.path_info = f"/.{adapter.path_info}"  # leads nowhere
        return adapter


class Measured(Application):
    """The same, counting requests and how long each took until its answer began."""

    def full_dispatch_request(self) -> Response:
        """Answer, and count: by the route, since paths and methods that callers make up have no end."""
        began = time.perf_counter()
        response = super().full_dispatch_request()
        rule = request.url_rule
        method, route = ("other", "none") if rule is None else (request.method, rule.rule)
        current_service().metrics.request(method, route, response.status_code, time.perf_counter() - began)
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


def _version() -> str:
    try:
        return version("espalier")
    except PackageNotFoundError:  # run from a checkout
        return "0"
