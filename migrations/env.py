"""How Alembic runs the migrations: one process at a time, everything in one transaction.

`service.database.migrate.migrate` passes its engine and its settings, which say whether a first key is needed. If the
command line of Alembic runs this file, `Settings.from_env` names the database, and no first key is created.
"""

from alembic import context
from sqlalchemy import Engine, text
from sqlalchemy.pool import NullPool

from service.database.engine import connect
from service.database.tables import Table
from service.repositories import keys
from service.settings import Settings

ADVISORY_LOCK = 0x657370616C696572  # "espalier" in ASCII; held until the commit


def _migrate(engine: Engine) -> None:
    with engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if sqlite:  # lets migrations drop and rename tables; SQLite ignores this pragma inside a transaction
            connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
        with connection.begin():  # SQLite: BEGIN IMMEDIATE, so that other processes wait here until the commit
            if not sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
            context.configure(
                connection=connection,
                target_metadata=Table.metadata,
                render_as_batch=True,
                transactional_ddl=True,
                compare_type=True,
            )
            with context.begin_transaction():
                context.run_migrations()
            settings = context.config.attributes.get("settings")
            if settings is not None and settings.auth == "keys":
                context.config.attributes["first_key"] = keys.make_first(connection, settings.admin_key)
            if sqlite and connection.execute(text("PRAGMA foreign_key_check")).first() is not None:
                raise RuntimeError("after the migration, some rows refer to rows that do not exist")


engine = context.config.attributes.get("engine")
_migrate(connect(Settings.from_env(), pool=NullPool) if engine is None else engine)
