"""Every error as one shape on the wire: a problem document of RFC 9457; below /v2 with ``error`` besides.

``PROBLEMS`` is the only place where an exception meets a status code. A test walks every error class of both packages
and asks that it is in the table.
"""

import logging
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from flask import Request, Response, request
from werkzeug.exceptions import BadRequest, ClientDisconnected, HTTPException, MethodNotAllowed

import espalier
from service import errors
from service.api.context import REQUEST_ID, current_service, request_id
from service.api.requests import JSON, discard_rest
from service.api.routing import INFERENCE

log = logging.getLogger("service")

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:espalier:problem:"
RETRY_SECONDS = 1
FAULTS_IN_DETAIL = 3
SHOWN_FAULTS = 100  # a body of a million wrong cells needs no answer of a million faults


class Entry(NamedTuple):
    """A row of the table: the status, the stable end of the problem's ``type``, and its title."""

    status: int
    slug: str
    title: str
    retryable: bool = False


PROBLEMS: Mapping[type[Exception], Entry] = {
    espalier.SchemaError: Entry(422, "invalid-schema", "The declaration of the columns is not valid"),
    espalier.DataError: Entry(422, "invalid-data", "The data set is not valid"),
    espalier.ConfigError: Entry(422, "invalid-configuration", "The configuration is not valid"),
    espalier.RowError: Entry(422, "invalid-rows", "The rows are not valid"),
    espalier.DocumentError: Entry(422, "invalid-document", "The model document is not valid"),
    espalier.EstimatorError: Entry(422, "invalid-input", "What was given is not valid"),
    espalier.InvalidInput: Entry(422, "invalid-input", "What was given is not valid"),
    espalier.TooLarge: Entry(413, "too-large", "Too large"),
    espalier.NotApplicable: Entry(422, "not-applicable", "The method cannot be applied here"),
    espalier.Cancelled: Entry(409, "cancelled", "The work was cancelled"),
    espalier.EspalierError: Entry(422, "refused", "The request cannot be done"),
    errors.NotFound: Entry(404, "not-found", "Not found"),
    errors.Unauthenticated: Entry(401, "unauthorized", "A key is needed"),
    errors.Forbidden: Entry(403, "forbidden", "The key does not allow this"),
    errors.CrossOriginRequest: Entry(403, "foreign-page", "Without keys only this machine may call"),
    errors.Conflict: Entry(409, "conflict", "The present state does not allow this"),
    errors.PreconditionFailed: Entry(412, "changed", "It is no longer as you have seen it"),
    errors.RequestInProgress: Entry(409, "still-running", "The same request is being worked at", retryable=True),
    errors.ValidationFailed: Entry(422, "invalid-request", "The request is not valid"),
    errors.LimitExceeded: Entry(429, "too-many", "Too many at a time", retryable=True),
    errors.Unavailable: Entry(503, "unavailable", "Not available at the moment", retryable=True),
    errors.SchemaMismatch: Entry(503, "other-tables", "The tables are of another version", retryable=True),
    errors.LeaseLost: Entry(409, "lease-lost", "The job is no longer held", retryable=True),
    errors.SettingsError: Entry(500, "internal-error", "Something went wrong on our side"),
    errors.ServiceError: Entry(500, "internal-error", "Something went wrong on our side"),
    Exception: Entry(500, "internal-error", "Something went wrong on our side"),
}

# What Flask and Werkzeug raise by themselves: a sentence of our own for each status that has a usual cause.
DETAILS: Mapping[int, str] = {
    404: "nothing is at this path; see /docs. A model name has 1 to 64 of the signs A-Z a-z 0-9 . _ - and begins with "
    "a letter or a digit (so no '/'); versions are whole numbers from 1; ids are as the service gave them",
    413: "the body is longer than this service takes",
    500: "the request could not be done; what happened is in the service's log under this request_id",
}
CUT_SHORT = "the body ends too early: it is shorter than its Content-Length says, or its last chunk is missing"
NO_CHUNKS = "the body is not well-formed: Transfer-Encoding is chunked, and its chunks are not as HTTP/1.1 has them"
HEADERS: Mapping[int, tuple[tuple[str, str], ...]] = {401: (("WWW-Authenticate", 'Bearer realm="espalier"'),)}
INFERENCE_STATUSES: Mapping[int, int] = {422: 400}  # the Open Inference Protocol knows no 422
OWN_WORDS = frozenset({400, 415})  # statuses that our own code raises with a sentence of its own


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document before it is bytes."""

    status: int
    slug: str
    title: str
    detail: str
    retryable: bool = False
    faults: tuple[espalier.Fault, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


def problem_for(error: Exception) -> Problem:
    """Say what an error is on the wire."""
    if isinstance(error, HTTPException):
        return _http_problem(error)
    entry = next(PROBLEMS[kind] for kind in type(error).__mro__ if kind in PROBLEMS)
    faults = _faults(error)
    return Problem(
        status=entry.status,
        slug=entry.slug,
        title=entry.title,
        detail=_detail(error, entry, faults),
        retryable=entry.retryable,
        faults=faults,
        headers=HEADERS.get(entry.status, ()) or _later(error, entry),
    )


def answer(error: Exception) -> Response:
    """Turn any error into the response; those that nobody expected are logged with their traceback."""
    problem = problem_for(error)
    name = request_id()
    if problem.status >= 500 and problem.status != 503:
        log.error("a request failed", exc_info=error, extra={"request_id": name, **route_of(request)})
    elif isinstance(error, errors.Unavailable):
        current_service().away.warn(
            "requests are answered 503", reason=error.log_message, request_id=name, **route_of(request)
        )
    instance = request.root_path + request.path
    if is_inference(request.path):
        problem = replace(problem, status=INFERENCE_STATUSES.get(problem.status, problem.status))
        content, content_type = inference_content_of(problem, instance=instance, request_id=name), JSON
    else:
        content, content_type = content_of(problem, instance=instance, request_id=name), CONTENT_TYPE
    response = Response(content, status=problem.status, content_type=content_type)
    if problem.status == 413:
        response.call_on_close(partial(discard_rest, request.environ["wsgi.input"]))
    response.headers[REQUEST_ID] = name
    for name, value in problem.headers:
        response.headers[name] = value
    return response


def answer_malformed_chunks(_: Exception) -> Response:
    """Answer a request whose chunks the web server cannot read."""
    return answer(BadRequest(NO_CHUNKS))


def route_of(asked: Request) -> dict[str, str]:
    """Say for the log what was asked for: the route, not the path, which may hold what a caller made up."""
    return {"method": asked.method, "route": "none" if asked.url_rule is None else asked.url_rule.rule}


def content_of(problem: Problem, *, instance: str, request_id: str) -> bytes:
    """Write a problem document; `instance` is the path that was asked for."""
    return orjson.dumps(document_of(problem, instance=instance, request_id=request_id))


def is_inference(path: str) -> bool:
    """Whether a path belongs to the Open Inference Protocol, which has errors of its own shape."""
    return path == INFERENCE or path.startswith(f"{INFERENCE}/")


def inference_content_of(problem: Problem, *, instance: str, request_id: str) -> bytes:
    """Write an error of the Open Inference Protocol: the sentence under ``error``, the problem's members beside it."""
    return orjson.dumps({"error": problem.detail, **document_of(problem, instance=instance, request_id=request_id)})


def document_of(problem: Problem, *, instance: str, request_id: str | None = None) -> dict[str, Any]:
    """Give a problem document before it is written, with a request id of its own unless one is given."""
    return {
        "type": TYPE_PREFIX + problem.slug,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "request_id": request_id or uuid.uuid4().hex,
        "retryable": problem.retryable,
        "errors": [
            {"pointer": fault.path, "code": fault.code, "message": fault.message}
            for fault in problem.faults[:SHOWN_FAULTS]
        ],
    }


def _detail(error: Exception, entry: Entry, faults: Sequence[espalier.Fault]) -> str:
    return DETAILS[500] if entry.status == 500 else _sentence(faults) or str(error)


def _later(error: Exception, entry: Entry) -> tuple[tuple[str, str], ...]:
    """Say in whole seconds when to try again, where that may help."""
    seconds = math.ceil(error.seconds) if isinstance(error, errors.LimitExceeded) else RETRY_SECONDS
    return (("Retry-After", str(seconds)),) if entry.retryable else ()


def _faults(error: Exception) -> tuple[espalier.Fault, ...]:
    return error.faults if isinstance(error, espalier.InvalidInput | errors.ValidationFailed) else ()


def _sentence(faults: Sequence[espalier.Fault]) -> str:
    shown = "; ".join(
        f"{fault.path}: {fault.message}" if fault.path else fault.message for fault in faults[:FAULTS_IN_DETAIL]
    )
    hidden = len(faults) - FAULTS_IN_DETAIL
    return f"{shown}; and {hidden} more" if hidden > 0 else shown


def _http_problem(error: HTTPException) -> Problem:
    status = HTTPStatus(error.code or 500)
    detail = DETAILS.get(status, status.description or status.phrase)
    headers: tuple[tuple[str, str], ...] = ()
    if status in OWN_WORDS and error.description:
        detail = CUT_SHORT if isinstance(error, ClientDisconnected) else error.description
    if isinstance(error, MethodNotAllowed):
        legal = ", ".join(sorted(error.valid_methods or ()))
        detail, headers = f"{request.method} is not allowed here; legal: {legal}", (("Allow", legal),)
    return Problem(
        status=status,
        slug=status.phrase.lower().replace(" ", "-"),
        title=status.phrase,
        detail=detail,
        headers=headers,
    )
