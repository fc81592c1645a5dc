"""The memory of all processes of ``espalier up`` together, while tables come in, a tree is grown, and clients ask.

idle ──► three uploads ──► a full-grown training, and 64 connections that ask ──► idle again
  └───────────── each half second: what every process has, what they share counted once ─────┘
"""

import shutil
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from benchmarks import tables
from benchmarks.loads import FAULTS, asking, memory_of
from benchmarks.measuring import print_table
from benchmarks.run import Run
from benchmarks.service import Service, descendants, running, write_csv
from benchmarks.serving import MAX_DEPTH, N_ROWS, databases

N_UPLOADED: Final = 700_000
N_COLUMNS: Final = 4
"""Of numbers: with the label 33 MB of CSV."""
N_UPLOADS: Final = 3
SECONDS: Final = 15
CONNECTIONS: Final = 64
LOOK_SECONDS: Final = 0.5
MOST: Final = 512.0
"""MiB of all processes together, at any moment."""
ROLES: Final[Mapping[bytes, str]] = MappingProxyType(
    {b"\0serve\0": "web", b"\0worker\0": "worker", b"forkserver": "job", b"service.usecases.upload_sandbox": "reader"}
)
"""What stands in the command line of a process, and what it is counted as; jobs with their template."""
REST: Final = "rest"
COLUMNS: Final = ("web", "worker", "job", "reader", REST)


@dataclass(slots=True)
class Watch:
    """What all processes had together, MiB by what they are counted as, at the worst moment of each step."""

    steps: dict[str, Mapping[str, float]] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, process: int) -> Iterator[None]:
        """Look at the process and its descendants again and again until the step is over."""
        over = threading.Event()
        looking = threading.Thread(target=self._look, args=(name, process, over))
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()

    def _look(self, name: str, process: int, over: threading.Event) -> None:
        while True:
            found: dict[str, float] = defaultdict(float)
            for one in [process, *descendants(process)]:
                found[_role(one)] += memory_of([one])
            if sum(found.values()) > sum(self.steps.get(name, {}).values()):
                self.steps[name] = found
            if over.wait(LOOK_SECONDS):
                return


def run(run: Run) -> None:
    """Print the table, for SQLite and, if one is named, for PostgreSQL (whose own processes are not counted)."""
    few, many = run.folder / "few.csv", run.folder / "many.csv"
    rows = tables.two_classes(run.rows(N_ROWS))
    write_csv(rows, few)
    write_csv(tables.two_classes(run.rows(N_UPLOADED), N_COLUMNS), many)
    body = {"rows": [{f"x{place}": float(cell) for place, cell in enumerate(rows.features[0])}]}
    for name, url in databases(run.folder, "footprint").items():
        if run.takes(name):
            with running(run.folder, {"ESPALIER_DATABASE_URL": url}) as service:
                _show(name, *_watched(service, run.folder, few.read_bytes(), many.read_bytes(), body))


def _watched(service: Service, folder: Path, few: bytes, many: bytes, body: object) -> tuple[Watch, str]:
    watch = Watch()
    time.sleep(5 * LOOK_SECONDS)  # until the worker has loaded what a job needs
    with watch.step("at rest", service.process):
        pass
    service.train("tree", service.upload(few), MAX_DEPTH)
    with watch.step(f"{N_UPLOADS} uploads of {len(many) / 1e6:.0f} MB", service.process):
        data_sets = [service.upload(many) for _ in range(N_UPLOADS)]
    time.sleep(LOOK_SECONDS)
    with watch.step("after these", service.process):
        pass
    with watch.step(f"a training, {CONNECTIONS} connections", service.process):
        training = threading.Thread(target=_train, args=(service, data_sets[0]))
        training.start()
        faults = _load(service, folder, body)
        training.join()
    time.sleep(2 * LOOK_SECONDS)
    with watch.step("after that", service.process):
        pass
    return watch, faults


def _train(service: Service, data_set: str) -> None:
    service.train("grown", data_set, None)
    service.ask("grown", N_COLUMNS)


def _load(service: Service, folder: Path, body: object) -> str:
    if shutil.which("wrk") is None:
        return "no load, since there is no wrk here"
    address = f"{service.address}/v1/models/tree/predict"
    words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(asking(folder, body)), address]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own words
    return ", ".join(filter(None, (one for found in FAULTS.findall(said) for one in found))) or "0"


def _role(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return REST
    return next((role for part, role in ROLES.items() if part in words), REST)


def _show(name: str, watch: Watch, faults: str) -> None:
    lines = []
    for step, found in watch.steps.items():
        lines.append([step, *(f"{found.get(role, 0.0):.0f}" for role in COLUMNS), f"{sum(found.values()):.0f}"])
    most = max(sum(found.values()) for found in watch.steps.values())
    verdict = f"at most {most:.0f} MiB, target < {MOST:.0f}: {'holds' if most < MOST else 'missed'}; errors: {faults}"
    print_table(f"{name}: MiB of all processes (PSS)", ("at the worst moment", *COLUMNS, "all"), lines, verdict)
