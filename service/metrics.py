"""Figures for whoever watches over the service, in Prometheus' text form, right with several web processes.

Each web process counts for itself, in files of a folder that all of them share (``PROMETHEUS_MULTIPROC_DIR``, made by
`espalier serve`); who is asked adds them up. Figures of the queue come from the database, the same whoever is asked.

The number of series is bounded: routes, not paths; so many labels a version, so many versions a process.
"""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.metrics_core import GaugeMetricFamily

from service.database.engine import Sessions, read_session
from service.errors import Unavailable
from service.repositories.job_queue import job_figures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the client library's own name
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
LABELS_A_VERSION = 20
MOST_SERIES = 1000  # of predictions, in one process
OTHER = "(other)"

Add = Callable[[float], None]


@dataclass(slots=True)
class Metrics:
    """What one web process counts.

    Attributes:
        registry: Of this application alone.
    """

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    _requests: Histogram = field(init=False)
    _predictions: Counter = field(init=False)
    _commits: Histogram = field(init=False)
    _waiting: Gauge = field(init=False)
    _lost: Counter = field(init=False)
    _known_requests: dict[tuple[str, str, int], Add] = field(default_factory=dict)
    _known_predictions: dict[tuple[str, int], dict[str, Add]] = field(default_factory=dict)
    _n_series: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        here: dict[str, Any] = {"registry": self.registry}
        self._requests = Histogram(
            "espalier_request_seconds",
            "Requests, from their arrival until the answer begins",
            ("method", "route", "status"),
            buckets=SECONDS,
            **here,
        )
        self._predictions = Counter(
            "espalier_predictions", "Rows that were answered", ("model", "version", "label"), **here
        )
        self._commits = Histogram(
            "espalier_decision_commit_seconds",
            "Seconds until a record of decisions was committed: of a request, or of a batch of a stream",
            buckets=SECONDS,
            **here,
        )

        self._lost = Counter(
            "espalier_decisions_lost",
            "Records that best_effort dropped, or that could not be written",
            **here,
        )
        self._waiting = Gauge(
            "espalier_decision_log_waiting",
            "Records that waited for a commit when the last one came back",
            multiprocess_mode="livesum",
            **here,
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        add = self._known_requests.get((method, route, status))
        if add is None:
            add = self._requests.labels(method, route, str(status)).observe
            self._known_requests[method, route, status] = add
        add(seconds)

    def commit(self, seconds: float, *, n_waiting: int) -> None:
        """Count a request's way into the decision log, and note how many others wait for the next commit."""
        self._commits.observe(seconds)
        self._waiting.set(n_waiting)

    def lost(self) -> None:
        """Count a record that will never be in the log."""
        self._lost.inc()

    def predictions(self, model: str, version: int, label: str, n_rows: int) -> None:
        """Count answers of a version with one label."""
        known = self._known_predictions.setdefault((model, version), {})
        (known.get(label) or self._series(known, model, version, label))(n_rows)

    def text(self, source: Sessions) -> bytes:
        """Give all figures: those of all processes, and those of the queue."""
        registry = self.registry
        if os.environ.get(FOLDER):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the library's own
        shown: bytes = generate_latest(registry)
        queue = CollectorRegistry()
        queue.register(_Queue(source))
        return shown + generate_latest(queue)

    def _series(self, known: dict[str, Add], model: str, version: int, label: str) -> Add:
        with self._lock:
            if self._n_series >= MOST_SERIES:
                add = self._predictions.labels(OTHER, OTHER, OTHER).inc
            elif len(known) >= LABELS_A_VERSION:
                add = self._predictions.labels(model, str(version), OTHER).inc
            else:
                self._n_series += 1
                add = self._predictions.labels(model, str(version), label).inc
            if len(known) < LABELS_A_VERSION:
                known[label] = add
            return add


class _Queue:
    """The figures of the queue, asked for when somebody looks."""

    def __init__(self, source: Sessions) -> None:
        self._source = source

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give each figure; only that the database is away, where it is."""
        try:
            with read_session(self._source) as session:
                figures = job_figures(session)
        except Unavailable:
            yield GaugeMetricFamily("espalier_database_up", "Whether the database answers", value=0)
            return
        yield GaugeMetricFamily("espalier_database_up", "Whether the database answers", value=1)
        jobs = GaugeMetricFamily("espalier_jobs", "Jobs that are queued or running", labels=("state", "kind"))
        for (state, kind), n_jobs in sorted(figures.unfinished.items()):
            jobs.add_metric((state, kind), n_jobs)
        yield jobs
        for name, meaning, value in (
            ("espalier_jobs_dead", "Jobs that have spent their attempts", figures.dead),
            ("espalier_jobs_oldest_seconds", "How long the oldest queued job has waited", figures.oldest_seconds),
            ("espalier_jobs_leases_lost", "Leases that ran out, among the jobs that are kept", figures.leases_lost),
            ("espalier_jobs_fenced_out", "Writes of lost workers that were refused, among those", figures.fenced_out),
        ):
            yield GaugeMetricFamily(name, meaning, value=value)


def forget_process(pid: int) -> None:
    """Let go of what only a living process has, after it has ended; what it counted stays."""
    if os.environ.get(FOLDER):
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call] # the library's own
