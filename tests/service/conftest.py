"""A database a test: an SQLite file, and a PostgreSQL database where ESPALIER_TEST_POSTGRES_URL names a server."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

from service import db
from service.db import Sessions
from service.settings import Settings

POSTGRES = os.environ.get("ESPALIER_TEST_POSTGRES_URL", "")


@contextmanager
def empty_database(kind: str, folder: Path) -> Iterator[str]:
    """Give the URL of an empty database that is gone at the end."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/espalier.db"
        return
    if not POSTGRES:
        pytest.skip("ESPALIER_TEST_POSTGRES_URL names no PostgreSQL server")
    server = sqlalchemy.create_engine(POSTGRES, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    name = f"espalier_test_{uuid.uuid4().hex}"
    _execute(server, f"CREATE DATABASE {name}")
    yield server.url.set(database=name).render_as_string(hide_password=False)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def with_tables(database_url: str, migrated_file: Path) -> Settings:
    """Give settings whose database has all tables."""
    settings = Settings(database_url=database_url)
    if settings.database_file is not None:
        shutil.copy(migrated_file, settings.database_file)
    else:
        db.migrate(settings)
    return settings


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database that is gone after the test."""
    with empty_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, migrated_file: Path
) -> Iterator[Settings]:
    """Settings of a database with all tables that the tests of a module share."""
    with empty_database(request.param, tmp_path_factory.mktemp("shared")) as url:
        yield with_tables(url, migrated_file)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with all tables, to be copied: faster than migrating for each test."""
    file = tmp_path_factory.mktemp("template") / "espalier.db"
    db.migrate(Settings(database_url=f"sqlite:///{file}"))
    return file


@pytest.fixture
def settings(database_url: str, migrated_file: Path) -> Settings:
    """Settings whose database has all tables."""
    return with_tables(database_url, migrated_file)


@pytest.fixture
def source(settings: Settings) -> Iterator[Sessions]:
    """Sessions of that database."""
    engine = db.connect(settings)
    yield db.sessions(engine)
    engine.dispose()


def _execute(server: sqlalchemy.Engine, statement: str) -> None:
    with server.connect() as connection:
        connection.execute(sqlalchemy.text(statement))
