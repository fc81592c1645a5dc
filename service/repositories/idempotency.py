"""Idempotency keys: a request that is sent again gets the first answer, for as long as that is stored.

    (none) ─claim→ running ─finish→ answered ─(it expired)→ (none)
                   │    └─release→ (none)          the request was refused
                   └─(the claim ran out)─claim→ running     its process was lost

The answer is stored in the transaction that creates the resource: both are there, or neither. It is guarded by the
token of the claim, so a request that was suspended for longer than its claim creates nothing once another has begun.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.database.clock import new_id, now
from service.database.tables import IdempotentRequest
from service.errors import Conflict, RequestInProgress

CLAIM_SECONDS = 60.0  # after which a running request counts as lost
MAX_SWEPT = 100  # expired rows that one request deletes


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer a request, until it runs out."""

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request, without the body if that holds a secret."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A request that was answered, and its answer."""

    request_sha256: str
    answer: Answer


def claim(session: Session, *, owner: str | None, key: str, keep_seconds: float) -> Claim | StoredAnswer:
    """Claim a request, or return its stored answer.

    Args:
        session: Of a transaction that is committed before the request is carried out.
        owner: Id of the caller's API key; None where keys are off.
        key: The Idempotency-Key.
        keep_seconds: How long the answer will be stored.

    Raises:
        RequestInProgress: The same request is running.
    """
    _sweep(session)
    digest = hashlib.sha256(key.encode()).hexdigest()
    same = (IdempotentRequest.owner == (owner or ""), IdempotentRequest.key_sha256 == digest)
    # A claim that ends later than any can was made before the database's clock was set back.
    running = IdempotentRequest.claimed_until.between(now(), now(2 * CLAIM_SECONDS)).label("running")
    over = (IdempotentRequest.expires <= now()).label("over")
    found = session.execute(select(IdempotentRequest, running, over).where(*same).with_for_update()).first()
    if found is None:
        return _begin(session, owner=owner or "", digest=digest, keep_seconds=keep_seconds)
    row: IdempotentRequest = found.IdempotentRequest
    if found.running:
        raise RequestInProgress
    if row.status is not None and not found.over:
        return StoredAnswer(row.request_sha256 or "", Answer(row.status, row.headers or {}, row.body))
    row.token, row.claimed_until, row.expires = new_id(), now(CLAIM_SECONDS), now(keep_seconds)
    row.status = row.headers = row.body = row.request_sha256 = None
    session.flush()
    return Claim(row.id, row.token)


def finish(session: Session, held: Claim, *, request_sha256: str, answer: Answer) -> None:
    """Store the answer; call it in the transaction that creates the resource.

    Raises:
        Conflict: The claim ran out and another request has begun: nothing may be created.
    """
    stored = session.scalar(
        update(IdempotentRequest)
        .where(*_held(held))
        .values(
            status=answer.status,
            headers=dict(answer.headers),
            body=answer.body,
            request_sha256=request_sha256,
            claimed_until=None,
        )
        .returning(IdempotentRequest.id)
    )
    if stored is None:
        raise Conflict("this request took so long that the same one was begun anew: ask again for its answer")


def release(session: Session, held: Claim) -> None:
    """Delete a claim whose request created nothing, if it is still held."""
    session.execute(delete(IdempotentRequest).where(*_held(held)))


def _begin(session: Session, *, owner: str, digest: str, keep_seconds: float) -> Claim:
    row = IdempotentRequest(
        id=new_id(),
        owner=owner,
        key_sha256=digest,
        token=new_id(),
        claimed_until=now(CLAIM_SECONDS),
        expires=now(keep_seconds),
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:  # the same request came to another process at the same moment
        raise RequestInProgress from None
    return Claim(row.id, row.token)


def _held(held: Claim) -> tuple[Any, ...]:
    return (
        IdempotentRequest.id == held.id,
        IdempotentRequest.token == held.token,
        IdempotentRequest.status.is_(None),
    )


def _sweep(session: Session) -> None:
    """Delete some expired rows, except those that another transaction has locked."""
    over = (
        select(IdempotentRequest.id)
        .where(IdempotentRequest.expires < now())
        .order_by(IdempotentRequest.expires)
        .limit(MAX_SWEPT)
        .with_for_update(skip_locked=True)
    )
    session.execute(delete(IdempotentRequest).where(IdempotentRequest.id.in_(over)))
