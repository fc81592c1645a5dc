"""Aliases of models over HTTP: point, look back, go back."""

from typing import Any

from flask import Response

from service import aliases as pointers
from service import schemas
from service.api.answers import json_answer, page_answer
from service.api.context import caller, here
from service.api.contract import Resource, answers, answers_tagged, refuses, takes_json, takes_query
from service.api.names import ALIAS, MODEL
from service.api.once import remember
from service.database.engine import reading, transaction
from service.database.tables import Scope

__all__ = ["aliases"]

aliases = Resource("aliases", __name__, description="Names that point at versions")

SHOWN = schemas.AliasEvent()


@aliases.get(f"{MODEL}/aliases", scope=Scope.READ)
@takes_query(schemas.AliasesQuery)
@answers_tagged(schemas.AliasPage)
@refuses(404, 422)
def list_aliases(query: dict[str, Any], name: str) -> Response:
    """List the aliases of a model in the order of their names, each with the change that is in force."""
    with reading(here().sessions) as session:
        return page_answer(pointers.list_current(session, name, **query), SHOWN)


@aliases.put(ALIAS, scope=Scope.TRAIN)
@takes_json(schemas.AliasRequest)
@answers(200, schemas.AliasEvent)
@refuses(400, 404, 409, 413, 415, 422)
def point_alias(asked: dict[str, Any], name: str, alias: str) -> Response:
    """Have an alias point at a version; with `if_current` only if it points where the caller thinks."""
    with transaction(here().sessions) as session:
        made = pointers.point(session, name, alias, **asked, key_id=caller().key_id)
        shown = SHOWN.dump(made)
    here().finder.forget()
    return json_answer(shown)


@aliases.get(f"{ALIAS}/history", scope=Scope.READ)
@takes_query(schemas.AliasQuery)
@answers_tagged(schemas.AliasPage)
@refuses(404, 422)
def get_alias_history(query: dict[str, Any], name: str, alias: str) -> Response:
    """Look at every change of an alias, newest first; with `at`, at the one that was in force at that moment."""
    with reading(here().sessions) as session:
        return page_answer(pointers.history(session, name, alias, **query), SHOWN)


@aliases.post(f"{ALIAS}/rollback", scope=Scope.TRAIN, creates=True)
@answers(200, schemas.AliasEvent)
@refuses(404, 409)
def roll_alias_back(name: str, alias: str) -> Response:
    """Have an alias point again at what it pointed at before; asked twice, it goes back two steps."""
    with transaction(here().sessions) as session:
        shown = SHOWN.dump(pointers.roll_back(session, name, alias, key_id=caller().key_id))
        response = remember(session, json_answer(shown))
    here().finder.forget()
    return response
