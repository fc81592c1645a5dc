"""Log lines in JSON or text, without values of a caller's data.

Every module logs through the standard library; structlog formats the lines::

    {"event": "a request failed", "level": "error", "logger": "service", "timestamp": "2026-11-22T08:15:30.123456Z",
     "process": 4711, "request_id": "4f…", "exception": {"type": "KeyError", "message": null, "frames": ["…:17 in f"]}}

The message of an exception may quote a cell, a name or an SQL parameter. So only the exceptions in `WITH_MESSAGE` are
logged with their message. For all other exceptions, only the type and the lines of code are logged.
"""

import logging
import math
import sys
import time
import traceback
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

import espalier
from service import errors

WITH_MESSAGE: tuple[type[BaseException], ...] = (
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
MAX_MESSAGE_CHARS = 500
MAX_FRAMES = 30
WARNING_SECONDS = 10.0  # between two lines of a rate-limited warning


class RateLimitedWarning:
    """A warning that any request may cause. It is logged about once in ten seconds; `left_out` counts the rest."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._next = -math.inf
        self._left_out = 0

    def warn(self, message: str, /, **fields: Any) -> None:
        """Log the message, or count it if a warning was logged recently; two threads that call at once may both log."""
        present = time.monotonic()
        if present < self._next:
            self._left_out += 1
            return
        left_out, self._left_out, self._next = self._left_out, 0, present + WARNING_SECONDS
        self._log.warning(message, extra={**fields, "left_out": left_out})


def configuration(form: str, level: str) -> dict[str, Any]:
    """Return the argument for `logging.config.dictConfig`; all lines go to standard error in one format.

    `form` is auto, json or text; auto is text on a terminal and JSON elsewhere. Lines below `level` are left out.
    """
    is_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": formatter, "is_text": is_text}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # Gunicorn's own handlers use another format. Level ERROR omits bad requests: their clients get a response.
            "gunicorn.error": {"handlers": [], "propagate": True, "level": "ERROR"},
            "gunicorn.access": {"handlers": [], "propagate": True, "level": "ERROR"},
        },
    }


def formatter(*, is_text: bool) -> logging.Formatter:
    """Return the formatter of log lines, which are text or JSON."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.contextvars.merge_contextvars,
        _add_process_and_exception,
    ]
    renderer: Processor = _as_text if is_text else structlog.processors.JSONRenderer(default=str)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    )


def _add_process_and_exception(_logger: Any, _name: str, line: EventDict) -> EventDict:
    """Add the process, and the exception as `_described` returns it; a traceback would always show the message."""
    line.pop("message", None)  # another handler may have set it
    line["process"] = line["_record"].process
    exc_info = line.pop("exc_info", None) or line["_record"].exc_info
    line["_record"].exc_info = line["_record"].exc_text = None  # so logging adds no traceback
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if isinstance(error, BaseException):
        line["exception"] = _described(error)
    return line


def _described(error: BaseException) -> dict[str, Any]:
    message = str(error)[:MAX_MESSAGE_CHARS] if isinstance(error, WITH_MESSAGE) else None
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    described: dict[str, Any] = {
        "type": type(error).__name__,
        "message": message,
        "frames": [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames],
    }
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        described["cause"] = {"type": type(cause).__name__}
    return described


def _as_text(_logger: Any, _name: str, line: EventDict) -> str:
    fields = {name: value for name, value in line.items() if name not in ("event", "level", "logger", "timestamp")}
    exception = fields.pop("exception", None)
    shown = " ".join(f"{name}={value}" for name, value in fields.items())
    lines = [f"{line['timestamp']} {line['level']:<7} {line['event']}  {shown}".rstrip()]
    if exception is not None:
        lines += [f"    {frame}" for frame in exception["frames"]]
        lines.append(f"    {exception['type']}: {exception['message'] or '(not logged: it may contain data)'}")
    return "\n".join(lines)
