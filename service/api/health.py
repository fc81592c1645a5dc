"""Where to begin, whether the process lives, and whether it can answer."""

from flask import Response, current_app, redirect, request, url_for

from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service
from service.api.responses import JSON, json_answer
from service.database import migrate
from service.database.tables import Scope
from service.errors import NotFound, Unavailable
from service.metrics import CONTENT_TYPE
from service.schemas import problems as schemas

health = Blueprint("health", __name__, description="For those who watch over the process")


@health.get("/", scope=None)
@health.response(200, schemas.Start)
def start() -> Response:
    """Return the addresses to begin with; a browser is sent to the documentation."""
    if request.accept_mimetypes.best_match((JSON, "text/html"), default=JSON) == "text/html":
        return redirect(url_for("docs.page"))  # type: ignore[return-value] # werkzeug's Response, as Flask answers
    return json_answer(
        {
            "service": "Espalier",
            "version": current_app.config["API_VERSION"],
            "documentation": url_for("docs.page"),
            "openapi": url_for("openapi"),
            "data_sets": url_for("data sets.list_data_sets"),
            "models": url_for("models.list_models"),
            "health": url_for("health.is_healthy"),
        }
    )


@health.get("/health", scope=None)
@health.response(200, schemas.Status)
@health.refuses(503)
def is_healthy() -> Response:
    """Answer as `/readyz`, at the path that many programs try."""
    return is_ready()


@health.get("/livez", scope=None)
@health.response(200, schemas.Status)
def is_live() -> Response:
    """Say that the process runs."""
    return json_answer({"status": "live"})


@health.get("/readyz", scope=None)
@health.response(200, schemas.Status)
@health.refuses(503)
def is_ready() -> Response:
    """Say whether requests can be answered: the database is there, its tables are ours, nobody has asked to stop."""
    if current_service().is_stopping():
        raise Unavailable("this process was asked to stop: it finishes what it has begun, and takes nothing new")
    if not migrate.is_ready(current_service().sessions.engine):
        raise Unavailable("the database does not answer, or its tables are not of this version (espalier migrate)")
    return json_answer({"status": "ready"})


@health.get("/metrics", scope=Scope.READ)
@health.response(200, {"type": "string"}, content_type="text/plain")
@health.refuses(404)
def get_metrics() -> Response:
    """Give figures of all web processes and of the queue, in Prometheus' text form.

    They speak of all models: a key that is limited to some is refused. Where `ESPALIER_METRICS` is off there are none.
    """
    current_caller().check_unlimited()
    service = current_service()
    if service.settings.metrics == "off":
        raise NotFound("figures, since ESPALIER_METRICS is", "off")
    return Response(service.metrics.text(service.sessions), content_type=CONTENT_TYPE)
