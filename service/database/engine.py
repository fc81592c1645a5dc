"""Engine, sessions and transactions; what differs between SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson
from sqlalchemy import Engine, create_engine, event, func, select
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool, Pool

from espalier import Fault
from service.database import sqlite
from service.errors import Conflict, Unavailable, ValidationFailed
from service.settings import Settings

# What makes a transaction see one state of the database from its first statement to its last, and change nothing.
READERS: Mapping[str, Mapping[str, Any]] = {
    "sqlite": {"read_only": True},
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}
POOL_SPARE = 4  # connections beyond one a thread: heartbeats, readiness


@dataclass(frozen=True, slots=True)
class Sessions:
    """Where sessions come from: `write` takes SQLite's write lock at its begin, `read` never."""

    engine: Engine
    read_engine: Engine
    write: sessionmaker[Session]
    read: sessionmaker[Session]


def connect(settings: Settings, *, pool: type[Pool] | None = None) -> Engine:
    """An engine for the database of the settings; the folder of an SQLite file is made.

    Each process needs its own: after a fork call `forget_connections`.
    """
    options: dict[str, Any] = {"json_serializer": _to_json, "json_deserializer": orjson.loads, "hide_parameters": True}
    if pool is not None:
        options["poolclass"] = pool
    else:
        options |= {"pool_size": settings.web_threads + POOL_SPARE, "max_overflow": POOL_SPARE}
    if settings.database_file is not None:
        settings.database_file.parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(f"sqlite:///{settings.database_file}", **options)
        event.listen(engine, "connect", sqlite.prepare)
        event.listen(engine, "begin", sqlite.begin)
        return engine
    # The driver prepares no statements: a connection pooler in transaction mode may change the server session below us.
    connecting = {"prepare_threshold": None, "connect_timeout": sqlite.BUSY_SECONDS, "client_encoding": "utf8"}
    return create_engine(settings.database_url, pool_pre_ping=True, connect_args=connecting, **options)


def connect_to_look(settings: Settings) -> Engine:
    """An engine that changes nothing: no folder and no file is made, and of a file no mode is set.

    Raises:
        FileNotFoundError: the SQLite file is not there.
    """
    file = settings.database_file
    if file is None:
        return connect(settings, pool=NullPool)
    file.stat()
    # A file that nobody has open is read as it is; else SQLite would make another beside it, to work with.
    is_open = file.with_name(f"{file.name}-wal").exists()
    uri = f"file:{quote(str(file))}?{'mode=ro' if is_open else 'immutable=1'}"
    options: dict[str, Any] = {"json_deserializer": orjson.loads, "poolclass": NullPool}
    return create_engine("sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), **options)


def sessions(engine: Engine) -> Sessions:
    """The kinds of sessions of an engine; objects stay readable after the commit."""
    read_engine = engine.execution_options(**READERS[engine.dialect.name])
    return Sessions(
        engine=engine,
        read_engine=read_engine,
        write=sessionmaker(engine, expire_on_commit=False),
        read=sessionmaker(read_engine, expire_on_commit=False, autoflush=False),
    )


@contextmanager
def transaction(source: Sessions) -> Iterator[Session]:
    """A session whose changes are committed together at the end, or not at all.

    Raises:
        Unavailable: the database cannot be reached or written now.
        Conflict: another request changed the same thing at the same time.
        ValidationFailed: a value is none that this database takes.
    """
    with translated(), source.write.begin() as session:
        yield session


@contextmanager
def read_session(source: Sessions) -> Iterator[Session]:
    """A session for reading one consistent state; it never waits for a writer of SQLite.

    Raises:
        Unavailable: the database cannot be reached now.
        ValidationFailed: a value is none that this database takes.
    """
    with translated(), source.read() as session:
        yield session


@contextmanager
def translated() -> Iterator[None]:
    """Say in our own words what the database refuses.

    Raises:
        As `transaction`.
    """
    try:
        yield
    except IntegrityError as error:
        raise Conflict("something this request depends on was changed by another one at the same time") from error
    except OperationalError as error:
        raise Unavailable("the database cannot be used at the moment", reason=reason_of(error)) from error
    except DataError as error:
        # A net: whoever takes such a value in should have said where it stands.
        message = "a text with the character NUL, or a number that is too large, can be neither kept nor looked for"
        raise ValidationFailed([Fault("", "not_kept", message)]) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Unavailable("the connection to the database was lost", reason=reason_of(error)) from error
        if type(error) is DatabaseError:  # what SQLite says of a file that is damaged, or no database at all
            raise Unavailable("the database cannot be read", reason=reason_of(error)) from error
        raise


def reason_of(error: DBAPIError) -> str:
    """Say why a database cannot be used, in words that hold no data.

    These are SQLite's name of the fault; PostgreSQL's code of it, by which its manual lists it; or, where no connection
    came about, the first line of what the driver says: it names the server, never a password.
    """
    fault = error.orig
    kind = type(fault).__name__
    if isinstance(fault, sqlite3.Error):
        return getattr(fault, "sqlite_errorname", kind)
    code = getattr(fault, "sqlstate", None)
    return f"{code} {kind}" if code is not None else next(iter(str(fault).splitlines()), kind)


def advisory_lock(session: Session, name: str) -> None:
    """Wait until no other transaction holds this name, and hold it until the end of this one.

    Who counts rows and then adds one does so alone; what the others committed is seen by the next statement. A writer
    of SQLite is alone anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


def forget_connections(engine: Engine) -> None:
    """Let go of the connections that a parent process made, without closing them for it; call it after a fork."""
    engine.dispose(close=False)


def end_idle_transactions(engine: Engine, *, seconds: float) -> None:
    """Have PostgreSQL end a transaction of this engine in which nothing was asked for so many seconds.

    A process that is stopped in a transaction would otherwise hold its locks until it goes on: nobody could take up its
    job. On SQLite nothing can be done: the lock is the stopped process's own.
    """
    if engine.dialect.name == "postgresql":
        limit = f"SET LOCAL idle_in_transaction_session_timeout = {round(seconds * 1000)}"
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(limit))


def _to_json(value: object) -> str:
    return orjson.dumps(value).decode()
