"""A database a test: an SQLite file, and a PostgreSQL database where ESPALIER_TEST_POSTGRES_URL names a server."""

import functools
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

from service import db
from service.api import job_stream
from service.db import Sessions
from service.settings import Settings

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
    yield server.url.set(database=name).render_as_string(hide_password=False)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


class Templates:
    """A database of each kind with all tables, made when first asked for and then copied: faster than migrating."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self._folder = folder
        self._ends = ends

    @functools.cached_property
    def file(self) -> Path:
        """An SQLite file."""
        file = self._folder / "espalier.db"
        db.migrate(Settings(database_url=f"sqlite:///{file}"))
        return file

    @functools.cached_property
    def name(self) -> str:
        """A database of the PostgreSQL server."""
        url = self._ends.enter_context(empty_database("postgresql", self._folder))
        db.migrate(Settings(database_url=url))
        return sqlalchemy.make_url(url).database or ""

    @contextmanager
    def copied(self, kind: str, folder: Path) -> Iterator[Settings]:
        """Give settings of a database with all tables that is gone at the end."""
        like = self.name if kind == "postgresql" else ""
        with empty_database(kind, folder, like=like) as url:
            settings = Settings(database_url=url)
            if settings.database_file is not None:
                shutil.copy(self.file, settings.database_file)
            yield settings


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
    engine = db.connect(settings)
    yield db.sessions(engine)
    engine.dispose()


def _execute(server: sqlalchemy.Engine, statement: str) -> None:
    with server.connect() as connection:
        connection.execute(sqlalchemy.text(statement))


@pytest.fixture(autouse=True)
def _streams_of_events_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that walk every route read each answer to its end, and the job that they watch may never end."""
    monkeypatch.setattr(job_stream, "LONGEST_SECONDS", 0.0)
