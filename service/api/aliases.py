"""Aliases of models over HTTP: point, look back, go back."""

from typing import Any

from flask import Response

from service.api.blueprint import Blueprint
from service.api.context import current_caller, current_service
from service.api.idempotency import creating, remember
from service.api.responses import json_answer, page_answer
from service.api.routing import ALIAS, MODEL
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.repositories import aliases as pointers
from service.schemas import models as schemas

aliases = Blueprint("aliases", __name__, description="Names that point at versions")

SHOWN = schemas.AliasEvent()


@aliases.get(f"{MODEL}/aliases", scope=Scope.READ)
@aliases.arguments(schemas.AliasesQuery, location="query")
@aliases.tagged(schemas.AliasPage)
@aliases.refuses(404, 422)
def list_aliases(query: dict[str, Any], name: str) -> Response:
    """List the aliases of a model in the order of their names, each with the change that is in force."""
    with read_session(current_service().sessions) as session:
        return page_answer(pointers.list_current(session, name, **query), SHOWN)


@aliases.put(ALIAS, scope=Scope.TRAIN)
@aliases.arguments(schemas.AliasRequest)
@aliases.response(200, schemas.AliasEvent)
@aliases.refuses(400, 404, 409, 413, 415, 422)
def point_alias(asked: dict[str, Any], name: str, alias: str) -> Response:
    """Have an alias point at a version; with `if_current` only if it points where the caller thinks."""
    with transaction(current_service().sessions) as session:
        made = pointers.point(session, name, alias, **asked, key_id=current_caller().key_id)
        shown = SHOWN.dump(made)
    current_service().versions.invalidate()
    return json_answer(shown)


@aliases.get(f"{ALIAS}/history", scope=Scope.READ)
@aliases.arguments(schemas.AliasQuery, location="query")
@aliases.tagged(schemas.AliasPage)
@aliases.refuses(404, 422)
def get_alias_history(query: dict[str, Any], name: str, alias: str) -> Response:
    """Look at every change of an alias, newest first; with `at`, at the one that was in force at that moment."""
    with read_session(current_service().sessions) as session:
        return page_answer(pointers.history(session, name, alias, **query), SHOWN)


@aliases.post(f"{ALIAS}/rollback", scope=Scope.TRAIN, creates=True)
@aliases.response(200, schemas.AliasEvent)
@aliases.refuses(404, 409)
def roll_alias_back(name: str, alias: str) -> Response:
    """Have an alias point again at what it pointed at before; asked twice, it goes back two steps."""
    with creating() as session:
        shown = SHOWN.dump(pointers.roll_back(session, name, alias, key_id=current_caller().key_id))
        response = remember(session, json_answer(shown))
    current_service().versions.invalidate()
    return response
