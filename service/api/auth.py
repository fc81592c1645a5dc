"""Authentication: before each view with a scope, the service identifies the caller by its key and checks the scope.

Each route of a `blueprint.Blueprint` names its scope. ``OPEN`` lists the other routes, except those of `service.web`.

If keys are off, everyone who reaches the address has full access, and web pages can make a browser on this machine send
requests. So the service refuses requests whose header Host names another host (DNS rebinding). It also refuses changes
by other sites that ESPALIER_CORS_ORIGINS does not list. Origin and Sec-Fetch-Site show the site; no page can set them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flask import Flask, Request, g

from service.api.blueprint import Blueprint
from service.api.context import Service, current_request, current_service
from service.database.tables import Scope
from service.errors import CrossOriginRequest, Unauthenticated
from service.permissions import ANONYMOUS, SHARED, Caller
from service.settings import Settings, is_loopback

OPEN: frozenset[str] = frozenset({"openapi", "docs.page", "docs.static"})
SCHEME = "bearer "
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(:[0-9]*)?", re.ASCII)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})  # change nothing; CORS decides who may read the response
REMEDY = "set ESPALIER_AUTH=keys"


def scopes_of(resources: Sequence[Blueprint]) -> dict[str, tuple[Scope, ...]]:
    """Map the Flask endpoint of each route to the scopes of the route; an open route has none."""
    named = {f"{resource.name}.{view}": scope for resource in resources for view, scope in resource.scopes.items()}
    return dict.fromkeys(OPEN, ()) | named


def require_scopes(app: Flask, scopes: Mapping[str, tuple[Scope, ...]]) -> None:
    """Make `app` check the caller of each view that needs a scope. Raise `RuntimeError` if `scopes` lacks a route."""
    if undeclared := app.view_functions.keys() - scopes.keys():
        raise RuntimeError(f"routes without a scope: {', '.join(sorted(undeclared))}")

    @app.before_request
    def check_caller() -> None:
        request = current_request()
        needed = () if request.endpoint is None or request.method == "OPTIONS" else scopes[request.endpoint]
        if not needed:  # an open route, no route, or OPTIONS
            return
        g.caller = authenticate(current_service(), request.headers.get("Authorization", ""))
        check_route(request, g.caller, needed)


def check_route(request: Request, caller: Caller, scopes: tuple[Scope, ...]) -> None:
    """Raise `Forbidden` if the key lacks all `scopes` or may not use the path's model or change the path's data set."""
    caller.check_scope(*scopes)
    in_path = request.view_args or {}
    caller.check_model(in_path.get("name"))
    if "data_set_id" in in_path and request.method not in SAFE_METHODS:
        caller.check_unlimited(SHARED)


def authenticate(service: Service, authorization: str) -> Caller:
    """Return the caller that the header Authorization identifies, and apply the rate limit to this caller."""
    service.check_schema_revision()
    caller = _identified(service, authorization)
    service.rate_limit.check(caller.key_id)
    return caller


def reauthenticate() -> Callable[[], object]:
    """Return a function that raises `Unauthenticated` if the key of this request has become invalid."""
    return partial(_identified, current_service(), current_request().headers.get("Authorization", ""))


def _identified(service: Service, authorization: str) -> Caller:
    if service.settings.auth == "none":
        return ANONYMOUS
    if not authorization.lower().startswith(SCHEME):
        raise Unauthenticated("a key is needed: send the header Authorization: Bearer esp_<id>_<secret>")
    return service.keys.identify(service.sessions, authorization[len(SCHEME) :].strip())


def refuse_cross_origin(app: Flask, settings: Settings) -> None:
    """If keys are off, refuse requests to other hosts, and changes by other sites that ESPALIER_CORS_ORIGINS lacks."""
    if settings.auth != "none":
        return
    origins, own = settings.shared_with, settings.host.lower()

    @app.before_request
    def check() -> None:
        request = current_request()
        # Read Host, not X-Forwarded-Host, which a page can set. A request without Host does not come from a browser.
        host = request.environ.get("werkzeug.proxy_fix.orig", request.environ).get("HTTP_HOST") or "localhost"
        named = HOST.fullmatch(host.lower())
        if named is None or (named["name"] != own and not is_loopback(named["name"])):
            raise CrossOriginRequest(
                f"without keys only requests to 127.0.0.1, [::1] and localhost are answered, not to {host}: {REMEDY}"
            )
        origin = request.headers.get("Origin")
        if request.method in SAFE_METHODS or origin in origins:
            return
        if origin is not None and origin.lower().partition("://")[2] != request.host.lower():
            raise CrossOriginRequest(
                f"a page of {origin} may not do this without a key: list it in ESPALIER_CORS_ORIGINS, or {REMEDY}"
            )
        if request.headers.get("Sec-Fetch-Site") == "cross-site":
            raise CrossOriginRequest(f"a page of another site may not do this without a key: {REMEDY}")
