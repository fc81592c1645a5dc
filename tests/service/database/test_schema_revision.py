"""A program beside tables of another version: it says so, and neither answers nor takes a job."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from service.database.clock import new_id
from service.database.engine import Sessions, read_session, transaction
from service.database.tables import Job, Kind, State
from service.repositories import job_queue
from service.settings import Settings
from tests.factories import ROOT
from tests.service.served import assert_problem, serving
from tests.service.waiting import PATIENCE, until

NEWER = "the tables are of revision v9999, this program needs "
Process = subprocess.Popen[str]


@contextmanager
def worker(settings: Settings) -> Iterator[Process]:
    environment = os.environ | {"ESPALIER_DATABASE_URL": settings.database_url}
    with subprocess.Popen(
        [sys.executable, "-m", "service.cli", "worker"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def test_a_worker_waits_for_tables_that_are_still_older_and_ends_with_the_reason_when_they_are_newer(
    settings: Settings, source: Sessions
) -> None:
    with read_session(source) as session:
        current = session.scalar(text("SELECT version_num FROM alembic_version"))
    migrate_to(source, "v0000")
    first = enqueue(source)
    with worker(settings) as process:
        assert process.stderr is not None
        warned = process.stderr.readline()
        assert "the tables are of revision v0000, this program needs " in warned
        assert "run espalier migrate" in warned
        assert state(source, first) == State.QUEUED
        migrate_to(source, str(current))
        until(lambda: state(source, first) == State.FAILED)  # it works: there is no such data set

        migrate_to(source, "v9999")
        job = enqueue(source)
        _, said = process.communicate(timeout=PATIENCE)

        assert process.returncode == 2
        assert NEWER in said
        assert "this program is older: start the version that migrated them" in said
        assert state(source, job) == State.QUEUED


def test_a_web_process_refuses_every_request_until_the_tables_are_its_own_again(
    settings: Settings, source: Sessions
) -> None:
    with read_session(source) as session:
        current = session.scalar(text("SELECT version_num FROM alembic_version"))
    with serving(settings) as served:
        client = served.client
        assert client.get("/v1/models").status_code == 200

        migrate_to(source, "v9999")
        until(lambda: client.get("/v1/models").status_code == 503)  # what was seen holds for a second
        refused = served.post("/v1/models/any/predict", {"rows": [{}]})
        health = [client.get(path).status_code for path in ("/livez", "/readyz", "/openapi.json")]
        migrate_to(source, str(current))

        assert NEWER in assert_problem(refused, 503)["detail"]
        assert refused.headers["Retry-After"] == "1"
        assert health == [200, 503, 200]
        assert client.get("/v1/models").status_code == 200


def migrate_to(source: Sessions, revision: str) -> None:
    """Have the tables say that they are of a revision."""
    with transaction(source) as session:
        session.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def enqueue(source: Sessions) -> str:
    """Put a job into the queue that fails as soon as it is begun."""
    with transaction(source) as session:
        payload = {"model": "m", "dataset": new_id(), "config": {}}
        return job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload=payload), max_attempts=1).id


def state(source: Sessions, job: str) -> str:
    with read_session(source) as session:
        return str(job_queue.find_job(session, job).state)
