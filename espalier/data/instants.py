"""Convert dates and times from ISO 8601 text to seconds since 1970-01-01 UTC, and back."""

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

EARLIEST_INSTANT: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
END_OF_YEAR_9999: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp() + 86_400
LATEST_INSTANT: Final = math.nextafter(END_OF_YEAR_9999, 0)
"""The last double before the year 10000."""


def instant_text(seconds: float) -> str:
    """Return seconds since 1970-01-01 UTC as an ISO 8601 date, with the time of day unless it is midnight.

    >>> instant_text(86400.0), instant_text(86401.5)
    ('1970-01-02', '1970-01-02T00:00:01.500000+00:00')
    """
    return _iso_text(datetime.fromtimestamp(seconds, UTC))


def latest_instant_text(seconds: float) -> str:
    """Return the text of the latest instant in whole microseconds that is not after `seconds`.

    As a threshold, this instant divides all instants in whole microseconds exactly as `seconds` does.

    >>> latest_instant_text(0.0000015)
    '1970-01-01T00:00:00.000001+00:00'
    """
    instant = datetime.fromtimestamp(seconds, UTC)
    if instant.timestamp() > seconds:
        instant -= timedelta(microseconds=1)
    return _iso_text(instant)


def instant_seconds(value: date) -> float:
    """Return a date or time as seconds since 1970-01-01 UTC; a time without an offset is taken as UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    seconds = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
    return LATEST_INSTANT if seconds == END_OF_YEAR_9999 and value.microsecond else seconds


def parse_instant(cell: Any) -> float | None:
    """Return an ISO 8601 text, a date with or without a time, as seconds since 1970-01-01 UTC; None for other cells.

    A time without an offset is taken as UTC. Instants outside the years 1 to 9999 in UTC give None.
    """
    if not isinstance(cell, str) or "\0" in cell:  # Python accepts any character between date and time
        return None
    try:
        seconds = instant_seconds(datetime.fromisoformat(cell))
    except (ValueError, OverflowError):
        return None
    return seconds if EARLIEST_INSTANT <= seconds <= LATEST_INSTANT else None


def _iso_text(instant: datetime) -> str:
    midnight = (instant.hour, instant.minute, instant.second, instant.microsecond) == (0, 0, 0, 0)
    return instant.date().isoformat() if midnight else instant.isoformat()
