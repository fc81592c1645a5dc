"""The two example data sets and their models, loaded by the use cases that the API calls, and what to try with them."""

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import espalier
from service import catalog, db, queue, usecases
from service.db import Sessions, reading, transaction
from service.errors import NotFound
from service.settings import Settings
from service.tables import State

__all__ = ["EXAMPLES", "is_ready", "load_examples", "suggestions"]

LOOK_SECONDS = 0.05
LONGEST_SECONDS = 300.0  # the first training of all may compile the kernels, on a slow machine
PAGE = 200


@dataclass(frozen=True, slots=True)
class Example:
    """A data set that comes with the package, and how a model is trained on it."""

    file: str
    target: str
    preset: str


EXAMPLES: Mapping[str, Example] = {
    "play-tennis": Example("play_tennis.csv", target="PlayTennis", preset="id3"),
    "drug200": Example("drug200.csv", target="Drug", preset="cart"),
}


def is_ready(address: str, *, stopping: threading.Event, seconds: float) -> bool:
    """Wait until the web server says that it can answer; False if it does not within `seconds`, or we are stopping."""
    deadline = time.monotonic() + seconds
    while not stopping.is_set() and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=5):  # noqa: S310 - our own address
                return True
        except (urllib.error.URLError, http.client.HTTPException, OSError):
            stopping.wait(LOOK_SECONDS)
    return False


def load_examples(settings: Settings, *, stopping: threading.Event) -> list[str]:
    """Upload the examples and train on them, where that was not done before; give a line for each that failed.

    What is there already is kept: a model that has a version is left alone, a data set of the same name and content is
    used again, a job that is under way is waited for.
    """
    with _connected(settings) as sessions:
        jobs = {name: _begin(sessions, name, example, settings) for name, example in EXAMPLES.items()}
        failures = []
        for name, job_id in jobs.items():
            if job_id is not None and (reason := _failure(sessions, job_id, stopping)):
                failures.append(f"the example {name} could not be trained: {reason}")
        return failures


def suggestions(address: str) -> list[str]:
    """Give three lines for a shell: a prediction by each example's model, and a tree."""
    predict = "curl -s {address}/v1/models/{name}/predict -H 'Content-Type: application/json' -d '{body}'"
    tennis = '{"rows": [{"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}]}'
    drug = '{"rows": [{"Age": 47, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": 13.1}]}'
    return [
        predict.format(address=address, name="play-tennis", body=tennis),
        predict.format(address=address, name="drug200", body=drug),
        f"curl -s '{address}/v1/models/drug200/versions/1/tree?format=text'",
    ]


@contextmanager
def _connected(settings: Settings) -> Iterator[Sessions]:
    engine = db.connect(settings)
    try:
        yield db.sessions(engine)
    finally:
        engine.dispose()


def _begin(sessions: Sessions, name: str, example: Example, settings: Settings) -> str | None:
    """Give the id of the job that trains the example, or None if its model is there."""
    with reading(sessions) as session:
        try:
            catalog.find_version(session, name)
        except NotFound:
            under_way = queue.list_jobs(session, model=name, limit=PAGE).items
        else:
            return None
    for job in under_way:
        if job.state not in queue.FINAL:
            return job.id
    content = files("service").joinpath("examples", example.file).read_bytes()
    dataset = espalier.dataset_from_csv(content, target=example.target)
    new = usecases.NewDataSet.of(dataset, name=name, settings=settings)
    with transaction(sessions) as session:
        same = (
            row
            for row in catalog.list_data_sets(session, limit=PAGE).items
            if row.name == name and row.fingerprint == dataset.fingerprint
        )
        data_set = next(same, None) or usecases.upload_data_set(session, new)
        asked: dict[str, Any] = {
            "model": name,
            "dataset": data_set.id,
            "preset": example.preset,
            "params": {},
            "holdout": None,
        }
        return usecases.request_training(session, asked, settings=settings).id


def _failure(sessions: Sessions, job_id: str, stopping: threading.Event) -> str | None:
    """Wait for the end of a job; say why it did not succeed."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not stopping.is_set() and time.monotonic() < deadline:
        with reading(sessions) as session:
            job = queue.find_job(session, job_id)
        if job.state in queue.FINAL:
            return None if job.state == State.SUCCEEDED else f"{job.state} ({(job.error or {}).get('message', '')})"
        stopping.wait(LOOK_SECONDS)
    return None if stopping.is_set() else "it takes too long"
