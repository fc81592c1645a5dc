"""Metrics in Prometheus' text format, for any number of web processes.

Each process writes its counts to files in a shared folder (``PROMETHEUS_MULTIPROC_DIR``, created by `espalier serve`).
The process that answers a scrape adds them up. Figures of the queue come from the database.

The number of series is bounded: requests are counted by route, predictions by a limited number of labels and versions.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the client library's own name
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
MAX_LABELS = 20  # of the predictions of a version
MAX_SERIES = 1000  # of predictions, in one process
OTHER = "(other)"

Add = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The queue at one moment."""

    unfinished: Mapping[tuple[str, str], int]  # by state and kind
    dead: int  # jobs that have used up their attempts
    oldest_seconds: float  # time since the oldest queued job became ready to run; 0 if there is none
    leases_lost: int  # expired leases after which the job was queued again; deleted jobs do not count
    fenced_out: int  # workers that came back after their lease had expired; deleted jobs do not count


class Metrics:
    """The metrics of one web process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        histogram = partial(Histogram, registry=self.registry, buckets=SECONDS)
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        of_request, of_row = ("method", "route", "status"), ("model", "version", "label")
        arrival = "Seconds from the arrival of a request until its response begins"
        self.requests = histogram("espalier_request_seconds", arrival, of_request)
        self._predictions = counter("espalier_predictions", "Rows that were predicted or refused", of_row)
        self.commits = histogram(
            "espalier_decision_commit_seconds",
            "Seconds to commit the record of a request or of a batch of a stream, or to submit it (best_effort)",
        )
        lost = "Records that best_effort dropped, or that could not be written"
        self.lost = counter("espalier_decisions_lost", lost)
        waiting = "Records that were waiting when the latest commit ended"
        self.waiting = gauge("espalier_decision_log_waiting", waiting, multiprocess_mode="livesum")
        self._known_predictions: dict[tuple[str, int], dict[str, Add]] = {}
        self._n_series = 0
        self._lock = threading.Lock()

    def predictions(self, model: str, version: int, label: str, n_rows: int) -> None:
        """Count rows by label (`decisions.label_of`); labels and versions beyond the limits count as ``(other)``."""
        known = self._known_predictions.setdefault((model, version), {})
        (known.get(label) or self._series(known, model, version, label))(n_rows)

    def text(self, queue: JobFigures | None) -> bytes:
        """Return the metrics of all processes and of the `queue` (None: the database is unreachable), as UTF-8 text."""
        registry = self.registry
        if os.environ.get(FOLDER):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the library's own
        return generate_latest(registry) + generate_latest(_Queue(queue))

    def _series(self, known: dict[str, Add], model: str, version: int, label: str) -> Add:
        with self._lock:
            if self._n_series >= MAX_SERIES:
                add = self._predictions.labels(OTHER, OTHER, OTHER).inc
            elif len(known) >= MAX_LABELS:
                add = self._predictions.labels(model, str(version), OTHER).inc
            else:
                self._n_series += 1
                add = self._predictions.labels(model, str(version), label).inc
            if len(known) < MAX_LABELS:
                known[label] = add
            return add


@dataclass(frozen=True, slots=True)
class _Queue(Collector):
    figures: JobFigures | None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield each figure; if the database is unreachable, yield only ``espalier_database_up``."""
        figures = self.figures
        yield GaugeMetricFamily("espalier_database_up", "Whether the database answers", value=int(figures is not None))
        if figures is None:
            return
        jobs = GaugeMetricFamily("espalier_jobs", "Jobs that are queued or running", labels=("state", "kind"))
        for (state, kind), n_jobs in sorted(figures.unfinished.items()):
            jobs.add_metric((state, kind), n_jobs)
        yield jobs
        for name, meaning, value in (
            ("espalier_jobs_dead", "Jobs that have used up their attempts", figures.dead),
            ("espalier_jobs_oldest_seconds", "Seconds that the oldest queued job has waited", figures.oldest_seconds),
            ("espalier_jobs_leases_lost", "Expired leases of jobs that had attempts left", figures.leases_lost),
            ("espalier_jobs_fenced_out", "Workers that came back after their lease had expired", figures.fenced_out),
        ):
            yield GaugeMetricFamily(name, meaning, value=value)


def forget_process(pid: int) -> None:
    """Drop the gauges of a process that has ended; its counters stay."""
    if os.environ.get(FOLDER):
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call] # the library's own
