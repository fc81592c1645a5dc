"""ETags: a client can revalidate a cached response, and a change with the If-Match of an older state is refused.

An ETag is the SHA-256 of the body that GET returns, so it changes whenever this body changes.
"""

import hashlib
from collections.abc import Callable

import orjson
from flask import Response, request

from service.errors import PreconditionFailed
from service.serialization.media_types import JSON


def tagged_response(payload: object) -> Response:
    """Return `payload` as JSON with an ETag."""
    return tagged_bytes(orjson.dumps(payload), JSON)


def tagged_bytes(content: bytes | str, media_type: str) -> Response:
    """Return `content` with its ETag; 304 if If-None-Match has it; raise `PreconditionFailed` if If-Match lacks it."""
    response = Response(content, mimetype=media_type)
    tag = _tag_of(response.get_data())
    if "If-Match" in request.headers and not request.if_match.contains(tag):  # checked first: RFC 9110, 13.2.2
        raise PreconditionFailed("the current ETag is none of those in If-Match")
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    response.set_etag(tag)
    return response


def changed_response(payload: object) -> Response:
    """Return the result of a change; its ETag is the one that GET would return."""
    response = Response(orjson.dumps(payload), mimetype=JSON)
    response.set_etag(_tag_of(response.get_data()))
    return response


def refuse_if_changed(current: Callable[[], object]) -> None:
    """Raise `PreconditionFailed` if If-Match or If-None-Match forbids the change (RFC 9110, 13.1.1, 13.1.2).

    Call this function in the transaction of the change. `current` locks the resource and returns what GET would return.
    """
    if "If-Match" not in request.headers and "If-None-Match" not in request.headers:
        return
    tag = _tag_of(orjson.dumps(current()))
    if "If-Match" in request.headers and not request.if_match.contains(tag):
        raise PreconditionFailed("the current ETag is none of those in If-Match; nothing was changed: GET it again")
    if request.if_none_match.contains_weak(tag):
        raise PreconditionFailed("the current ETag is one of those in If-None-Match; nothing was changed")


def _tag_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
