"""Responses: JSON, pages of a list, pictures, and their compression."""

import base64
import gzip
import hashlib
import zlib
from collections.abc import Callable, Mapping
from typing import TypeVar

import marshmallow as ma
import orjson
from flask import Response, request

import espalier
from service.api.etags import tagged_bytes, tagged_response
from service.repositories.pagination import Page
from service.serialization.media_types import JSON, SVG

Item = TypeVar("Item")

MIN_COMPRESSED_BYTES = 1024  # a shorter response is not compressed
COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": lambda content: gzip.compress(content, 1, mtime=0),
    "deflate": lambda content: zlib.compress(content, 1),
}
STYLE_HASH = base64.b64encode(hashlib.sha256(espalier.SVG_STYLE.encode()).digest()).decode()
# A browser that shows a picture as a page may use the style sheet in the picture, and load nothing else.
PICTURE_POLICY = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)


def json_response(payload: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return `payload` as JSON."""
    content = orjson.dumps(payload, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, status=status, mimetype=JSON, headers=headers)


def created_response(payload: object, path: str, *, status: int = 201) -> Response:
    """Return `payload` as JSON with the path of the new resource."""
    return json_response(payload, status=status, headers={"Location": request.root_path + path})


def page_response(page: Page[Item], schema: ma.Schema) -> Response:
    """Return one page of a list, each item dumped by `schema`, with an ETag."""
    return tagged_response({"items": schema.dump(page.items, many=True), "next": page.next})


def svg_response(svg: str) -> Response:
    """Return a picture with an ETag and a policy that lets browsers load nothing else."""
    response = tagged_bytes(svg, SVG)
    response.headers["Content-Security-Policy"] = PICTURE_POLICY
    return response


def compressed(response: Response) -> Response:
    """Compress a body of at least `MIN_COMPRESSED_BYTES` if Accept-Encoding allows it; return the response."""
    response.vary.add("Accept-Encoding")
    content, accepted = response.get_data(), request.accept_encodings
    name = max(COMPRESS, key=accepted.quality)  # the first one if both have the same quality
    if accepted.quality(name) > 0 and len(content) >= MIN_COMPRESSED_BYTES:
        response.set_data(COMPRESS[name](content))
        response.content_encoding = name
    return response
