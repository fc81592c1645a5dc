"""Migrate the tables to this version of the service."""

from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy.pool import NullPool

from service.database.engine import connect, translate_db_errors
from service.database.revision import is_current
from service.settings import Settings

if TYPE_CHECKING:
    from alembic.config import Config


def migrate(settings: Settings) -> str | None:
    """Migrate the tables to this version of the service; several processes may do so at the same time.

    If keys are on and no key exists, the same transaction creates the first one. Returns its token if the service has
    generated it, since only its hash is stored; else None.
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
