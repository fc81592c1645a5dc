"""Transactions that write much: durable at their end, copied into SQLite's file afterwards."""

import os
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import event, select, text

import espalier
from service import catalog, storage
from service.bulk import bulk_transaction, take_over, transaction_for
from service.chunks import Chunk
from service.database import sqlite
from service.database.clock import new_id, utc_now
from service.database.engine import Sessions, connect, reading, sessions, transaction, translated
from service.database.migrate import migrate
from service.database.tables import ModelName
from service.log_growth import make_room
from service.settings import Settings
from tests.service.served import wait_for_copying

MUCH = "x" * (2 * sqlite.PAGES_IN_LOG * sqlite.PAGE_BYTES)


def file_size(settings: Settings) -> int:
    assert settings.database_file is not None
    return settings.database_file.stat().st_size


def bytes_read() -> int:
    """That this process has had from files so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def migrated(folder: Path) -> tuple[Settings, Sessions]:
    settings = Settings(database_url=f"sqlite:///{folder}/a.db", auth="none")
    migrate(settings)
    return settings, sessions(connect(settings))


def test_what_is_committed_in_bulk_stays_in_the_log_until_it_is_taken_over(tmp_path: Path) -> None:
    settings, source = migrated(tmp_path)
    before = file_size(settings)
    with translated(), source.bulk.begin() as session:
        session.add(ModelName(id=new_id(), name="m", created=utc_now(), description=MUCH))
    at_commit = file_size(settings)

    take_over(source.engine)

    assert at_commit == before
    assert file_size(settings) > len(MUCH) > before
    source.engine.dispose()


def test_a_bulk_transaction_is_taken_over_by_itself(tmp_path: Path) -> None:
    settings, source = migrated(tmp_path)
    before = file_size(settings)

    with bulk_transaction(source) as session:
        session.add(ModelName(id=new_id(), name="m", created=utc_now(), description=MUCH))
    wait_for_copying()

    assert file_size(settings) > len(MUCH) > before
    source.engine.dispose()


def test_a_long_write_at_once_is_taken_over_when_its_transaction_has_ended(tmp_path: Path) -> None:
    settings, source = migrated(tmp_path)
    before, at_commit = file_size(settings), []

    with transaction_for(source, len(MUCH)) as session:
        event.listen(session, "after_commit", lambda _: at_commit.append(file_size(settings)))
        session.add(ModelName(id=new_id(), name="m", created=utc_now(), description=MUCH))

    assert at_commit == [before]
    assert file_size(settings) > len(MUCH) > before
    source.engine.dispose()
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


def test_room_that_was_made_for_much_is_given_back(tmp_path: Path) -> None:
    _, source = migrated(tmp_path)
    with source.bulk.begin() as session:
        make_room(session, 64 * 2**20)

    with reading(source) as session:
        room = session.scalar(text("PRAGMA cache_size"))

    assert str(room) == sqlite.PAGES_IN_MEMORY
    source.engine.dispose()


def test_transactions_that_follow_on_the_same_connection_take_the_log_over_as_before(tmp_path: Path) -> None:
    settings, source = migrated(tmp_path)
    before = file_size(settings)
    with source.bulk.begin() as session:
        session.execute(text("SELECT 1"))

    with transaction(source) as session:
        session.add(ModelName(id=new_id(), name="m", created=utc_now(), description=MUCH))

    assert file_size(settings) > len(MUCH) > before
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
            session.add(ModelName(id=new_id(), name="kept", created=utc_now()))

    assert "was not taken over" in caplog.text
    with reading(source) as session:
        assert session.scalars(select(ModelName.name)).all() == ["kept"]
    source.engine.dispose()


def test_on_each_database_a_bulk_transaction_is_kept_as_a_whole(source: Sessions) -> None:
    with bulk_transaction(source) as session:
        session.add(ModelName(id=new_id(), name="kept", created=utc_now()))
    wait_for_copying()

    with reading(source) as session:
        assert session.scalars(select(ModelName.name)).all() == ["kept"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell what a process has read")
@pytest.mark.parametrize("megabytes", [1, 5, 20])
def test_the_commit_of_chunks_of_any_length_reads_nothing_of_the_log_again(tmp_path: Path, megabytes: int) -> None:
    _, source = migrated(tmp_path)
    table = espalier.dataset_from_rows([{"x": 1, "y": "no"}, {"x": 2, "y": "yes"}], target="y")
    chunks = (Chunk(place, 1, os.urandom(megabytes * 2**20)) for place in range(5))
    with source.bulk.begin() as session:
        row = catalog.add_data_set(session, name="long", dataset=table)
        storage.save(session, row.id, chunks)
        row.fingerprint = table.fingerprint
        session.flush()

        before = bytes_read()
        session.commit()
        after = bytes_read()

    assert after - before < 2**20
    source.engine.dispose()
