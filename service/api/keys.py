"""API keys: create, list, revoke."""

from typing import Any

from flask import Response

from service.api.blueprint import Blueprint
from service.api.context import current_service
from service.api.idempotency import remember
from service.api.responses import json_response, page_response
from service.api.routing import KEY
from service.database.engine import read_session, transaction
from service.database.tables import Key, Scope
from service.errors import Conflict
from service.repositories import keys as repository
from service.repositories.pagination import page
from service.schemas import keys as schemas
from service.schemas.fields import PageQuery, page_of

keys = Blueprint("keys", __name__, description="API keys and their scopes")

KEY_SCHEMA = schemas.Key()


@keys.post("/v1/keys", scope=Scope.ADMIN, body=schemas.KeyRequest, creates=True)
@keys.response(201, schemas.NewKey, description="The key; `token` is shown only once")
def create_key(body: dict[str, Any]) -> Response:
    """Create a key.

    Several keys may have the same name. To replace a key, create a new one, distribute it, and revoke the old one when
    it is no longer used: until then both work. Refused if keys are off.
    """
    if current_service().settings.auth == "none":
        raise Conflict("keys are off (ESPALIER_AUTH=none), so a key would have no effect: set ESPALIER_AUTH=keys")
    with transaction(current_service().sessions) as session:
        key, token = repository.create(session, **body)
        shown = KEY_SCHEMA.dump(key) | {"token": token}
        response = json_response(shown, status=201, headers={"Cache-Control": "no-store"})
        return remember(session, response, secret=True)


@keys.get("/v1/keys", scope=Scope.ADMIN, query=PageQuery, shows=page_of(schemas.Key))
def list_keys(query: dict[str, Any]) -> Response:
    """List keys without their secrets, by descending id: newest first, but `ESPALIER_ADMIN_KEY` gives its own id."""
    with read_session(current_service().sessions) as session:
        return page_response(page(session, Key, **query), KEY_SCHEMA)


@keys.delete(KEY, scope=Scope.ADMIN)
@keys.response(204, description="The key is revoked; within a second it no longer works anywhere")
def revoke_key(key_id: str) -> Response:
    """Revoke a key permanently."""
    with transaction(current_service().sessions) as session:
        repository.revoke(session, key_id)
    current_service().keys.forget()
    return Response(status=204)
