"""The worker claims jobs, runs each job in a child process, renews the job's lease, and saves the outcome.

`service.worker.child_main` shows the messages between worker and child. The child only reads the
database. The worker writes to it, and saves an outcome only while it holds the lease. A new version of a model is saved
in the transaction that ends the job. If a crash or a limit (memory, time) kills the child, the attempt has failed.
"""

import logging
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait

from sqlalchemy.orm import Session
from structlog.contextvars import bound_contextvars

from service.database.engine import Sessions, connect, end_idle_transactions, read_session, sessions, transaction
from service.database.migrate import check_schema_revision
from service.errors import LeaseLost, SchemaMismatch, Unavailable
from service.repositories import decisions, job_queue
from service.repositories.job_queue import Claim
from service.repositories.models import NewVersion, add_version
from service.settings import Settings
from service.tracing import Traces, job_span
from service.worker import out_of_core
from service.worker.child_main import RunJob, run_job
from service.worker.child_process import Child, ending_of, over_limit, start_child
from service.worker.cleanup import Cleaner
from service.worker.failures import Failed
from service.worker.handlers import Cancelled, Outcome, Released, ResultChunk

LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.1  # between queries for a job
WATCH_SECONDS = 0.1  # between checks of a running child
HEARTBEAT_SECONDS = 0.5  # between heartbeats, which publish the progress and read the cancel flag
RETRY_SECONDS = 2.0  # after an error, before the next attempt to claim a job or to save an outcome


@dataclass(frozen=True, slots=True)
class Worker:
    """The state that all functions of a worker share; setting `stop` ends the worker."""

    settings: Settings
    source: Sessions
    stop: threading.Event
    traces: Traces | None
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")


@dataclass(slots=True)
class Attempt:
    """A child process that runs a claimed job, and what it has reported."""

    claim: Claim
    child: Child
    began: float = field(default_factory=time.monotonic)
    progress: tuple[float, str] = (0.0, "")  # share and phase
    beat_at: float = field(default_factory=time.monotonic)  # time of the last heartbeat
    chunk: ResultChunk | None = None  # a part of the result that is not logged yet


def run(settings: Settings, stop: threading.Event | None = None, *, child: RunJob | None = None) -> None:
    """Claim and run jobs until stopped; a running job without a result is queued again, without losing an attempt.

    Without `stop`, SIGTERM and SIGINT stop the worker (main thread only).
    """
    if stop is None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Another thread sets the event: the signal may have interrupted this one while it holds the event's lock.
            signal.signal(number, lambda *_, stop=stop: threading.Thread(target=stop.set, daemon=True).start())
    traces = Traces() if settings.traces == "on" else None
    engine = connect(settings)
    end_idle_transactions(engine, seconds=settings.lease_seconds)
    worker = Worker(settings, sessions(engine), stop, traces)
    cleaner = Cleaner(worker.source, settings)
    idle = start_child(settings, child or run_job)  # before a job is claimed: the first start takes a second or two
    try:
        while not stop.is_set():
            if not idle.process.is_alive():
                idle.end()
                idle = start_child(settings, child or run_job)
            if not _work_once(worker, idle):
                cleaner.clean_up()
                stop.wait(POLL_SECONDS)
    finally:
        idle.end()
        engine.dispose()


def _work_once(worker: Worker, child: Child) -> bool:
    """If a job is due, run it in the child and end the child; return whether to look for another job at once."""
    try:
        with read_session(worker.source) as session:
            check_schema_revision(session)
            if not job_queue.has_work(session):
                return False
        with transaction(worker.source) as session:
            check_schema_revision(session)
            claim = job_queue.claim(session, worker=worker.name, lease_seconds=worker.settings.lease_seconds)
        if claim is None:
            return False
        with bound_contextvars(job_id=claim.job_id):
            LOG.info("job %s: attempt %d of %d", claim.job_id, claim.attempt, claim.max_attempts)
            span = job_span(worker.traces, job_id=claim.job_id, kind=claim.kind, attempt=claim.attempt)
            with span as describe:
                try:
                    with suppress(OSError):  # if the child has ended, `_receive` notices it
                        child.pipe.send(claim)
                    state, has_failed = _carry_out(worker, Attempt(claim, child))
                finally:
                    child.end()
                describe(state, failed=has_failed)
            if state in job_queue.FINAL:
                out_of_core.remove_folder(worker.settings, claim.job_id)
        return True
    except SchemaMismatch as error:
        if error.newer:
            raise
        LOG.warning("%s; this worker takes no job until then", error)
    except Unavailable as error:
        LOG.warning("%s; trying again", error.log_message)
    except Exception:  # the worker goes on; the lease of the job runs out, and the job is claimed again
        LOG.exception("an unexpected error in the worker")
        return worker.stop.wait(RETRY_SECONDS)  # clean up unless the worker stops: the error may come back each time
    return not worker.stop.wait(RETRY_SECONDS)


def _carry_out(worker: Worker, attempt: Attempt) -> tuple[str, bool]:
    """Watch an attempt to its end and save the outcome; return the state of the job and whether the attempt failed.

    The state is "taken over" if another worker ended the lease, "not saved" if this worker was stopped before saving.
    """
    claim = attempt.claim
    try:
        outcome = _watch(worker, attempt)
        attempt.child.kill()  # the system frees the child's memory while the outcome is saved
        size = outcome.summary if isinstance(outcome, NewVersion) else {}
        counted = ("n_nodes",) if size.get("n_nodes") else ("n_rules", "n_conditions")
        if sum(size.get(name) or 0 for name in counted) > (most := worker.settings.max_nodes):
            parts = " and ".join(f"{size[name]} {name.removeprefix('n_')}" for name in counted)
            message = f"the model has {parts}, at most {most} are allowed: limit max_depth, or prune it"
            outcome = Failed("too_large", message)
        return _save(worker, claim, outcome), isinstance(outcome, Failed)
    except LeaseLost:
        LOG.warning("job %s: another worker took it over; the outcome is dropped", claim.job_id)
        with transaction(worker.source) as session:
            job_queue.note_fenced_out(session, claim)
        return "taken over", False


def _watch(worker: Worker, attempt: Attempt) -> Outcome:
    claim = attempt.claim
    lease = worker.settings.lease_seconds
    while True:
        outcome = _receive(attempt) if attempt.chunk is None else None
        if worker.stop.is_set() and not isinstance(outcome, NewVersion | dict):
            return Released("the worker was stopped")  # the signal that stopped the worker may have ended the child
        outcome = outcome or over_limit(worker.settings, began=attempt.began, pid=attempt.child.process.pid)
        if outcome is not None:
            return outcome
        try:
            is_due = time.monotonic() - attempt.beat_at >= min(HEARTBEAT_SECONDS, lease / 3)
            if attempt.chunk is not None or is_due:
                share, phase = attempt.progress
                with transaction(worker.source) as session:
                    attempt.beat_at = time.monotonic()
                    is_cancelled = job_queue.heartbeat(session, claim, lease_seconds=lease, progress=share, phase=phase)
                    if attempt.chunk is not None:  # `add` skips a record that an unconfirmed commit stored
                        decisions.add(session, attempt.chunk.record)
                attempt.chunk = None
                if is_cancelled:
                    attempt.child.stop()
                    return Cancelled()
        except Unavailable as error:  # the child goes on; if the lease is lost meanwhile, all writes are refused
            LOG.warning("job %s: no heartbeat: %s", claim.job_id, error.log_message)
            worker.stop.wait(HEARTBEAT_SECONDS)


def _receive(attempt: Attempt) -> Outcome | None:
    """Read the child's messages up to a chunk or the outcome; return the outcome, or a failure if the child ended."""
    process, pipe = attempt.child.process, attempt.child.pipe
    ready = wait([pipe, process.sentinel], timeout=WATCH_SECONDS)
    with suppress(EOFError, OSError):
        while pipe.poll():
            message = pipe.recv()
            if isinstance(message, ResultChunk):  # the next chunk waits in the pipe until this one is logged
                attempt.chunk = message
                return None
            if not isinstance(message, tuple):
                return message  # type: ignore[no-any-return]
            attempt.progress = message
    if process.sentinel in ready:
        process.join()
        return Failed("child_ended", f"the process of the job ended: {ending_of(process.exitcode)}")
    return None


def _save(worker: Worker, claim: Claim, outcome: Outcome) -> str:
    """Save the outcome, retrying if the database is unavailable; return the job's state, or "not saved" if stopped."""
    state = ""
    while not state:
        try:
            with transaction(worker.source) as session:
                check_schema_revision(session)  # the tables may have been migrated meanwhile
                state = save_outcome(session, claim, outcome)
        except (LeaseLost, SchemaMismatch):
            raise
        except Unavailable as error:
            LOG.warning("job %s: not written yet: %s", claim.job_id, error.log_message)
            state = "not saved" if worker.stop.wait(RETRY_SECONDS) else ""
        except Exception:
            if not isinstance(outcome, NewVersion | dict):
                raise
            LOG.exception("job %s: its result cannot be saved", claim.job_id)
            outcome = Failed("not_saved", "the result of the job could not be saved")
    LOG.info("job %s: %s", claim.job_id, state)
    return state


def save_outcome(session: Session, claim: Claim, outcome: Outcome) -> str:
    """Save the outcome of an attempt and return the state of the job."""
    match outcome:
        case NewVersion(model=model, summary=summary):
            version = add_version(session, outcome, job_id=claim.job_id)
            result = {"model": model, "version": version.number, "version_id": version.id, "summary": summary}
            job = job_queue.finish(session, claim, result=result)
        case dict():
            job = job_queue.finish(session, claim, result=outcome)
        case Failed(code, message, errors):
            error = {"code": code, "message": message, "errors": list(errors)}
            job = job_queue.fail_or_retry(session, claim, error=error, retryable=outcome.retryable)
        case Cancelled():
            job = job_queue.mark_cancelled(session, claim)
        case Released(reason=reason):
            job = job_queue.release(session, claim, reason=reason)
    return job.state
