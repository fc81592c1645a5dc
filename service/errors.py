"""Errors of the service, without HTTP: `service.api.problems` gives each its status.

ServiceError
├ SettingsError        environment variables are wrong; every fault at once
├ NotFound             a data set, model, version, job or decision does not exist
├ Unauthenticated      no key was given, or none that is valid
├ Forbidden            the key is valid, but not for this
├ CrossOriginRequest   keys are off, and the request may come from a web page of another site
├ Conflict             the present state does not allow the request
├ PreconditionFailed   the thing has changed since its caller has seen it
├ RequestInProgress    the same request, by its Idempotency-Key, is still running
├ ValidationFailed     well-formed, but not valid; every fault with its place
├ LimitExceeded        more requests or jobs than one key may have at a time
├ LeaseLost            a worker's write came after another worker took its job over
└ Unavailable          the database cannot be reached or written at the moment; trying again is right
  └ SchemaMismatch     its tables are not those of this version of the service

What is too large for the settings is an `espalier.TooLarge`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import espalier
from espalier import Fault


class ServiceError(Exception):
    """An error that the service raises on purpose; its message is one readable sentence."""


class SettingsError(ServiceError):
    """Environment variables are wrong; `faults` has one sentence a variable."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))

    def __reduce__(self) -> tuple[type["SettingsError"], tuple[tuple[str, ...]]]:
        return SettingsError, (self.faults,)


class NotFound(ServiceError):  # noqa: N818 - named as what it is, like the errors of the core
    """Nothing of this kind has this key, for example kind "data set" and key its id; `why` says the reason."""

    def __init__(self, kind: str, key: str, *, why: str = "") -> None:
        self.kind = kind
        super().__init__(f"there is no {kind} {key!r}{why and ': '}{why}")


class Unauthenticated(ServiceError):  # noqa: N818 - as above
    """No key was given, or one that is unknown, revoked or expired."""


class Forbidden(ServiceError):  # noqa: N818 - as above
    """The key is valid, but not for this; the message says what it lacks."""


class CrossOriginRequest(ServiceError):  # noqa: N818 - as above
    """Keys are off, and the request may come from a web page of another site; the message says why it seems so."""


class Conflict(ServiceError):  # noqa: N818 - as above
    """The present state does not allow the request; the message says which state that is."""


class PreconditionFailed(ServiceError):  # noqa: N818 - as above
    """The thing has changed since its caller has seen it; nothing was done. The message says what to do."""


class RequestInProgress(ServiceError):  # noqa: N818 - as above
    """The same request, by its Idempotency-Key, is still running; its answer can be requested soon."""

    def __init__(self) -> None:
        super().__init__("a request with this Idempotency-Key is still being worked at: ask again for its answer")


class ValidationFailed(ServiceError):  # noqa: N818 - as above
    """The request is well-formed but not valid; `faults` lists all that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.message for fault in self.faults))


class LimitExceeded(ServiceError):  # noqa: N818 - as above
    """One key has too many requests or jobs at a time; after `seconds` the same request may well succeed."""

    def __init__(self, message: str, *, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(message)


class LeaseLost(ServiceError):  # noqa: N818 - as above
    """The lease of this job is no longer held: another worker has it, or the job has ended."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"the lease on job {job_id} is lost")


class Unavailable(ServiceError):  # noqa: N818 - as above
    """The database does not answer or cannot write now; the same request may well succeed later.

    Attributes:
        reason: What the database or its driver reports, for the log alone.
    """

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(message)

    @property
    def log_message(self) -> str:
        """The message with its reason."""
        return str(self) if self.reason is None else f"{self} ({self.reason})"


class SchemaMismatch(Unavailable):
    """The tables are not those of this version of the service; `newer`: this program does not know theirs."""

    def __init__(self, *, found: str, needed: str, newer: bool) -> None:
        self.newer = newer
        what = "this program is older: start the version that migrated them" if newer else "run espalier migrate"
        super().__init__(f"the tables are of revision {found}, this program needs {needed}; {what}")


@contextmanager
def collect_faults(faults: list[Fault], pointer: Callable[[str], str]) -> Iterator[None]:
    """Add the faults that the core finds in the block to `faults`, each once, at `pointer` of its path."""
    try:
        yield
    except espalier.InvalidInput as error:
        found = [Fault(pointer(fault.path), fault.code, fault.message) for fault in error.faults]
        faults += [fault for fault in found if fault not in faults]


def relocate(below: str, elsewhere: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Return the function from a path of the core to its place in a request: `below`, or by `elsewhere`.

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
