"""API keys: made, revoked, and the callers that they identify. A secret is shown once and stored as a hash.

A token has three parts::

    esp_<id>_<secret>    id: the key's UUID; secret: 32 random bytes as 43 characters of base64url

Secrets are compared in constant time. Look-ups are cached for one second, so a revoked key stops working everywhere
within a second. Keys expire by the database's clock, at the same moment on every host.
"""

import hashlib
import hmac
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from cachetools import TTLCache, cached
from sqlalchemy import Connection, insert, select
from sqlalchemy.orm import Session

from espalier import Fault
from service.database import MODEL_NAME, MODEL_NAME_RULE
from service.database.clock import database_time, new_id, now, utc_now
from service.database.engine import Sessions, read_session
from service.database.tables import Key, Scope
from service.errors import NotFound, Unauthenticated, ValidationFailed
from service.permissions import Caller
from service.settings import TOKEN

NAME_LENGTH = 200
SECRET_BYTES = 32
FIRST_NAME = "first admin key"


def secret_digest(secret: str) -> str:
    """Return the hash that is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create(
    session: Session,
    *,
    name: str,
    scopes: Collection[str],
    models: Collection[str] | None = None,
    expires: datetime | None = None,
) -> tuple[Key, str]:
    """Create a key and return it with its token, which is not stored."""
    ValidationFailed.raise_for(_faults(name, scopes, models, expires, moment=database_time(session)))
    key_id, secret = new_id(), secrets.token_urlsafe(SECRET_BYTES)
    key = Key(
        id=key_id,
        name=name,
        secret_sha256=secret_digest(secret),
        scopes=sorted(set(scopes)),
        models=None if models is None else sorted(set(models)),
        expires=expires,
    )
    session.add(key)
    session.flush()
    return key, f"esp_{key_id}_{secret}"


def revoke(session: Session, key_id: str) -> Key:
    """Revoke a key unless it is revoked already."""
    key = session.get(Key, key_id, with_for_update=True)
    if key is None:
        raise NotFound("key", key_id)
    key.revoked = key.revoked or utc_now()
    return key


def make_first(connection: Connection, given: str) -> str | None:
    """Create the first key, with the scope admin, if there is none; return its token unless it was `given`."""
    if connection.scalar(select(Key.id).limit(1)) is not None:
        return None
    parts = TOKEN.fullmatch(given)
    key_id, secret = (
        (new_id(), secrets.token_urlsafe(SECRET_BYTES)) if parts is None else (parts["id"], parts["secret"])
    )
    connection.execute(
        insert(Key).values(
            id=key_id, name=FIRST_NAME, secret_sha256=secret_digest(secret), scopes=[Scope.ADMIN], created=utc_now()
        )
    )
    return f"esp_{key_id}_{secret}" if parts is None else None


def _faults(
    name: str, scopes: Collection[str], models: Collection[str] | None, expires: datetime | None, *, moment: datetime
) -> Iterator[Fault]:
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        yield Fault("/name", "invalid", f"the name of a key has 1 to {NAME_LENGTH} printable characters")
    if not scopes:
        yield Fault("/scopes", "required", f"give at least one of {', '.join(Scope)}")
    if models is not None:
        if Scope.ADMIN in scopes:
            yield Fault("/models", "not_legal", "a key with the scope admin reaches all models: it can create keys")
        if not models:
            yield Fault("/models", "required", "give at least one model, or null for all")
        for position, model in enumerate(models):
            if not re.fullmatch(MODEL_NAME, model):
                yield Fault(f"/models/{position}", "invalid", MODEL_NAME_RULE)
    if expires is not None and expires <= moment:
        yield Fault("/expires", "out_of_range", "a key must expire in the future")


# --- the callers of keys


NO_DIGEST = "0" * 64  # compared if there is no such key, so that the time of an answer reveals nothing
CACHE_SECONDS = 1.0
MAX_CACHED = 1024


@dataclass(frozen=True, slots=True)
class Record:
    """A cached key."""

    caller: Caller
    secret_sha256: str
    ends: float  # by the timer of the key ring
    revoked: datetime | None


class KeyRing:
    """Identifies callers by their keys. Thread-safe."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        cache: TTLCache[str, Record | None] = TTLCache(MAX_CACHED, CACHE_SECONDS, timer=timer)
        self._record = cached(cache, key=lambda _, key_id: key_id, lock=threading.Lock())(self._look_up)
        self.forget = self._record.cache_clear  # drops the cached keys

    def identify(self, source: Sessions, token: str) -> Caller:
        """Return the caller that a token identifies; raise `Unauthenticated` if there is none."""
        parts = TOKEN.fullmatch(token)
        if parts is None:
            raise Unauthenticated("this is not a key; a key looks like esp_<id>_<secret>")
        return self.caller_of(source, parts["id"], digest=secret_digest(parts["secret"]))

    def caller_of(self, source: Sessions, key_id: str, *, digest: str | None = None) -> Caller:
        """Return the caller of a key with this digest; None: the key was identified before.

        Raises:
            Unauthenticated: There is no such key, it was revoked, or it has expired.
        """
        record = self._record(source, key_id)
        stored = NO_DIGEST if record is None else record.secret_sha256
        if not hmac.compare_digest(digest or stored, stored) or record is None:
            raise Unauthenticated("there is no such key")
        if record.revoked is not None:
            raise Unauthenticated("this key was revoked")
        if self._timer() >= record.ends:
            raise Unauthenticated("this key has expired")
        return record.caller

    def _look_up(self, source: Sessions, key_id: str) -> Record | None:
        began = self._timer()
        with read_session(source) as session:
            row = session.execute(select(Key, now().label("moment")).where(Key.id == key_id)).first()
        if row is None:
            return None
        key: Key = row.Key
        ends = math.inf if key.expires is None else began + (key.expires - row.moment).total_seconds()
        models = None if key.models is None else frozenset(key.models)
        caller = Caller(key.id, frozenset(map(Scope, key.scopes)), models)
        return Record(caller, key.secret_sha256, ends=ends, revoked=key.revoked)
