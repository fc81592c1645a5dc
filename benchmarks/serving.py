"""Predictions over HTTP: Espalier beside Flask, FastAPI, MLServer and BentoML, one server at a time.

Every server gets the same processors as the load, which `wrk` makes: whoever needs less of them answers more.
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
"""The version behind the alias `production`, as deployments are told to answer."""


def _many_rows(rows: Rows) -> Any:
    return {**named_rows(rows), "explain": "none"}


def _many_columns(rows: Rows) -> Any:
    columns = {f"x{place}": list(cells) for place, cells in enumerate(zip(*rows, strict=True))}
    return {"columns": columns, "explain": "none"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of ours in the table.

    Attributes:
        database: By which `databases` calls it.
        settings: Besides the database's.
        path: Where it is asked.
        body: From rows of numbers, what it is sent.
        n_rows: That are sent in one request.
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
    found: dict[str, PredictionResults] = {}
    faults: list[str] = []
    rows, size = _espalier(run, seconds, found)
    for name, peer in PEERS.items():
        if not run.takes(name):
            continue
        try:
            found[name] = measured(run.folder, peer, rows, seconds)
        except (OSError, subprocess.CalledProcessError, TimeoutError) as error:
            faults.append(f"{name}: {error}")
    _show(found, size, faults)
    judge(found)


def _espalier(run: Run, seconds: int, found: dict[str, PredictionResults]) -> tuple[Rows, int]:
    """Measure our lines; give rows and the length of an answer, which is written for the peers, as is their tree."""
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
            found[name] = _ours(run.folder, line, urls[line.database], rows, seconds)
    return rows, len(answer)


def _ours(folder: Path, line: Line, url: str, rows: Rows, seconds: int) -> Served:
    """Measure a service of our own, started anew: who has taken an upload keeps what reads it in memory."""
    begun = time.perf_counter()
    with running(folder, {"ESPALIER_DATABASE_URL": url, **line.settings}) as service:
        start = time.perf_counter() - begun
        asked, body = service.address + line.path, line.body(rows[: line.n_rows])
        if line.n_rows > 1:
            found = loads(folder, asked, body, seconds, CONNECTIONS)
            return Served(found, start, memory_of(_web(service)))
        for _ in range(FEW_ANSWERS):
            post(asked, body)
        early = memory_of(_web(service))
        found = loads(folder, asked, body, seconds, CONNECTIONS)
        return Served(found, start, memory_of(_web(service)), early)


def _web(service: Service) -> list[int]:
    """Give the processes of the web server: those that `serve` runs in."""
    return [one for one in descendants(service.process) if b"\0serve\0" in Path(f"/proc/{one}/cmdline").read_bytes()]


def databases(folder: Path, name: str) -> Mapping[str, str]:
    """Give where answers are logged, by what the line of a table is called: SQLite, and PostgreSQL if one is named."""
    found = {DURABLE: f"sqlite:///{folder}/{name}.db"}
    server = os.environ.get("ESPALIER_BENCH_POSTGRES_URL")
    return found if server is None else {**found, POSTGRES: server}


def _write_scikit_learn(rows: tables.Rows, file: Path) -> None:
    import joblib  # noqa: PLC0415 - this table alone needs it
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - as above

    joblib.dump(DecisionTreeClassifier(max_depth=MAX_DEPTH, random_state=0).fit(rows.features, rows.target), file)


def _show(found: Mapping[str, PredictionResults], size: int, faults: Sequence[str]) -> None:
    lines = []
    for name, served in found.items():
        for n, load in served.loads.items():
            of_bare = ratio(found, name, BARE, n)
            is_first = n == min(served.loads)
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
    print_table(f"Predictions over HTTP, two processes, an answer of {size} bytes", names, lines, *faults)
