"""Log lines: JSON for programs, a readable form on a terminal; none of them holds a value of the caller's data.

Every module logs through the standard library; `configuration` decides, once a process, how a line looks::

    {"event": "request 4f… failed", "level": "error", "logger": "service", "timestamp": "2026-11-22T08:15:30.123456Z",
     "process": 4711, "request_id": "4f…", "exception": {"type": "KeyError", "message": null, "frames": ["…:17 in f"]}}

The message of an exception may quote a cell, a name or a parameter of SQL, so only messages that speak of code, of the
system, or of our own words are written (``SPEAKING``); of the others the type and the place tell what went wrong.
"""

import logging
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import structlog

import espalier
from service import errors

FORMATS = ("auto", "json", "text")
LEVELS = ("debug", "info", "warning", "error")
SPEAKING: tuple[type[BaseException], ...] = (
    errors.ServiceError,
    espalier.EspalierError,
    AssertionError,
    AttributeError,
    ImportError,
    MemoryError,
    NameError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
)
LONGEST_MESSAGE = 500  # characters
MOST_FRAMES = 30
SECONDS_BETWEEN = 10.0
CONTEXT: ContextVar[Mapping[str, Any]] = ContextVar("what the lines are about", default={})  # noqa: B039 - never changed

Line = MutableMapping[str, Any]


@contextmanager
def about(**fields: Any) -> Iterator[None]:
    """Add these fields to every line of this thread until the block ends, such as the id of the job at hand."""
    token = CONTEXT.set({**CONTEXT.get(), **fields})
    try:
        yield
    finally:
        CONTEXT.reset(token)


class RateLimitedWarning:
    """A warning that every request may give rise to: one line in ten seconds, which says how many were left out."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._next = -math.inf
        self._left_out = 0

    def warn(self, message: str, /, **fields: Any) -> None:
        """Write the line, or count it; two threads at once may write it twice."""
        present = time.monotonic()
        if present < self._next:
            self._left_out += 1
            return
        left_out, self._left_out, self._next = self._left_out, 0, present + SECONDS_BETWEEN
        self._log.warning(message, extra={**fields, "left_out": left_out})


def configuration(form: str, level: str) -> dict[str, Any]:
    """Give what `logging.config.dictConfig` wants: all lines of the process to standard error, in one form.

    Args:
        form: One of `FORMATS`; auto is text on a terminal and JSON elsewhere.
        level: One of `LEVELS`: what is less grave is not written.
    """
    is_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": formatter, "is_text": is_text}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # Its own handlers would write lines of another form; what is wrong with a request is told to the client.
            "gunicorn.error": {"handlers": [], "propagate": True, "level": "ERROR"},
            "gunicorn.access": {"handlers": [], "propagate": True, "level": "ERROR"},
        },
    }


def formatter(*, is_text: bool) -> logging.Formatter:
    """Give what turns a record into a line: of text for a person, or of JSON."""
    shared: list[Callable[[Any, str, Line], Any]] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_context,
        _add_exception,
    ]
    renderer: Callable[[Any, str, Line], str | bytes] = (
        _as_text if is_text else structlog.processors.JSONRenderer(default=str)
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )


def _add_context(_logger: Any, _name: str, line: Line) -> Line:
    line.pop("message", None)  # what another handler has made of the record
    line.update(CONTEXT.get(), process=line["_record"].process)
    return line


def _add_exception(_logger: Any, _name: str, line: Line) -> Line:
    """Put the type and the places of an exception in the place of what Python would write, which shows its message."""
    given = line.pop("exc_info", None) or line["_record"].exc_info
    line["_record"].exc_info = line["_record"].exc_text = None  # nobody formats it once more
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        line["exception"] = _described(error)
    return line


def _described(error: BaseException) -> dict[str, Any]:
    message = str(error)[:LONGEST_MESSAGE] if isinstance(error, SPEAKING) else None
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    described: dict[str, Any] = {
        "type": type(error).__name__,
        "message": message,
        "frames": [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames],
    }
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        described["cause"] = {"type": type(cause).__name__}
    return described


def _as_text(_logger: Any, _name: str, line: Line) -> str:
    """Write a line for a person: the moment, how grave, what, the fields; below it the places of an exception."""
    fields = {name: value for name, value in line.items() if name not in ("event", "level", "logger", "timestamp")}
    exception = fields.pop("exception", None)
    told = " ".join(f"{name}={value}" for name, value in fields.items())
    lines = [f"{line['timestamp']} {line['level']:<7} {line['event']}  {told}".rstrip()]
    if exception is not None:
        lines += [f"    {frame}" for frame in exception["frames"]]
        lines.append(f"    {exception['type']}: {exception['message'] or '(its message may hold data: not written)'}")
    return "\n".join(lines)
