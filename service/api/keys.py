"""API keys over HTTP: make, list, revoke."""

from typing import Any

from flask import Response

from service.api.blueprint import Blueprint
from service.api.context import current_service
from service.api.idempotency import creating, remember
from service.api.responses import json_answer, page_answer
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.errors import Conflict
from service.repositories import keys as ring
from service.schemas import keys as schemas
from service.schemas.fields import PageQuery

keys = Blueprint("keys", __name__, description="Who may call, and what for")

SHOWN = schemas.Key()
KEY = "/v1/keys/<id:key_id>"


@keys.post("/v1/keys", scope=Scope.ADMIN, creates=True)
@keys.arguments(schemas.KeyRequest)
@keys.response(201, schemas.NewKey, description="The key; `token` is shown this once")
@keys.refuses(400, 409, 413, 415, 422)
def create_key(asked: dict[str, Any]) -> Response:
    """Make a key.

    Several keys may bear one name. To change a key, make a new one, give it out, and revoke the old one when it is no
    longer used: until then both work. Refused where keys are off: it would open nothing.
    """
    if current_service().settings.auth == "none":
        raise Conflict("keys are off here (ESPALIER_AUTH=none), so a key would guard nothing: set ESPALIER_AUTH=keys")
    with creating() as session:
        key, token = ring.create(session, **asked | {"scopes": [Scope(scope) for scope in asked["scopes"]]})
        shown = SHOWN.dump(key) | {"token": token}
        return remember(session, json_answer(shown, status=201, headers={"Cache-Control": "no-store"}), secret=True)


@keys.get("/v1/keys", scope=Scope.ADMIN)
@keys.arguments(PageQuery, location="query")
@keys.tagged(schemas.KeyPage)
@keys.refuses(422)
def list_keys(query: dict[str, Any]) -> Response:
    """List keys, newest first; of their secrets nothing is shown."""
    with read_session(current_service().sessions) as session:
        return page_answer(ring.list_keys(session, **query), SHOWN)


@keys.delete(KEY, scope=Scope.ADMIN)
@keys.response(204, description="It is revoked: within a second it works nowhere")
@keys.refuses(404)
def revoke_key(key_id: str) -> Response:
    """Revoke a key, for good."""
    with transaction(current_service().sessions) as session:
        ring.revoke(session, key_id)
    current_service().keys.forget(key_id)
    return Response(status=204)
