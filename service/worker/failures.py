"""Why an attempt at a job failed, and whether another attempt may succeed; the limits of its time and memory."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import espalier
from service.errors import NotFound, StoreChanged, StoreUnavailable, fault_members
from service.settings import Settings

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
"""Codes of the failures that another attempt would meet again."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed. `errors` has faults in their JSON form."""

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
    if any(fault.path == "/work" for fault in faults):  # a full disk, for example, may have room at the next attempt
        code = "work_folder"
    message = "the job needs more memory than there is" if code == "out_of_memory" else str(error)
    return Failed(code, message, fault_members(faults))


def over_limit(settings: Settings, *, began: float, pid: int | None) -> Failed | None:
    """Return a failure if a job has run too long since `began` (`time.monotonic`) or uses too much memory."""
    if time.monotonic() - began > settings.job_seconds:
        return Failed("time_limit", f"the job took longer than {settings.job_seconds:g} s")
    if (resident := resident_mb(pid) or 0.0) > settings.job_memory_mb:
        return Failed("memory_limit", f"the job used {resident:.0f} MiB, more than {settings.job_memory_mb} MiB")
    return None


def resident_mb(pid: int | None) -> float | None:
    """Return the resident memory of a process without mapped files, in MiB; None if /proc does not show it."""
    try:
        resident, of_files = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    except (OSError, IndexError, ValueError):
        return None
    return (resident - of_files) * os.sysconf("SC_PAGE_SIZE") / 2**20
