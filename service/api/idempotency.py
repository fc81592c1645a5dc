"""Idempotency-Key over HTTP: a POST that creates does so once, however often it is sent.

A view is decorated with `once`. It creates in the transaction of `creating`, and gives its answer to `remember` there.
A refused request is not remembered: it has changed nothing, and may be repeated.
"""

import functools
import hashlib
import io
import re
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
from service.schemas.fields import coded

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
LEGAL = re.compile(r"[!-~]{1,255}")
KEPT_HEADERS = ("Content-Type", "Location", "Cache-Control")
BLOCK = 65536


class Hashed(io.RawIOBase):
    """A stream of bytes that computes the digest of what is read of it."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream, self.digest, self.n_bytes = stream, hashlib.sha256(), 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to the buffer's length."""
        part = self.stream.read(len(buffer))
        self.digest.update(part)
        self.n_bytes += len(part)
        buffer[: len(part)] = part
        return len(part)


@dataclass(slots=True)
class Once:
    """The current request, claimed.

    Attributes:
        claim: The right to answer it.
        body: Its body, read by the view.
        digest: Of the whole request, once its body is read to the end.
        is_kept: Whether its answer is stored.
    """

    claim: idempotency.Claim
    body: Hashed
    digest: str | None = None
    is_kept: bool = False


def _check_key(key: str) -> None:
    if not LEGAL.fullmatch(key):
        message: Any = coded("invalid", "must be 1 to 255 signs of ASCII without spaces, such as a UUID")
        raise ma.ValidationError(message)


class IdempotencyHeader(ma.Schema):
    """The header of a request that creates once."""

    key = ma.fields.String(
        data_key=HEADER,
        validate=_check_key,
        metadata={
            "pattern": f"^{LEGAL.pattern}$",
            "description": "a name of your own for this request, such as a UUID: sent again with it, the same request "
            f"creates nothing more and is answered as it was the first time ({REPLAYED}: true says so); another "
            "request is refused",
        },
    )


def once(view: Callable[..., Response]) -> Callable[..., Response]:
    """Have a view answer each Idempotency-Key once, and give the same answer to those who send it again.

    The view that comes of it takes the fields of `IdempotencyHeader` as its first argument.
    """

    @functools.wraps(view)
    def answered_once(header: Mapping[str, str], *args: Any, **more: Any) -> Response:
        key = header.get("key")
        if key is None:
            return view(*args, **more)
        service = current_service()
        with transaction(service.sessions) as session:
            found = idempotency.claim(
                session, owner=current_caller().key_id, key=key, keep_seconds=service.settings.replay_seconds
            )
        body = Hashed(get_input_stream(request.environ))
        request.environ["wsgi.input"] = body  # whoever reads the request reads it through this
        if isinstance(found, idempotency.StoredAnswer):
            return _again(found, body)
        g.once = Once(found, body)
        try:
            response = view(*args, **more)
            if not g.once.is_kept:
                raise RuntimeError(f"{request.endpoint} has not remembered what it answered")
        except BaseException:
            with suppress(Unavailable), transaction(service.sessions) as session:
                idempotency.release(session, found)
            raise
        return response

    return answered_once


@contextmanager
def creating() -> Iterator[Session]:
    """Open the transaction of a view that creates, once the request's body is read to its end.

    A client may send its body slowly: nothing is read from it while the transaction holds a lock.
    """
    present: Once | None = g.get("once")
    if present is not None:
        present.digest = _digest(present.body)
    with transaction(current_service().sessions) as session:
        yield session


def remember(session: Session, response: Response, *, secret: bool = False) -> Response:
    """Store the answer beside what was created, for those who repeat the request; of a `secret` one only that it was.

    Raises:
        Conflict: The same request was begun anew meanwhile: nothing may be created.
    """
    present: Once | None = g.get("once")
    if present is None:
        return response
    if present.digest is None:
        raise RuntimeError(f"{request.endpoint} remembers outside `creating`")
    idempotency.finish(
        session,
        present.claim,
        request_sha256=present.digest,
        answer=idempotency.Answer(
            status=response.status_code,
            headers={name: response.headers[name] for name in KEPT_HEADERS if name in response.headers},
            body=None if secret else response.get_data(),
        ),
    )
    present.is_kept = True
    return response


def _again(found: idempotency.StoredAnswer, body: Hashed) -> Response:
    if _digest(body) != found.request_sha256:
        message = "was sent with another request before: take a new one for each request"
        raise ValidationFailed([Fault(f"/{HEADER}", "reused", message)])
    if found.answer.body is None:
        raise Conflict(
            "this request was answered before, with a secret that is shown once and stored nowhere: if it is lost, "
            "revoke what was made and make another, with a new Idempotency-Key"
        )
    headers: Mapping[str, str] = {**found.answer.headers, REPLAYED: "true"}
    return Response(found.answer.body, status=found.answer.status, headers=headers)


def _digest(body: Hashed) -> str:
    """Return the digest of the whole request; what was not read of its body yet is read."""
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
