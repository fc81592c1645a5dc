"""The migrations: complete, repeatable, and safe when several processes begin them at once."""

from dataclasses import replace

import pytest
import sqlalchemy
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text
from sqlalchemy.pool import NullPool

from service.database import REVISION
from service.database.engine import connect
from service.database.migrate import migrate, migrations_config, schema_mismatch
from service.database.tables import Table
from service.errors import SchemaMismatch
from service.settings import Settings
from tests.service.starting import process_context
from tests.service.waiting import PATIENCE


@pytest.fixture
def engine(database_url: str) -> Engine:
    return connect(Settings(database_url=database_url), pool=NullPool)


def test_migrations_make_exactly_the_tables_of_the_code(engine: Engine, database_url: str) -> None:
    migrate(Settings(database_url=database_url))

    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "render_as_batch": True}
        )
        assert compare_metadata(context, Table.metadata) == []


def test_migrations_make_the_same_check_constraints_as_the_code(engine: Engine, database_url: str) -> None:
    migrate(Settings(database_url=database_url))
    migrated = _checks(engine)
    with engine.begin() as connection:
        Table.metadata.drop_all(connection)
        Table.metadata.create_all(connection)

    assert migrated == _checks(engine)
    assert len(migrated["jobs"]) == 5


def test_the_service_knows_the_revisions_that_alembic_knows(engine: Engine, database_url: str) -> None:
    migrate(Settings(database_url=database_url))
    script = ScriptDirectory.from_config(migrations_config())
    with engine.connect() as connection:
        assert MigrationContext.configure(connection).get_current_heads() == (REVISION,)
    assert script.get_current_head() == REVISION


def test_migrating_again_changes_nothing(engine: Engine, database_url: str) -> None:
    settings = Settings(database_url=database_url)
    migrate(settings)
    migrate(settings)

    assert schema_mismatch(engine) is None


def test_tables_of_a_later_version_are_left_alone_with_the_reason(engine: Engine, database_url: str) -> None:
    settings = Settings(database_url=database_url)
    migrate(settings)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'v9999'"))

    for auth in ("none", "keys"):
        with pytest.raises(SchemaMismatch, match=r"revision v9999.* this program is older"):
            migrate(replace(settings, auth=auth))


def test_migrations_can_be_taken_back(engine: Engine, database_url: str) -> None:
    migrate(Settings(database_url=database_url))
    config = migrations_config()
    config.attributes["engine"] = engine

    command.downgrade(config, "base")

    assert inspect(engine).get_table_names() == ["alembic_version"]


def test_many_processes_may_migrate_at_once(engine: Engine, database_url: str) -> None:
    context = process_context()
    settings = Settings(database_url=database_url)
    processes = [context.Process(target=migrate, args=(settings,)) for _ in range(5)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)

    assert [process.exitcode for process in processes] == [0] * 5
    assert schema_mismatch(engine) is None


def test_the_command_line_of_alembic_takes_the_url_from_the_settings(
    engine: Engine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESPALIER_DATABASE_URL", database_url)

    command.upgrade(migrations_config(), "head")

    assert schema_mismatch(engine) is None


def _checks(engine: Engine) -> dict[str, set[str | None]]:
    inspector = sqlalchemy.inspect(engine)
    return {
        table: {check["name"] for check in inspector.get_check_constraints(table)} for table in Table.metadata.tables
    }
