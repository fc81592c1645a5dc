"""The database: engine, tables, clock and migrations."""

from typing import Final

REVISION: Final = "v0001"  # of the tables that this version of the service needs: the newest in `migrations/versions`

UNFINISHED: Final = ("queued", "running")  # the states of jobs that have not ended

# Patterns of names and ids, and messages that explain them, for the repositories and for the API's paths and schemas.
MODEL_NAME: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
MODEL_NAME_RULE: Final = (
    "a model name has 1 to 64 of the characters A-Z a-z 0-9 . _ - and begins with a letter or a digit"
)
ALIAS: Final = "[A-Za-z][A-Za-z0-9._-]{0,63}"
ALIAS_RULE: Final = "an alias has 1 to 64 of the characters A-Z a-z 0-9 . _ - and begins with a letter"
ID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
DECISION_ID: Final = f"{ID}(?::(?:0|[1-9][0-9]{{0,8}}))?"
"""The id of a decision record, or this id followed by a colon and the number of a row."""
