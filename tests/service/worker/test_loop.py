"""The worker, with real processes: what it saves, what it survives, and how fast it stops."""

import itertools
import mmap
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import select, text

import espalier
from service.database.engine import Sessions, connect, read_session, sessions, transaction
from service.database.tables import Job, Kind, State, Version
from service.errors import Unavailable
from service.repositories import job_queue
from service.repositories.job_queue import FENCED_OUT
from service.settings import Settings
from service.worker import loop as worker
from service.worker.child_process import STOP_SECONDS, resident_mb
from tests.service.acting import only_listen, pid_in, runs, work
from tests.service.kept import keep_data_set
from tests.service.starting import process_context
from tests.service.waiting import PATIENCE, until

Start = Callable[..., BaseProcess]
HOUR = 3600.0
ON_SQLITE = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)  # where the database makes no difference


@pytest.fixture(scope="module")
def shared(shared_settings: Settings) -> Iterator[Sessions]:
    """Sessions of a database with one worker, for all tests that watch only their own job."""
    process = process_context().Process(target=work, args=(replace(shared_settings, lease_seconds=1.0),))
    process.start()
    engine = connect(shared_settings)
    yield sessions(engine)
    assert process.is_alive()
    process.terminate()
    process.join(PATIENCE)
    process.kill()
    engine.dispose()


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A short lease, so that a lost worker is noticed soon."""
    return replace(settings, lease_seconds=1.0)


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    """Starts workers whose jobs do what their payload says; ends those that still run after the test."""
    started: list[BaseProcess] = []

    def start_one(**changes: float) -> BaseProcess:
        process = process_context().Process(target=work, args=(replace(settings, **changes),))
        process.start()
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.kill()
        process.join()


def test_a_job_that_succeeds_leaves_one_version_that_names_it(shared: Sessions) -> None:
    job_id = _enqueue(shared, act="finish", model="named")

    job = _until(shared, job_id, State.SUCCEEDED)

    [version] = _versions(shared, "named")
    assert (version.number, version.job_id, version.model.name) == (1, job_id, "named")
    expected = {"model": "named", "version": 1, "version_id": version.id, "summary": {"n_leaves": 3}}
    assert job.result == expected
    assert job.progress == 1.0


@ON_SQLITE
@pytest.mark.parametrize("pruning", [None, {"method": "rules", "estimate": "pessimistic"}])
def test_a_model_that_is_larger_than_allowed_is_not_kept(settings: Settings, source: Sessions, pruning: Any) -> None:
    config = espalier.config_to_dict(espalier.training_config("cart", pruning=pruning))
    payload = {"model": "drugs", "dataset": keep_data_set(source), "preset": "cart", "config": config}
    process = process_context().Process(target=worker.run, args=(replace(settings, max_nodes=2),))
    process.start()
    try:
        job = _until(source, _enqueue_real(source, Kind.TRAIN, payload | {"holdout": None}), State.FAILED)
    finally:
        process.terminate()
        process.join(PATIENCE)

    assert job.error is not None
    assert (job.error["code"], job.attempt) == ("too_large", 1)
    assert "at most 2" in job.error["message"]
    assert ("nodes" if pruning is None else "rules and") in job.error["message"]
    assert _versions(source) == []


def test_a_training_and_its_pruning_by_the_real_core_become_two_versions(settings: Settings, source: Sessions) -> None:
    config = espalier.config_to_dict(espalier.training_config("cart"))
    train = {"model": "drugs", "dataset": keep_data_set(source), "preset": "cart", "config": config}
    process = process_context().Process(target=worker.run, args=(settings,))
    process.start()
    try:
        train_id = _enqueue_real(source, Kind.TRAIN, train | {"holdout": {"rows": [0, 5, 8]}})
        trained = _until(source, train_id, State.SUCCEEDED)
        assert trained.result is not None
        parent = {"model": "drugs", "version": 1, "version_id": trained.result["version_id"]}
        prune = parent | {"method": "reduced_error", "params": {}, "holdout": None}
        prune_id = _enqueue_real(source, Kind.PRUNE, prune)
        pruned = _until(source, prune_id, State.SUCCEEDED)
    finally:
        process.terminate()
        process.join(PATIENCE)

    assert process.exitcode == 0
    assert pruned.result is not None
    assert (pruned.result["model"], pruned.result["version"]) == ("drugs", 2)
    assert [version.parent_number for version in _versions(source)] == [None, 1]


def test_progress_and_phase_can_be_seen_while_a_job_runs(shared: Sessions, tmp_path: Path) -> None:
    job_id = _enqueue(shared, act="wait", until_exists=str(tmp_path / "go"))

    try:
        job = until(lambda: _seen(shared, job_id, progress=0.5), what="progress of one half")
    finally:  # other tests have the same worker
        (tmp_path / "go").touch()
    assert (job.state, job.phase) == ("running", "waiting for the end")


def test_a_fault_of_the_job_fails_it_at_once_with_every_place(shared: Sessions) -> None:
    job_id = _enqueue(shared, act="invalid")

    job = _until(shared, job_id, State.FAILED)

    assert job.attempt == 1
    assert job.error is not None
    assert job.error["code"] == "invalid_input"
    assert job.error["errors"] == [
        {"pointer": "/criterion", "code": "unknown_value", "message": "must be gini"},
        {"pointer": "/seed", "code": "type", "message": "must be a whole number"},
    ]


def test_a_method_that_does_not_apply_fails_at_once(shared: Sessions) -> None:
    job_id = _enqueue(shared, act="not applicable")

    job = _until(shared, job_id, State.FAILED)

    assert job.error == {"code": "not_applicable", "message": "no rows were held out", "errors": []}


def test_a_missing_data_set_fails_at_once(shared: Sessions) -> None:
    job_id = _enqueue(shared, act="train")

    job = _until(shared, job_id, State.FAILED)

    assert job.error is not None
    assert job.error["message"] == "there is no data set 'gone'"


def test_an_unexpected_fault_is_tried_again_and_says_no_more_than_its_kind(shared: Sessions) -> None:
    job_id = _enqueue(shared, act="unexpected", attempts=2)

    job = _until(shared, job_id, State.DEAD)

    assert job.attempt == 2
    expected = {"code": "unexpected", "message": "the job failed with an unexpected RuntimeError", "errors": []}
    assert job.error == expected


def test_a_job_that_kills_its_process_is_dead_after_its_attempts_and_the_worker_goes_on(shared: Sessions) -> None:
    poison = _enqueue(shared, act="die", attempts=2)

    job = _until(shared, poison, State.DEAD)

    assert job.attempt == 2
    assert job.error is not None
    assert job.error["code"] == "child_ended"
    assert "killed (signal 9)" in job.error["message"]
    _until(shared, _enqueue(shared, act="finish"), State.SUCCEEDED)


def test_a_result_that_cannot_be_saved_ends_the_attempt_with_that_reason(shared: Sessions) -> None:
    job_id = _enqueue(shared, act="finish", model="not/legal", attempts=1)

    job = _until(shared, job_id, State.DEAD)

    assert job.error is not None
    assert job.error["code"] == "not_saved"
    assert job_id not in [version.job_id for version in _versions(shared)]


def test_a_process_that_is_killed_once_does_its_job_at_the_next_attempt(shared: Sessions, tmp_path: Path) -> None:
    job_id = _enqueue(
        shared, act="wait", model="killed", until_exists=str(tmp_path / "go"), pid_file=str(tmp_path / "pid")
    )
    try:
        os.kill(pid_in(tmp_path / "pid"), signal.SIGKILL)
    finally:
        (tmp_path / "go").touch()

    job = _until(shared, job_id, State.SUCCEEDED)

    assert job.attempt == 2
    assert len(_versions(shared, "killed")) == 1


@ON_SQLITE
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the memory of another process")
def test_a_job_that_takes_too_much_memory_is_stopped_with_the_reason(source: Sessions, start: Start) -> None:
    job_id = _enqueue(source, act="eat", megabytes="300", attempts=1)  # to what it has without them
    start(job_memory_mb=300)

    job = _until(source, job_id, State.DEAD)

    assert job.error is not None
    assert job.error["code"] == "memory_limit"
    assert "more than 300 MiB" in job.error["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_file_that_is_mapped_into_memory_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(64 * 2**20))
    before = resident_mb(os.getpid())
    with (tmp_path / "file").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert not any(mapped[place] for place in range(0, len(mapped), 4096))
        with_file = resident_mb(os.getpid())
    own = b"x" * (64 * 2**20)
    with_own = resident_mb(os.getpid())
    assert before is not None
    assert with_file is not None
    assert with_own is not None
    assert (with_file - before < 16, with_own - before > 48, len(own)) == (True, True, 64 * 2**20)


@ON_SQLITE
def test_a_job_that_hangs_is_stopped_at_the_time_limit(source: Sessions, start: Start) -> None:
    job_id = _enqueue(source, act="hang", attempts=1)
    start(job_seconds=1.0)

    job = _until(source, job_id, State.DEAD)

    assert job.error is not None
    assert job.error["message"] == "the job took longer than 1 s"


@pytest.mark.parametrize("act", ["wait", "hang"], ids=["that listens", "that does not listen"])
def test_a_running_job_is_cancelled_whether_it_listens_or_not(
    act: str, start: Start, source: Sessions, tmp_path: Path
) -> None:
    job_id = _enqueue(source, act=act, pid_file=str(tmp_path / "pid"))
    start(lease_seconds=HOUR, job_seconds=HOUR)
    child = pid_in(tmp_path / "pid")
    until(lambda: _seen(source, job_id, progress=0.5), what="the last heartbeat within a third of an hour")

    with transaction(source) as session:
        job_queue.cancel(session, job_id)
    _until(source, job_id, State.CANCELLED)

    until(lambda: not runs(child), what="the end of the child")
    assert _versions(source) == []


def test_what_a_worker_waits_for_before_a_job_is_cancelled_is_less_than_two_seconds() -> None:
    assert worker.HEARTBEAT_SECONDS + worker.WATCH_SECONDS + STOP_SECONDS + worker.WATCH_SECONDS < 2


def test_a_worker_that_is_told_to_end_gives_its_job_back_and_does_not_wait_for_it(
    start: Start, source: Sessions, tmp_path: Path
) -> None:
    job_id = _enqueue(source, act="hang", pid_file=str(tmp_path / "pid"))
    process = start(lease_seconds=HOUR, job_seconds=HOUR)
    child = pid_in(tmp_path / "pid")

    os.kill(process.pid or 0, signal.SIGTERM)
    process.join(PATIENCE)

    assert process.exitcode == 0
    assert not runs(child)
    job = _until(source, job_id, State.QUEUED)
    assert job.attempt == 0


def test_after_kill_9_of_the_worker_its_child_ends_and_another_worker_does_the_job_once(
    start: Start, source: Sessions, tmp_path: Path
) -> None:
    job_id = _enqueue(source, act="wait", until_exists=str(tmp_path / "go"), pid_file=str(tmp_path / "pid"))
    first = start()
    child = pid_in(tmp_path / "pid")

    first.kill()
    until(lambda: not runs(child), what="the end of the child")
    (tmp_path / "go").touch()
    start()
    job = _until(source, job_id, State.SUCCEEDED)

    assert job.attempt == 2
    assert len(_versions(source)) == 1
    with read_session(source) as session:
        names = [event.event for event in job_queue.list_events(session, job_id)]
    assert names == ["enqueue", "claim", "lose_lease", "claim", "succeed"]


def test_a_worker_that_slept_past_its_lease_saves_nothing(start: Start, source: Sessions, tmp_path: Path) -> None:
    job_id = _enqueue(source, act="wait", until_exists=str(tmp_path / "go"), pid_file=str(tmp_path / "pid"))
    sleeper = start()
    pid_in(tmp_path / "pid")
    until(lambda: _is_halted(source, sleeper), what="a worker that is halted while it does not write")
    other = start()
    until(lambda: _seen(source, job_id, attempt=2), what="the second attempt")
    (tmp_path / "go").touch()  # now both children finish
    job = _until(source, job_id, State.SUCCEEDED)
    other.kill()

    os.kill(sleeper.pid or 0, signal.SIGCONT)
    _until(source, _enqueue(source, act="finish", model="next"), State.SUCCEEDED)  # the sleeper has gone on

    assert [version.model.name for version in _versions(source)] == ["m", "next"]
    with read_session(source) as session:
        assert job_queue.find_job(session, job_id).result == job.result
        events = [event.event for event in job_queue.list_events(session, job_id)]
        assert [event for event in events if event != FENCED_OUT][-1] == "succeed"


def test_a_long_job_keeps_its_lease(start: Start, source: Sessions, tmp_path: Path) -> None:
    job_id = _enqueue(source, act="wait", until_exists=str(tmp_path / "go"))
    start(lease_seconds=3.0)
    start(lease_seconds=3.0)
    first = until(lambda: _seen(source, job_id, state=State.RUNNING), what="the claim").lease_expires_at
    assert first is not None
    until(lambda: (_lease_end(source, job_id) - first).total_seconds() > 3, what="heartbeats beyond the first lease")
    (tmp_path / "go").touch()

    assert _until(source, job_id, State.SUCCEEDED).attempt == 1


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_worker_survives_that_the_server_drops_its_connections(
    settings: Settings, start: Start, source: Sessions, tmp_path: Path
) -> None:
    job_id = _enqueue(source, act="wait", until_exists=str(tmp_path / "go"), pid_file=str(tmp_path / "pid"))
    start()
    pid_in(tmp_path / "pid")
    server = sqlalchemy.create_engine(settings.database_url, isolation_level="AUTOCOMMIT")
    drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
    with server.connect() as connection:
        connection.execute(text(drop + "pg_backend_pid()"))
    server.dispose()
    (tmp_path / "go").touch()

    assert _until(source, job_id, State.SUCCEEDED).attempt == 1


@ON_SQLITE
def test_a_worker_that_fails_at_every_claim_cleans_up_nevertheless(
    settings: Settings, source: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, failures = threading.Event(), itertools.count(1)
    cleaned: list[str] = []

    def fail(_: object) -> bool:
        if next(failures) == 3:
            stop.set()
        raise RuntimeError("something that nobody expects")

    monkeypatch.setattr(job_queue, "has_work", fail)
    monkeypatch.setattr(worker, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(worker.Cleaner, "clean_up", lambda _: cleaned.append("up"))

    worker.run(settings, stop)

    assert cleaned == ["up"] * 2  # not after the third failure: the worker stops


def test_a_child_ends_when_the_pipe_to_its_worker_does() -> None:
    current_service, there = process_context().Pipe()
    process = process_context().Process(target=only_listen, args=(there,))
    process.start()
    there.close()
    current_service.close()
    process.join(PATIENCE)

    assert process.exitcode == 1


def test_neither_worker_nor_child_loads_the_web() -> None:
    loaded = "[m for m in ('flask', 'marshmallow', 'pyarrow') if m in sys.modules]"
    code = f"import service.worker.loop, service.worker.child_main, sys; print({loaded})"

    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert printed == "[]\n"


# --- what the tests ask


def _enqueue(source: Sessions, *, act: str, attempts: int = 3, model: str = "m", **payload: str) -> str:
    payload |= {"act": act, "model": model}
    with transaction(source) as session:
        return job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload=payload, model=model), max_attempts=attempts).id


def _enqueue_real(source: Sessions, kind: Kind, payload: dict[str, Any]) -> str:
    with transaction(source) as session:
        return job_queue.enqueue(session, Job(kind=kind, payload=payload, model="drugs"), max_attempts=1).id


def _seen(source: Sessions, job_id: str, **wanted: object) -> Job | None:
    with read_session(source) as session:
        job = job_queue.find_job(session, job_id)
    return job if all(getattr(job, name) == value for name, value in wanted.items()) else None


def _until(source: Sessions, job_id: str, state: State) -> Job:
    return until(lambda: _seen(source, job_id, state=state), what=f"job {state}")


def _is_halted(source: Sessions, worker: BaseProcess) -> bool:
    """Halt a worker; False, and it goes on, if it holds SQLite's lock: nobody else could write until it does."""
    os.kill(worker.pid or 0, signal.SIGSTOP)
    try:
        with transaction(source):
            return True
    except Unavailable:
        os.kill(worker.pid or 0, signal.SIGCONT)
        return False


def _lease_end(source: Sessions, job_id: str) -> Any:
    with read_session(source) as session:
        return job_queue.find_job(session, job_id).lease_expires_at


def _versions(source: Sessions, model: str | None = None) -> list[Version]:
    """Return all versions, or those of one model, in the order in which they were saved."""
    with read_session(source) as session:
        versions = session.scalars(select(Version).order_by(Version.id))
        return [version for version in versions if model in (None, version.model.name)]
