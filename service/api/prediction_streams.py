"""Files of rows over HTTP: CSV in, CSV out; lines of JSON in, lines of JSON out.

Many clients send all of a body before they read a word of the answer: it is copied to a temporary file first, and then
answered batch by batch.
"""

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import IO, Any, Final, cast

from flask import Response, request
from werkzeug.exceptions import BadRequest, UnsupportedMediaType
from werkzeug.wsgi import LimitedStream

import espalier
from espalier import Fault
from service.api import problems
from service.api.auth import reauthenticate
from service.api.blueprint import refuse_repeated
from service.api.context import current_caller, current_service, request_id
from service.errors import ValidationFailed
from service.repositories.decisions import check_subject
from service.schemas.predictions import read_options
from service.serialization.answer_rows import lines_of
from service.usecases.prediction_streams import READERS, PredictionStream
from service.usecases.predictions import PredictionOptions, with_strategy
from service.usecases.version_resolver import ResolvedVersion

log = logging.getLogger("service")

BLOCK: Final = 65_536
MAX_BYTES_IN_MEMORY: Final = 2**20
"""Of a body; the rest of it is on disk."""


def answer_file(resolved: ResolvedVersion) -> Response:
    """Answer the body of the request; what is wrong with the first batch is a problem document.

    Raises:
        ValidationFailed: An option in the query is not legal.
        UnsupportedMediaType: The body is in another encoding than gzip.
        BadRequest: It is not the gzip that its Content-Encoding says.
        RequestEntityTooLarge: It is longer than an upload may be.
    """
    service, options = current_service(), _options()
    model = with_strategy(resolved.version.model, options.missing)
    lines = lines_of(request.mimetype, is_regression=not model.schema.classes, with_rule=options.explain != "none")
    stream = PredictionStream(
        current=_current(resolved),
        options=options,
        recorder=service.recorder,
        key_id=current_caller().key_id,
        lines=lines,
    )
    parts = _answers(stream, model.schema, request.mimetype)
    head = next(parts) + next(parts)
    headers = {"Espalier-Version": str(resolved.version.number)}
    if resolved.settings.operating_point is not None:
        headers["Espalier-Operating-Point"] = json.dumps(resolved.settings.operating_point)
    if service.settings.decisions == "off":
        headers["Espalier-Audited"] = "false"
    rest = _ended_by_failure(parts, stream, request.root_path + request.path, request_id())
    return Response(_blocks(head, rest), content_type=lines.content_type, headers=headers)


def _answers(stream: PredictionStream, schema: espalier.Schema, kind: str) -> Iterator[bytes]:
    with _spooled_body() as file:
        yield from READERS[kind](stream, schema, file)


def _options() -> PredictionOptions:
    refuse_repeated(request.args)
    faults: list[Fault] = []
    options = read_options(request.args.to_dict(), beside=("alias",), faults=faults)
    if request.mimetype == "text/csv" and options.explain == "full":
        faults.append(Fault("/explain", "not_legal", "a line of CSV has no room for it: send lines of JSON"))
    if faults:
        raise ValidationFailed(faults)
    check_subject(options.subject)
    return options


def _current(resolved: ResolvedVersion) -> Callable[[], ResolvedVersion]:
    """Return what checks the key and the version again, and returns the version with its present settings."""
    authenticate, versions = reauthenticate(), current_service().versions

    def current() -> ResolvedVersion:
        authenticate()
        return replace(resolved, settings=versions.current_settings(resolved))

    return current


@contextmanager
def _spooled_body() -> Iterator[IO[bytes]]:
    """Copy the body, unpacked, to a temporary file."""
    limit = current_service().settings.max_upload_mb * 2**20
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise UnsupportedMediaType("the Content-Encoding of a stream must be gzip or none")
    request.max_content_length = limit
    stream: Any = request.stream
    if encoding == "gzip":
        stream = LimitedStream(cast(Any, espalier.unpacked(stream)), limit, is_max=True)
    with tempfile.SpooledTemporaryFile(MAX_BYTES_IN_MEMORY) as file:
        try:
            shutil.copyfileobj(stream, file, BLOCK)
        except espalier.DataError:
            raise BadRequest("the body is not the gzip that its Content-Encoding says") from None
        file.seek(0)
        yield file


def _ended_by_failure(parts: Iterator[bytes], stream: PredictionStream, instance: str, name: str) -> Iterator[bytes]:
    """Yield the parts; an error becomes the last line, since the status has been sent already."""
    try:
        yield from parts
    except Exception as error:
        problem = problems.problem_for(error)
        document = problems.document_of(problem, instance=instance, request_id=name)
        if problem.status >= 500 and problem.status != 503:
            log.error("a stream failed in the middle", exc_info=error, extra={"request_id": name})
        yield stream.lines.failure(stream.n_rows, document)


def _blocks(head: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    """Divide the parts into blocks: a slow client has the time of a time-out for each."""
    for part in chain((head,), parts):
        yield from (part[start : start + BLOCK] for start in range(0, len(part), BLOCK))
