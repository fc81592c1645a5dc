"""Trainings whose table stays on disk, with real workers: the same document, kills, full disks, clusters, folders."""

import functools
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import undefer

import espalier
from espalier.training import out_of_core as core
from service.database.engine import Sessions, connect, read_session, sessions, transaction
from service.database.tables import DataSet, Job, Kind, State, Version
from service.repositories import job_queue, models
from service.settings import Settings
from service.worker import cleanup, loop, out_of_core
from service.worker.failures import Failed
from service.worker.handlers import JobContext, Outcome, perform
from tests.dask_cluster import local_cluster, processes
from tests.service.kept import keep_data_set
from tests.service.on_disk import BYTES_A_CELL, killed_always, killed_at_a_level, noting_answers, with_a_full_disk
from tests.service.starting import process_context
from tests.service.waiting import PATIENCE, until

LIMIT = 2**24
N_ROWS = 6_000
Run = Callable[..., Any]
ON_SQLITE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)  # where the database makes no difference


@functools.cache
def table() -> espalier.Dataset:
    """Numbers, categories, missing cells and weights; the classes need a deep tree."""
    lines = [
        f"{n * 37 % 1009},{n * 53 % 997 if n % 11 else ''},{'abcdef'[n * n % 6]},{1 + n % 3},{'pqr'[n * n % 7 % 3]}"
        for n in range(N_ROWS)
    ]
    text = "\n".join(["a,b,c,w,y", *lines, ""])
    return espalier.dataset_from_csv(text, target="y", weight="w")


@functools.cache
def tree() -> bytes:
    """Return the document of the tree that is grown from it in memory."""
    return espalier.to_json(espalier.train(table(), "cart"))


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return replace(settings, lease_seconds=1.0, work=str(tmp_path / "work"))


@pytest.fixture
def start(settings: Settings) -> Iterator[Run]:
    """Starts workers, by `loop.run` or another function; ends them after the test."""
    started: list[Any] = []

    def start_one(run: Run = loop.run, **changes: Any) -> None:
        started.append(process_context().Process(target=run, args=(replace(settings, **changes),)))
        started[-1].start()

    yield start_one
    for process in started:
        process.kill()
        process.join(PATIENCE)


@pytest.fixture(scope="module")
def worked(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of a database with one worker."""
    settings = replace(shared_settings, work=str(tmp_path_factory.mktemp("shared") / "work"))
    process = process_context().Process(target=loop.run, args=(settings,))
    process.start()
    yield settings
    process.kill()
    process.join(PATIENCE)


@pytest.mark.parametrize("preset", ["c45", "cart"])
def test_the_version_and_its_trace_are_those_of_a_training_in_memory(worked: Settings, preset: str) -> None:
    source = sessions(connect(worked))
    data_set_id = keep_data_set(source, table(), chunk_rows=1_000)
    in_memory, on_disk = (
        version(source, ended(source, enqueue(source, data_set_id, preset=preset, memory_limit=limit), State.SUCCEEDED))
        for limit in (None, LIMIT)
    )
    assert on_disk.document == in_memory.document
    assert on_disk.trace == in_memory.trace
    assert on_disk.data_set_id == in_memory.data_set_id == data_set_id
    until(lambda: folders(worked) == [], what="the removal of the folder")
    source.engine.dispose()


@pytest.mark.parametrize(("what", "settings"), [("job", "sqlite"), ("worker", "postgresql")], indirect=["settings"])
def test_a_job_goes_on_after_its_last_level_if_it_or_its_worker_is_killed(
    source: Sessions, settings: Settings, start: Run, tmp_path: Path, what: str
) -> None:
    data_set_id = keep_data_set(source, table())
    job_id = enqueue(source, data_set_id, memory_limit=LIMIT)
    for _ in range({"job": 1, "worker": 2}[what]):
        start(partial(loop.run, child=partial(killed_at_a_level, what)))
    job = ended(source, job_id, State.SUCCEEDED)
    assert job.attempt == 2
    saved = (tmp_path / "saved").read_text().splitlines()
    assert saved[:4] == ["1 0", "1 1", "1 2", "2 3"]
    assert version(source, job).document == tree()
    until(lambda: folders(settings) == [], what="the removal of the folder")


@ON_SQLITE
def test_the_folder_of_a_dead_job_is_removed(source: Sessions, settings: Settings, start: Run) -> None:
    job_id = enqueue(source, keep_data_set(source, table()), attempts=2, memory_limit=LIMIT)
    start(partial(loop.run, child=killed_always))
    ended(source, job_id, State.DEAD)
    until(lambda: folders(settings) == [], what="the removal of the folder")


def test_a_worker_removes_the_folders_of_jobs_that_have_ended_without_it_and_no_others(
    source: Sessions, settings: Settings
) -> None:
    data_set_id = keep_data_set(source)
    cancelled, waiting = (enqueue(source, data_set_id) for _ in range(2))
    with transaction(source) as session:
        job_queue.cancel(session, cancelled)
    for job_id in (cancelled, waiting, "of-another-database"):
        (out_of_core.folder_of(settings, job_id) / "below").mkdir(parents=True)
    (Path(settings.work) / "mine").mkdir()
    cleanup.Cleaner(source, settings).clean_up()
    assert folders(settings) == sorted(["espalier-job-of-another-database", f"espalier-job-{waiting}", "mine"])


@ON_SQLITE
@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_the_error_of_the_job(source: Sessions, settings: Settings, start: Run) -> None:
    job_id = enqueue(source, keep_data_set(source, table()), attempts=2, memory_limit=LIMIT)
    start(partial(loop.run, child=with_a_full_disk))
    job = ended(source, job_id, State.DEAD)
    assert job.error is not None
    assert (job.attempt, job.error["code"]) == (2, "work_folder")
    assert [each["pointer"] for each in job.error["errors"]] == ["/work"]
    assert "the work folder cannot be written to" in job.error["message"]
    until(lambda: folders(settings) == [], what="the removal of the folder")


def test_a_folder_that_cannot_be_made_is_the_error_of_the_job(source: Sessions, settings: Settings) -> None:
    Path(settings.work).write_text("a file")
    outcome = done(source, settings, enqueue(source, keep_data_set(source, table()), memory_limit=LIMIT))
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("work_folder", True)
    assert settings.work in outcome.message


@ON_SQLITE
def test_a_folder_with_files_of_others_fails_the_job_at_once(source: Sessions, settings: Settings) -> None:
    job_id = enqueue(source, keep_data_set(source, table()), memory_limit=LIMIT)
    work = out_of_core.folder_of(settings, job_id) / f"{espalier.__version__}-{LIMIT}"
    work.mkdir(parents=True)
    (work / "mine").touch()
    outcome = done(source, settings, job_id)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("invalid_input", False)
    assert [each["code"] for each in outcome.errors] == ["not_empty"]


def test_an_attempt_waits_for_the_folder_while_that_of_a_lost_worker_uses_it(
    source: Sessions, settings: Settings
) -> None:
    job_id = enqueue(source, keep_data_set(source, table()), memory_limit=LIMIT)
    folder = out_of_core.folder_of(settings, job_id)
    folder.mkdir(parents=True)
    outcomes: list[Outcome] = []
    progress = espalier.Progress()
    attempt = threading.Thread(target=lambda: outcomes.append(done(source, settings, job_id, progress)))
    with core.work_folder(folder / f"{espalier.__version__}-{LIMIT}"):
        attempt.start()
        until(lambda: progress.phase == "loading", what="the beginning of the attempt")
        attempt.join(3 * out_of_core.IN_USE_SECONDS)
        assert attempt.is_alive()
    attempt.join(PATIENCE)
    assert [type(outcome) for outcome in outcomes] == [models.NewVersion]


def test_a_large_table_stays_on_disk_if_its_configuration_allows_it() -> None:
    cart, m5, reptree = (espalier.training_config(name) for name in ("cart", "m5", "reptree"))
    settings = Settings(job_memory_mb=192)  # 128 MiB, and of the rest 24 bytes a cell: 2,796,202 cells
    small, large = (DataSet(n_rows=n_rows, declared={"columns": [{}] * 20}) for n_rows in (139_810, 139_811))
    limit = partial(out_of_core.memory_limit, settings)
    assert limit({"holdout": None}, cart, small) is None
    assert limit({"holdout": None, "memory_limit": None}, cart, large) == 96 * 2**20
    assert limit({"holdout": None, "memory_limit": LIMIT}, cart, small) == LIMIT
    assert limit({"holdout": {"fraction": 0.3}}, cart, large) is None
    assert limit({"holdout": None}, m5, large) is None
    assert limit({"holdout": None}, reptree, large) is None
    tall = DataSet(n_rows=2_600_000, declared={"columns": [{}] * 3})  # of which the rows alone need 104 MB
    assert limit({"holdout": None}, cart, tall) is None


@ON_SQLITE
def test_a_large_table_without_a_limit_in_the_request_is_trained_on_disk(source: Sessions, settings: Settings) -> None:
    rows = [[str(row * place % 7) for place in range(1_000)] + ["pq"[row % 2]] for row in range(2_800)]
    lines = [[f"x{place}" for place in range(1_000)] + ["y"], *rows]
    wide = espalier.dataset_from_csv("".join(",".join(line) + "\n" for line in lines), target="y")
    job_id = enqueue(source, keep_data_set(source, wide), max_depth=2)
    outcome = done(source, replace(settings, job_memory_mb=192), job_id)
    assert isinstance(outcome, models.NewVersion)
    assert outcome.document == espalier.to_json(espalier.train(wide, "cart", max_depth=2))
    assert folders(settings) == [f"espalier-job-{job_id}"]
    assert stat.S_IMODE(out_of_core.folder_of(settings, job_id).stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform != "linux", reason="watches the memory of the job")
def test_a_table_that_the_memory_of_a_job_cannot_hold_is_learned_from(on_sqlite: Settings, tmp_path: Path) -> None:
    n_rows, random = 500_000, np.random.default_rng(1)
    columns = {f"x{place}": random.standard_normal(n_rows) for place in range(20)}
    columns["y"] = np.where(columns["x0"] + columns["x1"] * columns["x2"] > 0, "yes", "no")
    data = espalier.dataset_from_columns(columns, target="y")
    settings = replace(on_sqlite, job_memory_mb=256, work=str(tmp_path / "work"))
    source = sessions(connect(settings))
    data_set_id = keep_data_set(source, data)
    process = process_context().Process(target=loop.run, args=(settings,))
    process.start()
    try:
        on_disk = enqueue(source, data_set_id, attempts=1, max_depth=4)
        assert version(source, ended(source, on_disk, State.SUCCEEDED)).document == espalier.to_json(
            espalier.train(data, "cart", max_depth=4)
        )
        in_memory = enqueue(source, data_set_id, attempts=1, max_depth=4, missing="surrogate")  # which must be
        job = ended(source, in_memory, State.DEAD)
    finally:
        process.terminate()
        process.join(PATIENCE)
        source.engine.dispose()
    assert job.error is not None
    assert job.error["code"] == "memory_limit"


@ON_SQLITE
def test_a_job_grows_on_the_workers_of_a_cluster(source: Sessions, start: Run) -> None:
    job_id = enqueue(source, keep_data_set(source, table()), memory_limit=LIMIT)
    with local_cluster(2) as dask:
        start(partial(loop.run, child=noting_answers), dask=dask.scheduler_address)
        job = ended(source, job_id, State.SUCCEEDED)
    assert job.attempt == 1
    assert version(source, job).document == tree()


@ON_SQLITE
def test_a_job_whose_scheduler_is_lost_is_tried_again_and_goes_on_with_another(
    source: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = enqueue(source, keep_data_set(source, table()), memory_limit=LIMIT)
    monkeypatch.setattr(core, "BYTES_A_CELL", BYTES_A_CELL)
    save, saved = core.save_level, list[int]()
    with processes() as (address, scheduler):

        def save_and_kill(folder: Path, number: int, level: Any) -> None:
            save(folder, number, level)
            saved.append(number)
            if number == 1:
                scheduler.kill()

        monkeypatch.setattr(core, "save_level", save_and_kill)
        outcome = done(source, replace(settings, dask=address), job_id)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable, saved) == ("cluster", True, [0, 1])
    with processes() as (address, scheduler):
        outcome = done(source, replace(settings, dask=address), job_id)
    assert isinstance(outcome, models.NewVersion)
    assert saved[2] == 2
    assert outcome.document == tree()


def enqueue(
    source: Sessions,
    data_set_id: str,
    *,
    preset: str = "cart",
    attempts: int = 3,
    memory_limit: int | None = None,
    **fields: Any,
) -> str:
    config = espalier.config_to_dict(espalier.training_config(preset, **fields))
    payload = {"model": "m", "dataset": data_set_id, "preset": preset, "config": config, "holdout": None}
    payload["memory_limit"] = memory_limit
    with transaction(source) as session:
        return job_queue.enqueue(
            session, Job(kind=Kind.TRAIN, payload=payload, model="m", data_set_id=data_set_id), max_attempts=attempts
        ).id


def done(source: Sessions, settings: Settings, job_id: str, progress: espalier.Progress | None = None) -> Outcome:
    """Run a job in this process."""
    with read_session(source) as session:
        payload = job_queue.find_job(session, job_id).payload
    context = JobContext(source, progress or espalier.Progress(), job_id, pytest.fail, settings)
    return perform(context, Kind.TRAIN, payload)


def ended(source: Sessions, job_id: str, state: State) -> Job:
    def look() -> Job | None:
        with read_session(source) as session:
            job = job_queue.find_job(session, job_id)
        assert job.state not in job_queue.FINAL or job.state == state, job.error
        return job if job.state == state else None

    return until(look, what=f"job {state}")


def version(source: Sessions, job: Job) -> Version:
    assert job.result is not None
    with read_session(source) as session:
        loaded = undefer(Version.document), undefer(Version.trace)
        return session.get_one(Version, job.result["version_id"], options=loaded)


def folders(settings: Settings) -> list[str]:
    root = Path(settings.work)
    return sorted(each.name for each in root.iterdir()) if root.exists() else []
