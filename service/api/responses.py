"""Responses: JSON, pages of a list, trees and pictures; ETags, with which a client may keep a response.

An ETag is the SHA-256 of the response as GET sends it, so it changes with everything that the response shows. A change
is refused if the client has seen an older state.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import TypeVar

import marshmallow as ma
import orjson
from flask import Response, request

import espalier
from service.errors import PreconditionFailed
from service.repositories.pages import Page
from service.serialization.media_types import JSON, SVG

Item = TypeVar("Item")

_STYLE_HASH = base64.b64encode(hashlib.sha256(espalier.SVG_STYLE.encode()).digest()).decode()
# A browser shows a picture as a page, which may use its own style sheet and nothing else.
PICTURE_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)


def json_response(payload: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return `payload` as JSON."""
    content = orjson.dumps(payload, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, status=status, mimetype=JSON, headers=headers)


def created_response(payload: object, path: str, *, status: int = 201) -> Response:
    """Return `payload` as JSON with the path of the new resource."""
    return json_response(payload, status=status, headers={"Location": request.root_path + path})


def tagged_response(payload: object) -> Response:
    """Return `payload` as JSON with an ETag."""
    return tagged_bytes(orjson.dumps(payload), JSON)


def tagged_bytes(content: bytes | str, media_type: str) -> Response:
    """Return `content` with its ETag; 304 without a body if the caller has it already.

    Raises:
        PreconditionFailed: If-Match, which comes first (RFC 9110, 13.2.2), has another ETag.
    """
    response = Response(content, mimetype=media_type)
    tag = _tag_of(response.get_data())
    if "If-Match" in request.headers and not request.if_match.contains(tag):
        raise PreconditionFailed("the current ETag is none of those in If-Match")
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    response.set_etag(tag)
    return response


def changed_response(payload: object) -> Response:
    """Return the result of a change with the ETag that GET would return."""
    response = Response(orjson.dumps(payload), mimetype=JSON)
    response.set_etag(_tag_of(response.get_data()))
    return response


def refuse_if_changed(current: Callable[[], object]) -> None:
    """Refuse a change if If-Match or If-None-Match does not hold for the current response (RFC 9110, 13.1.1, 13.1.2).

    Call it in the transaction of the change; `current` locks the thing. It raises `PreconditionFailed`.
    """
    if "If-Match" not in request.headers and "If-None-Match" not in request.headers:
        return
    tag = _tag_of(orjson.dumps(current()))
    if "If-Match" in request.headers and not request.if_match.contains(tag):
        raise PreconditionFailed(
            "the current ETag is none of those in If-Match; nothing was changed: GET it again and decide again"
        )
    if request.if_none_match.contains_weak(tag):
        raise PreconditionFailed("the current ETag is one of those in If-None-Match; nothing was changed")


def page_response(page: Page[Item], schema: ma.Schema) -> Response:
    """Return one page of a list, each item dumped by `schema`, with an ETag."""
    return tagged_response({"items": schema.dump(page.items, many=True), "next": page.next})


def svg_response(svg: str) -> Response:
    """Return a picture."""
    response = tagged_bytes(svg, SVG)
    response.headers["Content-Security-Policy"] = PICTURE_POLICY
    return response


def _tag_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
