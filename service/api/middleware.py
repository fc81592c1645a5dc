"""Hooks around every request: proxies, path prefix, CORS, security headers; log lines and spans if asked for."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flask import Flask, Response, g, request
from werkzeug.middleware.proxy_fix import ProxyFix

from service.api.context import REQUEST_ID, request_id
from service.api.problems import route_of
from service.settings import Settings
from service.tracing import Traces

log = logging.getLogger("service.requests")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

# On every answer, unless a page has set its own. An answer of the API is no page: a browser that is made to show one
# as a page must run and load nothing.
SAFE: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ALLOWED: Mapping[str, str] = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match",
    "Access-Control-Max-Age": "600",
}
EXPOSED = "ETag, Idempotent-Replayed, Location, Retry-After, X-Request-Id"


def surround(app: Flask, settings: Settings) -> None:
    """Honour the proxies and the prefix of the settings, and send the headers that browsers look for."""
    if settings.path_prefix != "/":
        app.wsgi_app = _below(settings.path_prefix, app.wsgi_app)  # type: ignore[method-assign, assignment] # Flask's way
    if settings.proxies:
        n = settings.proxies
        app.wsgi_app = ProxyFix(app.wsgi_app, n, n, n, n, n)  # type: ignore[method-assign] # as above
    origins = settings.shared_with

    @app.after_request
    def finish(response: Response) -> Response:
        # Asked one by one, each header that is not there would cost an exception.
        given = {name for name, _ in response.headers}
        response.headers.extend([pair for pair in SAFE.items() if pair[0] not in given])
        if origins:
            _share(response, origins)
        return response


def log_requests(app: Flask) -> None:
    """Log each request once its answer is sent, under the id that the answer names in X-Request-Id."""

    @app.before_request
    def begin() -> None:
        g.began = time.perf_counter()

    @app.after_request
    def finish(response: Response) -> Response:
        response.headers[REQUEST_ID] = request_id()
        caller = g.get("caller")
        fields = {
            "request_id": request_id(),
            **route_of(request),
            "status": response.status_code,
            "key_id": None if caller is None else caller.key_id,
        }
        began = g.began
        response.call_on_close(lambda: _write_line(fields, began))
        return response


def trace_requests(app: Flask, traces: Traces) -> None:
    """Begin a span with each request and end it with the last byte of its answer, which names it in X-Request-Id."""

    @app.before_request
    def begin() -> None:
        named = route_of(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        # OpenTelemetry's word for a method of no route: callers can make up any number of them.
        method = "_OTHER" if request.url_rule is None else named["method"]
        g.span = traces.request(method, named["route"], headers)

    @app.after_request
    def finish(response: Response) -> Response:
        response.headers[REQUEST_ID] = request_id()
        traces.answered(g.span, response.status_code, request_id())
        response.call_on_close(g.span.end)
        return response


def _share(response: Response, origins: frozenset[str]) -> None:
    """Let pages of the listed origins read the answer."""
    response.vary.add("Origin")
    origin = request.headers.get("Origin")
    if origin not in origins:
        return
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = EXPOSED
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        response.headers.update(ALLOWED)


def _below(prefix: str, inner: Application) -> Application:
    """Serve everything below `prefix`, whether or not the proxy in front has cut it off."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == prefix or path.startswith(f"{prefix}/"):
            environ["PATH_INFO"] = path[len(prefix) :]
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME") or prefix
        return inner(environ, start_response)

    return application


def _write_line(fields: dict[str, object], began: float) -> None:
    log.info("request", extra={**fields, "milliseconds": round((time.perf_counter() - began) * 1000, 3)})
