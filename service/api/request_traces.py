"""A span for every request, where traces are asked for; where they are not, nothing of this costs anything."""

from flask import Flask, Response, g, request

from service.api.context import REQUEST_ID, request_id
from service.api.problems import route_of
from service.tracing import Traces


def trace_requests(app: Flask, traces: Traces) -> None:
    """Have a span begin with each request and end with its last byte; the answer says how the request is called."""

    @app.before_request
    def begin() -> None:
        named = route_of(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        # Methods that no route has are made up by callers without end; OpenTelemetry's word for them is this.
        method = "_OTHER" if request.url_rule is None else named["method"]
        g.span = traces.request(method, named["route"], headers)

    @app.after_request
    def finish(response: Response) -> Response:
        response.headers[REQUEST_ID] = request_id()
        traces.answered(g.span, response.status_code, request_id())
        response.call_on_close(g.span.end)
        return response
