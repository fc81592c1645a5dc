"""Filters that write values as text on pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

import espalier
from espalier import Fault
from service.api.problems import Problem

MAX_SHOWN = 120  # characters of a name or a value in a table


def number(value: Any, digits: int = 4) -> str:
    """Write a number with all digits before its point, and with `digits` significant digits if it has a fraction.

    A float from 1e16 is written with an exponent, and None as a dash.
    """
    if value is None:
        return "–"
    if isinstance(value, int) or (abs(value) < 1e16 and (float(value).is_integer() or abs(value) >= 10**digits - 0.5)):
        return f"{round(value):,}".replace(",", "\u202f")  # a narrow space without a line break
    return f"{value:.{digits}g}"


def counted(value: float | None, word: str, several: str = "") -> str:
    """Write a number before a noun: "1 row", "2 rows"; `several` is the plural if it needs more than an "s"."""
    return f"{number(value)} {word if value == 1 else several or word + 's'}"


def rows_text(weight: float, word: str, *, is_weighted: bool) -> str:
    """Write the weight of rows: "2 rows", or "weight 2.5" if the rows have weights; `word` is "row", for example."""
    return f"weight {number(weight)}" if is_weighted else counted(weight, word)


def percent(value: float | None) -> str:
    """Write a share in per cent, and None as a dash. Only the whole is 100.0 %, and only nothing is 0.0 %.

    A difference below 1e-9 counts as rounding.
    """
    if value is None:
        return "–"
    if 0.9995 <= value < 1 - 1e-9:
        return "> 99.9 %"
    return "< 0.1 %" if 1e-9 < value < 0.0005 else f"{value * 100:.1f} %"


def moment(value: datetime | None) -> str:
    """Write a UTC time, to the second, and None as a dash."""
    return "–" if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def cell(value: Any) -> str:
    """Write a value of a row, with long texts cut, and None as "missing"."""
    if value is None:
        return "missing"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:  # 5.0 was probably typed as 5
        value = int(value)
    return cut(espalier.label_text(value) if isinstance(value, str | int | float | bool) else compact(value))


def answer_text(answer: Mapping[str, Any]) -> str:
    """Write the label of an answer, or the value of a regression."""
    return cell(answer["label"] if "label" in answer else answer["value"])


def quality(figures: Mapping[str, Any], accuracy: str = "accuracy") -> str:
    """Write the accuracy of a version, or the error of a regression; an empty text if both are missing."""
    if figures.get(accuracy) is not None:
        return f"{percent(figures[accuracy])} right"
    return f"error {number(figures['rmse'])}" if figures.get("rmse") is not None else ""


def largest_shares(shares: Iterable[tuple[Any, float]], *, most: int) -> list[tuple[str, float]]:
    """Return the `most` largest shares in descending order, each with the text of its class."""
    ranked = sorted(shares, key=lambda one: -one[1])
    return [(cut(cell(label), 80), share) for label, share in ranked[:most]]


def cut(text: str, most: int = MAX_SHOWN) -> str:
    """Cut a text to `most` characters; an ellipsis marks the cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def compact(value: Any) -> str:
    """Write a value as JSON, but return text unchanged."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def pair(word: str) -> tuple[str, str]:
    """Return the value and the text of a choice in a menu, which are both `word`."""
    return word, word


def faults_at(problem: Problem | None, pointer: str) -> Sequence[Fault]:
    """Return the problem's faults whose path is `pointer` or lies below it."""
    if not problem:  # none, or undefined in the template
        return ()
    return [fault for fault in problem.faults if fault.path == pointer or fault.path.startswith(f"{pointer}/")]


def pointer(name: str) -> str:
    """Write a name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": number,
    "counted": counted,
    "rows_text": rows_text,
    "percent": percent,
    "moment": moment,
    "cell": cell,
    "label_text": espalier.label_text,
    "answer_text": answer_text,
    "quality": quality,
    "cut": cut,
    "compact": compact,
    "pair": pair,
    "faults_at": faults_at,
    "pointer": pointer,
}
