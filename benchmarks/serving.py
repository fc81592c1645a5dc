"""Predictions over HTTP: Espalier beside Flask, FastAPI, MLServer and BentoML, one server at a time.

Servers share the processors with the load from `wrk`: a server that needs less processor time answers more requests.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from benchmarks import tables
from benchmarks.http_peers import (
    BARE,
    CONNECTIONS,
    PEERS,
    PredictionResults,
    Rows,
    measured,
    named_rows,
    tensor,
)
from benchmarks.loads import loads, memory_of, post
from benchmarks.measuring import NOTHING, print_table
from benchmarks.run import Run
from benchmarks.service import Service, descendants, running, write_csv
from benchmarks.serving_targets import (
    DURABLE,
    FEW_ANSWERS,
    INFER,
    MANY,
    MANY_COLUMNS,
    NEWEST,
    OFF,
    POSTGRES,
    Served,
    judge,
    ratio,
)

N_ROWS: Final = 20_000
MAX_DEPTH: Final = 8
SECONDS: Final = 5
NATIVE: Final = "/v1/models/tree/predict"
"""This path predicts by the version of the alias `production`, as the pages on deployment recommend."""


def _many_rows(rows: Rows) -> Any:
    return {**named_rows(rows), "explain": "none"}


def _many_columns(rows: Rows) -> Any:
    columns = {f"x{column}": list(cells) for column, cells in enumerate(zip(*rows, strict=True))}
    return {"columns": columns, "explain": "none"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of Espalier in the table.

    Attributes:
        database: Name in `databases`.
        settings: Settings of the service other than the database.
        path: URL path of a prediction.
        body: Takes rows of numbers and returns the body of a request.
        n_rows: Rows per request.
    """

    database: str = DURABLE
    settings: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    path: str = NATIVE
    body: Callable[[Rows], Any] = named_rows
    n_rows: int = 1


OURS: Final[Mapping[str, Line]] = MappingProxyType(
    {
        DURABLE: Line(),
        POSTGRES: Line(POSTGRES),
        OFF: Line(settings={"ESPALIER_DECISIONS": "off"}),
        NEWEST: Line(settings={"ESPALIER_DECISIONS": "off"}, path="/v1/models/newest/predict"),
        INFER: Line(path="/v2/models/tree/infer", body=tensor),
        MANY: Line(body=_many_rows, n_rows=1_000),
        MANY_COLUMNS: Line(body=_many_columns, n_rows=1_000),
    }
)


def run(run: Run) -> None:
    """Print the table."""
    if shutil.which("wrk") is None:
        print("\nServing: not measured, since there is no wrk here; on Debian and Ubuntu: apt-get install wrk")
        return
    seconds = max(1, round(SECONDS * min(1.0, run.share * 4)))
    results: dict[str, PredictionResults] = {}
    faults: list[str] = []
    rows, size = _espalier(run, seconds, results)
    for name, peer in PEERS.items():
        if not run.takes(name):
            continue
        try:
            results[name] = measured(run.folder, peer, rows, seconds)
        except (OSError, subprocess.CalledProcessError, TimeoutError) as error:
            faults.append(f"{name}: {error}")
    _show(results, size, faults)
    judge(results)


def _espalier(run: Run, seconds: int, results: dict[str, PredictionResults]) -> tuple[Rows, int]:
    """Measure our lines; return the rows and the length of an answer; write the answer and the tree for the peers."""
    path = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    table = tables.read(path)[0]
    _write_scikit_learn(table, run.folder / "tree.joblib")
    rows = [[float(cell) for cell in row] for row in table.features[: max(line.n_rows for line in OURS.values())]]
    file = run.folder / "serving.csv"
    write_csv(table, file)
    urls = databases(run.folder, "serving")
    answer = b""
    for url in urls.values():
        with running(run.folder, {"ESPALIER_DATABASE_URL": url}) as service:
            data_set = service.upload(file.read_bytes())
            service.train("newest", data_set, MAX_DEPTH)
            service.train("tree", data_set, MAX_DEPTH)
            service.promote("tree")
            answer = post(service.address + NATIVE, named_rows(rows[:1]))
            (run.folder / "answer.json").write_bytes(answer)
    for name, line in OURS.items():
        if line.database in urls and run.takes(name):
            results[name] = _ours(run.folder, line, urls[line.database], rows, seconds)
    return rows, len(answer)


def _ours(folder: Path, line: Line, url: str, rows: Rows, seconds: int) -> Served:
    """Measure a line with a newly started service, whose memory no upload or training has enlarged."""
    begin = time.perf_counter()
    with running(folder, {"ESPALIER_DATABASE_URL": url, **line.settings}) as service:
        start = time.perf_counter() - begin
        address, body = service.address + line.path, line.body(rows[: line.n_rows])
        if line.n_rows > 1:
            measured_loads = loads(folder, address, body, seconds, CONNECTIONS)
            return Served(measured_loads, start, memory_of(_web(service)))
        for _ in range(FEW_ANSWERS):
            post(address, body)
        early = memory_of(_web(service))
        measured_loads = loads(folder, address, body, seconds, CONNECTIONS)
        return Served(measured_loads, start, memory_of(_web(service)), early)


def _web(service: Service) -> list[int]:
    """Return the processes of the web server."""
    return [
        process
        for process in descendants(service.process)
        if b"\0serve\0" in Path(f"/proc/{process}/cmdline").read_bytes()
    ]


def databases(folder: Path, name: str) -> Mapping[str, str]:
    """Return the URLs of the databases by line of the table: SQLite, and PostgreSQL if the environment names one."""
    urls = {DURABLE: f"sqlite:///{folder}/{name}.db"}
    postgres = os.environ.get("ESPALIER_BENCH_POSTGRES_URL")
    return urls if postgres is None else {**urls, POSTGRES: postgres}


def _write_scikit_learn(rows: tables.Rows, file: Path) -> None:
    import joblib  # noqa: PLC0415 - this table alone needs it
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - as above

    joblib.dump(DecisionTreeClassifier(max_depth=MAX_DEPTH, random_state=0).fit(rows.features, rows.target), file)


def _show(results: Mapping[str, PredictionResults], size: int, faults: Sequence[str]) -> None:
    lines = []
    for name, served in results.items():
        for n, load in served.loads.items():
            relative_rate = ratio(results, name, BARE, n)
            is_first = n == min(served.loads)
            lines.append(
                [
                    name if is_first else "",
                    str(n),
                    f"{load.rate:,.0f}",
                    f"{load.p50:.2f}",
                    f"{load.p99:.2f}",
                    load.faults or "0",
                    "" if relative_rate is None else f"{relative_rate:.2f}",
                    f"{served.start:.1f} s" if is_first else "",
                    f"{served.memory:.0f}" if is_first else "",
                ]
            )
    names = ("server", "connections", "answers/s", "p50 ms", "p99 ms", "errors", "x constant", "start", "MiB")
    print_table(f"Predictions over HTTP, two processes, an answer of {size} bytes", names, lines, *faults)
