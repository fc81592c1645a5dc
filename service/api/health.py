"""The start page, liveness, readiness and metrics."""

from contextlib import suppress

from flask import Response, current_app, redirect, request, url_for
from sqlalchemy.exc import SQLAlchemyError

from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service
from service.api.responses import json_response
from service.database.engine import read_session
from service.database.migrate import schema_mismatch
from service.database.tables import Scope
from service.errors import NotFound, Unavailable
from service.metrics import CONTENT_TYPE, JobFigures
from service.repositories.job_queue import job_figures
from service.schemas import problems as schemas
from service.serialization.media_types import HTML, JSON, TEXT

health = Blueprint("health", __name__, description="Liveness, readiness and metrics of the service")


@health.get("/", scope=None)
@health.response(200, schemas.Start)
def start() -> Response:
    """Return the most important paths; redirect browsers to the start page."""
    if request.accept_mimetypes.best_match((JSON, HTML), default=JSON) == HTML:
        return redirect(url_for("pages.home"))  # type: ignore[return-value] # Flask also sends werkzeug's Response
    return json_response(
        {
            "service": "Espalier",
            "version": current_app.config["API_VERSION"],
            "pages": url_for("pages.home"),
            "documentation": url_for("docs.page"),
            "openapi": url_for("openapi"),
            "data_sets": url_for("data sets.list_data_sets"),
            "models": url_for("models.list_models"),
            "health": url_for("health.is_healthy"),
        }
    )


@health.get("/health", scope=None, refuses=(503,))
@health.response(200, schemas.Status)
def is_healthy() -> Response:
    """Return the same as `/readyz`, at a path that many programs try."""
    check_ready()
    return json_response({"status": "ready"})


@health.get("/livez", scope=None)
@health.response(200, schemas.Status)
def is_live() -> Response:
    """Return 200 while the process is running."""
    return json_response({"status": "live"})


@health.get("/readyz", scope=None, refuses=(503,))
@health.response(200, schemas.Status)
def is_ready() -> Response:
    """Return 200 if requests can be answered, else 503.

    Requests can be answered if the database is reachable and migrated, and the process is not stopping.
    """
    check_ready()
    return json_response({"status": "ready"})


@health.get("/metrics", scope=Scope.READ, query=None, refuses=(404,))
@health.response(200, {"type": "string"}, content_type=TEXT)
def get_metrics() -> Response:
    """Return metrics of all web processes and of the job queue in Prometheus' text format.

    A key that is limited to some models is refused. The response is 404 if `ESPALIER_METRICS` is off.
    """
    current_caller().check_unlimited("this request is about all models")
    service = current_service()
    if service.settings.metrics == "off":
        raise NotFound("path", "/metrics", why="ESPALIER_METRICS is off")
    queue: JobFigures | None = None
    with suppress(Unavailable), read_session(service.sessions) as session:
        queue = job_figures(session)
    return Response(service.metrics.text(queue), content_type=CONTENT_TYPE)


def check_ready() -> None:
    """Raise `Unavailable` if the process is stopping, or the database cannot be used."""
    if current_service().is_stopping():
        raise Unavailable("this process is stopping: it finishes running requests and accepts no new ones")
    with suppress(SQLAlchemyError):
        if schema_mismatch(current_service().sessions.engine) is None:
            return
    raise Unavailable("the database cannot be reached, or its tables are not of this version (run espalier migrate)")
