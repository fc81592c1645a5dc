"""Whether the process lives, and whether it can answer."""

from flask import Response

from service import db, schemas
from service.api.answers import json_answer
from service.api.context import here
from service.api.contract import Resource, answers, refuses
from service.errors import Unavailable

__all__ = ["health"]

health = Resource("health", __name__, description="For those who watch over the process")


@health.get("/livez", scope=None)
@answers(200, schemas.Status)
def live() -> Response:
    """Say that the process runs."""
    return json_answer({"status": "live"})


@health.get("/readyz", scope=None)
@answers(200, schemas.Status)
@refuses(503)
def ready() -> Response:
    """Say whether requests can be answered: the database is there and has this version's tables."""
    if here().is_stopping() or not db.is_ready(here().sessions.engine):
        raise Unavailable("the database does not answer, or its tables are not of this version (espalier migrate)")
    return json_answer({"status": "ready"})
