"""The pages of a model: its versions and aliases, and the history of an alias; promote and roll back."""

import re
from collections.abc import Callable
from typing import Any

from flask import Response, request

from espalier import Fault
from service.api.context import current_caller, current_service
from service.database import ALIAS, ALIAS_RULE
from service.database.engine import read_session
from service.database.tables import Scope
from service.errors import ServiceError, ValidationFailed
from service.repositories import aliases, models
from service.schemas.fields import load_members
from service.schemas.models import AliasRequest
from service.web.forms import whole_number
from service.web.pages import cursor, pages, problem_of, render, see_other

MODEL = "/models/<model:name>"
SHOWN = 50
MAX_ALIASES = 200


@pages.page(MODEL, Scope.READ)
def model(name: str, problem: Any = None) -> Response:
    """Show a model with its versions and aliases."""
    with read_session(current_service().sessions) as session:
        row = models.find_model(session, name)
        versions = models.list_versions(session, name, limit=SHOWN, cursor=cursor())
        pointed = aliases.list_current(session, name, limit=MAX_ALIASES).items
    return render("model.html", row=row, versions=versions, aliases=pointed, typed=request.form, problem=problem)


@pages.page(f"{MODEL}/aliases", Scope.TRAIN, methods=("POST",))
def promote(name: str) -> Response:
    """Point an alias at a version."""
    typed = request.form
    alias, key_id = typed.get("alias", "").strip(), current_caller().key_id
    version = typed.get("version", "")
    number = whole_number(version)
    members, faults = load_members(AliasRequest(), {"version": version if number is None else number})
    if not re.fullmatch(ALIAS, alias):
        faults.append(Fault("/alias", "invalid", ALIAS_RULE))

    def change(session: Any) -> None:
        ValidationFailed.raise_for(faults)
        aliases.point(session, name, alias, **members, key_id=key_id)

    return _change(name, change)


@pages.page(f"{MODEL}/aliases/<alias:alias>/rollback", Scope.TRAIN, methods=("POST",))
def roll_back(name: str, alias: str) -> Response:
    """Point an alias back at its previous version, if it points at the version that the query names, if any."""
    shown, key_id = whole_number(request.args.get("version", "")) or aliases.ANY, current_caller().key_id
    return _change(name, lambda session: aliases.roll_back(session, name, alias, if_current=shown, key_id=key_id))


@pages.page(f"{MODEL}/aliases/<alias:alias>", Scope.READ)
def alias_history(name: str, alias: str) -> Response:
    """Show the changes of an alias, newest first."""
    before = whole_number(request.args.get("cursor", ""))
    with read_session(current_service().sessions) as session:
        history = aliases.history(session, name, alias, limit=SHOWN, cursor=before)
    return render("alias.html", name=name, alias=alias, history=history)


def _change(name: str, change: Callable[[Any], object]) -> Response:
    try:
        with current_service().changing_versions() as session:
            change(session)
    except ServiceError as error:
        return model(name, problem_of(error, "model"))
    return see_other("model", name=name)
