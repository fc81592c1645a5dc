"""A job of the service, from upload to a stored version that answers, compared with the core alone."""

import atexit
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import espalier
from benchmarks import tables
from benchmarks.measuring import NOTHING, Measurable, Measured, Subject, measure, print_table, ratio_text, seconds_text
from benchmarks.run import Run

N_ROWS: Final = 1_000_000
N_STREAMED: Final = 100_000
TARGET: Final = 1.5
TARGET_UPLOAD: Final = 3
TARGET_STREAMED: Final = 200_000
"""Rows per second."""
MAX_GROWTH: Final = 100.0
"""MiB by which the peak memory of the service's processes may grow during a stream."""
N_WARM_UP: Final = 6
PATIENCE: Final = 300.0
TURNS: Final = 5
"""Turns of each subject. The service and the core take turns because a machine's speed changes within minutes."""
REPETITIONS: Final = 3
"""Repetitions of a stream."""
FINAL: Final = frozenset({"succeeded", "failed", "cancelled", "dead"})
ENVIRONMENT: Final = {"ESPALIER_AUTH": "none", "ESPALIER_MAX_BODY_MB": "2048", "ESPALIER_JOB_MEMORY_MB": "16384"}
CSV: Final = "text/csv"
DEPTHS: Final = (8, None)
PYARROW: Final = "pyarrow reads the CSV"
READING: Final = "the core reads the CSV"
UPLOAD: Final = "upload of the CSV until it is stored"


class ServiceFailed(Exception):  # noqa: N818 - the name says what happened
    """The service did not start, refused a request, failed a job, or answered with too few or too many lines."""


def run(run: Run) -> None:
    """Print the tables."""
    path = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    file = run.folder / "upload.csv"
    write_csv(tables.read(path)[0], file)
    arguments = {"file": str(file)}
    measured = measure(
        [
            Subject(PYARROW, "benchmarks.service:reading_by_pyarrow", arguments),
            Subject(READING, "benchmarks.service:reading", arguments),
            Subject(UPLOAD, "benchmarks.service:served", arguments, act=UPLOAD),
            *[
                subject
                for depth in DEPTHS
                for subject in (
                    Subject(_core(depth), "benchmarks.service:from_text_to_model", {**arguments, "max_depth": depth}),
                    Subject(_job(depth), "benchmarks.service:served", arguments, act=_job(depth)),
                )
            ],
        ],
        repetitions=TURNS,
    )
    _show(run, measured, file.stat().st_size)
    queries = run.folder / "queries.csv"
    write_csv(tables.read(path)[0].first(run.rows(N_STREAMED)), queries, with_target=False)
    try:
        with running(run.folder) as service:
            service.train("depth-8", service.upload(file.read_bytes()), 8)
            streamed = _streamed(service, queries.read_bytes())
    except ServiceFailed as failure:
        print(f"\nRows answered in a stream: {failure}")
        return
    _show_streams(streamed, queries.stat().st_size)


def reading(file: str) -> Measurable:
    """Return a measurable in which the core reads the CSV text from memory."""
    text = Path(file).read_text()
    few = "\n".join(text[: 100 * tables.FEW].splitlines()[:-1])
    return Measurable(
        lambda: espalier.dataset_from_csv(text, target="y"), lambda: espalier.dataset_from_csv(few, target="y")
    )


def reading_by_pyarrow(file: str) -> Measurable:
    """Return a measurable in which pyarrow reads the bytes of the CSV."""
    import pyarrow  # noqa: PLC0415 - only in its own process
    from pyarrow import csv  # noqa: PLC0415 - as above

    content = pyarrow.py_buffer(Path(file).read_bytes())
    return Measurable(lambda: csv.read_csv(pyarrow.BufferReader(content)))


def from_text_to_model(file: str, max_depth: int | None) -> Measurable:
    """Return a measurable in which the core reads the CSV text from memory and trains on the data set."""
    text = Path(file).read_text()
    few = "\n".join(text[: 100 * tables.FEW].splitlines()[:-1])

    def act(content: str) -> espalier.Model:
        return espalier.train(espalier.dataset_from_csv(content, target="y"), "cart", max_depth=max_depth)

    return Measurable(lambda: act(text), lambda: act(few))


@dataclass(frozen=True, slots=True)
class Service:
    """A running ``espalier up``: its address and its process id."""

    address: str
    process: int

    def promote(self, model: str) -> None:
        """Point the alias `production` to the first version."""
        self.send(f"/v1/models/{model}/aliases/production", b'{"version": 1}', method="PUT")

    def send(
        self, path: str, body: bytes | None = None, *, kind: str = "application/json", method: str | None = None
    ) -> Any:
        """Send a request and return the JSON of the response.

        Raises:
            ServiceFailed: The service refused the request.
        """
        headers = {"Content-Type": kind}
        request = urllib.request.Request(self.address + path, data=body, headers=headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - our own address
                return json.load(response)
        except urllib.error.HTTPError as refusal:
            message = f"{path}: {refusal.code} {refusal.read()[:200].decode(errors='replace')}"
            raise ServiceFailed(message) from None

    def send_lines(self, path: str, body: bytes, *, n_rows: int) -> None:
        """Send rows to predict as CSV, and read the whole answer.

        Raises:
            ServiceFailed: The answer is not a header and one line per row.
        """
        request = urllib.request.Request(self.address + path, data=body, headers={"Content-Type": CSV})  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - our own address
            n_lines = sum(block.count(b"\n") for block in iter(lambda: response.read(2**20), b""))
        if n_lines != n_rows + 1:
            raise ServiceFailed(f"{path}: {n_lines} lines came back for {n_rows} rows")

    def memory(self) -> float | None:
        """Return the sum of the peak memory of the supervisor's descendants in MiB, or None if it cannot be read."""
        try:
            status = [Path(f"/proc/{child}/status").read_text() for child in descendants(self.process)]
        except OSError:
            return None
        return sum(int(text.partition("VmHWM:")[2].split()[0]) for text in status if "VmHWM:" in text) / 1024

    def upload(self, content: bytes) -> str:
        """Upload CSV and return the id of the data set."""
        return str(self.send("/v1/datasets?name=table&target=y", content, kind=CSV)["id"])

    def train(self, model: str, data_set: str, max_depth: int | None) -> None:
        """Train, wait for the stored version, and read it.

        Raises:
            ServiceFailed: The job did not succeed.
        """
        order = {"model": model, "dataset": data_set, "preset": "cart", "params": {"max_depth": max_depth}}
        job = self.send("/v1/training-jobs", json.dumps(order).encode())
        while job["state"] not in FINAL:
            job = self.send(f"/v1/jobs/{job['id']}?wait=20")
        if job["state"] != "succeeded":
            raise ServiceFailed(f"the job ended as {job['state']}: {json.dumps(job.get('error'))[:200]}")
        self.send(f"/v1/models/{model}/versions/{job['result']['version']}")

    def ask(self, model: str, n_columns: int = 20) -> None:
        """Predict one row by the newest version."""
        row = {f"x{place}": 0.0 for place in range(n_columns)}
        self.send(f"/v1/models/{model}/predict", json.dumps({"rows": [row]}).encode())


def served(file: str) -> Mapping[str, Measurable]:
    """Return measurables of requests to a service: the upload of the CSV, and jobs on the data set uploaded last."""
    content = Path(file).read_bytes()
    few = b"\n".join(content[: 100 * tables.FEW].split(b"\n")[:-1])
    resources = ExitStack()
    atexit.register(resources.close)
    service = resources.enter_context(running(Path(resources.enter_context(tempfile.TemporaryDirectory()))))
    data_sets: list[str] = []
    answer_seconds: dict[int | None, list[float]] = {depth: [] for depth in DEPTHS}

    def warm_up() -> None:
        service.train("warm-up", service.upload(few), None)
        service.ask("warm-up")

    def train(depth: int | None) -> float:
        model = f"depth-{depth}"
        seconds = _timed(partial(service.train, model, data_sets[-1], depth))
        answer_seconds[depth].append(_timed(partial(service.ask, model)))
        return seconds

    def job(depth: int | None) -> Measurable:
        return Measurable(
            partial(train, depth),
            describe=lambda _: {"answered": statistics.median(answer_seconds[depth])},
            own_seconds=float,
        )

    upload = Measurable(lambda: data_sets.append(service.upload(content)), warm_up)
    return {UPLOAD: upload, **{_job(depth): job(depth) for depth in DEPTHS}}


@dataclass(frozen=True, slots=True)
class Streamed:
    """Result of a prediction stream: the seconds of each repetition, and the growth of `Service.memory` in MiB."""

    n_rows: int
    seconds: tuple[float, ...]
    grown: float | None


def _streamed(service: Service, content: bytes) -> Streamed:
    """Measure a prediction stream with the tree of depth 8, after a warm-up on few rows."""
    path = "/v1/models/depth-8/predict?explain=none"
    n_rows = content.count(b"\n") - 1
    few = b"\n".join(content.split(b"\n")[: tables.FEW])
    for _ in range(N_WARM_UP):
        service.send_lines(path, few, n_rows=tables.FEW - 1)
    before = service.memory()
    seconds = [_timed(lambda: service.send_lines(path, content, n_rows=n_rows)) for _ in range(REPETITIONS)]
    after = service.memory()
    return Streamed(n_rows, tuple(seconds), None if before is None or after is None else after - before)


def _timed(action: Callable[[], None]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def free_port() -> int:
    """Return a free port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def running(folder: Path, settings: Mapping[str, str] = NOTHING) -> Iterator[Service]:
    """Run ``espalier up`` on a free loopback port. The database is in the folder unless `settings` name another.

    Settings in the environment of this process are not passed on.
    """
    port = free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")}
    database = {"ESPALIER_DATABASE_URL": f"sqlite:///{folder}/service.db"}
    printed = folder / "service.txt"
    with printed.open("w") as output:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "service.cli", "up", "--host", "127.0.0.1", "--port", str(port)],
            cwd=Path(__file__).resolve().parent.parent,
            env=inherited | ENVIRONMENT | database | dict(settings),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for_start(process, printed)
        yield Service(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_start(process: subprocess.Popen[bytes], printed: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while "Espalier runs at" not in printed.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServiceFailed(f"it did not start: {printed.read_text()[-200:]}")
        time.sleep(0.01)


def descendants(process: int) -> list[int]:
    """Return the ids of all processes that descend from a process."""
    processes = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            processes += [child, *descendants(child)]
    return processes


def write_csv(rows: tables.Rows, file: Path, *, with_target: bool = True) -> None:
    """Write rows as CSV with the columns x0, x1, … and, if `with_target`, y (no or yes)."""
    import pyarrow  # noqa: PLC0415 - this table alone needs it
    from pyarrow import csv  # noqa: PLC0415 - as above

    columns = {f"x{place}": pyarrow.array(column.copy()) for place, column in enumerate(rows.features.T)}
    labels = pyarrow.DictionaryArray.from_arrays(rows.target, ["no", "yes"]).cast(pyarrow.string())
    csv.write_csv(pyarrow.table(columns | ({"y": labels} if with_target else {})), file)


def _depth(depth: int | None) -> str:
    return "full-grown" if depth is None else f"depth {depth}"


def _core(depth: int | None) -> str:
    return f"core: reading and training, {_depth(depth)}"


def _job(depth: int | None) -> str:
    return f"the job alone, until the version is stored and seen, {_depth(depth)}"


def _show(run: Run, measured: Mapping[str, Measured], n_bytes: int) -> None:
    parsed, read, upload = (measured[name].seconds for name in (PYARROW, READING, UPLOAD))
    lines = [[name, seconds_text(measured[name].seconds), "", "", ""] for name in (PYARROW, READING)]
    lines.append([UPLOAD, seconds_text(upload), ratio_text(upload, read), "", ""])
    holds = "holds" if parsed is not None and upload is not None and upload <= TARGET_UPLOAD * parsed else "missed"
    lines.append(["the same, by pyarrow alone", "", ratio_text(upload, parsed), f"<= {TARGET_UPLOAD}", holds])
    for depth in DEPTHS:
        alone, job = measured[_core(depth)].seconds, measured[_job(depth)]
        stored = None if upload is None or job.seconds is None else upload + job.seconds
        answered = None if stored is None else stored + job.facts["answered"]
        holds = "holds" if alone is not None and stored is not None and stored <= TARGET * alone else "missed"
        lines += [
            [_core(depth), seconds_text(alone), "", "", ""],
            [_job(depth), seconds_text(job.seconds), "", "", ""],
            ["upload and job, stored and seen", seconds_text(stored), ratio_text(stored, alone), f"<= {TARGET}", holds],
            ["the same and a first answer", seconds_text(answered), ratio_text(answered, alone), "", ""],
        ]
    faults = [f"{name}: {result.fault}" for name, result in measured.items() if result.fault]
    title = f"The service: {run.rows(N_ROWS):,} rows x 20 as CSV ({n_bytes / 1e6:.0f} MB), from upload to an answer"
    print_table(title, ("what", "seconds", "x core", "target", ""), lines, *faults)


def _show_streams(streamed: Streamed, n_bytes: int) -> None:
    seconds = statistics.median(streamed.seconds)
    speed = streamed.n_rows / seconds
    grown = "" if streamed.grown is None else f"{streamed.grown:.0f} MiB more"
    flat = "" if streamed.grown is None else "holds" if streamed.grown <= MAX_GROWTH else "missed"
    lines = [
        ["until the last answer is read", seconds_text(seconds), f"{speed:,.0f} rows/s", f">= {TARGET_STREAMED:,}",
         "holds" if speed >= TARGET_STREAMED else "missed"],
        ["most memory of the service's processes", "", grown, f"<= {MAX_GROWTH:.0f} MiB", flat],
    ]  # fmt: skip
    title = f"The service: {streamed.n_rows:,} rows x 20 as CSV ({n_bytes / 1e6:.0f} MB) answered in a stream, logged"
    print_table(title, ("what", "seconds", "", "target", ""), lines)
