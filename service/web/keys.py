"""API keys: create, list, revoke."""

import secrets
from typing import Any

from flask import Response, request

from service.api.context import current_caller, current_service
from service.database.clock import utc_now
from service.database.engine import read_session, transaction
from service.database.tables import Key, Scope
from service.errors import Conflict, ServiceError, ValidationFailed
from service.repositories import idempotency, keys as repository
from service.repositories.pagination import page
from service.schemas.fields import load_members
from service.schemas.keys import KeyRequest
from service.web.forms import lines_of
from service.web.pages import cursor, pages, problem_of, render, see_other

SHOWN = 50
SENT_BEFORE = "this form was sent before, and its key was shown once; if it is lost, revoke that key and create another"


@pages.page("/keys", Scope.ADMIN)
def key_list() -> Response:
    """Show the form for a new key and, below it, the list of keys without their secrets."""
    return _keys_page()


@pages.page("/keys", Scope.ADMIN, methods=("POST",))
def create_key() -> Response:
    """Create a key, and show its token once; a form that is sent again creates no other key."""
    service, typed = current_service(), request.form
    models = typed.get("models", "").strip()
    body: dict[str, Any] = {"name": typed.get("name", "").strip(), "scopes": typed.getlist("scope")}
    body["models"] = lines_of(models.replace(",", "\n")) if models else None
    body["expires"] = _with_zone(typed.get("expires", "").strip())
    try:
        if service.settings.auth == "none":
            raise Conflict("keys are off (ESPALIER_AUTH=none), so a key would have no effect: set ESPALIER_AUTH=keys")
        members, faults = load_members(KeyRequest(), body)
        ValidationFailed.raise_for(faults)
        with transaction(service.sessions) as session:
            claim = idempotency.claim(
                session,
                owner=current_caller().key_id,
                key=typed.get("once") or secrets.token_urlsafe(),
                keep_seconds=service.settings.replay_seconds,
            )
            if claim.status is not None:
                raise Conflict(SENT_BEFORE)
            _, token = repository.create(session, **members)
            idempotency.finish(session, claim, status=200)
    except ServiceError as error:
        return _keys_page(problem=problem_of(error))
    return _keys_page(token=token)


@pages.page("/keys/<id:key_id>/revoke", Scope.ADMIN, methods=("POST",))
def revoke_key(key_id: str) -> Response:
    """Revoke a key permanently."""
    with transaction(current_service().sessions) as session:
        repository.revoke(session, key_id)
    current_service().keys.forget()
    return see_other("key_list")


def _keys_page(*, problem: Any = None, token: str | None = None) -> Response:
    with read_session(current_service().sessions) as session:
        keys = page(session, Key, limit=SHOWN, cursor=cursor())
    return render(
        "keys.html",
        keys=keys,
        typed=request.form if token is None else {},
        chosen=request.form.getlist("scope") if token is None else [],
        scopes=list(Scope),
        problem=problem,
        new_token=token,
        once=secrets.token_urlsafe(),
        moment_now=utc_now(),
    )


def _with_zone(text: str) -> str | None:
    """Return the first moment of a date in UTC; return other text unchanged, and None for an empty text."""
    if not text:
        return None
    return f"{text}T00:00:00Z" if len(text) == 10 else text
