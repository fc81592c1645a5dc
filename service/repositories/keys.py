"""API keys: their secrets are shown once, stored as a hash and compared in constant time; and what each key allows.

    esp_<id>_<secret>    id: the key's UUID; secret: 32 random bytes as 43 characters of base64url

Look-ups go through a cache of one second, so a revoked key stops working everywhere within a second. Keys expire by the
database's clock: at the same moment on every host.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from cachetools import TTLCache
from sqlalchemy import Connection, insert, select
from sqlalchemy.orm import Session

from espalier import Fault
from service.database.clock import database_time, new_id, now, utc_now
from service.database.engine import Sessions, read_session
from service.database.tables import Job, Key, Kind, Scope
from service.errors import Forbidden, NotFound, Unauthenticated, ValidationFailed
from service.repositories.models import check_model_name
from service.repositories.pages import Page, page
from service.settings import TOKEN

NAME_LENGTH = 200
SECRET_BYTES = 32
NO_DIGEST = "0" * 64  # compared with where there is no such key, so that the time of an answer reveals nothing
FIRST_NAME = "first admin key"
CACHE_SECONDS = 1.0
MAX_CACHED = 1024


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes:
        key_id: Of the key; None where keys are off.
        scopes: Of the key; `admin` allows everything.
        models: Names of the models that the key is limited to; None: all.
    """

    key_id: str | None
    scopes: frozenset[Scope]
    models: frozenset[str] | None = None

    def check_scope(self, *scopes: Scope) -> None:
        """Raise `Forbidden` if the key has none of these scopes."""
        if self.scopes.isdisjoint({*scopes, Scope.ADMIN}):
            needed = " or ".join(scopes)
            raise Forbidden(f"this needs a key with the scope {needed}; this one has {', '.join(sorted(self.scopes))}")

    def check_model(self, name: str | None) -> None:
        """Raise `Forbidden` if the key is limited to other models; None, what belongs to no model, is for all."""
        if self.models is not None and name is not None and name not in self.models:
            raise Forbidden(self._reach())

    def check_job(self, job: Job, scope: Scope) -> None:
        """Raise `Forbidden` if the scope is missing, or the key is limited to other models.

        A key that is limited to models reaches the jobs without a model that it requested itself; one with the scope
        `predict` the prediction jobs that it requested.
        """
        if Scope.PREDICT not in self.scopes or job.kind != Kind.PREDICT or job.key_id != self.key_id:
            self.check_scope(scope)
        self.check_model(job.model)
        if self.models is not None and job.model is None and job.key_id != self.key_id:
            raise Forbidden(f"{self._reach()}; of the jobs without a model only those that it asked for")

    def check_found(self, model: str | None) -> None:
        """Raise `Forbidden` if the model of a decision is out of reach, in the same words if there is no decision."""
        if self.models is not None and model not in self.models:
            raise Forbidden(f"{self._reach()}, and none of them has made this decision")

    def check_shared(self) -> None:
        """Raise `Forbidden` if the key is limited to models: it must not change what all models share."""
        if self.models is not None:
            raise Forbidden(f"{self._reach()}; data sets are shared: it may add some, not change or delete any")

    def check_unlimited(self) -> None:
        """Raise `Forbidden` if the key is limited to models, and the request is about all."""
        if self.models is not None:
            raise Forbidden(f"{self._reach()}; this speaks of all")

    def _reach(self) -> str:
        return f"this key reaches only the models {', '.join(sorted(self.models or ()))}"


ANONYMOUS = Caller(key_id=None, scopes=frozenset(Scope))


@dataclass(frozen=True, slots=True)
class Record:
    """A cached key.

    Attributes:
        caller: The caller that it identifies.
        secret_sha256: Hash of its secret.
        lasts: Seconds from the look-up until it expires; None: for ever.
        looked_up: By the timer of the key ring.
        revoked: When it was revoked, if it was.
    """

    caller: Caller
    secret_sha256: str
    lasts: float | None
    looked_up: float
    revoked: datetime | None


class KeyRing:
    """Identifies callers by their keys, for any number of threads.

    Args:
        timer: Monotonic seconds.
    """

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._cache: TTLCache[str, Record | None] = TTLCache(MAX_CACHED, CACHE_SECONDS, timer=timer)

    def identify(self, source: Sessions, token: str) -> Caller:
        """Return the caller that a token identifies.

        Raises:
            Unauthenticated: There is no such key, or it was revoked, or it has expired.
        """
        parts = TOKEN.fullmatch(token)
        if parts is None:
            raise Unauthenticated("this is not a key; a key looks like esp_<id>_<secret>")
        key_id, secret = parts["id"], parts["secret"]
        record = self._record(source, key_id)
        matches = hmac.compare_digest(_digest(secret), NO_DIGEST if record is None else record.secret_sha256)
        if record is None or not matches:
            raise Unauthenticated("there is no such key")
        if record.revoked is not None:
            raise Unauthenticated("this key was revoked")
        if record.lasts is not None and self._timer() - record.looked_up >= record.lasts:
            raise Unauthenticated("this key has expired")
        return record.caller

    def forget(self, key_id: str | None = None) -> None:
        """Look a key up again next time; None: every key."""
        with self._lock:
            if key_id is None:
                self._cache.clear()
            else:
                self._cache.pop(key_id, None)

    def _record(self, source: Sessions, key_id: str) -> Record | None:
        with self._lock:
            if key_id in self._cache:
                return self._cache[key_id]
        record = _look_up(source, key_id, self._timer())
        with self._lock:
            self._cache[key_id] = record
        return record


def create(
    session: Session,
    *,
    name: str,
    scopes: Collection[Scope],
    models: Collection[str] | None = None,
    expires: datetime | None = None,
) -> tuple[Key, str]:
    """Make a key and return it with its token, which is not stored.

    Raises:
        ValidationFailed: No name, no scope, an illegal model name, an admin key that is limited to models, or an end
            that has passed; every fault.
    """
    faults = list(_faults(name, scopes, models, expires, moment=database_time(session)))
    if faults:
        raise ValidationFailed(faults)
    key_id, secret = _generate()
    key = Key(
        id=key_id,
        name=name,
        secret_sha256=_digest(secret),
        scopes=sorted(set(scopes)),
        models=None if models is None else sorted(set(models)),
        created=utc_now(),
        expires=expires,
    )
    session.add(key)
    session.flush()
    return key, _token(key_id, secret)


def list_keys(session: Session, *, limit: int = 50, cursor: str | None = None) -> Page[Key]:
    """Return a page of keys, newest first, revoked and expired ones among them.

    Raises:
        ValidationFailed: The limit or the cursor is not legal.
    """
    return page(session, Key, limit=limit, cursor=cursor)


def revoke(session: Session, key_id: str) -> Key:
    """Revoke a key; a revoked one stays as it is.

    Raises:
        NotFound: There is no such key.
    """
    key = session.get(Key, key_id, with_for_update=True)
    if key is None:
        raise NotFound("key", key_id)
    key.revoked = key.revoked or utc_now()
    return key


def make_first(connection: Connection, given: str) -> str | None:
    """Make the first key, with the scope admin, if there is none, and return its token if it was generated here.

    Args:
        connection: Of the transaction of the migrations, which one process at a time may hold: of several that start
            together one makes the key.
        given: Its token; if it is not one, a token is generated.
    """
    if connection.scalar(select(Key.id).limit(1)) is not None:
        return None
    parts = TOKEN.fullmatch(given)
    key_id, secret = _generate() if parts is None else (parts["id"], parts["secret"])
    connection.execute(
        insert(Key).values(
            id=key_id, name=FIRST_NAME, secret_sha256=_digest(secret), scopes=[Scope.ADMIN], created=utc_now()
        )
    )
    return _token(key_id, secret) if parts is None else None


def _generate() -> tuple[str, str]:
    return new_id(), secrets.token_urlsafe(SECRET_BYTES)


def _token(key_id: str, secret: str) -> str:
    return f"esp_{key_id}_{secret}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _look_up(source: Sessions, key_id: str, began: float) -> Record | None:
    with read_session(source) as session:
        found = session.execute(select(Key, now().label("moment")).where(Key.id == key_id)).first()
    if found is None:
        return None
    key: Key = found.Key
    lasts = None if key.expires is None else (key.expires - found.moment).total_seconds()
    caller = Caller(
        key_id=key.id,
        scopes=frozenset(Scope(scope) for scope in key.scopes),
        models=None if key.models is None else frozenset(key.models),
    )
    return Record(caller, key.secret_sha256, lasts=lasts, looked_up=began, revoked=key.revoked)


def _faults(
    name: str,
    scopes: Collection[Scope],
    models: Collection[str] | None,
    expires: datetime | None,
    *,
    moment: datetime,
) -> Iterator[Fault]:
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        yield Fault("/name", "invalid", f"the name of a key has 1 to {NAME_LENGTH} printable characters")
    if not scopes:
        yield Fault("/scopes", "required", f"give at least one of {', '.join(Scope)}")
    if models is not None:
        if Scope.ADMIN in scopes:
            yield Fault("/models", "not_legal", "a key with the scope admin reaches all models: it can make such keys")
        if not models:
            yield Fault("/models", "required", "give at least one model, or null for all")
        for position, model in enumerate(models):
            try:
                check_model_name(model, pointer=f"/models/{position}")
            except ValidationFailed as error:
                yield from error.faults
    if expires is not None and expires <= moment:
        yield Fault("/expires", "out_of_range", "a key must expire in the future")
