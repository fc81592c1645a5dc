"""What each child of a worker begins with, loaded once: on Linux they are forked from a process that imports this.

    worker ──starts──> template        imports this and `job_child`: the core, and the kernels that are compiled already
                          │ fork       some milliseconds a child, which shares what the template has in memory
                          ├──> child   waits for a job, does it, ends
                          └──> child

The template has no threads of ours, opens no database but an empty one in memory, and ends with the last of its worker
and the worker's children; these end when the pipe to a worker that died does. Where children start from nothing
instead, each does the same when it begins.
"""

import gc
import logging
import os
from contextlib import suppress
from typing import Final

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

import espalier
from service.repositories import datasets

IN_MEMORY: Final = "sqlite://"
LOG: Final = logging.getLogger(__name__)
N_ROWS: Final = 300
"""Of the tables that kernels are loaded with: more values than a column of bytes has, and small work all the same."""


def load() -> None:
    """Load what takes long; nothing is compiled, and what fails is left to the job, which will say so."""
    try:
        espalier.load_all()
        espalier.warm_up(())  # loads the compiler and the kernels, and compiles nothing
        if espalier.compiled_code().n_kernels:
            _load_kernels()
        _load_database_code()
    except Exception as error:
        LOG.warning("a job's process could not be prepared: %s", error)


def _load_kernels() -> None:
    """Train on a few rows, as small work: it loads machine code that is kept, and does without what is not."""
    numbers = [float(row) for row in range(N_ROWS)]
    labels = ["no" if row % 7 < row // 50 else "yes" for row in range(N_ROWS)]
    for answers in (numbers, labels):
        espalier.train(espalier.dataset_from_columns({"x": numbers, "y": answers}, target="y"), "cart", max_depth=3)


def _load_database_code() -> None:
    """Load the driver of the database; look for a data set where there is none, which sets up the tables."""
    make_url(os.environ.get("ESPALIER_DATABASE_URL", IN_MEMORY)).get_dialect().import_dbapi()
    with suppress(OperationalError), Session(create_engine(IN_MEMORY, poolclass=NullPool)) as session:
        datasets.load_data_set(session, "")


load()
gc.collect()
gc.freeze()  # the collector would write to all that the children share
