"""A database a test: an SQLite file, and a PostgreSQL database where ESPALIER_TEST_POSTGRES_URL names a server."""

import functools
import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

from service.api import job_events
from service.database.engine import Sessions, sessions
from service.database.migrate import migrate
from service.database.tables import Table
from service.settings import Settings
from tests.service.served import TENNIS, Served, forget_engines, give_back_engine, take_engine

POSTGRES = os.environ.get("ESPALIER_TEST_POSTGRES_URL", "")


@contextmanager
def empty_database(kind: str, folder: Path, *, like: str = "template1") -> Iterator[str]:
    """Give the URL of an empty database that is gone at the end; on PostgreSQL a copy of the database `like`."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/espalier.db"
        return
    if not POSTGRES:
        pytest.skip("ESPALIER_TEST_POSTGRES_URL names no PostgreSQL server")
    server = sqlalchemy.create_engine(POSTGRES, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    name = f"espalier_test_{uuid.uuid4().hex}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {like}")
    # No test crashes the server, and nothing else could lose what is not on the disk yet.
    _execute(server, f"ALTER DATABASE {name} SET synchronous_commit = off")
    yield server.url.set(database=name).render_as_string(hide_password=False)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


# All that is in a database beside its rows.
LAYOUT = """
    SELECT md5(string_agg(line, '' ORDER BY line)) FROM (
        SELECT format('%s %s %s %s', relkind, relname, attname, atttypid) AS line
            FROM pg_class LEFT JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0
            WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT format('constraint %s', conname) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT format('trigger %s', tgname) FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT format('function %s', proname) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    ) AS layout
"""
FILE_LAYOUT = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
REVISION = "SELECT version_num FROM alembic_version"
# An idle connection holds no lock; another test may use it.
OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
"""
FROM_THE_START = (
    "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) FROM pg_sequences"
)
EMPTY = ";".join(str(table.delete()) for table in reversed(Table.metadata.sorted_tables))
MAX_FILE_BYTES = 2**20
"""An SQLite file that is larger is copied again: that takes less time than to empty it."""


@dataclass(frozen=True, slots=True)
class _CopiedFile:
    path: Path
    inode: int  # changes if the file is replaced


class Templates:
    """A database of each kind with all tables, made when first asked for and then copied: faster than migrating.

    A copy that a test has done with is emptied for the next one: making a database of PostgreSQL takes the disk a
    hundred times as long as deleting some rows, and the engines of a database know its statements. A database whose
    tables are not as they were is not used again.
    """

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self._folder = folder
        self._ends = ends
        self._free: list[str] = []
        self._free_files: list[_CopiedFile] = []
        self._n_files = 0

    @functools.cached_property
    def file(self) -> Path:
        """An SQLite file."""
        file = self._folder / "espalier.db"
        migrate(Settings(database_url=f"sqlite:///{file}"))
        return file

    @functools.cached_property
    def name(self) -> str:
        """A database of the PostgreSQL server."""
        url = self._ends.enter_context(empty_database("postgresql", self._folder))
        migrate(Settings(database_url=url))
        return sqlalchemy.make_url(url).database or ""

    @functools.cached_property
    def layout(self) -> list[tuple[str, ...]]:
        """All that is in the database of the PostgreSQL server, and the revision of its tables."""
        url = sqlalchemy.make_url(POSTGRES).set(database=self.name)
        with _connected(url.render_as_string(hide_password=False)) as connection:
            return _layout(connection, LAYOUT)

    @functools.cached_property
    def file_layout(self) -> list[tuple[str, ...]]:
        """All that is in the SQLite file, and the revision of its tables."""
        with closing(sqlite3.connect(self.file)) as connection:
            return _layout(connection, FILE_LAYOUT)

    @contextmanager
    def copied(self, kind: str, folder: Path) -> Iterator[Settings]:
        """Give settings of a database with all tables and no rows that nobody else uses until the end."""
        if kind == "sqlite":
            file = self._free_files.pop() if self._free_files else self._new_file()
            url = f"sqlite:///{file.path}"
            yield Settings(database_url=url)
            if self._empties_file(file):
                self._free_files.append(file)
            else:
                forget_engines(url)
            return
        if not self._free:
            self._free.append(self._ends.enter_context(empty_database(kind, folder, like=self.name)))
        url = self._free.pop()
        yield Settings(database_url=url)
        if self._empties(url):
            self._free.append(url)
        else:
            forget_engines(url)

    def _new_file(self) -> _CopiedFile:
        self._n_files += 1
        path = self._folder / str(self._n_files) / "espalier.db"
        path.parent.mkdir()
        shutil.copy(self.file, path)
        return _CopiedFile(path, path.stat().st_ino)

    def _empties_file(self, file: _CopiedFile) -> bool:
        """Delete all rows; False: the file is not as it was made, or large."""
        path, log = file.path, file.path.with_name("espalier.db-wal")
        if not path.exists() or path.stat().st_ino != file.inode or path.stat().st_mode != self.file.stat().st_mode:
            return False
        if path.stat().st_size + (log.stat().st_size if log.exists() else 0) > MAX_FILE_BYTES:
            return False
        with closing(sqlite3.connect(path, timeout=10)) as connection:
            try:
                is_as_made = _layout(connection, FILE_LAYOUT) == self.file_layout
            except sqlite3.DatabaseError:  # it has no revision, or is damaged
                is_as_made = False
            if is_as_made:
                connection.executescript(f"PRAGMA synchronous=OFF; BEGIN IMMEDIATE; {EMPTY}; COMMIT")
        return is_as_made

    def _empties(self, url: str) -> bool:
        """Delete all rows; False: the database is not as it was made."""
        with _connected(url) as connection:
            connection.execute(OTHERS)
            connection.execute("SET LOCAL lock_timeout = '10s'")
            try:
                is_as_made = _layout(connection, LAYOUT) == self.layout
            except psycopg.errors.UndefinedTable:  # it has no revision
                is_as_made = False
            if not is_as_made:
                return False
            connection.execute(f"{EMPTY};{FROM_THE_START}")
        return True


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database that is gone after the test."""
    with empty_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, templates: Templates
) -> Iterator[Settings]:
    """Settings of a database with all tables that the tests of a module share."""
    with templates.copied(request.param, tmp_path_factory.mktemp("shared")) as settings:
        yield settings


@pytest.fixture(scope="module")
def shared_sqlite(tmp_path_factory: pytest.TempPathFactory, templates: Templates) -> Iterator[Settings]:
    """Settings of an SQLite file with all tables that the tests of a module share."""
    with templates.copied("sqlite", tmp_path_factory.mktemp("shared")) as settings:
        yield settings


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Templates]:
    with ExitStack() as ends:
        yield Templates(tmp_path_factory.mktemp("template"), ends)


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, templates: Templates) -> Iterator[Settings]:
    """Settings of a database with all tables that is gone after the test."""
    with templates.copied(request.param, tmp_path) as settings:
        yield settings


@pytest.fixture
def on_sqlite(tmp_path: Path, templates: Templates) -> Iterator[Settings]:
    """Settings of an SQLite file with all tables: for what does not look different from another database."""
    with templates.copied("sqlite", tmp_path) as settings:
        yield settings


@pytest.fixture
def source(settings: Settings) -> Iterator[Sessions]:
    """Sessions of that database."""
    engine = take_engine(settings)
    yield sessions(engine)
    give_back_engine(settings, engine)


@pytest.fixture
def tennis(served: Served) -> str:
    """The id of a data set that the service of a test has."""
    return str(served.upload(TENNIS, target="PlayTennis")["id"])


@pytest.fixture
def more_tennis(served: Served) -> str:
    """The id of another one, with a row more."""
    return str(served.upload(TENNIS + "Overcast,Mild,High,Weak,Yes\n", target="PlayTennis")["id"])


def _connected(url: str) -> psycopg.Connection:
    """Connect for one transaction."""
    address = sqlalchemy.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(address)


def _layout(connection: psycopg.Connection | sqlite3.Connection, layout: LiteralString) -> list[tuple[str, ...]]:
    return [*connection.execute(layout).fetchall(), *connection.execute(REVISION).fetchall()]


def _execute(server: sqlalchemy.Engine, statement: str) -> None:
    with server.connect() as connection:
        connection.execute(sqlalchemy.text(statement))


@pytest.fixture(autouse=True)
def _streams_of_events_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that walk every route read each answer to its end, and the job that they watch may never end."""
    monkeypatch.setattr(job_events, "MAX_SECONDS", 0.0)
