"""Engine, sessions and transactions; the differences between SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import orjson
from sqlalchemy import URL, Engine, Insert, Table, create_engine, event, func, select
from sqlalchemy.dialects import postgresql, sqlite as sqlite_dialect
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool, Pool

from service.database import sqlite
from service.errors import Conflict, Unavailable, ValidationFailed
from service.settings import Settings

# Options of a read-only transaction that sees one state of the database from its first statement to its last.
READERS: Mapping[str, Mapping[str, Any]] = {
    "sqlite": {"read_only": True},
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}
POOL_SPARE = 4  # connections beyond one per web thread, for example for the thread of the decision log


@dataclass(frozen=True, slots=True)
class Sessions:
    """Engines for sessions: `engine` takes SQLite's write lock when a transaction begins; `read_engine` never does."""

    engine: Engine
    read_engine: Engine


def connect(settings: Settings, *, pool: type[Pool] | None = None) -> Engine:
    """Return an engine for the database of the settings; create the folder of an SQLite file.

    Each process needs its own connections: call `engine.dispose(close=False)` after a fork.
    """
    options: dict[str, Any] = {
        "json_serializer": lambda value: orjson.dumps(value).decode(),
        "json_deserializer": orjson.loads,
        "hide_parameters": True,
        "execution_options": {"store": settings.store},  # for readers of files below the store
    }
    if pool is not None:
        options["poolclass"] = pool
    else:
        options |= {"pool_size": settings.web_threads + POOL_SPARE, "max_overflow": POOL_SPARE}
    if settings.database_file is not None:
        settings.database_file.parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(URL.create("sqlite", database=str(settings.database_file)), **options)
        sqlite.listen(engine, settings.database_file)
        return engine
    # No prepared statements: a connection pooler in transaction mode may switch to another server session.
    connecting = {"prepare_threshold": None, "connect_timeout": sqlite.BUSY_SECONDS, "client_encoding": "utf8"}
    return create_engine(settings.database_url, pool_pre_ping=True, connect_args=connecting, **options)


def connect_read_only(settings: Settings) -> Engine:
    """Return an engine for reading, which creates no database; raise `OSError` if the SQLite file is missing."""
    file = settings.database_file
    if file is None:
        return connect(settings, pool=NullPool)
    file.stat()
    # If no process has the file open, it is opened as immutable: otherwise SQLite would create a file beside it.
    is_open = file.with_name(f"{file.name}-wal").exists()
    uri = f"file:{quote(bytes(file))}?{'mode=ro' if is_open else 'immutable=1'}"
    options: dict[str, Any] = {"json_deserializer": orjson.loads, "poolclass": NullPool}
    return create_engine("sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), **options)


def sessions(engine: Engine) -> Sessions:
    """Return the engines for sessions that write and for sessions that only read."""
    return Sessions(engine, engine.execution_options(**READERS[engine.dialect.name]))


@contextmanager
def transaction(source: Sessions) -> Iterator[Session]:
    """Open a session whose changes are committed together at the end of the block, or not at all.

    Objects that the session has loaded stay readable after the commit.
    """
    with translate_db_errors(), Session(source.engine, expire_on_commit=False) as session, session.begin():
        yield session


@contextmanager
def read_session(source: Sessions) -> Iterator[Session]:
    """Open a session that reads one consistent state of the database; on SQLite, it never waits for a writer."""
    with translate_db_errors(), Session(source.read_engine, expire_on_commit=False, autoflush=False) as session:
        yield session


@contextmanager
def translate_db_errors() -> Iterator[None]:
    """Translate errors of the database into `Unavailable`, `Conflict` or `ValidationFailed`; raise others unchanged."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict("at the same time, another request changed something that this one depends on") from error
    except OperationalError as error:
        raise Unavailable("the database cannot be used at the moment", reason=reason_of(error)) from error
    except DataError as error:
        # Checks of the request usually refuse such values earlier, and name their places.
        message = "a text with the character NUL, or a number that is too large, can be neither stored nor searched for"
        raise ValidationFailed.of("", "not_kept", message) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Unavailable("the connection to the database was lost", reason=reason_of(error)) from error
        if type(error) is DatabaseError:  # from SQLite: the file is damaged, or no database
            raise Unavailable("the database cannot be read", reason=reason_of(error)) from error
        raise


def reason_of(error: DBAPIError) -> str:
    """Return why a database cannot be used, without data of a caller.

    With SQLite, the reason is the name of the error; with PostgreSQL, the SQLSTATE code and the class of the error.
    Without a connection, it is the first line of the driver's message, which names the server, never a password.
    """
    cause = error.orig
    kind = type(cause).__name__
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorname", str(cause))
    code = getattr(cause, "sqlstate", None)
    return f"{code} {kind}" if code is not None else next(iter(str(cause).splitlines()), kind)


def driver_message(error: Exception) -> str:
    """Return the first line of the driver's message, also for a translated error; it contains no SQL."""
    text = str(getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error)
    return next(iter(text.splitlines()), type(error).__name__)


def advisory_lock(session: Session, name: str) -> None:
    """Wait for PostgreSQL's lock on a name, and hold it until the end of the transaction; do nothing on SQLite.

    The next statement sees what earlier holders committed, so a limit on rows is exact. SQLite has one writer anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


@cache
def insert_new(dialect: str, table: Table, unique: str) -> Insert:
    """Return a statement that inserts rows, except those whose value in the column `unique` exists already."""
    insert = postgresql.insert if dialect == "postgresql" else sqlite_dialect.insert
    return insert(table).on_conflict_do_nothing(index_elements=[unique])


@cache
def insert_latest(dialect: str, table: Table) -> Insert:
    """Return a statement that inserts rows; each replaces the row with the same primary key, if there is one."""
    insert = (postgresql.insert if dialect == "postgresql" else sqlite_dialect.insert)(table)
    return insert.on_conflict_do_update(index_elements=[*table.primary_key], set_=dict(insert.excluded))


def end_idle_transactions(engine: Engine, *, seconds: float) -> None:
    """Have PostgreSQL end each transaction of this engine that is idle for `seconds`.

    Otherwise a worker that is suspended in a transaction would keep its locks, and no other worker could claim its job.
    SQLite has no such limit.
    """
    if engine.dialect.name == "postgresql":
        limit = f"SET LOCAL idle_in_transaction_session_timeout = {round(seconds * 1000)}"
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(limit))
