"""Hooks around every request: HTTP's own rules, proxies, path prefix, CORS, security headers, metrics, log, traces."""

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

from flask import Flask, Response, abort, g
from werkzeug.middleware.proxy_fix import ProxyFix

from service.api.auth import HOST
from service.api.context import REQUEST_ID, current_request, current_service, request_id
from service.api.problems import route_of
from service.api.request_bodies import discard_rest
from service.log_config import RateLimitedWarning
from service.settings import PATH_PREFIX, Settings
from service.tracing import Traces

log = logging.getLogger("service.requests")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

# A response that does not set these gets them. A browser that shows a response as a page must load and run nothing.
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
PREFLIGHT_HEADERS: Mapping[str, str] = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Encoding, Content-Type, Idempotency-Key, If-Match, "
    "If-None-Match, Inference-Header-Content-Length, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}
EXPOSED_HEADERS = (
    "Content-Disposition, Espalier-Audited, Espalier-Operating-Point, Espalier-Version, ETag, Idempotent-Replayed, "
    "Inference-Header-Content-Length, Location, Retry-After, X-Request-Id"
)

ABSOLUTE = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)


def check_protocol(app: Flask) -> None:
    """Check each request against rules of HTTP that gunicorn does not check, and that its query is UTF-8."""

    @app.before_request
    def check() -> Response | None:
        environ = current_request().environ
        target = environ.get("RAW_URI", "")
        if target == "*":  # OPTIONS of the whole server (RFC 9110, section 9.3.7)
            return Response(status=204, headers={"Allow": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"})
        if absolute := ABSOLUTE.match(target):  # the host in the target replaces Host (RFC 9112, section 3.2.2)
            environ["HTTP_HOST"] = absolute[1]
        default = "localhost" if environ["SERVER_PROTOCOL"] == "HTTP/1.0" else ""
        try:
            unquote_to_bytes(current_request().query_string).decode()
        except UnicodeDecodeError:
            abort(400, "the query is not text in UTF-8")
        if not HOST.fullmatch(environ.get("HTTP_HOST", default)):
            abort(400, "the request needs one header Host, a name or an address (RFC 9112, section 3.2)")
        if environ.get("HTTP_TRANSFER_ENCODING", "chunked").lower() != "chunked":
            abort(501, "the only supported transfer coding is chunked (RFC 9112, section 6.1)")
        return None


def add_middleware(app: Flask, settings: Settings) -> None:
    """Handle proxies and a path prefix as the settings require, and add CORS and security headers to responses."""
    app.wsgi_app = _below(settings.path_prefix.rstrip("/"), app.wsgi_app)  # type: ignore[method-assign, assignment] # as Flask documents it
    if settings.proxies:
        n = settings.proxies
        app.wsgi_app = ProxyFix(app.wsgi_app, n, n, n, n, n)  # type: ignore[method-assign] # as above
    origins = settings.shared_with

    @app.after_request
    def finish(response: Response) -> Response:
        # `name in headers` would raise and catch an exception for each missing header.
        present = {name for name, _ in response.headers}
        response.headers.extend([pair for pair in SECURITY_HEADERS.items() if pair[0] not in present])
        if response.status_code == 413:
            response.call_on_close(partial(discard_rest, current_request().environ["wsgi.input"]))
        if not origins:
            return response
        response.vary.add("Origin")
        request = current_request()
        origin = request.headers.get("Origin")
        if origin in origins:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
            response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
            if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
                response.headers.update(PREFLIGHT_HEADERS)
        return response


def observe_requests(app: Flask, settings: Settings) -> None:
    """Count, log and trace each request as the settings require; call this before any other hook is added."""
    traces = Traces() if settings.traces == "on" else None

    @app.before_request
    def begin() -> None:
        g.began = time.perf_counter()
        if traces is not None:
            request = current_request()
            # Clients can invent methods: requests that match no route get OpenTelemetry's value for unknown methods.
            method = "_OTHER" if request.url_rule is None else request.method
            headers = {name.lower(): value for name, value in request.headers.items()}
            g.span = traces.request(method, route_of(request)["route"], headers)

    @app.after_request
    def finish(response: Response) -> Response:
        request, began, status = current_request(), g.began, response.status_code
        if settings.metrics == "on":
            method, route = (request.method, rule.rule) if (rule := request.url_rule) else ("other", "none")
            requests = current_service().metrics.requests
            requests.labels(method, route, str(status)).observe(time.perf_counter() - began)
        if settings.log_requests == "on":
            response.headers[REQUEST_ID] = request_id()
            key_id = g.caller.key_id if "caller" in g else None
            fields = {"request_id": request_id(), **route_of(request), "status": status, "key_id": key_id}

            def write() -> None:
                log.info("request", extra={**fields, "milliseconds": round((time.perf_counter() - began) * 1000, 3)})

            response.call_on_close(write)
        if traces is not None:
            response.headers[REQUEST_ID] = request_id()
            traces.answered(g.span, status, request_id())
            response.call_on_close(g.span.end)
        return response


def _below(prefix: str, inner: Application) -> Application:
    """Serve everything below `prefix`, whether or not a proxy has removed the prefix from the path."""
    ignored = RateLimitedWarning(log)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == prefix or path.startswith(f"{prefix}/"):
            environ["PATH_INFO"] = path[len(prefix) :]
        given = environ.get("SCRIPT_NAME", "").rstrip("/")  # of the proxy; "//host" would lead to that host
        if given and not re.fullmatch(PATH_PREFIX, given):
            ignored.warn("the X-Forwarded-Prefix of a proxy is ignored: it is not legal for ESPALIER_PATH_PREFIX")
            given = ""
        environ["SCRIPT_NAME"] = given or prefix
        return inner(environ, start_response)

    return application
