"""The key ring: identifies callers by their keys.

Secrets are compared in constant time. Look-ups are cached for one second, so a revoked key stops working everywhere
within a second. Keys expire by the database's clock, at the same moment on every host.
"""

import hmac
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cachetools import TTLCache, cached
from sqlalchemy import select

from service.database.clock import now
from service.database.engine import Sessions, read_session
from service.database.tables import Key, Scope
from service.errors import Unauthenticated
from service.permissions import Caller
from service.repositories.keys import secret_digest
from service.settings import TOKEN

NO_DIGEST = "0" * 64  # compared if there is no such key, so that the response time does not reveal this
CACHE_SECONDS = 1.0
MAX_CACHED = 1024


@dataclass(frozen=True, slots=True)
class Record:
    """A cached key."""

    caller: Caller
    secret_sha256: str
    ends: float  # time of expiry by the timer of the key ring
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
        """Return the caller of a key. `digest` is the hash of the secret to check; None if it was checked before.

        Raises `Unauthenticated` if there is no such key, the digest differs, or the key was revoked or has expired.
        """
        record = self._record(source, key_id)
        stored = NO_DIGEST if record is None else record.secret_sha256
        if not hmac.compare_digest(stored if digest is None else digest, stored) or record is None:
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
