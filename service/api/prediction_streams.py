"""Predictions that stream both ways: CSV in, CSV out; lines of JSON in, lines of JSON out.

Many clients send all of a body before they read a word of the answer. If the answer were sent while they send, both
ends would wait for each other as soon as the buffers between them are full. So a piece is sent only while the
connection takes it; what it does not take waits, on disk if it is much, until the body has come to its end::

    body ──> answers ──> taken at once?  yes ──> sent
                                  no ──> kept ──> sent when there is room, all of it at the end
"""

import json
import logging
import select
import socket
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from flask import Request, Response, request
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

from espalier import Fault
from service.api import problems
from service.api.auth import reauthenticate
from service.api.blueprint import refuse_repeated
from service.api.context import current_caller, current_service, request_id
from service.errors import ValidationFailed
from service.repositories import decisions
from service.schemas.predictions import read_options
from service.serialization.answer_rows import AnswerLines, lines_of
from service.usecases import prediction_streams
from service.usecases.predictions import reading_of
from service.usecases.version_resolver import ModelSettings, ResolvedVersion

log = logging.getLogger("service")

KINDS = frozenset(prediction_streams.READERS)
GZIP = 16 + zlib.MAX_WBITS
PACKED_BLOCK = 65_536
IN_MEMORY = 2**20  # bytes of answers that wait in memory; more wait on disk
SMALLEST_PIECE, LARGEST_PIECE = 2_048, 65_536
# A connection says that it takes more when a third of its buffer is free; a piece of an eighth is taken whole then.
SHARE_OF_BUFFER = 8


def answer_stream(kind: str, answering: ResolvedVersion) -> Response:
    """Answer the rows of the request's body as they come.

    The first batch is answered before anything is sent: what is wrong with it is a problem document as ever.

    Raises:
        ValidationFailed: What is asked in the query is not legal.
        UnsupportedMediaType: The body is in another encoding than gzip.
        BadRequest: It is not the gzip that it should be.
    """
    asked = _asked(kind, answering)
    request.max_content_length = sys.maxsize  # it is never in memory as a whole; ESPALIER_MAX_ROWS bounds it
    stream = _unpacked(request)
    with_rule = asked.explain != "none"
    lines = lines_of(kind, is_regression=not asked.model.schema.classes, with_rule=with_rule)
    progress = prediction_streams.Progress()
    pieces = prediction_streams.READERS[kind](current_service().sessions, asked, stream, lines, progress)
    head = next(pieces) + next(pieces)
    safe = _ended_by_failure(pieces, lines, progress, request.root_path + request.path, name=request_id())
    sent = _interleaved(head, safe, request.environ.get("gunicorn.socket"))
    return Response(sent, content_type=lines.content_type, headers=_headers(answering))


def _headers(answering: ResolvedVersion) -> dict[str, str]:
    """Say which version answers, and by which operating point if by any, as JSON in ASCII."""
    headers = {"Espalier-Version": str(answering.version.number)}
    if answering.settings.operating_point is not None:
        headers["Espalier-Operating-Point"] = json.dumps(answering.settings.operating_point)
    if current_service().settings.decisions == "off":
        headers["Espalier-Audited"] = "false"
    return headers


def _asked(kind: str, answering: ResolvedVersion) -> prediction_streams.Asked:
    refuse_repeated(request.args)
    faults: list[Fault] = []
    options = read_options(request.args.to_dict(), beside=("alias",), faults=faults)
    if kind == "text/csv" and options.explain == "full":
        faults.append(Fault("/explain", "not_legal", "a line of CSV has no room for it: send lines of JSON"))
    if faults:
        raise ValidationFailed(faults)
    decisions.check_subject(options.subject)
    return prediction_streams.Asked(
        version=answering.version,
        model=reading_of(answering.version, options.missing),
        alias=answering.alias,
        model_settings=answering.settings,
        explain=options.explain,
        missing=options.missing,
        skip=options.skip,
        subject=options.subject,
        key_id=current_caller().key_id,
        settings=current_service().settings,
        count=current_service().counting(answering.version),
        look=_looking(answering),
    )


def _looking(answering: ResolvedVersion) -> Callable[[], ModelSettings]:
    """Give what looks whether the key is still good and the version still answers, and what is not logged by now."""
    authenticate, versions = reauthenticate(), current_service().versions

    def look() -> ModelSettings:
        authenticate()
        return versions.current_settings(answering)

    return look


def _ended_by_failure(
    pieces: Iterator[bytes], lines: AnswerLines, progress: prediction_streams.Progress, instance: str, *, name: str
) -> Iterator[bytes]:
    """Give the pieces; an error in the middle becomes the last line, since the status has been sent already."""
    try:
        yield from pieces
    except Exception as error:
        problem = problems.problem_for(error)
        document = problems.document_of(problem, instance=instance, request_id=name)
        if problem.status >= 500 and problem.status != 503:
            log.error("a stream failed in the middle", exc_info=error, extra={"request_id": name})
        yield lines.failure(progress.n_rows, document)


def _interleaved(head: bytes, pieces: Iterator[bytes], connection: socket.socket | None) -> Iterator[bytes]:
    """Give `head` and the pieces in parts that the connection takes without a pause; see the top of this module."""
    size = LARGEST_PIECE
    if connection is not None:
        buffer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        size = min(max(buffer // SHARE_OF_BUFFER, SMALLEST_PIECE), LARGEST_PIECE)
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as kept:
        queue = _Queue(kept, size)
        queue.put(head)
        more = True
        while more:
            piece = next(pieces, None)
            more = piece is not None
            queue.put(piece or b"")
            while not queue.is_empty and (not more or _takes_more(connection)):
                yield queue.take()


class _Queue:
    """Bytes that wait: put in at the end, taken from the front, in memory or in a temporary file."""

    def __init__(self, file: "IO[bytes] | tempfile.SpooledTemporaryFile[bytes]", size: int) -> None:
        self._file = file
        self._size = size
        self._taken, self._put = 0, 0

    @property
    def is_empty(self) -> bool:
        return self._taken == self._put

    def put(self, content: bytes) -> None:
        self._file.seek(self._put)
        self._file.write(content)
        self._put += len(content)

    def take(self) -> bytes:
        self._file.seek(self._taken)
        part = self._file.read(min(self._size, self._put - self._taken))
        self._taken += len(part)
        if self.is_empty:  # begin anew, so that the file does not grow with the stream
            self._file.seek(0)
            self._file.truncate()
            self._taken, self._put = 0, 0
        return part


def _takes_more(connection: socket.socket | None) -> bool:
    if connection is None:
        return True
    poll = select.poll()  # select.select knows descriptors below 1 024 only
    poll.register(connection, select.POLLOUT)
    return bool(poll.poll(0))


def _unpacked(asked: Request) -> prediction_streams.ByteStream:
    encoding = asked.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding == "identity":
        return asked.stream
    if encoding != "gzip":
        raise UnsupportedMediaType("the Content-Encoding of a stream must be gzip or none")
    return _Gunzipped(asked.stream)


class _Gunzipped:
    """What a stream of gzip holds, of one member or several; never more in memory than is asked for, and a block."""

    def __init__(self, stream: prediction_streams.ByteStream) -> None:
        self._stream = stream
        self._member = zlib.decompressobj(GZIP)
        self._waiting = b""
        self._is_begun = False

    def read(self, size: int, /) -> bytes:
        while True:
            if self._member.eof:
                self._waiting = self._member.unused_data
                self._member, self._is_begun = zlib.decompressobj(GZIP), False
            block = self._waiting or self._stream.read(PACKED_BLOCK)
            if not block and not self._is_begun:
                return b""
            try:
                content = self._member.decompress(block, size) if block else b""
            except zlib.error:
                raise BadRequest("the body is not the gzip that its Content-Encoding says") from None
            self._is_begun = True
            self._waiting = self._member.unconsumed_tail
            if content:
                return content
            if not block and not self._member.eof:
                raise BadRequest("the gzip of the body is cut short")
