"""Create and revoke API keys. A secret is shown once and stored as a hash.

A token has three parts::

    esp_<id>_<secret>    id: the key's UUID; secret: 32 random bytes as 43 characters of base64url

ESPALIER_ADMIN_KEY may give the first key a longer secret.
"""

import hashlib
import re
import secrets
from collections.abc import Collection, Iterator
from datetime import datetime

from sqlalchemy import Connection, insert, select
from sqlalchemy.orm import Session

from espalier import Fault
from service.database import MODEL_NAME, MODEL_NAME_RULE
from service.database.clock import database_time, new_id, utc_now
from service.database.tables import Key, Scope
from service.errors import NotFound, ValidationFailed
from service.settings import TOKEN

NAME_LENGTH = 200
SECRET_BYTES = 32


def secret_digest(secret: str) -> str:
    """Return the stored hash of a secret: SHA-256 in hexadecimal."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create(
    session: Session,
    *,
    name: str,
    scopes: Collection[str],
    models: Collection[str] | None = None,
    expires: datetime | None = None,
) -> tuple[Key, str]:
    """Create a key and return it with its token, which is not stored; raise `ValidationFailed` with every fault."""
    ValidationFailed.raise_for(_faults(name, scopes, models, expires, moment=database_time(session)))
    token = _new_token()
    limits = {"scopes": sorted(set(scopes)), "models": None if models is None else sorted(set(models))}
    key = Key(name=name, expires=expires, **limits, **_id_and_hash(token))
    session.add(key)
    session.flush()
    return key, token


def revoke(session: Session, key_id: str) -> Key:
    """Revoke a key, unless it is revoked already, and return it; raise `NotFound` if there is none."""
    key = session.get(Key, key_id, with_for_update=True)
    if key is None:
        raise NotFound("key", key_id)
    key.revoked = key.revoked or utc_now()
    return key


def make_first(connection: Connection, given: str) -> str | None:
    """Create a key with the scope admin if there is no key.

    Its token is `given`. If `given` is not a valid token, a token is generated and returned; else None is returned.
    """
    if connection.scalar(select(Key.id).limit(1)) is not None:
        return None
    token = given if TOKEN.fullmatch(given) else _new_token()
    row = {"name": "first admin key", "scopes": [Scope.ADMIN], "created": utc_now(), **_id_and_hash(token)}
    connection.execute(insert(Key).values(row))
    return None if token == given else token


def _new_token() -> str:
    return f"esp_{new_id()}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _id_and_hash(token: str) -> dict[str, str]:
    _, key_id, secret = token.split("_", maxsplit=2)
    return {"id": key_id, "secret_sha256": secret_digest(secret)}


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
