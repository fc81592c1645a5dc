"""The containers of compose.yaml as processes of this machine, on a PostgreSQL database of their own."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from tests.acceptance.running import PATIENCE, Service, free_port, until
from tests.deployed import processes
from tests.factories import ROOT

ADMIN = "esp_01890000-0000-7000-8000-000000000000_" + "topology" * 6
Process = subprocess.Popen[bytes]


class InTurn(httpx.BaseTransport):
    """Sends each request to the next of several addresses, as a proxy in front would: past one where nobody listens.

    Like nginx by default, it opens a connection a request; what fails after that is the client's to see.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._n_addresses = len(addresses)
        self._addresses = itertools.cycle(map(httpx.URL, addresses))
        self._inner = httpx.HTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for _ in range(self._n_addresses - 1):
            with suppress(httpx.ConnectError):
                return self._send(request)
        return self._send(request)

    def _send(self, request: httpx.Request) -> httpx.Response:
        address = next(self._addresses)
        request.url = request.url.copy_with(host=address.host, port=address.port)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


class ServiceInTurn(Service):
    """A service of several web servers, asked in turn."""

    def __init__(self, addresses: Sequence[str], key: str) -> None:
        self.addresses = tuple(addresses)
        super().__init__(addresses[0], key)

    def client_with(self, key: str | None) -> httpx.Client:
        with super().client_with(key) as plain:
            return httpx.Client(
                base_url=self.address, timeout=60, headers=plain.headers, transport=InTurn(self.addresses)
            )


@dataclass(frozen=True, slots=True)
class Topology:
    """Web servers and workers that run.

    Attributes:
        service: All web servers as one; servers: each by itself.
        webs, workers: Their processes.
        printed: What the migration printed.
        start: Starts a process with the command, environment and output of one that has ended.
    """

    service: ServiceInTurn
    servers: Sequence[Service]
    webs: list[Process]
    workers: list[Process]
    printed: str
    start: Callable[[Process], Process]


@contextmanager
def topology(database_url: str, folder: Path, **changed: str) -> Iterator[Topology]:
    """Start what compose.yaml starts, in its order, until the block ends.

    The database and the addresses are this machine's; variables of this process do not come along, those `changed` do.
    """
    with ExitStack() as started:
        running: dict[str, list[Process]] = {"serve": [], "worker": []}
        ports = [free_port() for _, [command], _ in processes() if command == "serve"]
        left = iter(ports)
        printed = ""
        starts: dict[int, Callable[[], Process]] = {}

        def start(beginning: Callable[[], AbstractContextManager[Process]]) -> Process:
            began = started.enter_context(beginning())
            starts[began.pid] = partial(start, beginning)
            return began

        for name, [command], stated in sorted(
            processes({"ESPALIER_ADMIN_KEY": ADMIN}), key=lambda one: one[0] != "migrate"
        ):
            ours = stated | {"ESPALIER_DATABASE_URL": database_url} | changed
            if command == "serve":
                ours |= {"ESPALIER_HOST": "127.0.0.1", "ESPALIER_PORT": str(next(left))}
            environment = {key: value for key, value in os.environ.items() if not key.startswith("ESPALIER_")}
            environment |= {key: value for key, value in ours.items() if key.startswith("ESPALIER_")}
            if command == "migrate":
                printed += migrated(environment)
            else:
                log = started.enter_context((folder / f"{name}-{len(running[command])}.log").open("w"))
                running[command].append(start(partial(process, command, environment, log.fileno())))
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        servers = [Service(address, ADMIN) for address in addresses]
        service = ServiceInTurn(addresses, ADMIN)
        for one in (*servers, service):
            started.callback(one.client.close)
        for one in servers:
            until(lambda one=one: is_ready(one), what="the start of a web server")
        yield Topology(
            service, servers, running["serve"], running["worker"], printed, lambda ended: starts[ended.pid]()
        )


def migrated(environment: dict[str, str]) -> str:
    """Migrate; give what was printed."""
    words = [sys.executable, "-m", "service.cli", "migrate"]
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@contextmanager
def process(command: str, environment: dict[str, str], output: int) -> Iterator[Process]:
    """Run a command of `espalier` until the block ends; it leads a group, which is ended with it."""
    words = [sys.executable, "-m", "service.cli", command]
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdout=output, stderr=output, process_group=0) as one:
        try:
            yield one
        finally:
            one.terminate()
            one.send_signal(signal.SIGCONT)  # a test may have stopped it
            try:
                one.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(one.pid, signal.SIGKILL)
                raise


def is_ready(service: Service) -> bool:
    try:
        return service.client.get("/readyz").is_success
    except httpx.TransportError:
        return False
