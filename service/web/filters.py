"""How values are written on pages."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson

import espalier

MAX_SHOWN = 120  # characters of a name or a value in a table


def number(value: Any, digits: int = 4) -> str:
    """Write a number with a few significant digits; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}".replace(",", " ")  # a thin space
    return f"{value:.{digits}g}"


def percent(value: float | None) -> str:
    """Write a share in per cent; a dash for none."""
    return "–" if value is None else f"{value * 100:.1f} %"


def moment(value: datetime | None) -> str:
    """Write a time in UTC, to the second."""
    return "–" if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def cell(value: Any) -> str:
    """Write a value of a row; a long text is cut."""
    if value is None:
        return "missing"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:  # as it was typed, most likely
        value = int(value)
    return cut(espalier.label_text(value) if isinstance(value, str | int | float | bool) else compact(value))


def cut(text: str, most: int = MAX_SHOWN) -> str:
    """Cut a long text."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def compact(value: Any) -> str:
    """Write a value as JSON, or text as it is."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def pair(word: str) -> tuple[str, str]:
    """Return a word as a choice of a menu."""
    return word, word


def pointer(name: str) -> str:
    """Write a name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": number,
    "percent": percent,
    "moment": moment,
    "cell": cell,
    "cut": cut,
    "compact": compact,
    "pair": pair,
    "pointer": pointer,
}
