"""Responses made without detours: bytes by orjson, a content type, a status."""

import hashlib
from collections.abc import Mapping
from typing import TypeVar

import marshmallow as ma
import orjson
from flask import Response, request

from service.paging import Page

Item = TypeVar("Item")

__all__ = ["JSON", "TEXT", "bytes_answer", "json_answer", "page_answer", "tagged_answer"]

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
    tag = hashlib.sha256(response.get_data()).hexdigest()
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    response.set_etag(tag)
    return response


def page_answer(page: Page[Item], schema: ma.Schema) -> Response:
    """Answer with one page of a list, each item shown by `schema`, tagged."""
    return tagged_answer({"items": schema.dump(page.items, many=True), "next": page.next})
