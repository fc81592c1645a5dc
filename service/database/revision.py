"""Compare the revision of the tables with the one that this version of the service needs."""

from sqlalchemy import Connection, Engine, column, inspect, select, table
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from service.database import REVISION
from service.database.engine import READERS
from service.errors import SchemaMismatch

VERSIONS_TABLE = table("alembic_version", column("version_num"))


def is_ready(engine: Engine) -> bool:
    """Return whether the database answers and has the tables of this version of the service."""
    try:
        return is_current(engine)
    except SQLAlchemyError:
        return False


def is_current(engine: Engine) -> bool:
    """Return whether the tables are those of this version of the service."""
    return revisions(engine) == {REVISION}


def revisions(engine: Engine) -> set[str]:
    """Return the revisions that Alembic has recorded: normally one; empty if there are no tables."""
    with engine.execution_options(**READERS[engine.dialect.name]).connect() as connection:
        return _revisions(connection)


def check_schema_revision(session: Session) -> None:
    """Raise `SchemaMismatch` if the tables are not those of this version of the service."""
    revisions_found = _revisions(session.connection())
    if revisions_found != {REVISION}:
        newer = any(revision > REVISION for revision in revisions_found)
        raise SchemaMismatch(found=", ".join(sorted(revisions_found)) or "none", needed=REVISION, newer=newer)


def _revisions(connection: Connection) -> set[str]:
    if not inspect(connection).has_table(VERSIONS_TABLE.name):
        return set()
    return set(connection.scalars(select(VERSIONS_TABLE.c.version_num)))
