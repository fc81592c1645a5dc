"""Ten minutes of single predictions at 64 connections: does the memory stay flat, and is every decision in the log?

wrk ──► POST …/predict ──► decision ids, a line each ──┐
                                                       ├─ the same set
GET /v1/decisions, page after page ────────────────────┘
"""

import json
import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks import tables
from benchmarks.loads import FAULTS, memory_of
from benchmarks.measuring import print_table
from benchmarks.run import Run
from benchmarks.service import Service, descendants, running, write_csv
from benchmarks.serving import MAX_DEPTH, N_ROWS, databases

SECONDS: Final = 600
CONNECTIONS: Final = 64
POINTS: Final = 10
PAGE: Final = 200
MOST_GROWN: Final = 1.1
"""Largest memory at the end, as a multiple of the memory after the first tenth."""
SCRIPT: Final = """
wrk.method = 'POST'
wrk.body = [==[%s]==]
wrk.headers['Content-Type'] = 'application/json'
local ids
function init() ids = io.open('%s', 'w') end
function response(status, headers, body)
  for id in body:gmatch('"decision_id":"([^"]+)"') do ids:write(id, '\\n') end
end
"""
"""Script for one thread of wrk: writes the decision id of each answer to a file, which is closed when wrk ends."""


def run(run: Run) -> bool | None:
    """Print a table for each database. Return whether all are without faults, or None if wrk is missing."""
    if shutil.which("wrk") is None:
        print("\nEndurance: not measured, since there is no wrk here; on Debian and Ubuntu: apt-get install wrk")
        return None
    path = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    rows = tables.read(path)[0]
    file = run.folder / "endurance.csv"
    write_csv(rows, file)
    body = json.dumps({"rows": [{f"x{place}": float(cell) for place, cell in enumerate(rows.features[0])}]})
    seconds = max(POINTS, round(SECONDS * run.share))
    verdicts = []
    for name, url in databases(run.folder, "endurance").items():
        if not run.takes(name):
            continue
        with running(run.folder, {"ESPALIER_DATABASE_URL": url}) as service:
            service.train("tree", service.upload(file.read_bytes()), MAX_DEPTH)
            verdicts.append(_endure(name, service, run.folder, body, seconds))
    return all(verdicts)


def _endure(name: str, service: Service, folder: Path, body: str, seconds: int) -> bool:
    ids, script = folder / "ids.txt", folder / "endure.lua"
    script.write_text(SCRIPT % (body, ids))
    address = f"{service.address}/v1/models/tree/predict"
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script), address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:  # noqa: S603 - our own command
        lines = list(_points(service, load, ids, seconds))
        output = load.stdout.read() if load.stdout is not None else ""
    answered = ids.read_text().split()
    faults = ", ".join(filter(None, (fault for match in FAULTS.findall(output) for fault in match)))
    missing = set(answered) - set(_logged(service))
    memory = [float(line[3]) for line in lines]
    verdict = [
        f"errors: {faults or '0'}",
        f"answers {len(answered):,}, of which not in the log: {len(missing):,}",
        _flatness(memory),
    ]
    names = ("seconds", "answers so far", "answers/s", "web MiB", "worker MiB")
    print_table(f"{name}, {CONNECTIONS} connections", names, lines, *verdict)
    return bool(answered) and not faults and not missing and _is_flat(memory)


def _points(service: Service, load: subprocess.Popen[str], ids: Path, seconds: int) -> Iterator[list[str]]:
    """Yield `POINTS` lines of the table at equal intervals, or fewer if the load ends early."""
    began, n_before = time.monotonic(), 0
    for point in range(1, POINTS + 1):
        time.sleep(max(0.0, began + point * (seconds - 1) / POINTS - time.monotonic()))
        if load.poll() is not None:
            return
        # wrk writes its file a block at a time: a partial block is counted at the next point.
        answers = ids.read_bytes().count(b"\n") if ids.exists() else 0
        web, worker = (memory_of(_processes(service, command)) for command in (b"\0serve\0", b"\0worker\0"))
        rate = (answers - n_before) * POINTS / (seconds - 1)
        yield [f"{time.monotonic() - began:.0f}", f"{answers:,}", f"{rate:,.0f}", f"{web:.1f}", f"{worker:.1f}"]
        n_before = answers


def _processes(service: Service, command: bytes) -> Sequence[int]:
    return [
        process for process in descendants(service.process) if command in Path(f"/proc/{process}/cmdline").read_bytes()
    ]


def _logged(service: Service) -> Iterator[str]:
    """Yield the ids of all decisions in the log, as the API lists them."""
    cursor = None
    while True:
        query = {"limit": PAGE} | ({} if cursor is None else {"cursor": cursor})
        page = service.send(f"/v1/decisions?{urllib.parse.urlencode(query)}")
        yield from (decision["id"] for decision in page["items"])
        cursor = page.get("next")
        if cursor is None:
            return


def _flatness(memory: Sequence[float]) -> str:
    if not memory:
        return "the load ended before the memory was looked at"
    verdict = "flat" if _is_flat(memory) else "GROWN"
    return f"memory of the web processes: {memory[0]:.1f} MiB after a tenth, {memory[-1]:.1f} MiB at the end: {verdict}"


def _is_flat(memory: Sequence[float]) -> bool:
    return bool(memory) and memory[-1] <= memory[0] * MOST_GROWN
