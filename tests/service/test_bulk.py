"""Transactions that write much: durable at their end, copied into SQLite's file afterwards."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import select, text

from service import db, sqlite
from service.bulk import bulk_transaction, take_over
from service.db import new_id, reading, transaction
from service.settings import Settings
from service.tables import ModelName
from tests.service.served import wait_for_copying

SQLITE_PAGE = 4096
MUCH = "x" * (2 * sqlite.PAGES_IN_LOG * SQLITE_PAGE)


def file_size(settings: Settings) -> int:
    assert settings.database_file is not None
    return settings.database_file.stat().st_size


def migrated(folder: Path) -> tuple[Settings, db.Sessions]:
    settings = Settings(database_url=f"sqlite:///{folder}/a.db", auth="none")
    db.migrate(settings)
    return settings, db.sessions(db.connect(settings))


def test_what_is_committed_in_bulk_stays_in_the_log_until_it_is_taken_over(tmp_path: Path) -> None:
    settings, source = migrated(tmp_path)
    before = file_size(settings)
    with db.translated(), source.bulk.begin() as session:
        session.add(ModelName(id=new_id(), name="m", created=db.utc_now(), description=MUCH))
    at_commit = file_size(settings)

    take_over(source.engine)

    assert at_commit == before
    assert file_size(settings) > before + len(MUCH)
    source.engine.dispose()


def test_a_bulk_transaction_is_taken_over_by_itself(tmp_path: Path) -> None:
    settings, source = migrated(tmp_path)
    before = file_size(settings)

    with bulk_transaction(source) as session:
        session.add(ModelName(id=new_id(), name="m", created=db.utc_now(), description=MUCH))
    wait_for_copying()

    assert file_size(settings) > before + len(MUCH)
    source.engine.dispose()


def test_transactions_that_follow_on_the_same_connection_take_the_log_over_as_before(tmp_path: Path) -> None:
    settings, source = migrated(tmp_path)
    before = file_size(settings)
    with source.bulk.begin() as session:
        session.execute(text("SELECT 1"))

    with transaction(source) as session:
        session.add(ModelName(id=new_id(), name="m", created=db.utc_now(), description=MUCH))

    assert file_size(settings) > before + len(MUCH)
    source.engine.dispose()


def test_a_log_that_cannot_be_taken_over_is_left_to_the_next_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings, source = migrated(tmp_path)
    source.engine.dispose()
    assert settings.database_file is not None
    settings.database_file.unlink()
    settings.database_file.mkdir()

    take_over(source.engine)

    assert "was not taken over" in caplog.text


def test_what_is_committed_is_no_failure_where_no_thread_can_be_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, source = migrated(tmp_path)

    def full(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as no_more:
        no_more.setattr(threading.Thread, "start", full)
        with bulk_transaction(source) as session:
            session.add(ModelName(id=new_id(), name="kept", created=db.utc_now()))

    assert "was not taken over" in caplog.text
    with reading(source) as session:
        assert session.scalars(select(ModelName.name)).all() == ["kept"]
    source.engine.dispose()


def test_on_each_database_a_bulk_transaction_is_kept_as_a_whole(source: db.Sessions) -> None:
    with bulk_transaction(source) as session:
        session.add(ModelName(id=new_id(), name="kept", created=db.utc_now()))
    wait_for_copying()

    with reading(source) as session:
        assert session.scalars(select(ModelName.name)).all() == ["kept"]
