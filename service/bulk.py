"""Transactions that write much: on SQLite their commits do not take the pages over into the file.

A commit that finds more than a few pages in SQLite's log copies all of them into the file before it returns. After an
upload that is as much again as was written, and somebody waits. What is committed is durable in the log already::

    upload   | pack, write | commit, fsync of the log | answer
    a thread                                            | log ── copied ── file |

What a process that ends does not copy, the next commit on the file does.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Error

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from service.db import Sessions, translated

__all__ = ["bulk_transaction", "take_over"]

LOG = logging.getLogger(__name__)

_alone = threading.Lock()


@contextmanager
def bulk_transaction(source: Sessions) -> Iterator[Session]:
    """A session as that of `service.db.transaction`, for much data.

    Raises:
        As `service.db.transaction`.
    """
    with translated(), source.bulk.begin() as session:
        yield session
    if source.engine.dialect.name == "sqlite":
        try:
            threading.Thread(target=take_over, args=[source.engine], name="checkpoint", daemon=True).start()
        except RuntimeError as error:  # no thread can be made; what was written is committed all the same
            _warn(error)


def take_over(engine: Engine) -> None:
    """Copy what is committed from SQLite's log into the file; neither readers nor writers wait for it."""
    try:
        with _alone, closing(engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").close()
    except (Error, SQLAlchemyError) as error:  # the next commit of many pages does it
        _warn(error)


def _warn(error: Exception) -> None:
    LOG.warning("SQLite's log was not taken over into its file: %s", type(error).__name__)
