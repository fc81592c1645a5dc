"""Why an attempt at a job failed, and whether another attempt may succeed."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import espalier
from service.errors import NotFound, StoreChanged, StoreUnavailable, fault_members

LOG = logging.getLogger(__name__)

CODES: Final[Mapping[type[Exception], str]] = {
    StoreUnavailable: "store_unavailable",
    StoreChanged: "store_changed",
    NotFound: "not_found",
    espalier.ClusterError: "cluster",
    espalier.NotApplicable: "not_applicable",
    espalier.InvalidInput: "invalid_input",
    MemoryError: "out_of_memory",
}
REPEATED: Final = frozenset({"invalid_input", "not_applicable", "not_found", "store_changed", "too_large"})
"""Codes of the failures that another attempt would only repeat."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; `errors` holds the faults in their JSON form, if the error has faults."""

    code: str
    message: str
    errors: Sequence[Mapping[str, str]] = ()

    @property
    def retryable(self) -> bool:
        """Whether another attempt may succeed."""
        return self.code not in REPEATED


def failure_of(error: Exception) -> Failed:
    """Return the failure for an error that has ended an attempt."""
    if isinstance(error, StoreUnavailable):
        LOG.warning("%s", error.log_message)
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "unexpected")
    if code == "unexpected":
        LOG.error("a job failed unexpectedly", exc_info=error)
        return Failed(code, f"the job failed with an unexpected {type(error).__name__}")
    faults = error.faults if isinstance(error, espalier.InvalidInput) else ()
    if any(fault.code in ("disk_full", "not_writable") for fault in faults):  # another attempt may find room
        code = "work_folder"
    message = "the job needs more memory than there is" if code == "out_of_memory" else str(error)
    return Failed(code, message, fault_members(faults))
