"""Sessions of browsers: a signed cookie names the key that logged in.

A request that changes something must come from a page of this service and have the session's token. If keys are off,
the session only provides the token.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from flask import Request, Response, g, request
from itsdangerous import BadData, URLSafeTimedSerializer

from service.api.auth import SAFE_METHODS
from service.api.context import current_service
from service.errors import CrossOriginRequest, Unauthenticated
from service.permissions import ANONYMOUS, Caller

MAX_SECONDS = 12 * 3600  # after this time, a login ends
TOKEN_FIELD = "csrf"  # noqa: S105 - the name of a form field
SALT = "espalier session"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """The session of a browser: a random id, and the key that logged in, if any."""

    id: str
    key_id: str | None = None

    @property
    def token(self) -> str:
        """The token that every form of this session sends."""
        secret = current_service().session_secret.encode()
        return hmac.new(secret, self.id.encode(), hashlib.sha256).hexdigest()


def begin_session() -> None:
    """Set ``g.browser`` to the session of the request, or to a new one."""
    session = _read(request)
    g.browser = session or BrowserSession(secrets.token_urlsafe(16))
    g.cookie_is_new = session is None


def log_in(token: str) -> None:
    """Begin a new session for the key with this token (``esp_…``).

    Raises:
        Unauthenticated: No valid key has this token.
    """
    service = current_service()
    _replace_session(service.keys.identify(service.sessions, token.strip()).key_id)


def log_out() -> None:
    """Begin a session without a key."""
    _replace_session(None)


def caller_of_session() -> Caller:
    """Return the caller, `ANONYMOUS` if keys are off, and count the request for the rate limit.

    Raises `Unauthenticated` if nobody is logged in or the key is no longer valid, `LimitExceeded` above the rate limit,
    and `SchemaMismatch` if the tables do not have the schema revision of this version of the service.
    """
    service = current_service()
    service.check_schema_revision()
    if service.settings.auth == "none":
        caller = ANONYMOUS
    elif g.browser.key_id is None:
        raise Unauthenticated("log in with a key")
    else:
        caller = service.keys.caller_of(service.sessions, g.browser.key_id)
    service.rate_limit.check(caller.key_id)
    return caller


def check_same_origin() -> None:
    """Refuse a change that a form of this session did not cause.

    Raises:
        CrossOriginRequest: The request comes from another site, or without the token of the session.
    """
    if request.method in SAFE_METHODS:
        return
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise CrossOriginRequest("a page of another site may not do this: open the page here and send its form")
    if not hmac.compare_digest(request.form.get(TOKEN_FIELD, "").encode(), g.browser.token.encode()):
        raise CrossOriginRequest("the form belongs to a session that has ended: open the page again, and send its form")


def is_followed_from_another_site() -> bool:
    """Return whether the browser follows a link of another site, so that it sends no cookie even if there is one.

    A new session would replace the browser's session: the person would be logged out, and open forms would be refused.
    """
    comes_from = (request.headers.get("Sec-Fetch-Site"), request.headers.get("Sec-Fetch-Mode"))
    return request.method == "GET" and comes_from == ("cross-site", "navigate") and _read(request) is None


def write_cookie(response: Response) -> None:
    """Set the session's cookie on a response if the session is new."""
    if not g.get("cookie_is_new", False):
        return
    response.set_cookie(
        _cookie_name(),
        _serializer().dumps([g.browser.id, g.browser.key_id]),
        max_age=MAX_SECONDS,
        path=f"{request.root_path}/",
        secure=request.is_secure,
        httponly=True,
        samesite="Strict",
    )


def _replace_session(key_id: str | None) -> None:
    g.browser, g.cookie_is_new = BrowserSession(secrets.token_urlsafe(16), key_id), True


def _read(request: Request) -> BrowserSession | None:
    try:
        name, key_id = _serializer().loads(request.cookies.get(_cookie_name(), ""), max_age=MAX_SECONDS)
    except BadData:
        return None
    return BrowserSession(name, key_id)


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(current_service().session_secret, salt=SALT)


def _cookie_name() -> str:
    # The name has the port, since all ports of a host share its cookies.
    return f"espalier_{current_service().settings.port}"
