"""What the commands that use the database share: the settings, and one clear line where it cannot be used."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from service.cli.command import Refused

if TYPE_CHECKING:
    from service.settings import Settings


def read_settings() -> "Settings":
    """Read the settings.

    Raises:
        Refused: Variables that are wrong, a line each.
    """
    from service.errors import SettingsError  # noqa: PLC0415 - `espalier --help` needs no settings
    from service.settings import Settings  # noqa: PLC0415 - as above

    try:
        return Settings.from_env()
    except SettingsError as error:
        raise Refused("\n".join(error.faults)) from None


def check_place(file: Path) -> None:
    """Make the folder of an SQLite file, and see that both can be written: SQLite keeps other files beside its own.

    Raises:
        Refused: They cannot; the line says whose they are and who asks.
    """
    folder = file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"the database cannot be used ({error.strerror}: {folder}); see ESPALIER_DATABASE_URL") from None
    for place in (folder, file):
        if place.exists() and not os.access(place, os.W_OK):
            raise Refused(
                f"cannot write to {place}: it belongs to user {place.stat().st_uid}, and this is user {os.geteuid()}; "
                "give it to this user (chown), or name another place in ESPALIER_DATABASE_URL"
            )


def has_tables_of_now(file: Path) -> bool:
    """Whether an SQLite file has the tables of this version; it is asked without what else databases need."""
    import sqlite3  # noqa: PLC0415 - as above

    from service.database import REVISION, VERSION_TABLE  # noqa: PLC0415 - as above

    if not file.exists():
        return False
    try:
        with closing(sqlite3.connect(file, timeout=1)) as connection:
            return connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() == [(REVISION,)]  # noqa: S608 - ours
    except sqlite3.Error:  # no tables, or whatever the migration will say
        return False


@contextmanager
def failing_clearly() -> Iterator[None]:
    """Say in one line why the database cannot be used."""
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - `espalier --help` needs no database

    from service.errors import Unavailable  # noqa: PLC0415 - as above

    try:
        yield
    except (Unavailable, DBAPIError) as error:
        cause = error if isinstance(error, DBAPIError) else error.__cause__
        reason = str(getattr(cause, "orig", None) or error).splitlines()[0]
        raise Refused(f"the database cannot be used ({reason}); see ESPALIER_DATABASE_URL") from None
    except OSError as error:
        raise Refused(f"the database cannot be used ({error.strerror}); see ESPALIER_DATABASE_URL") from None
