"""Request bodies, read with care: of the right kind, in bounded memory, before anything else looks at them."""

import sys
import time
from collections.abc import Collection
from contextlib import suppress
from typing import IO

import orjson
from flask import Request
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType

from service.api.compression import unpacked

JSON = "application/json"
CSV = "text/csv"
BLOCK = 65536
DISCARD_SECONDS = 3.0


def read_json(request: Request) -> object:
    """Decode a JSON body; NaN, infinities, lone surrogates and nesting beyond 1 024 are malformed.

    Raises:
        UnsupportedMediaType: The body is not said to be JSON, or its Content-Encoding is not known.
        BadRequest: The body is not JSON.
        RequestEntityTooLarge: The body is longer than the limit; raised before it is in memory.
    """
    return decoded(read_bytes(request, kinds=(JSON,)))


def decoded(body: bytes | bytearray) -> object:
    """Decode JSON, as `read_json` does.

    Raises:
        BadRequest: It is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def read_bytes(request: Request, *, kinds: Collection[str]) -> bytes:
    """Give the body, unpacked, if its content type is one of `kinds`.

    Raises:
        UnsupportedMediaType: Another content type, or a Content-Encoding other than gzip and deflate.
        RequestEntityTooLarge: The body is longer than the limit, packed or not; raised before it is in memory.
        BadRequest: It is not what its Content-Encoding says.
    """
    if request.mimetype not in kinds:
        raise UnsupportedMediaType(f"the Content-Type must be {' or '.join(kinds)}")
    body = read_whole(request)
    encoding = request.headers.get("Content-Encoding")
    return body if encoding is None else unpacked(body, encoding, limit=request.max_content_length or sys.maxsize)


def read_whole(request: Request) -> bytes:
    """Give the body as it came, whatever it is said to be.

    Raises:
        RequestEntityTooLarge: The body is longer than the limit; raised before it is in memory.
        ClientDisconnected: It is shorter than it says.
    """
    body = request.get_data(cache=False)
    if request.content_length is not None and len(body) < request.content_length:
        raise ClientDisconnected
    limit = request.max_content_length
    if request.content_length is None and limit is not None and len(body) >= limit:
        raise RequestEntityTooLarge  # a body of unknown length is cut off at the limit, without a word
    return body


def discard_rest(stream: IO[bytes]) -> None:
    """Read the rest of a body that was refused, once the answer is sent.

    Many clients send all of a body before they look at the answer; cut off in the middle they would never see it.
    """
    deadline = time.monotonic() + DISCARD_SECONDS
    with suppress(Exception):  # nothing more comes, or it is no longer HTTP
        while stream.read(BLOCK) and time.monotonic() < deadline:
            pass
