"""Several processes kept alive under one parent, and ended together.

::

    espalier up ──┬── espalier migrate (ends)
                  ├── espalier serve ──┬── web worker
                  │                    └── web worker
                  └── espalier worker ──── one child a job

Each child leads its own process group: Ctrl-C reaches only the parent, which then stops the children in order, and what
a child that died leaves behind can be ended by its group.
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
PARENT_SECONDS = 0.5  # between two looks at the parent where the kernel does not report its death
LOOK_SECONDS = 0.05
SOON_SECONDS = 0.01  # between looks until all were started: somebody waits for that
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 10.0
SETTLED_SECONDS = 30.0  # a child that lived this long has started well: its next death counts as the first
STOP_SECONDS = 10.0
LEAN = {"PYTHONNODEBUGRANGES": "1"}  # half a MiB a process; a traceback names its lines all the same


@dataclass(slots=True)
class Child:
    """One process to keep alive.

    Attributes:
        name: What it is, for the line that reports its death: "the web server".
        arguments: The command line after the Python interpreter.
        keep_open: File descriptors that it inherits.
        ends: Whether it is to do its work once and end; if it fails, everything ends.
        after: One that ends, and must have ended well before this one is started.
        go: Set when it may be started.
        process: The process that runs now; None between a death and the next start.
        started_at: When it was started, on the monotonic clock, seconds.
        deaths: How many times in a row it died before it had settled.
        start_at: When to start it (again), on the monotonic clock, seconds.
        code: The exit code of one that has ended as it was to.
    """

    name: str
    arguments: Sequence[str]
    keep_open: Sequence[int] = ()
    ends: bool = False
    after: "Child | None" = None
    go: threading.Event | None = None
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    deaths: int = 0
    start_at: float = 0.0
    code: int | None = None


@dataclass(slots=True)
class Supervisor:
    """Keeps `children` running until it is asked to stop.

    Attributes:
        children: What to keep alive.
        report: Takes one line for people.
        before_stop: Done once, before the children are asked to stop.
        stopping: Set to end everything; SIGINT and SIGTERM set it.
    """

    children: Sequence[Child]
    report: Callable[[str], None]
    before_stop: Callable[[], None] = lambda: None
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Start the children, restart those that die, return when all have ended after `stopping` was set.

        Must run in the main thread: on Linux `end_with_parent` is tied to the thread that started the child.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked_to_stop)
        try:
            while not self.stopping.wait(LOOK_SECONDS if self._all_were_started() else SOON_SECONDS):
                for child in self.children:
                    self._look_after(child)
                self._bury_orphans()
        finally:
            self._stop_all()

    def wait_for_all(self) -> None:
        """Wait until all that are to be kept running were started, or everything ends; for another thread."""
        while not self._all_were_started():
            if self.stopping.wait(SOON_SECONDS):
                return

    def _all_were_started(self) -> bool:
        return all(child.ends or child.started_at for child in self.children)

    def _asked_to_stop(self, _number: int, _frame: object) -> None:
        if self.stopping.is_set():  # asked twice: no more patience
            for child in self.children:
                _signal_group(child, signal.SIGKILL)
        # In a thread of its own: this one may hold the event's lock, being about to wait.
        threading.Thread(target=self.stopping.set, daemon=True).start()

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if child.code is None and now >= child.start_at and _may_start(child):
                _start(child)
        elif child.ends:
            child.code = child.process.poll()
            if child.code is not None:
                child.process = None
            if child.code:
                self.stopping.set()
        elif (code := child.process.poll()) is not None:
            _signal_group(child, signal.SIGTERM)
            settled = now - child.started_at > SETTLED_SECONDS
            child.deaths = 1 if settled else child.deaths + 1
            wait = min(FIRST_WAIT_SECONDS * 2 ** (child.deaths - 1), LONGEST_WAIT_SECONDS)
            child.process, child.start_at = None, now + wait
            self.report(f"{child.name} died ({_cause(code)}); starting it again in {wait:.1f} s")

    def _bury_orphans(self) -> None:
        """Reap what a child that died left behind, where it falls to us: in a container this is process 1."""
        while hasattr(os, "waitid"):  # not on every macOS
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or any(child.process and child.process.pid == ended.si_pid for child in self.children):
                return  # of our own children `subprocess` wants to know first
            os.waitpid(ended.si_pid, os.WNOHANG)

    def _stop_all(self) -> None:
        self.before_stop()
        running = [child for child in self.children if child.process is not None]
        for child in running:
            _signal_leader(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for child in running:
            process = child.process
            if process is None:
                continue
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            _signal_group(child, signal.SIGKILL)  # whoever is left of the group has had its time
            process.wait()


def _may_start(child: Child) -> bool:
    return (child.after is None or child.after.code == 0) and (child.go is None or child.go.is_set())


def _start(child: Child) -> None:
    command = [sys.executable, "-m", "service.cli", *child.arguments, "--parent", str(os.getpid())]
    child.process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
        command,
        stdin=subprocess.DEVNULL,
        pass_fds=child.keep_open,
        process_group=0,
        env={**LEAN, **os.environ},
    )
    child.started_at = time.monotonic()


def _signal_leader(child: Child, number: signal.Signals) -> None:
    if child.process is not None:
        with suppress(ProcessLookupError):
            child.process.send_signal(number)


def _signal_group(child: Child, number: signal.Signals) -> None:
    if child.process is not None:
        with suppress(ProcessLookupError, PermissionError):  # macOS answers "not permitted" for a group of zombies
            os.killpg(child.process.pid, number)


def _cause(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def end_with_parent(parent: int) -> None:
    """Have SIGTERM sent to this process when the process `parent`, which started it, has ended, even by ``kill -9``.

    On Linux the kernel does it; elsewhere a thread looks every half second.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os.kill(os.getpid(), signal.SIGTERM)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True, name="parent").start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
