"""Times in UTC, the clock of the database, and ids (UUIDv7)."""

import os
import threading
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, TypeDecorator, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class UtcTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite stores it as text that sorts in time order."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a moment to UTC; raise `ValueError` if it has no time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC, or None; SQLite stores it without a zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class now(FunctionElement[datetime]):  # noqa: N801 - used like a function of SQL
    """The time by the database's clock when the statement runs, plus some seconds: `now()`, `now(15.0)`."""

    type = UtcTime()
    inherit_cache = False

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = float(seconds)
        super().__init__()


@compiles(now, "sqlite")
def _now_sqlite(element: now, compiler: SQLCompiler, **options: Any) -> str:
    # The text form of UtcTime on SQLite: the date, a space, the time with six digits after the point.
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', '{element.seconds:+.3f} seconds') || '000')"


@compiles(now, "postgresql")
def _now_postgresql(element: now, compiler: SQLCompiler, **options: Any) -> str:
    return f"(clock_timestamp() + make_interval(secs => {element.seconds:.3f}))"


def database_time(session: Session) -> datetime:
    """Return the time by the database's clock, which is the same for all hosts."""
    return session.scalars(select(now())).one()


def utc_now() -> datetime:
    """Return the time by the clock of this host, for times that may be some seconds wrong."""
    return datetime.now(UTC)


_uuid_lock = threading.Lock()
_uuid_last = 0


def new_id() -> str:
    """Return a UUIDv7 (RFC 9562) as text; each id is larger than those before it in this process.

    An id has the time and random bits. The next id in the same millisecond is a random step larger (RFC 9562, 6.2).
    """
    global _uuid_last  # noqa: PLW0603 - the only place that stores the last id
    random = os.urandom(14)  # before the lock: this call lets other threads run, which would wait for the lock
    with _uuid_lock:
        milliseconds = time.time_ns() // 1_000_000
        fresh = milliseconds << 74 | int.from_bytes(random[:10]) >> 7  # 73 of 74 bits: the top one is room for steps
        step = 1 + int.from_bytes(random[10:])  # random: forked processes take different steps
        _uuid_last = fresh if fresh >> 74 > _uuid_last >> 74 else _uuid_last + step
        number = _uuid_last
    stamp, high, low = number >> 74, number >> 62 & 0xFFF, number & (1 << 62) - 1
    return str(uuid.UUID(int=stamp << 80 | 7 << 76 | high << 64 | 2 << 62 | low))
