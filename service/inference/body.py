"""The body of an inference request: JSON, then the bytes of the tensors that are not in it.

    | {"inputs": [{…, "parameters": {"binary_data_size": 16}}, …]} | 16 bytes | …       in a Content-Encoding, or not
      Inference-Header-Content-Length, before packing                in the order of the inputs

What real clients do decides: no Content-Type is asked for, and a missing number in the JSON may be a bare NaN.
"""

import re
from dataclasses import dataclass
from typing import Any

import orjson
from flask import Request
from werkzeug.exceptions import BadRequest

from service.api.compression import unpacked
from service.api.requests import read_whole

HEADER_LENGTH = "Inference-Header-Content-Length"
DIGITS = re.compile(r"[0-9]{1,18}")
# A text as a whole, ended or not, so that nothing inside one is looked at; or a number that JSON does not have.
NO_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?|NaN\b|-?Infinity\b', re.DOTALL)
NOTHING: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Framed:
    """A request's JSON object, decoded, and the bytes after it."""

    json: dict[str, Any]
    binary: memoryview


def read_framed(request: Request, *, optional: bool = False) -> Framed:
    """Read a body into its JSON object and the bytes behind.

    Args:
        request: Whose body is read.
        optional: Whether nothing at all stands for an empty object.

    Raises:
        UnsupportedMediaType: A Content-Encoding that is not known.
        BadRequest: Not packed as is said, not JSON, no object, or not as long as is said.
        RequestEntityTooLarge: Longer than the limit, as it came or unpacked.
    """
    body = read_whole(request)
    limit = request.max_content_length or len(body)
    body = unpacked(body, request.headers.get("Content-Encoding", ""), limit=limit)
    if optional and not body:
        return Framed(NOTHING, memoryview(b""))
    return framed(body, request.headers.get(HEADER_LENGTH))


def framed(body: bytes, given: str | None) -> Framed:
    """Part a body that is not packed; `given` is what the header says of the length of the JSON.

    Raises:
        BadRequest: Not JSON, no object, or not as long as is said.
    """
    length = len(body) if given is None else _length(given, most=len(body))
    whole = memoryview(body)
    decoded = _decoded(body if length == len(body) else body[:length])
    if not isinstance(decoded, dict):
        raise BadRequest("the body must be a JSON object")
    return Framed(decoded, whole[length:])


def _length(given: str, *, most: int) -> int:
    if not DIGITS.fullmatch(given.strip()) or int(given) > most:
        raise BadRequest(
            f"{HEADER_LENGTH} must be the length of the JSON in bytes, before any packing: at most the body's"
        )
    return int(given)


def _decoded(content: bytes) -> object:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in content and b"Infinity" not in content:
            raise BadRequest(f"the body is not JSON: {error}") from None
    try:
        return orjson.loads(NO_NUMBER.sub(_finite, content))
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def _finite(found: re.Match[bytes]) -> bytes:
    """Leave a text as it is, and make of NaN the null that stands for missing."""
    text = found[0]
    if text.startswith(b'"'):
        return text
    if text == b"NaN":
        return b"null"
    raise BadRequest("numbers must be finite; a missing one is null or NaN")
