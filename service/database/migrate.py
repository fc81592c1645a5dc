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
    service has generated the token, since only a hash is stored; else None.
    """
    engine = connect(settings, pool=NullPool)
    try:
        with translate_db_errors():
            if settings.auth == "none" and is_current(engine):
                return None
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


def is_current(engine: Engine) -> bool:
    """Return whether the tables are those of this version of the service."""
    return revisions(engine) == {REVISION}


def revisions(engine: Engine) -> set[str]:
    """Return the revisions that Alembic has recorded: normally one; empty if there are no tables."""
    with engine.execution_options(**READERS[engine.dialect.name]).connect() as connection:
        return _revisions(connection)


def check_schema_revision(session: Session) -> None:
    """Raise `SchemaMismatch` if the tables are not those of this version of the service."""
    found = _revisions(session.connection())
    if found != {REVISION}:
        newer = any(revision > REVISION for revision in found)
        raise SchemaMismatch(found=", ".join(sorted(found)) or "none", needed=REVISION, newer=newer)


def _revisions(connection: Connection) -> set[str]:
    if not inspect(connection).has_table(VERSIONS_TABLE.name):
        return set()
    return set(connection.scalars(select(VERSIONS_TABLE.c.version_num)))
