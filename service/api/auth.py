"""Authentication: before any view the caller is identified by its key and checked against the route's scope.

Each route names its scope where it is declared (`blueprint.Blueprint`); routes of no such blueprint are in ``OPEN``.

Where keys are off, everybody who reaches the address may do all, and a browser on this machine reaches it for any web
page. So two requests are refused: one to a host name that was made to point here (by the header Host), and one from a
page of another site (by Origin and Sec-Fetch-Site, which a page cannot set).
"""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from flask import Flask, g, request

from service.api.blueprint import Blueprint
from service.api.context import Service, current_service
from service.database.tables import Scope
from service.errors import CrossOriginRequest, LimitExceeded, Unauthenticated
from service.repositories.keys import ANONYMOUS, Caller
from service.settings import Settings, is_loopback

OPEN: frozenset[str] = frozenset({"openapi", "docs.page", "docs.static"})  # the description is for everybody
SCHEME = "bearer "
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(:[0-9]+)?")
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})  # change nothing; who may read the answer is for CORS to say
WAY_OUT = "with ESPALIER_AUTH=keys the service answers to every name"
HOW = "send the header Authorization: Bearer esp_<id>_<secret>"


BURST_SECONDS = 1.0  # a second's worth of requests may come at once


@dataclass(slots=True)
class Rates:
    """Rate limit of each key, counted in this process: so many requests a second, and a second's worth at once.

    The generic cell rate algorithm (ATM Forum, 1996): stores for each key the time at which all its requests so far
    would have arrived at an even rate. A request is accepted while that time is less than a second ahead.

    Attributes:
        per_second: Requests a second of one key; 0: no limit.
        clock: Monotonic seconds.
    """

    per_second: int
    clock: Callable[[], float] = time.monotonic
    _even: dict[str | None, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, key_id: str | None) -> None:
        """Count a request of this key (None: of everybody, where keys are off).

        Raises:
            LimitExceeded: It comes too early; the error says how many seconds too early.
        """
        if self.per_second == 0:
            return
        now = self.clock()
        with self._lock:
            even = max(now, self._even.get(key_id, now)) + 1 / self.per_second
            early = even - now - BURST_SECONDS
            if early <= 1e-9:  # the sum of a second's parts may miss the second by a rounding
                self._even[key_id] = even
                return
        raise LimitExceeded(f"at most {self.per_second} requests a second of one key are taken", seconds=early)


def scopes_of(resources: Sequence[Blueprint]) -> Mapping[str, tuple[Scope, ...]]:
    """Return the scopes of each route by Flask's name for it; none: the route is open."""
    named = {f"{resource.name}.{view}": scope for resource in resources for view, scope in resource.scopes.items()}
    return dict.fromkeys(OPEN, ()) | named


def admit_only_callers(app: Flask, scopes: Mapping[str, tuple[Scope, ...]]) -> None:
    """Check the caller before every view; a route without an entry in `scopes` is an error at the start."""
    if undeclared := app.view_functions.keys() - scopes.keys():
        raise RuntimeError(f"routes without a scope: {', '.join(sorted(undeclared))}")

    @app.before_request
    def admit() -> None:
        needed = () if request.endpoint is None or request.method == "OPTIONS" else scopes[request.endpoint]
        if not needed:  # open to all, or no route of ours: the answer is the same for everybody
            return
        g.caller = authenticate(current_service(), request.headers.get("Authorization", ""))
        g.caller.check_scope(*needed)
        named = request.view_args or {}
        g.caller.check_model(named.get("name"))
        if "data_set_id" in named and request.method not in LOOKING:
            g.caller.check_shared()


def authenticate(service: Service, authorization: str) -> Caller:
    """Return the caller that the header Authorization names, and count the request.

    Raises:
        SchemaMismatch: The tables are not those of this program.
        Unavailable: The database cannot be reached now.
        Unauthenticated: Keys are on, and this is none, or none that is valid.
        LimitExceeded: The key makes more requests a second than it may.
    """
    service.check_schema_revision()
    caller = _identified(service, authorization)
    service.rates.check(caller.key_id)
    return caller


def reauthenticate() -> Callable[[], object]:
    """Return a function by which a long answer checks now and then that its key is still valid.

    It can be called outside the request's context; it raises as `authenticate` does, and counts nothing.
    """
    return partial(_identified, current_service(), request.headers.get("Authorization", ""))


def _identified(service: Service, authorization: str) -> Caller:
    if service.settings.auth == "none":
        return ANONYMOUS
    if not authorization.lower().startswith(SCHEME):
        raise Unauthenticated(f"this needs a key: {HOW}")
    return service.keys.identify(service.sessions, authorization[len(SCHEME) :].strip())


def refuse_foreign_pages(app: Flask, settings: Settings) -> None:
    """Where keys are off, refuse every request that a web page of another site may have caused."""
    if settings.auth != "none":
        return
    origins = settings.shared_with

    @app.before_request
    def check() -> None:
        check_host(request.environ, settings.host)
        if request.method not in LOOKING and request.headers.get("Origin") not in origins:
            _check_origin()


def check_host(environ: Mapping[str, Any], own: str) -> None:
    """Refuse a name that is not this machine's; a proxy may say another afterwards, and a page could say it, too.

    Raises:
        CrossOriginRequest: The header Host says so.
    """
    given = environ.get("werkzeug.proxy_fix.orig", environ).get("HTTP_HOST")
    if given is not None and not _is_own(given, own):  # without it: no browser
        raise CrossOriginRequest(
            f"without keys this is answered at 127.0.0.1, [::1] and localhost only, not at {given}; {WAY_OUT}"
        )


@lru_cache(maxsize=64)
def _is_own(given: str, own: str) -> bool:
    parts = HOST.fullmatch(given.lower())
    return parts is not None and (parts["name"] == own.lower() or is_loopback(parts["name"]))


def _check_origin() -> None:
    """Refuse what a page of another origin sends to change something."""
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower().partition("://")[2] != request.host.lower():
        raise CrossOriginRequest(
            f"a page of {origin} may not do this without a key: list it in ESPALIER_CORS_ORIGINS, or {WAY_OUT}"
        )
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        raise CrossOriginRequest(f"a page of another site may not do this without a key; {WAY_OUT}")
