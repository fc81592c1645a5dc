"""What is done to a system while clients ask: each fault is a function, and a row of FAULTS."""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from service.database.tables import Job, JobEvent, State
from service.repositories.job_queue import FINAL, Event
from tests.acceptance.running import until
from tests.chaos.databases import Database
from tests.chaos.load import Load
from tests.chaos.system import MINUTES, Process, System, kill_group

LONGEST_PAUSE = 1.5  # seconds before a fault: somewhere in the life of a job
CLOCKS = [
    str(found) for found in Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
]  # Debian's package libfaketime
HOURS = ("+2h", "-2h")
HALT_SECONDS = 30.0  # after which a worker that is halted is taken for one that holds SQLite's lock
MOST_HALTS = 20


@dataclass(frozen=True, slots=True)
class Stage:
    """What a fault is done to: the system under its load, and the generator of random choices."""

    system: System
    load: Load
    draw: random.Random

    def pause(self) -> None:
        """Let the clients go on for a while."""
        time.sleep(self.draw.uniform(0, LONGEST_PAUSE))

    def expect(self, holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
        """Note `otherwise` as a broken promise unless `holds`."""
        if not holds:
            self.load.promises.wrong.append(otherwise)


def kill_worker(stage: Stage) -> None:
    """Kill -9 of a worker with all its processes; another is started in its place."""
    until(lambda: at_work(stage.system), seconds=MINUTES, what="a worker at work")
    stage.pause()
    stage.system.replace_worker(stage.draw.choice(stage.system.workers))


def kill_child(stage: Stage) -> None:
    """Kill -9 of the process that works at a job; the worker goes on."""
    holder, _ = until(lambda: at_work(stage.system), seconds=MINUTES, what="a worker at work")
    stage.pause()
    if child := stage.system.busy_child(holder):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def kill_web(stage: Stage) -> None:
    """Kill -9 of a web process, or, with probability 1/4, of the whole web server."""
    until(stage.system.is_ready, seconds=MINUTES, what="a web server that answers")
    stage.pause()
    if stage.draw.random() < 0.25:
        stage.system.kill_web()
        return
    process = stage.draw.choice(until(stage.system.web_processes, seconds=MINUTES, what="a web process"))
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def kill_everything(stage: Stage) -> None:
    """Kill -9 of all processes at once, as when the power fails; all are started again."""
    until(lambda: at_work(stage.system), seconds=MINUTES, what="a worker at work")
    stage.pause()
    for one in (stage.system.web, *stage.system.workers):
        os.killpg(one.pid, signal.SIGKILL)
    stage.system.kill_web()
    for one in list(stage.system.workers):
        stage.system.replace_worker(one)


def halt_worker(stage: Stage) -> None:
    """SIGSTOP of a worker at work until another has its job, then SIGCONT: its further writes must be refused."""
    halts = (_halt(stage.system) for _ in range(MOST_HALTS))
    stage.expect(any(halts), f"of {MOST_HALTS} halted workers none lost its job to another")


def _halt(system: System) -> bool:
    """Halt a worker until another has its job. Return False if that does not happen.

    It does not if the job had already ended; nor, on SQLite, if the halted worker is writing and so locks the file.
    """
    holder, job = until(lambda: at_work(system), seconds=MINUTES, what="a worker at work")
    patience = time.monotonic() + (MINUTES if system.database.is_postgresql else HALT_SECONDS)
    os.kill(holder.pid, signal.SIGSTOP)
    try:
        while worker_of(system, job) == holder.pid:
            if state_of(system, job) in FINAL or time.monotonic() > patience:
                return False
            time.sleep(0.05)
    finally:
        os.kill(holder.pid, signal.SIGCONT)
    return True


def cancel_at_the_end(stage: Stage) -> None:
    """A job that runs is cancelled at a moment at which it may just be ending."""
    promises = stage.load.promises
    _, job = until(lambda: at_work(stage.system), seconds=MINUTES, what="a worker at work")
    stage.pause()
    answer = stage.load.tell("POST", f"/v1/jobs/{job}/cancel", {})
    if answer.status_code != 409 and stage.load.expect(answer, 202) and answer.json()["state"] == State.CANCELLED:
        promises.cancelled.add(job)


def restart_database(stage: Stage) -> None:
    """Restart PostgreSQL, either with its open transactions aborted or as after a crash."""
    stage.pause()
    stage.system.database.restart(stage.draw.choice(("fast", "immediate")))


def set_clocks_wrong(stage: Stage) -> None:
    """Add two workers, one with its clock two hours fast and one two hours slow: both do jobs, and no lease is lost."""
    system = stage.system
    before, lost = list(system.workers), n_lost(system)
    wrong = {"LD_PRELOAD": CLOCKS[0], "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    after = [system.start_worker(**wrong, FAKETIME=hours) for hours in HOURS]
    try:
        for worker in after:
            until(lambda worker=worker: n_done(system, worker), seconds=MINUTES, what="a job done by a wrong clock")
    finally:
        for worker in after:
            worker.terminate()
            worker.wait(MINUTES)
        system.workers[:] = before
    stage.expect(n_lost(system) == lost, "a lease was lost by a wrong clock")


def fill_disk(stage: Stage) -> None:
    """Fill the disk of the database until a client is asked to try again later; then make room again."""
    stage.pause()
    before = stage.load.promises.refused
    ballast = stage.system.database.fill()
    try:
        until(lambda: stage.load.promises.refused > before, seconds=MINUTES, what="a client that is told to come again")
        stage.pause()
    finally:
        ballast.unlink()
        stage.system.database.start_if_down()


def poison(stage: Stage) -> None:
    """Crash the process of one job at every attempt: the job ends dead, and the workers live."""
    system, load = stage.system, stage.load
    workers = [one.pid for one in system.workers]
    candidates = [{"params": {"max_depth": depth}} for depth in range(1, 9)]
    body = {"dataset": load.data, "candidates": candidates, "folds": 20}
    job = load.tell("POST", "/v1/evaluation-jobs", body).json()["id"]
    load.promises.jobs[job] = None
    deadline = time.monotonic() + MINUTES
    while (state := state_of(system, job)) in (State.QUEUED, State.RUNNING) and time.monotonic() < deadline:
        holder = next((one for one in system.workers if one.pid == worker_of(system, job)), None)
        if state == State.RUNNING and holder and (child := system.busy_child(holder)):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGSEGV)
        time.sleep(0.05)
    stage.expect(state == State.DEAD, f"the poison job {job} is {state}")
    stage.expect(
        workers == [one.pid for one in system.workers] and not system.dead(), "a worker fell with the poison job"
    )
    load.promises.jobs[job] = state


def two_reapers(stage: Stage) -> None:
    """Kill all workers after others were started: each of their jobs is taken over by one of the others."""
    system = stage.system
    fallen = list(system.workers)
    until(lambda: at_work(system), seconds=MINUTES, what="a worker at work")
    for _ in fallen:
        system.start_worker()
    for one in fallen:
        kill_group(one)
        system.workers.remove(one)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done, how often in the long form, and where it cannot be done (in words; empty: it can)."""

    do: Callable[[Stage], None]
    times: int
    cannot: Callable[[Database], str] = lambda _: ""
    attempts: int = 20  # that a job has: most outlive the faults


def _has_no_restart(database: Database) -> str:
    return "" if database.is_postgresql else "nothing to restart: it is a file"


def _has_one_clock(database: Database) -> str:
    if not database.is_postgresql:
        return "its processes share the clock of one machine"
    return "" if CLOCKS else "libfaketime is not installed"


def _has_no_disk(database: Database) -> str:
    return "" if database.has_disk else "only root may mount a small disk"


FAULTS: Mapping[str, Fault] = {
    "kill -9 of a worker": Fault(kill_worker, 50),
    "kill -9 of a job's process": Fault(kill_child, 50, attempts=3),
    "kill -9 of a web process": Fault(kill_web, 50),
    "kill -9 of everything": Fault(kill_everything, 5),
    "worker halted past its lease": Fault(halt_worker, 5),
    "cancel against completion": Fault(cancel_at_the_end, 50),
    "database restarted": Fault(restart_database, 5, _has_no_restart),
    "workers' clocks ±2 h": Fault(set_clocks_wrong, 1, _has_one_clock),
    "disk full": Fault(fill_disk, 3, _has_no_disk),
    "job that crashes": Fault(poison, 2, attempts=3),
    "two reapers": Fault(two_reapers, 3),
}


# --- looks at the database


def at_work(system: System) -> tuple[Process, str] | None:
    """Give a worker that holds a job, and the job."""
    with system.look() as session:
        running = session.execute(select(Job.worker, Job.id).where(Job.state == State.RUNNING)).all()
    by_process = {one.pid: one for one in system.workers}
    held = ((by_process.get(process_of(row.worker)), row.id) for row in running)
    return next(((worker, job) for worker, job in held if worker is not None), None)


def worker_of(system: System, job: str) -> int:
    """The process id of the worker that had the job last."""
    with system.look() as session:
        return process_of(session.scalar(select(Job.worker).where(Job.id == job)))


def state_of(system: System, job: str) -> str:
    """The state of a job."""
    with system.look() as session:
        return str(session.scalar(select(Job.state).where(Job.id == job)))


def n_done(system: System, worker: Process) -> int:
    """How many jobs a worker has brought to a good end."""
    mine = JobEvent.to_state == State.SUCCEEDED, JobEvent.worker.endswith(f":{worker.pid}")
    with system.look() as session:
        return session.scalar(select(func.count()).where(*mine)) or 0


def n_lost(system: System) -> int:
    """How many leases were lost so far."""
    with system.look() as session:
        return session.scalar(select(func.count()).where(JobEvent.event == Event.LOSE_LEASE)) or 0


def process_of(worker: str | None) -> int:
    """The process id in the name of a worker."""
    return int((worker or ":0").rpartition(":")[2])
