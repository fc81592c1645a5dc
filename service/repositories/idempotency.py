"""Requests that are safe to send twice: a key of the caller's own, and the first answer for as long as it is kept.

    (none) ─claim→ running ─finish→ answered ─(kept for a time)→ (none)
                   │    └─release→ (none)          what it asked for was refused
                   └─(the claim ran out)─claim→ running     its process was lost

The end is written in the transaction that creates what was asked for: both are there, or neither. It is guarded by the
token of the claim, so a request that was away for longer than its claim creates nothing once another has begun.
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

CLAIM_SECONDS = 60.0  # after which a request that has said nothing is taken for lost
SWEPT = 100  # rows past their time that one request clears away at most


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer a request, until it runs out."""

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered; without the body where that holds a secret."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A request that was answered, and its answer."""

    request_sha256: str
    answer: Answer


def claim(session: Session, *, owner: str | None, key: str, keep_seconds: float) -> Claim | Kept:
    """Begin a request, or find the answer that it was given before.

    Args:
        session: Of a transaction of its own, committed before the work begins.
        owner: Id of the API key that asks; None where keys are off.
        key: What the caller calls the request.
        keep_seconds: How long the answer will be kept.

    Raises:
        RequestInProgress: The same request is being worked at.
    """
    _sweep(session)
    digest = hashlib.sha256(key.encode()).hexdigest()
    mine = (IdempotentRequest.owner == (owner or ""), IdempotentRequest.key_sha256 == digest)
    # A claim for far longer than any lasts was made before the database's clock was set back, by more than a little.
    running = IdempotentRequest.claimed_until.between(now(), now(2 * CLAIM_SECONDS)).label("running")
    over = (IdempotentRequest.expires <= now()).label("over")
    found = session.execute(select(IdempotentRequest, running, over).where(*mine).with_for_update()).first()
    if found is None:
        return _begin(session, owner=owner or "", digest=digest, keep_seconds=keep_seconds)
    row: IdempotentRequest = found.IdempotentRequest
    if found.running:
        raise RequestInProgress
    if row.status is not None and not found.over:
        return Kept(row.request_sha256 or "", Answer(row.status, row.headers or {}, row.body))
    row.token, row.claimed_until, row.expires = new_id(), now(CLAIM_SECONDS), now(keep_seconds)
    row.status = row.headers = row.body = row.request_sha256 = None
    session.flush()
    return Claim(row.id, row.token)


def finish(session: Session, held: Claim, *, request_sha256: str, answer: Answer) -> None:
    """Keep the answer; call it in the transaction that creates what was asked for.

    Raises:
        Conflict: The claim ran out and another request has begun: nothing may be created.
    """
    kept = session.scalar(
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
    if kept is None:
        raise Conflict("this request took so long that the same one was begun anew: ask again for its answer")


def release(session: Session, held: Claim) -> None:
    """Forget a request that created nothing; a claim that is no longer held is left alone."""
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
    """Clear away some rows whose time is over; those that another transaction holds are left to the next one."""
    over = (
        select(IdempotentRequest.id)
        .where(IdempotentRequest.expires < now())
        .order_by(IdempotentRequest.expires)
        .limit(SWEPT)
        .with_for_update(skip_locked=True)
    )
    session.execute(delete(IdempotentRequest).where(IdempotentRequest.id.in_(over)))
