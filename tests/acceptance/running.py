"""The whole service as its users run it: real processes, a real file, a real port."""

import functools
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import httpx

from service.database.migrate import migrate
from service.settings import Settings
from tests.factories import ROOT

Found = TypeVar("Found")
PATIENCE = 120.0  # seconds; a shared machine has slow moments
SILENT_SECONDS = 5.0  # after which the service cuts off a client that says no more
FINAL = {"succeeded", "failed", "cancelled", "dead"}


@dataclass
class Service:
    """A service that runs somewhere: its address, a key where it wants one, and a client."""

    address: str
    key: str | None = None
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.client_with(self.key)

    def client_with(self, key: str | None) -> httpx.Client:
        """Give a client with another key, or with none."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.address, timeout=60, headers=headers)

    def get(self, path: str, **query: Any) -> Any:
        """Fetch JSON that must be there."""
        response = self.client.get(path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, body: object, *, status: int) -> Any:
        """Send JSON and see that the answer has this status."""
        response = self.client.post(path, json=body)
        assert response.status_code == status, response.text
        return response.json()

    def upload(self, csv: bytes | str, **query: Any) -> str:
        """Upload CSV; give the data set's id."""
        response = self.client.post("/v1/datasets", params=query, content=csv, headers={"Content-Type": "text/csv"})
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def finished(self, job: Mapping[str, Any], *, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait for the end of a job, by the API's own waiting."""
        deadline = time.monotonic() + seconds
        found: dict[str, Any] = dict(job)
        while found["state"] not in FINAL:
            assert time.monotonic() < deadline, found
            found = self.get(f"/v1/jobs/{job['id']}", wait=5)
        return found

    def train(self, model: str, dataset: str, **more: Any) -> dict[str, Any]:
        """Train and see that it succeeds; give the finished job."""
        job = self.post("/v1/training-jobs", {"model": model, "dataset": dataset, **more}, status=202)
        finished = self.finished(job)
        assert finished["state"] == "succeeded", finished
        return finished


@dataclass(kw_only=True)
class Running(Service):
    """One ``espalier up``: its process and what it prints, too."""

    process: subprocess.Popen[str]
    printed: Path

    def children(self, command: str) -> list[int]:
        """Give the ids of the processes that ``espalier up`` started with this command."""
        return [process for process, args in children(self.process.pid) if f"service.cli {command}" in args]

    def output(self) -> str:
        """What it has printed so far, errors too."""
        return self.printed.read_text()


@contextmanager
def running(
    folder: Path, *options: str, port: int | None = None, has_tables: bool = True, **environment: str
) -> Iterator[Running]:
    """Run ``espalier up`` on a database in `folder` until the block ends.

    The SQLite file has its tables already, which saves the process that migrates; it has none if `has_tables` is false.
    """
    port = port or free_port()
    if has_tables and not (file := folder / "espalier.db").exists() and "ESPALIER_DATABASE_URL" not in environment:
        file.write_bytes(_migrated_file())
    printed = folder / f"printed-{len(list(folder.glob('printed-*')))}.txt"
    with printed.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "service.cli", "up", "--port", str(port), *options],
            cwd=ROOT,
            env=environment_for(folder) | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
    one = Running(f"http://127.0.0.1:{port}", process=process, printed=printed)
    try:
        until(lambda: "Espalier runs at" in one.output() or process.poll() is not None, what="the start")
        assert process.poll() is None, one.output()
        yield one
    finally:
        one.client.close()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def environment_for(folder: Path) -> dict[str, str]:
    """Give the environment of a service on a database of its own; a short lease, so that a lost job is soon found."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")}
    return ours | {"ESPALIER_DATABASE_URL": f"sqlite:///{folder}/espalier.db", "ESPALIER_LEASE_SECONDS": "2"}


@functools.cache
def _migrated_file() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "espalier.db"
        migrate(Settings(database_url=f"sqlite:///{file}"))
        return file.read_bytes()


def run_command(arguments: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    command = [sys.executable, "-m", "service.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False, **more)


def free_port() -> int:
    """Give a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(address: str) -> bool:
    """Return whether a GET of the address succeeds."""
    try:
        return httpx.get(address).is_success
    except httpx.TransportError:
        return False


def until(look: Callable[[], Found], *, seconds: float = PATIENCE, what: str = "the condition") -> Found:
    """Look again and again until the look gives something true; give it."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
        time.sleep(0.02)
    return found


@contextmanager
def held(worker: int) -> Iterator[None]:
    """Hold a worker's next job at its beginning until the block ends: however fast the machine, it runs meanwhile."""
    process = until(lambda: _stopped(worker), what="a process that waits for a job")
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def _stopped(worker: int) -> int | None:
    """Stop the process that waits for a worker's next job; None where there is none, or a last one that is ending."""
    process = job_process(worker)
    if process is None:
        return None
    with suppress(OSError):
        os.kill(process, signal.SIGSTOP)
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return process
    return None


def job_process(worker: int) -> int | None:
    """Give the process that works for a worker, or waits to; None where there is none just now."""
    templates = [process for process, command in children(worker) if "forkserver" in command]
    found = [process for template in templates for process, _ in children(template)]
    return found[-1] if found else None


def children(parent: int) -> list[tuple[int, str]]:
    """Give (process, command line) of each child that runs."""
    found = []
    with suppress(OSError):
        for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with suppress(OSError):
                found.append((int(word), Path(f"/proc/{word}/cmdline").read_text().replace("\0", " ")))
    return found


@contextmanager
def begun_upload(service: Service, csv: str) -> Iterator[Callable[[], str]]:
    """Begin to upload CSV, and see that it is being read; the rest is sent, and the answer given, by the function.

    The answer is empty where this machine was so slow that the service need not have waited: that shows nothing, and
    is to be tried again.
    """
    url, body = service.client.base_url, csv.encode()
    head = f"POST /v1/datasets HTTP/1.1\r\nHost: {url.host}\r\nContent-Type: text/csv\r\n"
    head += f"Content-Length: {len(body)}\r\n"
    if service.key is not None:
        head += f"Authorization: Bearer {service.key}\r\n"
    with socket.create_connection((url.host, url.port), timeout=PATIENCE) as connection:
        began = time.monotonic()
        connection.sendall(head.encode() + b"\r\n" + body[:10])
        until(lambda: unread(connection) == 0, what="somebody who reads")

        def finish() -> str:
            answer = b""
            with suppress(ConnectionError):
                connection.sendall(body[10:])
                while part := connection.recv(65536):
                    answer += part
            was_in_time = time.monotonic() - began < SILENT_SECONDS
            return answer.decode() if was_in_time or answer.startswith(b"HTTP/1.1 2") else ""

        yield finish


def unread(connection: socket.socket) -> int:
    """Give how many bytes were sent on a connection of this machine that its other end has not read."""
    row = _other_end(connection)
    return 1 if row is None else int(row[4].partition(":")[2], 16)  # none: it is not accepted yet


def is_ended_there(connection: socket.socket) -> bool:
    """Whether the other end of a connection of this machine has closed it; what it sent before may wait still."""
    row = _other_end(connection)
    return row is None or row[3] != "01"  # ESTABLISHED


def _other_end(connection: socket.socket) -> list[str] | None:
    here, there = (f"{name[1]:04X}" for name in (connection.getsockname(), connection.getpeername()))
    rows = map(str.split, Path("/proc/net/tcp").read_text().splitlines()[1:])
    return next((row for row in rows if row[1].endswith(f":{there}") and row[2].endswith(f":{here}")), None)


def is_cut_off(connection: socket.socket) -> bool:
    """Whether the other end has closed a connection; what may have come on it stays unread."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(0))


def listens(service: Service) -> bool:
    """Whether a connection to the service is taken."""
    url = service.client.base_url
    try:
        socket.create_connection((url.host, url.port), timeout=1).close()
    except OSError:
        return False
    return True


def is_alive(process: int) -> bool:
    """Whether a process of this id runs (one that only waits to be reaped does not)."""
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout
    return bool(shown.strip()) and not shown.strip().startswith("Z")
