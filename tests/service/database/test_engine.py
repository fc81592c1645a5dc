"""Engine, transactions, the database's clock, ids."""

import os
import resource
import sqlite3
import threading
import time
import uuid
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import create_engine, select, text
from sqlalchemy.orm import Session

from service.database import sqlite
from service.database.clock import new_id, now, utc_now
from service.database.engine import Sessions, connect, connect_read_only, read_session, sessions, transaction
from service.database.migrate import schema_mismatch
from service.database.tables import ModelName
from service.errors import Conflict, Unavailable, ValidationFailed
from service.settings import Settings
from tests.service.waiting import until


def _model(name: str) -> ModelName:
    return ModelName(id=new_id(), name=name, created=utc_now())


def test_sqlite_is_safe_against_power_loss_and_checks_its_keys(tmp_path: Path) -> None:
    engine = connect(Settings(database_url=f"sqlite:///{tmp_path}/deep/er/a.db"))

    with engine.connect() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    engine.dispose()

    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 10_000, "foreign_keys": 1}


@pytest.mark.parametrize("name", ["a%20b.db", "a b.db", "50%.db", "ä#&+;'.db"])
def test_an_sqlite_file_has_the_name_in_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("ESPALIER_DATABASE_URL", f"sqlite:///{tmp_path}/{name}")
    settings = Settings.from_env()
    for connected in (connect, connect_read_only):
        engine = connected(settings)
        with engine.connect() as connection:
            connection.execute(text("SELECT count(*) FROM sqlite_master"))
        engine.dispose()

    assert [file.name for file in tmp_path.iterdir()] == [settings.database_file.name if settings.database_file else ""]
    assert (tmp_path / name).is_file()


def test_a_transaction_is_kept_as_a_whole(source: Sessions) -> None:
    with transaction(source) as session:
        session.add_all([_model("a"), _model("b")])

    with read_session(source) as session:
        assert sorted(session.scalars(select(ModelName.name))) == ["a", "b"]


def test_a_transaction_that_fails_leaves_nothing(source: Sessions) -> None:
    def change_and_fail() -> None:
        with transaction(source) as session:
            session.add(_model("a"))
            session.flush()
            raise LookupError

    with pytest.raises(LookupError):
        change_and_fail()

    with read_session(source) as session:
        assert session.scalars(select(ModelName)).all() == []


def test_a_reader_does_not_wait_for_a_writer_and_sees_the_state_before(source: Sessions) -> None:
    with transaction(source) as writer:
        writer.add(_model("a"))
        writer.flush()
        with read_session(source) as reader:
            assert reader.scalars(select(ModelName)).all() == []


def test_a_reader_sees_one_state_from_first_to_last(source: Sessions) -> None:
    with read_session(source) as reader:
        before = reader.scalars(select(ModelName.name)).all()
        with transaction(source) as writer:
            writer.add(_model("a"))
        assert reader.scalars(select(ModelName.name)).all() == before == []


def test_two_writers_take_turns(source: Sessions) -> None:
    with transaction(source) as session:
        session.add(_model("counter"))

    def count() -> None:
        for _ in range(20):
            with transaction(source) as session:
                row = session.scalars(select(ModelName).with_for_update()).one()
                row.last_number += 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with read_session(source) as session:
        assert session.scalars(select(ModelName.last_number)).one() == 80


def test_a_writer_gives_up_when_another_one_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    source = sessions(connect(Settings(database_url=f"sqlite:///{tmp_path}/a.db")))
    with transaction(source) as session:
        session.execute(text("CREATE TABLE a (b)"))
        with pytest.raises(Unavailable), transaction(source) as other:
            other.execute(text("SELECT 1"))
    with transaction(source) as session:  # both connections are as good as new
        session.execute(text("INSERT INTO a VALUES (1)"))
    with source.engine.connect() as connection:
        assert connection.scalar(text("PRAGMA busy_timeout")) == 10_000
        assert connection.scalar(text("SELECT count(*) FROM a")) == 1
    source.engine.dispose()


def test_a_log_that_cannot_be_emptied_is_unavailable_and_can_be_emptied_later(tmp_path: Path) -> None:
    engine = connect(Settings(database_url=f"sqlite:///{tmp_path}/a.db"))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE texts (one TEXT)"))
        connection.execute(text("INSERT INTO texts VALUES (:one)"), {"one": "x" * 2**20})
    log = tmp_path / "a.db-wal"
    assert log.stat().st_size > 2**20

    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, most))  # as on a disk without space
    try:
        with pytest.raises(Unavailable, match="write-ahead log"):
            sqlite.empty_log(engine)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA busy_timeout")).scalar() == 10_000
    sqlite.empty_log(engine)

    assert log.stat().st_size == 0
    engine.dispose()


def test_a_file_system_without_a_write_ahead_log_is_an_error_and_no_endless_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    opened = sqlite3.connect(f"file:{tmp_path}/a.db?vfs=unix-none", uri=True)
    with closing(opened) as connection, pytest.raises(sqlite3.OperationalError, match="write-ahead log"):
        sqlite.prepare(connection)


def test_breaking_a_constraint_is_a_conflict(source: Sessions) -> None:
    with transaction(source) as session:
        session.add(_model("same"))

    with pytest.raises(Conflict), transaction(source) as session:
        session.add(_model("same"))


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_text_that_postgresql_takes_nowhere_is_refused(source: Sessions) -> None:
    with pytest.raises(ValidationFailed), read_session(source) as session:
        session.scalars(select(ModelName).where(ModelName.name == "a\0")).all()
    with pytest.raises(ValidationFailed), transaction(source) as session:
        session.add(_model("a\0"))


def test_a_database_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    folder = tmp_path / "folder.db"
    folder.mkdir()
    engine = connect(Settings(database_url=f"sqlite:///{folder}"))

    with pytest.raises(Unavailable) as caught, read_session(sessions(engine)) as session:
        session.execute(text("SELECT 1"))
    assert (caught.value.reason, str(folder) in caught.value.log_message) == ("SQLITE_CANTOPEN", False)


def test_a_file_of_another_kind_is_unavailable_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.db").write_text("not a database, whatever its name says; " * 50)
    engine = connect(Settings(database_url=f"sqlite:///{tmp_path}/text.db"))
    pauses: list[float] = []
    monkeypatch.setattr(sqlite, "time", SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append))

    with pytest.raises(Unavailable, match="cannot be read") as caught, read_session(sessions(engine)) as session:
        session.execute(select(ModelName))

    engine.dispose()
    assert caught.value.reason == "SQLITE_NOTADB"
    assert pauses == []


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    engine = connect(Settings(database_url="postgresql+psycopg://nobody:secret@127.0.0.1:1/none"))

    with pytest.raises(Unavailable) as caught, read_session(sessions(engine)) as session:
        session.execute(text("SELECT 1"))
    assert "port 1 failed: Connection refused" in caught.value.log_message
    assert "secret" not in caught.value.log_message
    assert "refused" not in str(caught.value)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_of_a_connection_that_the_server_ends_its_code_is_the_reason(source: Sessions) -> None:
    def idle(session: Session) -> None:
        own = session.scalar(text("SELECT pg_backend_pid()"))
        session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 50"))
        there = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
        with source.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as other:
            until(lambda: other.scalar(there, {"pid": own}) == 0)
        session.execute(text("SELECT 1"))

    with pytest.raises(Unavailable) as caught, transaction(source) as session:
        idle(session)
    assert caught.value.reason == "25P03 IdleInTransactionSessionTimeout"


def test_the_clock_of_the_database_is_utc_and_moves_by_seconds(source: Sessions) -> None:
    with read_session(source) as session:
        earlier, present, later = session.execute(select(now(-30.5), now(), now(15.25))).one()

    assert abs(present - datetime.now(UTC)) < timedelta(minutes=10)  # zones lie a quarter of an hour apart at least
    assert abs(later - present - timedelta(seconds=15.25)) < timedelta(seconds=1)
    assert abs(present - earlier - timedelta(seconds=30.5)) < timedelta(seconds=1)


def test_moments_come_back_in_utc_and_compare_with_the_clock(source: Sessions) -> None:
    moment = datetime(2026, 11, 20, 13, 30, 0, 250_000, tzinfo=UTC)
    with transaction(source) as session:
        session.add(ModelName(id=new_id(), name="a", created=moment))

    with read_session(source) as session:
        row = session.scalars(select(ModelName)).one()
        assert row.created == moment
        assert row.created.utcoffset() == timedelta(0)
        since = (moment - datetime.now(UTC)).total_seconds()
        assert session.scalars(select(ModelName).where(ModelName.created > now(since - 60))).all() == [row]
        assert session.scalars(select(ModelName).where(ModelName.created > now(since + 60))).all() == []


def test_a_moment_without_zone_is_refused(source: Sessions) -> None:
    naive = datetime(2026, 1, 1)

    with pytest.raises(Exception, match="has no time zone"), transaction(source) as session:
        session.add(ModelName(id=new_id(), name="a", created=naive))


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    before = time.time_ns() // 1_000_000
    parsed = uuid.UUID(new_id())

    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert before <= parsed.int >> 80 <= time.time_ns() // 1_000_000


def test_ids_of_a_process_only_grow() -> None:
    ids = [new_id() for _ in range(20_000)]

    assert ids == sorted(set(ids))


def test_threads_never_get_the_same_id() -> None:
    made: list[list[str]] = [[] for _ in range(4)]

    def fill(ids: list[str]) -> None:
        ids.extend(new_id() for _ in range(5_000))

    threads = [threading.Thread(target=fill, args=(ids,)) for ids in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({identity for ids in made for identity in ids}) == 20_000


def test_a_forked_process_lets_go_of_connections_without_closing_them(source: Sessions) -> None:
    with read_session(source) as session:
        assert session.scalar(select(now()))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            source.engine.dispose(close=False)
            with transaction(source) as session:
                session.add(_model("from the child"))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)

    assert status == 0
    with read_session(source) as session:
        assert session.scalars(select(ModelName.name)).all() == ["from the child"]


def test_an_empty_database_is_not_current(database_url: str) -> None:
    engine = connect(Settings(database_url=database_url))

    assert schema_mismatch(engine) is not None
    engine.dispose()


def test_a_migrated_database_is_current(source: Sessions) -> None:
    assert schema_mismatch(source.engine) is None


def test_tables_from_another_version_are_not_current(settings: Settings, source: Sessions) -> None:
    engine = create_engine(source.engine.url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'v9999'"))
    engine.dispose()

    assert schema_mismatch(source.engine) is not None
