"""Keep several child processes alive, and stop them together.

::

    espalier up ──┬── espalier migrate (ends)
                  ├── espalier serve ──┬── web worker
                  │                    └── web worker
                  └── espalier worker ──── one child per job

Each child leads its own process group. So Ctrl-C reaches only the parent, which stops the children. A signal to the
group of a dead child stops the processes that the child left behind.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

PR_SET_PDEATHSIG = 1  # linux/prctl.h
SIGNAL_NAMES = {number.value: number.name for number in signal.Signals}
CHECK_SECONDS = 0.05
MIN_BACK_OFF_SECONDS = 0.2
MAX_BACK_OFF_SECONDS = 10.0
STABLE_SECONDS = 30.0  # if a child ran for longer, its next death counts as its first
STOP_SECONDS = 10.0
LEAN = {
    "PYTHONNODEBUGRANGES": "1",  # saves half a MiB per process; tracebacks still have line numbers
    "MALLOC_ARENA_MAX": "1",  # of glibc: a heap per thread would not return what the thread has freed
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # pyarrow's other pools do not return freed memory either
}


@dataclass(slots=True)
class Child:
    """A process to keep alive; times are in seconds of the monotonic clock."""

    name: str
    arguments: Sequence[str]  # of the command `espalier`
    keep_open: Sequence[int] = ()  # file descriptors that the process inherits
    ends: bool = False  # whether the process runs once; if it fails, all children stop
    after: "Child | None" = None  # the child that must have ended successfully before this one starts
    process: subprocess.Popen[bytes] | None = None  # None between a death and the next start
    started_at: float = 0.0
    deaths: int = 0  # in a row
    start_at: float = 0.0  # earliest time of the next start
    code: int | None = None  # exit code, if `ends`


@dataclass(slots=True)
class Supervisor:
    """Keeps `children` running until SIGINT, SIGTERM or, unless it is ignored (nohup), SIGHUP sets `stopping`."""

    children: Sequence[Child]
    report: Callable[[str], None]  # prints a line
    before_stop: Callable[[], None] = lambda: None
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Start the children and restart those that die; after `stopping` is set, return when all have ended.

        Call it in the main thread: `end_with_parent` stops a child also when the thread that started the child ends.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        try:
            while not self.stopping.wait(CHECK_SECONDS):
                for child in self.children:
                    self._check(child)
                self._reap_orphans()
        finally:
            self._stop_all()

    def wait_for_all(self) -> None:
        """Wait until all children without `ends` have started or `stopping` is set; `run` runs in another thread."""
        while not all(child.ends or child.started_at for child in self.children):
            if self.stopping.wait(CHECK_SECONDS):
                return

    def _on_signal(self, _number: int, _frame: object) -> None:
        if self.stopping.is_set():  # the second signal: stop at once
            for child in self.children:
                _signal_group(child, signal.SIGKILL)
        # Another thread sets the event: the signal may have interrupted this one while it holds the event's lock.
        threading.Thread(target=self.stopping.set, daemon=True).start()

    def _check(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if child.code is None and now >= child.start_at and (child.after is None or child.after.code == 0):
                command = [sys.executable, "-P", "-m", "service.cli", *child.arguments, "--parent", str(os.getpid())]
                child.process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                    command,
                    stdin=subprocess.DEVNULL,
                    pass_fds=child.keep_open,
                    process_group=0,
                    env={**LEAN, **os.environ},
                )
                child.started_at = now
        elif (code := child.process.poll()) is None:
            return
        elif child.ends:
            child.code, child.process = code, None
            if code:
                self.stopping.set()
        else:
            _signal_group(child, signal.SIGTERM)
            child.deaths = 1 if now - child.started_at > STABLE_SECONDS else child.deaths + 1
            wait = min(MIN_BACK_OFF_SECONDS * 2 ** (child.deaths - 1), MAX_BACK_OFF_SECONDS)
            child.process, child.start_at = None, now + wait
            cause = f"exit code {code}" if code >= 0 else SIGNAL_NAMES.get(-code, f"signal {-code}")
            self.report(f"{child.name} died ({cause}); it starts again in {wait:.1f} s")

    def _reap_orphans(self) -> None:
        """Reap processes that a dead child left behind; process 1 of a container inherits them."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or any(child.process and child.process.pid == ended.si_pid for child in self.children):
                return  # `subprocess` reaps our own children
            os.waitpid(ended.si_pid, os.WNOHANG)

    def _stop_all(self) -> None:
        self.before_stop()
        running = [(child, child.process) for child in self.children if child.process is not None]
        for _, process in running:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for child, process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            _signal_group(child, signal.SIGKILL)  # ends the rest of the group
            process.wait()


def _signal_group(child: Child, number: signal.Signals) -> None:
    if child.process is not None:
        with suppress(ProcessLookupError):
            os.killpg(child.process.pid, number)


def end_with_parent(parent: int) -> None:
    """Let Linux send SIGTERM to this process when its parent process `parent` ends, even by ``kill -9``."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the call above
            os.kill(os.getpid(), signal.SIGTERM)
