"""The database: engine, tables, clock and migrations."""

from typing import Final

REVISION: Final = "v0001"
"""The revision of the tables that this version of the service needs: the newest in `migrations/versions`."""
VERSION_TABLE: Final = "alembic_version"
"""Where a database names the revision of its tables. Both are here, since they can be read without SQLAlchemy."""

# Names and ids as texts, for the checks of the repositories, the paths of the API and its schemas.
MODEL_NAME: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
ALIAS: Final = "[A-Za-z][A-Za-z0-9._-]{0,63}"
ID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
DECISION_ID: Final = f"{ID}(?::(?:0|[1-9][0-9]{{0,8}}))?"
"""The id of a request of one row; of many rows with the row's number behind it."""
