"""Idempotency-Key: a POST that creates something does so once, however often it is sent.

A view is decorated with `once`. It creates in the transaction of `creating` and stores its response with `remember`
there. The response of a refused request is not stored: it has changed nothing and may be repeated.
"""

import functools
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import marshmallow as ma
from flask import Response, g, request
from sqlalchemy.orm import Session
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wsgi import get_input_stream

from espalier import Fault
from service.api.context import current_caller, current_service
from service.database.engine import transaction
from service.errors import Conflict, Unavailable, ValidationFailed
from service.repositories import idempotency
from service.schemas.fields import Matching, coded

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
LEGAL = "[!-~]{1,255}"
STORED_HEADERS = ("Content-Type", "Location", "Cache-Control")
BLOCK = 65536


class _Hashed(io.RawIOBase):
    """A stream that computes the digest of the bytes that are read from it."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream, self.digest, self.n_bytes = stream, hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.stream.read(len(buffer))
        self.digest.update(part)
        self.n_bytes += len(part)
        buffer[: len(part)] = part
        return len(part)


@dataclass(slots=True)
class Once:
    """The current request with an Idempotency-Key."""

    claim: idempotency.Claim
    body: _Hashed
    digest: str | None = None  # of the whole request, once its body has been read to the end
    is_stored: bool = False


class IdempotencyHeader(ma.Schema):
    """The header of a request that creates once."""

    key = Matching(
        LEGAL,
        "a unique name for this request, such as a UUID: the same request with the same key creates nothing more and "
        f"gets the response of the first one ({REPLAYED}: true); another request with the key is refused",
        error=coded("invalid", "must be 1 to 255 ASCII characters without spaces, such as a UUID"),
        data_key=HEADER,
    )


def once(view: Callable[..., Response]) -> Callable[..., Response]:
    """Decorate a view so that it runs once per Idempotency-Key; repeated requests get the same response.

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
        body = _Hashed(get_input_stream(request.environ))
        request.environ["wsgi.input"] = body  # everything that reads the request reads it through this
        if isinstance(claim, idempotency.StoredAnswer):
            return _replay(claim, body)
        g.once = Once(claim, body)
        try:
            response = view(*args, **kwargs)
            if not g.once.is_stored:
                raise RuntimeError(f"{request.endpoint} has not stored its response")
        except BaseException:
            with suppress(Unavailable), transaction(service.sessions) as session:
                idempotency.release(session, claim)
            raise
        return response

    return idempotent


@contextmanager
def creating() -> Iterator[Session]:
    """Open the transaction of a view that creates, after the body has been read to its end.

    A client may send its body slowly: it must not be read while the transaction holds a lock.
    """
    present: Once | None = g.get("once")
    if present is not None:
        present.digest = _digest(present.body)
    with transaction(current_service().sessions) as session:
        yield session


def remember(session: Session, response: Response, *, secret: bool = False) -> Response:
    """Store the response for repeated requests, in the transaction that creates; a `secret` one without its body."""
    present: Once | None = g.get("once")
    if present is None:
        return response
    if present.digest is None:
        raise RuntimeError(f"{request.endpoint} stores its response outside `creating`")
    headers = {name: response.headers[name] for name in STORED_HEADERS if name in response.headers}
    body = None if secret else response.get_data()
    answer = idempotency.StoredAnswer(present.digest, response.status_code, headers, body)
    idempotency.finish(session, present.claim, answer)
    present.is_stored = True
    return response


def _replay(stored: idempotency.StoredAnswer, body: _Hashed) -> Response:
    if _digest(body) != stored.request_sha256:
        message = "was used for another request: use a new key for each request"
        raise ValidationFailed([Fault(f"/{HEADER}", "reused", message)])
    if stored.body is None:
        raise Conflict(
            "this request was answered before with a secret that is shown once and not stored: if it is lost, revoke "
            "the key and create another one with a new Idempotency-Key"
        )
    return Response(stored.body, status=stored.status, headers={**stored.headers, REPLAYED: "true"})


def _digest(body: _Hashed) -> str:
    """Read the body to its end, and return the digest of the whole request."""
    most = max(current_service().settings.max_body_mb, current_service().settings.max_upload_mb) * 2**20
    while body.read(BLOCK):
        if body.n_bytes > most:
            raise RequestEntityTooLarge
    parts = (
        request.method,
        request.root_path + request.path,
        request.query_string.decode("latin-1"),
        request.headers.get("Content-Type", ""),
        request.headers.get("Content-Encoding", ""),
        body.digest.hexdigest(),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
