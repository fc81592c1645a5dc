"""Responses made without detours: bytes by orjson, a content type, a status."""

import hashlib
from collections.abc import Mapping
from typing import TypeVar

import marshmallow as ma
import orjson
from flask import Response, request

from service.errors import PreconditionFailed
from service.repositories.pages import Page

Item = TypeVar("Item")

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


def json_answer(payload: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with `payload` as JSON."""
    return Response(orjson.dumps(payload), status=status, content_type=JSON, headers=headers)


def tagged_answer(payload: object) -> Response:
    """Answer with `payload` as JSON, tagged."""
    return bytes_answer(orjson.dumps(payload), content_type=JSON)


def bytes_answer(content: bytes | str, *, content_type: str) -> Response:
    """Answer with what is finished already and an ETag made of it; one who has that already gets 304 without a body.

    Only If-None-Match is looked at: the other conditions guard changes, and who reads changes nothing.
    """
    response = Response(content, content_type=content_type)
    tag = _tag_of(response.get_data())
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    response.set_etag(tag)
    return response


def changed_answer(payload: object) -> Response:
    """Answer a change with what it made, as GET would, and the ETag of that."""
    response = json_answer(payload)
    response.set_etag(_tag_of(response.get_data()))
    return response


def refuse_if_changed(payload: object) -> None:
    """Refuse a change where the caller has seen another answer than `payload`, by If-Match (RFC 9110, section 13.1.1).

    To be called in the transaction of the change, once nobody else can change what is shown.

    Raises:
        PreconditionFailed: No ETag of the header is that of the answer that GET would give now.
    """
    if has_condition() and not request.if_match.contains(_tag_of(orjson.dumps(payload))):
        raise PreconditionFailed(
            "its ETag is none of those in If-Match: GET it again, and decide again; nothing was changed"
        )


def has_condition() -> bool:
    """Whether the caller wants a change only of what it has seen."""
    return "If-Match" in request.headers


def page_answer(page: Page[Item], schema: ma.Schema) -> Response:
    """Answer with one page of a list, each item shown by `schema`, tagged."""
    return tagged_answer({"items": schema.dump(page.items, many=True), "next": page.next})


def _tag_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
