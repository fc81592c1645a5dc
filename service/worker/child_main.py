"""The child process of one attempt at a job. It computes, reports to the worker, and never writes to the database.

    worker ──start──> forkserver    has imported this module
                          │ fork    takes milliseconds; the child shares the forkserver's memory
                          ├──> child    waits for a job, runs it, ends
                          └──> child

    worker ──pipe───> child         the claim; "stop"; the pipe closes when the worker ends
    worker <──pipe─── child         progress, chunks of a result, and finally the outcome

The forkserver ends after the worker and its children. Only Linux uses it: elsewhere, each child imports this module.
"""

import ctypes
import logging.config
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

from sqlalchemy.pool import NullPool
from structlog.contextvars import bound_contextvars

import espalier
from service import log_config
from service.database.engine import connect, sessions
from service.repositories.job_queue import Claim
from service.settings import Settings
from service.worker.handlers import JobContext, Outcome, ResultChunk, perform

REPORT_SECONDS = 0.2  # between reports of progress

RunJob = Callable[[Settings, Claim, Connection], None]


def child_main(run: RunJob, settings: Settings, pipe: Connection) -> None:
    """Wait for a claim in the pipe and run its job; return if the worker ends first."""
    _die_with_parent()
    logging.config.dictConfig(log_config.configuration(settings.log_format, settings.log_level))
    try:
        claim = pipe.recv()
    except (EOFError, OSError):
        return
    with bound_contextvars(job_id=claim.job_id):
        run(settings, claim, pipe)


def run_job(settings: Settings, claim: Claim, pipe: Connection) -> None:
    """Run a job and send its outcome."""
    progress = espalier.Progress()
    sending = threading.Lock()
    done = threading.Event()
    threading.Thread(target=listen, args=(pipe, progress), daemon=True).start()
    threading.Thread(target=_report, args=(pipe, progress, sending, done), daemon=True).start()

    def send(message: ResultChunk | Outcome) -> None:
        with sending:
            pipe.send(message)

    source = sessions(connect(settings, pool=NullPool))
    outcome = perform(JobContext(source, progress, claim.job_id, send, settings), claim.kind, claim.payload)
    done.set()
    send(outcome)


def listen(pipe: Connection, progress: espalier.Progress) -> None:
    """Stop the job when the worker sends a message; end this process when the worker has ended."""
    try:
        while True:
            pipe.recv()
            progress.stop()
    except (EOFError, OSError):
        os._exit(1)


def _report(pipe: Connection, progress: espalier.Progress, sending: threading.Lock, done: threading.Event) -> None:
    sent = (0.0, "")
    while not done.wait(REPORT_SECONDS):
        current = (float(progress.share), progress.phase)
        if current == sent:
            continue
        with sending, suppress(OSError):
            if not done.is_set():
                pipe.send(current)
        sent = current


def _die_with_parent() -> None:
    """Let Linux kill this process when the forkserver ends; end this process now if the worker has already ended.

    If the worker ends later, the pipe closes, which `child_main` and `listen` notice.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 = PR_SET_PDEATHSIG
    worker = multiprocessing.parent_process()
    if worker is not None and not worker.is_alive():  # then the forkserver may have ended before `prctl`
        os._exit(1)
