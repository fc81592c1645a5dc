"""A statement that is made with nearly every request: it sees what is committed, and outlives its connections."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text, update

from service import db
from service.catalog import NEWEST
from service.db import Sessions, transaction
from service.errors import Unavailable
from service.prepared import Prepared
from service.settings import Settings
from service.tables import Version
from tests.service.kept import keep_version

DROP = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "


@pytest.fixture
def newest(source: Sessions) -> Iterator[Prepared]:
    prepared = Prepared(source.engine, NEWEST)
    yield prepared
    prepared.close()


def test_what_is_committed_is_seen_at_once_and_what_is_not_is_not(source: Sessions, newest: Prepared) -> None:
    assert newest.value("drugs") is None
    first = keep_version(source)
    assert newest.value("drugs") == first.id

    with transaction(source) as session:
        session.execute(update(Version).values(archived=db.utc_now()))
        session.flush()
        assert newest.value("drugs") == first.id
    assert newest.value("drugs") is None

    second = keep_version(source)
    assert newest.value("drugs") == second.id
    assert newest.value("other") is None


def test_many_threads_ask_at_once(source: Sessions, newest: Prepared) -> None:
    version = keep_version(source)
    found: list[str | None] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        found.extend(newest.value("drugs") for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [version.id] * 400


def test_a_connection_that_was_cut_off_is_replaced(source: Sessions, newest: Prepared) -> None:
    if source.engine.dialect.name != "postgresql":
        pytest.skip("of a file nothing can be cut off")
    version = keep_version(source)
    assert newest.value("drugs") == version.id
    with source.engine.connect() as connection:
        connection.execute(text(f"{DROP} pg_backend_pid()"))

    assert newest.value("drugs") == version.id


def test_a_database_that_cannot_be_read_is_not_available(on_sqlite: Settings) -> None:
    engine = db.connect(on_sqlite)
    newest = Prepared(engine, NEWEST)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE versions"))

    with pytest.raises(Unavailable):
        newest.value("drugs")

    engine.dispose()
