"""What a key opens, and when it stops."""

from datetime import timedelta

import pytest
import sqlalchemy

from service.database.clock import utc_now
from service.database.engine import Sessions, transaction
from service.database.tables import Key, Scope
from service.errors import Forbidden, Unauthenticated, ValidationFailed
from service.repositories import keys
from service.repositories.key_ring import KeyRing
from tests.service.clocks import set_wrong
from tests.service.repositories.test_keys import GIVEN, UNKNOWN, made


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
