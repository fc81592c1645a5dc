"""Start and end the child processes in which jobs run."""

import multiprocessing
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from service.settings import Settings
from service.worker.child_main import RunJob, child_main

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
