"""Request bodies, read with care: of the right kind, in bounded memory, before anything else looks at them."""

from collections.abc import Collection

import orjson
from flask import Request
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

__all__ = ["CSV", "JSON", "read_bytes", "read_json"]

JSON = "application/json"
CSV = "text/csv"


def read_json(request: Request) -> object:
    """Decode a JSON body; NaN, infinities, lone surrogates and nesting beyond 1 024 are malformed.

    Raises:
        UnsupportedMediaType: The body is not said to be JSON, or it is compressed.
        BadRequest: The body is not JSON.
        RequestEntityTooLarge: The body is longer than the limit; raised before it is in memory.
    """
    body = read_bytes(request, kinds=(JSON,))
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def read_bytes(request: Request, *, kinds: Collection[str]) -> bytes:
    """Give the body as it came, if its content type is one of `kinds`.

    Raises:
        UnsupportedMediaType: Another content type, or a compressed body.
        RequestEntityTooLarge: The body is longer than the limit; raised before it is in memory.
    """
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise UnsupportedMediaType("a body in a Content-Encoding is not taken: send it as it is")
    if request.mimetype not in kinds:
        raise UnsupportedMediaType(f"the Content-Type must be {' or '.join(kinds)}")
    return request.get_data(cache=False)
