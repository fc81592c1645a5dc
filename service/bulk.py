"""Transactions that write much: on SQLite their commits do not take the pages over into the file.

A commit that finds more than a few pages in SQLite's log copies all of them into the file before it returns. After an
upload that is as much again as was written, and somebody waits, as behind the result of a long job. What is committed
is durable in the log already::

    upload   | pack, write | commit, fsync of the log | answer
    a thread                                            | log ── copied ── file |

What a process that ends does not copy, the next commit on the file does.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Error
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from service.database.engine import Sessions, transaction, translated
from service.log_growth import make_room

__all__ = ["MUCH", "bulk_transaction", "take_over", "transaction_for"]

MUCH: Final = 2**20

LOG = logging.getLogger(__name__)

_alone = threading.Lock()


@contextmanager
def bulk_transaction(source: Sessions) -> Iterator[Session]:
    """A session as that of `service.database.engine.transaction`, for much data.

    Raises:
        As `service.database.engine.transaction`.
    """
    with translated(), source.bulk.begin() as session:
        yield session
    if source.engine.dialect.name == "sqlite":
        try:
            threading.Thread(target=take_over, args=[source.engine], name="checkpoint", daemon=True).start()
        except (RuntimeError, MemoryError) as error:  # there is no thread; what was written is committed all the same
            _warn(error)


@contextmanager
def transaction_for(source: Sessions, n_bytes: int) -> Iterator[Session]:
    """A session as that of `service.database.engine.transaction`, to write so many bytes at once.

    Where they are many, who waits for them sees them before they are taken over; whoever wrote them waits for that.

    Raises:
        As `service.database.engine.transaction`.
    """
    if n_bytes < MUCH:
        with transaction(source) as session:
            yield session
        return
    with translated(), source.bulk.begin() as session:
        make_room(session, n_bytes)
        yield session
    if source.engine.dialect.name == "sqlite":
        take_over(source.engine)


def take_over(engine: Engine) -> None:
    """Copy what is committed from SQLite's log into the file; neither readers nor writers wait for it."""
    try:
        with _alone, closing(engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").close()
    except (Error, SQLAlchemyError) as error:  # the next commit of many pages does it
        _warn(error)


def _warn(error: Exception) -> None:
    LOG.warning("SQLite's log was not taken over into its file: %s", type(error).__name__)
