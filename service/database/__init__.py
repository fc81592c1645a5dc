"""The database: engine, tables, clock and migrations."""

from typing import Final

REVISION: Final = "v0001"
"""The revision of the tables that this version of the service needs: the newest in `migrations/versions`."""
VERSION_TABLE: Final = "alembic_version"
"""Where a database names the revision of its tables. Both are here, since they can be read without SQLAlchemy."""
