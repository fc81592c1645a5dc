"""Idempotency-Key: a POST that is repeated with the same key, before the key expires, creates its resource only once.

For a request with a key, `once` copies the body to a file before the view runs, since a transaction with a lock must
not wait for a slow client. The view stores its response with `remember`, in the transaction that creates the resource.
The response to a refused request is not stored: the request has changed nothing and may be repeated.
"""

import functools
import hashlib
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import marshmallow as ma
from flask import Response, g, request
from sqlalchemy.orm import Session
from werkzeug.wsgi import LimitedStream, get_input_stream

from service.api.context import current_caller, current_service
from service.database.engine import transaction
from service.database.tables import IdempotentRequest
from service.errors import Conflict, Unavailable, ValidationFailed
from service.repositories import idempotency
from service.schemas.fields import coded, matching

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
LEGAL = "[!-~]{1,255}"
STORED_HEADERS = ("Content-Type", "Location", "Cache-Control")
BLOCK = 65536
BYTES_IN_MEMORY = 2**20  # of a body; a larger one is on disk


class IdempotencyHeader(ma.Schema):
    """The header Idempotency-Key of a request."""

    key = matching(
        LEGAL,
        "a unique name for this request, such as a UUID. Until it expires, a repeated request creates nothing more and "
        f"gets the first response ({REPLAYED}: true), or 409 if that had a secret; another request with it is refused",
        error=coded("invalid", "must be 1 to 255 ASCII characters without spaces, such as a UUID"),
        data_key=HEADER,
    )


def once(view: Callable[..., Response]) -> Callable[..., Response]:
    """Decorate a view so that it succeeds once per Idempotency-Key; a repeated request gets the stored response.

    The decorated view takes the fields of `IdempotencyHeader` as its first argument.
    """

    @functools.wraps(view)
    def idempotent(header: Mapping[str, str], *args: Any, **kwargs: Any) -> Response:
        key = header.get("key")
        if key is None:
            return view(*args, **kwargs)
        service = current_service()
        with transaction(service.sessions) as session:
            claim = idempotency.claim(
                session, owner=current_caller().key_id, key=key, keep_seconds=service.settings.replay_seconds
            )
        with SpooledTemporaryFile(BYTES_IN_MEMORY) as body:
            try:
                digest = _digest(body)
                if claim.status is not None:
                    return _replay(claim, digest)
                request.environ["wsgi.input"] = body
                g.once = claim, digest
                response = view(*args, **kwargs)
                if "once" in g:
                    raise RuntimeError(f"{request.endpoint} has not stored its response")
            except BaseException:
                if claim.status is None:
                    with suppress(Unavailable), transaction(service.sessions) as session:
                        idempotency.release(session, claim)
                raise
        return response

    return idempotent


def remember(session: Session, response: Response, *, secret: bool = False) -> Response:
    """Return the response, and store it if the request has a key; if `secret` is true, store it without its body."""
    if "once" not in g:
        return response
    claim, digest = g.pop("once")
    headers = {name: response.headers[name] for name in STORED_HEADERS if name in response.headers}
    body = None if secret else response.get_data()
    answer = {"request_sha256": digest, "status": response.status_code, "headers": headers, "body": body}
    idempotency.finish(session, claim, **answer)
    return response


def _replay(stored: IdempotentRequest, digest: str) -> Response:
    if digest != stored.request_sha256:
        message = "was used for another request: use a new key for each request"
        raise ValidationFailed.of(f"/{HEADER}", "reused", message)
    if stored.body is None:
        raise Conflict(
            "this request was answered before with a secret that is shown once and not stored: if it is lost, revoke "
            "the key and create another one with a new Idempotency-Key"
        )
    return Response(stored.body, status=stored.status, headers={**(stored.headers or {}), REPLAYED: "true"})


def _digest(file: IO[bytes]) -> str:
    """Copy the body to `file`; return the SHA-256 of method, path, query, content type, encoding and body."""
    most = max(current_service().settings.max_body_mb, current_service().settings.max_upload_mb) * 2**20
    shutil.copyfileobj(LimitedStream(get_input_stream(request.environ), most + 1, is_max=True), file, BLOCK)
    file.seek(0)
    of_body = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type] # IO lacks readinto; the file has it
    file.seek(0)
    parts = (
        request.method,
        request.root_path + request.path,
        request.query_string.decode("latin-1"),
        request.headers.get("Content-Type", ""),
        request.headers.get("Content-Encoding", ""),
        of_body.hexdigest(),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
