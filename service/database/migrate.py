"""Migrate the tables to this version of the service, and check that they have its revision."""

from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, column, inspect, select, table
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from service.database import REVISION
from service.database.engine import READERS, connect, translate_db_errors
from service.errors import SchemaMismatch
from service.settings import Settings

if TYPE_CHECKING:
    from alembic.config import Config

VERSIONS_TABLE = table("alembic_version", column("version_num"))


def migrate(settings: Settings) -> str | None:
    """Migrate the tables to this version of the service; several processes may do so at the same time.

    If keys are on and no key exists, the same transaction creates the first key. Returns the token of this key if the
    service has generated the token, else None; the database has only the hash of a token. Raises `SchemaMismatch` if
    the tables are newer than this version.
    """
    engine = connect(settings, pool=NullPool)
    try:
        with translate_db_errors():
            mismatch = schema_mismatch(engine)
            if mismatch is None and settings.auth == "none":
                return None
            if mismatch is not None and mismatch.newer:
                raise mismatch
            from alembic import command  # noqa: PLC0415 - only migrations need it

            config = migrations_config()
            config.attributes.update(engine=engine, settings=settings)
            command.upgrade(config, "head")
            first_key: str | None = config.attributes.get("first_key")
            return first_key
    finally:
        engine.dispose()


def migrations_config() -> "Config":
    """Return Alembic's configuration for the migrations of the installed package."""
    from alembic.config import Config  # noqa: PLC0415 - as above

    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def schema_mismatch(engine: Engine) -> SchemaMismatch | None:
    """Return the error for tables of another version of the service; None if they are those of this version."""
    with engine.execution_options(**READERS[engine.dialect.name]).connect() as connection:
        return _mismatch(connection)


def check_schema_revision(session: Session) -> None:
    """Raise `SchemaMismatch` if the tables are not those of this version of the service."""
    if mismatch := _mismatch(session.connection()):
        raise mismatch


def _mismatch(connection: Connection) -> SchemaMismatch | None:
    has_tables = inspect(connection).has_table(VERSIONS_TABLE.name)
    found = set(connection.scalars(select(VERSIONS_TABLE.c.version_num))) if has_tables else set[str]()
    if found == {REVISION}:
        return None
    newer = any(revision > REVISION for revision in found)
    return SchemaMismatch(found=", ".join(sorted(found)) or "none", needed=REVISION, newer=newer)
