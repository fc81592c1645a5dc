"""SQLite's log while a transaction writes much: what is done between two parts, so that the commit waits for little.

    part, part, part, … | commit
    log     ──── on its way to the disk ──── | synced

The system is told to begin with the log while it still grows. And a page that is changed when it stands in the log
already makes SQLite read the whole log behind it and sum it up anew, at the commit. So there is room in memory for each
part and for the pages that every part changes; and what is changed again at the end is looked at between the parts: it
is not among the pages that have waited longest when there is no more room for them.
"""

import ctypes
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Select
from sqlalchemy.orm import Session

__all__ = ["has_grown", "make_room"]

ROOM: Final = 1.3
"""KiB for a KiB of a part: of their room, SQLite fills nine tenths with changed pages, and each page has a head."""
LEAST_ROOM: Final = 2000
"""KiB for the pages that every part changes: what SQLite has by itself."""
BEGIN_TO_WRITE: Final = 2
"""SYNC_FILE_RANGE_WRITE of Linux: what is not on its way to the disk is sent, and nobody waits for it."""


def make_room(session: Session, n_bytes: int) -> None:
    """Have room in memory for a part of so many bytes, until a bulk transaction's connection is given back.

    Nothing but time depends on it.
    """
    if session.get_bind().dialect.name == "sqlite":
        room = int(ROOM * n_bytes / 1024) + LEAST_ROOM
        session.connection().exec_driver_sql(f"PRAGMA cache_size={-room}")


def has_grown(session: Session, used_again: Select[Any]) -> None:
    """Say that a part of much data was written; what `used_again` finds is changed once more at the end.

    Nothing but time depends on it.
    """
    bound = session.get_bind()
    if bound.dialect.name != "sqlite":
        return
    session.execute(used_again).all()
    begin = _sync_file_range()
    if begin is not None:
        with suppress(OSError), Path(f"{bound.engine.url.database}-wal").open("rb") as log:
            begin(log.fileno(), 0, 0, BEGIN_TO_WRITE)


@cache
def _sync_file_range() -> Any:
    function = getattr(ctypes.CDLL(None), "sync_file_range", None) if sys.platform == "linux" else None
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function
