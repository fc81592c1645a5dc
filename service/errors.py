"""Errors of the service, independent of HTTP; `service.api.problems` maps each to a status.

Too many rows, columns, cells or characters, or a model that is too large, raise `espalier.TooLarge` instead.
"""

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import espalier
from espalier import Fault

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class ServiceError(Exception):
    """An error that the service raises on purpose, with a message for people."""


class SettingsError(ServiceError):
    """The settings are not valid; `faults` has one sentence per error."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


class NotFound(ServiceError):  # noqa: N818 - without the suffix, like the errors of the core
    """There is no `kind` (such as a data set) with the id or name `key`; `why` is an optional reason."""

    def __init__(self, kind: str, key: str, *, why: str = "") -> None:
        self.kind = kind
        super().__init__(f"there is no {kind} {key!r}{why and ': '}{why}")


class Unauthenticated(ServiceError):  # noqa: N818 - as above
    """No key was given, or the given key is unknown, revoked or expired."""


class Forbidden(ServiceError):  # noqa: N818 - as above
    """The key does not allow the request: it lacks a scope or is limited to models."""


class CrossOriginRequest(ServiceError):  # noqa: N818 - as above
    """The request may come from another site, or from a page that is outdated; the message says what to do."""


class Conflict(ServiceError):  # noqa: N818 - as above
    """The present state does not allow the request; the message says which state that is."""


class PreconditionFailed(ServiceError):  # noqa: N818 - as above
    """If-Match or If-None-Match forbids the request; nothing was changed."""


class RequestInProgress(ServiceError):  # noqa: N818 - as above
    """A request with the same Idempotency-Key is still running; the caller may repeat it soon."""

    def __init__(self) -> None:
        super().__init__("a request with this Idempotency-Key is still running: repeat it later to get its response")


class ValidationFailed(ServiceError):  # noqa: N818 - as above
    """The request is well-formed but not valid; `faults` holds the faults found, each with its place in the request."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.message for fault in self.faults))

    @classmethod
    def of(cls, path: str, code: str, message: str) -> "ValidationFailed":
        """Return the error with one fault."""
        return cls([Fault(path, code, message)])

    @classmethod
    def raise_for(cls, faults: Iterable[Fault]) -> None:
        """Raise the error if there are faults."""
        if collected := tuple(faults):
            raise cls(collected)


class LimitExceeded(ServiceError):  # noqa: N818 - as above
    """There are too many requests, unfinished jobs or waiting log records; a retry may succeed after `seconds`."""

    def __init__(self, message: str, *, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(message)


class LeaseLost(ServiceError):  # noqa: N818 - as above
    """The worker no longer holds the lease of this job: the lease ran out, and another worker ended the lease."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"the lease on job {job_id} is lost")


class Unavailable(ServiceError):  # noqa: N818 - as above
    """The database or another resource cannot be used now. `reason` is a technical cause, for the log only."""

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(message)

    @property
    def log_message(self) -> str:
        """The message, followed by the reason in parentheses if there is one."""
        return str(self) if self.reason is None else f"{self} ({self.reason})"


class StoreUnavailable(Unavailable):
    """The store (the folder or bucket that ESPALIER_STORE names) cannot be used now."""


class StoreChanged(Conflict):
    """A registered file below the store is missing or has changed; the message names it."""


class SchemaMismatch(Unavailable):
    """The tables have another schema revision than this program needs; `newer`: a newer program migrated them."""

    def __init__(self, *, found: str, needed: str, newer: bool) -> None:
        self.newer = newer
        advice = "this program is older: start the version that migrated them" if newer else "run espalier migrate"
        super().__init__(f"the tables are of revision {found}, this program needs {needed}; {advice}")


def fault_members(faults: Sequence[Fault]) -> list[dict[str, str]]:
    """Return the JSON form of faults."""
    return [{"pointer": fault.path, "code": fault.code, "message": fault.message} for fault in faults]


@contextmanager
def translate_config_errors() -> Iterator[None]:
    """Convert a `ConfigError` raised in the block to a `ValidationFailed` with the same faults."""
    try:
        yield
    except espalier.ConfigError as error:
        raise ValidationFailed(error.faults) from None


CELL = "characters in one cell"


def check_size(what: str, *, given: int, limit: int) -> None:
    """Raise `espalier.TooLarge` if `given` is above `limit`."""
    if given > limit:
        raise espalier.TooLarge(what, limit)


def relocate(below: str, elsewhere: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Return a function that replaces the start of a path if it is a key of `elsewhere`, or else prepends `below`.

    >>> pointer = relocate("/params", {"/target": "/dataset"})
    >>> pointer("/target"), pointer("/max_depth")
    ('/dataset', '/params/max_depth')
    """

    def pointer(path: str) -> str:
        for start, place in (elsewhere or {}).items():
            if path == start or path.startswith(f"{start}/"):
                return place + path[len(start) :]
        return below + path

    return pointer
