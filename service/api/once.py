"""Idempotency-Key over HTTP: a POST that creates does so once, however often it is sent.

`once` is put around a view where its route is made; the view hands its answer to `remember` within the transaction that
creates. What was refused is not remembered: it has changed nothing, and may be asked again.
"""

import functools
import hashlib
import io
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ParamSpec

from flask import Response, g, request
from sqlalchemy.orm import Session
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wsgi import get_input_stream

from service import idempotency
from service.api.context import caller, here
from service.database.engine import transaction
from service.errors import Fault, Rejected, Unavailable

__all__ = ["HEADER", "REPLAYED", "once", "remember"]

P = ParamSpec("P")

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
LEGAL = re.compile(r"[!-~]{1,255}")
KEPT_HEADERS = ("Content-Type", "Location", "Cache-Control")
BLOCK = 65536


class Hashed(io.RawIOBase):
    """A stream of bytes that sums up what is read of it, by whomever."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream, self.digest, self.n_bytes = stream, hashlib.sha256(), 0

    def readable(self) -> bool:
        """Say that it can be read."""
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
    """The present request, claimed; `is_kept` once its answer is written down."""

    claim: idempotency.Claim
    body: Hashed
    is_kept: bool = False


def once(view: Callable[P, Response]) -> Callable[P, Response]:
    """Have a view answer each Idempotency-Key once, and give the same answer to those who send it again."""

    @functools.wraps(view)
    def answered_once(*args: P.args, **more: P.kwargs) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return view(*args, **more)
        _check(key)
        service = here()
        with transaction(service.sessions) as session:
            found = idempotency.claim(
                session, owner=caller().key_id, key=key, keep_seconds=service.settings.replay_seconds
            )
        body = Hashed(get_input_stream(request.environ))
        request.environ["wsgi.input"] = body  # whoever reads the request reads it through this
        if isinstance(found, idempotency.Kept):
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


def remember(session: Session, response: Response, *, secret: bool = False) -> Response:
    """Keep the answer beside what was created; `secret`: so that only the caller's own key can read it again.

    Raises:
        Conflict: The same request was begun anew meanwhile: nothing may be created.
    """
    present: Once | None = g.get("once")
    if present is None:
        return response
    body = response.get_data()
    idempotency.finish(
        session,
        present.claim,
        request_sha256=_digest(present.body),
        answer=idempotency.Answer(
            status=response.status_code,
            headers={name: response.headers[name] for name in KEPT_HEADERS if name in response.headers},
            body=_sealed(body, present.claim) if secret else body,
            sealed=secret,
        ),
    )
    present.is_kept = True
    return response


def _check(key: str) -> None:
    if not LEGAL.fullmatch(key):
        message = "must be 1 to 255 signs of ASCII without spaces, such as a UUID"
        raise Rejected([Fault(f"/{HEADER}", "invalid", message)])


def _again(found: idempotency.Kept, body: Hashed) -> Response:
    if _digest(body) != found.request_sha256:
        message = "was sent with another request before: take a new one for each request"
        raise Rejected([Fault(f"/{HEADER}", "reused", message)])
    answer = found.answer
    content = _sealed(answer.body, found.claim) if answer.sealed else answer.body
    headers: Mapping[str, str] = {**answer.headers, REPLAYED: "true"}
    return Response(content, status=answer.status, headers=headers)


def _digest(body: Hashed) -> str:
    """Sum up the whole request: what was read of its body, what was not read yet, and what else decides about it."""
    most = max(here().settings.max_body_mb, here().settings.max_upload_mb) * 2**20
    while body.read(BLOCK):
        if body.n_bytes > most:
            raise RequestEntityTooLarge
    said = (
        request.method,
        request.root_path + request.path,
        request.query_string.decode("latin-1"),
        request.headers.get("Content-Type", ""),
        request.headers.get("Content-Encoding", ""),
        body.digest.hexdigest(),
    )
    return hashlib.sha256("\n".join(said).encode()).hexdigest()


def _sealed(content: bytes, held: idempotency.Claim) -> bytes:
    _, _, token = request.headers.get("Authorization", "").partition(" ")
    return idempotency.sealed(content, secret=token.strip(), held=held)
