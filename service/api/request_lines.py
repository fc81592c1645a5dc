"""A log line for every request, where it is asked for; where it is not, nothing of this costs anything."""

import logging
import time

from flask import Flask, Response, g, request

from service.api.context import REQUEST_ID, request_id
from service.api.problems import route_of

log = logging.getLogger("service.requests")


def write_lines(app: Flask) -> None:
    """Have each request logged once its answer is sent, and the answer say how the request is called in the log."""

    @app.before_request
    def begin() -> None:
        g.began = time.perf_counter()

    @app.after_request
    def finish(response: Response) -> Response:
        response.headers[REQUEST_ID] = request_id()
        asking = g.get("caller")
        fields = {
            "request_id": request_id(),
            **route_of(request),
            "status": response.status_code,
            "key_id": None if asking is None else asking.key_id,
        }
        began = g.began
        response.call_on_close(lambda: _write(fields, began))
        return response


def _write(fields: dict[str, object], began: float) -> None:
    log.info("request", extra={**fields, "milliseconds": round((time.perf_counter() - began) * 1000, 3)})
