"""Bodies that are data sets: in which format they are, where they are in the request, and the bytes as they come."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import orjson
from flask import Request
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.formparser import MultiPartParser
from werkzeug.wsgi import get_input_stream

import espalier
from espalier import Fault
from service.errors import ValidationFailed

CONTENT_TYPES: Mapping[str, str] = {
    "text/csv": "csv",
    "application/json": "json",
    "application/x-ndjson": "ndjson",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.apache.arrow.stream": "arrow",
    "text/x-arff": "arff",
}
"""Content type -> the core's name of the format."""
MULTIPART = "multipart/form-data"
ENCODINGS = ("identity", "gzip")
GZIP_MAGIC = b"\x1f\x8b"
BLOCK = 2**20
MOST_PARTS = 8
SCHEMA_BYTES = 16 * 2**20
PARTS = "legal: file, and schema if the columns are declared"


@dataclass(frozen=True, slots=True)
class Upload:
    """A body that is a data set: its bytes, unpacked as they are read, their format, and the declaration with them."""

    stream: espalier.ByteStream
    form: str
    schema: Any = None


@contextmanager
def open_upload(request: Request, *, limit: int) -> Iterator[Upload]:
    """Open the body of a request, of at most `limit` bytes, without reading it yet; of a multipart body read the parts.

    Raises:
        UnsupportedMediaType: Another content type or Content-Encoding.
        RequestEntityTooLarge: The body is longer than the limit; also raised while the upload is read.
        BadRequest: The body is shorter than it says, or no multipart body; also raised while the upload is read.
        ValidationFailed: A part of a multipart body is missing, or there is one too many.
    """
    stream = _decoded(request, _Body(request, limit=limit))
    if request.mimetype == MULTIPART:
        with _parts(request, stream, limit=limit) as upload:
            yield upload
        return
    if request.mimetype not in CONTENT_TYPES:
        raise UnsupportedMediaType(f"the Content-Type must be {', '.join(CONTENT_TYPES)} or {MULTIPART}")
    yield Upload(stream, CONTENT_TYPES[request.mimetype])


class _Body:
    """The bytes of a request, counted."""

    def __init__(self, request: Request, *, limit: int) -> None:
        self._length = request.content_length
        if self._length is not None and self._length > limit:
            raise RequestEntityTooLarge
        self._stream = get_input_stream(request.environ)  # not with a limit: that copies all of it twice
        self._limit = limit
        self._n_bytes = 0

    def read(self, size: int, /) -> bytes:
        """Give up to `size` bytes, none at the end.

        Raises:
            RequestEntityTooLarge: There are more than are allowed.
            ClientDisconnected: There are fewer than were announced, or the last chunk is missing.
            gunicorn.http.errors.ParseException: A chunk is not well-formed.
        """
        with _connected():
            block = self._stream.read(size)
        self._count(len(block))
        return block

    def _count(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        if self._n_bytes > self._limit:
            raise RequestEntityTooLarge
        if not n_bytes and self._length is not None and self._n_bytes < self._length:
            raise ClientDisconnected


@contextmanager
def _connected() -> Iterator[None]:
    """Say of a connection that is broken off, or closed already, that it is gone."""
    try:
        yield
    except (OSError, ValueError):
        raise ClientDisconnected from None


class _Bounded:
    """A temporary file that takes no more than so many bytes."""

    def __init__(self, limit: int) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_parts`
        self._room = limit

    def write(self, block: bytes) -> int:
        self._room -= len(block)
        if self._room < 0:
            raise RequestEntityTooLarge
        return self.file.write(block)

    def seek(self, place: int) -> int:
        return self.file.seek(place)

    def read(self, size: int = -1) -> bytes:
        return self.file.read(size)

    def close(self) -> None:
        self.file.close()


def _decoded(request: Request, stream: espalier.ByteStream) -> espalier.ByteStream:
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ENCODINGS:
        raise UnsupportedMediaType(f"the Content-Encoding must be {' or '.join(ENCODINGS)}")
    return espalier.unpacked(stream) if encoding == "gzip" else stream


@contextmanager
def _parts(request: Request, stream: espalier.ByteStream, *, limit: int) -> Iterator[Upload]:
    parser = MultiPartParser(
        stream_factory=lambda **_: _Bounded(limit),  # type: ignore[arg-type] # what it uses of a file
        max_form_memory_size=SCHEMA_BYTES,
        max_form_parts=MOST_PARTS,
        buffer_size=BLOCK,
    )
    boundary = request.mimetype_params.get("boundary", "")
    if not boundary:
        raise BadRequest("a multipart body needs its boundary in the Content-Type")
    try:
        fields, files = parser.parse(stream, boundary.encode("ascii"), None)  # type: ignore[arg-type] # it only reads
    except ValueError:
        raise BadRequest("the body is not well-formed multipart/form-data") from None
    try:
        unknown = {*fields, *files} - {"file", "schema"}
        if unknown or len(files.getlist("file")) != 1 or "file" in fields:
            places = [f"/{name}" for name in sorted(unknown)] or ["/file"]
            raise ValidationFailed(
                [Fault(place, "unknown_field" if unknown else "required", PARTS) for place in places]
            )
        schema = files["schema"].stream.read() if "schema" in files else fields.get("schema")
        yield _of_part(files["file"], _declared(schema))
    finally:
        for _, file in files.items(multi=True):
            file.close()


def _of_part(part: FileStorage, schema: Any) -> Upload:
    """Tell the format of a file by the ending of its name, else by its content type."""
    try:
        form = espalier.format_of(part.filename or "")
    except espalier.DataError:
        form = CONTENT_TYPES.get(part.mimetype, "")
    if not form:
        endings = ", ".join(ending for known in espalier.FORMATS.values() for ending in known.endings)
        message = (
            f"the file's name must end in {endings}, also with .gz, or its Content-Type be {', '.join(CONTENT_TYPES)}"
        )
        raise ValidationFailed([Fault("/file", "unknown_format", message)])
    is_packed = part.stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    part.stream.seek(0)
    return Upload(espalier.unpacked(part.stream) if is_packed else part.stream, form, schema)


def _declared(schema: str | bytes | None) -> Any:
    if schema is None or not schema.strip():
        return None
    try:
        return orjson.loads(schema)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the part schema is not JSON: {error}") from None
