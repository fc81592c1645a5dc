"""The web server and the workers on one database: each a process that can be killed, halted and started again."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from sqlalchemy import select
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from service.database import engine as db
from service.database.engine import Sessions, read_session
from service.errors import Unavailable
from service.settings import Settings
from tests.acceptance.running import children, job_process, until
from tests.chaos.databases import Database
from tests.factories import ROOT

MINUTES = 300.0  # seconds that anything may take: a shared machine has slow moments
SETTINGS = {
    "ESPALIER_LEASE_SECONDS": "3",
    "ESPALIER_WEB_WORKERS": "2",
}
Process = subprocess.Popen[bytes]


@dataclass(slots=True)
class System:
    """What runs on a database.

    Attributes:
        database: The database.
        address: Of the web server. This process holds the port: while the web server starts again, callers wait.
        folder: Where the processes write what they print.
        web: The web server, the parent of its web processes.
        workers: The workers.
    """

    database: Database
    folder: Path
    changed: Mapping[str, str]
    listener: socket.socket
    web: Process = field(init=False)
    workers: list[Process] = field(default_factory=list)
    n_started: int = 0
    sessions: Sessions = field(init=False)

    def __post_init__(self) -> None:
        self.sessions = db.sessions(db.connect(Settings(database_url=self.database.url), pool=NullPool))

    @contextmanager
    def look(self) -> Iterator[Session]:
        """Look at the tables, once the database can be read: a busy machine may keep it from answering for a while."""
        until(self.can_read, seconds=MINUTES, what="a database that can be read")
        with read_session(self.sessions) as session:
            yield session

    def can_read(self) -> bool:
        """Whether the database answers."""
        try:
            with read_session(self.sessions) as session:
                return session.scalar(select(1)) == 1
        except Unavailable:
            return False

    @property
    def address(self) -> str:
        """Where the web server answers."""
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def start_web(self) -> None:
        """Start the web server on the port that is held open for it."""
        self.web = self.start("serve", "--socket", str(self.listener.fileno()), keep=[self.listener.fileno()])

    def start_worker(self, **environment: str) -> Process:
        """Start one more worker."""
        one = self.start("worker", **environment)
        self.workers.append(one)
        return one

    def start(self, *words: str, keep: Sequence[int] = (), **environment: str) -> Process:
        """Start a command of `espalier` that leads a group of its own."""
        self.n_started += 1
        given = {name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")}
        given |= SETTINGS | {"ESPALIER_DATABASE_URL": self.database.url} | self.changed | environment
        with (self.folder / f"{self.n_started:04}-{words[0]}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "service.cli", *words, "--parent", str(os.getpid())],
                cwd=ROOT,
                env=given,
                stdout=log,
                stderr=log,
                pass_fds=keep,
                process_group=0,
            )

    def kill_web(self) -> None:
        """Kill the web server and its web processes, and start it again."""
        kill_group(self.web)
        self.start_web()

    def replace_worker(self, one: Process) -> None:
        """Kill a worker, and start another in its place."""
        kill_group(one)
        self.workers.remove(one)
        self.start_worker()

    def web_processes(self) -> list[int]:
        """The ids of the web processes."""
        return [pid for pid, _ in children(self.web.pid)]

    def busy_child(self, one: Process) -> int | None:
        """The process that works for a worker, or waits to; None where there is none just now."""
        return job_process(one.pid)

    def dead(self) -> list[str]:
        """What has ended by itself: nothing should."""
        named = {"web server": self.web} | {f"worker {one.pid}": one for one in self.workers}
        return [f"the {name} ended with {one.returncode}" for name, one in named.items() if one.poll() is not None]

    def is_ready(self) -> bool:
        """Whether the web server can answer."""
        try:
            return httpx.get(f"{self.address}/readyz", timeout=30).is_success
        except httpx.TransportError:
            return False

    def said(self, text: str) -> int:
        """How often the processes have printed a text."""
        return sum(log.read_text(errors="replace").count(text) for log in self.folder.glob("*.log"))


@contextmanager
def running(database: Database, folder: Path, *, n_workers: int = 2, **changed: str) -> Iterator[System]:
    """Run a web server and workers until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        system = System(database, folder, changed, listener)
        system.start_web()
        for _ in range(n_workers):
            system.start_worker()
        try:
            until(system.is_ready, seconds=MINUTES, what="the start of the web server")
            yield system
        finally:
            for one in (system.web, *system.workers):
                kill_group(one)


def kill_group(one: Process) -> None:
    """Kill a process and all of its group."""
    with suppress(ProcessLookupError):
        os.killpg(one.pid, signal.SIGKILL)
    one.wait()
