"""The application in this process, with what a test of the API needs: upload, train at once, call."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import flask.testing
import pytest
from sqlalchemy import Engine
from sqlalchemy.pool import QueuePool
from werkzeug.test import TestResponse

import espalier
from service.api.context import EXTENSION, Service
from service.app import create_app
from service.database.engine import connect, sessions, transaction
from service.repositories import datasets, models
from service.settings import Settings

TENNIS = """Outlook,Temperature,Humidity,Wind,PlayTennis
Sunny,Hot,High,Weak,No
Sunny,Hot,High,Strong,No
Overcast,Hot,High,Weak,Yes
Rain,Mild,High,Weak,Yes
Rain,Cool,Normal,Weak,Yes
Rain,Cool,Normal,Strong,No
Overcast,Cool,Normal,Strong,Yes
Sunny,Mild,High,Weak,No
Sunny,Cool,Normal,Weak,Yes
Rain,Mild,Normal,Weak,Yes
Sunny,Mild,Normal,Strong,Yes
Overcast,Mild,High,Strong,Yes
Overcast,Hot,Normal,Weak,Yes
Rain,Mild,High,Strong,No
"""
ON_SQLITE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
"""Mark of tests whose subject looks the same on every database, such as the checks of a request."""
UNKNOWN = "01890000-0000-7000-8000-000000000000"  # the id of nothing
HOURS = "size,hours\n1,10\n2,12\n3,11\n10,30.5\n11,31\n12,33\n"


@dataclass(frozen=True)
class Served:
    """An application, its database, and a client."""

    settings: Settings
    service: Service
    client: flask.testing.FlaskClient

    def upload(self, csv: str, **query: str) -> dict[str, Any]:
        """Upload CSV; give the data set as it is shown."""
        response = self.client.post("/v1/datasets", query_string=query, data=csv, content_type="text/csv")
        assert response.status_code == 201, response.text
        return response.get_json()

    def train(self, name: str, csv: str = TENNIS, *, preset: str = "id3", holdout: Any = None, **declared: Any) -> str:
        """Add a version, trained in this process; give the id of its data set."""
        dataset = espalier.dataset_from_csv(csv, **({"target": "PlayTennis"} | declared))
        model = espalier.train(dataset, preset, holdout=holdout and espalier.holdout_from_dict(holdout))
        with transaction(self.service.sessions) as session:
            row = datasets.add_data_set(session, name="rows", new=datasets.new_data_set(dataset))
        self.keep(name, model, data_set_id=row.id)
        return row.id

    def keep(
        self,
        name: str,
        model: espalier.Model,
        *,
        data_set_id: str | None = None,
        holdout_data_set_id: str | None = None,
        trace: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a version that is trained already."""
        new = models.NewVersion(
            model=name,
            document=espalier.to_json(model),
            preset=model.config.preset,
            summary=espalier.summary(model),
            seconds=0.1,
            data_set_id=data_set_id,
            holdout_data_set_id=holdout_data_set_id,
            trace=trace,
        )
        with transaction(self.service.sessions) as session:
            models.add_version(session, new)
        self.service.versions.invalidate()

    def post(self, path: str, body: object) -> TestResponse:
        """Send JSON."""
        return self.client.post(path, json=body)

    def predict(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask a model that answers."""
        response = self.post(f"/v1/models/{name}/predict", body)
        assert response.status_code == 200, response.text
        return response.get_json()


FREE: dict[Settings, list[flask.Flask]] = {}
"""Applications nobody uses now, by the settings that routes are made from: making one takes longer than many a test."""
FREE_ENGINES: dict[Settings, list[Engine]] = {}
"""Engines nobody uses now, by the settings they were made from. A new one compiles all statements again."""
MAX_FREE_CONNECTIONS = 2  # of an engine
ELSEWHERE = {"database_url": "sqlite://", "store": "none", "work": "work"}
"""What differs from test to test and is read from the state of the service alone."""


@contextmanager
def serving(settings: Settings, **changes: Any) -> Iterator[Served]:
    """Make the application on a database that has its tables, or give one that is free another database."""
    changed = replace(settings, **changes)
    free = FREE.setdefault(replace(changed, **ELSEWHERE), [])
    app = free.pop() if free else create_app(changed)
    engine = take_engine(changed)
    app.extensions[EXTENSION] = service = Service(changed, sessions(engine))
    yield Served(changed, service, app.test_client())
    wait_for_copying()
    free.append(app)
    give_back_engine(changed, engine)


def take_engine(settings: Settings) -> Engine:
    """Return an engine for the database of the settings that nobody uses."""
    free = FREE_ENGINES.get(_engine_key(settings))
    return free.pop() if free else connect(settings)


def give_back_engine(settings: Settings, engine: Engine) -> None:
    """Let another test use an engine on the same database; few of its connections stay open."""
    if settings.store == "none":  # each other store belongs to one test
        FREE_ENGINES.setdefault(_engine_key(settings), []).append(engine)
        if isinstance(engine.pool, QueuePool) and engine.pool.checkedin() <= MAX_FREE_CONNECTIONS:
            return
    engine.dispose()


def forget_engines(database_url: str) -> None:
    """Close all connections to a database that no other test uses."""
    for settings in [settings for settings in FREE_ENGINES if settings.database_url == database_url]:
        for engine in FREE_ENGINES.pop(settings):
            engine.dispose()


def _engine_key(settings: Settings) -> Settings:
    """Return settings that are equal for equal engines."""
    return Settings(database_url=settings.database_url, store=settings.store, web_threads=settings.web_threads)


def wait_for_copying() -> None:
    """Wait until what is copied from SQLite's log after an upload has been copied."""
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join()


def request_training(served: Served, dataset: str, **more: object) -> str:
    """Ask for a training; give the id of its job."""
    response = served.post("/v1/training-jobs", {"model": "tennis", "dataset": dataset, **more})
    assert response.status_code == 202, response.text
    return str(response.get_json()["id"])


def assert_problem(response: TestResponse, status: int, *pointers: str) -> dict[str, Any]:
    """See that the response is a whole problem document, with faults at exactly these places."""
    inference = response.request.path.startswith("/v2/")
    assert response.content_type == f"application/{'json' if inference else 'problem+json'}", response.text
    problem = response.get_json()
    if inference:  # by its protocol the sentence stands under another name, too
        assert problem.pop("error") == problem["detail"]
    assert response.status_code == problem["status"] == status, response.text
    assert problem.keys() == {"type", "title", "status", "detail", "instance", "request_id", "retryable", "errors"}
    assert problem["type"].startswith("urn:espalier:problem:")
    assert problem["request_id"] == response.headers["X-Request-Id"]
    assert [fault["pointer"] for fault in problem["errors"]] == list(pointers), problem["errors"]
    assert "Traceback" not in response.text
    return problem
