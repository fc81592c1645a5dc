"""Other servers of a tree over HTTP. Flask runs in the environment of the benchmarks, the others in separate ones."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from benchmarks.loads import PATIENCE, Load, loads, memory_of, post
from benchmarks.service import descendants, free_port

ROOT: Final = Path(__file__).resolve().parent.parent
SCIKIT_LEARN: Final = "scikit-learn==1.9.1"
CONNECTIONS: Final = (1, 16, 64)
BARE: Final = "Flask, a constant answer"
FLASK_PATH: Final = "Flask + scikit-learn, path"
FASTAPI: Final = "FastAPI + scikit-learn, label"
FASTAPI_MANY: Final = "FastAPI + scikit-learn, 1 000 rows"
MLSERVER: Final = "MLServer + scikit-learn, label"
BENTOML: Final = "BentoML + scikit-learn, label"

Rows = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another server of a tree.

    Attributes:
        requirements: Packages of its environment; a peer without packages runs in the environment of the benchmarks.
        command: Takes a folder and a port; returns a program of the environment's ``bin`` and the program's arguments.
        path: URL path of a prediction.
        body: Takes rows of numbers and returns the body of a request.
        kind: Passed to the application as ``PEER_KIND``.
        n_rows: Rows per request.
    """

    requirements: tuple[str, ...]
    command: Callable[[Path, int], Sequence[str]]
    path: str
    body: Callable[[Rows], Any]
    kind: str = ""
    n_rows: int = 1


@dataclass(frozen=True, slots=True)
class PredictionResults:
    """Results of a server.

    Attributes:
        loads: Results of `wrk` by number of connections.
        start: Seconds from the start of the server until it can answer.
        memory: MiB of the server's processes (PSS) after the loads; for Espalier, only of its web server.
    """

    loads: Mapping[int, Load]
    start: float
    memory: float


def _flask(_: Path, port: int) -> Sequence[str]:
    return (
        "gunicorn", "-k", "gthread", "-w", "2", "--threads", "16", "--preload", "-b", f"127.0.0.1:{port}",
        "benchmarks.serving_peers.flask_app:app",
    )  # fmt: skip


def _fastapi(_: Path, port: int) -> Sequence[str]:
    return (
        "uvicorn", "--workers", "2", "--port", str(port), "--no-access-log", "benchmarks.serving_peers.fastapi_app:app"
    )  # fmt: skip


def _bentoml(_: Path, port: int) -> Sequence[str]:
    return "bentoml", "serve", "benchmarks.serving_peers.bento_app:Tree", "--host", "127.0.0.1", "--port", str(port)


def _mlserver(folder: Path, port: int) -> Sequence[str]:
    settings = {"http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "host": "127.0.0.1"}
    model = {
        "name": "tree",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": str(folder / "tree.joblib")},
    }
    (folder / "settings.json").write_text(json.dumps(settings | {"parallel_workers": 0, "debug": False}))
    (folder / "model-settings.json").write_text(json.dumps(model))
    return "mlserver", "start", str(folder)


def _listed_rows(rows: Rows) -> Any:
    return {"rows": [list(row) for row in rows]}


def named_rows(rows: Rows) -> Any:
    """Return the body that has each row as an object of names and numbers."""
    return {"rows": [{f"x{place}": cell for place, cell in enumerate(row)} for row in rows]}


def tensor(rows: Rows) -> Any:
    """Return the body of the Open Inference Protocol: all rows as one matrix."""
    cells = [cell for row in rows for cell in row]
    return {"inputs": [{"name": "rows", "shape": [len(rows), len(rows[0])], "datatype": "FP32", "data": cells}]}


_OF_FASTAPI: Final = ("fastapi==0.165.0", "uvicorn[standard]==0.54.0", SCIKIT_LEARN)
_OF_MLSERVER: Final = ("mlserver==1.7.1", "mlserver-sklearn==1.7.1")

PEERS: Final[Mapping[str, Peer]] = MappingProxyType(
    {
        BARE: Peer((), _flask, "/bare", _listed_rows, "bare"),
        "Flask + scikit-learn, label": Peer((), _flask, "/label", _listed_rows, "tree"),
        FLASK_PATH: Peer((), _flask, "/path", _listed_rows, "tree"),
        FASTAPI: Peer(_OF_FASTAPI, _fastapi, "/label", _listed_rows),
        FASTAPI_MANY: Peer(_OF_FASTAPI, _fastapi, "/leaves", named_rows, n_rows=1_000),
        MLSERVER: Peer(_OF_MLSERVER, _mlserver, "/v2/models/tree/infer", tensor),
        BENTOML: Peer(("bentoml==1.4.39", SCIKIT_LEARN), _bentoml, "/label", _listed_rows),
    }
)
"""The versions are fixed. Each environment is created once, in ``.venv-bench-*``."""


def measured(folder: Path, peer: Peer, rows: Rows, seconds: int) -> PredictionResults:
    """Start a peer, measure its loads, and stop it.

    Raises:
        TimeoutError: The peer does not answer.
        OSError: The peer cannot be started.
        subprocess.CalledProcessError: Its environment cannot be created, or `wrk` failed.
    """
    port = free_port()
    programs = _environment(peer)
    command = peer.command(folder, port)
    environment = {
        "PEER_MODEL": str(folder / "tree.joblib"),
        "PEER_ANSWER": str(folder / "answer.json"),
        "PEER_KIND": peer.kind,
        "PYTHONPATH": str(ROOT),
    }
    address, body = f"http://127.0.0.1:{port}{peer.path}", peer.body(rows[: peer.n_rows])
    begun = time.perf_counter()
    with _process([str(programs / command[0]), *command[1:]], environment, folder / "peer.txt") as process:
        _wait(process, address, body, folder / "peer.txt")
        start = time.perf_counter() - begun
        results = loads(folder, address, body, seconds, CONNECTIONS)
        return PredictionResults(results, start, memory_of([process.pid, *descendants(process.pid)]))


def _environment(peer: Peer) -> Path:
    """Return the folder of a peer's programs. Creates its environment if it does not exist."""
    if not peer.requirements:
        return Path(sys.executable).parent
    name = re.split(r"[=-]", peer.requirements[0])[0]
    environment = ROOT / f".venv-bench-{name}"
    if not (environment / ".made").exists():
        print(f"Making {environment.name} (once) ...", flush=True)
        python = environment / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)  # noqa: S603 - our own command
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *peer.requirements], check=True)  # noqa: S603
        (environment / ".made").touch()
    return environment / "bin"


@contextmanager
def _process(
    command: Sequence[str], environment: Mapping[str, str], printed: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with printed.open("w") as output:
        process = subprocess.Popen(  # noqa: S603 - as above
            command, env=os.environ | environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(process: subprocess.Popen[bytes], address: str, body: Any, printed: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            post(address, body)
        except OSError:  # it does not listen yet, or does not know this path yet
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"it did not answer: {printed.read_text()[-300:]}") from None
            time.sleep(0.05)
        else:
            return
