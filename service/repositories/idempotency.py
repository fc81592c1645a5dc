"""Idempotency keys: a repeated request gets the answer of the first one, as long as that answer is stored.

    (none) ─claim→ running ─finish→ answered ─(it expired)→ (none)
                   │    └─release→ (none)          the request was refused
                   └─(the claim ran out)─claim→ running     its process was lost

The answer is stored in the transaction that creates the resource. The token of the claim guards this transaction: a
suspended request creates nothing if its claim has run out and another request has claimed the key.
"""

import hashlib
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.database.clock import new_id, now
from service.database.tables import IdempotentRequest
from service.errors import Conflict, RequestInProgress

CLAIM_SECONDS = 60.0  # after this time, a running request is considered lost
MAX_SWEPT = 100  # maximum number of expired rows that one request deletes


def claim(session: Session, *, owner: str | None, key: str, keep_seconds: float) -> IdempotentRequest:
    """Claim the Idempotency-Key of a caller for `CLAIM_SECONDS`; raise `RequestInProgress` if it is claimed already.

    If the returned request has a status, it was answered before, and is not claimed.
    """
    expired = select(IdempotentRequest.id).where(IdempotentRequest.expires < now()).order_by(IdempotentRequest.expires)
    some = expired.limit(MAX_SWEPT).with_for_update(skip_locked=True)
    session.execute(delete(IdempotentRequest).where(IdempotentRequest.id.in_(some)))
    digest = hashlib.sha256(key.encode()).hexdigest()
    same = (IdempotentRequest.owner == (owner or ""), IdempotentRequest.key_sha256 == digest)
    # A claim that ends even later was made before the database's clock was set back: it counts as lost.
    running = IdempotentRequest.claimed_until.between(now(), now(2 * CLAIM_SECONDS)).label("running")
    is_over = (IdempotentRequest.expires <= now()).label("over")
    result = session.execute(select(IdempotentRequest, running, is_over).where(*same).with_for_update()).first()
    fresh: dict[str, Any] = dict.fromkeys(("status", "headers", "body", "request_sha256"))
    fresh |= {"token": new_id(), "claimed_until": now(CLAIM_SECONDS), "expires": now(keep_seconds)}
    if result is None:
        row = IdempotentRequest(id=new_id(), owner=owner or "", key_sha256=digest, **fresh)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:  # another process has begun the same request
            raise RequestInProgress from None
        return row
    known: IdempotentRequest = result.IdempotentRequest
    if result.running:
        raise RequestInProgress
    if known.status is None or result.over:
        for name, value in fresh.items():
            setattr(known, name, value)
        session.flush()
    return known


def finish(session: Session, held: IdempotentRequest, **answer: Any) -> None:
    """Store the answer, in the transaction that creates the resource; raise `Conflict` if the claim is lost."""
    answered = update(IdempotentRequest).where(*_held(held)).values(**answer, claimed_until=None)
    if session.scalar(answered.returning(IdempotentRequest.id)) is None:
        raise Conflict("this request took so long that it was begun again: repeat it to get its answer")


def release(session: Session, held: IdempotentRequest) -> None:
    """Delete a claim whose request created nothing, unless the claim is lost."""
    session.execute(delete(IdempotentRequest).where(*_held(held)))


def _held(held: IdempotentRequest) -> tuple[Any, ...]:
    row = IdempotentRequest
    return row.id == held.id, row.token == held.token, row.status.is_(None)
