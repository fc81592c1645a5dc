"""The worker: claims jobs, runs each in a child process, keeps its lease alive, and saves what comes of it.

    worker ──start──> child        while there is no job: it has loaded what a job needs, and waits
    worker ──pipe───> child        the job's payload
    worker <──pipe─── child        progress now and then, at the end the outcome
    worker ──pipe───> child        "stop"; the end of the pipe means that the worker is gone: the child ends itself

The child only computes. The worker alone writes, guarded by the lease: the new version and the end of the job are
one transaction. Whatever kills the child (a crash, the memory limit, the time limit) is an attempt with a reason.
"""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from service import log_config
from service.database.engine import Sessions, connect, end_idle_transactions, read_session, sessions, transaction
from service.database.migrate import check_schema_revision
from service.errors import LeaseLost, SchemaMismatch, Unavailable
from service.repositories import decisions, job_queue, models
from service.repositories.job_queue import Claim, note_fenced_out
from service.settings import Settings
from service.tracing import Traces, job_span, spanning
from service.worker.child import Child, child_main, wait_for_a_job
from service.worker.cleanup import Cleaner
from service.worker.handlers import Cancelled, Failed, Finished, Outcome, Part, Released, Reported, problem

LOG = logging.getLogger(__name__)

# Forked from a process that has loaded everything (`service.worker.job_template`): libraries of macOS do not bear that.
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
POLL_SECONDS = 0.1  # between looks for work
WATCH_SECONDS = 0.1  # between looks at a running child
FLAG_SECONDS = 0.5  # between looks at the cancel flag
PROGRESS_SECONDS = 1.0  # between writes of a progress that changed
STOP_SECONDS = 0.8  # that a child has to stop by itself before it is killed
PAUSE_SECONDS = 2.0  # before a job is tried again that could not read the database


@dataclass(frozen=True, slots=True)
class Lost:
    """Another worker has the job: nothing is to be written."""


@dataclass(slots=True)
class IdleChild:
    """The child that waits for the next job, if there is one."""

    settings: Settings
    child: Child
    waiting: tuple[BaseProcess, Connection] | None = None

    def prepare(self) -> None:
        """Have one wait."""
        if self.waiting is None or not self.waiting[0].is_alive():
            self.end()
            self.waiting = _spawned(self.settings, self.child)

    def take(self) -> tuple[BaseProcess, Connection]:
        """Give the one that waits, or a new one."""
        self.prepare()
        taken, self.waiting = self.waiting, None
        assert taken is not None  # noqa: S101 - it was prepared
        return taken

    def end(self) -> None:
        """End the one that waits."""
        if self.waiting is not None:
            _end(*self.waiting)
            self.waiting = None


@dataclass(slots=True)
class Attempt:
    """A child at work on a claimed job, as the worker sees it."""

    claim: Claim
    process: BaseProcess
    pipe: Connection
    began: float = field(default_factory=time.monotonic)
    progress: float = 0.0
    phase: str = ""
    told: tuple[float, str] = (0.0, "")  # the progress that was last written
    beat_at: float = field(default_factory=time.monotonic)  # of the last heartbeat
    looked_at: float = field(default_factory=time.monotonic)  # of the last look at the cancel flag
    part: Part | None = None  # of the result, not logged yet


def run(settings: Settings, stop: threading.Event | None = None, *, child: Child | None = None) -> None:
    """Work until told to stop; a job in progress is then given back without losing an attempt.

    Args:
        settings: where the database is, leases and limits.
        stop: set to stop; without one, SIGTERM and SIGINT stop the worker (main thread only).
        child: what the process of a job runs, `child_main` unless told otherwise.

    Raises:
        SettingsError: traces are asked for, and OpenTelemetry is not installed.
        SchemaMismatch: the tables are newer than this worker; a job in progress is left to a worker of their version.
    """
    if stop is None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            # In a thread of its own: this one may hold the event's lock, being about to wait.
            signal.signal(number, lambda *_, stop=stop: threading.Thread(target=stop.set, daemon=True).start())
    traces = spanning(settings)
    engine = connect(settings)
    end_idle_transactions(engine, seconds=settings.lease_seconds)
    source = sessions(engine)
    name = f"{socket.gethostname()}:{os.getpid()}"
    spare = IdleChild(settings, child or child_main)
    cleaner = Cleaner(source, retention_days=settings.retention_days, job_days=settings.job_days)
    try:
        spare.prepare()  # before a job is claimed: the first one takes a second or two
        while not stop.is_set():
            if not _work_once(settings, source, name=name, stop=stop, spare=spare, traces=traces):
                spare.prepare()
                cleaner.clean_up()
                stop.wait(POLL_SECONDS)
    finally:
        spare.end()
        engine.dispose()


def _work_once(
    settings: Settings, source: Sessions, *, name: str, stop: threading.Event, spare: IdleChild, traces: Traces | None
) -> bool:
    """Do one job if there is one; True if it is worth looking for the next at once."""
    try:
        with read_session(source) as session:
            check_schema_revision(session)
            if not job_queue.has_work(session):
                return False
        with transaction(source) as session:
            check_schema_revision(session)
            claim = job_queue.claim(session, worker=name, lease_seconds=settings.lease_seconds)
        if claim is None:
            return False
        with log_config.about(job_id=claim.job_id):
            LOG.info("job %s: attempt %d of %d", claim.job_id, claim.attempt, claim.max_attempts)
            span = job_span(traces, job_id=claim.job_id, kind=claim.kind, attempt=claim.attempt)
            with span as say, _started(claim, spare) as attempt:
                outcome = _within_limits(settings, _watch(settings, source, attempt, stop))
                _kill(attempt.process)  # the system takes back its memory while the outcome is written
                say(_settle(source, claim, outcome, stop), failed=isinstance(outcome, Failed))
    except SchemaMismatch as error:
        if error.newer:
            raise
        LOG.warning("%s; this worker takes no job until then", error)
        stop.wait(PAUSE_SECONDS)
        return False
    except Unavailable as error:
        LOG.warning("%s; trying again", error.log_message)
        stop.wait(1.0)
        return False
    except Exception:  # the worker outlives every fault; the lease of the job runs out and it is taken up again
        LOG.exception("the worker met an unexpected fault")
        stop.wait(1.0)
        return False
    return True


# --- watching a child


@contextmanager
def _started(claim: Claim, spare: IdleChild) -> Iterator[Attempt]:
    process, pipe = spare.take()
    try:
        with suppress(OSError):  # it has ended: whoever watches it sees that
            pipe.send(claim)
        yield Attempt(claim=claim, process=process, pipe=pipe)
    finally:
        _end(process, pipe)


def _kill(process: BaseProcess) -> None:
    """Kill a child that is still there: the template buries those that ended, and their numbers go to others."""
    if process.is_alive():
        process.kill()


def _end(process: BaseProcess, pipe: Connection) -> None:
    _kill(process)
    process.join()
    pipe.close()


def _spawned(settings: Settings, child: Child) -> tuple[BaseProcess, Connection]:
    context: Any = multiprocessing.get_context(START_METHOD)
    context.set_forkserver_preload(["service.worker.child", "service.worker.job_template"])
    current_service, there = context.Pipe()
    process = context.Process(target=wait_for_a_job, args=(child, settings, there), daemon=True)
    resource_tracker.ensure_running()  # its start would lift the mask that comes next
    # Ctrl-C reaches every process of the terminal; the child inherits the mask and leaves the decision to the worker.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()
    return process, current_service


def _watch(settings: Settings, source: Sessions, attempt: Attempt, stop: threading.Event) -> Outcome | Lost:
    """Wait for the outcome, with heartbeats; whoever leaves here early has the child killed."""
    while True:
        outcome = _receive(attempt)
        if stop.is_set() and not isinstance(
            outcome, Finished | Reported
        ):  # what stops the worker may have ended the child, too
            return Released("the worker was stopped")
        outcome = outcome or _over_limit(settings, attempt)
        if outcome is not None:
            return outcome
        try:
            if attempt.part is not None:
                _log_part(settings, source, attempt, stop)
            if _is_cancelled(settings, source, attempt):
                return _cancel(attempt)
        except LeaseLost:
            return Lost()
        except Unavailable as error:  # the token still guards us: keep computing until the database is back
            LOG.warning("job %s: no heartbeat: %s", attempt.claim.job_id, error.log_message)


def _receive(attempt: Attempt) -> Outcome | None:
    """Take in what the child sent; its outcome, or None while it goes on."""
    ready = wait([attempt.pipe, attempt.process.sentinel], timeout=WATCH_SECONDS)
    with suppress(EOFError, OSError):
        while attempt.pipe.poll():
            message = attempt.pipe.recv()
            if isinstance(message, Part):  # the child waits until the pipe is read again
                attempt.part = message
                return None
            if not isinstance(message, tuple):
                return message  # type: ignore[no-any-return]
            attempt.progress, attempt.phase = message
    if attempt.process.sentinel in ready:
        attempt.process.join()
        return _failed("child_ended", f"the process of the job ended: {_ending(attempt.process.exitcode)}")
    return None


def _log_part(settings: Settings, source: Sessions, attempt: Attempt, stop: threading.Event) -> None:
    """Log a part of the result; while the database is away, try again until the worker is stopped."""
    part = attempt.part
    if part is None:
        return
    record = decisions.table_record(
        part.origin, n_rows=part.n_rows, content=part.content, milliseconds=part.milliseconds
    )
    while attempt.part is not None and not stop.is_set():
        try:
            with transaction(source) as session:
                _beat(session, settings, attempt)  # raises LeaseLost where another has the job
                decisions.add(session, record)  # the same one: the last commit may have come through
            attempt.part = None
        except Unavailable as error:
            LOG.warning("job %s: a part is not logged yet: %s", attempt.claim.job_id, error.log_message)
            stop.wait(PAUSE_SECONDS)


def _ending(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "killed (signal 9), as the system does when memory runs out"
    if code is not None and code < 0:
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"exit code {code} without a result"


def _over_limit(settings: Settings, attempt: Attempt) -> Failed | None:
    if time.monotonic() - attempt.began > settings.job_seconds:
        return _failed("time_limit", f"the job took longer than {settings.job_seconds:g} s")
    resident = resident_mb(attempt.process.pid)
    if resident is not None and resident > settings.job_memory_mb:
        return _failed("memory_limit", f"the job used {resident:.0f} MiB, more than {settings.job_memory_mb} MiB")
    return None


def resident_mb(pid: int | None) -> float | None:
    """Memory of a process that is in RAM, in MiB; None where the system does not tell (other than Linux)."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _within_limits(settings: Settings, outcome: Outcome | Lost) -> Outcome | Lost:
    n_nodes = (outcome.version.summary.get("n_nodes") or 0) if isinstance(outcome, Finished) else 0
    if n_nodes <= settings.max_nodes:
        return outcome
    message = f"the tree has {n_nodes} nodes, at most {settings.max_nodes} are allowed: let it grow less, or prune it"
    return Failed(problem("too_large", message), retryable=False)


def _is_cancelled(settings: Settings, source: Sessions, attempt: Attempt) -> bool:
    """Heartbeat or a look at the flag, when one of them is due."""
    moment = time.monotonic()
    news = (attempt.progress, attempt.phase) != attempt.told
    due = PROGRESS_SECONDS if news else settings.lease_seconds / 3
    if moment - attempt.beat_at >= min(due, settings.lease_seconds / 3):
        with transaction(source) as session:
            return _beat(session, settings, attempt)
    if moment - attempt.looked_at >= FLAG_SECONDS:
        attempt.looked_at = moment
        with read_session(source) as session:
            return job_queue.is_cancel_requested(session, attempt.claim)
    return False


def _beat(session: Any, settings: Settings, attempt: Attempt) -> bool:
    attempt.beat_at = attempt.looked_at = time.monotonic()
    attempt.told = (attempt.progress, attempt.phase)
    lease = settings.lease_seconds
    return job_queue.heartbeat(
        session, attempt.claim, lease_seconds=lease, progress=attempt.progress, phase=attempt.phase
    )


def _cancel(attempt: Attempt) -> Outcome:
    """Ask the child to stop; it is killed when it does not within STOP_SECONDS."""
    with suppress(OSError):
        attempt.pipe.send("stop")
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline and attempt.process.is_alive():
        if _receive(attempt) is not None:
            break
    return Cancelled()


def _failed(code: str, message: str) -> Failed:
    return Failed(problem(code, message), retryable=True)


# --- saving


def _settle(source: Sessions, claim: Claim, outcome: Outcome | Lost, stop: threading.Event) -> str:
    """Write the outcome; while the database is away, try again until the worker is stopped. Gives what became of it."""
    while not isinstance(outcome, Lost):
        try:
            with transaction(source) as session:
                check_schema_revision(session)  # a migration may have come in between
                state = _save(session, claim, outcome)
            LOG.info("job %s: %s", claim.job_id, state)
            return state
        except LeaseLost:
            break
        except SchemaMismatch:
            raise
        except Unavailable as error:
            LOG.warning("job %s: not saved yet: %s", claim.job_id, error.log_message)
            if stop.wait(PAUSE_SECONDS):
                return "not saved"
        except Exception:
            if not isinstance(outcome, Finished | Reported):
                raise
            LOG.exception("job %s: its result cannot be saved", claim.job_id)
            outcome = _failed("not_saved", "the result of the job could not be saved")
    LOG.warning("job %s: another worker took it over; its outcome here is dropped", claim.job_id)
    with transaction(source) as session:
        note_fenced_out(session, claim)
    return "taken over"


def _save(session: Any, claim: Claim, outcome: Outcome) -> str:
    match outcome:
        case Finished(version=new):
            version = models.add_version(session, new, job_id=claim.job_id)
            result = {"model": new.model, "version": version.number, "version_id": version.id, "summary": new.summary}
            job = job_queue.finish(session, claim, result=result)
        case Reported(result=result):
            job = job_queue.finish(session, claim, result=result)
        case Failed(error=error, retryable=retryable):
            job = job_queue.fail_or_retry(session, claim, error=error, retryable=retryable)
        case Cancelled():
            job = job_queue.mark_cancelled(session, claim)
        case Released(reason=reason):
            job = job_queue.release(session, claim, reason=reason)
    return job.state
