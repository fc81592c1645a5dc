"""Single predictions over HTTP: Espalier beside Flask, FastAPI, MLServer and BentoML, one server at a time.

Every server gets the same processors as the load, which `wrk` makes: whoever needs less of them answers more.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from benchmarks import tables
from benchmarks.measuring import print_table
from benchmarks.run import Run
from benchmarks.service import Service, descendants, free_port, running, write_csv

N_ROWS: Final = 20_000
MAX_DEPTH: Final = 8
CONNECTIONS: Final = (1, 16, 64)
SECONDS: Final = 5
WARM_UP_SECONDS: Final = 2
PATIENCE: Final = 120.0
ROOT: Final = Path(__file__).resolve().parent.parent
SCIKIT_LEARN: Final = "scikit-learn==1.9.1"
BARE: Final = "Flask, a constant answer"
DURABLE: Final = "Espalier, durable"
POSTGRES: Final = f"{DURABLE}, PostgreSQL"
OFF: Final = "Espalier, log off"
OURS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {DURABLE: {}, POSTGRES: {}, OFF: {"ESPALIER_DECISIONS": "off"}}
)
"""Our lines of the table, and their settings besides the database's."""
TARGETS: Final = (
    (OFF, BARE, 0.9),
    (OFF, "FastAPI + scikit-learn, label", 1.0),
    (DURABLE, BARE, 0.6),
    (POSTGRES, BARE, 0.5),
    (DURABLE, "Flask + scikit-learn, path", 1.3),
    (DURABLE, "MLServer + scikit-learn, label", 3.0),
    (DURABLE, "BentoML + scikit-learn, label", 3.0),
)
"""How many times as many answers a second as the peer's: `docs/benchmarks.md`."""
JUDGED: Final = (16, 64)
"""Connections at which the targets hold; with one alone the disk decides."""
MOST_P99: Final = 4.0
"""Of the durable answers at 16 connections, how many times the median 99 of 100 may take."""
MOST_SECONDS: Final = 1.5
MOST_PROCESS: Final = 90.0
MOST_MEMORY: Final = 180.0
FEW_ANSWERS: Final = 1_000
"""After which the memory is looked at."""
RESULT: Final = re.compile(r"Requests/sec:\s+([\d.]+)")
LATENCY: Final = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)\s*$", re.MULTILINE)
FAULTS: Final = re.compile(r"(?:Non-2xx or 3xx responses: (\d+))|(?:Socket errors: (.*))")
UNITS: Final[Mapping[str, float]] = MappingProxyType({"us": 1e-3, "ms": 1.0, "s": 1e3})


@dataclass(frozen=True, slots=True)
class Peer:
    """Another way to serve a tree.

    Attributes:
        requirements: What its environment holds; none: it runs in the benchmarks' own.
        command: From a folder and a port, the words after the environment's ``bin``.
        path: Where it is asked.
        body: From a row of numbers, what it is sent.
        kind: Given to the application as ``PEER_KIND``.
    """

    requirements: tuple[str, ...]
    command: Callable[[Path, int], Sequence[str]]
    path: str
    body: Callable[[Sequence[float]], Any]
    kind: str = ""


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


def _rows(row: Sequence[float]) -> Any:
    return {"rows": [list(row)]}


def _tensor(row: Sequence[float]) -> Any:
    return {"inputs": [{"name": "rows", "shape": [1, len(row)], "datatype": "FP32", "data": list(row)}]}


PEERS: Final[Mapping[str, Peer]] = MappingProxyType(
    {
        BARE: Peer((), _flask, "/bare", _rows, "bare"),
        "Flask + scikit-learn, label": Peer((), _flask, "/label", _rows, "tree"),
        "Flask + scikit-learn, path": Peer((), _flask, "/path", _rows, "tree"),
        "FastAPI + scikit-learn, label": Peer(
            ("fastapi==0.165.0", "uvicorn[standard]==0.54.0", SCIKIT_LEARN), _fastapi, "/label", _rows
        ),
        "MLServer + scikit-learn, label": Peer(
            ("mlserver==1.7.1", "mlserver-sklearn==1.7.1"), _mlserver, "/v2/models/tree/infer", _tensor
        ),
        "BentoML + scikit-learn, label": Peer(("bentoml==1.4.39", SCIKIT_LEARN), _bentoml, "/label", _rows),
    }
)
"""Versions are those that were asked for when this was written; each environment is made once, in ``.venv-bench-*``."""


@dataclass(frozen=True, slots=True)
class Load:
    """What `wrk` saw: answers a second, milliseconds until half and until 99 of 100 had theirs, what went wrong."""

    rate: float
    p50: float
    p99: float
    faults: str


@dataclass(frozen=True, slots=True)
class Served:
    """What one server did: its loads by number of connections, seconds to its first answer, MiB (PSS) afterwards.

    Of ours also what the largest process had resident, and what all had together (PSS), after a thousand answers.
    """

    loads: Mapping[int, Load]
    start: float
    memory: float
    largest: float | None = None
    early: float | None = None


def run(run: Run) -> None:
    """Print the table."""
    if shutil.which("wrk") is None:
        print("\nServing: not measured, since there is no wrk here; on Debian and Ubuntu: apt-get install wrk")
        return
    seconds = max(1, round(SECONDS * min(1.0, run.share * 4)))
    found: dict[str, Served] = {}
    faults: list[str] = []
    row, size = _espalier(run, seconds, found)
    for name, peer in PEERS.items():
        if not run.takes(name):
            continue
        try:
            found[name] = _peer(run.folder, peer, row, seconds)
        except (OSError, subprocess.CalledProcessError, TimeoutError) as error:
            faults.append(f"{name}: {error}")
    _show(found, size, faults)
    _judge(found)


def _espalier(run: Run, seconds: int, found: dict[str, Served]) -> tuple[list[float], int]:
    """Measure our lines; give a row and the length of its answer, which is written for the peers, as is their tree."""
    path = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    rows = tables.read(path)[0]
    _write_scikit_learn(rows, run.folder / "tree.joblib")
    row = [float(cell) for cell in rows.features[0]]
    body = {"rows": [{f"x{place}": cell for place, cell in enumerate(row)}]}
    file = run.folder / "serving.csv"
    write_csv(rows, file)
    urls = databases(run.folder, "serving")
    for url in urls.values():
        with running(run.folder, {"ESPALIER_DATABASE_URL": url}) as service:
            service.train("tree", service.upload(file.read_bytes()), MAX_DEPTH)
            answer = _post(service.address + "/v1/models/tree/predict", body)
            (run.folder / "answer.json").write_bytes(answer)
    for name, settings in OURS.items():
        database = POSTGRES if name == POSTGRES else DURABLE
        if database in urls and run.takes(name):
            found[name] = _ours(run.folder, {"ESPALIER_DATABASE_URL": urls[database], **settings}, body, seconds)
    return row, len(answer)


def _ours(folder: Path, settings: Mapping[str, str], body: Any, seconds: int) -> Served:
    """Measure a service of our own, started anew: who has taken an upload keeps what reads it in memory."""
    begun = time.perf_counter()
    with running(folder, settings) as service:
        start = time.perf_counter() - begun
        asked = service.address + "/v1/models/tree/predict"
        for _ in range(FEW_ANSWERS):
            _post(asked, body)
        master, *workers = _web(service)
        largest, early = max(map(resident_of, workers)), memory_of([master, *workers])
        return Served(_loads(folder, asked, body, seconds), start, memory_of(_web(service)), largest, early)


def _web(service: Service) -> list[int]:
    """Give the processes of the web server: those that `serve` runs in."""
    return [one for one in descendants(service.process) if b"\0serve\0" in Path(f"/proc/{one}/cmdline").read_bytes()]


def databases(folder: Path, name: str) -> Mapping[str, str]:
    """Give where answers are logged, by what the line of a table is called: SQLite, and PostgreSQL if one is named."""
    found = {DURABLE: f"sqlite:///{folder}/{name}.db"}
    server = os.environ.get("ESPALIER_BENCH_POSTGRES_URL")
    return found if server is None else {**found, POSTGRES: server}


def _peer(folder: Path, peer: Peer, row: Sequence[float], seconds: int) -> Served:
    port = free_port()
    programs = _environment(peer)
    words = peer.command(folder, port)
    given = {
        "PEER_MODEL": str(folder / "tree.joblib"),
        "PEER_ANSWER": str(folder / "answer.json"),
        "PEER_KIND": peer.kind,
        "PYTHONPATH": str(ROOT),
    }
    address, body = f"http://127.0.0.1:{port}{peer.path}", peer.body(row)
    begun = time.perf_counter()
    with _process([str(programs / words[0]), *words[1:]], given, folder / "peer.txt") as process:
        _wait(process, address, body, folder / "peer.txt")
        start = time.perf_counter() - begun
        loads = _loads(folder, address, body, seconds)
        return Served(loads, start, memory_of([process.pid, *descendants(process.pid)]))


def _environment(peer: Peer) -> Path:
    """Give the folder of a peer's programs; its environment is made if it is not there."""
    if not peer.requirements:
        return Path(sys.executable).parent
    name = re.split(r"[=-]", peer.requirements[0])[0]
    place = ROOT / f".venv-bench-{name}"
    if not (place / ".made").exists():
        print(f"Making {place.name} (once) ...", flush=True)
        python = place / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)  # noqa: S603 - our own words
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *peer.requirements], check=True)  # noqa: S603
        (place / ".made").touch()
    return place / "bin"


@contextmanager
def _process(words: Sequence[str], given: Mapping[str, str], printed: Path) -> Iterator[subprocess.Popen[bytes]]:
    with printed.open("w") as output:
        process = subprocess.Popen(  # noqa: S603 - as above
            words, env=os.environ | given, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
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
            _post(address, body)
        except OSError:  # it does not listen yet, or not in this path
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"it did not answer: {printed.read_text()[-300:]}") from None
            time.sleep(0.05)
        else:
            return


def _post(address: str, body: Any) -> bytes:
    asked = urllib.request.Request(  # noqa: S310 - our own address
        address, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE) as response:  # noqa: S310 - as above
        content: bytes = response.read()
    return content


def _loads(folder: Path, address: str, body: Any, seconds: int) -> dict[int, Load]:
    script = asking(folder, body)
    _load(script, address, max(CONNECTIONS), WARM_UP_SECONDS)
    return {n: _load(script, address, n, seconds) for n in CONNECTIONS}


def asking(folder: Path, body: Any) -> Path:
    """Write down for `wrk` what is to be asked, and give the file."""
    script = folder / "ask.lua"
    lines = (
        "wrk.method = 'POST'",
        f"wrk.body = [==[{json.dumps(body)}]==]",
        "wrk.headers['Content-Type'] = 'application/json'",
    )
    script.write_text("\n".join(lines))
    return script


def _load(script: Path, address: str, connections: int, seconds: int) -> Load:
    words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), address]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout  # noqa: S603 - as above
    rate = RESULT.search(said)
    parts = {share: float(number) * UNITS[unit] for share, number, unit in LATENCY.findall(said)}
    faults = ", ".join(filter(None, (one for found in FAULTS.findall(said) for one in found)))
    return Load(float(rate[1]) if rate else 0.0, parts.get("50", 0.0), parts.get("99", 0.0), faults)


def memory_of(processes: Sequence[int]) -> float:
    """Give the memory of processes in MiB: what they share is counted once (PSS); those that have ended have none."""
    found = 0
    for process in processes:
        with suppress(OSError):
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            found += int(rollup.partition("\nPss:")[2].split()[0])
    return found / 1024


def resident_of(process: int) -> float:
    """Give the memory of a process in MiB, with all that it shares."""
    return int(Path(f"/proc/{process}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def _write_scikit_learn(rows: tables.Rows, file: Path) -> None:
    import joblib  # noqa: PLC0415 - this table alone needs it
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - as above

    joblib.dump(DecisionTreeClassifier(max_depth=MAX_DEPTH, random_state=0).fit(rows.features, rows.target), file)


def _show(found: Mapping[str, Served], size: int, faults: Sequence[str]) -> None:
    lines = []
    for name, served in found.items():
        for n, load in served.loads.items():
            of_bare = _ratio(found, name, BARE, n)
            is_first = n == CONNECTIONS[0]
            lines.append(
                [
                    name if is_first else "",
                    str(n),
                    f"{load.rate:,.0f}",
                    f"{load.p50:.2f}",
                    f"{load.p99:.2f}",
                    load.faults or "0",
                    "" if of_bare is None else f"{of_bare:.2f}",
                    f"{served.start:.1f} s" if is_first else "",
                    f"{served.memory:.0f}" if is_first else "",
                ]
            )
    names = ("server", "connections", "answers/s", "p50 ms", "p99 ms", "errors", "x constant", "start", "MiB")
    print_table(f"Single predictions over HTTP, two processes, an answer of {size} bytes", names, lines, *faults)


def _judge(found: Mapping[str, Served]) -> None:
    """Print what was promised, and whether it holds."""
    lines = []
    for ours, peer, least in TARGETS:
        for n in JUDGED:
            ratio = _ratio(found, ours, peer, n)
            if ratio is not None:
                what = f"{ours}, by {peer}, {n} connections"
                lines.append([what, f"{ratio:.2f}", f">= {least:g}", "holds" if ratio >= least else "missed"])
    for name in OURS.keys() & found.keys():
        served = found[name]
        load = served.loads[JUDGED[0]]
        for what, value, most, form in (
            (f"p99 by p50, {JUDGED[0]} connections", load.p99 / load.p50 if load.p50 else None, MOST_P99, "{:.1f}"),
            ("start until ready, with its worker", served.start, MOST_SECONDS, "{:.2f} s"),
            (f"resident, the largest web process, {FEW_ANSWERS:,} answers", served.largest, MOST_PROCESS, "{:.0f} MiB"),
            (f"all web processes (PSS), {FEW_ANSWERS:,} answers", served.early, MOST_MEMORY, "{:.0f} MiB"),
        ):
            if value is not None:
                holds = "holds" if value <= most else "missed"
                lines.append([f"{name}: {what}", form.format(value), "<= " + form.format(most), holds])
    print_table("Targets of serving", ("what", "found", "target", ""), lines)


def _ratio(found: Mapping[str, Served], ours: str, peer: str, connections: int) -> float | None:
    """Give how many times as many answers a second; None where one of them was not measured."""
    if ours not in found or peer not in found or not (rate := found[peer].loads[connections].rate):
        return None
    return found[ours].loads[connections].rate / rate
