"""Who may come in: before any view, the caller is found out by the key and held against the route's scope.

Each route names its scope where it is declared (`contract.Resource`); what is no resource stands in ``OPEN``.

Where keys are off, whoever reaches the address may do all, and a browser on this machine reaches it for any web page.
Two ways are closed: a name of the page's own that was made to point here (the header Host tells), and a request from a
page of elsewhere (Origin and Sec-Fetch-Site tell; the page cannot set them).
"""

import re
from collections.abc import Mapping, Sequence

from flask import Flask, g, request

from service.api.context import here
from service.api.contract import Resource
from service.errors import Foreign, Unidentified
from service.keys import EVERYBODY, Caller
from service.settings import Settings, is_loopback
from service.tables import Scope

__all__ = ["OPEN", "admit_only_callers", "refuse_foreign_pages", "scopes_of"]

OPEN: frozenset[str] = frozenset({"openapi", "docs.page", "docs.static"})  # the description is for everybody
SCHEME = "bearer "
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(:[0-9]+)?")
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})  # change nothing; who may read the answer is for CORS to say
WAY_OUT = "with ESPALIER_AUTH=keys the service answers to every name"
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
        here().check_tables()
        g.caller = _caller()
        here().rates.check(g.caller.key_id)
        g.caller.check_scope(scope)
        named = request.view_args or {}
        g.caller.check_model(named.get("name"))
        if "data_set_id" in named and request.method not in LOOKING:
            g.caller.check_shared()


def refuse_foreign_pages(app: Flask, settings: Settings) -> None:
    """Where keys are off, refuse every request that a web page of elsewhere may have caused."""
    if settings.auth != "none":
        return
    origins = settings.shared_with

    @app.before_request
    def check() -> None:
        _check_host(settings.host)
        if request.method not in LOOKING and request.headers.get("Origin") not in origins:
            _check_origin()


def _check_host(own: str) -> None:
    """Refuse a name that is not this machine's; a proxy may say another afterwards, and a page could say it, too."""
    given = request.environ.get("werkzeug.proxy_fix.orig", request.environ).get("HTTP_HOST")
    if given is None:  # no browser
        return
    parts = HOST.fullmatch(given.lower())
    if parts is None or not (parts["name"] == own.lower() or is_loopback(parts["name"])):
        raise Foreign(
            f"without keys this is answered at 127.0.0.1, [::1] and localhost only, not at {given}; {WAY_OUT}"
        )


def _check_origin() -> None:
    """Refuse what a page of another origin sends to change something."""
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower().partition("://")[2] != request.host.lower():
        raise Foreign(
            f"a page of {origin} may not do this without a key: list it in ESPALIER_CORS_ORIGINS, or {WAY_OUT}"
        )
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        raise Foreign(f"a page of another site may not do this without a key; {WAY_OUT}")


def _caller() -> Caller:
    service = here()
    if service.settings.auth == "none":
        return EVERYBODY
    given = request.headers.get("Authorization", "")
    if not given.lower().startswith(SCHEME):
        raise Unidentified(f"this needs a key: {HOW}")
    return service.keys.identify(service.sessions, given[len(SCHEME) :].strip())
