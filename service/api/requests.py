"""Request bodies: of the expected type, unpacked, in bounded memory."""

import gzip
import io
import sys
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import IO

import orjson
from flask import Request
from werkzeug.datastructures import Accept
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.http import parse_accept_header

import espalier

JSON = "application/json"
CSV = "text/csv"
BLOCK = 65536
DISCARD_SECONDS = 3.0
PACK_FROM_BYTES = 1024  # a shorter answer is not packed
PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": lambda content: gzip.compress(content, 1, mtime=0),
    "deflate": lambda content: zlib.compress(content, 1),
}


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


def unpacked(body: bytes, encoding: str, *, limit: int) -> bytes:
    """Undo a Content-Encoding; never much more than `limit` bytes are in memory.

    Args:
        body: The body as it came.
        encoding: ``identity``, ``gzip`` or ``deflate`` (by RFC 9110 with zlib's frame; some clients send it without).
        limit: Maximum length of the result in bytes.

    Raises:
        UnsupportedMediaType: Another encoding, or several.
        RequestEntityTooLarge: The result is longer than `limit`.
        BadRequest: The body is not in this encoding, is cut short, or goes on after its end.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in PACKERS:
        raise UnsupportedMediaType(f"the Content-Encoding must be {', '.join(PACKERS)} or none")
    try:
        content = _gunzipped(body, limit) if name == "gzip" else _inflated(body, limit)
    except (zlib.error, espalier.DataError):
        raise BadRequest(f"the body is not what its Content-Encoding says: {name}") from None
    if len(content) > limit:
        raise RequestEntityTooLarge
    return content


def packed(content: bytes, accepted: str | None) -> tuple[bytes, str | None]:
    """Return `content` in an encoding that the header Accept-Encoding names, and its name; else unchanged, and None."""
    if len(content) < PACK_FROM_BYTES or not accepted:
        return content, None
    offered = parse_accept_header(accepted, Accept)
    name = max(PACKERS, key=offered.quality)  # of equals the first
    return (PACKERS[name](content), name) if offered.quality(name) > 0 else (content, None)


def _gunzipped(body: bytes, limit: int) -> bytes:
    stream = espalier.unpacked(io.BytesIO(body))
    content = bytearray()
    while len(content) <= limit and (part := stream.read(BLOCK)):
        content += part
    return bytes(content)


def _inflated(body: bytes, limit: int) -> bytes:
    # RFC 1950 begins with two bytes that are a multiple of 31, the method 8 in the lower half of the first.
    has_frame = body[:1] and body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
    stream = zlib.decompressobj(zlib.MAX_WBITS if has_frame else -zlib.MAX_WBITS)
    content = stream.decompress(body, limit + 1)
    if len(content) <= limit and (not stream.eof or stream.unused_data):
        raise BadRequest("the body ends in the middle of what was compressed, or goes on after its end")
    return content
