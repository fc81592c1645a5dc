"""The child process of one attempt at a job: it computes, tells the worker, and ends; it writes nothing.

worker ──pipe───> child        the claim; "stop"; the end of the pipe means that the worker is gone
worker <──pipe─── child        progress now and then, parts of a result as they are made, at the end the outcome
"""

import ctypes
import importlib
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

import espalier
from service import log_config
from service.database.engine import connect, sessions
from service.repositories.job_queue import Claim
from service.settings import Settings
from service.worker.handlers import JobLog, Part, perform

REPORT_SECONDS = 0.2  # between reports of a progress that changed

# Settings, claim, the pipe to the worker.
Child = Callable[[Settings, Claim, Connection], None]


def wait_for_a_job(child: Child, settings: Settings, pipe: Connection) -> None:
    """What a child does first: it loads what takes long, and waits. Without a worker, no job will come."""
    _die_with_worker()
    logging.config.dictConfig(log_config.configuration(settings.log_format, settings.log_level))
    importlib.import_module("service.worker.job_template")  # where it was forked, that is done already
    try:
        claim = pipe.recv()
    except (EOFError, OSError):
        return
    with log_config.about(job_id=claim.job_id):
        child(settings, claim, pipe)


def child_main(settings: Settings, claim: Claim, pipe: Connection) -> None:
    """The child process of one attempt: compute, send the outcome, end."""
    progress = espalier.Progress()
    sending = threading.Lock()
    done = threading.Event()
    threading.Thread(target=listen, args=(pipe, progress), daemon=True).start()
    reporter = threading.Thread(target=_report, args=(pipe, progress, sending, done), daemon=True)
    reporter.start()
    engine = connect(settings, pool=NullPool)

    def keep(part: Part) -> None:
        with sending:
            pipe.send(part)

    log = JobLog(claim.job_id, keep)
    outcome = perform(sessions(engine), kind=claim.kind, payload=claim.payload, progress=progress, log=log)
    done.set()
    with sending:
        pipe.send(outcome)


def listen(pipe: Connection, progress: espalier.Progress) -> None:
    """Wait for the worker's word; without a worker there is nobody to compute for."""
    try:
        while True:
            pipe.recv()
            progress.stop()
    except (EOFError, OSError):
        os._exit(1)


def _report(pipe: Connection, progress: espalier.Progress, sending: threading.Lock, done: threading.Event) -> None:
    told = (0.0, "")
    while not done.wait(REPORT_SECONDS):
        news = (float(progress.share), progress.phase)
        if news == told:
            continue
        with sending, suppress(OSError):
            if not done.is_set():
                pipe.send(news)
        told = news


def _die_with_worker() -> None:
    """End with the process that forked this one, and with the worker.

    On Linux the kernel kills the child with its template, which ends when its worker has and no child is left. What
    tells of the worker's own end, there and elsewhere, is the end of the pipe.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 = PR_SET_PDEATHSIG
    worker = multiprocessing.parent_process()
    if worker is not None and not worker.is_alive():  # it died before the line above
        os._exit(1)
