"""Statements that are made with nearly every request: they see and leave what is committed, and outlive a cut."""

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import event, select, text, update

from service import catalog, decisions
from service.catalog import NEWEST
from service.database.clock import new_id, utc_now
from service.database.engine import Sessions, connect, reading, transaction
from service.database.tables import DecisionRecord, Version
from service.errors import Conflict, Rejected, Unavailable
from service.postgres import KeptStatement
from service.prepared import Inserted, Prepared
from service.settings import Settings
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
        session.execute(update(Version).values(archived=utc_now()))
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


def test_a_name_with_a_sign_that_the_database_takes_in_no_text_is_not_cut_short(
    source: Sessions, newest: Prepared
) -> None:
    version = keep_version(source)
    assert newest.value("drugs") == version.id
    if source.engine.dialect.name == "postgresql":
        with pytest.raises(Rejected):
            newest.value("drugs\0more")
    else:
        assert newest.value("drugs\0more") is None


def test_a_session_that_keeps_no_statements_is_told_them_again(
    source: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a connection pooler, which may change the session below us."""
    if source.engine.dialect.name != "postgresql":
        pytest.skip("a file keeps none")
    made: list[Any] = []
    event.listen(source.engine, "connect", lambda connection, _: made.append(connection))
    newest, records = Prepared(source.engine, NEWEST), Inserted(source.engine, decisions.ENTRIES)
    entries = entries_of(source, "HIGH", "LOW", "NORMAL")
    version = entries[0]["version_id"]
    assert newest.value("drugs") == version
    records.insert(entries[:1])
    kept = [connection for connection in made if statements_of(connection)]
    assert len(kept) == 2  # each has one
    for connection in kept:
        connection.execute("DEALLOCATE ALL")

    assert newest.value("drugs") == version
    records.insert(entries[1:2])
    assert [len(statements_of(connection)) for connection in kept] == [1, 1]

    monkeypatch.setattr(KeptStatement, "keep", lambda *_: None)  # one that never has what it was told a moment ago
    for connection in kept:
        connection.execute("DEALLOCATE ALL")
    assert newest.value("drugs") == version
    records.insert(entries[2:])
    with reading(source) as session:
        assert set(session.scalars(select(DecisionRecord.id))) == {entry["id"] for entry in entries}
    newest.close()


def statements_of(connection: Any) -> list[str]:
    """The names of the statements that the session of a driver's connection keeps, in no transaction that lasts."""
    if connection.closed or not connection.autocommit:
        return []
    return [name for (name,) in connection.execute("SELECT name FROM pg_prepared_statements")]


def test_values_are_the_servers_own_words_whether_a_session_keeps_the_statement_or_not(
    source: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source.engine.dialect.name != "postgresql":
        pytest.skip("a file keeps none")
    statement = KeptStatement("SELECT $1::int > 2, '\\x00ff'::bytea, NULL, $1")
    pooled = source.engine.raw_connection()
    connection: Any = pooled.driver_connection
    pooled.detach()
    with closing(connection):
        connection.autocommit = True
        found = [statement.rows(connection, ["3"])]
        connection.execute("DEALLOCATE ALL")
        monkeypatch.setattr(KeptStatement, "keep", lambda *_: None)
        found.append(statement.rows(connection, ["3"]))
    assert found == [[[b"t", b"\\x00ff", None, b"3"]]] * 2


def test_a_statement_has_the_name_of_no_other() -> None:
    names = {KeptStatement(text)._name for text in ("SELECT $1::text", "SELECT $1::text ", "SELECT $1::int")}
    assert len(names) == 3
    assert KeptStatement("SELECT 1")._name == KeptStatement("SELECT 1")._name


def test_a_connection_that_was_cut_off_is_replaced(source: Sessions, newest: Prepared) -> None:
    if source.engine.dialect.name != "postgresql":
        pytest.skip("of a file nothing can be cut off")
    version = keep_version(source)
    assert newest.value("drugs") == version.id
    with source.engine.connect() as connection:
        connection.execute(text(f"{DROP} pg_backend_pid()"))

    assert newest.value("drugs") == version.id


def test_a_database_that_cannot_be_read_is_not_available(on_sqlite: Settings) -> None:
    engine = connect(on_sqlite)
    newest = Prepared(engine, NEWEST)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE versions"))

    with pytest.raises(Unavailable):
        newest.value("drugs")

    engine.dispose()


@pytest.fixture
def records(source: Sessions) -> Inserted:
    return Inserted(source.engine, decisions.ENTRIES)


def entries_of(source: Sessions, *values: str) -> list[dict[str, Any]]:
    kept = keep_version(source)
    with reading(source) as session:
        version = catalog.load_version(session, kept.id)
    return [
        decisions.new_entry(
            version=version,
            inputs=[{"pressure": value, "age": 1.5}],
            answers=[{"label": value, "leaf": 2}],
            nodes=[(0, 2)],
            milliseconds=0.25,
        )
        for value in values
    ]


def test_rows_are_read_back_as_the_mapped_class_has_them(source: Sessions, records: Inserted) -> None:
    entries = entries_of(source, "HIGH", "quote ' \" \\ é", "", "before\0after")

    records.insert(entries[:3])
    records.insert(entries[3:])  # a sign that PostgreSQL takes in no text but JSON

    with reading(source) as session:
        for entry in entries:
            found = session.get_one(DecisionRecord, entry["id"])
            assert {name: getattr(found, name) for name in entry} == entry
            assert (found.packed, found.erased, found.job_id) == (None, None, None)


def test_of_rows_where_one_is_refused_none_is_there(source: Sessions, records: Inserted) -> None:
    for values in (("HIGH", "LOW"), ("HIGH\0", "LOW")):
        entries = entries_of(source, *values)
        entries[1]["version_id"] = new_id()
        with pytest.raises(Conflict):
            records.insert(entries)

        with reading(source) as session:
            assert session.scalars(select(DecisionRecord.id)).all() == []
    records.insert(entries_of(source, "HIGH"))  # the connection is as good as new


def test_rows_are_inserted_by_a_connection_anew_where_one_was_cut_off(source: Sessions, records: Inserted) -> None:
    if source.engine.dialect.name != "postgresql":
        pytest.skip("of a file nothing can be cut off")
    first, second = entries_of(source, "HIGH", "LOW")
    records.insert([first])
    with source.engine.connect() as connection:
        connection.execute(text(f"{DROP} pg_backend_pid()"))

    records.insert([second])

    with reading(source) as session:
        assert set(session.scalars(select(DecisionRecord.id))) == {first["id"], second["id"]}
