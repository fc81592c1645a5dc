"""Limits of a job: how long its process may run, and how much memory it may use."""

import os
import time
from pathlib import Path

from service.settings import Settings
from service.worker.failures import Failed


def over_limit(settings: Settings, *, began: float, pid: int | None) -> Failed | None:
    """Return a failure if a job has run too long since `began` (`time.monotonic`) or uses too much memory."""
    if time.monotonic() - began > settings.job_seconds:
        return Failed("time_limit", f"the job took longer than {settings.job_seconds:g} s")
    if (resident := resident_mb(pid) or 0.0) > settings.job_memory_mb:
        return Failed("memory_limit", f"the job used {resident:.0f} MiB, more than {settings.job_memory_mb} MiB")
    return None


def resident_mb(pid: int | None) -> float | None:
    """Return the resident memory of a process in MiB, without mapped files; None if /proc does not show it."""
    try:
        resident, of_files = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    except (OSError, IndexError, ValueError):
        return None
    return (resident - of_files) * os.sysconf("SC_PAGE_SIZE") / 2**20
