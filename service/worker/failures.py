"""Why an attempt of a job failed, and whether another attempt may succeed."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import espalier
from service.errors import NotFound, StoreChanged, StoreUnavailable, fault_members

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed, and another one may succeed if it is `retryable`; `errors` has faults in their JSON form."""

    code: str
    message: str
    errors: Sequence[Mapping[str, str]] = ()
    retryable: bool = False


CODES: Final[Mapping[type[Exception], tuple[str, bool]]] = {
    StoreUnavailable: ("store_unavailable", True),
    StoreChanged: ("store_changed", False),
    NotFound: ("not_found", False),
    espalier.ClusterError: ("cluster", True),
    espalier.NotApplicable: ("not_applicable", False),
}
"""The code of errors, and whether another attempt may succeed."""


def failure_of(error: Exception) -> Failed:
    """Return the failure for an error; it is not retryable if the same job would raise the error again."""
    if isinstance(error, espalier.InvalidInput):
        # A full disk, for example, may have room at the next attempt.
        of_folder = any(fault.path == "/work" for fault in error.faults)
        code = "work_folder" if of_folder else "invalid_input"
        return Failed(code, str(error), fault_members(error.faults), retryable=of_folder)
    if isinstance(error, StoreUnavailable):
        LOG.warning("%s", error.log_message)
    for kind, (code, retryable) in CODES.items():
        if isinstance(error, kind):
            return Failed(code, str(error), retryable=retryable)
    if isinstance(error, MemoryError):
        return Failed("out_of_memory", "the job needs more memory than there is", retryable=True)
    LOG.error("a job failed unexpectedly", exc_info=error)
    message = f"the job failed with an unexpected {type(error).__name__}"
    return Failed("unexpected", message, retryable=True)
