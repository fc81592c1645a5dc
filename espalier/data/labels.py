"""Labels of categories, numbers and instants: as text and back, and their order.

Labels keep their JSON type: ``1``, ``1.0``, ``"1"`` and ``true`` are four different categories.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

Label = str | int | float | bool

NOT_TEXT: Final = "must not hold NUL or lone surrogates"
"""Not every database takes NUL, and UTF-8 has no lone surrogates."""
MAX_INTEGER: Final = 2**53
"""Beyond it JSON readers round whole numbers; a label that is longer must be text."""
EARLIEST_INSTANT: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LATEST_INSTANT: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def sorted_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return distinct labels in order: booleans, then numbers by value, then text by code point.

    >>> sorted_labels(["b", 10, 2, "a", True])
    (True, 2, 10, 'a', 'b')
    """
    return tuple(sorted(labels, key=_sort_key))


def label_key(label: Label) -> tuple[str, Label]:
    """Return a dictionary key in which ``1``, ``1.0``, ``True`` and ``"1"`` differ."""
    return type(label).__name__, label


def category_codes(categories: Sequence[Label]) -> dict[tuple[str, Label], int]:
    """Return the code of each category by its `label_key`.

    A number also stands for an equal number of the other type, unless that is a category too: 1.0 for 1.

    >>> codes = category_codes(["a", 1, 2.0, 2])
    >>> [codes.get(label_key(label)) for label in ("a", 1, 1.0, 2.0, 2, True, "1")]
    [0, 1, 1, 2, 3, None, None]
    """
    codes: dict[tuple[str, Label], int] = {}
    for code, label in reversed(list(enumerate(categories))):
        if is_number(label):
            codes["int", label] = codes["float", label] = code
    return codes | {label_key(label): code for code, label in enumerate(categories)}


def is_number(label: object) -> bool:
    """Return whether a label is a number; true and false are none."""
    return isinstance(label, int | float) and not isinstance(label, bool)


def label_text(label: Label) -> str:
    """Return a label as JSON shows it, without quotes around text: ``True`` is ``true``."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def instant_text(seconds: float) -> str:
    """Return seconds since 1970-01-01 UTC as an ISO 8601 date, with the time of day unless it is midnight.

    >>> instant_text(86400.0), instant_text(86401.5)
    ('1970-01-02', '1970-01-02T00:00:01.500000+00:00')
    """
    instant = datetime.fromtimestamp(seconds, UTC)
    midnight = (instant.hour, instant.minute, instant.second, instant.microsecond) == (0, 0, 0, 0)
    return instant.date().isoformat() if midnight else instant.isoformat()


def parse_instant(text: str) -> float:
    """Return an ISO 8601 date or time as seconds since 1970-01-01 UTC; without an offset it is taken as UTC.

    Raises:
        ValueError: It is not ISO 8601, or not within the years 1 to 9999 of UTC.
    """
    if "\0" in text:  # Python takes any character between date and time
        raise ValueError("it holds NUL characters")
    instant = datetime.fromisoformat(text)
    seconds = (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)).timestamp()
    if not EARLIEST_INSTANT <= seconds <= LATEST_INSTANT:
        raise ValueError("its time in UTC is not within the years 1 to 9999")
    return seconds


def _sort_key(label: Label) -> tuple[int, Any, str]:
    if isinstance(label, bool):
        return 0, label, ""
    if isinstance(label, int | float):
        return 1, label, type(label).__name__
    return 2, label, ""


def number_from_text(text: str) -> float | None:
    """Return the number that a text means; None if it is none, or not finite.

    >>> number_from_text(" -1.5e3"), number_from_text("1_000"), number_from_text("nan")
    (-1500.0, None, None)
    """
    if "_" in text or not text.isascii():
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def plain_number(cell: Any) -> float | None:
    """Return a number or the number that a text means; None for anything else and for what is not finite."""
    if isinstance(cell, str):
        return number_from_text(cell)
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    try:
        value = float(cell)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def plain_instant(cell: Any) -> float | None:
    """Return the date or time that a text means as seconds since 1970-01-01 UTC; None for anything else."""
    if not isinstance(cell, str):
        return None
    try:
        return parse_instant(cell)
    except (ValueError, OverflowError):
        return None


def is_not_text(text: str) -> bool:
    r"""Return whether a text has a character that no name and no category may have.

    >>> is_not_text("größe 🌳"), is_not_text("a\0"), is_not_text("\ud800")
    (False, True, True)
    """
    if "\0" in text:
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
