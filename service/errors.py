"""What can go wrong in the service, without a word of HTTP.

ServiceError
├ SettingsError   environment variables are wrong; every fault at once
├ NotFound        a data set, model, version, job or decision does not exist
├ Unidentified    no key was given, or none that is valid
├ Forbidden       the key is valid, but not for this
├ Foreign         keys are off, and a web page of elsewhere may be asking
├ Conflict        the thing exists, but its state does not allow the request
├ Changed         the thing is not as its caller has seen it
├ StillRunning    the same request, by its Idempotency-Key, is being worked at
├ Rejected        well-formed, but not valid; every fault with the place it was found at
├ TooMany         more requests or jobs than one key may have at a time
├ TooLarge        a limit of the settings is exceeded
├ LeaseLost       a worker's write came after another worker took its job over
└ Unavailable     the database cannot be reached or written at the moment; trying again is right
  └ OtherTables   its tables are not those of this version of the service

The message of each is one readable sentence built from its fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: a JSON pointer to it, a short code, and what is legal in words."""

    pointer: str
    code: str
    message: str


class ServiceError(Exception):
    """Every error that the service raises on purpose."""


class SettingsError(ServiceError):
    """Environment variables are wrong; `faults` has one sentence a variable."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))

    def __reduce__(self) -> tuple[type["SettingsError"], tuple[tuple[str, ...]]]:
        return SettingsError, (self.faults,)


class NotFound(ServiceError):  # noqa: N818 - each is named as what it is, like those of the core
    """Nothing of this kind has this key, for example kind "data set" and key its id; `why` says the reason."""

    def __init__(self, kind: str, key: str, *, why: str = "") -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"there is no {kind} {key!r}{why and ': '}{why}")


class Unauthenticated(ServiceError):  # noqa: N818 - as above
    """Who asks is not known: no key was given, or one that is unknown, revoked or expired."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Forbidden(ServiceError):  # noqa: N818 - as above
    """The key is valid, but does not reach as far as this; the message says what it lacks."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class CrossOriginRequest(ServiceError):  # noqa: N818 - as above
    """Keys are off, and the request may come from a web page of elsewhere; the message says what gives that away."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Conflict(ServiceError):  # noqa: N818 - as above
    """What was asked for is not possible in the present state; the message says which state that is."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class PreconditionFailed(ServiceError):  # noqa: N818 - as above
    """What was to be changed is no longer as its caller has seen it; nothing was done. The message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class RequestInProgress(ServiceError):  # noqa: N818 - as above
    """The same request, by its Idempotency-Key, is being worked at; soon it can be asked for its answer."""

    def __init__(self) -> None:
        super().__init__("a request with this Idempotency-Key is still being worked at: ask again for its answer")


class ValidationFailed(ServiceError):  # noqa: N818 - as above
    """The request is well-formed but not valid; `faults` lists all that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.message for fault in self.faults))


class TooLarge(ServiceError):  # noqa: N818 - as above
    """More of something was given than the settings allow, for example 5 000 `columns` of at most 2 000."""

    def __init__(self, *, what: str, given: int, limit: int) -> None:
        self.what = what
        self.given = given
        self.limit = limit
        super().__init__(f"{given} {what} were given, at most {limit} are allowed")


class LimitExceeded(ServiceError):  # noqa: N818 - as above
    """One key asks for too much at a time; `seconds` later the same request may well be taken."""

    def __init__(self, message: str, *, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(message)


class LeaseLost(ServiceError):  # noqa: N818 - as above
    """The lease of this job is no longer held: another worker has it, or it was decided otherwise."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"the lease on job {job_id} is lost")


class Unavailable(ServiceError):  # noqa: N818 - as above
    """The database does not answer or cannot write now; the same request may well succeed later.

    Attributes:
        reason: What the database or its driver says, for whoever keeps the service running; callers are not told.
    """

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(message)

    @property
    def told(self) -> str:
        """The message with its reason, for the log."""
        return str(self) if self.reason is None else f"{self} ({self.reason})"


class SchemaMismatch(Unavailable):
    """The tables are not those of this version of the service; `newer`: it does not know theirs."""

    def __init__(self, *, found: str, needed: str, newer: bool) -> None:
        self.newer = newer
        what = "this program is older: start the version that migrated them" if newer else "run espalier migrate"
        super().__init__(f"the tables are of revision {found}, this program needs {needed}; {what}")
