"""Create the web application: connect settings, database, routes and error handlers."""

from flask import Flask, Request
from werkzeug.routing import MapAdapter

import espalier
from service.api.auth import refuse_cross_origin, require_scopes, scopes_of
from service.api.context import EXTENSION, Service
from service.api.datasets import data_sets
from service.api.decisions import decisions, outcome_routes, what_if
from service.api.health import health
from service.api.inference import inference
from service.api.jobs import jobs
from service.api.keys import keys
from service.api.middleware import add_middleware, check_protocol, observe_requests
from service.api.models import aliases, models, settings as model_settings
from service.api.openapi import ProblemApi, docs, openapi
from service.api.predictions import predictions
from service.api.problems import problem_response
from service.api.routing import CONVERTERS, NumberConverter
from service.database.engine import connect, sessions
from service.settings import Settings
from service.web.pages import pages

RESOURCES = (
    data_sets,
    jobs,
    models,
    model_settings,
    aliases,
    predictions,
    inference,
    decisions,
    what_if,
    outcome_routes,
    keys,
    health,
)


def create_app(settings: Settings) -> Flask:
    """Return the application. After a fork, a child must first call `Service.sessions.engine.dispose(close=False)`."""
    app = Application("service", static_folder=None)
    app.jinja_options = {"trim_blocks": True, "lstrip_blocks": True}  # template statements leave no blank lines
    app.config.update(
        API_VERSION=espalier.__version__, MAX_CONTENT_LENGTH=settings.max_body_mb * 2**20, PROPAGATE_EXCEPTIONS=False
    )
    app.extensions[EXTENSION] = Service(settings, sessions(connect(settings)))
    app.url_map.converters.update(CONVERTERS, int=NumberConverter)
    app.url_map.merge_slashes = False  # else `//` is answered with a redirect to the host that the header Host names
    api = ProblemApi(app)
    for resource in RESOURCES:
        api.register_blueprint(resource)
    app.register_blueprint(docs)
    app.register_blueprint(pages)
    app.add_url_rule("/openapi.json", view_func=openapi(api, keys_are_on=settings.auth == "keys"), endpoint="openapi")
    app.register_error_handler(Exception, problem_response)
    observe_requests(app, settings)
    check_protocol(app)
    refuse_cross_origin(app, settings)
    require_scopes(app, scopes_of(RESOURCES) | dict.fromkeys(pages.scopes, ()))  # pages identify callers by sessions
    add_middleware(app, settings)
    return app


class Application(Flask):
    """A Flask application that matches paths exactly and ignores the header Upgrade."""

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Return the URL adapter, which matches ``//v1`` to no route; Werkzeug's adapter would read it as ``/v1``."""
        if request is not None:  # RFC 9110, 7.8: Upgrade may be ignored; Werkzeug has no route for a WebSocket request
            request.environ.pop("HTTP_UPGRADE", None)
        adapter = super().create_url_adapter(request)
        if adapter is not None and adapter.path_info.startswith("//"):
            adapter.path_info = f"/.{adapter.path_info}"  # matches no route
        return adapter
