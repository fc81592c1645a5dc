"""Who may come in: before any view, the caller is found out by the key and held against the route's scope.

Each route names its scope where it is declared (`contract.Resource`); what is no resource stands in ``OPEN``.
"""

from collections.abc import Mapping, Sequence

from flask import Flask, g, request

from service.api.context import here
from service.api.contract import Resource
from service.errors import Unidentified
from service.keys import EVERYBODY, Caller
from service.tables import Scope

__all__ = ["OPEN", "admit_only_callers", "scopes_of"]

OPEN: frozenset[str] = frozenset({"openapi", "docs.page", "docs.static"})  # the description is for everybody
SCHEME = "bearer "
HOW = "send the header Authorization: Bearer esp_<id>_<secret>"


def scopes_of(resources: Sequence[Resource]) -> Mapping[str, Scope | None]:
    """Give the scope of each route by Flask's name for it; None: everybody may."""
    named = {f"{resource.name}.{view}": scope for resource in resources for view, scope in resource.scopes.items()}
    return dict.fromkeys(OPEN) | named


def admit_only_callers(app: Flask, scopes: Mapping[str, Scope | None]) -> None:
    """Have every request checked before its view; a route without an entry in `scopes` is an error at the start."""
    if undeclared := app.view_functions.keys() - scopes.keys():
        raise RuntimeError(f"routes without a scope: {', '.join(sorted(undeclared))}")

    @app.before_request
    def admit() -> None:
        scope = None if request.endpoint is None or request.method == "OPTIONS" else scopes[request.endpoint]
        if scope is None:  # open to all, or no route of ours: the answer is the same for everybody
            return
        g.caller = _caller()
        here().rates.check(g.caller.key_id)
        g.caller.check_scope(scope)
        g.caller.check_model((request.view_args or {}).get("name"))


def _caller() -> Caller:
    service = here()
    if service.settings.auth == "none":
        return EVERYBODY
    given = request.headers.get("Authorization", "")
    if not given.lower().startswith(SCHEME):
        raise Unidentified(f"this needs a key: {HOW}")
    return service.keys.identify(service.sessions, given[len(SCHEME) :].strip())
