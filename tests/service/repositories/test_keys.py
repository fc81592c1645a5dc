"""API keys: what is stored of them, and the first one."""

import hashlib
from datetime import UTC, datetime

import pytest
import sqlalchemy

from service.database.engine import Sessions, connect, read_session, sessions, transaction
from service.database.migrate import migrate
from service.database.tables import Key, Scope
from service.errors import NotFound, ValidationFailed
from service.repositories import keys
from service.repositories.key_ring import KeyRing
from service.repositories.pagination import page
from service.settings import Settings
from tests.service.starting import process_context

UNKNOWN = "01890000-0000-7000-8000-000000000000"
GIVEN = f"esp_{UNKNOWN}_{'a' * 43}"


def made(source: Sessions, *scopes: Scope, **more: object) -> tuple[Key, str]:
    with transaction(source) as session:
        return keys.create(session, name="robot", scopes=scopes or (Scope.READ,), **more)  # type: ignore[arg-type]


def test_of_the_secret_only_its_hash_is_stored(source: Sessions) -> None:
    key, token = made(source)
    secret = token.split("_", 2)[2]

    with source.engine.connect() as connection:
        stored = connection.execute(sqlalchemy.text("select * from keys")).one()

    assert token == f"esp_{key.id}_{secret}"
    assert len(secret) == 43  # 32 bytes by six bits a sign
    assert stored.secret_sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(stored)


def test_no_two_keys_are_alike(source: Sessions) -> None:
    assert made(source)[1].split("_", 2)[2] != made(source)[1].split("_", 2)[2]


def test_revoking_again_keeps_the_first_moment(source: Sessions) -> None:
    key, _ = made(source)
    moments = []
    for _ in range(2):
        with transaction(source) as session:
            moments.append(keys.revoke(session, key.id).revoked)

    assert moments[0] == moments[1]
    with pytest.raises(NotFound), transaction(source) as session:
        keys.revoke(session, UNKNOWN)


def test_every_fault_of_a_new_key_is_said_at_once(source: Sessions) -> None:
    with pytest.raises(ValidationFailed) as caught, transaction(source) as session:
        keys.create(session, name="a\nb", scopes=[], models=["ok", "-x"], expires=datetime(2020, 1, 1, tzinfo=UTC))

    assert [fault.path for fault in caught.value.faults] == ["/name", "/scopes", "/models/1", "/expires"]


def test_a_key_that_can_make_keys_is_not_limited_to_models(source: Sessions) -> None:
    with pytest.raises(ValidationFailed) as caught:
        made(source, Scope.ADMIN, models=["a"])

    assert [fault.path for fault in caught.value.faults] == ["/models"]


def test_keys_are_listed_newest_first_page_by_page(source: Sessions) -> None:
    ids = [made(source)[0].id for _ in range(3)]
    with read_session(source) as session:
        first = page(session, Key, limit=2)
        second = page(session, Key, limit=2, cursor=first.next)

    assert [key.id for key in first.items + second.items] == ids[::-1]
    assert second.next is None


# The first key


def all_keys(settings: Settings) -> list[Key]:
    engine = connect(settings)
    with read_session(sessions(engine)) as session:
        found = list(page(session, Key).items)
    engine.dispose()
    return found


def test_migrating_makes_one_admin_key_where_there_is_none(database_url: str) -> None:
    settings = Settings(database_url=database_url, auth="keys")

    token = migrate(settings)
    again = migrate(settings)

    [key] = all_keys(settings)
    assert key.scopes == ["admin"]
    assert token is not None
    assert token.startswith(f"esp_{key.id}_")
    assert again is None
    engine = connect(settings)
    assert KeyRing().identify(sessions(engine), token).key_id == key.id
    engine.dispose()


def test_a_first_key_that_is_given_is_taken_and_never_told(database_url: str) -> None:
    settings = Settings(database_url=database_url, auth="keys", admin_key=GIVEN)

    told = migrate(settings)

    assert told is None
    engine = connect(settings)
    assert KeyRing().identify(sessions(engine), GIVEN).scopes == {Scope.ADMIN}
    engine.dispose()


def test_where_keys_are_off_none_is_made(database_url: str) -> None:
    settings = Settings(database_url=database_url)

    assert migrate(settings) is None
    assert all_keys(settings) == []


def test_of_many_processes_that_start_at_once_one_makes_the_key(database_url: str) -> None:
    settings = Settings(database_url=database_url, auth="keys")
    with process_context().Pool(4) as pool:
        told = pool.map(migrate, [settings] * 4, chunksize=1)

    [key] = all_keys(settings)
    assert sorted(token is None for token in told) == [False, True, True, True]
    assert [token.startswith(f"esp_{key.id}_") for token in told if token is not None] == [True]
