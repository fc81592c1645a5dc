"""The memory of all processes of ``espalier up`` together, during uploads, a training and requests.

idle ──► three uploads ──► a full-grown training, and 64 connections ──► idle again
  └───────────── each half second: memory of every process, shared pages counted once ─────┘
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
from benchmarks.loads import FAULTS, memory_of, write_script
from benchmarks.measuring import print_table
from benchmarks.run import Run
from benchmarks.service import Service, descendants, running, write_csv
from benchmarks.serving import MAX_DEPTH, N_ROWS, databases

N_UPLOADED: Final = 700_000
N_COLUMNS: Final = 4
"""Columns of numbers; with the label, an upload has 33 MB of CSV."""
N_UPLOADS: Final = 3
SECONDS: Final = 15
CONNECTIONS: Final = 64
SAMPLE_SECONDS: Final = 0.5
MAX_MEMORY: Final = 512.0
"""Limit in MiB of the memory of all processes together, at any moment."""
ROLES: Final[Mapping[bytes, str]] = MappingProxyType(
    {b"\0serve\0": "web", b"\0worker\0": "worker", b"forkserver": "job", b"service.usecases.upload_sandbox": "reader"}
)
"""Maps a part of a process's command line to the role under which it counts; jobs include their fork server."""
REST: Final = "rest"
COLUMNS: Final = ("web", "worker", "job", "reader", REST)


@dataclass(slots=True)
class Watch:
    """For each step, MiB by role at the moment when the sum over all processes is largest."""

    steps: dict[str, Mapping[str, float]] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, process: int) -> Iterator[None]:
        """Sample the memory of the process and its descendants until the step is over."""
        is_over = threading.Event()
        sampling = threading.Thread(target=self._sample, args=(name, process, is_over))
        sampling.start()
        try:
            yield
        finally:
            is_over.set()
            sampling.join()

    def _sample(self, name: str, process: int, is_over: threading.Event) -> None:
        while True:
            memory: dict[str, float] = defaultdict(float)
            for each in [process, *descendants(process)]:
                memory[_role(each)] += memory_of([each])
            if sum(memory.values()) > sum(self.steps.get(name, {}).values()):
                self.steps[name] = memory
            if is_over.wait(SAMPLE_SECONDS):
                return


def run(run: Run) -> None:
    """Print the table for SQLite, and for PostgreSQL if ``ESPALIER_BENCH_POSTGRES_URL`` names a database.

    The processes of PostgreSQL itself are not counted.
    """
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
    time.sleep(5 * SAMPLE_SECONDS)  # until the worker has loaded what a job needs
    with watch.step("at rest", service.process):
        pass
    service.train("tree", service.upload(few), MAX_DEPTH)
    with watch.step(f"{N_UPLOADS} uploads of {len(many) / 1e6:.0f} MB", service.process):
        data_sets = [service.upload(many) for _ in range(N_UPLOADS)]
    time.sleep(SAMPLE_SECONDS)
    with watch.step("after these", service.process):
        pass
    with watch.step(f"a training, {CONNECTIONS} connections", service.process):
        training = threading.Thread(target=_train, args=(service, data_sets[0]))
        training.start()
        faults = _load(service, folder, body)
        training.join()
    time.sleep(2 * SAMPLE_SECONDS)
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
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(write_script(folder, body)), address]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own command
    return ", ".join(filter(None, (fault for match in FAULTS.findall(output) for fault in match))) or "0"


def _role(process: int) -> str:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # the process has ended
        return REST
    return next((role for part, role in ROLES.items() if part in command), REST)


def _show(name: str, watch: Watch, faults: str) -> None:
    lines = []
    for step, memory in watch.steps.items():
        lines.append([step, *(f"{memory.get(role, 0.0):.0f}" for role in COLUMNS), f"{sum(memory.values()):.0f}"])
    most = max(sum(memory.values()) for memory in watch.steps.values())
    holds = "holds" if most < MAX_MEMORY else "missed"
    verdict = f"at most {most:.0f} MiB, target < {MAX_MEMORY:.0f}: {holds}; errors: {faults}"
    print_table(f"{name}: MiB of all processes (PSS)", ("at the worst moment", *COLUMNS, "all"), lines, verdict)
