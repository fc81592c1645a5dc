"""The migrations, and which revision the tables have."""

from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, column, inspect, select, table
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from service.database import REVISION, VERSION_TABLE
from service.database.engine import READERS, connect, translated
from service.errors import SchemaMismatch
from service.settings import Settings

if TYPE_CHECKING:
    from alembic.config import Config

VERSIONS_TABLE = table(VERSION_TABLE, column("version_num"))


def migrate(settings: Settings) -> str | None:
    """Bring the tables up to this version of the service; several processes may do so at the same time.

    Where keys are on and there is none, the same transaction makes the first; if its token was made up, it is given
    back, for nobody can find it out later.

    Raises:
        Unavailable: the database cannot be reached or written now.
    """
    engine = connect(settings, pool=NullPool)
    try:
        with translated():
            if settings.auth == "none" and is_current(engine):
                return None
            from alembic import command  # noqa: PLC0415 - only for migrations; all else starts without it

            config = migrations_config()
            config.attributes.update(engine=engine, settings=settings)
            command.upgrade(config, "head")
            first_key: str | None = config.attributes.get("first_key")
            return first_key
    finally:
        engine.dispose()


def is_current(engine: Engine) -> bool:
    """Whether the tables are those of this version of the service."""
    found, needed = revisions(engine)
    return found == {needed}


def revisions(engine: Engine) -> tuple[set[str], str]:
    """The revision of the tables (none: there are no tables), and the one that this version of the service needs."""
    with engine.execution_options(**READERS[engine.dialect.name]).connect() as connection:
        return _found(connection), REVISION


def check_schema_revision(session: Session) -> None:
    """Refuse tables that are not of this version of the service, for as long as the transaction of the session lasts.

    Raises:
        SchemaMismatch: they are older, or newer, or there are none.
    """
    found = _found(session.connection())
    if found != {REVISION}:
        newer = any(revision > REVISION for revision in found)
        raise SchemaMismatch(found=", ".join(sorted(found)) or "none", needed=REVISION, newer=newer)


def migrations_config() -> "Config":
    """Alembic's configuration, with the migrations folder found wherever the package is installed."""
    from alembic.config import Config  # noqa: PLC0415 - as above

    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _found(connection: Connection) -> set[str]:
    if not inspect(connection).has_table(VERSIONS_TABLE.name):
        return set()
    return set(connection.scalars(select(VERSIONS_TABLE.c.version_num)))


def is_ready(engine: Engine) -> bool:
    """Whether the database answers and has the tables of this version of the service."""
    try:
        return is_current(engine)
    except SQLAlchemyError:
        return False
