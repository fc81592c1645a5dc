"""The child process of one attempt at a job: it computes, reports to the worker, and ends; it writes nothing.

    worker ──start──> forkserver    has run `preload`: the core, the tables and the database driver are in memory
                          │ fork    takes milliseconds; the child shares that memory
                          ├──> child    waits for a job, does it, ends
                          └──> child

    worker ──pipe───> child         the claim; "stop"; the end of the pipe means that the worker is gone
    worker <──pipe─── child         progress now and then, chunks of a result as they are made, at last the outcome

The forkserver opens no database but an empty one in memory, and ends after the worker and its children. Where children
are spawned, each runs `preload` itself.
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

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

import espalier
from service import log_config
from service.database.engine import connect, sessions
from service.repositories.datasets import load_data_set
from service.repositories.job_queue import Claim
from service.settings import Settings
from service.worker.handlers import JobContext, ResultChunk, perform

LOG = logging.getLogger(__name__)
REPORT_SECONDS = 0.2  # between reports of a progress that changed
IN_MEMORY = "sqlite://"
N_ROWS = 300
"""Of the tables that kernels are loaded with: more values than a column of bytes has, and small work all the same."""

RunJob = Callable[[Settings, Claim, Connection], None]


def preload() -> None:
    """Load what takes long. Nothing is compiled, and a failure is left to the job, which will report it."""
    try:
        espalier.load_all()
        espalier.warm_up(())  # loads the compiler and the kernels, and compiles nothing
        if espalier.compiled_code().n_kernels:
            _load_kernels()
        make_url(os.environ.get("ESPALIER_DATABASE_URL", IN_MEMORY)).get_dialect().import_dbapi()
        # To look for a data set in an empty database configures the mappers.
        with suppress(OperationalError), Session(create_engine(IN_MEMORY, poolclass=NullPool)) as session:
            load_data_set(session, "")
    except Exception as error:
        LOG.warning("a job's process could not be prepared: %s", error)


def child_main(run: RunJob, settings: Settings, pipe: Connection) -> None:
    """Wait for a job and do it. Without a worker there will be none."""
    _die_with_parent()
    logging.config.dictConfig(log_config.configuration(settings.log_format, settings.log_level))
    importlib.import_module("service.worker.preloaded")  # done already where the child was forked
    try:
        claim = pipe.recv()
    except (EOFError, OSError):
        return
    with log_config.about(job_id=claim.job_id):
        run(settings, claim, pipe)


def run_job(settings: Settings, claim: Claim, pipe: Connection) -> None:
    """Do a job and send its outcome."""
    progress = espalier.Progress()
    sending = threading.Lock()
    done = threading.Event()
    threading.Thread(target=listen, args=(pipe, progress), daemon=True).start()
    threading.Thread(target=_report, args=(pipe, progress, sending, done), daemon=True).start()

    def send(chunk: ResultChunk) -> None:
        with sending:
            pipe.send(chunk)

    source = sessions(connect(settings, pool=NullPool))
    outcome = perform(JobContext(source, progress, claim.job_id, send), claim.kind, claim.payload)
    done.set()
    with sending:
        pipe.send(outcome)


def listen(pipe: Connection, progress: espalier.Progress) -> None:
    """Stop the job when the worker sends a message; end this process when the worker is gone."""
    try:
        while True:
            pipe.recv()
            progress.stop()
    except (EOFError, OSError):
        os._exit(1)


def _load_kernels() -> None:
    """Train on a few rows, as small work: it loads machine code that is kept, and does without what is not."""
    numbers = [float(row) for row in range(N_ROWS)]
    labels = ["no" if row % 7 < row // 50 else "yes" for row in range(N_ROWS)]
    for answers in (numbers, labels):
        espalier.train(espalier.dataset_from_columns({"x": numbers, "y": answers}, target="y"), "cart", max_depth=3)


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
    """End with the process that forked this one, and with the worker.

    On Linux the kernel kills the child with the forkserver, which ends when its worker has and no child is left. The
    end of the pipe tells of the worker's end, there and elsewhere.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 = PR_SET_PDEATHSIG
    worker = multiprocessing.parent_process()
    if worker is not None and not worker.is_alive():  # it died before the line above
        os._exit(1)
