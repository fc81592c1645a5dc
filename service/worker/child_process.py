"""Start and end the child processes in which jobs run, and limit their time and memory."""

import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from service.settings import Settings
from service.worker.child_main import RunJob, child_main
from service.worker.failures import Failed

# On Linux, children are forked from a process that has imported `child_main`. On macOS, forks may crash.
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
STOP_SECONDS = 0.8  # how long a child may take to stop before it is killed


@dataclass(frozen=True, slots=True)
class Child:
    """A child process, and the pipe to it."""

    process: BaseProcess
    pipe: Connection

    def stop(self) -> None:
        """Ask the process to stop and wait up to `STOP_SECONDS` for its end; drop the messages that it still sends."""
        deadline = time.monotonic() + STOP_SECONDS
        with suppress(EOFError, OSError):
            self.pipe.send("stop")
            while self.process.is_alive() and (remaining := deadline - time.monotonic()) > 0:
                if self.pipe in wait([self.pipe, self.process.sentinel], timeout=remaining):
                    self.pipe.recv_bytes()

    def kill(self) -> None:
        """Kill the process unless it has ended; the id of an ended process may belong to another process."""
        if self.process.is_alive():
            self.process.kill()

    def end(self) -> None:
        """Kill the process, wait for its end, and close the pipe."""
        self.kill()
        self.process.join()
        self.pipe.close()


def start_child(settings: Settings, run: RunJob) -> Child:
    """Start a process that waits for a claim in its pipe and then runs `run`."""
    context: Any = multiprocessing.get_context(START_METHOD)
    context.set_forkserver_preload(["service.worker.child_main"])
    ours, theirs = context.Pipe()
    process = context.Process(target=child_main, args=(run, settings, theirs), daemon=True)
    resource_tracker.ensure_running()  # starting it later would undo the mask below
    # Ctrl-C reaches every process of the terminal. The child inherits the mask, so that only the worker reacts.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return Child(process, ours)


def ending_of(code: int | None) -> str:
    """Return in words how a process with this exit code ended."""
    if code == -signal.SIGKILL:
        return "killed (signal 9), as the system does when memory runs out"
    if code is not None and code < 0:
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"exit code {code} without a result"


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
