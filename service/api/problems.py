"""Errors as responses: problem documents (RFC 9457), below /v2 with the additional member ``error``.

``PROBLEMS`` maps the exceptions of `espalier` and `service` to statuses; a test checks that it has every error class.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import orjson
from flask import Request, Response, request
from werkzeug.exceptions import BadRequest, ClientDisconnected, HTTPException, MethodNotAllowed

import espalier
from service import errors
from service.api.context import REQUEST_ID, current_service, request_id
from service.api.routing import is_inference
from service.database import ALIAS_RULE, MODEL_NAME_RULE
from service.serialization.media_types import JSON, PROBLEM

log = logging.getLogger("service")

RETRY_SECONDS = 1
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="espalier"'}
FAULTS_IN_DETAIL = 3
SHOWN_FAULTS = 100  # a body may have a million wrong cells


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document before it is encoded; `slug` is the stable end of its ``type``."""

    status: int
    slug: str
    title: str
    retryable: bool = False
    detail: str = ""
    faults: tuple[espalier.Fault, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


PROBLEMS: Mapping[type[Exception], Problem] = {
    espalier.SchemaError: Problem(422, "invalid-schema", "The declaration of the columns is not valid"),
    espalier.DataError: Problem(422, "invalid-data", "The data set is not valid"),
    espalier.ConfigError: Problem(422, "invalid-configuration", "The configuration is not valid"),
    espalier.RowError: Problem(422, "invalid-rows", "The rows are not valid"),
    espalier.DocumentError: Problem(422, "invalid-document", "The model document is not valid"),
    espalier.EstimatorError: Problem(422, "invalid-input", "The input is not valid"),
    espalier.InvalidInput: Problem(422, "invalid-input", "The input is not valid"),
    espalier.TooLarge: Problem(413, "too-large", "Too large"),
    espalier.NotApplicable: Problem(422, "not-applicable", "The method cannot be applied"),
    espalier.ClusterError: Problem(503, "no-cluster", "The cluster cannot be used"),
    espalier.Cancelled: Problem(409, "cancelled", "The work was cancelled"),
    espalier.EspalierError: Problem(422, "refused", "The request cannot be carried out"),
    errors.NotFound: Problem(404, "not-found", "Not found"),
    errors.Unauthenticated: Problem(401, "unauthorized", "A key is needed", headers=CHALLENGE),
    errors.Forbidden: Problem(403, "forbidden", "The key does not allow this"),
    errors.CrossOriginRequest: Problem(403, "foreign-page", "The request may come from another site"),
    errors.Conflict: Problem(409, "conflict", "The present state does not allow the request"),
    errors.StoreChanged: Problem(409, "conflict", "The present state does not allow the request"),
    errors.PreconditionFailed: Problem(412, "changed", "A condition of the request does not hold"),
    errors.RequestInProgress: Problem(409, "still-running", "The same request is still running", retryable=True),
    errors.ValidationFailed: Problem(422, "invalid-request", "The request is not valid"),
    errors.LimitExceeded: Problem(429, "too-many", "Too many requests or jobs", retryable=True),
    errors.Unavailable: Problem(503, "unavailable", "Temporarily unavailable", retryable=True),
    errors.StoreUnavailable: Problem(503, "unavailable", "Temporarily unavailable", retryable=True),
    errors.SchemaMismatch: Problem(503, "other-tables", "The database tables are of another version", retryable=True),
    errors.LeaseLost: Problem(409, "lease-lost", "The lease of the job is lost", retryable=True),
    errors.SettingsError: Problem(500, "internal-error", "Internal error"),
    errors.ServiceError: Problem(500, "internal-error", "Internal error"),
    Exception: Problem(500, "internal-error", "Internal error"),
}

# Details of the errors that Flask and werkzeug raise.
DETAILS: Mapping[int, str] = {
    404: f"there is nothing at this path; see /docs. {MODEL_NAME_RULE[0].upper()}{MODEL_NAME_RULE[1:]} (so no '/'); "
    f"{ALIAS_RULE}; versions are whole numbers from 1; ids are those that the service returned",
    413: "the body is longer than the limit of this service",
    500: "the request failed; the service's log has the reason under this request_id",
}
TRUNCATED = "the body is truncated: it is shorter than its Content-Length, or its last chunk is missing"
BAD_CHUNKS = BadRequest("the body is malformed: Transfer-Encoding is chunked, but its chunks are not valid HTTP/1.1")
OWN_DETAILS = frozenset({400, 415, 501})  # statuses that our own code raises with a detail


def problem_for(error: Exception) -> Problem:
    """Return the problem that describes an error to the client."""
    if isinstance(error, HTTPException):
        return _http_problem(error)
    faults = error.faults if isinstance(error, espalier.InvalidInput | errors.ValidationFailed) else ()
    if getattr(error, "errno", None) in errors.DISK_FULL or [fault.code for fault in faults] == ["disk_full"]:
        error, faults = errors.Unavailable("a disk of the service is full; try again when it has free space"), ()
    problem = next(PROBLEMS[kind] for kind in type(error).__mro__ if kind in PROBLEMS)
    detail = DETAILS[500] if problem.status == 500 else _sentence(faults) or str(error)
    headers = problem.headers
    if problem.retryable:
        seconds = math.ceil(error.seconds) if isinstance(error, errors.LimitExceeded) else RETRY_SECONDS
        headers = {"Retry-After": str(seconds)}
    return replace(problem, detail=detail, faults=faults, headers=headers)


def problem_response(error: Exception) -> Response:
    """Return the response for any error; `log_problem` logs the error if necessary."""
    problem = problem_for(error)
    log_problem(error, problem)
    name = request_id()
    is_oip = is_inference(request.path)
    if is_oip and problem.status == 422:  # the Open Inference Protocol has no 422
        problem = replace(problem, status=400)
    document = document_of(problem, instance=request.root_path + request.path, request_id=name)
    content = orjson.dumps({"error": problem.detail, **document} if is_oip else document)
    response = Response(content, status=problem.status, content_type=JSON if is_oip else PROBLEM)
    response.headers.update({REQUEST_ID: name, **problem.headers})
    return response


def is_unexpected(problem: Problem) -> bool:
    """Return whether the problem is a fault of the service, so that it must be logged."""
    return problem.status >= 500 and problem.status not in (501, 503)


def log_problem(error: Exception, problem: Problem) -> None:
    """Log an unexpected error with its traceback; for a retryable 503, log a rate-limited warning."""
    fields = {"request_id": request_id(), **route_of(request)}
    if is_unexpected(problem):
        log.error("a request failed", exc_info=error, extra=fields)
    elif problem.retryable and problem.status == 503:
        reason = getattr(error, "log_message", str(error))
        current_service().unavailable.warn("requests are answered 503", reason=reason, **fields)


def route_of(request: Request) -> dict[str, str]:
    """Return method and route for the log; the path is not logged, since clients choose it."""
    return {"method": request.method, "route": "none" if request.url_rule is None else request.url_rule.rule}


def document_of(problem: Problem, *, instance: str, request_id: str) -> dict[str, Any]:
    """Return a problem document."""
    return {
        "type": f"urn:espalier:problem:{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "request_id": request_id,
        "retryable": problem.retryable,
        "errors": errors.fault_members(problem.faults[:SHOWN_FAULTS]),
    }


def _sentence(faults: Sequence[espalier.Fault]) -> str:
    shown = "; ".join(map(str, faults[:FAULTS_IN_DETAIL]))
    hidden = len(faults) - FAULTS_IN_DETAIL
    return f"{shown}; and {hidden} more" if hidden > 0 else shown


def _http_problem(error: HTTPException) -> Problem:
    status = HTTPStatus(error.code or 500)
    detail = DETAILS.get(status, status.description or status.phrase)
    headers = {}
    if status in OWN_DETAILS and error.description:
        detail = TRUNCATED if isinstance(error, ClientDisconnected) else error.description
    if isinstance(error, MethodNotAllowed):
        legal = ", ".join(sorted(error.valid_methods or ()))
        detail, headers = f"{request.method} is not allowed here; legal: {legal}", {"Allow": legal}
    return Problem(status, status.phrase.lower().replace(" ", "-"), status.phrase, detail=detail, headers=headers)
