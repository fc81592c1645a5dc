"""Idempotency keys: a repeated request gets the first answer, as long as it is stored.

    (none) ─claim→ running ─finish→ answered ─(it expired)→ (none)
                   │    └─release→ (none)          the request was refused
                   └─(the claim ran out)─claim→ running     its process was lost

The answer is stored in the transaction that creates the resource. It is guarded by the token of the claim: a request
that was suspended for longer than its claim creates nothing after another one has begun.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.database.clock import new_id, now
from service.database.tables import IdempotentRequest
from service.errors import Conflict, RequestInProgress

CLAIM_SECONDS = 60.0  # after which a running request is taken as lost
MAX_SWEPT = 100  # expired rows that one request deletes


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer a request, for a limited time."""

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to a request, without a body that holds a secret, and the digest of the request."""

    request_sha256: str
    status: int
    headers: Mapping[str, str]
    body: bytes | None


def claim(session: Session, *, owner: str | None, key: str, keep_seconds: float) -> Claim | StoredAnswer:
    """Claim the request of a caller's API key and an Idempotency-Key, or return its stored answer."""
    over = (
        select(IdempotentRequest.id)
        .where(IdempotentRequest.expires < now())
        .order_by(IdempotentRequest.expires)
        .limit(MAX_SWEPT)
        .with_for_update(skip_locked=True)
    )
    session.execute(delete(IdempotentRequest).where(IdempotentRequest.id.in_(over)))
    digest = hashlib.sha256(key.encode()).hexdigest()
    same = (IdempotentRequest.owner == (owner or ""), IdempotentRequest.key_sha256 == digest)
    # A claim that ends too late was made before the database's clock was set back.
    running = IdempotentRequest.claimed_until.between(now(), now(2 * CLAIM_SECONDS)).label("running")
    is_over = (IdempotentRequest.expires <= now()).label("over")
    result = session.execute(select(IdempotentRequest, running, is_over).where(*same).with_for_update()).first()
    lease: dict[str, Any] = {"token": new_id(), "claimed_until": now(CLAIM_SECONDS), "expires": now(keep_seconds)}
    if result is None:
        row = IdempotentRequest(id=new_id(), owner=owner or "", key_sha256=digest, **lease)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:  # another process has begun the same request
            raise RequestInProgress from None
        return Claim(row.id, row.token)
    row = result.IdempotentRequest
    if result.running:
        raise RequestInProgress
    if row.status is not None and not result.over:
        return StoredAnswer(row.request_sha256 or "", row.status, row.headers or {}, row.body)
    for name, value in {**lease, **dict.fromkeys(("status", "headers", "body", "request_sha256"))}.items():
        setattr(row, name, value)
    session.flush()
    return Claim(row.id, row.token)


def finish(session: Session, held: Claim, answer: StoredAnswer) -> None:
    """Store the answer in the transaction that creates the resource, unless the claim ran out and another one began."""
    stored = session.scalar(
        update(IdempotentRequest)
        .where(*_held(held))
        .values(**asdict(answer), claimed_until=None)
        .returning(IdempotentRequest.id)
    )
    if stored is None:
        raise Conflict("this request took so long that it was begun again: repeat it to get its answer")


def release(session: Session, held: Claim) -> None:
    """Delete a claim whose request created nothing, if it is still held."""
    session.execute(delete(IdempotentRequest).where(*_held(held)))


def _held(held: Claim) -> tuple[Any, ...]:
    row = IdempotentRequest
    return row.id == held.id, row.token == held.token, row.status.is_(None)
