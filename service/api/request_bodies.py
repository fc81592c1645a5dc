"""Request bodies in bounded memory: media type, Content-Encoding, JSON, multipart/form-data."""

import io
import re
import sys
import time
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import IO, Any, cast

import orjson
from flask import Request
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.formparser import MultiPartParser
from werkzeug.wsgi import LimitedStream, get_input_stream

import espalier
from espalier import Fault
from service.errors import ValidationFailed, check_size
from service.serialization.media_types import JSON, TABLES

BLOCK = 65536
DISCARD_SECONDS = 3.0
MAX_PARTS = 8
MAX_MEMBERS = 100_000  # if a JSON body names fields: a fault is reported for each unknown name, in some 40 microseconds
MEMBER = re.compile(rb'"\s*:')  # ends a member's name; a text that begins with a colon counts, too
MAX_SCHEMA_BYTES = 16 * 2**20
MAX_REFERENCE_BYTES = 2**20  # of a JSON body that refers to files below the store
PARTS = "the legal parts are file and, to declare columns, schema"


def read_json(request: Request, *, kinds: Collection[str] = (JSON,), max_members: int | None = None) -> object:
    """Return the JSON body; NaN, infinities, lone surrogates and nesting beyond 1 024 levels are malformed.

    Raise `TooLarge` if its objects together have more than `max_members` members.
    """
    content = read_bytes(request, kinds=kinds)
    if max_members is not None:
        check_size("members of objects", given=sum(1 for _ in MEMBER.finditer(content)), limit=max_members)
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


def read_bytes(request: Request, *, kinds: Collection[str] | None) -> bytes:
    """Return the decompressed body; refuse media types other than `kinds` (None: accept any).

    A body that is longer than the limit, or shorter than its Content-Length, is refused.
    """
    if kinds is not None and request.mimetype not in kinds:
        raise UnsupportedMediaType(f"the Content-Type must be {' or '.join(kinds)}")
    limit = request.max_content_length
    if request.content_length is None and limit is not None:
        request.max_content_length = limit + 1  # werkzeug silently truncates a body of unknown length
    body = request.get_data(cache=False)
    if request.content_length is not None and len(body) < request.content_length:
        raise ClientDisconnected
    if limit is not None and len(body) > limit:
        raise RequestEntityTooLarge
    return decompress(body, request.headers.get("Content-Encoding", ""), limit=limit or sys.maxsize)


def open_body(request: Request, *, limit: int) -> espalier.ByteStream:
    """Return a stream of the decompressed body. The body may have at most `limit` bytes before decompression.

    The call, or reading the stream, raises an error if the body is too long, or shorter than its Content-Length.
    """
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise UnsupportedMediaType("the Content-Encoding must be gzip or none")
    length = request.content_length
    if length is not None and length > limit:
        raise RequestEntityTooLarge
    stream = get_input_stream(request.environ)
    # Behind gunicorn a truncated body simply ends: only `LimitedStream` compares its length with the Content-Length.
    body: Any = LimitedStream(stream, limit + 1 if length is None else length, is_max=length is None)
    return espalier.unpacked(body) if encoding == "gzip" else body


def peek_json(stream: espalier.ByteStream) -> tuple[Any, espalier.ByteStream]:
    """Return the body's JSON if it is short and contains ``"reference"``, else None; and a stream of the whole body."""
    start = b""
    while len(start) <= MAX_REFERENCE_BYTES and (block := stream.read(BLOCK)):
        start += block
    head = io.BytesIO(start)
    if len(start) <= MAX_REFERENCE_BYTES and b'"reference"' in start:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(start), head
    return None, cast(Any, SimpleNamespace(read=lambda size: head.read(size) or stream.read(size)))


@contextmanager
def open_parts(request: Request, stream: Any, *, limit: int) -> Iterator[tuple[FileStorage, Any]]:
    """Yield the file and the decoded schema (None if not sent) of a multipart body; read at most `limit` bytes."""
    parser = MultiPartParser(max_form_memory_size=MAX_SCHEMA_BYTES, max_form_parts=MAX_PARTS)
    try:
        boundary = request.mimetype_params.get("boundary", "").encode("ascii")
        if not boundary:
            raise BadRequest("a multipart body needs a boundary in its Content-Type")
        fields, files = parser.parse(cast(Any, LimitedStream(stream, limit + 1, is_max=True)), boundary, None)
    except ValueError:
        raise BadRequest("the body is not well-formed multipart/form-data") from None
    try:
        times = {name: len([*fields.getlist(name), *files.getlist(name)]) for name in sorted({*fields, *files})}
        faults = [Fault(f"/{name}", "unknown_field", PARTS) for name in times if name not in ("file", "schema")]
        faults += [Fault(f"/{name}", "repeated", "must not be given twice") for name, n in times.items() if n > 1]
        if "file" not in files:
            faults.append(Fault("/file", "required", PARTS))
        ValidationFailed.raise_for(faults)
        schema = files["schema"].stream.read(MAX_SCHEMA_BYTES + 1) if "schema" in files else fields.get("schema")
        if schema is not None and len(schema) > MAX_SCHEMA_BYTES:
            raise RequestEntityTooLarge
        try:
            declared = orjson.loads(schema) if schema is not None and schema.strip() else None
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"the part schema is not JSON: {error}") from None
        yield files["file"], declared
    finally:
        for _, file in files.items(multi=True):
            file.close()


def open_file(part: FileStorage) -> tuple[espalier.ByteStream, str]:
    """Return a stream of the decompressed file, and its format, by the file name or else by the media type."""
    try:
        form = espalier.format_of(part.filename or "")
    except espalier.DataError:
        form = TABLES.get(part.mimetype, "")
    if not form:
        endings = ", ".join(ending for known in espalier.FORMATS.values() for ending in known.endings)
        legal = f"the name must end in {endings}, optionally with .gz, or the Content-Type be {', '.join(TABLES)}"
        raise ValidationFailed.of("/file", "unknown_format", legal)
    return espalier.unpacked_file(part.stream), form


def discard_rest(stream: IO[bytes]) -> None:
    """Read the rest of a refused body, for a limited time: many clients read no response before they have sent all."""
    deadline = time.monotonic() + DISCARD_SECONDS
    with suppress(Exception):  # the client is gone, or does not send HTTP
        while stream.read(BLOCK) and time.monotonic() < deadline:
            pass


def decompress(body: bytes, encoding: str, *, limit: int) -> bytes:
    """Return the decompressed body; refuse it above `limit` bytes. Deflate is in zlib's format (RFC 9110) or raw."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in ("gzip", "deflate"):
        raise UnsupportedMediaType("the Content-Encoding must be gzip, deflate or none")
    try:
        stream = LimitedStream(cast(Any, espalier.unpacked(io.BytesIO(body))), limit + 1, is_max=True)
        content = stream.readall() if name == "gzip" else _inflate(body, limit)
    except (zlib.error, espalier.DataError):
        raise BadRequest(f"the body does not match its Content-Encoding: {name}") from None
    if len(content) > limit:
        raise RequestEntityTooLarge
    return content


def _inflate(body: bytes, limit: int) -> bytes:
    # In zlib's format (RFC 1950), the first two bytes are a multiple of 31, and the low half of the first byte is 8.
    has_frame = body[:1] and body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
    stream = zlib.decompressobj(zlib.MAX_WBITS if has_frame else -zlib.MAX_WBITS)
    content = stream.decompress(body, limit + 1)
    if len(content) <= limit and (not stream.eof or stream.unused_data):
        raise BadRequest("the compressed body is truncated, or has bytes after its end")
    return content
