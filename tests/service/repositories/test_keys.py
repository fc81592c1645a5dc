"""API keys: what is stored of them, what they open, and when they stop."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy

from service.database.clock import utc_now
from service.database.engine import Sessions, connect, read_session, sessions, transaction
from service.database.migrate import migrate
from service.database.tables import Key, Scope
from service.errors import Forbidden, NotFound, Unauthenticated, ValidationFailed
from service.repositories import keys
from service.repositories.pages import page
from service.settings import Settings
from service.usecases.key_ring import KeyRing
from tests.service.clocks import set_wrong
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


def test_a_key_stands_for_its_scopes_and_models(source: Sessions) -> None:
    key, token = made(source, Scope.PREDICT, Scope.READ, models=["b", "a"])

    caller = KeyRing().identify(source, token)

    assert (caller.key_id, caller.scopes) == (key.id, {"predict", "read"})
    assert caller.models == {"a", "b"}
    caller.check_scope(Scope.READ)
    caller.check_model("a")
    caller.check_model(None)
    with pytest.raises(Forbidden, match="scope train; this one has predict, read"):
        caller.check_scope(Scope.TRAIN)
    with pytest.raises(Forbidden, match="only the models a, b"):
        caller.check_model("c")


def test_admin_stands_for_every_scope(source: Sessions) -> None:
    caller = KeyRing().identify(source, made(source, Scope.ADMIN)[1])
    for scope in Scope:
        caller.check_scope(scope)


def test_what_does_not_look_like_a_key_is_none(source: Sessions) -> None:
    for token in ("", "esp", "esp__", "secret", f"esp_{UNKNOWN}", f"ESP_{UNKNOWN}_{'a' * 43}", GIVEN + "\n"):
        with pytest.raises(Unauthenticated, match="not a key"):
            KeyRing().identify(source, token)


def test_the_id_alone_opens_nothing(source: Sessions) -> None:
    key, token = made(source)
    other = made(source)[1]

    for wrong in (f"esp_{key.id}_{other.split('_', 2)[2]}", token[:-1] + ("A" if token[-1] != "A" else "B"), GIVEN):
        with pytest.raises(Unauthenticated, match="there is no such key"):
            KeyRing().identify(source, wrong)


def test_a_revoked_key_stops_everywhere_within_a_second(source: Sessions) -> None:
    seconds = [0.0]
    elsewhere = KeyRing(lambda: seconds[0])
    key, token = made(source)
    elsewhere.identify(source, token)

    with transaction(source) as session:
        keys.revoke(session, key.id)
    seconds[0] = 1.0

    with pytest.raises(Unauthenticated, match="revoked"):
        elsewhere.identify(source, token)


def test_revoking_again_keeps_the_first_moment(source: Sessions) -> None:
    key, _ = made(source)
    moments = []
    for _ in range(2):
        with transaction(source) as session:
            moments.append(keys.revoke(session, key.id).revoked)

    assert moments[0] == moments[1]
    with pytest.raises(NotFound), transaction(source) as session:
        keys.revoke(session, UNKNOWN)


def test_a_key_expires_on_the_moment_though_it_is_kept(source: Sessions) -> None:
    seconds = [0.0]
    ring = KeyRing(lambda: seconds[0])
    _, token = made(source, expires=utc_now() + timedelta(seconds=0.8))
    ring.identify(source, token)
    seconds[0] = 0.2  # some of the time has gone by before it was looked up
    ring.identify(source, token)
    seconds[0] = 0.8

    with pytest.raises(Unauthenticated, match="expired"):
        ring.identify(source, token)


@pytest.mark.parametrize("hours", [2, -2])
def test_a_key_expires_by_the_databases_clock_whatever_a_host_says(
    source: Sessions, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    hour, right = timedelta(hours=1), utc_now()
    past, future = made(source), made(source, expires=right + hour)
    with transaction(source) as session:
        session.execute(sqlalchemy.update(Key).where(Key.id == past[0].id).values(expires=right - hour))
    set_wrong(monkeypatch, hours=hours)

    KeyRing().identify(source, future[1])
    KeyRing().identify(source, made(source, expires=right + hour)[1])
    with pytest.raises(Unauthenticated, match="expired"):
        KeyRing().identify(source, past[1])
    with pytest.raises(ValidationFailed, match="in the future"):
        made(source, expires=right - hour)


def test_the_old_and_the_new_key_of_a_rotation_both_work(source: Sessions) -> None:
    old, old_token = made(source)
    _, new_token = made(source)
    ring = KeyRing(lambda: 0.0)
    assert {ring.identify(source, token).scopes for token in (old_token, new_token)} == {frozenset({Scope.READ})}

    with transaction(source) as session:
        keys.revoke(session, old.id)
    ring.forget()

    ring.identify(source, new_token)
    with pytest.raises(Unauthenticated):
        ring.identify(source, old_token)


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
